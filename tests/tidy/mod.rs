//! Structural rules that a machine can check: layers, module order, headers, sizes, leftovers;
//! prose and names ([`prose`]), import cycles and folders ([`imports`]), assertions ([`density`]),
//! SQLSTATEs ([`sqlstates`]), functions ([`functions`]), settings ([`settings`]), storage options
//! ([`options`]), options of commands ([`configuration`]), system views ([`system_views`]), pages
//! of the manual ([`manual`]).

mod configuration;
mod density;
mod functions;
mod imports;
mod manual;
mod options;
mod prose;
mod settings;
mod sqlstates;
mod system_views;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Allowed dependencies between folders. A new dependency is a design decision: change this
/// table, docs/internals/architecture.md and the reason for it in one commit.
const ARROWS: [(&str, &[&str]); 5] = [
    ("types", &[]),
    ("store", &[]),
    ("coprocessors", &["types", "store"]),
    ("sql", &["types", "store", "coprocessors"]),
    (".", &["types", "store", "coprocessors", "sql"]),
];

/// Maximum lines of a file without tests, unless its header gives a reason.
const FILE_LINES_MAX: usize = 1_000;
const COMMENT_WIDTH_MAX: usize = 100;
const CODE_WIDTH_MAX: usize = 130;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns all Rust files below a folder, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return files };
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Compares the generated part of a page with its text; `BENNU_TIDY_UPDATE=1` writes it. The part
/// begins after a comment that names the source, and ends at another comment or with the page.
fn assert_generated(page: &str, part: &str) {
    let path = root().join(page);
    let text = read(&path);
    let comment = text.find(" is generated from ").expect("the page has a generated part");
    let begin = comment + text[comment..].find('\n').expect("the comment is a line") + 1;
    let end = text[begin..].find("<!-- End of the generated part. -->");
    let end = end.map_or(text.len(), |length| begin + length);
    if text[begin..end] == *part {
        return;
    }
    assert!(
        std::env::var_os("BENNU_TIDY_UPDATE").is_some(),
        "{page}: write it again with BENNU_TIDY_UPDATE=1"
    );
    fs::write(&path, [&text[..begin], part, &text[end..]].concat())
        .expect("the page can be written");
}

fn crate_folders() -> impl Iterator<Item = PathBuf> {
    ARROWS.iter().map(|(layer, _)| root().join(layer))
}

fn all_sources() -> Vec<PathBuf> {
    let folders = ["src", "tests", "benches"];
    crate_folders()
        .flat_map(|layer| folders.iter().flat_map(move |folder| rust_files(&layer.join(folder))))
        .collect()
}

/// Returns the path of a file from the root of the repository.
fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Returns whether a file below a `src` folder has tests only.
fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.parent().is_some_and(|folder| folder.ends_with("tests"))
}

/// Returns the part of a file before its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text)
}

#[test]
fn layers_point_downwards() {
    let layers: BTreeSet<&str> = ARROWS.iter().map(|(layer, _)| *layer).collect();
    for (layer, allowed) in ARROWS {
        let manifest = read(&root().join(layer).join("Cargo.toml"));
        let (_, dependencies) = manifest.split_once("\n[dependencies]").expect("has dependencies");
        let dependencies = dependencies.split("\n[").next().expect("split gives one part");
        for line in dependencies.lines() {
            let package = line.split(['.', ' ', '=']).next().expect("split gives one part");
            let Some(name) = package.strip_prefix("bennu-") else { continue };
            assert!(
                !layers.contains(name) || allowed.contains(&name),
                "{layer} must not depend on {name}; see ARROWS in tests/tidy/mod.rs"
            );
        }
    }
}

/// A filter of `cargo test` that matches no test passes: a renamed test would never run again.
#[test]
fn commands_name_existing_tests() {
    let sources: String = rust_files(&root().join("tests")).iter().map(|path| read(path)).collect();
    let is_word = |of: char| of.is_ascii_alphanumeric() || "_:".contains(of);
    let mut count = 0;
    let names = [
        "tests/run-sqlite-corpus",
        "tests/record-with-postgres",
        "docs/internals/testing.md",
        "docs/internals/adding-a-test.md",
    ];
    for name in names {
        let text = read(&root().join(name));
        for command in text.split("--test tests ").skip(1) {
            let words = command.split(|of| !is_word(of));
            let Some(filter) = words.take(12).find(|word| word.contains("::")) else { continue };
            count += 1;
            for part in filter.split("::").filter(|part| !part.is_empty()) {
                let declared = ["fn", "mod"].map(|kind| format!("{kind} {part}"));
                let is_known = declared.iter().any(|text| sources.contains(text));
                assert!(is_known, "{name}: no test or module {part}");
            }
        }
    }
    assert!(count > 8, "{count} filters");
}

#[test]
fn modules_depend_only_on_earlier_modules() {
    for folder in crate_folders() {
        let library = read(&folder.join("src/lib.rs"));
        // Test modules may be anywhere.
        let library = library.replace("#[cfg(test)]\nmod ", "#[cfg(test)] ");
        let modules: Vec<&str> = library
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod ")))
            .filter_map(|rest| rest.strip_suffix(';'))
            .collect();
        for (position, module) in modules.iter().enumerate() {
            let mut files = rust_files(&folder.join("src").join(module));
            files.push(folder.join("src").join(format!("{module}.rs")));
            let code = |file: &PathBuf| file.exists() && !is_test(file);
            for file in files.into_iter().filter(code) {
                let text = read(&file);
                for (number, line) in without_tests(&text).lines().enumerate() {
                    let code = line.split("//").next().unwrap_or(line);
                    for part in code.split("crate::").skip(1) {
                        let used = part.split(|c: char| !c.is_alphanumeric() && c != '_').next();
                        let later = modules[position + 1..].iter().any(|m| Some(*m) == used);
                        assert!(
                            !later,
                            "{}:{}: {module} uses {} which lib.rs lists after it",
                            file.display(),
                            number + 1,
                            used.unwrap_or_default()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn every_file_begins_with_module_header() {
    for file in all_sources() {
        let text = read(&file);
        assert!(text.starts_with("//! "), "{}: no //! header", file.display());
    }
}

#[test]
fn file_length_and_line_width_are_limited() {
    for file in all_sources() {
        let text = read(&file);
        let lines = without_tests(&text).lines().count();
        assert!(lines <= FILE_LINES_MAX, "{}: {lines} lines; find the seam", file.display());
        for (number, line) in text.lines().enumerate() {
            let width = line.chars().count();
            // rustfmt breaks code; lines that it leaves longer cannot be broken well.
            let is_comment = line.trim_start().starts_with("//") && !line.contains("http");
            let width_max = if is_comment { COMMENT_WIDTH_MAX } else { CODE_WIDTH_MAX };
            assert!(width <= width_max, "{}:{}: {width} characters", file.display(), number + 1);
        }
    }
}

#[test]
fn no_leftover_markers() {
    let leftovers =
        ["todo!(", "unimplemented!(", "dbg!(", concat!("FIX", "ME"), concat!("XX", "X ")];
    for file in all_sources() {
        if file.ends_with("tests/tidy/mod.rs") {
            continue;
        }
        for (number, line) in read(&file).lines().enumerate() {
            for leftover in leftovers {
                assert!(
                    !line.contains(leftover),
                    "{}:{}: {leftover} is left over",
                    file.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn dependencies_are_documented() {
    let manifest = read(&root().join("Cargo.toml"));
    let explained = read(&root().join("docs/internals/dependencies.md"));
    let (_, table) = manifest.split_once("[workspace.dependencies]\n").expect("has the table");
    for line in table.lines().take_while(|line| !line.starts_with('[')) {
        let Some((name, _)) = line.split_once(" =") else { continue };
        if name.starts_with("bennu-") {
            continue;
        }
        assert!(
            explained.contains(&format!("`{name}`")),
            "docs/internals/dependencies.md does not explain {name}"
        );
    }
}
