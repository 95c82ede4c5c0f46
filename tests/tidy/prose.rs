//! Prose rules: comments and names in the terms of PostgreSQL, RocksDB and HBase.

use super::{all_sources, read, relative};

/// Words with which no heading, header or doc comment begins: they announce a clause, not a noun.
const CLAUSES: [&str; 12] = [
    "What", "Who", "Whose", "Whom", "Which", "How", "Where", "Whether", "Why", "Whatever",
    "Whoever", "Wherever",
];

/// Phrases of a private idiom, with the words around which they may not stand.
const PRIVATE_WORDS: [&str; 35] = [
    "function of users",
    "functions of users",
    "type of users",
    "types of users",
    "of its kin",
    "its kin",
    "their kin",
    "and kin",
    "anew",
    "mended",
    "whoever",
    "whatever",
    "nobody",
    "somebody",
    "in the place of",
    "side by side",
    "by itself",
    "by themselves",
    "told apart",
    "worked off",
    "put aside",
    "is told",
    "are told",
    "made anew",
    "asked again",
    "has got",
    "have got",
    "give up",
    "gives up",
    "those who",
    "that has chance",
    "regions later on",
    "regions from the start",
    "former state",
    "former states",
];

/// Further words: one for uncertainty and one for statistics.
const VAGUE_WORDS: [&str; 3] = ["doubtful", "figure", "figures"];

/// Bare participles and abstractions that name no type.
const TYPE_NAMES: [&str; 70] = [
    "Around", "Asked", "Aside", "Begun", "Crowd", "Fed", "Given", "Going", "Gone", "Jumped",
    "Kept", "Late", "Later", "Lent", "Listed", "Moment", "Occasion", "Open", "Parked", "Part",
    "Parts", "Patience", "Piece", "Pieces", "Place", "Rest", "Settled", "Shown", "Source",
    "Standing", "State", "Stretch", "Taken", "Taker", "Through", "Turn", "Warden", "Way", "Ways",
    "World", "Written", "Wanted", "Meant", "Named", "Noted", "Outdated", "Endable", "Fate",
    "Filling", "Fitted", "Grown", "Held", "Owed", "Read", "Said", "Seen", "Sent", "Set", "Spent",
    "Told", "Used", "Asking", "Waiting", "Made", "Changed", "Found", "Marked", "Moved", "Stopped",
    "Watched",
];

/// Participles and pronouns that name no module.
const MODULE_NAMES: [&str; 35] = [
    "around",
    "asked",
    "aside",
    "begun",
    "beside",
    "collapse",
    "fed",
    "followed",
    "given",
    "gone",
    "kept",
    "late",
    "later",
    "lent",
    "listed",
    "meant",
    "mended",
    "named",
    "noted",
    "occasion",
    "outdated",
    "parts",
    "pieces",
    "rest",
    "settle",
    "settled",
    "shown",
    "standing",
    "taken",
    "unchanged",
    "wanted",
    "watch",
    "written",
    "world",
    "worked",
];

/// Returns whether `word` stands in `text`, in any case, between characters that are not part of a
/// word.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    })
}

/// Returns the rule that a line of a comment breaks.
fn broken_by_comment(line: &str) -> Option<String> {
    let text = line.trim_start();
    let doc = text.strip_prefix("//! ").or_else(|| text.strip_prefix("/// "));
    let first = doc.and_then(|doc| doc.split(|c: char| !c.is_alphanumeric()).next());
    if let Some(first) = first.filter(|first| CLAUSES.contains(first)) {
        return Some(format!("the comment begins with the clause \"{first} …\""));
    }
    let lower = text.to_lowercase();
    let mut words = PRIVATE_WORDS.iter().chain(&VAGUE_WORDS);
    words
        .find(|word| has_word(&lower, word))
        .map(|word| format!("\"{word}\" is no term of the field"))
}

/// Returns the rule that a line of code breaks.
fn broken_by_name(line: &str) -> Option<String> {
    let text = line.trim_start();
    let (visibility, item) = match text.strip_prefix("pub") {
        Some(rest) => match rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((_, item)) => (true, item),
            None => (true, rest.trim_start()),
        },
        None => (false, text),
    };
    let (word, rest) = item.split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let is_type = visibility && ["struct", "enum", "trait", "type"].contains(&word);
    if is_type && TYPE_NAMES.contains(&name) {
        return Some(format!(
            "type {name} is a participle or an abstraction, not a noun with a role"
        ));
    }
    if word == "mod" && MODULE_NAMES.contains(&name) {
        return Some(format!("module {name} is named by a participle or a pronoun"));
    }
    None
}

#[test]
fn comments_and_names_use_the_terms_of_the_field() {
    let mut found = Vec::new();
    for file in all_sources().into_iter().filter(|file| !file.ends_with("tidy/prose.rs")) {
        for (number, line) in read(&file).lines().enumerate() {
            let broken = match line.trim_start().starts_with("//") {
                true => broken_by_comment(line),
                false => broken_by_name(line),
            };
            if let Some(rule) = broken {
                found.push(format!("{}:{}: {rule}", relative(&file), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_rules_find_what_they_are_for() {
    assert!(broken_by_comment("//! What a call means.").is_some());
    assert!(broken_by_comment("    /// Figures of a read.").is_some());
    assert!(broken_by_comment("// It is built anew.").is_some());
    assert!(broken_by_comment("/// Renewal of leases; configures them.").is_none());
    assert!(broken_by_name("pub(super) struct Kept {").is_some());
    assert!(broken_by_name("pub struct KeptRows {").is_none());
    assert!(broken_by_name("mod meant;").is_some());
}
