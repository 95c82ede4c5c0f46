//! Import rules: files that import each other in a cycle, and folders with many files.
//!
//! `imports.txt` lists the files in cycles and the folders above [`FOLDER_FILES_MAX`] with the
//! number of their files. The lists may only shrink: `BENNU_TIDY_UPDATE=1` writes them again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{crate_folders, is_test, read, relative, root, rust_files, without_tests};

const FOLDER_FILES_MAX: usize = 18;
const LIST: &str = "tests/tidy/imports.txt";

/// The files of a crate by the path of their module, such as `exec::window::run`.
struct Modules {
    files: BTreeMap<String, PathBuf>,
    /// Code without comments and tests.
    texts: BTreeMap<String, String>,
}

impl Modules {
    fn of(source: &Path) -> Modules {
        let (mut files, mut texts) = (BTreeMap::new(), BTreeMap::new());
        for file in rust_files(source) {
            if is_test(&file) {
                continue;
            }
            let path = file.strip_prefix(source).expect("it is below").with_extension("");
            let mut parts: Vec<String> =
                path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if ["mod", "lib", "main"].contains(&parts.last().map_or("", String::as_str)) {
                parts.pop();
            }
            let module = parts.join("::");
            let text = read(&file);
            let code =
                without_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
            let code: Vec<&str> =
                code.map(|line| line.split(" //").next().unwrap_or(line)).collect();
            texts.insert(module.clone(), code.join("\n"));
            files.insert(module, file);
        }
        Modules { files, texts }
    }

    /// Returns the module that defines what a path names, through re-exports.
    fn target(&self, path: &[String], depth: usize) -> Option<String> {
        let length =
            (0..=path.len()).rev().find(|&n| self.files.contains_key(&path[..n].join("::")))?;
        let module = path[..length].join("::");
        let Some(name) = path.get(length) else { return Some(module) };
        let exported = imports(&self.texts[&module], &path[..length], "pub use ")
            .into_iter()
            .chain(imports(&self.texts[&module], &path[..length], "pub(crate) use "))
            .chain(imports(&self.texts[&module], &path[..length], "pub(super) use "))
            .find(|exported| exported.last() == Some(name) && exported.as_slice() != path);
        match exported {
            Some(exported) if depth > 0 => self.target(&exported, depth - 1).or(Some(module)),
            _ => Some(module),
        }
    }

    /// Returns the modules that each module imports from.
    fn edges(&self) -> BTreeMap<&str, BTreeSet<String>> {
        let edges = self.texts.iter().map(|(module, text)| {
            let own: Vec<String> = module.split("::").map(str::to_owned).collect();
            let paths = imports(text, &own, "use ").into_iter().chain(inline_paths(text));
            let targets = paths.filter_map(|path| self.target(&path, 4));
            (
                module.as_str(),
                targets.filter(|target| target != module && !target.is_empty()).collect(),
            )
        });
        edges.collect()
    }
}

/// Returns the paths within the crate that the `use` statements of a module name.
fn imports(text: &str, module: &[String], word: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(word) {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some((statement, _)) = text[at + word.len()..].split_once(';') else { continue };
        let flat: String = statement.chars().filter(|c| !c.is_whitespace()).collect();
        expand(&flat, &mut Vec::new(), &mut found);
    }
    found.into_iter().filter_map(|path| absolute(path, module)).collect()
}

/// Returns a path from the root of the crate; `None` for other crates.
fn absolute(path: Vec<String>, module: &[String]) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some(module.iter().chain(&path[1..]).cloned().collect()),
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            let above = &module[..module.len().checked_sub(ups)?];
            Some(above.iter().chain(&path[ups..]).cloned().collect())
        }
        _ => None,
    }
}

/// Expands `a::{b, c::d}` into its paths.
fn expand(text: &str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let length = prefix.len();
    let (head, group) = match text.split_once('{') {
        Some((head, group)) => (head, Some(group.strip_suffix('}').unwrap_or(group))),
        None => (text, None),
    };
    let head = head.split("as").next().filter(|_| false).unwrap_or(head);
    prefix.extend(head.split("::").filter(|part| !part.is_empty()).map(str::to_owned));
    match group {
        None => found.push(prefix.clone()),
        Some(group) => {
            let (mut depth, mut start) = (0, 0);
            for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        if start < at {
                            expand(&group[start..at], prefix, found);
                        }
                        start = at + 1;
                    }
                    _ => {}
                }
            }
        }
    }
    prefix.truncate(length);
}

/// Returns the paths that code names from the root of the crate outside of `use`.
fn inline_paths(text: &str) -> Vec<Vec<String>> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let tails = text.split("crate::").skip(1);
    let paths = tails.map(|tail| tail.split(|c| !is_path(c)).next().unwrap_or_default());
    let parts = paths.map(|path| path.split("::").filter(|part| !part.is_empty()));
    parts.map(|parts| parts.map(str::to_owned).collect()).collect()
}

/// Returns the files of a crate that import each other in cycles.
fn files_in_cycles(source: &Path) -> BTreeSet<String> {
    let modules = Modules::of(source);
    let edges = modules.edges();
    let reachable = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(module) = open.pop() {
            for next in edges.get(module.as_str()).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let cycles = edges.keys().filter(|module| reachable(module).contains(**module));
    cycles.map(|module| relative(&modules.files[*module])).collect()
}

#[test]
fn import_cycles_and_large_folders_only_shrink() {
    let mut found = BTreeSet::new();
    for folder in crate_folders() {
        let source = folder.join("src");
        let cycles = files_in_cycles(&source);
        found.extend(cycles.into_iter().map(|file| format!("cycle {file}")));
        let mut counts: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for file in rust_files(&source) {
            *counts.entry(file.parent().expect("a file has one").to_owned()).or_default() += 1;
        }
        let large = counts.into_iter().filter(|(_, count)| *count > FOLDER_FILES_MAX);
        found.extend(large.map(|(folder, count)| format!("folder {} {count}", relative(&folder))));
    }
    let found: Vec<String> = found.into_iter().collect();
    if std::env::var_os("BENNU_TIDY_UPDATE").is_some() {
        let text = format!("{}\n", found.join("\n"));
        std::fs::write(root().join(LIST), text).expect("the list can be written");
        return;
    }
    let listed = read(&root().join(LIST));
    let listed: BTreeSet<&str> = listed.lines().collect();
    let count =
        |line: &str| line.rsplit_once(' ').and_then(|(_, count)| count.parse::<usize>().ok());
    let is_listed = |line: &String| {
        listed.contains(line.as_str())
            || listed.iter().any(|listed| {
                let same = listed.rsplit_once(' ').map(|(name, _)| name)
                    == line.rsplit_once(' ').map(|(name, _)| name);
                same && count(listed) > count(line) && line.starts_with("folder ")
            })
    };
    let new: Vec<&String> = found.iter().filter(|line| !is_listed(line)).collect();
    assert!(new.is_empty(), "new cycles of imports or larger folders: {new:#?}");
    let stale = listed.iter().filter(|line| line.starts_with("cycle "));
    let stale: Vec<&&str> = stale.filter(|line| !found.contains(&(**line).to_owned())).collect();
    assert!(stale.is_empty(), "no longer in a cycle, remove from {LIST}: {stale:#?}");
}

#[test]
fn nested_imports_are_expanded() {
    let module = ["a".to_owned(), "b".to_owned()];
    let paths = imports("use crate::x::{Y, z::{self, W}};\nuse super::c::D;", &module, "use ");
    let paths: Vec<String> = paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, ["x::Y", "x::z::self", "x::z::W", "a::c::D"]);
}
