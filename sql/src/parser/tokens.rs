//! Navigation in the tokens of a text, ignoring white space.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::key_words;

use crate::ast::SqlValueFunction;

/// Returns the parenthesis that closes the one at `open`, if there is one and the parentheses are
/// not empty.
pub(super) fn parenthesis_of(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0;
    for at in open..tokens.len() {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return next(tokens, open).filter(|&inside| inside < at).map(|_| at);
        }
    }
    None
}

/// Returns whether a token is this word, unquoted.
pub(super) fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// Returns whether an operand may end with a token: a constant, a name, a closing parenthesis.
pub(super) fn ends_operand(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::Word(word) => {
            word.quote_style.is_some()
                || key_words::is_column_name(&word.value.to_ascii_lowercase())
                || sql_value_function(&word.value.to_ascii_lowercase()).is_some()
                || ["null", "true", "false", "end"].iter().any(|word| is_word(token, word))
        }
        Token::RParen | Token::RBracket | Token::Number(..) | Token::Placeholder(_) => true,
        token => matches!(token, Token::SingleQuotedString(_)),
    }
}

/// Returns whether a token is white space or a comment.
pub(super) fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// Returns the next token that is not white space.
pub(super) fn next(tokens: &[TokenWithSpan], index: usize) -> Option<usize> {
    (index + 1..tokens.len()).find(|&index| !is_blank(&tokens[index]))
}

/// Returns the last token before this one that is not white space.
pub(super) fn previous(tokens: &[TokenWithSpan], index: usize) -> Option<usize> {
    (0..index).rev().find(|&index| !is_blank(&tokens[index]))
}

/// Returns the function of a keyword that is a call without parentheses.
pub(super) fn sql_value_function(word: &str) -> Option<SqlValueFunction> {
    Some(match word {
        "current_date" => SqlValueFunction::CurrentDate,
        "current_time" => SqlValueFunction::CurrentTime,
        "current_timestamp" => SqlValueFunction::CurrentTimestamp,
        "localtime" => SqlValueFunction::LocalTime,
        "localtimestamp" => SqlValueFunction::LocalTimestamp,
        "current_user" => SqlValueFunction::CurrentUser,
        "current_role" => SqlValueFunction::CurrentRole,
        "user" => SqlValueFunction::User,
        "session_user" => SqlValueFunction::SessionUser,
        "current_catalog" => SqlValueFunction::CurrentCatalog,
        "current_schema" => SqlValueFunction::CurrentSchema,
        _ => return None,
    })
}
