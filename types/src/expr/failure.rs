//! Detection of expressions that may raise an error when they are computed.

use super::Expr;
use crate::datatype::{DataType, SqlType};
use crate::function::{self, ArithmeticOp, FunctionId, KernelKind};

/// Functions that raise no error, except for a result that exceeds the size limit.
const SAFE_FUNCTIONS: &[&str] = &[
    "ascii",
    "btrim",
    "char_length",
    "character_length",
    "concat",
    "date_part",
    "date_trunc",
    "extract",
    "left",
    "length",
    "lower",
    "ltrim",
    "md5",
    "now",
    "octet_length",
    "replace",
    "reverse",
    "right",
    "rtrim",
    "starts_with",
    "strpos",
    "upper",
];

impl Expr {
    /// Returns whether the expression may raise an error for some row.
    pub fn may_fail(&self) -> bool {
        self.any(&Expr::node_may_fail)
    }

    /// Returns whether the node may raise an error, apart from its operands.
    pub(super) fn node_may_fail(&self) -> bool {
        match self {
            Expr::Call { function, arguments, .. } => {
                !is_safe(*function)
                    && !divides_by_constant(*function, arguments)
                    && !takes_constant_length(*function, arguments)
            }
            Expr::Cast { operand, from, to, .. } => {
                !is_safe_cast(from, to) && !is_small_remainder(operand, to)
            }
            Expr::Routine { .. } | Expr::Domain { .. } | Expr::Unreadable { .. } => true,
            _ => false,
        }
    }
}

impl Expr {
    /// Returns the value of an integer constant, also of a widened one.
    pub fn integer_constant(&self) -> Option<i64> {
        match self {
            Expr::Constant {
                value,
                data_type: DataType::Int2 | DataType::Int4 | DataType::Int8,
            } => value.as_i64(),
            Expr::Cast { operand, from, to, .. }
                if is_integer(from) && is_integer(&to.base) && is_safe_cast(from, to) =>
            {
                operand.integer_constant()
            }
            _ => None,
        }
    }
}

fn is_integer(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int2 | DataType::Int4 | DataType::Int8)
}

/// Returns whether a call divides an integer by a constant that neither is zero nor overflows.
fn divides_by_constant(function: FunctionId, arguments: &[Expr]) -> bool {
    use ArithmeticOp::{Divide, Remainder};
    let KernelKind::Arithmetic(Divide | Remainder) = function::shape(function) else {
        return false;
    };
    matches!(arguments, [_, divisor] if divisor.integer_constant().is_some_and(|by| by != 0 && by != -1))
}

/// Returns whether a call takes a part of a text or of bytes, whose length is a constant that is
/// not negative.
fn takes_constant_length(function: FunctionId, arguments: &[Expr]) -> bool {
    let signature = function::signature(function);
    let is_part = matches!(signature.name, "substr" | "substring");
    match arguments {
        [of, _, length]
            if is_part && matches!(of.data_type(), DataType::Text | DataType::Bytea) =>
        {
            length.integer_constant().is_some_and(|length| length >= 0)
        }
        _ => false,
    }
}

/// Returns whether an expression is a remainder by a constant that every value of an integer type
/// with the magnitude of the constant includes.
fn is_small_remainder(expression: &Expr, to: &SqlType) -> bool {
    let Expr::Call { function, arguments, .. } = expression else { return false };
    let largest = match to.base {
        DataType::Int2 => i64::from(i16::MAX),
        DataType::Int4 => i64::from(i32::MAX),
        _ => return false,
    };
    let is_remainder =
        matches!(function::shape(*function), KernelKind::Arithmetic(ArithmeticOp::Remainder));
    let divisor = arguments.get(1).and_then(Expr::integer_constant);
    is_remainder && divisor.is_some_and(|by| by != 0 && by.unsigned_abs() <= largest as u64)
}

fn is_safe(function: FunctionId) -> bool {
    match function::shape(function) {
        KernelKind::Compare(_)
        | KernelKind::Like { .. }
        | KernelKind::Join
        | KernelKind::Member { .. } => true,
        KernelKind::Arithmetic(_) => false,
        KernelKind::Other => {
            let name = function::signature(function).name;
            matches!(name, "=" | "<>" | "<" | "<=" | ">" | ">=" | "||")
                || SAFE_FUNCTIONS.contains(&name)
        }
    }
}

/// Returns whether every value of a type can be cast to the other type.
fn is_safe_cast(from: &DataType, to: &SqlType) -> bool {
    use DataType::{
        Char, Date, Float4, Float8, Int2, Int4, Int8, Numeric, Text, Timestamp, Timestamptz,
        Varchar,
    };
    let targets: &[DataType] = match from {
        Int2 => &[Int2, Int4, Int8, Numeric, Float4, Float8],
        Int4 => &[Int4, Int8, Numeric, Float4, Float8],
        Int8 => &[Int8, Numeric, Float4, Float8],
        Numeric => &[Numeric],
        Float4 => &[Float4, Float8],
        Float8 => &[Float8],
        Date => &[Date, Timestamp, Timestamptz],
        Timestamp | Timestamptz => &[Timestamp, Timestamptz, Date],
        Text | Varchar | Char => &[Text, Varchar, Char],
        other => return *to == SqlType::from(other) || *to == SqlType::from(Text),
    };
    *to == SqlType::from(&to.base) && (targets.contains(&to.base) || to.base == Text)
}
