//! Token rewriting for FROM; a part of [`rewrite`](super::rewrite).

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};
use types::key_words;

use super::source::ScriptText;
use super::tokens::{is_word, next, parenthesis_of, previous};

/// The marker function of ROWS FROM.
pub(super) const ROWS_FROM: &str = "\0rows from";

/// The marker function of a call with a column definition list: `f(…) AS (a int)` becomes
/// `defined(f(…), a => NULL::int)`.
pub(super) const DEFINED: &str = "\0defined";

/// The marker of dynamic columns: `t (a int, f.b text)` becomes `t(marker, a => NULL::int, "f\0b"
/// => NULL::text)`.
pub(super) const DYNAMIC: &str = "\0dynamic";

/// The separator of family and name of a dynamic column.
pub(super) const FAMILY_SEPARATOR: char = '\0';

/// The markers of the forms of FOR SYSTEM_TIME other than AS OF, which become `AS OF marker OR
/// begin OR end`. OR has the lowest precedence, and cannot be part of a time.
pub(super) const FROM_TO: &str = "\0from to";
pub(super) const BETWEEN: &str = "\0between";
pub(super) const ALL_VERSIONS: &str = "\0all";

/// Rewrites `FOR SYSTEM_TIME FROM … TO …`, `BETWEEN … AND …` and `ALL` at the word SYSTEM_TIME.
pub(super) fn system_time(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    let Some(form) = next(tokens, index) else { return };
    let is = |word: &str| is_word(&tokens[form], word);
    let (marker, separator) = match () {
        () if is("from") => (FROM_TO, Some("to")),
        () if is("between") => (BETWEEN, Some("and")),
        () if is("all") => (ALL_VERSIONS, None),
        () => return,
    };
    if let Some(word) = separator {
        let Some(separator) = separator_behind(tokens, form, word) else { return };
        tokens[separator].token = Token::make_word("OR", None);
    }
    let span = tokens[form].span;
    let mut words: Vec<Token> = [("AS", None), ("OF", None), (marker, Some('"'))]
        .into_iter()
        .map(|(word, quote)| Token::make_word(word, quote))
        .collect();
    words.extend(separator.map(|_| Token::make_word("OR", None)));
    let words = words.into_iter().map(|token| TokenWithSpan { token, span });
    tokens.splice(form..=form, words);
}

/// Rewrites the dynamic columns of the table whose name is at `index`, if it has any.
pub(super) fn dynamic_columns(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    let Some(open) = next(tokens, index).filter(|&at| tokens[at].token == Token::LParen) else {
        return;
    };
    let Some(close) = parenthesis_of(tokens, open) else { return };
    let Some(columns) = declared_columns(tokens, open, close) else { return };
    if !is_entry_of_from(tokens, index) {
        return;
    }
    for (first, last) in columns.into_iter().rev() {
        let span = tokens[first].span;
        let words = [Token::RArrow, Token::make_word("NULL", None), Token::DoubleColon];
        let words = words.map(|token| TokenWithSpan { token, span });
        tokens.splice(last + 1..last + 1, words);
        if let (Token::Word(family), Token::Word(name)) =
            (&tokens[first].token, &tokens[last].token)
            && first != last
        {
            let both = format!("{}{FAMILY_SEPARATOR}{}", word_name(family), word_name(name));
            let token = Token::make_word(&both, Some('"'));
            tokens.splice(first..=last, [TokenWithSpan { token, span }]);
        }
    }
    let span = tokens[open].span;
    let marker = [Token::make_word(DYNAMIC, Some('"')), Token::Comma];
    tokens.splice(open + 1..open + 1, marker.map(|token| TokenWithSpan { token, span }));
}

/// Returns the first and the last token of the name of each column in `(a int, f.b text)`; `None`
/// if the list has another form.
fn declared_columns(
    tokens: &[TokenWithSpan],
    open: usize,
    close: usize,
) -> Option<Vec<(usize, usize)>> {
    // Words of conditions and aggregates, which an argument of a function may contain, and first
    // words of types of constants.
    const NO_TYPES: [&str; 13] = [
        "is", "isnull", "notnull", "and", "or", "in", "like", "ilike", "between", "similar",
        "order", "at", "from",
    ];
    const NO_NAMES: [&str; 10] = [
        "values",
        "row",
        "exists",
        "interval",
        "time",
        "timestamp",
        "character",
        "char",
        "bit",
        "national",
    ];
    let names_column = |at: usize| match &tokens[at].token {
        Token::Word(word) => {
            let lower = word.value.to_ascii_lowercase();
            let may_name = key_words::is_column_name(&lower) && !NO_NAMES.contains(&&*lower);
            word.quote_style.is_some() || may_name
        }
        _ => false,
    };
    let names_type = |at: usize| {
        matches!(tokens[at].token, Token::Word(_))
            && !NO_TYPES.iter().any(|word| is_word(&tokens[at], word))
    };
    let (mut columns, mut at) = (Vec::new(), open);
    loop {
        let first = next(tokens, at).filter(|&at| names_column(at))?;
        let period = next(tokens, first).filter(|&at| tokens[at].token == Token::Period);
        let last = match period {
            None => first,
            Some(period) => {
                next(tokens, period).filter(|&at| matches!(tokens[at].token, Token::Word(_)))?
            }
        };
        let type_name = next(tokens, last).filter(|&at| at < close && names_type(at))?;
        columns.push((first, last));
        let mut depth = 0_usize;
        at = type_name;
        while at < close && (depth > 0 || tokens[at].token != Token::Comma) {
            match tokens[at].token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.checked_sub(1)?,
                _ => {}
            }
            at += 1;
        }
        if at >= close {
            return Some(columns);
        }
    }
}

/// Returns whether the name at `index`, which may be qualified, is an entry of FROM.
fn is_entry_of_from(tokens: &[TokenWithSpan], index: usize) -> bool {
    let begins = |at: usize| ["from", "join"].iter().any(|word| is_word(&tokens[at], word));
    let is_copy = next(tokens, 0).is_some_and(|at| is_word(&tokens[at], "copy"))
        || tokens.first().is_some_and(|first| is_word(first, "copy"));
    let mut at = index;
    while let Some(period) = previous(tokens, at).filter(|&at| tokens[at].token == Token::Period) {
        let Some(qualifier) = previous(tokens, period) else { return false };
        at = qualifier;
    }
    // An entry in parentheses: FROM (a JOIN b).
    let mut before = previous(tokens, at);
    while let Some(at) = before.filter(|&at| tokens[at].token == Token::LParen) {
        before = previous(tokens, at);
    }
    let Some(before) = before.filter(|_| !is_copy) else { return false };
    if begins(before) {
        return true;
    }
    // A list of entries.
    let mut depth = 0_usize;
    for at in (0..=before).rev() {
        match tokens[at].token {
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket if depth == 0 => return false,
            Token::LParen | Token::LBracket => depth -= 1,
            Token::SemiColon => return false,
            _ if depth > 0 => {}
            _ if begins(at) => return tokens[before].token == Token::Comma,
            _ if ["select", "where", "by", "having", "set", "returning", "values"]
                .iter()
                .any(|word| is_word(&tokens[at], word)) =>
            {
                return false;
            }
            _ => {}
        }
    }
    false
}

/// Returns the name that a word means.
fn word_name(word: &Word) -> String {
    match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_lowercase(),
    }
}

/// Returns the position of a word outside parentheses, and not in a type `interval … to …`.
fn separator_behind(tokens: &[TokenWithSpan], index: usize, word: &str) -> Option<usize> {
    const FIELDS: [&str; 5] = ["month", "day", "hour", "minute", "second"];
    let mut depth = 0_usize;
    for at in index + 1..tokens.len() {
        match tokens[at].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.checked_sub(1)?,
            Token::SemiColon => return None,
            _ if depth == 0 && is_word(&tokens[at], word) => {
                let behind = next(tokens, at);
                let is_field =
                    behind.is_some_and(|at| FIELDS.iter().any(|f| is_word(&tokens[at], f)));
                if !is_field {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Aliases of JOIN … USING, by the position of the first column in USING.
pub(super) type JoinAliases = Vec<(usize, TokenWithSpan)>;

/// Rewrites `ROWS FROM (` to a call of the marker function.
pub(super) fn rows_from(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    let Some(from) = next(tokens, index).filter(|&at| is_word(&tokens[at], "from")) else { return };
    let Some(open) = next(tokens, from).filter(|&at| tokens[at].token == Token::LParen) else {
        return;
    };
    // It may be a column before FROM.
    let is_entry = next(tokens, open).is_some_and(|at| {
        let begins = ["select", "values", "with", "table"];
        let is_query = begins.iter().any(|word| is_word(&tokens[at], word));
        matches!(tokens[at].token, Token::Word(_)) && !is_query
    });
    let is_behind = previous(tokens, index).is_some_and(|at| {
        let before = ["from", "join", "lateral", "using"];
        matches!(tokens[at].token, Token::Comma | Token::LParen)
            || before.iter().any(|word| is_word(&tokens[at], word))
    });
    if !is_entry || !is_behind {
        return;
    }
    tokens[index].token = Token::make_word(ROWS_FROM, None);
    tokens[from].token = Token::Whitespace(Whitespace::Space);
    let mut begin = open + 1;
    let mut at = begin;
    let mut depth = 0_usize;
    while at < tokens.len() {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => begin = at + 1,
            _ if depth == 0 && is_word(&tokens[at], "as") => {
                let Some(end) = definitions(tokens, begin, at) else { return };
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Rewrites a call that begins at `begin` with the column definition list after the word AS at
/// `index`; returns the end of the list.
fn definitions(tokens: &mut Vec<TokenWithSpan>, begin: usize, index: usize) -> Option<usize> {
    let open = next(tokens, index).filter(|&at| tokens[at].token == Token::LParen)?;
    let close = parenthesis_of(tokens, open)?;
    let mut names = vec![next(tokens, open)?];
    let mut depth = 0_usize;
    for at in open + 1..close {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => names.push(next(tokens, at)?),
            _ => {}
        }
    }
    tokens[index].token = Token::Comma;
    tokens[open].token = Token::Whitespace(Whitespace::Space);
    let added = names.len() * 3;
    for name in names.into_iter().rev() {
        let span = tokens[name].span;
        let words = [Token::RArrow, Token::make_word("NULL", None), Token::DoubleColon];
        let words = words.map(|token| TokenWithSpan { token, span });
        tokens.splice(name + 1..name + 1, words);
    }
    let first = next(tokens, begin - 1)?;
    let span = tokens[first].span;
    let words = [Token::make_word(DEFINED, None), Token::LParen];
    tokens.splice(first..first, words.map(|token| TokenWithSpan { token, span }));
    Some(close + added + 2)
}

/// Removes the alias from each `JOIN … USING (a, b) AS alias`.
pub(super) fn take_join_aliases(
    tokens: &mut [TokenWithSpan],
    source: &ScriptText<'_>,
) -> JoinAliases {
    let mut aliases = JoinAliases::new();
    for index in 0..tokens.len() {
        if !is_word(&tokens[index], "using") {
            continue;
        }
        let Some((first, close)) = names_behind(tokens, index) else { continue };
        let Some(word) = next(tokens, close).filter(|&at| is_word(&tokens[at], "as")) else {
            continue;
        };
        let Some(name) = next(tokens, word) else { continue };
        if !matches!(tokens[name].token, Token::Word(_)) {
            continue;
        }
        aliases.push((source.position(tokens[first].span.start), tokens[name].clone()));
        for at in [word, name] {
            tokens[at].token = Token::Whitespace(Whitespace::Space);
        }
    }
    aliases
}

/// Returns the first of the names in the parentheses after a word, and the closing parenthesis.
fn names_behind(tokens: &[TokenWithSpan], index: usize) -> Option<(usize, usize)> {
    let open = next(tokens, index).filter(|&at| tokens[at].token == Token::LParen)?;
    let close = parenthesis_of(tokens, open)?;
    let is_list = tokens[open + 1..close]
        .iter()
        .all(|token| matches!(token.token, Token::Word(_) | Token::Comma | Token::Whitespace(_)));
    let words =
        tokens[open + 1..close].iter().filter(|token| matches!(token.token, Token::Word(_)));
    let commas = tokens[open + 1..close].iter().filter(|token| token.token == Token::Comma);
    let is_joined = previous(tokens, index).is_some();
    let is_list = is_list && is_joined && words.count() == commas.count() + 1;
    is_list.then_some((next(tokens, open)?, close))
}
