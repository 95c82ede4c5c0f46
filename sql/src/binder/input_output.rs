//! Calls of type input and output functions, such as `textin` and `int4out`, and of operator
//! functions, such as `int4pl`.
//!
//! An input or output function is recognised by its name; a call of it is bound as a cast between
//! the type and `cstring`. Input functions of types with modifiers also accept an OID and a
//! modifier, as in PostgreSQL. The functions of arrays, rows, enums and domains, which need the
//! type as an argument, are not supported; nor are those for the binary format, whose arguments
//! are of type `internal`.

use types::cast::CastContext;
use types::expr::Expr;
use types::{DataType, Datum, FixedWidthKind, GeometryKind, SqlType};

use crate::binder::calls::undefined_function;
use crate::binder::level::Binder;
use crate::binder::typed::Typed;
use crate::catalog::operator_functions::{OperatorFunction, operator_function};
use crate::error::{Error, Result};

/// The direction of a conversion to or from text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversionDirection {
    /// Text to value.
    Input,
    /// Value to text.
    Output,
}

/// Returns the type and direction of a built-in input or output function.
pub fn input_or_output(name: &str) -> Option<(DataType, ConversionDirection)> {
    let (stem, direction) = match name.strip_suffix("in") {
        Some(stem) => (stem, ConversionDirection::Input),
        None => (name.strip_suffix("out")?, ConversionDirection::Output),
    };
    let named = |stem: &str| {
        let mut all = DataType::all().filter(is_plain);
        all.find(|one| one.internal_name() == stem)
    };
    let found = match stem {
        "cash_" => Some(DataType::MONEY),
        "poly_" => Some(DataType::POLYGON),
        _ => match stem.strip_suffix('_') {
            Some(stem) => named(stem).filter(is_underscored),
            None => named(stem).filter(|one| !is_underscored(one)),
        },
    };
    found.map(|data_type| (data_type, direction))
}

/// Returns whether input and output of a type need no information besides the value.
fn is_plain(data_type: &DataType) -> bool {
    let is_other = matches!(
        data_type,
        DataType::Array(_)
            | DataType::Record
            | DataType::CString
            | DataType::Void
            | DataType::Trigger
            | DataType::Unknown
            | DataType::RefCursor
            | DataType::NodeTree
            | DataType::Word(FixedWidthKind::Money)
            | DataType::Geometry(GeometryKind::Polygon)
    );
    !is_other && !data_type.is_polymorphic()
}

/// Returns whether the function names of a type have an underscore after the type name.
fn is_underscored(data_type: &DataType) -> bool {
    !matches!(
        data_type,
        DataType::Bool
            | DataType::Bytea
            | DataType::InternalChar
            | DataType::Name
            | DataType::Int2
            | DataType::Int4
            | DataType::Int8
            | DataType::Int2Vector
            | DataType::OidVector
            | DataType::Reg(_)
            | DataType::Text
            | DataType::Oid
            | DataType::Float4
            | DataType::Float8
            | DataType::Char
            | DataType::Varchar
            | DataType::AclItem
            | DataType::Word(
                FixedWidthKind::Tid
                    | FixedWidthKind::Xid
                    | FixedWidthKind::Cid
                    | FixedWidthKind::Xid8
            )
    )
}

/// Returns whether the input function of a type takes a modifier.
fn is_modified(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Bit
            | DataType::Varbit
            | DataType::Char
            | DataType::Varchar
            | DataType::Numeric
            | DataType::Time
            | DataType::Timetz
            | DataType::Timestamp
            | DataType::Timestamptz
            | DataType::Interval
    )
}

impl Binder<'_> {
    /// Binds a call of an input or output function; `None` for other functions.
    pub(super) fn input_output_call(
        &mut self,
        name: &str,
        arguments: &[Typed],
        position: usize,
    ) -> Result<Option<Typed>> {
        let Some((data_type, direction)) = input_or_output(name) else {
            return self.operator_call(name, arguments, position);
        };
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        let string = SqlType::from(DataType::CString);
        let (value, from, to) = match (direction, arguments) {
            (ConversionDirection::Input, [value]) if !is_modified(&data_type) => {
                (value, string, data_type.into())
            }
            (ConversionDirection::Input, [value, _, modifier]) if is_modified(&data_type) => {
                (value, string, modified(&data_type, modifier)?)
            }
            (ConversionDirection::Output, [value]) => (value, data_type.into(), string),
            _ => return Err(undefined_function(&self.shown_call(name, arguments), position)),
        };
        let is_text = direction == ConversionDirection::Input
            && !matches!(types[0], DataType::CString | DataType::Unknown);
        let value = value.clone();
        let coerced = match is_text {
            true => None,
            false => self.coerce(value, &from, CastContext::Implicit)?,
        };
        let Some(operand) = coerced else {
            return Err(undefined_function(&self.shown_call(name, arguments), position));
        };
        let (operand, from) = (Box::new(operand), from.base);
        let expr = Expr::Cast { operand, from, to: to.clone(), explicit: false };
        Ok(Some(Typed { expr, sql_type: to, position }))
    }
}

impl Binder<'_> {
    /// Binds a call of the function of an operator; `None` for other functions.
    fn operator_call(
        &mut self,
        name: &str,
        arguments: &[Typed],
        position: usize,
    ) -> Result<Option<Typed>> {
        let Some(OperatorFunction { symbol, left, right }) = operator_function(name) else {
            return Ok(None);
        };
        let types = left.into_iter().chain([right]);
        let mut sides = Vec::new();
        for (value, to) in arguments.iter().zip(types.clone()) {
            if to.is_polymorphic() {
                sides.push(value.clone());
            } else if let Some(expr) =
                self.coerce(value.clone(), &(&to).into(), CastContext::Implicit)?
            {
                sides.push(Typed::new(expr, to, value.position));
            }
        }
        if sides.len() != arguments.len() || sides.len() != types.count() {
            return Ok(None);
        }
        self.function(symbol, sides, position).map(Some)
    }
}

/// Returns a type with the modifier that is the last argument of its input function.
fn modified(data_type: &DataType, modifier: &Typed) -> Result<SqlType> {
    let modifier = match &modifier.expr {
        Expr::Constant { value: Datum::Int4(value), .. } => Some(*value),
        Expr::Call { function, arguments, .. }
            if types::function::signature(*function).name == "-" =>
        {
            match arguments.as_slice() {
                [Expr::Constant { value: Datum::Int4(value), .. }] => value.checked_neg(),
                _ => None,
            }
        }
        _ => None,
    };
    modifier.map(|modifier| SqlType::new(data_type.clone(), modifier)).ok_or_else(|| {
        let what = "a non-constant type modifier";
        Error::not_supported(what, "Cast the value to the type with the modifier.")
    })
}
