//! References to types, functions and columns, and string literals, in a text: used to update
//! stored texts when the referenced object is renamed.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::dialect::BennuDialect;
use super::error::ParseError;
use super::source::ScriptText;
use super::{limits, name, tokenize};

/// A reference to a type, a function or a column in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameReference {
    /// Its byte range, without `[]`.
    pub range: Range<usize>,
    /// The schema, if qualified.
    pub schema: Option<String>,
    /// The name.
    pub name: String,
}

/// Returns the references to types in a text: after `::`, after AS in a CAST, and before a string.
/// Built-in types are included; the text must be valid SQL.
///
/// # Errors
///
/// 42601 if the text cannot be tokenized.
pub fn type_references(text: &str) -> Result<Vec<NameReference>, ParseError> {
    let (source, tokens) = tokens_of(text)?;
    let mut found: Vec<NameReference> = Vec::new();
    // For each open parenthesis, whether it belongs to a CAST.
    let mut open = Vec::new();
    for (at, one) in tokens.iter().enumerate() {
        let behind_cast = at.checked_sub(1).is_some_and(|before| is_word(&tokens[before], "cast"));
        match &one.token {
            Token::LParen => open.push(behind_cast),
            Token::RParen => {
                open.pop();
            }
            Token::Word(_) => {
                let before = at.checked_sub(1).map(|before| &tokens[before]);
                let is_cast = before.is_some_and(|before| match &before.token {
                    Token::DoubleColon => true,
                    Token::Word(_) => is_word(before, "as") && open.last() == Some(&true),
                    _ => false,
                });
                let starts = before.is_none_or(|before| before.token != Token::Period);
                let (reference, next) = named(&source, &tokens, at);
                let types_string = starts
                    && matches!(
                        tokens.get(next).map(|next| &next.token),
                        Some(Token::SingleQuotedString(_))
                    );
                if is_cast || types_string {
                    found.push(reference);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Returns the references to called functions in a text, built-in ones included.
///
/// # Errors
///
/// 42601 if the text cannot be tokenized.
pub fn call_references(text: &str) -> Result<Vec<NameReference>, ParseError> {
    names(text, |_, _, next| next == Some(&Token::LParen))
}

/// Returns the references to columns with one qualifier in a text.
///
/// # Errors
///
/// 42601 if the text cannot be tokenized.
pub fn column_references(text: &str) -> Result<Vec<NameReference>, ParseError> {
    names(text, |reference, before, next| {
        reference.schema.is_some()
            && !matches!(before, Some(Token::DoubleColon | Token::Period))
            && !matches!(next, Some(Token::Period | Token::LParen))
    })
}

/// Returns the names of a text that a condition holds for, with the tokens before and after them.
fn names(
    text: &str,
    is_wanted: impl Fn(&NameReference, Option<&Token>, Option<&Token>) -> bool,
) -> Result<Vec<NameReference>, ParseError> {
    let (source, tokens) = tokens_of(text)?;
    let token = |at: usize| tokens.get(at).map(|one| &one.token);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !matches!(tokens[at].token, Token::Word(_)) {
            at += 1;
            continue;
        }
        let (reference, next) = named(&source, &tokens, at);
        if is_wanted(&reference, at.checked_sub(1).and_then(token), token(next)) {
            found.push(reference);
        }
        at = next;
    }
    Ok(found)
}

/// Returns the strings of a text with their byte ranges, quotes included.
///
/// # Errors
///
/// 42601 if the text cannot be tokenized.
pub fn strings(text: &str) -> Result<Vec<(Range<usize>, String)>, ParseError> {
    let (source, tokens) = tokens_of(text)?;
    let string = |one: &TokenWithSpan| match &one.token {
        Token::SingleQuotedString(value) => {
            Some((source.byte(one.span.start)..source.byte(one.span.end), value.clone()))
        }
        _ => None,
    };
    Ok(tokens.iter().filter_map(string).collect())
}

/// Returns the string literals of a text: the position of the first character, as in syntax trees,
/// and the byte range. Strings that continue each other are one.
///
/// # Errors
///
/// 42601 if the text cannot be tokenized.
pub fn string_places(text: &str) -> Result<Vec<(usize, Range<usize>)>, ParseError> {
    let (source, tokens) = tokens_of(text)?;
    let mut places: Vec<(usize, Range<usize>)> = Vec::new();
    let mut continues = false;
    for one in &tokens {
        let is_string = matches!(
            one.token,
            Token::SingleQuotedString(_)
                | Token::EscapedStringLiteral(_)
                | Token::UnicodeStringLiteral(_)
                | Token::DollarQuotedString(_)
        );
        let bytes = source.byte(one.span.start)..source.byte(one.span.end);
        match places.last_mut() {
            Some((_, before)) if is_string && continues => before.end = bytes.end,
            _ if is_string => places.push((source.position(one.span.start), bytes)),
            _ => {}
        }
        continues = is_string;
    }
    Ok(places)
}

/// Returns a text with these ranges replaced, which must be ascending.
pub fn replace(text: &str, places: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, new) in places {
        out.push_str(&text[done..range.start]);
        out.push_str(new);
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}

fn tokens_of(text: &str) -> Result<(ScriptText<'_>, Vec<TokenWithSpan>), ParseError> {
    limits::check_size(text)?;
    let source = ScriptText::new(text);
    let mut tokens = tokenize(&BennuDialect::default(), &source)?;
    tokens.retain(|one| !matches!(one.token, Token::Whitespace(_)));
    Ok((source, tokens))
}

/// Returns the name that begins at a token, and the index of the token after it.
fn named(source: &ScriptText<'_>, tokens: &[TokenWithSpan], at: usize) -> (NameReference, usize) {
    let word = |at: usize| match tokens.get(at).map(|one| &one.token) {
        Some(Token::Word(word)) => Some(name::fold(&word.value, word.quote_style.is_some())),
        _ => None,
    };
    let dotted = tokens.get(at + 1).is_some_and(|next| next.token == Token::Period);
    let second = word(at + 2).filter(|_| dotted);
    let first = word(at).unwrap_or_default();
    let last = if second.is_some() { at + 2 } else { at };
    let range = source.byte(tokens[at].span.start)..source.byte(tokens[last].span.end);
    let reference = match second {
        Some(name) => NameReference { range, schema: Some(first), name },
        None => NameReference { range, schema: None, name: first },
    };
    (reference, last + 1)
}

fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    super::tokens::is_word(token, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_references_are_located() {
        let names = |text: &str| {
            let found = type_references(text).unwrap();
            found.into_iter().map(|one| text[one.range].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("a::mood = b"), ["mood"]);
        assert_eq!(names("'x'::s.\"Mood\"[] || CAST(y AS  t . u)"), ["s.\"Mood\"", "t . u"]);
        assert_eq!(names("mood 'x' <> s.mood 'y'"), ["mood", "s.mood"]);
        assert_eq!(names("select a as mood from (select cast(b as m) as n) as t"), ["m"]);
        assert_eq!(names("cast((select a as b) as m)"), ["m"]);
    }

    #[test]
    fn string_literals_are_replaced() {
        let text = "a = 'it''s' or b = 'x'";
        let found = strings(text).unwrap();
        assert_eq!(found[0].1, "it's");
        let places: Vec<_> = found.into_iter().map(|(range, _)| (range, "1".to_owned())).collect();
        assert_eq!(replace(text, &places), "a = 1 or b = 1");
    }

    #[test]
    fn column_references_have_one_qualifier() {
        let text =
            "f.b > 1 AND \"F x\".\"c\" = f.g(t.f.b) OR a::f.b IS NULL OR (f).b = b AND f.d.e";
        let found = column_references(text).unwrap();
        let found: Vec<_> = found.iter().map(|one| &text[one.range.clone()]).collect();
        assert_eq!(found, ["f.b", "\"F x\".\"c\""]);
    }
}
