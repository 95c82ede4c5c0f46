//! Operators: from the parser's to ours.

use sqlparser::ast as parsed;

use crate::ast::{BinaryOperator, UnaryOperator};

/// What an infix operator means.
pub(super) enum Operator {
    And,
    Or,
    Plain(BinaryOperator),
}

/// Returns the meaning of an operator; None if bennu does not have it.
pub(super) fn lower(op: &parsed::BinaryOperator) -> Option<Operator> {
    use parsed::BinaryOperator as Parsed;
    Some(Operator::Plain(match op {
        Parsed::And => return Some(Operator::And),
        Parsed::Or => return Some(Operator::Or),
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
        Parsed::PGCustomBinaryOperator(parts) => return qualified(parts),
        Parsed::Custom(symbol) => return qualified(std::slice::from_ref(symbol)),
        _ => return None,
    }))
}

/// `OPERATOR(pg_catalog.~)`
fn qualified(parts: &[String]) -> Option<Operator> {
    let symbol = match parts {
        [symbol] => symbol,
        [schema, symbol] if schema.eq_ignore_ascii_case("pg_catalog") => symbol,
        _ => return None,
    };
    let all = [
        BinaryOperator::Add,
        BinaryOperator::Subtract,
        BinaryOperator::Multiply,
        BinaryOperator::Divide,
        BinaryOperator::Modulo,
        BinaryOperator::Power,
        BinaryOperator::Concat,
        BinaryOperator::Equal,
        BinaryOperator::NotEqual,
        BinaryOperator::Less,
        BinaryOperator::LessOrEqual,
        BinaryOperator::Greater,
        BinaryOperator::GreaterOrEqual,
        BinaryOperator::RegexMatch,
        BinaryOperator::RegexMatchNoCase,
        BinaryOperator::RegexNotMatch,
        BinaryOperator::RegexNotMatchNoCase,
        BinaryOperator::Like,
        BinaryOperator::NotLike,
        BinaryOperator::ILike,
        BinaryOperator::NotILike,
        BinaryOperator::PatternLess,
        BinaryOperator::PatternLessOrEqual,
        BinaryOperator::PatternGreater,
        BinaryOperator::PatternGreaterOrEqual,
        BinaryOperator::ImageEqual,
        BinaryOperator::ImageNotEqual,
        BinaryOperator::ImageLess,
        BinaryOperator::ImageLessOrEqual,
        BinaryOperator::ImageGreater,
        BinaryOperator::ImageGreaterOrEqual,
    ];
    all.into_iter().find(|operator| operator.symbol() == symbol).map(Operator::Plain)
}

/// Returns whether this is one of `= <> < <= > >=`.
pub(super) fn is_comparison(op: &parsed::BinaryOperator) -> bool {
    use parsed::BinaryOperator as Parsed;
    matches!(op, Parsed::Eq | Parsed::NotEq | Parsed::Lt | Parsed::LtEq | Parsed::Gt | Parsed::GtEq)
}

/// Returns the meaning of a prefix operator other than NOT; None if bennu does not have it.
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
