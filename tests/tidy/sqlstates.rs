//! SQLSTATEs: `docs/sql/sqlstates.md` lists the table of `types/src/sqlstate.rs`.

use types::sqlstate::CLASSES;

use super::{read, root};

/// First line of the generated part of the page.
const BEGIN: &str = "<!-- The rest of this page is generated from types/src/sqlstate.rs. -->\n";

#[test]
fn errors_page_matches_sqlstate_table() {
    let path = root().join("docs/sql/sqlstates.md");
    let page = read(&path);
    let (head, _) = page.split_once(BEGIN).expect("the page has a generated part");
    let mut expected = format!("{head}{BEGIN}");
    for class in CLASSES {
        expected += &format!("\n## Class {}: {}\n\n", class.code, class.title);
        expected += "| SQLSTATE | Condition name |\n| --- | --- |\n";
        for entry in class.entries {
            expected += &format!("| {} | `{}` |\n", entry.code, entry.condition());
        }
    }
    if std::env::var_os("BENNU_TIDY_UPDATE").is_some() {
        std::fs::write(&path, &expected).expect("the page can be written");
    }
    assert!(page == expected, "docs/sql/sqlstates.md: write it again with BENNU_TIDY_UPDATE=1");
}
