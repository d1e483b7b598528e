//! The pages of `report --html` and `eval --html` in a real browser: on a phone and on a large screen, light and dark. Skipped with
//! a message if there is no Chromium or Chrome in `PATH`.

#![expect(clippy::print_stderr, reason = "explains skipped tests")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

/// The widths of a phone and of a large screen, in pixels.
const WIDTHS: [u32; 2] = [390, 1280];

/// Measures pages in frames, and writes the results into its own document.
const MEASURE: &str = r#"<!doctype html><meta charset="utf-8"><body></body><script>
const luminance = (color) => {
  const parts = color.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255);
  const [r, g, b] = parts.map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = at.ownerDocument.defaultView.getComputedStyle(at).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)") return color;
  }
  return "rgb(255, 255, 255)";
};
const contrast = (element) => {
  const colors = [element.ownerDocument.defaultView.getComputedStyle(element).color, behind(element)];
  const [low, high] = colors.map(luminance).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const measure = (frame) => {
  const page = frame.contentDocument;
  const width = frame.clientWidth;
  const all = (selector) => Array.from(page.querySelectorAll(selector));
  const isShown = (element) => element.getClientRects().length > 0;
  const right = (element) => Math.round(element.getBoundingClientRect().right);
  const charts = all("figure svg").filter(isShown);
  const scrolls = all(".scroll").filter((box) => box.scrollWidth > box.clientWidth + 1);
  const heat = page.querySelector(".heat");
  return {
    scheme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
    overflow: Math.max(0, page.documentElement.scrollWidth - width),
    charts: charts.length,
    cutCharts: charts.filter((chart) => right(chart) > width).length,
    smallText: charts.filter((chart) => chart.getBoundingClientRect().width / chart.viewBox.baseVal.width < 0.8).length,
    values: charts.flatMap((chart) => Array.from(chart.querySelectorAll(".num"))).length,
    cutValues: charts.flatMap((chart) => Array.from(chart.querySelectorAll(".num"))).filter((text) => right(text) > width).length,
    marks: all(".queries .passed, .queries .failed").filter(isShown).length,
    hiddenMarks: all(".queries .passed, .queries .failed").filter((mark) => isShown(mark) && right(mark) > width).length,
    withoutCue: scrolls.filter((box) => !getComputedStyle(box).backgroundImage.includes("gradient")).length,
    unexplained: all("thead abbr").filter((abbr) => !abbr.title).length,
    explained: all("thead abbr").length,
    legends: all(".legend dt").length,
    heat: heat ? heat.getBoundingClientRect().width / heat.parentElement.clientWidth : 1,
    faint: all("h1, h2, p, .soft, .note, .passed, .failed, .heat a, td, th, summary, .tiles li").filter(isShown)
      .filter((element) => contrast(element) < 4.5).map((element) => element.className + " " + element.textContent.slice(0, 30)).slice(0, 5),
  };
};
addEventListener("load", () => {
  const results = Array.from(document.querySelectorAll("iframe")).map((frame) => [frame.title, measure(frame)]);
  document.body.textContent = "RESULTS" + JSON.stringify(results) + "END";
});
for (const [title, width, source] of FRAMES) {
  const frame = document.createElement("iframe");
  Object.assign(frame, { title, width, height: 900, src: source });
  frame.style.border = "0";
  document.body.append(frame);
}
</script>"#;

/// Returns a browser that can run without a screen, or `None` if there is none in `PATH`.
fn browser() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let programs = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    env::split_paths(&path)
        .flat_map(|dir| programs.map(|program| dir.join(program)))
        .find(|program| program.is_file())
}

/// Opens the pages at both widths, and returns the title and the measurements of each.
fn measured(browser: &Path, dir: &Path, pages: &[&str], scheme: &str) -> Vec<(String, Value)> {
    let frames: Vec<_> = pages
        .iter()
        .flat_map(|page| WIDTHS.map(|width| json!([format!("{page} {width} {scheme}"), width, page])))
        .collect();
    fs::write(dir.join("measure.html"), MEASURE.replace("FRAMES", &json!(frames).to_string())).unwrap();
    let dark = if scheme == "dark" { "0" } else { "1" };
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"])
        .args(["--allow-file-access-from-files", "--timeout=60000", "--window-size=1400,1000", "--dump-dom"])
        .arg(format!("--blink-settings=preferredColorScheme={dark}"))
        .arg(format!("--user-data-dir={}", dir.join(format!("profile-{scheme}")).display()))
        .arg(format!("file://{}", dir.join("measure.html").display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let results = dom.split_once("RESULTS").and_then(|(_, rest)| Some(rest.split_once("END")?.0));
    let results = results.unwrap_or_else(|| panic!("{dom}\n{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&results.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")).unwrap()
}

#[test]
fn pages_fit_phones_and_large_screens() {
    let Some(browser) = browser() else {
        eprintln!("skipped: there is no Chromium or Chrome in PATH");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let program = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        command.current_dir(dir.path()).stdin(Stdio::null());
        command
    };
    fs::write(dir.path().join("events.jsonl"), events()).unwrap();
    let made = program().args(["report", "events.jsonl", "--html", "report.html"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let skill = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills/code-review");
    let mut eval = program();
    eval.arg("eval").arg(skill).args([
        "--runs",
        "1",
        "--jobs",
        "2",
        "--workspace",
        "results",
        "--html",
        "eval.html",
    ]);
    let made = eval.output().unwrap();
    assert_eq!(made.status.code(), Some(1), "some cases fail without a model: {made:?}");
    for scheme in ["light", "dark"] {
        let measured = measured(&browser, dir.path(), &["report.html", "eval.html"], scheme);
        assert_eq!(measured.len(), 4);
        for (page, found) in measured {
            assert_eq!(found["scheme"], scheme, "{page}");
            for problem in [
                "overflow",
                "cutCharts",
                "smallText",
                "cutValues",
                "hiddenMarks",
                "withoutCue",
                "unexplained",
            ] {
                assert_eq!(found[problem], 0, "{page}: {problem}: {found}");
            }
            assert_eq!(found["faint"], json!([]), "{page}");
            assert!(found["heat"].as_f64().unwrap() > 0.95, "{page}: {found}");
            assert!(
                found["explained"].as_u64() > Some(8) && found["legends"].as_u64() > Some(8),
                "{page}: {found}"
            );
            // Make sure that there was something to measure.
            let counts = ["charts", "values", "marks"].map(|key| found[key].as_u64().unwrap() > 0);
            assert_eq!(
                counts,
                if page.starts_with("report") { [true, true, false] } else { [false, false, true] }
            );
        }
    }
}

/// Returns events of several skills, one of which has a long name.
fn events() -> String {
    let skills = ["pdf", "code-review", "a-name-that-is-as-long-as-names-of-skills-are-allowed-to-be-here"];
    let mut events = Vec::new();
    for session in 0..3 {
        let time = |minute: usize| format!("2026-11-2{session}T08:{minute:02}:00Z");
        let id = format!("s{session}");
        events.push(json!({ "v": 1, "time": time(0), "event": "session_started", "how": "new", "agent": "x", "proxy": "0.1.0",
            "skills": skills, "session": id }));
        for (place, skill) in skills.iter().enumerate() {
            for by in ["model", "user", "model"] {
                events.push(json!({ "v": 1, "time": time(place + 1), "event": "skill_activated", "skill": skill,
                    "path": "/s/SKILL.md", "by": by, "tokens": 1234 * (place + 1), "outcome": "ok", "bytes": 400, "ms": 1.25,
                    "session": id }));
            }
            events.push(json!({ "v": 1, "time": time(place + 10), "event": "file_read", "skill": skill, "outcome": "error",
                "error": "FileNotFound", "bytes": 80, "ms": 2300, "session": id }));
        }
    }
    events.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n") + "\n"
}
