//! [`Table`]: a table with a row of titles.

use askama::Template;

/// A table with a caption. The first cell of each row is the row's header.
#[derive(Debug, Template)]
#[template(path = "html/table.html")]
pub(crate) struct Table {
    /// The text above the table.
    pub(crate) caption: String,
    /// The columns, from left to right.
    pub(crate) columns: Vec<Column>,
    /// The rows: one plain text for each column. Texts are escaped when the table is rendered.
    pub(crate) rows: Vec<Vec<String>>,
}

/// A column by its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// A column of texts.
    Text(&'static str),
    /// A column of texts in a monospaced font.
    Code(&'static str),
    /// A column of times, which are not wrapped.
    Time(&'static str),
    /// A column of numbers, which are aligned to the right.
    Number(&'static str),
}

impl Table {
    /// Returns the cells of a row with their columns.
    fn cells<'a>(&'a self, row: &'a [String]) -> impl Iterator<Item = (Column, &'a String)> {
        self.columns.iter().copied().zip(row)
    }
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Text(title) | Self::Code(title) | Self::Time(title) | Self::Number(title) => title,
        }
    }

    /// Returns the class of the column's cells; empty for a column of texts.
    fn class(self) -> &'static str {
        match self {
            Self::Text(_) => "",
            Self::Code(_) => "code",
            Self::Time(_) => "when",
            Self::Number(_) => "n",
        }
    }
}
