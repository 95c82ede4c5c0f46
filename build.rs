//! Commit of the checkout, for `bennu --version`.
//!
//! Sets `BENNU_COMMIT` to the first 12 digits of the commit that `.git` names, in optimized builds.
//! Other builds, and sources without a git checkout, have `unknown`: a build for development is not
//! repeated after each commit.

#![allow(clippy::disallowed_methods, reason = "a build script reads files directly")]
#![allow(clippy::print_stdout, reason = "a build script instructs Cargo on standard output")]

use std::fs;
use std::path::{Path, PathBuf};

/// Number of digits of an abbreviated commit.
const DIGITS: usize = 12;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_optimized = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = if is_optimized { commit_of(Path::new(".git")) } else { None };
    println!("cargo:rustc-env=BENNU_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// Returns the abbreviated commit that is checked out. In a linked work tree `.git` is a file with
/// the path of its git directory, and branches are in the common directory.
fn commit_of(git: &Path) -> Option<String> {
    let directory = match git.is_dir() {
        true => git.to_owned(),
        false => PathBuf::from(fs::read_to_string(git).ok()?.trim().strip_prefix("gitdir: ")?),
    };
    let common = fs::read_to_string(directory.join("commondir"));
    let common = common.map_or_else(|_| directory.clone(), |path| directory.join(path.trim()));
    let head = watched(&directory.join("HEAD"))?;
    let commit = match head.trim().strip_prefix("ref: ") {
        None => head.trim().to_owned(),
        Some(name) => match watched(&common.join(name)) {
            Some(commit) => commit.trim().to_owned(),
            None => packed(&watched(&common.join("packed-refs"))?, name)?,
        },
    };
    commit.get(..DIGITS).map(str::to_owned)
}

/// Reads a file, and has Cargo run this script again when it changes.
fn watched(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text)
}

/// Returns the commit of a branch in `packed-refs`, whose lines are a commit and a name.
fn packed(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(_, branch)| *branch == name).map(|(commit, _)| commit.to_owned())
}
