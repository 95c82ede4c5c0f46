//! Internal names of built-in functions: names of C functions, for language `internal`, and names
//! of the functions of operators.
//!
//! Source: PostgreSQL 15's `pg_proc` and `pg_operator`.

use types::DataType;

/// The meaning of an internal name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InternalName {
    /// A function, by its name in SQL; it may be overloaded.
    Function(&'static str),
    /// An operator with its operand types; the first is none for a prefix operator.
    Operator(&'static str, Option<DataType>, DataType),
}

const NAMES: &str = include_str!("internal_names.txt");

/// Returns the meaning of a name that is not also a name of a function in SQL.
pub fn internal_name(name: &str) -> Option<InternalName> {
    let lines = NAMES.lines().filter(|line| !line.starts_with('#'));
    let mut found = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let mut words = found.next()?.split(' ');
    let meant = words.next()?;
    let (Some(left), Some(right)) = (words.next(), words.next()) else {
        return Some(InternalName::Function(meant));
    };
    let named = |name: &str| DataType::all().find(|one| one.internal_name() == name);
    let left = if left == "-" { None } else { Some(named(left)?) };
    Some(InternalName::Operator(meant, left, named(right)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_what_there_is() {
        for line in NAMES.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(' ').next().unwrap();
            match internal_name(name).unwrap() {
                InternalName::Function(meant) => assert!(!meant.is_empty(), "{line}"),
                InternalName::Operator(symbol, left, right) => {
                    let types: Vec<DataType> = left.into_iter().chain([right]).collect();
                    assert!(types::function::find(symbol, &types).is_some(), "{line}");
                }
            }
            assert!(types::function::overloads(name).is_empty(), "{line}");
        }
        assert_eq!(internal_name("bitlength"), Some(InternalName::Function("length")));
        let (of, int4) = ("+", DataType::Int4);
        assert_eq!(internal_name("int4pl"), Some(InternalName::Operator(of, Some(int4), int4)));
        assert_eq!(internal_name("int4"), None);
    }
}
