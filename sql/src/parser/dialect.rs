//! The SQL dialect for `sqlparser`: PostgreSQL's, with bennu's differences.
//!
//! All settings are forwarded to [`PostgreSqlDialect`], and this dialect reports that type,
//! because `sqlparser` checks for it in many places. Differences: prefix operators have
//! PostgreSQL's precedence (`-2 ^ 2` is 4); `FOR SYSTEM_TIME`, `NEXT VALUE FOR`, `BETWEEN
//! SYMMETRIC` are parsed; VALUES is allowed as any subquery, `?` is an operator, and the geometric
//! types and JSON's colons are not special. The syntax of GROUP BY is parsed by [`parse_sets`].

use std::any::TypeId;

use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Query, TrimWhereField, TypedString, UnaryOperator, Value,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token};

use types::interrupt::check_planned;
use types::key_words;

use super::grouping::parse_sets;
use super::name;

/// PostgreSQL's precedence of signs: higher than all but `::` and subscripts.
const SIGN_PRECEDENCE: u8 = 120;

/// The dialect of bennu.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BennuDialect {
    base: PostgreSqlDialect,
}

macro_rules! forward {
    ($($method:ident)*) => {
        $(fn $method(&self) -> bool { self.base.$method() })*
    };
}

impl Dialect for BennuDialect {
    fn dialect(&self) -> TypeId {
        self.base.dialect()
    }

    forward! {
        supports_filter_during_aggregation
        supports_create_index_with_clause supports_explain_with_utility_options
        supports_factorial_operator supports_bitwise_shift_operators supports_empty_projections
        supports_nested_comments supports_string_escape_constant
        supports_numeric_literal_underscores supports_array_typedef_with_brackets
        supports_order_by_using_operator supports_set_names
        supports_left_associative_joins_without_parens supports_notnull_operator
        supports_interval_options supports_comma_separated_trim supports_comment_optimizer_hint
        allow_extract_custom allow_extract_single_quotes
    }

    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.base.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        self.base.is_delimited_identifier_start(c)
    }

    fn is_identifier_start(&self, c: char) -> bool {
        self.base.is_identifier_start(c)
    }

    fn is_identifier_part(&self, c: char) -> bool {
        self.base.is_identifier_part(c)
    }

    fn is_custom_operator_part(&self, c: char) -> bool {
        self.base.is_custom_operator_part(c)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        self.base.is_reserved_for_identifier(keyword)
    }

    fn is_column_alias(&self, _: &Keyword, parser: &mut Parser) -> bool {
        is_current(parser, key_words::is_bare_label)
    }

    fn is_table_alias(&self, _: &Keyword, parser: &mut Parser) -> bool {
        is_current(parser, key_words::is_column_name)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Placeholder(text) if text == "?" => {
                Some(Ok(self.prec_value(Precedence::PgOther)))
            }
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => {
                Some(Ok(self.prec_value(Precedence::PgOther)))
            }
            _ => self.base.get_next_precedence(parser),
        }
    }

    /// Reads `?` after an operand; BETWEEN SYMMETRIC; ANY and ALL; lists of IN that begin with a
    /// subquery.
    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Placeholder(text) if text == "?" => {
                parser.advance_token();
                let (left, op) = (Box::new(expr.clone()), BinaryOperator::Question);
                let right = parser.parse_subexpr(precedence);
                Some(right.map(|right| Expr::BinaryOp { left, op, right: Box::new(right) }))
            }
            Token::Word(_) => {
                let read = self.between_symmetric(parser, expr);
                let read = read.or_else(|| collated(parser, expr));
                let read = read.or_else(|| quantified(parser, expr));
                let read = read.or_else(|| list_of_subqueries(parser, expr));
                read.or_else(|| self.base.parse_infix(parser, expr, precedence))
            }
            _ => {
                let quantified = quantified(parser, expr);
                quantified.or_else(|| self.base.parse_infix(parser, expr, precedence))
            }
        }
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        self.base.prec_value(precedence)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if let Err(error) = check_planned() {
            return Some(Err(ParserError::ParserError(error.message.clone())));
        }
        let (op, precedence) = match &parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, SIGN_PRECEDENCE),
            Token::Plus => (UnaryOperator::Plus, SIGN_PRECEDENCE),
            Token::Tilde => (UnaryOperator::BitwiseNot, self.prec_value(Precedence::PgOther)),
            Token::AtSign => (UnaryOperator::PGAbs, self.prec_value(Precedence::PgOther)),
            Token::PGSquareRoot => {
                (UnaryOperator::PGSquareRoot, self.prec_value(Precedence::PgOther))
            }
            Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, self.prec_value(Precedence::PgOther)),
            // `sqlparser` would parse `NOT EXISTS (…)` as an operand of a following operator.
            Token::Word(word) if word.keyword == Keyword::NOT => {
                (UnaryOperator::Not, self.prec_value(Precedence::UnaryNot))
            }
            Token::Word(_) => {
                let read = trim_from(parser).or_else(|| sequence_value(parser));
                let read = read.or_else(|| typed_string(parser)).or_else(|| variadic(parser));
                let read = read.or_else(|| precise_interval(parser));
                let read = read.or_else(|| substring_for(parser));
                return read.or_else(|| values_query(parser)).or_else(|| parse_sets(parser));
            }
            Token::LParen if is_word(parser, 1, "values") || is_set_operation(parser, 0) => {
                return Some(in_parentheses(parser).map(Expr::Subquery));
            }
            Token::LParen => return parse_sets(parser),
            token @ (Token::Sharp | Token::AtAt | Token::QuestionPipe) => {
                let name = format!("{PREFIX}{token}");
                return Some(prefix_operator(parser, &name, self.prec_value(Precedence::PgOther)));
            }
            Token::CustomBinaryOperator(name) => {
                let name = format!("{PREFIX}{name}");
                return Some(prefix_operator(parser, &name, self.prec_value(Precedence::PgOther)));
            }
            _ => return None,
        };
        parser.advance_token();
        Some(
            parser.parse_subexpr(precedence).map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }),
        )
    }
}

impl BennuDialect {
    /// Reads `[NOT] BETWEEN SYMMETRIC low AND high` as PostgreSQL does, with the bounds in either
    /// order; `ASYMMETRIC` is the default.
    fn between_symmetric(
        &self,
        parser: &mut Parser,
        operand: &Expr,
    ) -> Option<Result<Expr, ParserError>> {
        let negated = is_word(parser, 0, "not");
        let at = usize::from(negated);
        let symmetric = is_word(parser, at + 1, "symmetric");
        let asymmetric = is_word(parser, at + 1, "asymmetric");
        if !is_word(parser, at, "between") || !(symmetric || asymmetric) {
            return None;
        }
        (0..at + 2).for_each(|_| parser.advance_token());
        let between = match parser.parse_between(operand.clone(), negated) {
            Ok(between) => between,
            Err(error) => return Some(Err(error)),
        };
        let Expr::Between { expr, low, high, .. } = &between else { return Some(Ok(between)) };
        if asymmetric {
            return Some(Ok(between));
        }
        let turned =
            Expr::Between { expr: expr.clone(), negated, low: high.clone(), high: low.clone() };
        let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
        let (left, right) = (Box::new(between), Box::new(turned));
        Some(Ok(Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }))))
    }
}

/// Returns whether the current word is quoted or accepted by `allowed`.
fn is_current(parser: &Parser, allowed: fn(&str) -> bool) -> bool {
    matches!(&parser.get_current_token().token, Token::Word(word)
        if word.quote_style.is_some() || allowed(&word.value.to_ascii_lowercase()))
}

/// Reads `COLLATE name` after an operand of any form, with the precedence of a cast.
fn collated(parser: &mut Parser, operand: &Expr) -> Option<Result<Expr, ParserError>> {
    if !is_word(parser, 0, "collate") {
        return None;
    }
    parser.advance_token();
    let collation = parser.parse_object_name(false);
    let expr = Box::new(operand.clone());
    Some(collation.map(|collation| Expr::Collate { expr, collation }))
}

/// Returns whether a token ahead is this unquoted word, given in lower case.
fn is_word(parser: &Parser, ahead: usize, expected: &str) -> bool {
    matches!(&parser.peek_nth_token_ref(ahead).token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

/// Returns whether a parenthesis, `ahead` tokens away, opens a query whose first operand is in
/// parentheses: `((SELECT …) UNION …)`. A query in two pairs of parentheses is not one.
fn is_set_operation(parser: &Parser, ahead: usize) -> bool {
    if parser.peek_nth_token_ref(ahead + 1).token != Token::LParen {
        return false;
    }
    // The current token is already consumed. The first operand follows the parenthesis.
    let tokens = (parser.get_current_index() + 1..).map(|index| &parser.token_at(index).token);
    let tokens = tokens.skip_while(|token| !matches!(token, Token::LParen)).skip(1);
    let (mut depth, mut begun, mut is_query) = (0_usize, false, false);
    for token in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen => depth += 1,
            // The parenthesis closes directly after the first operand.
            Token::RParen if depth == 0 => return false,
            Token::RParen => depth -= 1,
            Token::Word(word) if !begun => {
                let word = word.value.to_ascii_lowercase();
                begun = true;
                is_query = ["select", "values", "with"].contains(&word.as_str());
            }
            Token::Word(word) if depth == 0 => {
                let word = word.value.to_ascii_lowercase();
                let goes_on = ["union", "intersect", "except", "order", "limit", "offset", "fetch"];
                return is_query && goes_on.contains(&word.as_str());
            }
            Token::EOF => return false,
            _ if !begun || depth == 0 => return false,
            _ => {}
        }
        if begun && !is_query {
            return false;
        }
    }
    false
}

/// Reads `[NOT] IN ((SELECT …), …)`, a list whose first element begins with a parenthesis;
/// `None` for anything else. `sqlparser` would parse that element as the query of IN.
fn list_of_subqueries(parser: &mut Parser, operand: &Expr) -> Option<Result<Expr, ParserError>> {
    let negated = is_word(parser, 0, "not");
    let at = usize::from(negated);
    let opens = |ahead| parser.peek_nth_token_ref(ahead).token == Token::LParen;
    if !is_word(parser, at, "in") || !opens(at + 1) || !opens(at + 2) {
        return None;
    }
    let tokens = (parser.get_current_index() + 1..).map(|index| &parser.token_at(index).token);
    let tokens = tokens.filter(|token| !matches!(token, Token::Whitespace(_))).skip(at + 2);
    let mut depth = 0_usize;
    for token in tokens {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return None,
            Token::RParen => depth -= 1,
            Token::EOF => return None,
            // The element ends, or an operator follows it.
            Token::Word(_) if depth == 0 => return None,
            _ if depth == 0 => break,
            _ => {}
        }
    }
    (0..at + 2).for_each(|_| parser.advance_token());
    let list = parser.parse_comma_separated(Parser::parse_expr).and_then(|list| {
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::InList { expr: Box::new(operand.clone()), list, negated })
    });
    Some(list)
}

/// Reads a query in parentheses.
fn in_parentheses(parser: &mut Parser) -> Result<Box<Query>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(query)
}

/// Reads `= ANY (…)`, `NOT LIKE ALL (…)` and similar forms after an operand, over a query or an
/// array; `None` for anything else.
fn quantified(parser: &mut Parser, left: &Expr) -> Option<Result<Expr, ParserError>> {
    let (length, compare_op) = quantified_operator(parser)?;
    let (any, some) = (is_word(parser, length, "any"), is_word(parser, length, "some"));
    let is_quantified = any || some || is_word(parser, length, "all");
    if !is_quantified || parser.peek_nth_token_ref(length + 1).token != Token::LParen {
        return None;
    }
    let begins = |word| is_word(parser, length + 2, word);
    let is_query = ["select", "values", "with"].into_iter().any(begins)
        || is_set_operation(parser, length + 1);
    (0..=length).for_each(|_| parser.advance_token());
    let left = Box::new(left.clone());
    let right = match is_query {
        true => in_parentheses(parser).map(Expr::Subquery),
        false => array_in_parentheses(parser),
    };
    Some(right.map(|right| {
        let right = Box::new(right);
        match any || some {
            true => Expr::AnyOp { left, compare_op, right, is_some: some },
            false => Expr::AllOp { left, compare_op, right },
        }
    }))
}

/// Returns the next operator, which may precede ANY and ALL, and its number of tokens.
fn quantified_operator(parser: &Parser) -> Option<(usize, BinaryOperator)> {
    let operator = match &parser.peek_token_ref().token {
        // Their result is not boolean, which the binder reports.
        Token::Plus => BinaryOperator::Plus,
        Token::Minus => BinaryOperator::Minus,
        Token::Mul => BinaryOperator::Multiply,
        Token::Div => BinaryOperator::Divide,
        Token::Mod => BinaryOperator::Modulo,
        Token::Caret => BinaryOperator::BitwiseXor,
        Token::StringConcat => BinaryOperator::StringConcat,
        Token::Eq => BinaryOperator::Eq,
        Token::Neq => BinaryOperator::NotEq,
        Token::Lt => BinaryOperator::Lt,
        Token::LtEq => BinaryOperator::LtEq,
        Token::Gt => BinaryOperator::Gt,
        Token::GtEq => BinaryOperator::GtEq,
        Token::Tilde => BinaryOperator::PGRegexMatch,
        Token::TildeAsterisk => BinaryOperator::PGRegexIMatch,
        Token::ExclamationMarkTilde => BinaryOperator::PGRegexNotMatch,
        Token::ExclamationMarkTildeAsterisk => BinaryOperator::PGRegexNotIMatch,
        Token::DoubleTilde => BinaryOperator::PGLikeMatch,
        Token::DoubleTildeAsterisk => BinaryOperator::PGILikeMatch,
        Token::ExclamationMarkDoubleTilde => BinaryOperator::PGNotLikeMatch,
        Token::ExclamationMarkDoubleTildeAsterisk => BinaryOperator::PGNotILikeMatch,
        Token::CaretAt => BinaryOperator::PGStartsWith,
        Token::CustomBinaryOperator(name) => BinaryOperator::Custom(name.clone()),
        Token::Word(_) => {
            let at = usize::from(is_word(parser, 0, "not"));
            let operator = match (is_word(parser, at, "like"), is_word(parser, at, "ilike")) {
                (true, _) if at == 0 => BinaryOperator::PGLikeMatch,
                (true, _) => BinaryOperator::PGNotLikeMatch,
                (_, true) if at == 0 => BinaryOperator::PGILikeMatch,
                (_, true) => BinaryOperator::PGNotILikeMatch,
                _ => return None,
            };
            return Some((at + 1, operator));
        }
        _ => return None,
    };
    Some((1, operator))
}

/// Reads an expression in parentheses.
fn array_in_parentheses(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let array = parser.parse_expr()?;
    parser.expect_token(&Token::RParen)?;
    Ok(array)
}

/// Reads `substring(x FOR n FROM m)`, an order that `sqlparser` does not know; `None` for anything
/// else.
fn substring_for(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let opens = parser.peek_nth_token_ref(1).token == Token::LParen;
    if !is_word(parser, 0, "substring") || !opens || !is_turned(parser) {
        return None;
    }
    let mut read = || {
        (0..2).for_each(|_| parser.advance_token());
        let expr = Box::new(parser.parse_expr()?);
        parser.expect_keyword_is(Keyword::FOR)?;
        let substring_for = Some(Box::new(parser.parse_expr()?));
        parser.expect_keyword_is(Keyword::FROM)?;
        let substring_from = Some(Box::new(parser.parse_expr()?));
        parser.expect_token(&Token::RParen)?;
        let (special, shorthand) = (false, false);
        Ok(Expr::Substring { expr, substring_from, substring_for, special, shorthand })
    };
    Some(read())
}

/// Returns whether FOR comes before FROM in the parentheses after the next word.
fn is_turned(parser: &Parser) -> bool {
    let tokens = (parser.get_current_index() + 1..).map(|index| &parser.token_at(index).token);
    let tokens = tokens.skip_while(|token| !matches!(token, Token::LParen));
    let (mut depth, mut found) = (0_usize, false);
    for token in tokens {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => return false,
            Token::RParen => depth -= 1,
            Token::Word(word) if depth == 1 && word.keyword == Keyword::FOR => found = true,
            Token::Word(word) if depth == 1 && word.keyword == Keyword::FROM => return found,
            Token::EOF => return false,
            _ => {}
        }
    }
    false
}

/// Reads `trim(LEADING FROM text)`, for which `sqlparser` requires the trimmed characters; `None`
/// for anything else.
fn trim_from(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let opens = parser.peek_nth_token_ref(1).token == Token::LParen;
    if !is_word(parser, 0, "trim") || !opens {
        return None;
    }
    let end = match () {
        () if is_word(parser, 2, "from") => 2,
        () if is_word(parser, 3, "from") => 3,
        () => return None,
    };
    let trim_where = match () {
        () if end == 2 => None,
        () if is_word(parser, 2, "both") => Some(TrimWhereField::Both),
        () if is_word(parser, 2, "leading") => Some(TrimWhereField::Leading),
        () if is_word(parser, 2, "trailing") => Some(TrimWhereField::Trailing),
        () => return None,
    };
    (0..=end).for_each(|_| parser.advance_token());
    // The trimmed characters may follow FROM, too.
    let mut read = || {
        let expr = Box::new(parser.parse_expr()?);
        let trim_what = match parser.consume_token(&Token::Comma) {
            true => Some(Box::new(parser.parse_expr()?)),
            false => None,
        };
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::Trim { expr, trim_where, trim_what, trim_characters: None })
    };
    Some(read())
}

/// Reads Phoenix's and the standard's `NEXT VALUE FOR s` as `nextval('s')`, Phoenix's `NEXT n
/// VALUES FOR s` as `nextval('s', n)`, and `CURRENT VALUE FOR s` as `currval('s')`; `None` for
/// anything else.
fn sequence_value(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let word = |n: usize| match &parser.peek_nth_token_ref(n).token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let function = match word(0).as_str() {
        "next" => "nextval",
        "current" => "currval",
        _ => return None,
    };
    let counts = function == "nextval"
        && matches!(parser.peek_nth_token_ref(1).token, Token::Number(..) | Token::Placeholder(_));
    let at = usize::from(counts) + 1;
    // After a number, VALUES has been classified as a name.
    let values = counts
        && matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word)
            if word.value.eq_ignore_ascii_case("values"));
    if !(values || word(at) == "value") || word(at + 1) != "for" {
        return None;
    }
    let span = parser.peek_token_ref().span;
    parser.advance_token();
    let count = match counts.then(|| parser.parse_value()).transpose() {
        Ok(count) => count,
        Err(error) => return Some(Err(error)),
    };
    (0..2).for_each(|_| parser.advance_token());
    let name = match parser.parse_object_name(false) {
        Ok(name) => name.to_string(),
        Err(error) => return Some(Err(error)),
    };
    let argument = Expr::Value(Value::SingleQuotedString(name).with_span(span));
    let mut call = self::function(span, function, argument);
    if let (Some(count), Expr::Function(function)) = (count, &mut call)
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(count))));
    }
    Some(Ok(call))
}

/// The internal function name that represents the word VARIADIC before its argument.
pub(super) const VARIADIC: &str = "\0variadic";

/// Reads `VARIADIC array`; `None` for anything else.
fn variadic(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    if !is_word(parser, 0, "variadic") {
        return None;
    }
    let span = parser.peek_token_ref().span;
    parser.advance_token();
    Some(parser.parse_expr().map(|array| function(span, VARIADIC, array)))
}

/// The prefix of the internal function name of a prefix operator.
pub(super) const PREFIX: &str = "\0prefix ";

/// Reads a named prefix operator and its operand.
fn prefix_operator(parser: &mut Parser, name: &str, precedence: u8) -> Result<Expr, ParserError> {
    let span = parser.peek_token_ref().span;
    parser.advance_token();
    Ok(function(span, name, parser.parse_subexpr(precedence)?))
}

/// Returns a function call with one argument.
fn function(span: Span, name: &str, argument: Expr) -> Expr {
    let arguments = FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))],
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::with_span(span, name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(arguments),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Reads `interval(2) '…'`; `None` for anything else.
fn precise_interval(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let token = |ahead: usize| &parser.peek_nth_token_ref(ahead).token;
    let named = matches!(token(0), Token::Word(word) if word.quote_style.is_none()
        && word.value.eq_ignore_ascii_case("interval"));
    let (Token::LParen, Token::Number(digits, _), Token::RParen, Token::SingleQuotedString(_)) =
        (token(1), token(2), token(3), token(4))
    else {
        return None;
    };
    let precision = digits.parse().ok().filter(|_| named)?;
    (0..4).for_each(|_| parser.advance_token());
    let data_type = DataType::Interval { fields: None, precision: Some(precision) };
    let typed = |value| TypedString { data_type, value, uses_odbc_syntax: false };
    Some(parser.parse_value().map(|value| Expr::TypedString(typed(value))))
}

/// Reads `mood 'sad'` and `s.mood 'sad'`, a string of a type that `sqlparser` does not know;
/// `None` for anything else.
fn typed_string(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let token = |ahead: usize| &parser.peek_nth_token_ref(ahead).token;
    let Token::Word(word) = token(0) else { return None };
    let behind = match (token(1), token(2)) {
        (Token::Period, Token::Word(_)) => 3,
        _ => 1,
    };
    let folded = name::fold(&word.value, word.quote_style.is_some());
    let special = word.quote_style.is_none() && !key_words::is_type_or_function(&folded);
    if special || !matches!(token(behind), Token::SingleQuotedString(_)) {
        return None;
    }
    let mut read = || {
        let data_type = DataType::Custom(parser.parse_object_name(false)?, Vec::new());
        let value = parser.parse_value()?;
        Ok(Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false }))
    };
    Some(read())
}

/// Reads `VALUES (…)` as a query after an opening parenthesis, unless that belongs to a call;
/// `None` for anything else.
fn values_query(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let is_values = matches!(&parser.peek_token_ref().token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("values"));
    if !is_values || parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    let mut before = (0..=parser.get_current_index())
        .rev()
        .map(|index| &parser.token_at(index).token)
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    if before.next() != Some(&Token::LParen) {
        return None;
    }
    let is_call = match before.next() {
        Some(Token::Word(word)) => {
            let name = word.value.to_ascii_lowercase();
            word.quote_style.is_some() || key_words::is_column_name(&name)
        }
        _ => false,
    };
    (!is_call).then(|| parser.parse_query().map(Expr::Subquery))
}
