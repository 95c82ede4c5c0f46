//! Resolution of polymorphic pseudo-types (`anyarray`, `anyelement` and others) of a signature in
//! a call.
//!
//! Source: PostgreSQL's `enforce_generic_type_consistency` (parse_coerce.c). `anyarray` and
//! `anyelement` stand for the same type in all arguments; the `anycompatible` family for the
//! common type of the arguments.

use types::function::Signature;
use types::{DataType, SqlType};

use crate::binder::typed::{can_coerce, category, is_preferred};
use crate::catalog::Catalog;
use crate::error::Error;

/// Returns the error for a call whose arguments do not determine its polymorphic type.
pub(super) fn undetermined() -> Error {
    err!(DATATYPE_MISMATCH: "could not determine polymorphic type because input has type unknown")
}

/// Returns the declared type of an argument in a signature.
pub(super) fn argument_type(signature: &Signature, index: usize) -> &DataType {
    let last = signature.arguments.len().saturating_sub(1);
    &signature.arguments[index.min(last)]
}

/// Returns the types of a signature's arguments and result in a call with arguments of these
/// types; `None` if its pseudo-types cannot be resolved.
pub(super) fn instantiate(
    signature: &Signature,
    arguments: &[DataType],
) -> Option<(Vec<DataType>, DataType)> {
    let wanted: Vec<DataType> =
        (0..arguments.len()).map(|index| argument_type(signature, index).clone()).collect();
    if !wanted.iter().any(|data_type| data_type.is_polymorphic()) {
        return Some((wanted, signature.result.clone()));
    }
    let settled = settle(&wanted, arguments)?;
    let wanted = wanted.iter().map(|one| settled.of(one)).collect::<Option<_>>()?;
    Some((wanted, settled.of(&signature.result)?))
}

/// Returns the same for arguments that may be of domains. If all arguments of a pseudo-type are of
/// one domain, it resolves to the domain, otherwise to the base type.
pub(super) fn instantiate_domains(
    catalog: &Catalog,
    signature: &Signature,
    arguments: &[SqlType],
) -> Option<(Vec<SqlType>, SqlType)> {
    let bases: Vec<DataType> = arguments.iter().map(|argument| argument.base.clone()).collect();
    let (wanted, result) = instantiate(signature, &bases)?;
    let declared = (0..arguments.len()).map(|index| argument_type(signature, index));
    let declared: Vec<DataType> = declared.cloned().collect();
    let domains = PolymorphicDomains::of(catalog, &declared, arguments);
    let pairs = wanted.into_iter().zip(&declared);
    let wanted = pairs.map(|(found, declared)| domains.put(catalog, declared, found)).collect();
    Some((wanted, domains.put(catalog, &signature.result, result)))
}

/// Returns whether all arrays for `anyarray` are of the same domain, if any is of one.
pub(super) fn are_alike(catalog: &Catalog, signature: &Signature, arguments: &[SqlType]) -> bool {
    let arrays = arguments.iter().enumerate().filter(|(index, argument)| {
        let declared = argument_type(signature, *index);
        *declared == DataType::AnyArray && argument.base != DataType::Unknown
    });
    let elements = arrays.map(|(_, argument)| catalog.element_of(argument).map(|one| one.oid()));
    let elements: Vec<_> = elements.collect();
    elements.windows(2).all(|pair| pair[0] == pair[1])
}

/// The domains that pseudo-types resolve to in a call.
#[derive(Debug, Clone, Default)]
pub(super) struct PolymorphicDomains {
    exact: Option<SqlType>,
    common: Option<SqlType>,
}

impl PolymorphicDomains {
    /// Returns the domains of the arguments of pseudo-types.
    pub(super) fn of(
        catalog: &Catalog,
        declared: &[DataType],
        arguments: &[SqlType],
    ) -> PolymorphicDomains {
        let stands_for = |(declared, argument): (&DataType, &SqlType)| match declared {
            DataType::AnyArray | DataType::CompatibleArray => catalog.element_of(argument),
            _ => Some(argument.clone()),
        };
        let all_of = |exact: bool| {
            let pairs = declared.iter().zip(arguments);
            let of_kind = |(declared, argument): &(&DataType, &SqlType)| {
                declared.is_polymorphic()
                    && is_exact(declared) == exact
                    && argument.base != DataType::Unknown
            };
            let mut found = pairs.filter(of_kind).map(stands_for);
            let first = found.next()??;
            let are_same =
                first.domain.is_some() && found.all(|other| other.as_ref() == Some(&first));
            are_same.then_some(first)
        };
        PolymorphicDomains { exact: all_of(true), common: all_of(false) }
    }

    /// Returns the resolved type of a declared type, with its domain if it has one.
    pub(super) fn put(&self, catalog: &Catalog, declared: &DataType, found: DataType) -> SqlType {
        let domain = if is_exact(declared) { &self.exact } else { &self.common };
        let domain = domain.as_ref().filter(|_| declared.is_polymorphic());
        let of_it = match declared {
            DataType::AnyArray | DataType::CompatibleArray => {
                domain.and_then(|domain| catalog.array_of(domain))
            }
            _ => domain.cloned(),
        };
        of_it.filter(|one| one.base == found).unwrap_or_else(|| found.into())
    }
}

/// The types that pseudo-types resolve to in a call.
#[derive(Debug, Clone)]
pub(super) struct PolymorphicTypes {
    exact: DataType,
    common: DataType,
}

impl PolymorphicTypes {
    /// Returns the resolved type of a declared type.
    pub(super) fn of(&self, data_type: &DataType) -> Option<DataType> {
        match data_type {
            DataType::AnyArray => self.exact.array(),
            DataType::AnyElement | DataType::AnyEnum | DataType::AnyNonArray => {
                Some(self.exact.clone())
            }
            DataType::CompatibleArray => self.common.array(),
            DataType::Compatible | DataType::CompatibleNonArray => Some(self.common.clone()),
            other => Some(other.clone()),
        }
    }
}

/// Resolves the pseudo-types among the declared types; `None` if they do not fit the arguments.
pub(super) fn settle(wanted: &[DataType], arguments: &[DataType]) -> Option<PolymorphicTypes> {
    let (mut exact, mut common) = (None, None);
    for (from, to) in arguments.iter().zip(wanted) {
        let element = match to {
            DataType::AnyArray | DataType::CompatibleArray if *from == DataType::Unknown => {
                continue;
            }
            DataType::AnyArray | DataType::CompatibleArray => from.element()?,
            _ if *from == DataType::Unknown => continue,
            DataType::AnyEnum if matches!(from, DataType::Enum(_)) => from,
            DataType::AnyEnum => return None,
            DataType::AnyNonArray | DataType::CompatibleNonArray if from.element().is_some() => {
                return None;
            }
            DataType::AnyElement
            | DataType::AnyNonArray
            | DataType::Compatible
            | DataType::CompatibleNonArray => from,
            _ => continue,
        };
        if is_exact(to) {
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
    if exact.is_none() && wanted.iter().any(is_exact) {
        return None;
    }
    let common = common.or(exact).unwrap_or(&DataType::Text);
    let exact = exact.unwrap_or(common).clone();
    Some(PolymorphicTypes { exact, common: common.clone() })
}

/// Returns whether a pseudo-type stands for exactly one type, which some argument must determine.
pub(super) fn is_exact(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::AnyArray | DataType::AnyElement | DataType::AnyEnum | DataType::AnyNonArray
    )
}

/// Returns the common type of two types.
fn common_of<'t>(left: &'t DataType, right: &'t DataType) -> Option<&'t DataType> {
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

    fn resolved_type(name: &str, arguments: &[DataType]) -> Option<DataType> {
        let overloads = types::function::overloads(name);
        overloads
            .iter()
            .find_map(|one| {
                (one.arguments.len() == arguments.len()).then(|| instantiate(one, arguments))?
            })
            .map(|(_, result)| result)
    }

    #[test]
    fn polymorphic_types_resolve_from_arguments() {
        use DataType::{Int4, Int8};
        let array = |of: DataType| of.array().unwrap();
        assert_eq!(resolved_type("array_append", &[array(Int4), Int4]), Some(array(Int4)));
        assert_eq!(resolved_type("array_append", &[array(Int4), Int8]), Some(array(Int8)));
        assert_eq!(resolved_type("array_append", &[DataType::Unknown, Int8]), Some(array(Int8)));
        assert_eq!(resolved_type("array_append", &[array(Int4), DataType::Text]), None);
        assert_eq!(resolved_type("array_append", &[Int4, Int4]), None);
    }
}
