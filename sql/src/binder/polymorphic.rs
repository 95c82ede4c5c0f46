//! What `anyarray`, `anyelement` and their kin of a signature stand for in a call.
//!
//! Source: PostgreSQL's `enforce_generic_type_consistency` (parse_coerce.c). `anyarray` and
//! `anyelement` name one type in all arguments; the `anycompatible` ones the type that the
//! arguments have in common.

use types::DataType;
use types::function::Signature;

use crate::binder::typed::{can_coerce, category, is_preferred};

/// Returns the type that a signature wants for an argument.
pub(super) fn argument_type(signature: &Signature, index: usize) -> DataType {
    let last = signature.arguments.len().saturating_sub(1);
    signature.arguments[index.min(last)]
}

/// Returns the types that a signature takes for arguments of these types, and its result; `None` if
/// its pseudo-types cannot stand for them.
pub(super) fn instantiate(
    signature: &Signature,
    arguments: &[DataType],
) -> Option<(Vec<DataType>, DataType)> {
    let wanted: Vec<DataType> =
        (0..arguments.len()).map(|index| argument_type(signature, index)).collect();
    let polymorphic = |data_type: &DataType| data_type.is_polymorphic();
    if !wanted.iter().any(polymorphic) {
        return Some((wanted, signature.result));
    }
    let (mut exact, mut common) = (None, None);
    for (from, to) in arguments.iter().zip(&wanted) {
        let element = match to {
            DataType::AnyArray | DataType::CompatibleArray if *from == DataType::Unknown => {
                continue;
            }
            DataType::AnyArray | DataType::CompatibleArray => from.element()?,
            DataType::AnyElement | DataType::AnyEnum | DataType::Compatible
                if *from == DataType::Unknown =>
            {
                continue;
            }
            DataType::AnyEnum if matches!(from, DataType::Enum(_)) => *from,
            DataType::AnyEnum => return None,
            DataType::AnyElement | DataType::Compatible => *from,
            _ => continue,
        };
        if is_exact(*to) {
            if exact.is_some_and(|known| known != element) {
                return None;
            }
            exact = Some(element);
        } else {
            common = Some(match common {
                Some(known) => common_of(known, element)?,
                None => element,
            });
        }
    }
    let (exact, common) = match (exact, common) {
        (None, None) if wanted.iter().any(|to| is_exact(*to)) => return None,
        (None, None) => (DataType::Text, DataType::Text),
        (Some(exact), None) => (exact, exact),
        (None, Some(common)) => (common, common),
        (Some(exact), Some(common)) => (exact, common),
    };
    let settle = |data_type: DataType| match data_type {
        DataType::AnyArray => exact.array(),
        DataType::AnyElement | DataType::AnyEnum => Some(exact),
        DataType::CompatibleArray => common.array(),
        DataType::Compatible => Some(common),
        other => Some(other),
    };
    let wanted = wanted.into_iter().map(settle).collect::<Option<Vec<DataType>>>()?;
    Some((wanted, settle(signature.result)?))
}

/// Returns whether a pseudo-type names one type, which must be known from some argument.
pub(super) fn is_exact(data_type: DataType) -> bool {
    matches!(data_type, DataType::AnyArray | DataType::AnyElement | DataType::AnyEnum)
}

/// Returns the type that two have in common.
fn common_of(left: DataType, right: DataType) -> Option<DataType> {
    if left == right {
        return Some(left);
    }
    if category(left) != category(right) {
        return None;
    }
    let wider = !is_preferred(left) && can_coerce(left, right) && !can_coerce(right, left);
    Some(if wider { right } else { left })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(name: &str, arguments: &[DataType]) -> Option<DataType> {
        let overloads = types::function::overloads(name);
        overloads
            .iter()
            .find_map(|one| {
                (one.arguments.len() == arguments.len()).then(|| instantiate(one, arguments))?
            })
            .map(|(_, result)| result)
    }

    #[test]
    fn pseudo_types_stand_for_those_of_the_arguments() {
        let array = |of: DataType| of.array().unwrap();
        let (int4, int8) = (DataType::Int4, DataType::Int8);
        assert_eq!(settled("array_append", &[array(int4), int4]), Some(array(int4)));
        assert_eq!(settled("array_append", &[array(int4), int8]), Some(array(int8)));
        assert_eq!(settled("array_append", &[DataType::Unknown, int8]), Some(array(int8)));
        assert_eq!(settled("array_append", &[array(int4), DataType::Text]), None);
        assert_eq!(settled("array_append", &[int4, int4]), None);
    }
}
