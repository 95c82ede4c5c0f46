//! Detection of expressions that may raise an error when they are computed.

use super::Expr;
use crate::datatype::{DataType, SqlType};
use crate::function::{self, FunctionId, KernelKind};

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
    "length",
    "lower",
    "ltrim",
    "md5",
    "now",
    "octet_length",
    "replace",
    "reverse",
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
            Expr::Call { function, .. } => !is_safe(*function),
            Expr::Cast { from, to, .. } => !is_safe_cast(from, to),
            Expr::Routine { .. } | Expr::Domain { .. } | Expr::Unreadable { .. } => true,
            _ => false,
        }
    }
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
