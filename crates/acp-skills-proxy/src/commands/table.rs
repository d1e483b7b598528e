//! [`Table`]: a table with aligned columns. Cells are cut or wrapped to fit the terminal.

use std::borrow::Cow;

use skills_core::text::shown;
use textwrap::{Options, WordSplitter};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The space between two columns.
const GAP: &str = "  ";

/// The maximum width of a column on a terminal, except for the last column.
const MAX_WIDTH: usize = 40;

/// The minimum width to which a column of text is cut.
const MIN_WIDTH: usize = 16;

/// The indentation of a note.
const NOTE: &str = "    ";

/// Returns the value of `COLUMNS`, or the width of the terminal. Returns `None` if stdout is not a terminal, so that cells are not cut.
pub(crate) fn terminal_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.into()))
}

/// The alignment of a column, and how its cells are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text, aligned to the left and cut at the end.
    Left,
    /// Numbers, aligned to the right and never cut.
    Right,
    /// Paths, aligned to the left and cut at the beginning.
    Path,
    /// Text in the last column, wrapped to several lines.
    Wrapped,
}

/// A table with `N` columns. Each row is a single line, unless its last column is wrapped.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    align: [Align; N],
    rows: Vec<Row<N>>,
}

#[derive(Debug)]
struct Row<const N: usize> {
    cells: [String; N],
    /// Text below the row.
    note: Option<String>,
}

impl<const N: usize> Table<N> {
    /// Creates a table with a header.
    pub(crate) fn new(header: [(&str, Align); N]) -> Self {
        let cells = header.map(|(title, _)| title.to_owned());
        Self { align: header.map(|(_, align)| align), rows: vec![Row { cells, note: None }] }
    }

    /// Adds a row. Control characters are escaped, and the escapes count towards the width.
    pub(crate) fn row(&mut self, row: [String; N]) {
        self.rows.push(Row { cells: row.map(|text| shown(&text).into_owned()), note: None });
    }

    /// Sets the text below the last row.
    pub(crate) fn note(&mut self, text: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.note = Some(shown(text).into_owned());
        }
    }

    /// Returns the width of the table if no cell is cut.
    pub(crate) fn width(&self) -> usize {
        self.widths().iter().sum::<usize>() + GAP.len() * N.saturating_sub(1)
    }

    /// Renders the table in at most `width` terminal columns if possible. With `None`, no cell is cut or wrapped.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let mut widths = self.widths();
        if let Some(width) = width {
            self.fit(&mut widths, width);
        }
        let mut lines = Vec::new();
        for row in &self.rows {
            self.lines(&row.cells, &widths, &mut lines);
            let room = width.map_or(usize::MAX, |width| width.saturating_sub(NOTE.len()).max(MIN_WIDTH));
            let note = row.note.iter().flat_map(|note| wrap(note, room));
            lines.extend(note.map(|line| format!("{NOTE}{line}")));
        }
        lines.join("\n")
    }

    fn widths(&self) -> [usize; N] {
        let mut widths = [0; N];
        for row in &self.rows {
            for (column, text) in row.cells.iter().enumerate() {
                widths[column] = widths[column].max(text.width());
            }
        }
        widths
    }

    /// Reduces the widest column that may be cut, until all columns fit into `width`.
    fn fit(&self, widths: &mut [usize; N], width: usize) {
        let may_be_cut = |column: &usize| self.align[*column] != Align::Right;
        for column in (0..N).filter(may_be_cut) {
            let most = if column + 1 == N { width.max(MIN_WIDTH) } else { MAX_WIDTH };
            widths[column] = widths[column].min(most);
        }
        while widths.iter().sum::<usize>() + GAP.len() * N.saturating_sub(1) > width {
            let widest = (0..N).filter(may_be_cut).max_by_key(|&column| widths[column]);
            match widest.filter(|&column| widths[column] > MIN_WIDTH) {
                Some(widest) => widths[widest] -= 1,
                None => break,
            }
        }
    }

    fn lines(&self, row: &[String; N], widths: &[usize; N], lines: &mut Vec<String>) {
        let mut line = String::new();
        let mut more = Vec::new();
        for (column, text) in row.iter().enumerate() {
            let text = if self.align[column] == Align::Wrapped {
                let mut parts = wrap(text, widths[column]).into_iter();
                let first = parts.next().unwrap_or_default().into_owned();
                let indent: usize = widths[..column].iter().map(|width| width + GAP.len()).sum();
                more.extend(parts.map(|part| format!("{}{part}", " ".repeat(indent))));
                first
            } else {
                cut(text, widths[column], self.align[column])
            };
            let padding = " ".repeat(widths[column].saturating_sub(text.width()));
            if column > 0 {
                line.push_str(GAP);
            }
            match self.align[column] {
                Align::Left | Align::Path | Align::Wrapped => line.extend([&*text, &padding]),
                Align::Right => line.extend([&*padding, &text]),
            }
        }
        line.truncate(line.trim_end().len());
        lines.push(line);
        lines.append(&mut more);
    }
}

/// Splits `text` into lines of at most `width` terminal columns. A longer word gets a line of its own and is not cut.
fn wrap(text: &str, width: usize) -> Vec<Cow<'_, str>> {
    textwrap::wrap(text, Options::new(width).break_words(false).word_splitter(WordSplitter::NoHyphenation))
}

/// Cuts `text` to `width` terminal columns.
fn cut(text: &str, width: usize, align: Align) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let fits = c.width().unwrap_or(0) <= room;
        room = room.saturating_sub(c.width().unwrap_or(0));
        fits
    };
    if align == Align::Path {
        let kept: Vec<char> = text.chars().rev().take_while(fits).collect();
        return format!("…{}", kept.into_iter().rev().collect::<String>().trim_start());
    }
    format!("{}…", text.chars().take_while(fits).collect::<String>().trim_end())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(width: Option<usize>, expected: Expect) {
        let mut table = Table::new([("NAME", Align::Left), ("N", Align::Right), ("TEXT", Align::Left)]);
        for row in [["a", "1", "short"], ["代码审查", "1000", "a longer text that has to be cut somewhere"]]
        {
            table.row(row.map(str::to_owned));
        }
        let text = table.render(width);
        if let Some(width) = width.filter(|width| *width >= 32) {
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn tables_fit_the_terminal() {
        check(
            None,
            expect![[r#"
            NAME         N  TEXT
            a            1  short
            代码审查  1000  a longer text that has to be cut somewhere"#]],
        );
        check(
            Some(40),
            expect![[r#"
            NAME         N  TEXT
            a            1  short
            代码审查  1000  a longer text that has…"#]],
        );
        check(
            Some(0),
            expect![[r#"
            NAME         N  TEXT
            a            1  short
            代码审查  1000  a longer text t…"#]],
        );
    }

    #[test]
    fn the_last_column_is_wrapped() {
        let mut table = Table::new([("NAME", Align::Left), ("TEXT", Align::Wrapped)]);
        table.row(["a", "words that go on below"].map(str::to_owned));
        table.note("A sentence about it, 代码 too.");
        table.row(["b", "/a/long-path/that/is/one/word"].map(str::to_owned));
        table.row(["c", "代码审查 代码审查 代码"].map(str::to_owned));
        table.row(["d", ""].map(str::to_owned));
        assert_eq!(table.width(), 35);
        let check = |width, expected: Expect| expected.assert_eq(&table.render(width));
        check(
            None,
            expect![[r#"
                NAME  TEXT
                a     words that go on below
                    A sentence about it, 代码 too.
                b     /a/long-path/that/is/one/word
                c     代码审查 代码审查 代码
                d"#]],
        );
        check(
            Some(24),
            expect![[r#"
                NAME  TEXT
                a     words that go on
                      below
                    A sentence about it,
                    代码 too.
                b     /a/long-path/that/is/one/word
                c     代码审查 代码审查
                      代码
                d"#]],
        );
    }

    #[test]
    fn wide_characters_count_double() {
        let fit = |text, width| cut(text, width, Align::Left);
        assert_eq!(fit("代码审查", 8), "代码审查");
        assert_eq!(fit("代码审查", 7), "代码审…");
        assert_eq!(fit("代码审查", 6), "代码…");
        assert_eq!(fit("ab", 1), "…");
    }

    #[test]
    fn paths_keep_their_end() {
        let mut table = Table::new([("WHERE", Align::Path), ("N", Align::Right), ("TEXT", Align::Left)]);
        let path = "~/a/long/way/down/to/a/directory/that/has/a/skill";
        table.row([path, "1", "words that say what it is for"].map(str::to_owned));
        table.row(["x\u{1b}\n", "1000000000", "words"].map(str::to_owned));
        let check = |width, expected: Expect| expected.assert_eq(&table.render(width));
        check(
            None,
            expect![[r#"
                WHERE                                                       N  TEXT
                ~/a/long/way/down/to/a/directory/that/has/a/skill           1  words that say what it is for
                x\u{1b}                                            1000000000  words"#]],
        );
        check(
            Some(60),
            expect![[r#"
                WHERE                             N  TEXT
                …ctory/that/has/a/skill           1  words that say what it…
                x\u{1b}                  1000000000  words"#]],
        );
        check(
            Some(0),
            expect![[r#"
                WHERE                      N  TEXT
                …hat/has/a/skill           1  words that say…
                x\u{1b}           1000000000  words"#]],
        );
    }
}
