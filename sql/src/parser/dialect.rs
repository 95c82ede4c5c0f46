//! PostgreSQL's dialect as bennu wants it.
//!
//! Everything is forwarded to [`PostgreSqlDialect`], whose type this dialect also claims, because
//! the parser asks for it by type in many places. What differs: prefix operators bind as in
//! PostgreSQL (`-2 ^ 2` is 4), `FOR SYSTEM_TIME` and `NEXT VALUE FOR` are read, `?` is an
//! operator, and the geometric types and JSON's colons, which bennu does not have, stay names and
//! errors. What GROUP BY alone has is read by [`parse_sets`].

use std::any::TypeId;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, UnaryOperator, Value,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::grouping::parse_sets;

/// PostgreSQL binds a sign tighter than anything but `::` and subscripts.
const SIGN_PRECEDENCE: u8 = 120;

/// See the module.
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
        supports_unicode_string_literal supports_filter_during_aggregation
        supports_create_index_with_clause supports_explain_with_utility_options
        supports_factorial_operator supports_bitwise_shift_operators supports_empty_projections
        supports_nested_comments supports_string_escape_constant
        supports_numeric_literal_underscores supports_array_typedef_with_brackets
        supports_order_by_using_operator supports_set_names
        supports_left_associative_joins_without_parens supports_notnull_operator
        supports_interval_options supports_comma_separated_trim supports_comment_optimizer_hint
        allow_extract_custom allow_extract_single_quotes
        supports_string_literal_concatenation_with_newline
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

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser) -> bool {
        self.base.is_table_alias(keyword, parser)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Placeholder(text) if text == "?" => {
                Some(Ok(self.prec_value(Precedence::PgOther)))
            }
            _ => self.base.get_next_precedence(parser),
        }
    }

    /// Reads `?`, `?|` and `?&` behind an operand.
    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Placeholder(text) if text == "?" => parser.advance_token(),
            _ => return self.base.parse_infix(parser, expr, precedence),
        }
        let op = match parser.peek_token_no_skip().token {
            Token::Pipe => BinaryOperator::QuestionPipe,
            Token::Ampersand => BinaryOperator::QuestionAnd,
            _ => BinaryOperator::Question,
        };
        if op != BinaryOperator::Question {
            parser.advance_token();
        }
        let left = Box::new(expr.clone());
        let right = parser.parse_subexpr(precedence);
        Some(right.map(|right| Expr::BinaryOp { left, op, right: Box::new(right) }))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        self.base.prec_value(precedence)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let (op, precedence) = match parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, SIGN_PRECEDENCE),
            Token::Plus => (UnaryOperator::Plus, SIGN_PRECEDENCE),
            Token::Tilde => (UnaryOperator::BitwiseNot, self.prec_value(Precedence::PgOther)),
            Token::AtSign => (UnaryOperator::PGAbs, self.prec_value(Precedence::PgOther)),
            Token::PGSquareRoot => {
                (UnaryOperator::PGSquareRoot, self.prec_value(Precedence::PgOther))
            }
            Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, self.prec_value(Precedence::PgOther)),
            Token::Word(_) => return sequence_value(parser).or_else(|| parse_sets(parser)),
            Token::LParen => return parse_sets(parser),
            _ => return None,
        };
        parser.advance_token();
        Some(
            parser.parse_subexpr(precedence).map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }),
        )
    }
}

/// Reads Phoenix's and SQL's `NEXT VALUE FOR s` as `nextval('s')`, and `CURRENT VALUE FOR s` as
/// `currval('s')`; `None` for anything else.
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
    if word(1) != "value" || word(2) != "for" {
        return None;
    }
    let span = parser.peek_token_ref().span;
    (0..3).for_each(|_| parser.advance_token());
    let name = match parser.parse_object_name(false) {
        Ok(name) => name.to_string(),
        Err(error) => return Some(Err(error)),
    };
    let argument = Expr::Value(Value::SingleQuotedString(name).with_span(span));
    let arguments = FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))],
        clauses: Vec::new(),
    };
    Some(Ok(Expr::Function(Function {
        name: ObjectName::from(vec![Ident::with_span(span, function)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(arguments),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })))
}
