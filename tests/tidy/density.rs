//! Ratchets: assertions for each 1,000 lines of a crate, and names that several types share.

use std::collections::BTreeMap;

use super::{crate_folders, is_test, read, relative, root, rust_files, without_tests};

/// Assertions for each 1,000 lines outside of tests, by crate. The numbers may only rise.
const ASSERTIONS_MIN: [(&str, f64); 5] =
    [("types", 1.0), ("store", 4.0), ("coprocessors", 1.0), ("sql", 1.0), (".", 1.0)];
/// Names of types that several modules define: aliases of the standard library's, and what a model
/// checker replaces.
const SHARED_NAMES: [&str; 2] = ["Mutex", "Result"];

const ASSERTIONS: [&str; 6] = [
    "assert!(",
    "assert_eq!(",
    "assert_ne!(",
    "debug_assert!(",
    "debug_assert_eq!(",
    "debug_assert_ne!(",
];

#[test]
fn assertion_density_is_above_minimum() {
    for (layer, least) in ASSERTIONS_MIN {
        let (mut lines, mut assertions) = (0, 0);
        for file in rust_files(&root().join(layer).join("src")) {
            if is_test(&file) {
                continue;
            }
            let text = read(&file);
            let code = without_tests(&text);
            lines += code.lines().count();
            let starts = code.lines().map(str::trim_start);
            assertions += starts
                .filter(|line| {
                    ASSERTIONS.iter().any(|one| line.contains(one)) && !line.starts_with("//")
                })
                .count();
        }
        let density = 1_000.0 * assertions as f64 / lines as f64;
        assert!(
            density >= least,
            "{layer}: {assertions} assertions in {lines} lines, {density:.2} of {least} for each 1,000"
        );
    }
}

#[test]
fn type_names_are_unique_per_crate() {
    for folder in crate_folders() {
        let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in rust_files(&folder.join("src")) {
            for line in without_tests(&read(&file)).lines() {
                let Some(name) = public_type(line) else { continue };
                names.entry(name.to_owned()).or_default().push(relative(&file));
            }
        }
        names.retain(|name, files| files.len() > 1 && !SHARED_NAMES.contains(&name.as_str()));
        assert!(names.is_empty(), "names of several types: {names:#?}");
    }
}

/// Returns the name of a public type that a line defines.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let item = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(") ")?.1,
        None => rest.trim_start(),
    };
    let (word, rest) = item.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type"].contains(&word);
    is_type.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(rest))
}
