//! [`Table`]: columns that line up, and a last one that is cut where the terminal ends.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: &str = "  ";

/// A column that is not the last is never wider than this.
const MAX_WIDTH: usize = 40;

/// The last column is never cut below this.
const MIN_LAST_WIDTH: usize = 16;

/// How wide the terminal is; `None` when stdout is none, and then nothing is cut. `COLUMNS` overrides.
pub(crate) fn terminal_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.into()))
}

/// On which side of its column a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of `N` texts, each in one line.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    align: [Align; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table with this header.
    pub(crate) fn new(header: [(&str, Align); N]) -> Self {
        Self { align: header.map(|(_, align)| align), rows: vec![header.map(|(title, _)| title.to_owned())] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    /// The lines, no wider than `width` terminal columns if that is possible; `None` cuts nothing.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let mut widths = [0; N];
        for row in &self.rows {
            for (column, text) in row.iter().enumerate() {
                widths[column] = widths[column].max(text.width());
            }
        }
        let Some(last) = N.checked_sub(1) else { return String::new() };
        if let Some(width) = width {
            for column in &mut widths[..last] {
                *column = (*column).min(MAX_WIDTH);
            }
            let before: usize = widths[..last].iter().map(|width| width + GAP.len()).sum();
            widths[last] = widths[last].min(width.saturating_sub(before).max(MIN_LAST_WIDTH));
        }
        let lines: Vec<String> = self.rows.iter().map(|row| self.line(row, &widths)).collect();
        lines.join("\n")
    }

    fn line(&self, row: &[String; N], widths: &[usize; N]) -> String {
        let mut line = String::new();
        for (column, text) in row.iter().enumerate() {
            let text = fit(text, widths[column]);
            let padding = " ".repeat(widths[column].saturating_sub(text.width()));
            if column > 0 {
                line.push_str(GAP);
            }
            match self.align[column] {
                Align::Left => line.extend([&*text, &padding]),
                Align::Right => line.extend([&*padding, &text]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// `text`, cut to `width` terminal columns.
fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let kept: String = text
        .chars()
        .take_while(|c| {
            let fits = c.width().unwrap_or(0) <= room;
            room = room.saturating_sub(c.width().unwrap_or(0));
            fits
        })
        .collect();
    format!("{}…", kept.trim_end())
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
    fn widths() {
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
    fn wide_characters_count_double() {
        assert_eq!(fit("代码审查", 8), "代码审查");
        assert_eq!(fit("代码审查", 7), "代码审…");
        assert_eq!(fit("代码审查", 6), "代码…");
        assert_eq!(fit("ab", 1), "…");
    }
}
