//! Operator tokens by the rules of PostgreSQL's lexer: the longest sequence of operator
//! characters, without trailing signs unless it contains one of `~!@#%^&|?` or a back-quote. So `1
//! %- 2` has one operator, and `1 *- 2` has two.
//!
//! Operators that `sqlparser` knows remain its tokens; any other operator becomes a
//! [`Token::CustomBinaryOperator`], and so does `OPERATOR(schema.+)`, with the name of the schema
//! before its symbol.

use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::name;
use super::tokens::{is_word, next};
use crate::ast::BinaryOperator;

const CHARACTERS: &str = "+-*/<>=~!@#%^&|`?";
const KEEP_SIGNS: [char; 10] = ['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'];

/// Splits and combines the operator tokens of a text.
pub(super) fn cut(dialect: &dyn Dialect, tokens: &mut Vec<TokenWithSpan>) {
    let mut index = 0;
    while index < tokens.len() {
        let mut text = String::new();
        let mut end = index;
        while let Some(one) = tokens.get(end)
            && (end == index || tokens[end - 1].span.end == one.span.start)
            && let Some(part) = symbol_of(&one.token)
        {
            text.push_str(&part);
            end += 1;
        }
        if let Some(comment) = text.find("--") {
            text.truncate(comment);
            let line = tokens[index].span.start.line;
            let behind = tokens[end..].iter().take_while(|one| one.span.start.line == line);
            end += behind.count();
        }
        let is_settled = text.is_empty() || end == index + 1 && is_known(&text);
        if !is_settled {
            let parts = parts(dialect, &text, &tokens[index]);
            let count = parts.len();
            tokens.splice(index..end, parts);
            end = index + count;
        }
        index = end.max(index + 1);
    }
    (0..tokens.len()).rev().for_each(|index| named(tokens, index));
}

/// Returns the text of a token that is an operator, or a part of one.
fn symbol_of(token: &Token) -> Option<String> {
    if matches!(
        token,
        Token::Word(_) | Token::Whitespace(_) | Token::Number(..) | Token::SingleQuotedString(_)
    ) {
        return None;
    }
    let text = token.to_string();
    (!text.is_empty() && text.chars().all(|c| CHARACTERS.contains(c))).then_some(text)
}

/// Returns whether `sqlparser` has a token for an operator.
fn is_known(symbol: &str) -> bool {
    ["!=", "=>", "@", "|/", "||/"].contains(&symbol) || BinaryOperator::of_grammar(symbol).is_some()
}

/// Returns the tokens of a sequence of operators that begins at `first`.
fn parts(dialect: &dyn Dialect, text: &str, first: &TokenWithSpan) -> Vec<TokenWithSpan> {
    let mut parts = Vec::new();
    let (mut rest, mut span) = (text, first.span);
    while !rest.is_empty() {
        let mut length = rest.len();
        while length > 1
            && rest[..length].ends_with(['+', '-'])
            && !rest[..length - 1].contains(KEEP_SIGNS)
        {
            length -= 1;
        }
        let (symbol, behind) = rest.split_at(length);
        let alone = Tokenizer::new(dialect, symbol).tokenize().ok();
        let alone = alone.filter(|found| is_known(symbol) && found.len() == 1);
        let token = alone.and_then(|found| found.into_iter().next());
        let token = token.unwrap_or_else(|| Token::CustomBinaryOperator(symbol.to_owned()));
        span.end = span.start;
        span.end.column += length as u64;
        parts.push(TokenWithSpan { token, span });
        span.start = span.end;
        rest = behind;
    }
    parts
}

/// Combines `OPERATOR(schema.+)` into one token.
fn named(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    if !is_word(&tokens[index], "operator") {
        return;
    }
    let mut at = next(tokens, index).filter(|&at| tokens[at].token == Token::LParen);
    let mut name = String::new();
    while let Some(inside) = at.and_then(|at| next(tokens, at)) {
        if let Some(symbol) = symbol_of(&tokens[inside].token).or(custom(&tokens[inside].token)) {
            let close = next(tokens, inside).filter(|&at| tokens[at].token == Token::RParen);
            let Some(close) = close else { return };
            name.push_str(&symbol);
            tokens[index].span.end = tokens[close].span.end;
            tokens[index].token = Token::CustomBinaryOperator(name);
            tokens.drain(index + 1..=close);
            return;
        }
        let Token::Word(word) = &tokens[inside].token else { return };
        name.push_str(&name::fold(&word.value, word.quote_style.is_some()));
        name.push('.');
        at = next(tokens, inside).filter(|&at| tokens[at].token == Token::Period);
    }
}

fn custom(token: &Token) -> Option<String> {
    match token {
        Token::CustomBinaryOperator(symbol) => Some(symbol.clone()),
        _ => None,
    }
}
