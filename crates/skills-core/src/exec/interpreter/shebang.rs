//! [`Shebang`]: the `#!` line of a script, which names its interpreter on Unix.

/// A parsed `#!` line. A call of `env` is replaced by the program that `env` would run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shebang {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

impl Shebang {
    /// Parses the beginning of a script. Returns `None` if it has no `#!` line, or the line names no program.
    pub(super) fn parse(head: &[u8]) -> Option<Self> {
        let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
        let line = std::str::from_utf8(line).ok()?.trim();
        let (program, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if program.is_empty() {
            return None;
        }
        if base_name(program) == "env" {
            return Self::parse_env(rest.trim());
        }
        // Like the kernel, we pass everything after the program as a single argument.
        let args = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(str::to_owned);
        Some(Self { program: program.to_owned(), args: args.into_iter().collect(), env: Vec::new() })
    }

    /// Parses the arguments of `env`, such as `-S NAME=value program args`. We also split words without `-S`: Linux wouldn't,
    /// but it couldn't run such a script at all.
    fn parse_env(rest: &str) -> Option<Self> {
        let rest = ["--split-string=", "--split-string", "-S"]
            .iter()
            .find_map(|flag| rest.strip_prefix(flag))
            .unwrap_or(rest);
        let mut words = split_words(rest).into_iter().peekable();
        let mut env = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            env.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        let program = words.next().filter(|word| !word.starts_with('-'))?;
        Some(Self { program, args: words.collect(), env })
    }

    /// Returns the name of the program, without its directory.
    pub(super) fn name(&self) -> &str {
        base_name(&self.program)
    }
}

/// Returns the name of a program, without its directory and `.exe`.
pub(super) fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Splits words like `env -S`: at whitespace, except within single or double quotes.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut in_word = false;
    for c in text.chars() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => {
                if in_word {
                    words.push(std::mem::take(&mut word));
                }
                in_word = false;
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                in_word = true;
            }
            (Some(open), c) if open == c => quote = None,
            (_, c) => {
                word.push(c);
                in_word = true;
            }
        }
    }
    if in_word {
        words.push(word);
    }
    words
}
