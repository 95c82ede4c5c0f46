//! The functions that implement operators in PostgreSQL, such as `int4pl`, by name.
//!
//! Source: PostgreSQL 15's `pg_proc` and `pg_operator`.

use types::DataType;

/// An operator and the types of its operands; a prefix operator has no left one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorFunction {
    /// The operator.
    pub symbol: &'static str,
    /// The type of the left operand.
    pub left: Option<DataType>,
    /// The type of the right operand.
    pub right: DataType,
}

const NAMES: &str = include_str!("operator_functions.txt");

/// Returns the operator that a function implements.
pub fn operator_function(name: &str) -> Option<OperatorFunction> {
    let lines = NAMES.lines().filter(|line| !line.starts_with('#'));
    let mut found = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let mut words = found.next()?.split(' ');
    let (symbol, left, right) = (words.next()?, words.next()?, words.next()?);
    let named = |name: &str| DataType::all().find(|one| one.internal_name() == name);
    let left = if left == "-" { None } else { Some(named(left)?) };
    Some(OperatorFunction { symbol, left, right: named(right)? })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn operator_functions_implement_existing_operators() {
        for line in NAMES.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(' ').next().unwrap();
            let OperatorFunction { symbol, left, right } = operator_function(name).unwrap();
            let types: Vec<DataType> = left.into_iter().chain([right]).collect();
            assert!(types::function::find(symbol, &types).is_some(), "{line}");
            assert!(types::function::overloads(name).is_empty(), "{line}");
        }
        let int4 = DataType::Int4;
        let plus = OperatorFunction { symbol: "+", left: Some(int4.clone()), right: int4 };
        assert_eq!(operator_function("int4pl"), Some(plus));
        assert_eq!(operator_function("int4"), None);
    }
}
