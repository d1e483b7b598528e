//! The charts of a page: SVG with classes instead of colors, so that the style sheet can choose them for light and dark.
//!
//! The functions lay a chart out as [`Mark`]s, and `chart.html` and `mark.html` write these as SVG. A chart is an image to
//! assistive technology. Its numbers are in a table next to it.

use askama::Template;
use unicode_width::UnicodeWidthStr;

/// The size of a chart in its own units, which are pixels on most screens. The style sheet shows the one that fits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    class: &'static str,
    width: f64,
    /// The maximum width of names that are to the left of their bars. If a name is wider, the names are above the bars.
    max_names: f64,
}

/// The size for windows and paper.
const WIDE: Size = Size { class: "wide", width: 640.0, max_names: 200.0 };
/// The size for phones.
const NARROW: Size = Size { class: "narrow", width: 320.0, max_names: 96.0 };

/// The maximum width of one column of text, in the fonts that systems use for pages.
const COLUMN: f64 = 8.2;
/// The height of a line.
const LINE: f64 = 26.0;
/// The minimum width of a part of a bar, so that it can be seen.
const MIN_PART: f64 = 1.5;
/// The space between a text and what it labels.
const GAP: f64 = 8.0;
/// The distance from the bottom of an axis to the middle of its labels.
const AXIS: f64 = 15.0;

/// A chart, which renders as an `<svg>` element.
#[derive(Debug, Template)]
#[template(path = "report/chart.html")]
pub(super) struct Chart {
    title: &'static str,
    size: Size,
    height: f64,
    /// The grid and its labels.
    axes: Vec<Mark>,
    /// One group for each bar or range, in the order in which they are drawn.
    groups: Vec<Group>,
}

/// The marks of a bar or range.
#[derive(Debug)]
struct Group {
    /// The text that a browser shows as a tooltip.
    title: String,
    marks: Vec<Mark>,
}

/// A shape or a text. Coordinates are in the units of the chart.
#[derive(Debug, Template)]
#[template(path = "report/mark.html")]
enum Mark {
    /// A text whose middle is at `y`. The class decides which end of it is at `x`. `width` is the width of a squeezed text.
    Text { class: &'static str, x: f64, y: f64, width: Option<f64>, text: String },
    /// A line between two points, each with its x and y.
    Line { class: &'static str, from: (f64, f64), to: (f64, f64) },
    /// A rectangle by its top left corner.
    Box { class: &'static str, x: f64, y: f64, width: f64, height: f64 },
    /// A disc around a point.
    Dot { x: f64, y: f64 },
}

impl Mark {
    fn text(class: &'static str, x: f64, y: f64, text: impl Into<String>) -> Self {
        Self::Text { class, x, y, width: None, text: text.into() }
    }
}

/// Returns the maximum width of `text`.
fn width_of(text: &str) -> f64 {
    float(text.width() as u64) * COLUMN
}

#[expect(clippy::cast_precision_loss, reason = "lengths in a chart are small")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Draws a chart in both sizes.
pub(super) fn both(draw: impl Fn(Size) -> Chart) -> [Chart; 2] {
    [WIDE, NARROW].map(draw)
}

/// The layout of rows with a name each, which leaves enough room for all names.
struct Rows {
    /// The width of the chart.
    width: f64,
    /// The left end of the bars. It is 0 if the names are above the bars.
    left: f64,
    /// The height of a row.
    height: f64,
    /// The middle of the name, from the top of its row.
    name: f64,
    /// The middle of the bar, from the top of its row.
    bar: f64,
}

impl Rows {
    fn for_names<'a>(size: Size, names: impl Iterator<Item = &'a str>) -> Self {
        let widest = names.map(width_of).fold(0.0, f64::max) + GAP;
        let width = size.width;
        if widest <= size.max_names {
            Self { width, left: widest, height: LINE, name: LINE * 0.5, bar: LINE * 0.5 }
        } else {
            Self { width, left: 0.0, height: LINE * 1.8, name: LINE * 0.5, bar: LINE * 1.2 }
        }
    }

    /// Returns the name of the row whose top is at `top`.
    fn name(&self, text: &str, top: f64) -> Mark {
        let y = top + self.name;
        if self.left > 0.0 {
            return Mark::text("name", self.left - GAP, y, text);
        }
        // A name always fits if it follows the specification. If it's longer, squeeze it instead of cutting it off.
        let width = (width_of(text) > self.width).then_some(self.width);
        Mark::Text { class: "above", x: 0.0, y, width, text: text.to_owned() }
    }
}

/// A bar of several parts.
pub(super) struct Bar {
    /// The name of the bar.
    pub(super) name: String,
    /// The length of each part, in the order of the series.
    pub(super) parts: Vec<u64>,
    /// The text at the end of the bar.
    pub(super) label: String,
}

impl Bar {
    fn total(&self) -> u64 {
        self.parts.iter().sum()
    }

    /// Returns the bar as a sentence: `pdf: model 2, user 1`.
    fn described(&self, series: Series<'_>) -> String {
        let parts = self.parts.iter().zip(series).filter(|(part, _)| **part > 0);
        let parts: Vec<_> = parts.map(|(part, (_, name))| format!("{name} {part}")).collect();
        format!("{}: {}", self.name, parts.join(", "))
    }
}

/// The class and the name of each part of the bars.
pub(super) type Series<'a> = &'a [(&'static str, &'static str)];

/// Draws horizontal bars. With `shares`, all bars have the same length, and their parts are shares of it.
pub(super) fn bars(size: Size, title: &'static str, series: Series<'_>, bars: &[Bar], shares: bool) -> Chart {
    let longest = bars.iter().map(Bar::total).max().unwrap_or(0).max(1);
    let rows = Rows::for_names(size, bars.iter().map(|bar| &*bar.name));
    let labels = bars.iter().map(|bar| width_of(&bar.label)).fold(0.0, f64::max) + GAP;
    let room = size.width - rows.left - labels - MIN_PART * float(series.len() as u64);
    let group = |(row, bar): (usize, &Bar)| {
        let top = rows.height * float(row as u64);
        let middle = top + rows.bar;
        let whole = if shares { bar.total().max(1) } else { longest };
        let mut marks = vec![rows.name(&bar.name, top)];
        let mut x = rows.left;
        for (part, (class, _)) in bar.parts.iter().zip(series).filter(|(part, _)| **part > 0) {
            let width = (room * float(*part) / float(whole)).max(MIN_PART);
            marks.push(Mark::Box { class, x, y: middle - LINE * 0.34, width, height: LINE * 0.68 });
            x += width;
        }
        marks.push(Mark::text("num", x + GAP, middle, &bar.label));
        Group { title: bar.described(series), marks }
    };
    let height = rows.height * float(bars.len() as u64);
    Chart { title, size, height, axes: Vec::new(), groups: bars.iter().enumerate().map(group).collect() }
}

/// Draws vertical bars side by side, for events over time. If there are more than four, or if there is not enough room, only the
/// first, the middle and the last bar have a label, or only the first and the last.
pub(super) fn columns(size: Size, title: &'static str, series: Series<'_>, bars: &[Bar]) -> Chart {
    const HEIGHT: f64 = 190.0;
    const BASE: f64 = 160.0;
    const TOP: f64 = 12.0;
    let top = round_up(bars.iter().map(Bar::total).max().unwrap_or(0));
    let y_of = |count: u64| BASE - (BASE - TOP) * float(count) / float(top);
    let ticks = if top > 1 { vec![0, top / 2, top] } else { vec![0, top] };
    let left = ticks.iter().map(|count| width_of(&count.to_string())).fold(0.0, f64::max) + GAP;
    let mut axes = Vec::new();
    for count in ticks {
        let y = y_of(count);
        axes.push(Mark::Line { class: "grid", from: (left, y), to: (size.width, y) });
        axes.push(Mark::text("name", left - GAP, y, count.to_string()));
    }
    let step = (size.width - left) / float(bars.len().max(1) as u64);
    let width = (step * 0.78).min(48.0);
    let center = |column: usize| left + step * (float(column as u64) + 0.5);
    let group = |(column, bar): (usize, &Bar)| {
        let mut below = 0;
        let parts = bar.parts.iter().zip(series).filter(|(part, _)| **part > 0);
        let marks = parts.map(|(part, (class, _))| {
            let bottom = y_of(below);
            below += part;
            let y = y_of(below);
            Mark::Box { class, x: center(column) - width / 2.0, y, width, height: (bottom - y).max(0.75) }
        });
        Group { title: bar.described(series), marks: marks.collect() }
    };
    let groups = bars.iter().enumerate().map(group).collect();
    let label = bars.iter().map(|bar| width_of(&bar.label)).fold(0.0, f64::max) + GAP;
    let fit = |count: usize| label * float(count as u64) <= size.width - left;
    let labels = if bars.len() == 1 || bars.len() <= 4 && fit(bars.len()) {
        (0..bars.len()).map(|column| (column, "axis middle", center(column))).collect()
    } else {
        let middle = bars.len() / 2;
        let mut labels = vec![(0, "axis start", left), (bars.len() - 1, "axis end", size.width)];
        labels.extend((bars.len() > 2 && fit(3)).then(|| (middle, "axis middle", center(middle))));
        labels
    };
    axes.extend(
        labels.into_iter().map(|(column, class, x)| Mark::text(class, x, BASE + AXIS, &bars[column].label)),
    );
    Chart { title, size, height: HEIGHT, axes, groups }
}

/// Returns the next round number for the end of an axis. Its half is an integer, except for 1.
fn round_up(count: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for nice in [1, 2, 4, 6, 8] {
            let nice = power.saturating_mul(nice);
            if nice >= count {
                return nice.max(1);
            }
        }
        power = power.saturating_mul(10);
        if power == u64::MAX {
            return power;
        }
    }
}

/// The median and the 95th percentile of durations, in milliseconds.
pub(super) struct Range {
    /// The name of the range.
    pub(super) name: String,
    /// The median.
    pub(super) p50: f64,
    /// The 95th percentile.
    pub(super) p95: f64,
    /// The text of the tooltip.
    pub(super) label: String,
}

/// Draws ranges on a logarithmic scale, so that 1 ms and 30 s fit into one picture.
pub(super) fn ranges(size: Size, title: &'static str, ranges: &[Range]) -> Chart {
    /// Half of the width of a mark.
    const RIGHT: f64 = 6.0;
    let rows = Rows::for_names(size, ranges.iter().map(|range| &*range.name));
    let bottom = rows.height * float(ranges.len() as u64);
    let log = |ms: f64| ms.max(0.01).log10();
    let lowest = ranges.iter().map(|range| log(range.p50)).fold(f64::INFINITY, f64::min).floor();
    let highest = ranges.iter().map(|range| log(range.p95)).fold(f64::NEG_INFINITY, f64::max).ceil();
    let highest = highest.max(lowest + 1.0);
    let left = rows.left.max(RIGHT);
    let step = (size.width - left - RIGHT) / (highest - lowest);
    let x_of = |log: f64| left + step * (log - lowest);
    // Leave out some labels if they would overlap.
    let every = ((width_of("100 ms") + GAP) / step).ceil();
    let mut axes = Vec::new();
    let mut power = lowest;
    while power <= highest {
        let x = x_of(power);
        let text = power_of_ten(power);
        let half = width_of(&text) / 2.0;
        let (class, at) = match x {
            x if x - half < 0.0 => ("axis start", 0.0),
            x if x + half > size.width => ("axis end", size.width),
            x => ("axis middle", x),
        };
        axes.push(Mark::Line { class: "grid", from: (x, 0.0), to: (x, bottom) });
        if (power - lowest) % every == 0.0 {
            axes.push(Mark::text(class, at, bottom + AXIS, text));
        }
        power += 1.0;
    }
    let group = |(row, range): (usize, &Range)| {
        let top = rows.height * float(row as u64);
        let middle = top + rows.bar;
        let from = x_of(log(range.p50));
        let to = x_of(log(range.p95));
        let marks = vec![
            rows.name(&range.name, top),
            Mark::Line { class: "range", from: (from, middle), to: (to, middle) },
            Mark::Dot { x: from, y: middle },
            Mark::Box { class: "p95", x: to - 2.5, y: middle - 8.0, width: 5.0, height: 16.0 },
        ];
        Group { title: format!("{}: {}", range.name, range.label), marks }
    };
    Chart { title, size, height: bottom + 26.0, axes, groups: ranges.iter().enumerate().map(group).collect() }
}

/// Returns the label of 10 to the power of `power` milliseconds.
fn power_of_ten(power: f64) -> String {
    match 10_f64.powf(power) {
        ms if ms < 1.0 => format!("{ms} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.0} s", ms / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every text of a chart is inside of it, in the widest font, in both sizes.
    fn check_texts(draw: impl Fn(Size) -> Chart) {
        for chart in both(draw) {
            check_texts_of(&chart.to_string(), chart.size.width);
        }
    }

    fn check_texts_of(svg: &str, chart_width: f64) {
        for text in svg.split("<text ").skip(1) {
            let (attributes, rest) = text.split_once('>').unwrap();
            let (shown, _) = rest.split_once("</text>").unwrap();
            let attribute =
                |name: &str| Some(attributes.split_once(&format!("{name}=\""))?.1.split_once('"')?.0);
            let x: f64 = attribute("x").unwrap().parse().unwrap();
            let width =
                attribute("textLength").map_or_else(|| width_of(shown), |width| width.parse().unwrap());
            let class = attribute("class").unwrap();
            let from = if class.contains("middle") {
                x - width / 2.0
            } else if class.contains("end") || class == "name" {
                x - width
            } else {
                x
            };
            assert!(from >= -0.5 && from + width <= chart_width + 0.5, "{shown}: {from} to {}", from + width);
        }
    }

    #[test]
    fn no_text_is_cut() {
        let long = "a-name-as-long-as-the-specification-allows-which-is-64-characters";
        for names in
            [&["pdf"][..], &["pdf", "code-review-for-databases"], &[long, "pdf"], &["代码审查代码审查代码"]]
        {
            let many = "x".repeat(300);
            for names in [names, &[names, &[&*many]].concat()] {
                let bar = |name: &&str| Bar {
                    name: (*name).to_owned(),
                    parts: vec![9_999_999, 1],
                    label: "10 000 000".to_owned(),
                };
                let all: Vec<_> = names.iter().map(bar).collect();
                let series = [("a", "a"), ("b", "b")];
                check_texts(|size| bars(size, "title", &series, &all, false));
                let svg = bars(NARROW, "title", &series, &all, false).to_string();
                for name in names {
                    assert!(svg.contains(&format!(">{name}</text>")), "{name} is cut");
                }
                let range = |(name, p95): (&&str, f64)| Range {
                    name: (*name).to_owned(),
                    p50: 0.01,
                    p95,
                    label: String::new(),
                };
                for p95 in [0.02, 1.0, 99.0, 1e9] {
                    let all: Vec<_> = names.iter().zip([p95; 9]).map(range).collect();
                    check_texts(|size| ranges(size, "title", &all));
                }
            }
        }
        for count in 1..60 {
            let bar = |number: u64| Bar {
                name: String::new(),
                parts: vec![number * 1_000_000],
                label: "2026-11-22 08:00".to_owned(),
            };
            let all: Vec<_> = (0..count).map(bar).collect();
            check_texts(|size| columns(size, "title", &[("a", "a")], &all));
        }
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        let all = [0, 1, 2, 3, 5, 9, 11, 75, 100, 101, u64::MAX].map(round_up);
        assert_eq!(all, [1, 1, 2, 4, 6, 10, 20, 80, 100, 200, u64::MAX]);
    }
}
