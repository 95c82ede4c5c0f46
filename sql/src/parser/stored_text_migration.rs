//! Migration of SQL texts in the catalog that were written for an older parser.
//!
//! A text is stored as written, and parsed by every version that opens the data directory. If a
//! word that was a name has become a keyword, the text regains its meaning when the word is
//! quoted: the parser reports the word at which it stopped. So no version needs to know the
//! keywords of older ones. A text that can be parsed is not changed, nor is one that cannot be
//! repaired.
//!
//! An unknown operator may have been several: `a !=-1` was `a != -1`.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::key_words::{self, KeywordCategory};

use super::dialect::BennuDialect;
use super::error::{ParseError, Result};
use super::source::ScriptText;
use super::tokens::{next, previous};
use super::{
    name, operator_tokens, parse_expression, parse_query, parse_statements, replace, tokenize,
};
use crate::ast::{BinaryOperator, UnaryOperator};

/// The number of words before the position of the error that may be its cause.
const WORDS_BEFORE: usize = 4;

/// Quotes words of a stored expression that prevent parsing it.
pub fn requote_expression(text: &mut String) {
    mend(text, |text| parse_expression(text).map(drop));
}

/// Quotes words of a stored query that prevent parsing it.
pub fn requote_query(text: &mut String) {
    mend(text, |text| parse_query(text).map(drop));
}

/// Quotes words of stored statements that prevent parsing them.
pub fn requote_statements(text: &mut String) {
    mend(text, |text| parse_statements(text).map(drop));
}

/// Quotes words one by one, until the text can be parsed or no word helps.
fn mend(text: &mut String, parse: impl Fn(&str) -> Result<()>) {
    part_operators(text);
    let Err(mut error) = parse(text) else { return };
    let mut mended = text.clone();
    // Each iteration leaves one unquoted word less, so the loop ends.
    while let Some((next, left)) = quote_one(&mended, &error, &parse) {
        mended = next;
        match left {
            Some(next) => error = next,
            None => {
                *text = mended;
                return;
            }
        }
    }
}

/// Splits unknown operators that were several in an older version.
fn part_operators(text: &mut String) {
    let places: Vec<(Range<usize>, String)> = {
        let source = ScriptText::new(text);
        let dialect = BennuDialect::default();
        let mut tokens = tokenize(&dialect, &source).unwrap_or_default();
        operator_tokens::cut(&dialect, &mut tokens);
        let unknown = tokens.iter().filter_map(|token| match &token.token {
            Token::CustomBinaryOperator(symbol) if BinaryOperator::named(symbol).is_none() => {
                let bytes = source.byte(token.span.start)..source.byte(token.span.end);
                parted(symbol, operator).map(|parts| (bytes, parts))
            }
            _ => None,
        });
        unknown.collect()
    };
    if !places.is_empty() {
        *text = replace(text, &places);
    }
}

/// Splits an operator into a known one followed by prefix operators.
fn parted(symbol: &str, known: fn(&str) -> Option<&'static str>) -> Option<String> {
    (1..=symbol.len()).rev().find_map(|at| {
        let (first, behind) = symbol.split_at_checked(at)?;
        let first = known(first)?;
        match behind {
            "" => Some(first.to_owned()),
            behind => Some(format!("{first} {}", parted(behind, prefix)?)),
        }
    })
}

fn prefix(symbol: &str) -> Option<&'static str> {
    UnaryOperator::named(symbol).map(UnaryOperator::symbol)
}

fn operator(symbol: &str) -> Option<&'static str> {
    // Synonyms of two operators.
    let symbol = match symbol {
        "==" => "=",
        "!=" => "<>",
        symbol => symbol,
    };
    BinaryOperator::named(symbol).map(BinaryOperator::symbol).or_else(|| prefix(symbol))
}

/// An unquoted word.
struct Word {
    bytes: Range<usize>,
    /// Its position, as in errors.
    position: usize,
    /// Its name when quoted.
    name: String,
}

/// Returns the text with the word quoted that caused the error, and the next error, if any.
fn quote_one(
    text: &str,
    error: &ParseError,
    parse: impl Fn(&str) -> Result<()>,
) -> Option<(String, Option<ParseError>)> {
    let stop = error.position?;
    words_before(text, stop).into_iter().find_map(|word| {
        let quoted = replace(text, &[(word.bytes, format!("\"{}\"", word.name))]);
        match parse(&quoted) {
            Ok(()) => Some((quoted, None)),
            Err(next) => {
                // The quotes have shifted what follows the word.
                let helps = match (next.position?, word.position == stop) {
                    (position, true) => position != stop,
                    (position, false) => position > stop + 2,
                };
                helps.then_some((quoted, Some(next)))
            }
        }
    })
}

/// Returns the unquoted words up to a position that may be names, the last one first.
fn words_before(text: &str, position: usize) -> Vec<Word> {
    let source = ScriptText::new(text);
    let tokens = tokenize(&BennuDialect::default(), &source).unwrap_or_default();
    let words = (0..tokens.len()).filter_map(|at| {
        let TokenWithSpan { token, span } = &tokens[at];
        let Token::Word(word) = token else { return None };
        let name = name::fold(&word.value, false);
        let may_be = || !begins_clause(&name) || is_name(&tokens, at);
        (word.quote_style.is_none() && may_be()).then(|| Word {
            bytes: source.byte(span.start)..source.byte(span.end),
            position: source.position(span.start),
            name,
        })
    });
    let mut words: Vec<Word> = words.take_while(|word| word.position <= position).collect();
    words.reverse();
    words.truncate(WORDS_BEFORE + 1);
    words
}

/// Returns whether a word may follow an expression, and so is a keyword almost everywhere.
fn begins_clause(word: &str) -> bool {
    key_words::key_word(word)
        .is_some_and(|found| found.category == KeywordCategory::Reserved && !found.is_bare_label)
}

/// Returns whether a word is where only a name was ever allowed: before a period or arguments, or
/// alone in a parenthesized list.
fn is_name(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = previous(tokens, at).map(|at| &tokens[at].token);
    let behind = next(tokens, at).map(|at| &tokens[at].token);
    let begins = matches!(before, Some(Token::LParen | Token::Comma));
    match behind {
        Some(Token::Period | Token::LParen) => true,
        Some(Token::RParen | Token::Comma) => begins,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(text: &str) -> String {
        let mut text = text.to_owned();
        if text.starts_with("select") {
            requote_statements(&mut text)
        } else {
            requote_expression(&mut text)
        }
        text
    }

    #[test]
    fn what_cannot_be_read_any_more_is_written_otherwise() {
        for (stored, read) in [
            ("binary > 0", "\"binary\" > 0"),
            ("Freeze between Binary and 10", "\"freeze\" between \"binary\" and 10"),
            ("a > 0 and not verbose::bool", "a > 0 and not \"verbose\"::bool"),
            ("é || collation -- é\n || collation", "é || \"collation\" -- é\n || \"collation\""),
            ("extract(value) > 1", "\"extract\"(value) > 1"),
            ("cast(a as between)", "cast(a as \"between\")"),
            ("b collate default", "b collate \"default\""),
            ("select check.a from t as check", "select \"check\".a from t as \"check\""),
            ("select a from t join u binary on true", "select a from t join u \"binary\" on true"),
            ("select a from t join u using (order)", "select a from t join u using (\"order\")"),
            ("a %-1 or a==- -1 or f(a=@b)", "a % -1 or a=- -1 or f(a= @b)"),
            ("select 1; select freeze from t", "select 1; select \"freeze\" from t"),
        ] {
            assert_eq!(mended(stored), read);
        }
    }

    #[test]
    fn what_can_be_read_and_what_cannot_be_mended_stay() {
        for text in [
            "left(a, 1) = 'x'",
            "\"binary\" + extract(year from b)",
            "select 1 as binary, 'x' freeze",
            "a >",
            "a b c",
            "(a",
            "select from from t",
            "select a from t limit 1 offset offset",
            "",
        ] {
            assert_eq!(mended(text), text);
        }
    }

    #[test]
    fn no_other_word_gets_quotes() {
        let places = [
            "$ > 0",
            "a > $ and $ < 1",
            "coalesce($, 0)",
            "$.a = 1",
            "$(a) + 1",
            "a::$",
            "select $ from t",
            "select t.a, $.b from t, u as $ where $.b > 0 order by 1",
            "select a from $ where a in (select $.a from $)",
            "with $ as (select 1 as a) select a from $",
            "update t set $ = $ + 1 where $ > 0",
        ];
        let mut count = 0;
        for place in places {
            for (word, _) in key_words::key_words() {
                let text = place.replace('$', word);
                let text =
                    if place.starts_with(['w', 'u']) { format!("select 1; {text}") } else { text };
                let read = mended(&text);
                let unquoted = read.replace(&format!("\"{word}\""), word);
                assert_eq!(unquoted, text);
                count += usize::from(read != text);
            }
        }
        assert!(count > 300, "only {count} were mended");
    }
}
