//! Token rewriting: PostgreSQL syntax that `sqlparser` does not know is replaced by syntax that it
//! does, before it parses the tokens.
//!
//! A word that begins with a NUL character cannot come from a client, so such marker words carry
//! information that the replacement has no syntax for. Inserted tokens have the position of the
//! token that they belong to, so that positions remain ascending.

use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use types::key_words;

use super::name;
use super::rewrite_from::{dynamic_columns, rows_from, system_time};
use super::tokens::{ends_operand, is_blank, is_word, next, parenthesis_of, previous};

/// The marker of GROUP BY DISTINCT.
pub(super) const DISTINCT_GROUPS: &str = "\0distinct";

/// The marker of an empty select list.
pub(super) const EMPTY_LIST: &str = "\0nothing";

/// The marker function of FETCH … WITH TIES; its argument is the row count.
pub(super) const WITH_TIES: &str = "\0with ties";

/// The marker function of TABLESAMPLE; its arguments are the method as a call, and the seed.
pub(super) const SAMPLE: &str = "\0sample";

/// The marker of FOR NO KEY UPDATE, before the name after OF, or in its place.
pub(super) const NO_KEY: &str = "\0no key";

/// The marker of FOR KEY SHARE, likewise.
pub(super) const KEY: &str = "\0key";

/// The field name for all fields: `(row).*`.
pub(super) const ALL_FIELDS: &str = crate::ast::ALL_FIELDS;

/// Rewrites all tokens of a text.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut index = 0;
    while index < tokens.len() {
        if is_word(&tokens[index], "group") {
            group_by(tokens, index);
        } else if is_word(&tokens[index], "rows") {
            rows_from(tokens, index);
        } else if is_word(&tokens[index], "table") {
            table_query(tokens, index);
        } else if is_word(&tokens[index], "tablesample") {
            table_sample(tokens, index);
        } else if is_word(&tokens[index], "substring") {
            similar_substring(tokens, index);
        } else if is_word(&tokens[index], "only") {
            only(tokens, index);
        } else if tokens[index].token == Token::Period {
            all_fields(tokens, index);
            index = whole_row(tokens, index);
        } else if is_word(&tokens[index], "as") {
            column_definitions(tokens, index);
        } else if ["preceding", "following"].iter().any(|word| is_word(&tokens[index], word)) {
            index = frame_offset(tokens, index);
        } else if is_word(&tokens[index], "system_time") {
            if previous(tokens, index).is_some_and(|at| is_word(&tokens[at], "for")) {
                system_time(tokens, index);
            }
        } else if is_word(&tokens[index], "for") {
            index = locking(tokens, index);
        } else if is_word(&tokens[index], "fetch") {
            fetch_expression(tokens, index);
        } else if is_word(&tokens[index], "select") {
            empty_list(tokens, index);
        } else if is_word(&tokens[index], "array") {
            array_type(tokens, index);
        } else if is_word(&tokens[index], "isnull") {
            is_null(tokens, index);
        }
        if matches!(tokens[index].token, Token::Word(_)) {
            dynamic_columns(tokens, index);
        }
        index += 1;
    }
}

/// Encloses the offset before PRECEDING or FOLLOWING in parentheses if it begins with a string, as
/// `'1 day'::interval` does: `sqlparser` would expect the word INTERVAL. Returns the new index of
/// PRECEDING or FOLLOWING.
fn frame_offset(tokens: &mut Vec<TokenWithSpan>, index: usize) -> usize {
    const BEFORE: [&str; 5] = ["rows", "range", "groups", "between", "and"];
    let mut begin = index;
    let mut depth = 0_usize;
    while let Some(at) = previous(tokens, begin) {
        match tokens[at].token {
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket if depth == 0 => return index,
            Token::LParen | Token::LBracket => depth -= 1,
            _ if depth == 0 && BEFORE.iter().any(|word| is_word(&tokens[at], word)) => break,
            _ => {}
        }
        begin = at;
    }
    let is_text = matches!(tokens[begin].token, Token::SingleQuotedString(_));
    let Some(end) = previous(tokens, index).filter(|_| is_text) else { return index };
    let close = TokenWithSpan { token: Token::RParen, span: tokens[end].span };
    let open = TokenWithSpan { token: Token::LParen, span: tokens[begin].span };
    tokens.insert(end + 1, close);
    tokens.insert(begin, open);
    index + 2
}

/// Rewrites `substring(x SIMILAR p ESCAPE e)` to a call with three arguments.
fn similar_substring(tokens: &mut [TokenWithSpan], index: usize) {
    let Some(open) = next(tokens, index).filter(|at| tokens[*at].token == Token::LParen) else {
        return;
    };
    let mut depth = 0;
    let mut is_similar = false;
    for at in open..tokens.len() {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
        let to = next(tokens, at).is_some_and(|at| is_word(&tokens[at], "to"));
        let similar = !is_similar && is_word(&tokens[at], "similar") && !to;
        if depth == 1 && (similar || is_similar && is_word(&tokens[at], "escape")) {
            is_similar = true;
            tokens[at].token = Token::Comma;
        }
    }
}

/// Rewrites `integer ARRAY` to `integer[]`, and `integer ARRAY[4]` to `integer[4]`. Elsewhere
/// ARRAY before brackets or a query begins a constructor.
fn array_type(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    if has_length(tokens, index) && previous(tokens, index).is_some_and(|at| ends_type(tokens, at))
    {
        tokens[index].token = Token::Whitespace(Whitespace::Space);
        return;
    }
    let constructs = next(tokens, index)
        .is_some_and(|at| matches!(tokens[at].token, Token::LBracket | Token::LParen));
    // After AS it is a name.
    let follows = previous(tokens, index).is_some_and(|at| {
        matches!(tokens[at].token, Token::Word(_) | Token::RParen) && !is_word(&tokens[at], "as")
    });
    if constructs || !follows {
        return;
    }
    let span = tokens[index].span;
    tokens[index].token = Token::LBracket;
    tokens.insert(index + 1, TokenWithSpan { token: Token::RBracket, span });
}

/// Returns whether a number in brackets follows.
fn has_length(tokens: &[TokenWithSpan], index: usize) -> bool {
    let mut at = index;
    let mut follows = |is_meant: fn(&Token) -> bool| {
        let found = next(tokens, at).filter(|&at| is_meant(&tokens[at].token));
        at = found.unwrap_or(at);
        found.is_some()
    };
    follows(|token| *token == Token::LBracket)
        && follows(|token| matches!(token, Token::Number(..)))
        && follows(|token| *token == Token::RBracket)
}

/// Returns whether a type name may end with a token: a word that is not a keyword that precedes
/// expressions, or the modifier after such a word.
fn ends_type(tokens: &[TokenWithSpan], index: usize) -> bool {
    const BEFORE_EXPRESSIONS: [&str; 3] = ["between", "by", "return"];
    let of_modifier = |token: &Token| {
        matches!(token, Token::Number(..) | Token::Comma | Token::Minus | Token::Whitespace(_))
    };
    let word = match tokens[index].token {
        Token::RParen => {
            let open = (0..index).rev().find(|&at| !of_modifier(&tokens[at].token));
            let open = open.filter(|&at| tokens[at].token == Token::LParen);
            open.and_then(|open| previous(tokens, open))
        }
        _ => Some(index),
    };
    let Some(Token::Word(word)) = word.map(|at| &tokens[at].token) else { return false };
    let name = word.value.to_ascii_lowercase();
    word.quote_style.is_some()
        || key_words::is_column_name(&name) && !BEFORE_EXPRESSIONS.contains(&name.as_str())
}

/// Removes ONLY before a table: there is no table inheritance.
fn only(tokens: &mut [TokenWithSpan], index: usize) {
    const BEFORE: [&str; 9] =
        ["from", "join", "into", "update", "table", "truncate", "on", "using", "exists"];
    let follows = previous(tokens, index).is_some_and(|at| {
        tokens[at].token == Token::Comma || BEFORE.iter().any(|word| is_word(&tokens[at], word))
    });
    let names = next(tokens, index).is_some_and(|at| matches!(tokens[at].token, Token::Word(_)));
    if follows && names {
        tokens[index].token = Token::Whitespace(Whitespace::Space);
    }
}

/// The marker of the missing alias in `f(…) AS (a int, …)`.
pub(super) const NO_ALIAS: &str = "\0no alias";

/// Inserts an alias into `f(…) AS (a int, …)`.
fn column_definitions(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    const QUERIES: [&str; 8] =
        ["select", "with", "values", "table", "insert", "update", "delete", "merge"];
    let behind_call = previous(tokens, index).is_some_and(|at| tokens[at].token == Token::RParen);
    let Some(paren) = next(tokens, index).filter(|_| behind_call) else { return };
    let name = next(tokens, paren).filter(|_| tokens[paren].token == Token::LParen);
    let type_name = name.and_then(|at| next(tokens, at));
    let is_word_at =
        |at: Option<usize>| at.is_some_and(|at| matches!(tokens[at].token, Token::Word(_)));
    let is_query = name.is_some_and(|at| QUERIES.iter().any(|word| is_word(&tokens[at], word)));
    if is_word_at(name) && is_word_at(type_name) && !is_query {
        let alias = Token::make_word(NO_ALIAS, Some('"'));
        let own = tokens[index].token.clone();
        put(tokens, index, vec![own, alias]);
    }
}

/// Rewrites `FETCH FIRST (expression) ROWS ONLY` to LIMIT; WITH TIES becomes a marker function.
fn fetch_expression(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    let words = |at: usize, words: &[&str]| {
        let next = next(tokens, at)?;
        words.iter().any(|word| is_word(&tokens[next], word)).then_some(next)
    };
    let Some(first) = words(index, &["first", "next"]) else { return };
    let Some(open) = next(tokens, first).filter(|&at| tokens[at].token == Token::LParen) else {
        return;
    };
    let Some(close) = parenthesis_of(tokens, open) else { return };
    let Some(rows) = words(close, &["row", "rows"]) else { return };
    let ties = words(rows, &["with"]).and_then(|with| Some((with, words(with, &["ties"])?)));
    let taken = match (ties, words(rows, &["only"])) {
        (Some((with, ties)), _) => [first, rows, with, ties].to_vec(),
        (None, Some(only)) => [first, rows, only].to_vec(),
        (None, None) => return,
    };
    taken.into_iter().for_each(|at| tokens[at].token = Token::Whitespace(Whitespace::Space));
    tokens[index].token = Token::make_word("LIMIT", None);
    if ties.is_some() {
        // The parentheses of the expression remain: it may be a query.
        tokens[rows].token = Token::RParen;
        put(tokens, first, vec![Token::make_word(WITH_TIES, Some('"')), Token::LParen]);
    }
}

/// Inserts a marker item into a `SELECT` without a list.
fn empty_list(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    const BEHIND: [&str; 12] = [
        "union",
        "intersect",
        "except",
        "where",
        "group",
        "having",
        "window",
        "order",
        "limit",
        "offset",
        "fetch",
        "for",
    ];
    let is_empty = match next(tokens, index) {
        None => true,
        Some(at) => match &tokens[at].token {
            Token::EOF | Token::SemiColon | Token::RParen => true,
            _ => BEHIND.iter().any(|word| is_word(&tokens[at], word)),
        },
    };
    if is_empty {
        let own = tokens[index].token.clone();
        put(tokens, index, vec![own, Token::make_word(EMPTY_LIST, Some('"'))]);
    }
}

/// Rewrites `(row).*` to a marker field.
fn all_fields(tokens: &mut [TokenWithSpan], index: usize) {
    let of_value = previous(tokens, index)
        .is_some_and(|at| matches!(tokens[at].token, Token::RParen | Token::RBracket));
    if let Some(star) = next(tokens, index).filter(|_| of_value)
        && tokens[star].token == Token::Mul
    {
        tokens[star].token = Token::make_word(ALL_FIELDS, Some('"'));
    }
}

/// Encloses `t.*` before an operator in parentheses: it is not a list of columns. Returns the new
/// index of the period.
fn whole_row(tokens: &mut Vec<TokenWithSpan>, index: usize) -> usize {
    const OPERATORS: [&str; 2] = ["is", "in"];
    let Some(star) = next(tokens, index).filter(|&at| tokens[at].token == Token::Mul) else {
        return index;
    };
    let is_operand = next(tokens, star).is_some_and(|at| match tokens[at].token {
        Token::DoubleColon | Token::Eq | Token::Neq => true,
        Token::Lt | Token::Gt | Token::LtEq | Token::GtEq => true,
        Token::CustomBinaryOperator(_) => true,
        _ => OPERATORS.iter().any(|word| is_word(&tokens[at], word)),
    });
    let Some(mut begin) = previous(tokens, index).filter(|_| is_operand) else { return index };
    while let Some(dot) = previous(tokens, begin).filter(|&at| tokens[at].token == Token::Period) {
        let Some(part) = previous(tokens, dot).filter(|&at| is_name(&tokens[at])) else { break };
        begin = part;
    }
    let close = TokenWithSpan { token: Token::RParen, span: tokens[star].span };
    let open = TokenWithSpan { token: Token::LParen, span: tokens[begin].span };
    tokens.insert(star + 1, close);
    tokens.insert(begin, open);
    index + 1
}

/// Rewrites `ISNULL` after an operand to `IS NULL`; elsewhere it may be the name of a function or,
/// after AS, of a column.
fn is_null(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    let is_behind = previous(tokens, index).is_some_and(|at| ends_operand(&tokens[at]));
    let is_called = next(tokens, index).is_some_and(|at| {
        matches!(tokens[at].token, Token::LParen | Token::Period | Token::RArrow)
    });
    if is_behind && !is_called {
        put(tokens, index, vec![Token::make_word("IS", None), Token::make_word("NULL", None)]);
    }
}

/// Replaces a token by others.
fn put(tokens: &mut Vec<TokenWithSpan>, index: usize, words: Vec<Token>) {
    let span = tokens[index].span;
    let words = words.into_iter().map(|token| TokenWithSpan { token, span });
    tokens.splice(index..=index, words);
}

/// Rewrites `TABLE t` to `SELECT * FROM t` where a query may begin.
fn table_query(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    const BEFORE: [&str; 11] = [
        "union",
        "intersect",
        "except",
        "all",
        "distinct",
        "as",
        "for",
        "explain",
        "analyze",
        "verbose",
        "value",
    ];
    let named = next(tokens, index).is_some_and(|at| match &tokens[at].token {
        Token::Word(word) => {
            word.quote_style.is_some() || key_words::is_column_name(&name::fold(&word.value, false))
        }
        _ => false,
    });
    let begins = match previous(tokens, index) {
        None => true,
        Some(at) => match &tokens[at].token {
            Token::SemiColon | Token::LParen => true,
            // REINDEX (VERBOSE) TABLE t
            Token::RParen => !is_of(tokens, at, "reindex"),
            // INSERT INTO t TABLE u
            Token::Word(_) if BEFORE.iter().any(|word| is_word(&tokens[at], word)) => true,
            Token::Word(_) => is_target(tokens, at),
            _ => false,
        },
    };
    if named && begins {
        let word = |text| Token::make_word(text, None);
        put(tokens, index, vec![word("SELECT"), Token::Mul, word("FROM")]);
    }
}

/// Returns whether a token is in a statement that begins with a word.
fn is_of(tokens: &[TokenWithSpan], index: usize, word: &str) -> bool {
    let end = (0..index).rev().find(|&at| tokens[at].token == Token::SemiColon);
    let first = match end {
        Some(end) => next(tokens, end),
        None if tokens.first().is_some_and(|first| !is_blank(first)) => Some(0),
        None => next(tokens, 0),
    };
    first.is_some_and(|at| is_word(&tokens[at], word))
}

/// Returns whether a word ends the target of INSERT: a name, or its alias.
fn is_target(tokens: &[TokenWithSpan], mut index: usize) -> bool {
    while let Some(before) = previous(tokens, index) {
        if is_word(&tokens[before], "into") {
            return true;
        }
        let goes_on = tokens[before].token == Token::Period || is_word(&tokens[before], "as");
        match previous(tokens, before).filter(|_| goes_on) {
            Some(word) => index = word,
            None => return false,
        }
    }
    false
}

/// Rewrites `FOR UPDATE OF a, b NOWAIT` to one clause for each name; NO KEY and KEY become
/// markers. Returns the last token of the clause.
fn locking(tokens: &mut Vec<TokenWithSpan>, index: usize) -> usize {
    let words = |at: usize, words: &[&str]| {
        let mut last = at;
        for word in words {
            last = next(tokens, last).filter(|&at| is_word(&tokens[at], word))?;
        }
        Some(last)
    };
    let forms: [(&[&str], &str, &str); 4] = [
        (&["update"], "UPDATE", ""),
        (&["share"], "SHARE", ""),
        (&["no", "key", "update"], "UPDATE", NO_KEY),
        (&["key", "share"], "SHARE", KEY),
    ];
    let found = forms.iter().find_map(|(form, strength, marker)| {
        words(index, form).map(|last| (last, *strength, *marker))
    });
    let Some((last, strength, marker)) = found else { return index };
    let (mut names, mut end) = match words(last, &["of"]) {
        Some(of) => locked_names(tokens, of),
        None => (Vec::new(), last),
    };
    if marker.is_empty() && names.len() < 2 {
        return end;
    }
    let mut wait = Vec::new();
    for form in [&["nowait"][..], &["skip", "locked"]] {
        if let Some(last) = words(end, form) {
            wait = form.iter().map(|word| Token::make_word(word, None)).collect();
            end = last;
        }
    }
    if names.is_empty() {
        names.push(Vec::new());
    }
    let mut clauses: Vec<TokenWithSpan> = Vec::new();
    for name in names {
        // Inserted words have the position of the name.
        let span = match (name.first(), clauses.is_empty()) {
            (Some(first), false) => first.span,
            _ => tokens[index].span,
        };
        let at = |token| TokenWithSpan { token, span };
        let word = |text: &str| at(Token::make_word(text, None));
        clauses.extend([word("FOR"), word(strength), word("OF")]);
        if !marker.is_empty() {
            clauses.push(word(marker));
            clauses.extend((!name.is_empty()).then(|| at(Token::Period)));
        }
        let behind = name.last().map_or(span, |last| last.span);
        clauses.extend(name);
        let wait = wait.iter().cloned();
        clauses.extend(wait.map(|token| TokenWithSpan { token, span: behind }));
    }
    let count = clauses.len();
    tokens.splice(index..=end, clauses);
    index + count - 1
}

/// Returns the names after the word OF at `index`, and the last token of them.
fn locked_names(tokens: &[TokenWithSpan], index: usize) -> (Vec<Vec<TokenWithSpan>>, usize) {
    let mut names = Vec::new();
    let mut at = index;
    loop {
        let mut name: Vec<TokenWithSpan> = Vec::new();
        while let Some(part) = next(tokens, at) {
            let is_part = match tokens[part].token {
                Token::Word(_) => !name.last().is_some_and(is_name),
                Token::Period => true,
                _ => false,
            };
            if !is_part {
                break;
            }
            name.push(tokens[part].clone());
            at = part;
        }
        names.push(name);
        match next(tokens, at).filter(|&at| tokens[at].token == Token::Comma) {
            Some(comma) => at = comma,
            None => return (names, at),
        }
    }
}

fn is_name(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Word(_))
}

/// Rewrites `GROUP BY ALL` to GROUP BY, and `GROUP BY DISTINCT` to a marker.
fn group_by(tokens: &mut [TokenWithSpan], index: usize) {
    let Some(by) = next(tokens, index).filter(|&at| is_word(&tokens[at], "by")) else { return };
    let Some(after) = next(tokens, by) else { return };
    if is_word(&tokens[after], "all") {
        tokens[after].token = Token::Whitespace(Whitespace::Space);
    } else if is_word(&tokens[after], "distinct") {
        tokens[after].token = Token::make_word(DISTINCT_GROUPS, None);
    }
}

/// Rewrites `TABLESAMPLE method (…) REPEATABLE (seed)` to a sample whose size is the marker call
/// `sample(method (…), seed)`.
fn table_sample(tokens: &mut Vec<TokenWithSpan>, index: usize) {
    let Some(method) = next(tokens, index).filter(|&at| is_name(&tokens[at])) else { return };
    let mut name = method;
    while let Some(dot) = next(tokens, name).filter(|&at| tokens[at].token == Token::Period) {
        let Some(part) = next(tokens, dot).filter(|&at| is_name(&tokens[at])) else { return };
        name = part;
    }
    let Some(mut end) = next(tokens, name).and_then(|at| parenthesis_of(tokens, at)) else {
        return;
    };
    let mut seed = None;
    if let Some(word) = next(tokens, end).filter(|&at| is_word(&tokens[at], "repeatable")) {
        let Some(close) = next(tokens, word).and_then(|at| parenthesis_of(tokens, at)) else {
            return;
        };
        (seed, end) = (Some(word), close);
    }
    let span = tokens[end].span;
    let close = TokenWithSpan { token: Token::RParen, span };
    tokens.splice(end + 1..end + 1, [close.clone(), close]);
    if let Some(word) = seed {
        tokens[word].token = Token::Comma;
    }
    let span = tokens[method].span;
    let open = [Token::LParen, Token::make_word(SAMPLE, None), Token::LParen];
    tokens.splice(method..method, open.map(|token| TokenWithSpan { token, span }));
}

/// Returns whether a name is a marker.
pub(super) fn is_own(name: &ObjectName, own: &str) -> bool {
    let [part] = name.0.as_slice() else { return false };
    part.as_ident().is_some_and(|ident| ident.value == own)
}
