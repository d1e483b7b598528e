//! [`Table`]: a table with a row of titles.

use askama::Template;

/// The title of a column, and its meaning in a sentence.
pub(crate) type Explained = (&'static str, &'static str);

/// A legend that can be opened: tooltips need a mouse, and this works on phones as well.
#[derive(Debug, Template)]
#[template(path = "html/legend.html")]
pub(crate) struct Legend(pub(crate) Vec<Explained>);

/// A table with a caption. The first cell of each row is the row's header.
#[derive(Debug, Template)]
#[template(path = "html/table.html")]
pub(crate) struct Table {
    /// The text above the table.
    pub(crate) caption: String,
    /// The columns, from left to right.
    pub(crate) columns: Vec<Column>,
    /// The meaning of columns, for a legend below the table and as tooltips.
    pub(crate) explained: &'static [Explained],
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
    /// Removes the legend, for a table that continues another one.
    pub(crate) fn without_legend(self) -> Self {
        Self { explained: &[], ..self }
    }

    fn explanation(&self, column: &Column) -> Option<&'static str> {
        let mut explained = self.explained.iter();
        explained.find(|(title, _)| *title == column.title()).map(|(_, meaning)| *meaning)
    }

    fn legend(&self) -> Legend {
        let explained = |column: &Column| Some((column.title(), self.explanation(column)?));
        Legend(self.columns.iter().filter_map(explained).collect())
    }

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
