//! Errors of names and values of settings.

use crate::error::Error;

/// Returns the error 42704 for a setting that does not exist.
pub(super) fn unknown(name: &str) -> Error {
    err!(UNDEFINED_OBJECT: "unrecognized configuration parameter \"{name}\"")
}

/// Returns the error 22023 for a value.
pub(super) fn invalid(name: &str, value: &str) -> Error {
    err!(INVALID_PARAMETER_VALUE: "invalid value for parameter \"{name}\": \"{value}\"")
}

/// Returns the error 22023 for a value outside of the bounds.
pub(super) fn outside(name: &str, value: &str, (low, high): (&str, &str)) -> Error {
    err!(INVALID_PARAMETER_VALUE: "{value} is outside the valid range for parameter \"{name}\" ({low} .. {high})")
}
