//! Programs that run others: what a pattern has to say before it grants a command of theirs.
//!
//! An option that is not known to be harmless is not granted: nobody has a whole list of those that run something, and many
//! can be shortened (`--upload-p`) or written together (`-nO`).

/// What the arguments of a program can do.
enum Kind {
    /// They are a program, or a text in a language that can start one: only the whole command says what runs.
    Wrapper,
    /// The first is a script or a package, and what follows is the script's.
    Runner,
    /// The first is a subcommand or a target, without which nothing is said; not one of these, which run what they are given.
    Subcommands { harmless: Options, but: &'static str },
    /// Some options run programs; nothing else does.
    Options(Options),
}

/// Options that run nothing and write nowhere but where the program always does.
struct Options {
    /// As they are written, without a value; `*` is any.
    long: &'static str,
    /// Letters, alone or together.
    short: &'static str,
}

const WRAPPERS: &str = ". ansible at awk batch builtin busybox bwrap caffeinate chroot chrt cmd command coproc crontab \
                        dbus-run-session direnv doas ed emacs emacsclient entr env eval ex exec expect fakeroot firejail \
                        flock gawk gdb gosu hyperfine ionice jshell less lldb ltrace man mawk more mysql nawk nc ncat nice \
                        nix-shell nodemon nohup nsenter numactl nvim osascript parallel perf pkexec powershell prlimit proot \
                        psql pwsh rr runuser rvim screen script sed setarch setpriv setsid socat source sqlite ssh-agent \
                        sshpass stdbuf strace su sudo systemd-run taskset time timeout tmux toybox unbuffer unshare valgrind \
                        vi view vim watch watchexec wsl xargs xvfb-run";

const RUNNERS: &str = "bash bunx csh dash fish ksh lua mksh node nodejs npx perl php pypy python ruby sh tclsh tcsh ts-node \
                       tsx uvx zsh";

const SUBCOMMANDS: &str = "bun bundle cmake deno docker dotnet gradle hg java just kubectl mvn ninja pip pipx podman poetry \
                           rake rclone scp sftp ssh svn uv";

const GIT: Options = Options {
    long: "--abbrev-commit --all --amend --after --author --before --branch --branches --cached --color --count --date \
           --decorate --diff-filter --dry-run --first-parent --fixed-strings --follow --force-with-lease --format --graph \
           --grep --ignore-case --line-number --max-count --merges --message --name-only --name-status --no-color \
           --no-decorate --no-edit --no-merges --no-verify --numstat --oneline --patch --porcelain --pretty --prune --quiet \
           --reverse --set-upstream --short --show-current --shortstat --since --staged --stat --summary --tags --unified \
           --until --verbose --word-diff --word-regexp",
    short: "aAbdDeEfFGhilLmMnpqrsStUvwz",
};

const CARGO: Options = Options {
    long: "--all --all-features --all-targets --benches --bin --bins --check --color --doc --example --examples --exclude \
           --features --frozen --keep-going --lib --locked --message-format --no-default-features --no-fail-fast --no-run \
           --nocapture --offline --package --profile --quiet --release --test --tests --verbose --workspace",
    short: "jpqrvADFW",
};

const NODE: Options =
    Options { long: "--coverage --if-present --silent --verbose --workspace --workspaces", short: "sw" };

const GO: Options = Options {
    long: "-bench -benchmem -count -cover -failfast -json -list -parallel -race -run -short -tags -timeout -v -x",
    short: "",
};

const FIND: Options = Options {
    long: "-a -and -atime -ctime -empty -iname -ipath -iregex -links -maxdepth -mindepth -mmin -mtime -name -newer -not -o -or \
           -path -perm -print -print0 -prune -regex -size -type -user -xdev",
    short: "",
};

const NOTHING: Options = Options { long: "", short: "" };

const ANYTHING: Options = Options { long: "*", short: "" };

fn kind(name: &str) -> Option<Kind> {
    let is_in = |list: &str| list.split_whitespace().any(|it| it == name);
    let short = |short| Options { long: "", short };
    Some(match name {
        "git" => Kind::Subcommands {
            harmless: GIT,
            but: "bisect config credential daemon difftool filter-branch for-each-repo hook instaweb mergetool p4 remote-ext \
                  remote-fd send-email submodule svn",
        },
        "cargo" => Kind::Subcommands { harmless: CARGO, but: "" },
        "npm" | "pnpm" | "yarn" => Kind::Subcommands { harmless: NODE, but: "config dlx exec explore set x" },
        "go" => Kind::Subcommands { harmless: GO, but: "env generate tool" },
        // What it runs, it runs by these.
        "gh" => Kind::Subcommands { harmless: ANYTHING, but: "alias codespace config ext extension" },
        "make" | "gmake" => Kind::Subcommands { harmless: short("Bijknqs"), but: "" },
        "rsync" => Kind::Subcommands {
            harmless: Options { long: "--delete --dry-run --progress --stats", short: "achnruvz" },
            but: "",
        },
        "tar" | "bsdtar" | "gtar" => Kind::Subcommands { harmless: short("cfjJtvxzC"), but: "" },
        "find" => Kind::Options(FIND),
        "rg" => Kind::Options(Options {
            long: "--count --files --files-with-matches --fixed-strings --glob --hidden --ignore-case --json --line-number \
                   --max-count --multiline --no-ignore --sort --type --word-regexp",
            short: "ABCcefFgilLmnNopPsStTuUvwx",
        }),
        "fd" | "fdfind" => Kind::Options(Options {
            long: "--absolute-path --extension --glob --hidden --max-depth --no-ignore --type",
            short: "adegHIpt",
        }),
        "sort" => Kind::Options(Options {
            long: "--field-separator --ignore-case --key --numeric-sort --reverse --unique",
            short: "bcdfghikMnrstuVz",
        }),
        "ack" | "ag" | "bat" | "cc" | "clang" | "g++" | "gcc" | "gcov" | "rustc" | "split" | "tcpdump"
        | "wget" | "zip" => Kind::Options(NOTHING),
        _ if is_in(WRAPPERS) => Kind::Wrapper,
        _ if is_in(RUNNERS) => Kind::Runner,
        _ if is_in(SUBCOMMANDS) => Kind::Subcommands { harmless: NOTHING, but: "" },
        _ => return None,
    })
}

/// The name under which a program is known: without its directory, its extension and its version.
fn known_as(program: &str) -> Option<Kind> {
    let name = program.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
    let name = [".exe", ".cmd", ".bat"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    kind(name).or_else(|| kind(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')))
}

/// Whether `pattern`, which `command` fits, says which programs run.
pub(super) fn says_what_runs(pattern: &str, command: &str) -> bool {
    let Some(literal) = pattern.split_once('*').map(|(literal, _)| literal) else { return true };
    let command = unquoted(command);
    let words: Vec<&str> = command.split_whitespace().collect();
    let Some(kind) = words.first().and_then(|program| known_as(program)) else { return true };
    // The last word may go on behind the `*`.
    let ends = literal.rfind([' ', ':']).map_or("", |end| &literal[..end]);
    let said: Vec<&str> = ends.split_whitespace().collect();
    let subcommand = said.get(1).filter(|word| !word.starts_with('-'));
    let mut rest = words.iter().skip(said.len().max(1));
    match kind {
        Kind::Wrapper => false,
        Kind::Runner => subcommand.is_some(),
        Kind::Subcommands { harmless, but } => {
            subcommand.is_some_and(|word| !but.split_whitespace().any(|it| it == *word))
                && rest.all(|word| harmless.allow(word))
        }
        Kind::Options(harmless) => rest.all(|word| harmless.allow(word)),
    }
}

/// `command` without the quotes, which a shell takes away before the program sees it, and with `x` for each wildcard that it
/// leaves alone because it is quoted.
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

impl Options {
    /// Whether an argument is none of these programs' own affair, or a harmless option.
    fn allow(&self, word: &str) -> bool {
        if self.long == "*" {
            return true;
        }
        let name = word.split('=').next().unwrap_or(word);
        if let Some(letters) = name.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
            return letters.chars().all(|c| c.is_ascii_digit() || self.short.contains(c)) || self.has(name);
        }
        if name.starts_with("--") {
            return name == "--" || self.has(name);
        }
        // `SHELL=…`, `SHELL:=…` and `X!=…` for make, `+!…` for editors, and wildcards: a shell replaces them by names of
        // files, which may be those of options.
        !word.contains('=') && !word.starts_with(['+', '*', '?', '['])
    }

    fn has(&self, name: &str) -> bool {
        self.long.split_whitespace().any(|it| it == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_says_of_programs_that_run_others() {
        for (pattern, command, expected) in [
            // Whole, and programs that run no others.
            ("git -c a=b log", "git -c a=b log", true),
            ("ls:*", "ls -l --color", true),
            // What options can do, in every spelling.
            ("git log:*", "git log --oneline -5 src", true),
            ("git log:*", "git log -n5 --format=%h", true),
            ("git log:*", "git log --output=.bashrc", false),
            ("git grep:*", "git grep -n words -- src", true),
            ("git grep:*", "git grep -Oevil x", false),
            ("git grep:*", "git grep -nOevil x", false),
            ("git grep:*", "git grep '-Oevil' x", false),
            ("git grep:*", "git grep \"-O\"evil x", false),
            ("git grep:*", "git grep --open=evil x", false),
            ("git grep:*", "git grep --open-files-in'-pager'=evil x", false),
            ("git fetch:*", "git fetch --upload-p evil .", false),
            ("git status", "git status", true),
            ("git sta*", "git status", false),
            ("git:*", "git status", false),
            ("GIT:*", "GIT status", false),
            ("git submodule:*", "git submodule foreach evil", false),
            ("git * status", "git -c a=b status", false),
            ("cargo test:*", "cargo test --workspace --release -p core", true),
            ("cargo test:*", "cargo test --config build.rustc-wrapper=evil", false),
            ("cargo test:*", "cargo test --manifest-path elsewhere/Cargo.toml", false),
            ("gh issue:*", "gh issue list --limit 5", true),
            ("gh:*", "gh issue list", false),
            ("gh alias:*", "gh alias set x evil", false),
            ("make test:*", "make test -j4", true),
            ("make test:*", "make test SHELL=evil", false),
            ("make test:*", "make test SHELL:=evil", false),
            ("make test:*", "make test 'X!=evil'", false),
            ("make test:*", "make test -f evil", false),
            ("npm run:*", "npm run build", true),
            ("npm run *:fast", "npm run test:fast", true),
            ("npm run:*", "npm run build --script-shell=evil", false),
            ("npm exec:*", "npm exec evil", false),
            ("go test:*", "go test -race ./x", true),
            ("go test:*", "go test -toolexec evil ./x", false),
            ("tar xf:*", "tar xf a.tar -C src", true),
            ("tar xf:*", "tar xf a.tar -I evil", false),
            // A file may be called `--checkpoint-action=exec=evil`.
            ("tar cf:*", "tar cf a.tar *", false),
            ("tar cf:*", "tar cf a.tar ''*", false),
            ("tar cf:*", "tar cf a.tar [-a]*", false),
            ("tar cf:*", "tar cf a.tar src/*", true),
            ("find:*", "find src -name '*.rs'", true),
            ("find:*", "find src -name \"*.rs\"", true),
            ("find:*", "find src -name *.rs", false),
            ("tar xf:*", "tar xf a.tar --to-comm=evil", false),
            ("rsync dist/:*", "rsync dist/ -av host:", true),
            ("rsync dist/:*", "rsync dist/ -e evil host:", false),
            ("ssh host:*", "ssh host uptime", true),
            ("ssh host:*", "ssh host -o ProxyCommand=evil", false),
            ("find:*", "find src -name x -type f", true),
            ("find:*", "find src -execdir evil x +", false),
            ("find:*", "find src -delete", false),
            ("rg:*", "rg -n --hidden words src", true),
            ("rg:*", "rg --pre evil words", false),
            ("sort:*", "sort -rn a", true),
            ("sort:*", "sort --compress-prog=evil a", false),
            // Programs that run what they are given.
            ("timeout:*", "timeout 5 evil", false),
            ("timeout 5:*", "timeout 5 evil", false),
            ("env A=1:*", "env A=1 evil", false),
            ("sudo ls:*", "sudo ls -l", false),
            ("time:*", "time evil", false),
            ("nvim:*", "nvim +!evil", false),
            ("sed s/a/b/:*", "sed s/a/b/ -e evil", false),
            // A script's arguments are its own; those before it are not.
            ("python3 scripts/a.py:*", "python3 scripts/a.py --out x -v", true),
            ("python3.11:*", "python3.11 evil.py", false),
            ("bash -c:*", "bash -c evil", false),
            ("node a.js:*", "node a.js --require evil", true),
            ("/usr/bin/python3:*", "/usr/bin/python3 evil.py", false),
            ("npx eslint:*", "npx eslint src", true),
        ] {
            assert_eq!(says_what_runs(pattern, command), expected, "{pattern}: {command}");
        }
    }
}
