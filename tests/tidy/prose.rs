//! Prose rules: comments and names in the terms of PostgreSQL, RocksDB and HBase.

use super::{all_sources, read, relative};

/// Words with which no heading, header or doc comment begins: they announce a clause, not a noun.
pub(super) const CLAUSES: [&str; 12] = [
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

/// Words that make a name of a test a clause; names are subject, behaviour and condition.
const TEST_NAME_WORDS: [&str; 20] = [
    "anew", "anybody", "come", "comes", "give", "gives", "goes", "gone", "kept", "nobody",
    "somebody", "they", "those", "told", "what", "whatever", "who", "whoever", "whom", "whose",
];
const TEST_NAME_WORDS_MAX: usize = 9;

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

/// Returns the names of the tests of a file with their line numbers.
fn test_names(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_test = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let line = line.trim_start();
        is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        let item = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
        std::mem::take(&mut is_test).then(|| (number + 1, item.split('(').next().unwrap_or(item)))
    })
}

/// Returns the rule that a name of a test breaks.
fn broken_by_test_name(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split('_').collect();
    if words.len() > TEST_NAME_WORDS_MAX {
        return Some(format!("test {name} has more than {TEST_NAME_WORDS_MAX} words"));
    }
    let is_article = ["a", "an", "the"].contains(&words[0]);
    let clause = words.iter().find(|word| TEST_NAME_WORDS.contains(word));
    (is_article || clause.is_some())
        .then(|| format!("test {name} is a clause; name subject, behaviour, condition"))
}

#[test]
fn comments_and_names_use_standard_terms() {
    let mut found = Vec::new();
    for file in all_sources().into_iter().filter(|file| !file.ends_with("tidy/prose.rs")) {
        let text = read(&file);
        for (number, name) in test_names(&text) {
            let rule = broken_by_test_name(name);
            found.extend(rule.map(|rule| format!("{}:{number}: {rule}", relative(&file))));
        }
        for (number, line) in text.lines().enumerate() {
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
fn prose_rules_find_violations() {
    assert!(broken_by_comment("//! What a call means.").is_some());
    assert!(broken_by_comment("    /// Figures of a read.").is_some());
    assert!(broken_by_comment("// It is built anew.").is_some());
    assert!(broken_by_comment("/// Renewal of leases; configures them.").is_none());
    assert!(broken_by_name("pub(super) struct Kept {").is_some());
    assert!(broken_by_name("pub struct KeptRows {").is_none());
    assert!(broken_by_name("mod meant;").is_some());
    assert!(broken_by_test_name("a_load_is_a_commit").is_some());
    assert!(broken_by_test_name("waits_for_who_has_the_row").is_some());
    assert!(broken_by_test_name("put_waits_for_row_lock").is_none());
    assert_eq!(test_names("#[test]\nfn x() {\nfn y() {").collect::<Vec<_>>(), [(2, "x")]);
}
