//! Forms of PostgreSQL that the parser of `sqlparser` does not know, written in others that it
//! does, before it sees the tokens.
//!
//! A word that begins with the character zero cannot come from a client, so such words carry what
//! the other form has no place for. What is put in stands where that was which it is for, so that
//! positions still ascend.

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Stands for the word DISTINCT of GROUP BY DISTINCT.
pub(super) const DISTINCT_GROUPS: &str = "\0distinct";

/// Stands for the words ROWS FROM, as the name of a function.
pub(super) const ROWS_FROM: &str = "\0rows from";

/// Rewrites all tokens of a text.
pub(super) fn rewrite(tokens: &mut [TokenWithSpan]) {
    for index in 0..tokens.len() {
        if is_word(&tokens[index], "group") {
            group_by(tokens, index);
        } else if is_word(&tokens[index], "rows") {
            rows_from(tokens, index);
        }
    }
}

/// `GROUP BY ALL` is GROUP BY, and `GROUP BY DISTINCT` has a word of ours.
fn group_by(tokens: &mut [TokenWithSpan], index: usize) {
    let Some(by) = next(tokens, index).filter(|&at| is_word(&tokens[at], "by")) else { return };
    let Some(after) = next(tokens, by) else { return };
    if is_word(&tokens[after], "all") {
        tokens[after].token = Token::Whitespace(Whitespace::Space);
    } else if is_word(&tokens[after], "distinct") {
        tokens[after].token = Token::make_word(DISTINCT_GROUPS, None);
    }
}

/// `ROWS FROM (` has a name of ours for the words.
fn rows_from(tokens: &mut [TokenWithSpan], index: usize) {
    let Some(from) = next(tokens, index).filter(|&at| is_word(&tokens[at], "from")) else { return };
    if next(tokens, from).is_some_and(|at| tokens[at].token == Token::LParen) {
        tokens[index].token = Token::make_word(ROWS_FROM, None);
        tokens[from].token = Token::Whitespace(Whitespace::Space);
    }
}

/// Returns whether a token is this word, without quotes.
pub(super) fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// Returns the next token that is no white space.
pub(super) fn next(tokens: &[TokenWithSpan], index: usize) -> Option<usize> {
    (index + 1..tokens.len()).find(|&index| !is_space(&tokens[index]))
}

/// Returns the last token before this one that is no white space.
pub(super) fn previous(tokens: &[TokenWithSpan], index: usize) -> Option<usize> {
    (0..index).rev().find(|&index| !is_space(&tokens[index]))
}
