//! Context-sensitive keywords: a pass over the tokens that decides which words are keywords,
//! before anything is parsed.
//!
//! `sqlparser` knows the keywords of many dialects and cannot always decide whether a word is a
//! name. So a word remains a keyword only where PostgreSQL's grammar of queries, expressions and
//! types has it; any other word becomes a name for `sqlparser`. A keyword that can only be a name
//! in its context (after a period; as a label where an operator would have no operand) is quoted,
//! so that it is never taken for a keyword. Statement heads are parsed by the text of words;
//! [`key_words`] determines which of them may be names.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::key_words::{self, KeywordCategory};

use super::name;
use super::tokens::{ends_operand, is_word, next};

/// Keywords of `sqlparser` that are not keywords of PostgreSQL.
const OWN: &[&str] = &["system_time"];

/// Unreserved words of queries, expressions and types.
const OF_QUERIES: &[&str] = &[
    "by",
    "cube",
    "current",
    "day",
    "double",
    "escape",
    "first",
    "following",
    "groups",
    "hour",
    "last",
    "locked",
    "materialized",
    "minute",
    "month",
    "next",
    "nfc",
    "nfd",
    "nfkc",
    "nfkd",
    "no",
    "normalized",
    "nowait",
    "nulls",
    "of",
    "ordinality",
    "over",
    "preceding",
    "range",
    "recursive",
    "rollup",
    "rows",
    "second",
    "sets",
    "share",
    "skip",
    "ties",
    "unbounded",
    "unknown",
    "update",
    "varying",
    "within",
    "without",
    "year",
    "zone",
];

/// Keywords only before a parenthesis.
const CALLS: &[&str] = &[
    "exists",
    "extract",
    "grouping",
    "operator",
    "overlay",
    "position",
    "substring",
    "trim",
    "values",
];

/// Operators that are words, and may be labels where they have no right operand.
const OPERATORS: &[&str] =
    &["and", "between", "collate", "ilike", "in", "is", "like", "operator", "or", "similar"];

/// Tokens that may follow the label of a column.
const BEHIND_LABEL: &[&str] = &[
    "except",
    "fetch",
    "for",
    "from",
    "group",
    "having",
    "intersect",
    "into",
    "limit",
    "offset",
    "order",
    "union",
    "where",
    "window",
];

/// Fields of an interval, which may follow its type.
const FIELDS: &[&str] = &["year", "month", "day", "hour", "minute", "second"];

/// Classifies all words of a text.
pub(super) fn classify_keywords(tokens: &mut [TokenWithSpan]) {
    let mut before = None;
    // For each open parenthesis, and for the top level, whether it is in a select list.
    let mut lists = vec![false];
    for index in 0..tokens.len() {
        match &tokens[index].token {
            Token::Whitespace(_) => continue,
            Token::LParen => lists.push(false),
            Token::RParen if lists.len() > 1 => drop(lists.pop()),
            Token::SemiColon => lists = vec![false],
            Token::Word(word) if word.quote_style.is_none() => {
                let folded = word.value.to_ascii_lowercase();
                let place = WordContext { before, index, in_list: lists.last() == Some(&true) };
                let meaning = meaning(tokens, &folded, place);
                if let (Some(in_list), WordClass::KeyWord) = (lists.last_mut(), &meaning) {
                    let begins = ["select", "returning"].contains(&folded.as_str());
                    *in_list = begins || *in_list && !BEHIND_LABEL.contains(&folded.as_str());
                }
                apply(&mut tokens[index], meaning);
            }
            _ => {}
        }
        before = Some(index);
    }
}

/// The context of a word.
struct WordContext {
    /// The preceding token.
    before: Option<usize>,
    index: usize,
    /// True in a select list.
    in_list: bool,
}

/// The classification of a word.
enum WordClass {
    /// A keyword, for `sqlparser`, too.
    KeyWord,
    /// No keyword for `sqlparser`: a name if PostgreSQL allows it as one.
    Word,
    /// A name.
    Name,
}

fn apply(token: &mut TokenWithSpan, meaning: WordClass) {
    let Token::Word(word) = &mut token.token else { return };
    match meaning {
        WordClass::KeyWord => {}
        WordClass::Word => word.keyword = Keyword::NoKeyword,
        WordClass::Name => {
            word.value = name::fold(&word.value, false);
            word.quote_style = Some('"');
            word.keyword = Keyword::NoKeyword;
        }
    }
}

fn meaning(tokens: &[TokenWithSpan], word: &str, place: WordContext) -> WordClass {
    let WordContext { before, index, in_list } = place;
    let Some(key_word) = key_words::key_word(word) else {
        let keeps = OWN.contains(&word) || types::DataType::from_name(word).is_some();
        return if keeps { WordClass::KeyWord } else { WordClass::Word };
    };
    if before.is_some_and(|at| tokens[at].token == Token::Period) {
        return WordClass::Name;
    }
    let behind = next(tokens, index);
    if in_list && OPERATORS.contains(&word) && is_label(tokens, before, behind) {
        return WordClass::Name;
    }
    let is_next = |words: &[&str]| {
        behind.is_some_and(|at| words.iter().any(|word| is_word(&tokens[at], word)))
    };
    let opens = behind.is_some_and(|at| tokens[at].token == Token::LParen);
    let is_meant = match word {
        "at" => is_next(&["time"]),
        "partition" => is_next(&["by"]),
        "values" if !opens && !before.is_some_and(|at| is_word(&tokens[at], "default")) => {
            return WordClass::Name;
        }
        "filter" => opens,
        "temp" | "temporary" | "unlogged" => before.is_some_and(|at| is_word(&tokens[at], "into")),
        "interval" => {
            let is_text = |at: usize| matches!(tokens[at].token, Token::SingleQuotedString(_));
            opens || behind.is_some_and(is_text) || is_next(FIELDS)
        }
        _ if CALLS.contains(&word) => opens,
        _ => {
            key_word.category != KeywordCategory::Unreserved
                || OF_QUERIES.contains(&word)
                || types::DataType::from_name(word).is_some()
        }
    };
    if is_meant { WordClass::KeyWord } else { WordClass::Word }
}

/// Returns whether an operator word follows an operand and precedes none.
fn is_label(tokens: &[TokenWithSpan], before: Option<usize>, behind: Option<usize>) -> bool {
    before.is_some_and(|at| ends_operand(&tokens[at]) && !is_word(&tokens[at], "over"))
        && behind.is_none_or(|at| match &tokens[at].token {
            Token::Comma | Token::RParen | Token::SemiColon | Token::EOF => true,
            _ => BEHIND_LABEL.iter().any(|word| is_word(&tokens[at], word)),
        })
}
