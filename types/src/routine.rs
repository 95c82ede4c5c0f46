//! Functions of users that are called, rather than put in place of the call.
//!
//! What they do is statements, which only a session can run:
//! [`SystemSource::call_routine`](crate::system::SystemSource::call_routine) is asked for it.

use crate::datatype::DataType;
use crate::datum::Fields;

/// A function of users, as a call of it knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Routine {
    /// Its number in the catalog.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The types of its arguments, in this call.
    pub parameters: Vec<DataType>,
    /// The type of its value, in this call.
    pub result: DataType,
    /// The columns of its rows, if a row is what it returns and the type does not tell of them.
    pub fields: Option<Fields>,
    /// NULL if an argument is.
    pub strict: bool,
    /// Its value may change from call to call.
    pub is_volatile: bool,
    /// Its value never changes.
    pub is_immutable: bool,
}
