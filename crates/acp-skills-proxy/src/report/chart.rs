//! The page's charts: SVG with classes for its colours, so that the style sheet decides about light and dark.
//!
//! A chart is an image for whoever sees it; the numbers stand in a table beside it.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use crate::html::escape;

/// How wide a chart is, in its own units.
const WIDTH: f64 = 640.0;
/// How wide a column of text is at most, in the fonts that systems have for pages.
const COLUMN: f64 = 8.2;
/// How much room names have at most when they stand beside their bars. Longer ones stand above.
const MAX_NAMES: f64 = 200.0;
/// How high a line is.
const LINE: f64 = 26.0;
/// What is there at all is seen.
const MIN_PART: f64 = 1.5;
/// Between a text and what it belongs to.
const GAP: f64 = 8.0;

/// How wide `text` is at most.
fn width_of(text: &str) -> f64 {
    float(text.width() as u64) * COLUMN
}

/// Rows with a name each: how they are laid out, so that no name is cut.
struct Rows {
    /// Where what the names belong to begins.
    left: f64,
    /// How high a row is.
    height: f64,
    /// Where in a row its name is, and its bar.
    name: f64,
    bar: f64,
}

impl Rows {
    fn for_names<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let widest = names.map(width_of).fold(0.0, f64::max) + GAP;
        if widest <= MAX_NAMES {
            Self { left: widest, height: LINE, name: LINE * 0.5, bar: LINE * 0.5 }
        } else {
            Self { left: 0.0, height: LINE * 1.8, name: LINE * 0.5, bar: LINE * 1.2 }
        }
    }

    /// Writes the name of the row that begins at `top`.
    fn name(&self, svg: &mut String, text: &str, top: f64) {
        let (class, x) = if self.left > 0.0 { ("name", self.left - GAP) } else { ("above", 0.0) };
        let y = top + self.name;
        // What does not fit even there (no name that follows the rules) is made narrower, not cut.
        let squeezed = if self.left == 0.0 && width_of(text) > WIDTH {
            format!(" textLength=\"{WIDTH}\" lengthAdjust=\"spacingAndGlyphs\"")
        } else {
            String::new()
        };
        let _ = write!(
            svg,
            "<text class=\"{class}\" x=\"{x:.0}\" y=\"{y:.1}\" dy=\".35em\"{squeezed}>{}</text>",
            escape(text)
        );
    }
}

/// A bar of several parts.
pub(super) struct Bar {
    pub(super) name: String,
    /// How long each part is, in the order of the series.
    pub(super) parts: Vec<u64>,
    /// What stands behind it.
    pub(super) label: String,
}

/// What the parts of bars are: their classes and names.
pub(super) type Series<'a> = &'a [(&'a str, &'a str)];

fn open(svg: &mut String, height: f64, title: &str) {
    let _ = write!(
        svg,
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{0}\"><title>{0}</title>",
        escape(title)
    );
}

fn number(svg: &mut String, text: &str, x: f64, middle: f64) {
    let _ = write!(
        svg,
        "<text class=\"num\" x=\"{:.1}\" y=\"{middle:.1}\" dy=\".35em\">{}</text>",
        x + GAP,
        escape(text)
    );
}

#[expect(clippy::cast_precision_loss, reason = "lengths on a screen")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Horizontal bars; with `shares` each is as long as the others, and its parts are shares of it.
pub(super) fn bars(title: &str, series: Series<'_>, bars: &[Bar], shares: bool) -> String {
    let mut svg = String::new();
    let total = |bar: &Bar| bar.parts.iter().sum::<u64>();
    let longest = bars.iter().map(total).max().unwrap_or(0).max(1);
    let rows = Rows::for_names(bars.iter().map(|bar| &*bar.name));
    let numbers = bars.iter().map(|bar| width_of(&bar.label)).fold(0.0, f64::max) + GAP;
    let room = WIDTH - rows.left - numbers - MIN_PART * float(series.len() as u64);
    open(&mut svg, rows.height * float(bars.len() as u64), title);
    for (row, bar) in bars.iter().enumerate() {
        let top = rows.height * float(row as u64);
        let middle = top + rows.bar;
        let _ = write!(svg, "<g><title>{}</title>", escape(&described(series, bar)));
        rows.name(&mut svg, &bar.name, top);
        let whole = if shares { total(bar).max(1) } else { longest };
        let mut x = rows.left;
        for (part, (class, _)) in bar.parts.iter().zip(series).filter(|(part, _)| **part > 0) {
            let width = (room * float(*part) / float(whole)).max(MIN_PART);
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\"/>",
                middle - LINE * 0.34,
                width,
                LINE * 0.68,
            );
            x += width;
        }
        number(&mut svg, &bar.label, x, middle);
        svg.push_str("</g>");
    }
    svg + "</svg>"
}

fn described(series: Series<'_>, bar: &Bar) -> String {
    let parts = bar.parts.iter().zip(series).filter(|(part, _)| **part > 0);
    let parts: Vec<_> = parts.map(|(part, (_, name))| format!("{name} {part}")).collect();
    format!("{}: {}", bar.name, parts.join(", "))
}

/// Vertical bars side by side, for what happens in time. `names` are those of the first, the middle and the last.
pub(super) fn columns(title: &str, series: Series<'_>, bars: &[Bar]) -> String {
    const HEIGHT: f64 = 190.0;
    const BASE: f64 = 160.0;
    const TOP: f64 = 12.0;
    let mut svg = String::new();
    open(&mut svg, HEIGHT, title);
    let highest = bars.iter().map(|bar| bar.parts.iter().sum::<u64>()).max().unwrap_or(0);
    let top = round_up(highest);
    let y_of = |count: u64| BASE - (BASE - TOP) * float(count) / float(top);
    let marks = if top > 1 { vec![0, top / 2, top] } else { vec![0, top] };
    let left = marks.iter().map(|count| width_of(&count.to_string())).fold(0.0, f64::max) + GAP;
    for count in marks {
        let y = y_of(count);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"name\" x=\"{:.0}\" y=\"{y:.1}\" dy=\".35em\">{count}</text>",
            left - GAP
        );
    }
    let step = (WIDTH - left) / float(bars.len().max(1) as u64);
    let width = (step * 0.78).min(48.0);
    for (column, bar) in bars.iter().enumerate() {
        let x = left + step * (float(column as u64) + 0.5) - width / 2.0;
        let _ = write!(svg, "<g><title>{}</title>", escape(&described(series, bar)));
        let mut below = 0;
        for (part, (class, _)) in bar.parts.iter().zip(series).filter(|(part, _)| **part > 0) {
            let (bottom, y) = (y_of(below), y_of(below + part));
            below += part;
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{:.2}\"/>",
                (bottom - y).max(0.75),
            );
        }
        svg.push_str("</g>");
    }
    let center = |column: usize| left + step * (float(column as u64) + 0.5);
    let places = if bars.len() <= 4 {
        (0..bars.len()).map(|column| (column, "middle", center(column))).collect()
    } else {
        let middle = bars.len() / 2;
        vec![(0, "start", left), (middle, "middle", center(middle)), (bars.len() - 1, "end", WIDTH)]
    };
    for (at, anchor, x) in places {
        if let Some(bar) = bars.get(at) {
            let _ = write!(
                svg,
                "<text class=\"axis {anchor}\" x=\"{x:.1}\" y=\"{:.0}\">{}</text>",
                BASE + 20.0,
                escape(&bar.label)
            );
        }
    }
    svg + "</svg>"
}

/// The next number that looks well at the end of an axis; even, when it is halved.
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

/// What took how long: the middle one, and one that nearly all are faster than.
pub(super) struct Range {
    pub(super) name: String,
    /// In milliseconds.
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) label: String,
}

/// Ranges on a logarithmic scale: what takes 1 ms and what takes 30 s stand in one picture.
pub(super) fn ranges(title: &str, ranges: &[Range]) -> String {
    /// Half of a mark.
    const RIGHT: f64 = 6.0;
    let mut svg = String::new();
    let rows = Rows::for_names(ranges.iter().map(|range| &*range.name));
    let bottom = rows.height * float(ranges.len() as u64);
    open(&mut svg, bottom + 26.0, title);
    let log = |ms: f64| ms.max(0.01).log10();
    let lowest = ranges.iter().map(|range| log(range.p50)).fold(f64::INFINITY, f64::min).floor();
    let highest = ranges.iter().map(|range| log(range.p95)).fold(f64::NEG_INFINITY, f64::max).ceil();
    let highest = highest.max(lowest + 1.0);
    let left = rows.left.max(RIGHT);
    let x_of = |log: f64| left + (WIDTH - left - RIGHT) * (log - lowest) / (highest - lowest);
    let mut power = lowest;
    while power <= highest {
        let x = x_of(power);
        let ms = 10_f64.powf(power);
        let text = if ms < 1.0 {
            format!("{ms} ms")
        } else if ms < 1000.0 {
            format!("{ms:.0} ms")
        } else {
            format!("{:.0} s", ms / 1000.0)
        };
        let half = width_of(&text) / 2.0;
        let (anchor, at) = match x {
            x if x - half < 0.0 => ("start", 0.0),
            x if x + half > WIDTH => ("end", WIDTH),
            x => ("middle", x),
        };
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{bottom:.0}\"/>\
             <text class=\"axis {anchor}\" x=\"{at:.1}\" y=\"{:.0}\">{text}</text>",
            bottom + 18.0
        );
        power += 1.0;
    }
    for (row, range) in ranges.iter().enumerate() {
        let top = rows.height * float(row as u64);
        let middle = top + rows.bar;
        let (from, to) = (x_of(log(range.p50)), x_of(log(range.p95)));
        let _ = write!(svg, "<g><title>{}</title>", escape(&format!("{}: {}", range.name, range.label)));
        rows.name(&mut svg, &range.name, top);
        let _ = write!(
            svg,
            "<line class=\"range\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\
             <circle class=\"p50\" cx=\"{from:.1}\" cy=\"{middle:.1}\" r=\"6\"/>\
             <rect class=\"p95\" x=\"{:.1}\" y=\"{:.1}\" width=\"5\" height=\"16\"/></g>",
            to - 2.5,
            middle - 8.0
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text of a chart is inside of it, in the widest font.
    fn check_texts(svg: &str) {
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
            assert!(from >= -0.5 && from + width <= WIDTH + 0.5, "{shown}: {from} to {}", from + width);
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
                let svg = bars("title", &series, &all, false);
                check_texts(&svg);
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
                    check_texts(&ranges("title", &all));
                }
            }
        }
        for count in 1..60 {
            let bar = |number: u64| Bar {
                name: String::new(),
                parts: vec![number * 1_000_000],
                label: "2026-11-22 08:00".to_owned(),
            };
            check_texts(&columns("title", &[("a", "a")], &(0..count).map(bar).collect::<Vec<_>>()));
        }
    }

    #[test]
    fn ends_of_axes() {
        let all = [0, 1, 2, 3, 5, 9, 11, 75, 100, 101, u64::MAX].map(round_up);
        assert_eq!(all, [1, 1, 2, 4, 6, 10, 20, 80, 100, 200, u64::MAX]);
    }
}
