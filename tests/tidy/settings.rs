//! Settings: `docs/sql/settings.md` lists the settings of `sql/src/settings`.

use sql::settings::domain::{SettingSummary, summaries};

use super::assert_generated;

/// Returns the default as a cell; empty for one that changes with each version.
fn default(setting: &SettingSummary) -> String {
    match setting.default {
        text if text.is_empty() || text.contains(env!("CARGO_PKG_VERSION")) => String::new(),
        text => format!("`{text}`"),
    }
}

fn row(setting: &SettingSummary) -> String {
    let SettingSummary { name, values, description, .. } = setting;
    let description = description.trim_end_matches('.').replace('|', "\\|");
    format!("| `{name}` | {values} | {} | {description} |\n", default(setting))
}

fn row_without_effect(setting: &SettingSummary) -> String {
    let SettingSummary { name, values, .. } = setting;
    format!("| `{name}` | {values} | {} |\n", default(setting))
}

#[test]
fn settings_page_matches_settings() {
    let (own, others): (Vec<_>, Vec<_>) = summaries().partition(|setting| setting.has_effect);
    let mut part = "\n## Settings with effect\n\n".to_owned();
    part += "| Setting | Values | Default | Description |\n| --- | --- | --- | --- |\n";
    part.extend(own.iter().map(row));
    part += "\n## Settings without effect\n\nThey are checked, stored and shown:\n\n";
    part += "| Setting | Values | Default |\n| --- | --- | --- |\n";
    part.extend(others.iter().map(row_without_effect));
    assert_generated("docs/sql/settings.md", &(part + "\n"));
}
