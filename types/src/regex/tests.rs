//! Tests of searches in long texts: the same matches as in short ones, and cancellation.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::interrupt::Interrupt;

/// Parts of texts, and patterns with various matches in them.
const TEXTS: &[&str] =
    &["aab", "xyz 17", "ä–ö\nfoo bar\n", "", "\nfoo", "abcabc", "a", "foo bar", "ba17 –\n"];
const PATTERNS: &[&str] = &[
    "a*b",
    "foo",
    "(fo+) (b)",
    "[0-9]+",
    "(?n)^foo",
    "(?n)r$",
    "\\Aa",
    "7\\Z",
    "z*",
    "o+?",
    "(a|ab)c?",
    "[^a-z]+",
    "\\yfoo\\y",
    "\\mbar",
    "ö.f",
    "(x)(y)?",
    "nothing",
    "b$",
    "^",
    "$",
    "\\Y",
    "(?:a|b)*7",
    "(o)\\1",
];

/// Returns the matches that end before a byte.
fn matches(pattern: &Pattern, text: &str, before: usize) -> Vec<Match> {
    let interrupt = Interrupt::default();
    let mut search = pattern.search(text, &interrupt);
    let (mut all, mut from) = (Vec::new(), 0);
    while let Some(found) = search.find_at(from).expect("nobody cancels") {
        let range = found.all();
        if range.end >= before {
            break;
        }
        let next = text[range.end..].chars().next().map_or(1, char::len_utf8);
        from = range.end + if range.is_empty() { next } else { 0 };
        all.push(found);
    }
    all
}

#[test]
fn stepped_search_matches_regex_crate() {
    for pattern in PATTERNS {
        let pattern = Pattern::new(pattern, Options::default()).expect("a pattern");
        let Some(plain) = &pattern.plain else { continue };
        let stepped = SteppedRegex::new(plain.as_str()).expect("it is small");
        for one in TEXTS {
            for other in TEXTS {
                compare(plain, &stepped, &format!("{one}{other}"));
            }
        }
    }
}

fn compare(plain: &regex::Regex, stepped: &SteppedRegex, text: &str) {
    let mut states = stepped.states();
    for (from, _) in text.char_indices() {
        let expected = plain.find_at(text, from).map(|found| found.range());
        let what = format!("{} in {text:?} from {from}", plain.as_str());
        match stepped
            .find(text, from, &mut states, &mut InterruptPacer::without_interrupt())
            .expect("no flag")
        {
            SearchResult::Match(found) => assert_eq!(Some(found), expected, "{what}"),
            SearchResult::Nothing => assert_eq!(None, expected, "{what}"),
            SearchResult::Unknown => {
                assert!(plain.as_str().contains(['b', 'B']) && !text.is_ascii())
            }
        }
    }
    match stepped.is_match(text, &mut InterruptPacer::without_interrupt()).expect("no flag") {
        SearchResult::Match(()) => assert!(plain.is_match(text), "{} in {text:?}", plain.as_str()),
        SearchResult::Nothing => assert!(!plain.is_match(text), "{} in {text:?}", plain.as_str()),
        SearchResult::Unknown => {}
    }
}

#[test]
fn stepped_search_of_long_text_matches_short_text() {
    let behind = "-".repeat(CHUNK_BYTES + 17);
    for pattern in PATTERNS {
        let pattern = Pattern::new(pattern, Options::default()).expect("a pattern");
        if pattern.plain.is_none() {
            continue;
        }
        for begin in &TEXTS[..4] {
            let short = matches(&pattern, &format!("{begin}--"), begin.len());
            let long = matches(&pattern, &format!("{begin}{behind}"), begin.len());
            assert_eq!(long, short, "{pattern:?} {begin:?}");
        }
    }
}

#[test]
fn regex_search_in_long_text_is_interruptible() {
    let text = "a".repeat(3 * CHUNK_BYTES);
    let set = Interrupt::new(Arc::new(AtomicBool::new(true)));
    assert!(set.is_set());
    for pattern in ["a*b", "(a*)b", "(a*)", "b|c", "(a)\\1b"] {
        let pattern = Pattern::new(pattern, Options::default()).expect("a pattern");
        let found = pattern.search(&text, &set).find_at(0);
        assert_eq!(found.expect_err("cancelled").sqlstate, "57014");
    }
    let calm = Interrupt::default();
    let pattern = Pattern::new("a*b", Options::default()).expect("a pattern");
    assert!(pattern.is_match(&text, &set).is_err());
    assert_eq!(pattern.is_match(&text, &calm), Ok(false));
}
