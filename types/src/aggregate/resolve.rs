//! Resolution of aggregate calls by name and argument types.

use super::{AggregateKind, HypotheticalSetFunction, PairStatistic};
use crate::datatype::{DataType, FixedWidthKind};

/// A resolved aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedAggregate {
    /// The function.
    pub kind: AggregateKind,
    /// The types to which the arguments are cast implicitly (`varchar` to `text`, for example);
    /// `unknown` for no cast.
    pub arguments: Vec<DataType>,
    /// The type of the result.
    pub data_type: DataType,
}

/// Resolves an aggregate by name and argument types; `None` if there is none.
///
/// An argument of type `unknown` counts as text, or as the type that the aggregate requires. For
/// ordered-set aggregates see [`resolve_ordered`].
pub fn resolve(name: &str, arguments: &[DataType]) -> Option<ResolvedAggregate> {
    let kind = AggregateKind::from_name(name)?;
    let resolved = |arguments: Vec<DataType>, data_type| {
        Some(ResolvedAggregate { kind, arguments, data_type })
    };
    match (kind, arguments) {
        (AggregateKind::Count, []) => Some(ResolvedAggregate {
            kind: AggregateKind::CountRows,
            arguments: Vec::new(),
            data_type: DataType::Int8,
        }),
        (AggregateKind::ApproxPercentile | AggregateKind::Pairs(_), [_, _]) => {
            let counts = kind == AggregateKind::Pairs(PairStatistic::Count);
            let result = if counts { DataType::Int8 } else { DataType::Float8 };
            let numbers = arguments.iter().all(is_number);
            numbers.then(|| resolved(vec![DataType::Float8; 2], result))?
        }
        (AggregateKind::StringAgg, [value, delimiter]) => {
            let taken = string_type(value, delimiter)?;
            resolved(vec![taken.clone(); 2], taken)
        }
        (AggregateKind::JsonObjectAgg, [key, value]) => {
            resolved(vec![known(key), known(value)], DataType::Json)
        }
        (AggregateKind::JsonbObjectAgg, [key, value]) => {
            resolved(vec![known(key), known(value)], DataType::Jsonb)
        }
        (_, [argument]) => {
            let (taken, result) = of_one(kind, argument)?;
            resolved(vec![taken], result)
        }
        _ => None,
    }
}

/// Resolves an aggregate with WITHIN GROUP by the types of its direct and its sorted arguments.
/// Hypothetical-set aggregates accept any types, which the caller has unified.
pub fn resolve_ordered(
    name: &str,
    direct: &[DataType],
    sorted: &[DataType],
) -> Option<ResolvedAggregate> {
    let resolved = |kind, arguments: &[DataType], data_type| {
        Some(ResolvedAggregate { kind, arguments: arguments.to_vec(), data_type })
    };
    const FRACTIONS: DataType = DataType::array_of(&DataType::Float8);
    let fraction = |given: &DataType| match given {
        DataType::Array(of) if is_number(of) => Some(FRACTIONS),
        given => is_number(given).then_some(DataType::Float8),
    };
    let result = |fraction: &DataType, value: &DataType| match *fraction == FRACTIONS {
        true => value.array(),
        false => Some(value.clone()),
    };
    match (name, direct, sorted) {
        ("mode", [], [value]) => {
            let value = known(value);
            resolved(AggregateKind::Mode, std::slice::from_ref(&value), value.clone())
        }
        ("percentile_disc", [given], [value]) => {
            let (fraction, value) = (fraction(given)?, known(value));
            resolved(
                AggregateKind::PercentileDisc,
                &[fraction.clone(), value.clone()],
                result(&fraction, &value)?,
            )
        }
        ("percentile_cont", [given], [value]) => {
            let value = match value {
                DataType::Interval | DataType::Time => DataType::Interval,
                value => is_number(value).then_some(DataType::Float8)?,
            };
            let fraction = fraction(given)?;
            resolved(
                AggregateKind::PercentileCont,
                &[fraction.clone(), value.clone()],
                result(&fraction, &value)?,
            )
        }
        _ => {
            let kind = HypotheticalSetFunction::from_name(name)?;
            let types = [direct, sorted].concat();
            let same = direct.len() == sorted.len() && !direct.is_empty();
            let result = kind.data_type();
            same.then(|| resolved(AggregateKind::Hypothetical(kind), &types, result))?
        }
    }
}

/// Returns the argument type and the result type of an aggregate with one argument.
fn of_one(kind: AggregateKind, argument: &DataType) -> Option<(DataType, DataType)> {
    Some(match kind {
        AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => match argument {
            DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Bit => {
                (argument.clone(), argument.clone())
            }
            _ => return None,
        },
        AggregateKind::AnyValue => (known(argument), known(argument)),
        AggregateKind::Count => (argument.clone(), DataType::Int8),
        AggregateKind::ApproxCountDistinct => (known(argument), DataType::Int8),
        AggregateKind::Sum => (argument.clone(), sum_type(argument)?),
        AggregateKind::Avg => (argument.clone(), average_type(argument)?),
        AggregateKind::Min | AggregateKind::Max => {
            let ordered = ordered_type(argument)?;
            (ordered.clone(), ordered)
        }
        AggregateKind::BoolAnd | AggregateKind::BoolOr => match argument {
            DataType::Bool | DataType::Unknown => (DataType::Bool, DataType::Bool),
            _ => return None,
        },
        AggregateKind::StddevPop
        | AggregateKind::StddevSamp
        | AggregateKind::VarPop
        | AggregateKind::VarSamp => match argument {
            DataType::Unknown => (DataType::Float8, DataType::Float8),
            DataType::Interval => return None,
            argument => (argument.clone(), average_type(argument)?),
        },
        AggregateKind::ArrayAgg => match argument {
            DataType::Array(_) => (argument.clone(), argument.clone()),
            argument => (argument.clone(), argument.array()?),
        },
        AggregateKind::JsonAgg => (known(argument), DataType::Json),
        AggregateKind::JsonbAgg => (known(argument), DataType::Jsonb),
        _ => return None,
    })
}

/// Returns a type; `text` for an untyped literal.
fn known(argument: &DataType) -> DataType {
    if *argument == DataType::Unknown { DataType::Text } else { argument.clone() }
}

/// Returns whether values of a type are implicitly cast to double precision.
fn is_number(argument: &DataType) -> bool {
    argument.is_number() || *argument == DataType::Unknown
}

/// Returns the type of the arguments of `string_agg`.
fn string_type(value: &DataType, delimiter: &DataType) -> Option<DataType> {
    let of = |argument: DataType| match argument {
        DataType::Unknown => Some(DataType::Unknown),
        DataType::Bytea => Some(DataType::Bytea),
        argument => argument.is_text().then_some(DataType::Text),
    };
    match (of(value.clone())?, of(delimiter.clone())?) {
        (DataType::Unknown, DataType::Unknown) => Some(DataType::Text),
        (DataType::Unknown, one) | (one, DataType::Unknown) => Some(one),
        (one, other) => (one == other).then_some(one),
    }
}

fn sum_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Int2 | DataType::Int4 => Some(DataType::Int8),
        DataType::Int8 | DataType::Numeric => Some(DataType::Numeric),
        DataType::Float4
        | DataType::Float8
        | DataType::Interval
        | DataType::Word(FixedWidthKind::Money) => Some(argument.clone()),
        _ => None,
    }
}

fn average_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Numeric => {
            Some(DataType::Numeric)
        }
        DataType::Float4 | DataType::Float8 => Some(DataType::Float8),
        DataType::Interval => Some(DataType::Interval),
        _ => None,
    }
}

/// Returns the type as which `min` and `max` compare an argument.
fn ordered_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Bool
        | DataType::Bytea
        | DataType::Uuid
        | DataType::Bit
        | DataType::Varbit
        | DataType::InternalChar
        | DataType::Record
        | DataType::Composite(_)
        | DataType::Jsonb
        | DataType::Word(FixedWidthKind::MacAddr | FixedWidthKind::MacAddr8) => None,
        other if !other.is_ordered() => None,
        DataType::Varchar | DataType::Name | DataType::Unknown => Some(DataType::Text),
        other => Some(other.clone()),
    }
}
