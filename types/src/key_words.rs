//! PostgreSQL's key words with their categories.
//!
//! There are four categories, as in PostgreSQL's `kwlist.h`, and independently the words that can
//! be a column label without AS. They are listed in `key_words.txt`. The parser uses them to
//! accept names, and the functions that write SQL to quote names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Category of a key word: its uses as a name without quotes. After AS and after a period any
/// word is a column name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordCategory {
    /// Any name.
    Unreserved,
    /// Tables, columns and most other objects, but not functions or types.
    ColumnName,
    /// Only functions and types.
    TypeOrFunction,
    /// No name.
    Reserved,
}

/// A key word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyWord {
    /// The category.
    pub category: KeywordCategory,
    /// It can be a column label without AS.
    pub is_bare_label: bool,
}

static TABLE: LazyLock<BTreeMap<&str, KeyWord>> = LazyLock::new(|| {
    let mut table = BTreeMap::new();
    let mut key_word = KeyWord { category: KeywordCategory::Unreserved, is_bare_label: true };
    let lines = include_str!("key_words.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            let category = match words.next() {
                Some("C") => KeywordCategory::ColumnName,
                Some("T") => KeywordCategory::TypeOrFunction,
                Some("R") => KeywordCategory::Reserved,
                _ => KeywordCategory::Unreserved,
            };
            key_word = KeyWord { category, is_bare_label: words.next() == Some("b") };
        }
        table.extend(words.map(|word| (word, key_word)));
    }
    table
});

/// Returns all key words in alphabetical order.
pub fn key_words() -> impl Iterator<Item = (&'static str, KeyWord)> {
    TABLE.iter().map(|(word, key_word)| (*word, *key_word))
}

/// Returns the key word with this lower-case spelling.
pub fn key_word(word: &str) -> Option<KeyWord> {
    TABLE.get(word).copied()
}

fn category(word: &str) -> KeywordCategory {
    key_word(word).map_or(KeywordCategory::Unreserved, |found| found.category)
}

/// Returns whether a word can be any name.
pub fn is_unreserved(word: &str) -> bool {
    category(word) == KeywordCategory::Unreserved
}

/// Returns whether a word can name tables, columns and other declared objects (`ColId`).
pub fn is_column_name(word: &str) -> bool {
    matches!(category(word), KeywordCategory::Unreserved | KeywordCategory::ColumnName)
}

/// Returns whether a word can name functions, types and parameters (`type_function_name`).
pub fn is_type_or_function(word: &str) -> bool {
    matches!(category(word), KeywordCategory::Unreserved | KeywordCategory::TypeOrFunction)
}

/// Returns whether a word is not reserved (`NonReservedWord`).
pub fn is_not_reserved(word: &str) -> bool {
    category(word) != KeywordCategory::Reserved
}

/// Returns whether a word can be a column label without AS (`BareColLabel`).
pub fn is_bare_label(word: &str) -> bool {
    key_word(word).is_none_or(|found| found.is_bare_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_words_match_postgresql() {
        assert_eq!(key_words().count(), 460);
        let of = |word| key_word(word).unwrap();
        assert_eq!(of("left").category, KeywordCategory::TypeOrFunction);
        assert!(of("and").is_bare_label && !of("filter").is_bare_label);
        assert!(is_column_name("values") && !is_type_or_function("values"));
        assert!(is_column_name("upsert") && is_bare_label("upsert"), "no key word");
    }
}
