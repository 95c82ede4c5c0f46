//! Lowering of operators.

use sqlparser::ast as parsed;
use sqlparser::tokenizer::Token;

use crate::ast::{BinaryOperator, UnaryOperator};

/// A lowered infix operator.
pub(super) enum OperatorToken {
    And,
    Or,
    Plain(BinaryOperator),
}

/// Lowers an infix operator; None if bennu does not have it.
pub(super) fn lower(op: &parsed::BinaryOperator) -> Option<OperatorToken> {
    use parsed::BinaryOperator as Parsed;
    Some(OperatorToken::Plain(match op {
        Parsed::And => return Some(OperatorToken::And),
        Parsed::Or => return Some(OperatorToken::Or),
        Parsed::Plus => BinaryOperator::Add,
        Parsed::Minus => BinaryOperator::Subtract,
        Parsed::Multiply => BinaryOperator::Multiply,
        Parsed::Divide => BinaryOperator::Divide,
        Parsed::Modulo => BinaryOperator::Modulo,
        Parsed::PGExp => BinaryOperator::Power,
        Parsed::StringConcat => BinaryOperator::Concat,
        Parsed::Eq => BinaryOperator::Equal,
        Parsed::NotEq => BinaryOperator::NotEqual,
        Parsed::Lt => BinaryOperator::Less,
        Parsed::LtEq => BinaryOperator::LessOrEqual,
        Parsed::Gt => BinaryOperator::Greater,
        Parsed::GtEq => BinaryOperator::GreaterOrEqual,
        Parsed::BitwiseAnd => BinaryOperator::BitAnd,
        Parsed::BitwiseOr => BinaryOperator::BitOr,
        Parsed::PGBitwiseXor => BinaryOperator::BitXor,
        Parsed::PGBitwiseShiftLeft => BinaryOperator::ShiftLeft,
        Parsed::PGBitwiseShiftRight => BinaryOperator::ShiftRight,
        Parsed::PGRegexMatch => BinaryOperator::RegexMatch,
        Parsed::PGRegexIMatch => BinaryOperator::RegexMatchNoCase,
        Parsed::PGRegexNotMatch => BinaryOperator::RegexNotMatch,
        Parsed::PGRegexNotIMatch => BinaryOperator::RegexNotMatchNoCase,
        Parsed::PGLikeMatch => BinaryOperator::Like,
        Parsed::PGNotLikeMatch => BinaryOperator::NotLike,
        Parsed::PGILikeMatch => BinaryOperator::ILike,
        Parsed::PGNotILikeMatch => BinaryOperator::NotILike,
        Parsed::PGStartsWith => BinaryOperator::StartsWith,
        Parsed::AtArrow => BinaryOperator::Contains,
        Parsed::ArrowAt => BinaryOperator::ContainedBy,
        Parsed::PGOverlap => BinaryOperator::Overlap,
        Parsed::Arrow => BinaryOperator::Arrow,
        Parsed::LongArrow => BinaryOperator::LongArrow,
        Parsed::HashArrow => BinaryOperator::HashArrow,
        Parsed::HashLongArrow => BinaryOperator::HashLongArrow,
        Parsed::HashMinus => BinaryOperator::HashMinus,
        Parsed::AtQuestion => BinaryOperator::PathExists,
        Parsed::AtAt => BinaryOperator::PathMatches,
        Parsed::Question => BinaryOperator::HasKey,
        Parsed::QuestionPipe => BinaryOperator::HasAnyKey,
        Parsed::QuestionAnd => BinaryOperator::HasAllKeys,
        Parsed::Custom(name) => return named(name),
        _ => return None,
    }))
}

/// Returns an operator by its name: `+`, `pg_catalog.+`.
fn named(name: &str) -> Option<OperatorToken> {
    let symbol = name.strip_prefix("pg_catalog.").unwrap_or(name);
    BinaryOperator::named(symbol).map(OperatorToken::Plain)
}

/// Returns the internal function name for an operator that bennu does not have, with its schema if
/// written: the binder reports that it does not exist for its operand types.
pub(super) fn unknown(name: &str) -> (Option<&str>, String) {
    let (schema, symbol) = match name.rsplit_once('.') {
        Some((schema, symbol)) => (Some(schema), symbol),
        None => (None, name),
    };
    (schema, format!("{}{symbol}", crate::ast::UNKNOWN_OPERATOR))
}

/// Returns the comparison operator of a token.
pub(super) fn comparison(token: &Token) -> Option<parsed::BinaryOperator> {
    use parsed::BinaryOperator as Parsed;
    Some(match token {
        Token::Eq => Parsed::Eq,
        Token::Neq => Parsed::NotEq,
        Token::Lt => Parsed::Lt,
        Token::LtEq => Parsed::LtEq,
        Token::Gt => Parsed::Gt,
        Token::GtEq => Parsed::GtEq,
        _ => return None,
    })
}

/// Returns whether this is one of `= <> < <= > >=`.
pub(super) fn is_comparison(op: &parsed::BinaryOperator) -> bool {
    use parsed::BinaryOperator as Parsed;
    matches!(op, Parsed::Eq | Parsed::NotEq | Parsed::Lt | Parsed::LtEq | Parsed::Gt | Parsed::GtEq)
}

/// Lowers a prefix operator other than NOT; None if bennu does not have it.
pub(super) fn lower_unary(op: &parsed::UnaryOperator) -> Option<UnaryOperator> {
    use parsed::UnaryOperator as Parsed;
    Some(match op {
        Parsed::Plus => UnaryOperator::Plus,
        Parsed::Minus => UnaryOperator::Minus,
        Parsed::BitwiseNot => UnaryOperator::BitNot,
        Parsed::PGAbs => UnaryOperator::Abs,
        Parsed::PGSquareRoot => UnaryOperator::SquareRoot,
        Parsed::PGCubeRoot => UnaryOperator::CubeRoot,
        _ => return None,
    })
}
