//! Catalog access of values and expressions: names of OIDs, and PostgreSQL's system information
//! functions (chapter 9.26).
//!
//! This crate has no catalog; sessions pass a [`CatalogAccess`] to text conversion and evaluation
//! ([`TextStyle`](crate::text::TextStyle), [`EvalContext`](crate::context::EvalContext)).

mod access;

pub(crate) use self::access::AclItem;
pub use self::access::PRIVILEGES;

use std::fmt;
use std::sync::Arc;

use crate::datatype::RegKind;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::routine::Routine;

/// The catalog, for one statement of a session.
pub trait CatalogAccess: Send + Sync {
    /// Returns the same for a role that functions are executed as; `None` if there is no such role.
    fn as_role(&self, _role: u32) -> Option<Arc<dyn CatalogAccess>> {
        None
    }

    /// Calls a function of [`function`](crate::function) by its name. The arguments have the
    /// types of one of its overloads.
    ///
    /// # Errors
    ///
    /// PostgreSQL's for the same call.
    fn call(&self, function: &str, arguments: &[Datum]) -> Result<Datum>;

    /// Calls a user-defined function.
    ///
    /// # Errors
    ///
    /// Those of its statements; 0A000 if statements cannot be executed here.
    fn call_routine(&self, routine: &Routine, _arguments: Vec<Datum>) -> Result<Datum> {
        bail!(FEATURE_NOT_SUPPORTED: "function \"{}\" cannot be called here", routine.name)
    }

    /// Returns the text of an OID; `None` if no object of the kind has it.
    fn reg_name(&self, kind: RegKind, oid: u32) -> Option<String>;

    /// Returns the OID of the object with a name.
    ///
    /// # Errors
    ///
    /// 42P01, 42704, 42883 or a related code if there is no object of that name.
    fn reg_oid(&self, kind: RegKind, text: &str) -> Result<u32>;
}

/// An optional [`CatalogAccess`]; `None` for expressions that belong to a table and not to a
/// session.
#[derive(Clone, Default)]
pub struct CatalogHandle(pub Option<Arc<dyn CatalogAccess>>);

impl CatalogHandle {
    /// Returns the source.
    ///
    /// # Errors
    ///
    /// 0A000 if there is none.
    pub fn source(&self) -> Result<&dyn CatalogAccess> {
        self.0
            .as_deref()
            .ok_or_else(|| err!(FEATURE_NOT_SUPPORTED: "the catalog is not available here"))
    }

    /// Appends the text of an OID: a name, the number if no object has it, `-` for 0.
    pub fn write_reg_name(&self, kind: RegKind, oid: i64, out: &mut Vec<u8>) {
        if oid == 0 {
            // `-` is an operator.
            return out.push(if kind.is_of_operators() { b'0' } else { b'-' });
        }
        let source = self.0.as_deref();
        let name = source.and_then(|source| source.reg_name(kind, u32::try_from(oid).ok()?));
        match name {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => out.extend_from_slice(oid.to_string().as_bytes()),
        }
    }

    /// Parses an OID: `-`, a number, or a name.
    ///
    /// # Errors
    ///
    /// Those of [`CatalogAccess::reg_oid`].
    pub fn parse_reg_name(&self, kind: RegKind, text: &str) -> Result<i64> {
        if text == "-" && !kind.is_of_operators() {
            return Ok(0);
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // Numbers just below 2^64 are negative, as for C's `strtoul`.
            let low = |value: u64| i32::try_from(value.cast_signed()).ok().map(i32::cast_unsigned);
            let value = text.parse::<u64>().ok();
            let oid = value.and_then(|value| u32::try_from(value).ok().or_else(|| low(value)));
            return oid.map(i64::from).ok_or_else(|| {
                err!(NUMERIC_VALUE_OUT_OF_RANGE: "value \"{text}\" is out of range for type oid")
            });
        }
        self.source()?.reg_oid(kind, text).map(i64::from)
    }
}

impl fmt::Debug for CatalogHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "System" } else { "none" })
    }
}
