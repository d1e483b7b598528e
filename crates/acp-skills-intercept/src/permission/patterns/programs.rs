//! Commands that a pattern with a `*` allows.
//!
//! A skill that declares `Bash(git log:*)` asks for `git log`, not for the program that `git log --ext-diff` starts. Most programs can run
//! others or write files, and there are many ways to tell them to. So only the programs listed here are allowed, with the subcommands and
//! options that are known to be harmless. The user is asked about everything else.

/// Harmless uses of a program.
struct Program {
    name: &'static str,
    /// Harmless subcommands with the same options; empty if the program has none.
    subcommands: &'static str,
    /// Harmless options as they are written, without a value.
    options: &'static str,
    /// Harmless options of one letter, which may be combined.
    letters: &'static str,
}

/// Programs that can run others or write files, but not with these options.
const PROGRAMS: [Program; 6] = [
    Program {
        name: "git",
        subcommands: "blame describe diff log ls-files rev-parse shortlog show status",
        options: "--abbrev-commit --all --after --author --before --branch --branches --cached --color --count --date --decorate \
                  --diff-filter --first-parent --fixed-strings --follow --format --graph --grep --ignore-case --line-number \
                  --max-count --merges --name-only --name-status --no-color --no-decorate --no-merges --numstat --oneline \
                  --patch --porcelain --pretty --quiet --reverse --short --shortstat --since --staged --stat --summary --tags \
                  --unified --until --verbose --word-diff",
        letters: "aAbdDeEfFGhilLmMnpqrsStUvwz",
    },
    Program {
        name: "git",
        subcommands: "add",
        options: "--all --dry-run --update --verbose",
        letters: "Anuv",
    },
    Program {
        name: "git",
        subcommands: "commit",
        options: "--all --dry-run --message --quiet --signoff --verbose",
        letters: "amqsv",
    },
    Program {
        name: "cargo",
        subcommands: "build check clippy doc metadata test tree",
        options: "--all --all-features --all-targets --benches --bin --bins --check --color --doc --example --examples \
                  --exclude --features --frozen --keep-going --lib --locked --message-format --no-default-features \
                  --no-fail-fast --no-run --nocapture --offline --package --profile --quiet --release --test --tests \
                  --verbose --workspace",
        letters: "jpqrvADFW",
    },
    Program {
        name: "find",
        subcommands: "",
        options: "-a -and -atime -ctime -empty -iname -ipath -iregex -links -maxdepth -mindepth -mmin -mtime -name -newer -not \
                  -o -or -path -perm -print -print0 -prune -regex -size -type -user -xdev",
        letters: "",
    },
    Program {
        name: "rg",
        subcommands: "",
        options: "--count --files --files-with-matches --fixed-strings --glob --hidden --ignore-case --json --line-number \
                  --max-count --multiline --no-ignore --sort --type --word-regexp",
        letters: "ABCcefFgilLmnNopPsStTuUvwx",
    },
];

/// Characters besides letters and digits that are the same for every shell. PowerShell also has other quotes and dashes, and separates
/// arguments at commas. `cmd.exe` removes `^` and replaces `%NAME%`.
const PLAIN: &str = " \t'\"-_./:=+~*?[]";

/// Programs that only read and print, no matter what their arguments are.
const READERS: &str = "basename cat cmp cut diff dirname du echo egrep fgrep grep head ls md5sum pwd sha256sum stat tail tr wc which";

/// Returns true if a list of words, separated by spaces, contains `word`.
fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// Returns true if `pattern`, which `command` matches, allows the command: either the pattern contains the whole command, or only the
/// arguments may vary and they are harmless.
pub(super) fn allows(pattern: &str, command: &str) -> bool {
    let Some((literal, after)) = pattern.split_once('*') else { return true };
    // If the `*` continues a word, such as `docs/*`, the word can lead to another directory.
    after.is_empty() && literal.ends_with([':', ' ']) && is_harmless(command)
}

/// Returns true if a command uses a program in a way that is listed here.
fn is_harmless(command: &str) -> bool {
    if !command.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c)) {
        return false;
    }
    let command = unquoted(command);
    // On Windows, `//HOST/x` is a file of another machine, which receives the user's credentials.
    if command.contains("//") {
        return false;
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    let Some((name, arguments)) = words.split_first() else { return false };
    is_listed(READERS, name)
        || PROGRAMS.iter().any(|program| program.name == *name && program.are_harmless(arguments))
}

/// Returns `command` as its program sees it: without the quotes, which the shell removes, and with `x` for each quoted wildcard,
/// which the shell does not expand.
fn unquoted(command: &str) -> String {
    let mut quote = None;
    let mut text = String::with_capacity(command.len());
    for c in command.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (Some(_), '"' | '\'') => {}
            (Some(_), '*' | '?' | '[') => text.push('x'),
            _ => text.push(c),
        }
    }
    text
}

impl Program {
    /// Returns true if these arguments begin with a harmless subcommand, if the program has any, and are otherwise harmless.
    fn are_harmless(&self, arguments: &[&str]) -> bool {
        let arguments = match arguments {
            [subcommand, rest @ ..] if is_listed(self.subcommands, subcommand) => rest,
            _ if self.subcommands.is_empty() => arguments,
            _ => return false,
        };
        arguments.iter().all(|word| self.allows(word))
    }

    /// Returns true if an argument is not an option, or is a harmless one.
    fn allows(&self, word: &str) -> bool {
        // The shell replaces such a word with names of files, which may look like options.
        if word.contains(['*', '?', '[']) {
            return false;
        }
        let name = word.split('=').next().unwrap_or(word);
        let Some(letters) = name.strip_prefix('-') else { return true };
        let is_letter = |c: char| c.is_ascii_digit() || self.letters.contains(c);
        name == "--" || is_listed(self.options, name) || letters.chars().all(is_letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_commands_are_allowed() {
        for (pattern, command) in [
            // The pattern contains everything.
            ("npm run lint", "npm run lint"),
            ("git -c a=b log", "git -c a=b log"),
            ("./scripts/a.sh --fast", "./scripts/a.sh --fast"),
            ("ls:*", "ls -l --color src/*.rs"),
            ("cat *", "cat ../a 'b c'"),
            ("grep -r:*", "grep -r -- -x ."),
            ("git:*", "git status"),
            ("git status:*", "git status --short"),
            ("git log:*", "git log --oneline -5 src"),
            ("git log:*", "git log -n5 --format=oneline HEAD~3"),
            ("git log:*", "git log --grep '[a-z]*'"),
            ("git add:*", "git add -u src"),
            ("git commit:*", "git commit -am 'Some words'"),
            ("cargo test:*", "cargo test --workspace --release -p core -- --nocapture"),
            ("find:*", "find src -name '*.rs'"),
            ("find:*", "find src -name \"*.rs\" -type f"),
            ("rg:*", "rg -n --hidden words src"),
        ] {
            assert!(allows(pattern, command), "{pattern}: {command}");
        }
    }

    #[test]
    fn the_user_is_asked_about_other_commands() {
        for (pattern, command) in [
            // Other programs, scripts and subcommands.
            ("npm run:*", "npm run lint"),
            ("make:*", "make test"),
            ("python3 scripts/a.py:*", "python3 scripts/a.py x"),
            ("./scripts/a.sh:*", "./scripts/a.sh x"),
            ("bash:*", "bash"),
            ("gh pr:*", "gh pr view 7"),
            ("tar xf:*", "tar xf a.tar"),
            ("git:*", "git"),
            ("git push:*", "git push"),
            ("git grep:*", "git grep words"),
            ("git clone:*", "git clone https://example.org/x"),
            ("git branch:*", "git branch -D main"),
            ("git:*", "git -p status"),
            ("git -c:*", "git -c a=b status"),
            ("git *", "git --exec-path=vendor status"),
            ("cargo:*", "cargo run"),
            ("cargo +nightly:*", "cargo +nightly test"),
            // Another file with the name of the program.
            ("./git:*", "./git status"),
            ("/usr/bin/git:*", "/usr/bin/git status"),
            ("GIT:*", "GIT status"),
            // Variables before the program.
            ("CI=1 git status:*", "CI=1 git status"),
            ("A=1 *", "A=1 PATH=. ls"),
            // A word that the wildcard continues.
            ("cat docs/*", "cat docs/a.md"),
            ("git sta*", "git status"),
            ("* status", "git status"),
            ("*:*", "git status"),
            // Options can be shortened, combined, quoted, and come from names of files.
            ("git log:*", "git log --output=.bashrc"),
            ("git log:*", "git log --outp=.bashrc"),
            ("git log:*", "git log '--output'=.bashrc"),
            ("git log --output:*", "git log --output x"),
            ("git diff:*", "git diff --ext-diff"),
            ("git diff:*", "git diff -nO"),
            ("git diff:*", "git diff *"),
            ("git diff:*", "git diff ''-?"),
            ("git diff:*", "git diff [-a]"),
            ("cargo test:*", "cargo test --config build.rustc-wrapper=evil"),
            ("cargo test:*", "cargo test --manifest-path elsewhere/Cargo.toml"),
            ("find:*", "find src -execdir evil x +"),
            ("find:*", "find src -delete"),
            ("find:*", "find src -name *.rs"),
            ("git add:*", "git add -f .env"),
            ("git commit:*", "git commit -nam words"),
            ("cargo test:*", "cargo test -- @x"),
            // Characters with a meaning in PowerShell and `cmd.exe`.
            ("git log:*", "git log \u{201c}--output=x\u{201d}"),
            ("git log:*", "git log \u{2013}-output=x"),
            ("git log:*", "git log a,--output=x"),
            ("cat:*", "cat //evil.example/x"),
            ("cat:*", "cat /''/evil.example/x"),
            ("git log:*", "git log ^--output=x"),
            ("git log:*", "git log %OS:~0,0%--output=x"),
            ("rg:*", "rg --pre evil words"),
            ("rg --pre:*", "rg --pre evil words"),
        ] {
            assert!(!allows(pattern, command), "{pattern}: {command}");
        }
    }
}
