//! Settings: `docs/sql/settings.md` lists the settings of `sql/src/settings`.

use sql::settings::domain::{SettingSummary, summaries};

use super::{read, root};

/// First and last line of the generated part of the page.
const BEGIN: &str = "<!-- This part is generated from sql/src/settings. -->\n";
const END: &str = "<!-- End of the generated part. -->\n";

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
    let path = root().join("docs/sql/settings.md");
    let page = read(&path);
    let (head, rest) = page.split_once(BEGIN).expect("the page has a generated part");
    let (_, tail) = rest.split_once(END).expect("the generated part has an end");
    let (own, others): (Vec<_>, Vec<_>) = summaries().partition(|setting| setting.has_effect);
    let mut part = "\n## Settings with effect\n\n".to_owned();
    part += "| Setting | Values | Default | Description |\n| --- | --- | --- | --- |\n";
    part.extend(own.iter().map(row));
    part += "\n## Settings without effect\n\nThey are checked, stored and shown:\n\n";
    part += "| Setting | Values | Default |\n| --- | --- | --- |\n";
    part.extend(others.iter().map(row_without_effect));
    let expected = format!("{head}{BEGIN}{part}\n{END}{tail}");
    if std::env::var_os("BENNU_TIDY_UPDATE").is_some() {
        std::fs::write(&path, &expected).expect("the page can be written");
    }
    assert!(page == expected, "docs/sql/settings.md: write it again with BENNU_TIDY_UPDATE=1");
}
