//! Phoenix's syntax: statements that are syntax errors in PostgreSQL, rewritten token by token.
//!
//! A text that cannot be parsed is parsed a second time after this rewriting, so that no text that
//! PostgreSQL accepts changes its meaning, and texts without errors cost nothing:
//!
//! | Phoenix | Rewritten to |
//! | --- | --- |
//! | `CURRENT_DATE()`, `CURRENT_TIME()` | `CURRENT_DATE`, `LOCALTIMESTAMP` |
//! | `t TABLESAMPLE (n)` | `t TABLESAMPLE BERNOULLI (n)` |
//! | `f(x)[1]`, `CASE … END[1]` | `(f(x))[1]`, `(CASE … END)[1]` |
//! | `FETCH NEXT n ROWS FROM c` | `FETCH n FROM c` |
//! | `OPEN c` | `MOVE 0 FROM c` |
//! | `UPDATE STATISTICS t ALL SET …` | `ANALYZE t` |
//! | `USE s` | `SET search_path TO s` |
//! | `EXPLAIN WITH REGIONS …` | `EXPLAIN …` |
//!
//! Inserted tokens have the position of the token that they belong to, and removed ones become
//! blanks, as in [`rewrite`](super::rewrite).

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};
use types::DataType;

use super::tokens::{is_word, next, previous};

/// The maximum number of rewritten places of a text: each moves the tokens behind it.
const PLACES_MAX: usize = 500;

/// Rewrites the tokens of a text. Returns whether any was changed.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let mut places = 0;
    let mut index = 0;
    while index < tokens.len() && places < PLACES_MAX {
        let before = tokens.len();
        let is_rewritten = match &tokens[index].token {
            Token::LBracket => subscript(tokens, index),
            Token::Word(word) if word.quote_style.is_none() => {
                let word = word.value.to_ascii_lowercase();
                in_expression(tokens, index, &word)
                    || begins_statement(tokens, index) && statement(tokens, index, &word)
            }
            _ => false,
        };
        places += usize::from(is_rewritten);
        index += 1 + tokens.len().saturating_sub(before);
    }
    places > 0
}

/// Rewrites the syntax that a word begins inside of a statement.
fn in_expression(tokens: &mut Vec<TokenWithSpan>, index: usize, word: &str) -> bool {
    let Some(open) = next(tokens, index).filter(|&at| tokens[at].token == Token::LParen) else {
        return false;
    };
    match word {
        "current_date" | "current_time" => {
            let Some(close) = next(tokens, open).filter(|&at| tokens[at].token == Token::RParen)
            else {
                return false;
            };
            blank(tokens, open..close + 1);
            if word == "current_time" {
                tokens[index].token = Token::make_word("localtimestamp", None);
            }
            true
        }
        "tablesample" => {
            let method = Token::make_word("bernoulli", None);
            tokens.insert(open, TokenWithSpan { token: method, span: tokens[open].span });
            true
        }
        _ => false,
    }
}

/// Encloses the call or CASE before a subscript in parentheses.
fn subscript(tokens: &mut Vec<TokenWithSpan>, index: usize) -> bool {
    let Some(end) = previous(tokens, index) else { return false };
    let start = match &tokens[end].token {
        Token::RParen => start_of_call(tokens, end),
        Token::Word(_) if is_word(&tokens[end], "end") => start_of_case(tokens, end),
        _ => None,
    };
    let Some(start) = start else { return false };
    let (open, close) = (tokens[start].span, tokens[end].span);
    tokens.insert(end + 1, TokenWithSpan { token: Token::RParen, span: close });
    tokens.insert(start, TokenWithSpan { token: Token::LParen, span: open });
    true
}

/// Returns the first token of a call by its closing parenthesis; `None` for other parentheses,
/// among them those of a type with a length.
fn start_of_call(tokens: &[TokenWithSpan], end: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let open = (0..=end).rev().find(|&at| {
        match tokens[at].token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let name = previous(tokens, open)?;
    let Token::Word(word) = &tokens[name].token else { return None };
    let is_name = word.quote_style.is_some()
        || types::key_words::is_type_or_function(&word.value.to_ascii_lowercase())
            && DataType::from_name(&word.value.to_ascii_lowercase()).is_none();
    let dot = previous(tokens, name).filter(|&at| tokens[at].token == Token::Period);
    let schema = dot.and_then(|dot| previous(tokens, dot));
    is_name.then(|| schema.unwrap_or(name))
}

/// Returns the word CASE of an END.
fn start_of_case(tokens: &[TokenWithSpan], end: usize) -> Option<usize> {
    let mut depth = 0_usize;
    (0..=end).rev().find(|&at| {
        if is_word(&tokens[at], "end") {
            depth += 1;
        } else if is_word(&tokens[at], "case") {
            depth -= 1;
        }
        depth == 0
    })
}

fn begins_statement(tokens: &[TokenWithSpan], index: usize) -> bool {
    previous(tokens, index).is_none_or(|at| tokens[at].token == Token::SemiColon)
}

/// Rewrites the syntax of the statement that a word begins.
fn statement(tokens: &mut Vec<TokenWithSpan>, index: usize, word: &str) -> bool {
    let Some(second) = next(tokens, index) else { return false };
    let is = |tokens: &[TokenWithSpan], at: usize, word: &str| is_word(&tokens[at], word);
    match word {
        "open" => replace(tokens, index, "move 0 from"),
        "use" => replace(tokens, index, "set search_path to"),
        "fetch" if is(tokens, second, "next") => fetch(tokens, second),
        "update" if is(tokens, second, "statistics") => update_statistics(tokens, index, second),
        "explain" if is(tokens, second, "with") => match next(tokens, second) {
            Some(regions) if is(tokens, regions, "regions") => {
                blank(tokens, second..regions + 1);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Rewrites `FETCH NEXT [n] ROWS FROM c`.
fn fetch(tokens: &mut [TokenWithSpan], word: usize) -> bool {
    let Some(count) = next(tokens, word) else { return false };
    let is_count = matches!(tokens[count].token, Token::Number(..));
    let rows = if is_count { next(tokens, count) } else { Some(count) };
    let is_rows = |at: &usize| is_word(&tokens[*at], "rows") || is_word(&tokens[*at], "row");
    let Some(rows) = rows.filter(is_rows) else { return false };
    if is_count {
        blank(tokens, word..word + 1);
    }
    blank(tokens, rows..rows + 1);
    true
}

/// Rewrites `UPDATE STATISTICS t [INDEX | COLUMNS | ALL] [SET …]`.
fn update_statistics(tokens: &mut [TokenWithSpan], index: usize, second: usize) -> bool {
    let Some(mut name) = next(tokens, second) else { return false };
    if !matches!(tokens[name].token, Token::Word(_)) {
        return false;
    }
    while let Some(dot) = next(tokens, name).filter(|&at| tokens[at].token == Token::Period) {
        let Some(part) = next(tokens, dot) else { return false };
        name = part;
    }
    let end = (name..tokens.len())
        .find(|&at| matches!(tokens[at].token, Token::SemiColon | Token::EOF))
        .unwrap_or(tokens.len());
    if let Some(clause) = next(tokens, name).filter(|&at| at < end) {
        let known = ["index", "columns", "all", "set"];
        if !known.iter().any(|word| is_word(&tokens[clause], word)) {
            return false;
        }
    }
    tokens[index].token = Token::make_word("analyze", None);
    blank(tokens, second..second + 1);
    blank(tokens, name + 1..end);
    true
}

/// Replaces a word by words separated by blanks.
fn replace(tokens: &mut Vec<TokenWithSpan>, index: usize, words: &str) -> bool {
    let span = tokens[index].span;
    let token = |word: &str| match word.parse::<u32>() {
        Ok(_) => Token::Number(word.to_owned(), false),
        Err(_) => Token::make_word(word, None),
    };
    let words = words.split(' ').map(|word| TokenWithSpan { token: token(word), span });
    tokens.splice(index..=index, words.collect::<Vec<_>>());
    true
}

fn blank(tokens: &mut [TokenWithSpan], range: std::ops::Range<usize>) {
    for token in &mut tokens[range] {
        token.token = Token::Whitespace(Whitespace::Space);
    }
}
