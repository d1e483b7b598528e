//! Samples of the resources that a process uses.

use std::{
    fmt::{self, Write as _},
    fs,
    time::Duration,
};

/// The maximum growth of memory from the second quarter to the last, in KiB, plus one part in [`MEMORY_SLACK_PART`].
const MEMORY_SLACK_KIB: u64 = 2048;
const MEMORY_SLACK_PART: u64 = 20;
/// The maximum growth of descriptors, threads and children.
const COUNT_SLACK: u64 = 4;
/// The number of rows in a table.
const ROWS: usize = 20;

/// The sampled resources.
const COLUMNS: [&str; 4] = ["memory KiB", "descriptors", "threads", "children"];

pub(super) struct Samples {
    name: &'static str,
    id: u32,
    rows: Vec<(Duration, [u64; 4])>,
}

impl Samples {
    pub(super) fn of((name, id): (&'static str, u32)) -> Self {
        Self { name, id, rows: Vec::new() }
    }

    pub(super) fn take(&mut self, at: Duration) {
        let id = self.id;
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("the program runs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
            let number = line.trim_start_matches(':').split_whitespace().next().expect("a number");
            number.parse().expect("a number")
        };
        let descriptors = fs::read_dir(format!("/proc/{id}/fd")).expect("the program runs").count() as u64;
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let children = children.split_whitespace().count() as u64;
        self.rows.push((at, [field("VmRSS"), descriptors, field("Threads"), children]));
    }

    /// Asserts that the last quarter uses no more than the second one, except for some slack.
    pub(super) fn assert_flat(&self) {
        let quarter = self.rows.len() / 4;
        for (column, name) in COLUMNS.iter().enumerate() {
            let median = |rows: &[(Duration, [u64; 4])]| {
                let mut values: Vec<u64> = rows.iter().map(|(_, row)| row[column]).collect();
                values.sort_unstable();
                values.get(values.len() / 2).copied().unwrap_or(0)
            };
            let before = median(&self.rows[quarter..2 * quarter]);
            let after = median(&self.rows[3 * quarter..]);
            let slack = if column == 0 { MEMORY_SLACK_KIB + before / MEMORY_SLACK_PART } else { COUNT_SLACK };
            assert!(after <= before + slack, "{} grows: {name} {before}, then {after}", self.name);
        }
    }

    fn largest(&self, column: usize) -> u64 {
        self.rows.iter().map(|(_, row)| row[column]).max().unwrap_or(0)
    }
}

/// Prints the samples as a table.
impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: seconds, {}", self.name, COLUMNS.join(", "))?;
        for (at, row) in self.rows.iter().step_by((self.rows.len() / ROWS).max(1)) {
            let cells = row.map(|cell| format!("{cell:>11}")).concat();
            writeln!(f, "{:>7}{cells}", at.as_secs())?;
        }
        Ok(())
    }
}

/// Draws a chart for each resource. Each has its own axis, from zero to its largest value.
#[expect(clippy::cast_precision_loss, reason = "a picture has no more than a thousand pixels")]
pub(super) fn chart(all: &[Samples]) -> String {
    const WIDTH: f64 = 900.0;
    const HEIGHT: f64 = 120.0;
    const GAP: f64 = 30.0;
    let panels: Vec<_> = all
        .iter()
        .flat_map(|samples| COLUMNS.iter().enumerate().map(move |(column, name)| (samples, column, name)))
        .collect();
    let total = (HEIGHT + GAP) * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{total}\" font-family=\"sans-serif\" font-size=\"12\">\n"
    );
    for (index, (samples, column, name)) in panels.into_iter().enumerate() {
        let top = (HEIGHT + GAP) * index as f64 + GAP;
        let end = samples.rows.last().map_or(1.0, |(at, _)| at.as_secs_f64());
        let largest = samples.largest(column).max(1) as f64;
        let point = |(at, row): &(Duration, [u64; 4])| {
            let x = at.as_secs_f64() / end * WIDTH;
            let y = top + HEIGHT - row[column] as f64 / largest * HEIGHT;
            format!("{x:.1},{y:.1} ")
        };
        let points: String = samples.rows.iter().map(point).collect();
        let text = format!("{}: {name}, at most {largest}, in {end:.0} s", samples.name);
        let _ = writeln!(svg, "<text x=\"0\" y=\"{}\">{text}</text>", top - 6.0);
        let _ = writeln!(svg, "<polyline fill=\"none\" stroke=\"#36c\" points=\"{points}\"/>");
    }
    svg + "</svg>\n"
}
