//! Functions and operators: what there is, which types they take, and how to call one.
//!
//! Operators are functions with a symbol for a name. The binder resolves a name and argument types
//! to one [`FunctionId`] by PostgreSQL's rules, which need nothing but the [`Signature`]s of that
//! name; evaluation calls the implementation behind the id.

use crate::datatype::DataType;

/// One implementation: its index in the table of all functions. Not stable across versions, so it is
/// never stored: the catalog stores SQL text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionId(pub u16);

/// When the result may change for the same arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volatility {
    /// Never.
    Immutable,
    /// Not within a statement (`now()`, what depends on the time zone).
    Stable,
    /// At any call (`random()`).
    Volatile,
}

/// One overload of a name.
#[derive(Debug, Clone)]
pub struct Signature {
    /// The implementation.
    pub id: FunctionId,
    /// The name in lower case, or the operator symbol. Prefix operators have one argument.
    pub name: &'static str,
    /// Types of the arguments.
    pub arguments: &'static [DataType],
    /// The last argument may be repeated any number of times, also none.
    pub variadic: bool,
    /// Type of the result.
    pub result: DataType,
    /// When the result may change.
    pub volatility: Volatility,
    /// NULL in, NULL out, without a call.
    pub strict: bool,
}

/// Returns the overloads of a function name or operator symbol; empty if there is none.
pub fn overloads(name: &str) -> &'static [Signature] {
    let _ = name;
    todo!("types/function")
}

/// Returns the signature of an implementation.
pub fn signature(id: FunctionId) -> &'static Signature {
    let _ = id;
    todo!("types/function")
}
