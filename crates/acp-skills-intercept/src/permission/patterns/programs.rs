//! Programs that can run other programs, and which patterns with a `*` allow their commands.
//!
//! A skill that declares `Bash(git log:*)` asks for `git log`, not for the program that `git log --ext-diff` starts. So an option
//! is granted only if it is known to be harmless. A list of harmful options would never be complete, and many of these can be
//! shortened (`--upload-p`) or combined (`-nO`).

/// A program that can run other programs, with the subcommands that do so and the options that don't.
struct Program {
    names: &'static [&'static str],
    /// True if the pattern has to name a subcommand or a target.
    needs_subcommand: bool,
    /// Subcommands that run what they are given, or that write settings that do.
    harmful_subcommands: &'static str,
    /// Harmless options as they are written, without a value; `*` allows every option except those in [`HARMFUL_FOR_GH`].
    options: &'static str,
    /// Harmless options of one letter, which may be combined.
    letters: &'static str,
}

/// Arguments of `gh` that write files to any directory, unpack or check out files of others, or run the hooks of a repository.
const HARMFUL_FOR_GH: [&str; 8] =
    ["--checkout", "--clone", "--dir", "--fork-name", "--output", "--push", "checkout", "download"];
/// The short forms of these options. They can be combined with others.
const HARMFUL_LETTERS_FOR_GH: [char; 3] = ['c', 'D', 'O'];

/// Subcommands of git that take a remote, or the URL of any repository.
const TRANSFERS: &str = "fetch pull push";

/// Subcommands of git that take a merge strategy with `-s`. Any other strategy than git's own is a program, which can be in the project.
const MERGES: &str = "merge pull rebase";

/// Programs whose subcommands can follow other words (`yarn workspace web exec`), and that run programs as if these were scripts of
/// the project (`npm run env`).
const PACKAGE_MANAGERS: [&str; 3] = ["npm", "pnpm", "yarn"];

/// Programs that skills commonly declare with subcommands or options. The user is always asked about the
/// programs in [`ALWAYS_ASKED`], because lists for all of these would not be worth the effort.
const PROGRAMS: &[Program] = &[
    Program {
        names: &["git"],
        needs_subcommand: true,
        harmful_subcommands: "bisect bugreport config credential daemon diagnose difftool filter-branch for-each-repo hook \
                              instaweb merge-index mergetool p4 remote remote-ext remote-fd send-email submodule svn worktree",
        options: "--abbrev-commit --all --amend --after --author --before --branch --branches --cached --color --count --date \
                  --decorate --diff-filter --dry-run --first-parent --fixed-strings --follow --force-with-lease --format \
                  --graph --grep --ignore-case --line-number --max-count --merges --message --name-only --name-status \
                  --no-color --no-decorate --no-edit --no-merges --no-verify --numstat --oneline --patch --porcelain --pretty \
                  --prune --quiet --reverse --set-upstream --short --show-current --shortstat --since --staged --stat \
                  --summary --tags --unified --until --verbose --word-diff --word-regexp",
        letters: "aAbdDeEfFGhilLmMnpqrsStUvwz",
    },
    Program {
        names: &["cargo"],
        needs_subcommand: true,
        harmful_subcommands: "msrv script watch",
        options: "--all --all-features --all-targets --benches --bin --bins --check --color --doc --example --examples \
                  --exclude --features --frozen --keep-going --lib --locked --message-format --no-default-features \
                  --no-fail-fast --no-run --nocapture --offline --package --profile --quiet --release --test --tests \
                  --verbose --workspace",
        letters: "jpqrvADFW",
    },
    Program {
        names: &PACKAGE_MANAGERS,
        needs_subcommand: true,
        harmful_subcommands: "c config create dlx exec explore init innit plugin policies set set-version x",
        options: "--coverage --if-present --silent --verbose --workspace --workspaces",
        letters: "s",
    },
    Program {
        names: &["go"],
        needs_subcommand: true,
        harmful_subcommands: "env generate get install run tool",
        options: "-bench -benchmem -count -cover -failfast -json -list -parallel -race -run -short -tags -timeout -v -x",
        letters: "",
    },
    Program {
        // These are the only subcommands of `gh` that run programs. We don't need to check the options, since they never do. After `--`,
        // they are options of git.
        names: &["gh"],
        needs_subcommand: true,
        harmful_subcommands: "alias codespace config cs ext extension extensions",
        options: "*",
        letters: "",
    },
    Program {
        names: &["make", "gmake"],
        needs_subcommand: true,
        harmful_subcommands: "",
        options: "",
        letters: "Bijknqs",
    },
    Program {
        names: &["find"],
        needs_subcommand: false,
        harmful_subcommands: "",
        options: "-a -and -atime -ctime -empty -iname -ipath -iregex -links -maxdepth -mindepth -mmin -mtime -name -newer -not \
                  -o -or -path -perm -print -print0 -prune -regex -size -type -user -xdev",
        letters: "",
    },
    Program {
        names: &["rg"],
        needs_subcommand: false,
        harmful_subcommands: "",
        options: "--count --files --files-with-matches --fixed-strings --glob --hidden --ignore-case --json --line-number \
                  --max-count --multiline --no-ignore --sort --type --word-regexp",
        letters: "ABCcefFgilLmnNopPsStTuUvwx",
    },
];

/// Interpreters and package runners. If the pattern names the script or the package, the other arguments belong to the
/// script or the package.
const RUNNERS: &str = "bash bunx csh dash fish ksh lua mksh node nodejs npx perl php pypy python ruby sh tclsh tcsh ts-node \
                       tsx uvx zsh";

/// Subcommands of these that take the script after them.
const RUNNER_SUBCOMMANDS: &str = "inspect watch";

/// Programs that run their arguments as a command, run code from their arguments, or start a program that an option
/// names. A pattern with a `*` never allows a command of these programs.
const ALWAYS_ASKED: &str = ". ack ag ansible asdf at awk bat batch bsdtar builtin bun bundle busybox bwrap caffeinate \
                            cc chroot chrt clang cmake cmd command conda coproc corepack crontab dbus-run-session deno \
                            direnv doas docker dotnet ed emacs emacsclient entr env eval ex exec expect fakeroot fd \
                            fdfind firejail flock g++ gawk gcc gcov gdb gosu gradle gradlew gtar hatch hg hyperfine ionice \
                            java jshell just kubectl less lldb ltrace man mawk mise more mvn mvnw mysql nawk nc ncat nice \
                            ninja nix nix-shell nodemon nodenv nohup nsenter numactl nvim osascript parallel pdm perf \
                            pip pipx pixi pkexec podman poetry powershell prlimit proot psql pwsh pyenv rake rbenv \
                            rclone rr rsync runuser rustc rustup rvim rye scp screen script sed setarch setpriv setsid \
                            sftp socat sort source split sqlite ssh ssh-agent sshpass stdbuf strace su sudo svn \
                            systemd-run tar taskset tcpdump time timeout tmux toybox unbuffer unshare uv valgrind vi \
                            view vim volta watch watchexec wget wsl xargs xvfb-run zip";

/// The words of a command that a pattern with a `*` has to contain to allow it.
enum Rule {
    /// Always ask the user, even if the pattern matches.
    AlwaysAsk,
    /// The pattern has to contain the script or the package that the program runs.
    Runner,
    /// The pattern has to contain all words that are not known to be harmless.
    Program(&'static Program),
}

/// Returns true if a list of words, separated by spaces, contains `word`.
fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// Returns the rule for a program; `None` if the program is not known to run others.
fn rule(name: &str) -> Option<Rule> {
    let is_in = |list: &str| is_listed(list, name);
    if let Some(program) = PROGRAMS.iter().find(|program| program.names.contains(&name)) {
        return Some(Rule::Program(program));
    }
    if is_in(RUNNERS) {
        return Some(Rule::Runner);
    }
    is_in(ALWAYS_ASKED).then_some(Rule::AlwaysAsk)
}

/// Returns the rule for a program that is written with its directory, its extension or its version.
fn rule_for(program: &str) -> Option<Rule> {
    let name = program.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
    let name = [".exe", ".cmd", ".bat"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    rule(name).or_else(|| rule(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')))
}

/// Returns true if `pattern`, which `command` matches, determines which programs the command runs.
pub(super) fn says_what_runs(pattern: &str, command: &str) -> bool {
    let Some(literal) = pattern.split_once('*').map(|(literal, _)| literal) else { return true };
    if leads_elsewhere(pattern, command) {
        return false;
    }
    let command = unquoted(command);
    let words: Vec<&str> = command.split_whitespace().collect();
    // If the `*` continues the last word of the pattern, we can't use that word here.
    let complete = literal.rfind([' ', ':']).map_or("", |end| &literal[..end]);
    let literal_words: Vec<&str> = complete.split_whitespace().collect();
    // Variables before the program can also change what runs, so the pattern has to contain all of them.
    let (variables, words) = words.split_at(count_variables(&words));
    let (variables_in_pattern, literal_words) = literal_words.split_at(count_variables(&literal_words));
    if variables.len() != variables_in_pattern.len() || words.first().is_some_and(|word| is_expanded(word)) {
        return false;
    }
    let Some(rule) = words.first().and_then(|program| rule_for(program)) else { return true };
    // The shell replaces such a word with names of files, which may look like options, or set variables.
    if words.iter().any(|word| is_expanded(word)) {
        return false;
    }
    let subcommand = literal_words.get(1).copied().filter(|word| !word.starts_with('-'));
    match rule {
        Rule::AlwaysAsk => false,
        Rule::Runner => subcommand.is_some_and(|word| !is_listed(RUNNER_SUBCOMMANDS, word)),
        Rule::Program(program) => program.says_what_runs(literal_words, words, subcommand),
    }
}

/// Returns true if a word has an option of one letter, perhaps together with others, such as `-qs`.
fn has_letter(word: &str, letters: &[char]) -> bool {
    word.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains(letters))
}

/// Returns the number of words at the start that set variables for the program, such as `CI=1`.
fn count_variables(words: &[&str]) -> usize {
    let is_variable = |word: &&&str| {
        let name = word.split_once('=').map_or("", |(name, _)| name.trim_end_matches('+'));
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    words.iter().take_while(is_variable).count()
}

/// Returns true if a `*` continues a word of the pattern, such as `scripts/*`, and the word of the command may be outside of this directory.
fn leads_elsewhere(pattern: &str, command: &str) -> bool {
    let before_arguments = [":*", " *"].iter().find_map(|end| pattern.strip_suffix(end)).unwrap_or(pattern);
    let Some((literal, _)) = before_arguments.split_once('*') else { return false };
    if literal.is_empty() || literal.ends_with(char::is_whitespace) {
        return false;
    }
    let Some(word) = command.split_whitespace().nth(literal.split_whitespace().count() - 1) else {
        return false;
    };
    // Quotes may contain white space. The shell expands wildcards in the names of directories, also to `..`.
    word.contains(['"', '\'', '\\', '*', '?', '[']) || word.split('/').any(|component| component == "..")
}

/// Returns true if the repository in a command such as `git push` is in the pattern, or is the default. For git, each other word can
/// be a directory of the project, even `origin`.
fn has_known_remote(in_pattern: &[&str], arguments: &[&str]) -> bool {
    let is_option = |word: &&str| word.starts_with('-');
    !in_pattern.iter().all(is_option) || arguments.iter().all(is_option)
}

/// Returns true if a command such as `git clone URL NAME` puts the files of others into a new directory beside the others of the project, or
/// into a directory that the pattern names. They would be settings in a directory such as `.vscode` or `~/.config/git`.
///
/// An operand can be the value of an option, so each of them may be the repository, whose name is used if there is no target, and each may
/// be the target.
fn clones_beside(in_pattern: &[&str], arguments: &[&str]) -> bool {
    let is_operand = |word: &&&str| !word.starts_with('-');
    let after_clone = |words: &[&str]| {
        let at = words.iter().position(|word| *word == "clone")?;
        Some(words[at + 1..].iter().filter(is_operand).count())
    };
    let (operands, mut has_repository) =
        match (after_clone(in_pattern), arguments.iter().position(|word| *word == "clone")) {
            (Some(operands), _) => (arguments, operands == 0),
            (None, Some(at)) => (&arguments[at + 1..], true),
            (None, None) => return true,
        };
    let is_name = |word: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let word = word.to_ascii_lowercase();
        !word.starts_with('.') && !word.starts_with("node_modules") && word.chars().all(is_plain)
    };
    operands.iter().filter(is_operand).enumerate().all(|(index, word)| {
        if is_name(word) {
            return true;
        }
        // No other operand than the first one and a URL can be the repository.
        let is_repository = has_repository && (index == 0 || word.contains("://"));
        has_repository = false;
        let path = word.trim_end_matches('/').trim_end_matches("/.git").trim_end_matches(".git");
        is_repository && path.rsplit(['/', ':']).next().is_some_and(is_name)
    })
}

/// Returns true if a command of a package manager runs a script that the pattern names, or passes no arguments to it. The other scripts may
/// be programs that run their arguments, such as `cross-env`.
fn has_known_script(subcommand: &str, in_pattern: &[&str], arguments: &[&str]) -> bool {
    let operands = |words: &[&str]| words.iter().filter(|word| !word.starts_with('-')).count();
    let needed = match subcommand {
        "run" | "run-script" | "rum" | "urn" => 1,
        "m" | "multi" | "recursive" | "workspace" | "workspaces" => 2,
        _ => return true,
    };
    let named = operands(in_pattern);
    named >= needed || named + operands(arguments) <= needed
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
            (Some(_), '*' | '?' | '[' | '{') => text.push('x'),
            _ => text.push(c),
        }
    }
    text
}

/// Returns true if the shell replaces a word of an [`unquoted`] command: with a wildcard, by the names of files, and with braces, by any
/// words.
fn is_expanded(word: &str) -> bool {
    word.contains(['*', '?', '[', '{'])
}

impl Program {
    /// Returns true if the words of a pattern before its `*` determine which programs a command with these words runs. `subcommand` is that of
    /// the pattern.
    fn says_what_runs(&self, in_pattern: &[&str], words: &[&str], subcommand: Option<&str>) -> bool {
        let is = |name: &str| self.names.contains(&name);
        // The pattern can contain the package or the file.
        let runs_named = is("go")
            && subcommand == Some("run")
            && in_pattern.get(2).is_some_and(|word| !word.starts_with('-'));
        let is_named = match subcommand {
            Some(_) if runs_named => true,
            Some(word) => !is_listed(self.harmful_subcommands, word),
            None => !self.needs_subcommand,
        };
        let after_subcommand = in_pattern.get(2..).unwrap_or_default();
        let arguments = &words[in_pattern.len().max(1).min(words.len())..];
        let is_one_of = |list: &str| subcommand.is_some_and(|word| is_listed(list, word));
        // The hooks of a repository run when someone pushes to it, and files of a stranger's repository can be hooks or settings.
        let is_known = !(is("git") && is_one_of(TRANSFERS)) || has_known_remote(after_subcommand, arguments);
        let has_strategy = arguments.iter().any(|word| has_letter(word, &['s']));
        let is_ours = !(is("git") && is_one_of(MERGES) && has_strategy);
        let runs_none = self.names != PACKAGE_MANAGERS
            || !words[1..].iter().any(|word| self.can_run(word))
                && subcommand.is_none_or(|word| has_known_script(word, after_subcommand, arguments));
        let is_beside = !(is("git") || is("gh")) || clones_beside(in_pattern, arguments);
        is_named
            && is_known
            && is_ours
            && runs_none
            && is_beside
            && arguments.iter().all(|word| self.allows(word))
    }

    /// Returns true if an argument is not an option, or is a harmless one.
    fn allows(&self, word: &str) -> bool {
        if self.options == "*" {
            let is_harmful = HARMFUL_FOR_GH.iter().any(|harmful| word.starts_with(harmful))
                || has_letter(word, &HARMFUL_LETTERS_FOR_GH);
            return word != "--" && !is_harmful;
        }
        let name = word.split('=').next().unwrap_or(word);
        if let Some(letters) = name.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
            return letters.chars().all(|c| c.is_ascii_digit() || self.letters.contains(c)) || self.has(name);
        }
        if name.starts_with("--") {
            return name == "--" || self.has(name);
        }
        // For `make`, words such as `SHELL=…`, `SHELL:=…` and `X!=…` set variables, and for editors, `+!…` is a command.
        !word.contains('=') && !word.starts_with('+')
    }

    fn has(&self, name: &str) -> bool {
        is_listed(self.options, name)
    }

    /// Returns true if a word of a command of a package manager can be a subcommand or a program that runs the words after it.
    fn can_run(&self, word: &str) -> bool {
        word == "env" || is_listed(self.harmful_subcommands, word) || rule_for(word).is_some()
    }
}

#[cfg(test)]
mod tests;
