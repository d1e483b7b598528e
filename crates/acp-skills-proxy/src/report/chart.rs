//! The page's charts: SVG with classes for its colours, so that the style sheet decides about light and dark.
//!
//! A chart is an image for whoever sees it; the numbers stand in a table beside it.

use std::fmt::Write;

use super::page::escape;

/// How wide a chart is, in its own units.
const WIDTH: f64 = 640.0;
/// How much of that the names of bars have.
const NAMES: f64 = 176.0;
/// How much the numbers behind bars have.
const NUMBERS: f64 = 60.0;
/// How high a line is.
const LINE: f64 = 26.0;
/// How many characters of a name fit.
const MAX_NAME_CHARS: usize = 23;

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

fn name(svg: &mut String, text: &str, middle: f64) {
    let short: String = if text.chars().count() > MAX_NAME_CHARS {
        text.chars().take(MAX_NAME_CHARS - 1).chain(['…']).collect()
    } else {
        text.to_owned()
    };
    let _ = write!(
        svg,
        "<text class=\"name\" x=\"{:.0}\" y=\"{middle:.1}\" dy=\".35em\">{}</text>",
        NAMES - 10.0,
        escape(&short)
    );
}

fn number(svg: &mut String, text: &str, x: f64, middle: f64) {
    let _ = write!(
        svg,
        "<text class=\"num\" x=\"{:.1}\" y=\"{middle:.1}\" dy=\".35em\">{}</text>",
        x + 6.0,
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
    open(&mut svg, LINE * float(bars.len() as u64), title);
    for (row, bar) in bars.iter().enumerate() {
        let middle = LINE * (float(row as u64) + 0.5);
        let _ = write!(svg, "<g><title>{}</title>", escape(&described(series, bar)));
        name(&mut svg, &bar.name, middle);
        let whole = if shares { total(bar).max(1) } else { longest };
        let mut x = NAMES;
        for (part, (class, _)) in bar.parts.iter().zip(series).filter(|(part, _)| **part > 0) {
            let width = (WIDTH - NAMES - NUMBERS) * float(*part) / float(whole);
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{:.1}\"/>",
                middle - LINE * 0.34,
                width.max(1.5),
                LINE * 0.68,
            );
            x += width.max(1.5);
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
    const LEFT: f64 = 48.0;
    let mut svg = String::new();
    open(&mut svg, HEIGHT, title);
    let highest = bars.iter().map(|bar| bar.parts.iter().sum::<u64>()).max().unwrap_or(0);
    let top = round_up(highest);
    let y_of = |count: u64| BASE - (BASE - TOP) * float(count) / float(top);
    let marks = if top > 1 { vec![0, top / 2, top] } else { vec![0, top] };
    for count in marks {
        let y = y_of(count);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"name\" x=\"{:.0}\" y=\"{y:.1}\" dy=\".35em\">{count}</text>",
            LEFT - 8.0
        );
    }
    let step = (WIDTH - LEFT) / float(bars.len().max(1) as u64);
    let width = (step * 0.78).min(48.0);
    for (column, bar) in bars.iter().enumerate() {
        let x = LEFT + step * (float(column as u64) + 0.5) - width / 2.0;
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
    let center = |column: usize| LEFT + step * (float(column as u64) + 0.5);
    let places = if bars.len() <= 4 {
        (0..bars.len()).map(|column| (column, "middle", center(column))).collect()
    } else {
        let middle = bars.len() / 2;
        vec![(0, "start", LEFT), (middle, "middle", center(middle)), (bars.len() - 1, "end", WIDTH)]
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
    const RIGHT: f64 = 24.0;
    let mut svg = String::new();
    let bottom = LINE * float(ranges.len() as u64);
    open(&mut svg, bottom + 26.0, title);
    let log = |ms: f64| ms.max(0.01).log10();
    let lowest = ranges.iter().map(|range| log(range.p50)).fold(f64::INFINITY, f64::min).floor();
    let highest = ranges.iter().map(|range| log(range.p95)).fold(f64::NEG_INFINITY, f64::max).ceil();
    let highest = highest.max(lowest + 1.0);
    let x_of = |log: f64| NAMES + (WIDTH - NAMES - RIGHT) * (log - lowest) / (highest - lowest);
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
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{bottom:.0}\"/>\
             <text class=\"axis middle\" x=\"{x:.1}\" y=\"{:.0}\">{text}</text>",
            bottom + 18.0
        );
        power += 1.0;
    }
    for (row, range) in ranges.iter().enumerate() {
        let middle = LINE * (float(row as u64) + 0.5);
        let (from, to) = (x_of(log(range.p50)), x_of(log(range.p95)));
        let _ = write!(svg, "<g><title>{}</title>", escape(&format!("{}: {}", range.name, range.label)));
        name(&mut svg, &range.name, middle);
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

    #[test]
    fn ends_of_axes() {
        let all = [0, 1, 2, 3, 5, 9, 11, 75, 100, 101, u64::MAX].map(round_up);
        assert_eq!(all, [1, 1, 2, 4, 6, 10, 20, 80, 100, 200, u64::MAX]);
    }
}
