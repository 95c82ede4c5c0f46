//! Conversions that PostgreSQL's analysis adds to values, and the constants of literals.

use types::text::{TextStyle, parse_as, write_short};
use types::{DataType, Datum, SqlType};

use crate::deparse::node::DeparseNode;

/// Returns a literal as a constant of a type.
pub(super) fn literal<'a>(text: &str, to: &SqlType, style: &TextStyle) -> DeparseNode<'a> {
    let below = SqlType { modifier: -1, ..to.base_type() };
    let constant =
        DeparseNode::Constant { value: Some(canonical(text, to, style)), sql_type: below.clone() };
    let cut = to.modifier >= 0 && to.base != DataType::Interval;
    let constant = match constant {
        DeparseNode::Constant { value, .. } if to.base == DataType::Interval => {
            DeparseNode::Constant { value, sql_type: to.base_type() }
        }
        constant => constant,
    };
    let operand = match cut {
        true => cast(constant, &below, &to.base_type(), false),
        false => constant,
    };
    match to.domain {
        None => operand,
        Some(_) => cast(operand, &to.base_type(), to, true),
    }
}

/// Returns the text of a literal's value in a session's output format.
fn canonical(text: &str, to: &SqlType, style: &TextStyle) -> String {
    match to.base {
        DataType::Text
        | DataType::Varchar
        | DataType::Char
        | DataType::Name
        | DataType::Unknown
        | DataType::Json
        | DataType::Reg(_) => return text.to_owned(),
        _ => {}
    }
    match parse_as(text, to, &TextStyle::default()) {
        Ok(value) => shown(&value, &to.base, style),
        Err(_) => text.to_owned(),
    }
}

fn shown(value: &Datum, data_type: &DataType, style: &TextStyle) -> String {
    let mut bytes = Vec::new();
    write_short(value, data_type, style, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the constant of a number.
pub(super) fn number<'a>(text: &str) -> DeparseNode<'a> {
    let sql_type = type_of_number(text).into();
    let value = Some(canonical(text, &sql_type, &TextStyle::default()));
    DeparseNode::Constant { value, sql_type }
}

/// Returns the type of a number.
pub(super) fn type_of_number(text: &str) -> DataType {
    if text.parse::<i32>().is_ok() {
        DataType::Int4
    } else if text.parse::<i64>().is_ok() {
        DataType::Int8
    } else {
        DataType::Numeric
    }
}

/// Returns a value with an implicit cast to another type.
pub(super) fn implicit_conversion<'a>(
    node: DeparseNode<'a>,
    from: &SqlType,
    to: &SqlType,
) -> DeparseNode<'a> {
    let to = SqlType { modifier: -1, ..to.clone() };
    let is_vague =
        to.base.is_polymorphic() || matches!(to.base, DataType::Unknown | DataType::Record);
    if is_vague
        || from.base == DataType::Unknown
        || (from.base == to.base && from.domain == to.domain)
    {
        return node;
    }
    cast(node, from, &to, true)
}

/// Returns a value with the length coercion of a column's type.
pub(super) fn with_length_coercion<'a>(
    node: DeparseNode<'a>,
    to: Option<SqlType>,
) -> DeparseNode<'a> {
    match to {
        Some(to) if to.modifier >= 0 => cast(node, &to, &to, true),
        _ => node,
    }
}

/// Returns a value with an explicit cast.
pub(super) fn explicit_conversion<'a>(
    node: DeparseNode<'a>,
    from: &SqlType,
    to: &SqlType,
) -> DeparseNode<'a> {
    if from.base == to.base && from.domain == to.domain && from.modifier == to.modifier {
        return node;
    }
    cast(node, from, to, false)
}

fn cast<'a>(
    node: DeparseNode<'a>,
    from: &SqlType,
    to: &SqlType,
    implicit: bool,
) -> DeparseNode<'a> {
    let by_function = is_function(&from.base, &to.base) || to.modifier >= 0;
    // Of several casts the last one is shown.
    DeparseNode::Cast {
        operand: Box::new(node),
        to: to.clone(),
        implicit,
        by_function: by_function && to.domain.is_none(),
    }
}

/// Returns whether a cast is done by a function, and is not binary-coercible.
fn is_function(from: &DataType, to: &DataType) -> bool {
    let number = |one: DataType| {
        matches!(
            one,
            DataType::Int2
                | DataType::Int4
                | DataType::Int8
                | DataType::Float4
                | DataType::Float8
                | DataType::Numeric
        )
    };
    let time = |one: DataType| {
        matches!(
            one,
            DataType::Date
                | DataType::Time
                | DataType::Timetz
                | DataType::Timestamp
                | DataType::Timestamptz
                | DataType::Interval
        )
    };
    let text = |one: DataType| matches!(one, DataType::Text | DataType::Varchar);
    let short = |one: DataType| matches!(one, DataType::Char | DataType::Name);
    from != to
        && (number(from.clone()) && number(to.clone())
            || time(from.clone()) && time(to.clone())
            || *from == DataType::Bool && (*to == DataType::Int4 || text(to.clone()))
            || *from == DataType::Int4 && *to == DataType::Bool
            || short(from.clone()) && text(to.clone())
            || (text(from.clone()) || short(from.clone())) && *to == DataType::Name)
}

/// Returns whether PostgreSQL has an operator of this name for exactly these two types.
pub(super) fn has_mixed_operator(symbol: &str, left: &DataType, right: &DataType) -> bool {
    let compares = matches!(symbol, "=" | "<>" | "<" | "<=" | ">" | ">=");
    let computes = matches!(symbol, "+" | "-" | "*" | "/");
    let both = |of: &[DataType]| of.contains(left) && of.contains(right);
    use DataType::{Date, Float4, Float8, Int2, Int4, Int8, Name, Text, Timestamp, Timestamptz};
    (compares || computes) && (both(&[Int2, Int4, Int8]) || both(&[Float4, Float8]))
        || compares && (both(&[Date, Timestamp, Timestamptz]) || both(&[Text, Name]))
}
