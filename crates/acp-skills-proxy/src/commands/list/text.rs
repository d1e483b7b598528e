//! The list as text: a table, a summary, and remarks about skills.

use std::path::Path;

use skills_core::{
    Diagnostic,
    text::{shown, shown_path},
};

use skills_sources::trust;

use super::{Report, Row};
use crate::{
    commands::{
        paths::Places,
        table::{Align, Table},
    },
    words::count,
};

/// Renders `report`. `missing` has a sentence for each directory without skills, and `width` is the width of the terminal.
pub(super) fn of(report: &Report<'_>, missing: &[String], width: Option<usize>) -> String {
    let mut lines = Vec::new();
    if !report.skills.is_empty() {
        lines.push(table(report, width));
        lines.push(String::new());
    }
    lines.push(summary(report));
    lines.extend(missing.iter().map(|sentence| format!("missing: {sentence}")));
    for shadowed in report.shadowed {
        let loser = report.place(shadowed.path.as_deref());
        let winner = report.place(shadowed.by.as_deref());
        lines.push(format!("shadowed: {} in {loser}: using the skill in {winner} instead", shadowed.name));
    }
    for row in &report.unapproved {
        let changed = if row.changed { ", changed since last trusted" } else { "" };
        let path = report.place(row.path.as_deref());
        lines.push(format!(
            "unapproved: {} in {path}{changed}: to review and trust it, use `{}`",
            row.name,
            trust::command(row.name)
        ));
    }
    for row in &report.skills {
        if !row.paths.is_empty() {
            lines.push(format!(
                "waiting for files: {}: joins the catalog when a file matches {}",
                row.name,
                shown(&row.paths.join(", "))
            ));
        }
        if let Some(first) = row.nested.first() {
            let files = count(row.nested.len(), "more SKILL.md file");
            lines.push(format!(
                "nested: {} contains {files}, for example {}: use `--nested` to use them as skills",
                row.name,
                shown_path(first)
            ));
        }
        let path = row.url.map_or_else(|| report.place(row.path.as_deref()), str::to_owned);
        lines.extend(row.diagnostics.iter().map(|diagnostic| located(row.name, &path, diagnostic)));
    }
    for skipped in report.skipped {
        let path = shown_path(&skipped.path);
        lines.extend(skipped.diagnostics.iter().map(|diagnostic| located("skipped", &path, diagnostic)));
    }
    lines.join("\n") + "\n"
}

fn table(report: &Report<'_>, width: Option<usize>) -> String {
    let mut table = Table::new([
        ("NAME", Align::Left),
        ("SCOPE", Align::Left),
        ("CATALOG", Align::Right),
        ("BODY", Align::Right),
        ("FILES", Align::Right),
        ("WHERE", Align::Path),
        ("DESCRIPTION", Align::Left),
    ]);
    let places = Places::new();
    for row in &report.skills {
        let body = row.body_tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
        let description = row.description.split_whitespace().collect::<Vec<_>>().join(" ");
        table.row([
            row.name.to_owned(),
            row.scope.to_string(),
            row.catalog_tokens.to_string(),
            body,
            row.files.to_string(),
            directory(report, row, &places),
            description,
        ]);
    }
    table.render(width)
}

/// Returns the source, the directory or the URL of a skill in its shortest form.
fn directory(report: &Report<'_>, row: &Row<'_>, places: &Places) -> String {
    match (&row.path, row.url) {
        (Some(file), _) if let Some(address) = report.library.address_of(file) => {
            shown(address.as_str()).into_owned()
        }
        (Some(file), _) => places.short(file.parent().unwrap_or(file)),
        (None, Some(url)) => url.trim_end_matches("/SKILL.md").to_owned(),
        (None, None) => "the configuration".to_owned(),
    }
}

fn summary(report: &Report<'_>) -> String {
    if report.skills.is_empty() {
        return "No skills found.".to_owned();
    }
    let omitted = match report.catalog.omitted {
        0 => String::new(),
        omitted => format!(" ({} omitted)", count(omitted, "skill")),
    };
    let tools = match report.tools.len() {
        0 => String::new(),
        tools => format!(" and {}", count(tools, "tool")),
    };
    format!(
        "{}, about {} tokens in the catalog{omitted}.\n\
         With instructions{tools}, the model reads about {} tokens before it activates a skill.",
        count(report.skills.len(), "skill"),
        report.catalog.tokens,
        report.fixed_tokens
    )
}

impl Report<'_> {
    /// Returns the source of a skill's file, or its path. The path of a fetched file is in the cache, which users don't know.
    fn place(&self, path: Option<&Path>) -> String {
        let Some(path) = path else { return "the configuration".to_owned() };
        match self.library.address_of(path) {
            Some(address) => shown(address.as_str()).into_owned(),
            None => shown_path(path),
        }
    }
}

/// Renders a diagnostic, such as `NAME: PATH:3:14: warning[code]: …`.
fn located(name: &str, path: &str, diagnostic: &Diagnostic) -> String {
    let separator = if diagnostic.line == 0 { ": " } else { ":" };
    format!("{name}: {path}{separator}{diagnostic}")
}
