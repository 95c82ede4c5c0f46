//! Bound expressions with type and position, and PostgreSQL's type categories.
//!
//! Source: PostgreSQL's `pg_type.typcategory` and `typispreferred`; documentation chapter 10.

use types::cast::{CastContext, cast_context};
use types::expr::Expr;
use types::function::Signature;
use types::{DataType, Datum, FixedWidthKind, SqlType};

use crate::error::{Error, Result};

/// A bound expression with its type and position.
///
/// Quoted literals and bare NULLs are constants of type [`DataType::Unknown`] until the context
/// determines their type; so are parameters whose type the client did not declare.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    /// The expression.
    pub(super) expr: Expr,
    /// Its type with the modifier.
    pub(super) sql_type: SqlType,
    /// Its position: 1-based, in characters.
    pub(super) position: usize,
}

impl Typed {
    /// Returns an expression of a type without modifier.
    pub(super) fn new(expr: Expr, base: impl Into<SqlType>, position: usize) -> Typed {
        Typed { expr, sql_type: base.into(), position }
    }

    /// Returns a constant.
    pub(super) fn constant(value: Datum, data_type: impl Into<DataType>, position: usize) -> Typed {
        let data_type = data_type.into();
        Typed::new(Expr::constant(value, &data_type), data_type, position)
    }

    /// Returns a boolean expression.
    pub(super) fn boolean(expr: Expr, position: usize) -> Typed {
        Typed::new(expr, DataType::Bool, position)
    }

    /// Returns the type without modifier.
    pub(super) fn base(&self) -> &DataType {
        &self.sql_type.base
    }

    /// Returns whether the type is not determined yet.
    pub(super) fn is_unknown(&self) -> bool {
        *self.base() == DataType::Unknown
    }
}

/// Checks that values can be sorted.
///
/// # Errors
///
/// 42883 if their type has no order.
pub(super) fn check_ordered(value: &Typed) -> Result<()> {
    if value.base().is_ordered() {
        return Ok(());
    }
    let name = value.base().sql_name();
    bail!(UNDEFINED_FUNCTION: "could not identify an ordering operator for type {name}"; with_type_mention value.base();
        hint "Use an explicit ordering operator or modify the query."; at value.position)
}

/// Checks that values can be compared for equality, for grouping and DISTINCT.
///
/// # Errors
///
/// 42883 if their type has no equality operator.
pub(super) fn check_equality(value: &Typed) -> Result<()> {
    if value.base().has_equality() {
        return Ok(());
    }
    let name = value.base().sql_name();
    bail!(UNDEFINED_FUNCTION: "could not identify an equality operator for type {name}"; with_type_mention value.base();
        at value.position)
}

/// Functions that search arrays by equality of elements.
const SEARCHES: [&str; 7] =
    ["array_position", "array_positions", "array_remove", "array_replace", "@>", "<@", "&&"];

/// Checks that array elements can be compared. PostgreSQL checks that when the function is called;
/// for rows, the fields to compare are known only then.
///
/// # Errors
///
/// 42883 if an element type has no such operator.
pub(super) fn check_elements<'t>(
    signature: &Signature,
    mut operands: impl Iterator<Item = &'t SqlType>,
) -> Result<()> {
    let by_equality = match signature.name {
        "=" | "<>" => true,
        "<" | "<=" | ">" | ">=" => false,
        name if SEARCHES.contains(&name) => true,
        _ => return Ok(()),
    };
    let lacks = |of: &&DataType| match by_equality {
        true => !of.has_equality(),
        false => !of.is_ordered(),
    };
    let lacking = operands.find_map(|operand| operand.base.element().filter(lacks));
    let Some(lacking) = lacking else { return Ok(()) };
    let what = if by_equality { "an equality operator" } else { "a comparison function" };
    bail!(UNDEFINED_FUNCTION: "could not identify {what} for type {}", lacking.sql_name(); with_type_mention lacking)
}

/// Returns a NULL constant.
pub(super) fn null(data_type: impl Into<DataType>) -> Expr {
    Expr::constant(Datum::Null, data_type)
}

/// Returns a boolean constant.
pub(super) fn boolean(value: bool) -> Expr {
    Expr::Constant { value: Datum::Bool(value), data_type: DataType::Bool }
}

/// `pg_type.typcategory`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    Boolean,
    Number,
    String,
    DateTime,
    Timespan,
    Geometric,
    Array,
    Enum,
    Composite,
    BitString,
    Internal,
    Pseudo,
    User,
    Unknown,
}

/// Returns the category of a type.
pub(super) fn category(data_type: &DataType) -> Category {
    match data_type {
        DataType::Bool => Category::Boolean,
        DataType::Int2
        | DataType::Int4
        | DataType::Int8
        | DataType::Float4
        | DataType::Float8
        | DataType::Numeric
        | DataType::Oid
        | DataType::Word(FixedWidthKind::Money)
        | DataType::Reg(_) => Category::Number,
        DataType::Text | DataType::Varchar | DataType::Char | DataType::Name => Category::String,
        DataType::Date
        | DataType::Time
        | DataType::Timetz
        | DataType::Timestamp
        | DataType::Timestamptz => Category::DateTime,
        DataType::Bit | DataType::Varbit => Category::BitString,
        DataType::InternalChar | DataType::NodeTree => Category::Internal,
        DataType::Record => Category::Pseudo,
        DataType::Composite(_) => Category::Composite,
        DataType::Interval => Category::Timespan,
        DataType::Geometry(_) => Category::Geometric,
        DataType::Array(_)
        | DataType::Int2Vector
        | DataType::OidVector
        | DataType::AnyArray
        | DataType::CompatibleArray => Category::Array,
        DataType::Enum(_) | DataType::AnyEnum => Category::Enum,
        DataType::Unknown => Category::Unknown,
        _ => Category::User,
    }
}

/// Returns whether a type is the preferred one of its category.
pub(super) fn is_preferred(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Bool
            | DataType::Float8
            | DataType::Oid
            | DataType::Text
            | DataType::Timestamptz
            | DataType::Interval
            | DataType::Varbit
    )
}

/// Returns whether a type can be implicitly cast to another.
pub(super) fn can_coerce(from: &DataType, to: &DataType) -> bool {
    from == to
        || *from == DataType::Unknown
        || cast_context(from, to) == Some(CastContext::Implicit)
}

/// Returns whether a type is a string type, which `||` accepts on either side.
pub(super) fn is_string(data_type: &DataType) -> bool {
    category(data_type) == Category::String
}
