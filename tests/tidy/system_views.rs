//! Views of schema `bennu`: `docs/sql/system-views.md` lists their declarations.

use sql::system::VIEWS;

use super::assert_generated;

#[test]
fn system_views_page_matches_declarations() {
    let mut part = String::new();
    for view in VIEWS {
        part += &format!("\n## bennu.{}\n\n{}.\n\n", view.name, view.description);
        part += "| Column | Type | Description |\n| --- | --- | --- |\n";
        for column in view.columns {
            let data_type = column.data_type.sql_name();
            part += &format!("| `{}` | {data_type} | {} |\n", column.name, column.description);
        }
    }
    assert_generated("docs/sql/system-views.md", &part);
}
