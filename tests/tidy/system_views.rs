//! Views of schema `bennu`: `docs/sql/system-views.md` lists their declarations.

use sql::system::VIEWS;

use super::{read, root};

/// First line of the generated part of the page.
const BEGIN: &str =
    "<!-- The rest of this page is generated from sql/src/system/bennu_views. -->\n";

#[test]
fn system_views_page_matches_declarations() {
    let path = root().join("docs/sql/system-views.md");
    let page = read(&path);
    let (head, _) = page.split_once(BEGIN).expect("the page has a generated part");
    let mut expected = format!("{head}{BEGIN}");
    for view in VIEWS {
        expected += &format!("\n## bennu.{}\n\n{}.\n\n", view.name, view.description);
        expected += "| Column | Type | Description |\n| --- | --- | --- |\n";
        for column in view.columns {
            let data_type = column.data_type.sql_name();
            expected += &format!("| `{}` | {data_type} | {} |\n", column.name, column.description);
        }
    }
    if std::env::var_os("BENNU_TIDY_UPDATE").is_some() {
        std::fs::write(&path, &expected).expect("the page can be written");
    }
    assert!(page == expected, "docs/sql/system-views.md: write it again with BENNU_TIDY_UPDATE=1");
}
