//! Look-up of the options that statements name, and its errors.

use crate::ast::{Ident, OptionName, TableOption};
use crate::error::{Error, Result};
use crate::storage_options::parse::{invalid, listed};
use crate::storage_options::settings::StorageSettings;
use crate::storage_options::table::{OPTIONS, OptionChange, OptionScope, OptionSpec};

fn named(name: &Ident, scope: OptionScope) -> Option<&'static OptionSpec> {
    OPTIONS.iter().find(|spec| spec.name == name.value && spec.scopes.contains(&scope))
}

/// Returns whether an option is one of the TOAST table, which is checked and not stored.
pub(crate) fn is_of_toast(option: &TableOption) -> bool {
    option.family.as_ref().is_some_and(|family| family.value == "toast")
        && named(&option.name, OptionScope::Toast).is_some()
}

/// Returns the option that CREATE names for an object.
///
/// # Errors
///
/// 22023 for an option that the object does not have.
pub(crate) fn find(option: &TableOption, scope: OptionScope) -> Result<&'static OptionSpec> {
    match is_of_toast(option) && scope == OptionScope::Table {
        true => named(&option.name, scope).ok_or_else(|| unrecognized(&option.name, scope)),
        false => find_named((option.family.as_ref(), &option.name), scope),
    }
}

/// As [`find`], for the name of an option: that of one family if a family is given.
fn find_named(
    (family, name): (Option<&Ident>, &Ident),
    scope: OptionScope,
) -> Result<&'static OptionSpec> {
    let of_object = named(name, scope);
    let found = match family {
        None => of_object,
        Some(_) if scope != OptionScope::Table => None,
        Some(_) => named(name, OptionScope::Family),
    };
    let is_other = family.is_some() && scope == OptionScope::Table;
    found.ok_or_else(|| match of_object {
        Some(spec) if is_other && !spec.is_stored_text() => {
            invalid(name, "it is an option of the table, not of a column family")
        }
        _ => unrecognized(name, scope),
    })
}

/// Returns the value of an option, as text; `None` if there is no such option.
pub(crate) fn option_text(settings: &StorageSettings, name: &str) -> Option<String> {
    let spec = OPTIONS.iter().find(|spec| spec.name == name);
    spec.and_then(|spec| spec.field.as_ref()).map(|field| (field.get)(settings).to_string())
}

/// Returns the option that RESET names for a table.
///
/// # Errors
///
/// 22023 for an option that the table does not have.
pub(crate) fn find_reset(name: &OptionName) -> Result<&'static OptionSpec> {
    find_named((name.family.as_ref(), &name.name), OptionScope::Table)
}

/// Returns an option of a table if ALTER … SET and RESET can change it.
///
/// # Errors
///
/// 0A000 for an option that cannot be changed.
pub(crate) fn changeable(spec: &'static OptionSpec, name: &Ident) -> Result<&'static OptionSpec> {
    match spec.change {
        OptionChange::Never => Err(Error::not_supported(
            format!("changing \"{}\"", name.value),
            match spec.name {
                "maintained" => "Create the materialized view again.",
                _ => "Create a table with the option and copy the rows.",
            },
        )
        .at(name.position)),
        OptionChange::ByCopy => Err(Error::not_supported(
            format!("changing \"{}\" together with other options", name.value),
            "Change it with a statement of its own.",
        )
        .at(name.position)),
        _ => Ok(spec),
    }
}

/// Returns the option that ALTER … SET or RESET names for a role.
///
/// # Errors
///
/// 0A000 for anything but a quota.
pub(crate) fn find_quota(name: &Ident) -> Result<&'static OptionSpec> {
    named(name, OptionScope::Role).ok_or_else(|| {
        let quotas = names(OptionSpec::is_quota).join(", ");
        let hint = format!("Options of roles are {quotas}.");
        Error::not_supported(format!("changing \"{}\"", name.value), hint).at(name.position)
    })
}

/// Returns the names of some options.
fn names(fits: impl Fn(&OptionSpec) -> bool) -> Vec<&'static str> {
    OPTIONS.iter().filter(|spec| fits(spec)).map(|spec| spec.name).collect()
}

/// Returns the error for an option that does not exist.
pub(crate) fn unrecognized(name: &Ident, scope: OptionScope) -> Error {
    let error = err!(INVALID_PARAMETER_VALUE: "unrecognized parameter \"{}\"", name.value; at name.position);
    let of_indexes = [OptionScope::Index, OptionScope::HashIndex, OptionScope::InvertedIndex];
    if !of_indexes.contains(&scope) {
        return error;
    }
    let own = names(|spec| spec.scopes.contains(&scope) && !spec.is_stored_text());
    error.with_hint(format!(
        "Index options are {}. Other options are inherited from the table.",
        listed(&own, "and")
    ))
}
