//! User-defined functions that are called, as opposed to inlined ones.
//!
//! Their bodies are statements, which only a session can execute, by
//! [`CatalogAccess::call_routine`](crate::system::CatalogAccess::call_routine).

use crate::datatype::DataType;
use crate::datum::Fields;

/// A user-defined function in a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Routine {
    /// Its OID in the catalog.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The types of its arguments, in this call.
    pub parameters: Vec<DataType>,
    /// Its result type, in this call.
    pub result: DataType,
    /// The columns of its rows, if it returns a row whose type does not define them.
    pub fields: Option<Fields>,
    /// STRICT: NULL if an argument is NULL.
    pub strict: bool,
    /// VOLATILE.
    pub is_volatile: bool,
    /// IMMUTABLE.
    pub is_immutable: bool,
    /// LEAKPROOF.
    pub is_leakproof: bool,
}
