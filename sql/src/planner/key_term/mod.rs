//! Matching of conjuncts with key columns: the conditions that an access path can use, as
//! [`KeyTerm`]s.
//!
//! A bound is used only if the comparison is within one type, or between integers of different
//! widths (which the executor converts without loss); other conditions remain in the filter.
//! `int_col = 5.5` and `date_col < timestamp` are therefore filtered, with correct results.

pub(crate) mod computed_values;
pub(super) mod generated;
pub(super) mod inverted;

use types::expr::Expr;
use types::{DataType, Datum};

use crate::plan::scan::{Comparison, KeyTerm};
use crate::planner::conjunct::{as_equal_to_any, as_operator, boolean, is_free, is_volatile};

/// A term, and its relation to the conjunct.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MatchedTerm {
    /// Term.
    pub term: KeyTerm,
    /// True if the term is equivalent to the conjunct, which then needs no check.
    pub exact: bool,
}

impl MatchedTerm {
    fn exact(term: KeyTerm) -> Option<MatchedTerm> {
        Some(MatchedTerm { term, exact: true })
    }
}

/// Returns the term that `conjunct` implies for the key column with the expression `key`, which
/// is over the same columns as the conjunct.
pub(super) fn of_conjunct(conjunct: &Expr, key: &Expr) -> Option<MatchedTerm> {
    let is_key = |side: &Expr| strip(side, key.data_type()) == Some(key);
    match conjunct {
        Expr::IsNull(operand) if operand.as_ref() == key => MatchedTerm::exact(KeyTerm::IsNull),
        Expr::Not(operand) => match operand.as_ref() {
            Expr::IsNull(operand) if operand.as_ref() == key => {
                MatchedTerm::exact(KeyTerm::IsNotNull)
            }
            operand if operand == key => MatchedTerm::exact(KeyTerm::Equal(boolean(false))),
            _ => None,
        },
        Expr::InList { operand, list } if is_key(operand) => {
            let usable = list.iter().all(|value| is_bound(value, key.data_type()));
            usable.then(|| MatchedTerm { term: KeyTerm::In(list.to_vec()), exact: true })
        }
        Expr::Or(operands) => {
            let mut terms = Vec::with_capacity(operands.len());
            let mut exact = true;
            for operand in operands {
                let matched = of_conjunct(operand, key)?;
                exact &= matched.exact;
                terms.push(matched.term);
            }
            Some(MatchedTerm { term: KeyTerm::Any(terms), exact })
        }
        conjunct if conjunct == key && *key.data_type() == DataType::Bool => {
            MatchedTerm::exact(KeyTerm::Equal(boolean(true)))
        }
        conjunct => {
            if let Some((operand, array)) = as_equal_to_any(conjunct) {
                let element = array.data_type().element()?;
                let usable =
                    is_key(operand) && is_known(array) && comparable(element, key.data_type());
                return usable
                    .then(|| MatchedTerm { term: KeyTerm::InArray(array.clone()), exact: true });
            }
            let (symbol, left, right) = as_operator(conjunct)?;
            if is_key(left) && is_bound(right, key.data_type()) {
                comparison(symbol, right, false)
            } else if is_key(right) && is_bound(left, key.data_type()) {
                comparison(symbol, left, true)
            } else {
                None
            }
        }
    }
}

fn comparison(symbol: &str, value: &Expr, flipped: bool) -> Option<MatchedTerm> {
    let comparison = match symbol {
        "=" => return MatchedTerm::exact(KeyTerm::Equal(value.clone())),
        "~~" if !flipped => return like(value),
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        _ => return None,
    };
    let comparison = match (comparison, flipped) {
        (comparison, false) => comparison,
        (Comparison::Less, true) => Comparison::Greater,
        (Comparison::LessOrEqual, true) => Comparison::GreaterOrEqual,
        (Comparison::Greater, true) => Comparison::Less,
        (Comparison::GreaterOrEqual, true) => Comparison::LessOrEqual,
    };
    MatchedTerm::exact(KeyTerm::Compare(comparison, value.clone()))
}

/// Returns the term of a LIKE with a constant pattern that begins with plain text. The prefix of
/// a parameter is only known at execution.
fn like(pattern: &Expr) -> Option<MatchedTerm> {
    let exact = match pattern {
        Expr::Constant { value: Datum::Text(pattern), .. } => {
            let (prefix, rest) = like_prefix(pattern);
            if prefix.is_empty() {
                return None;
            }
            rest == "%"
        }
        _ => false,
    };
    Some(MatchedTerm { term: KeyTerm::Like(pattern.clone()), exact })
}

/// Returns the plain text before a pattern's first wildcard, with escapes resolved, and the rest.
pub(crate) fn like_prefix(pattern: &str) -> (String, &str) {
    let mut prefix = String::new();
    let mut characters = pattern.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '%' | '_' => return (prefix, &pattern[position..]),
            '\\' => match characters.next() {
                Some((_, escaped)) => prefix.push(escaped),
                None => return (prefix, &pattern[position..]),
            },
            character => prefix.push(character),
        }
    }
    (prefix, "")
}

/// Returns whether the value can be compared with a key column of this type in key encoding.
fn is_bound(value: &Expr, key: &DataType) -> bool {
    is_known(value) && comparable(value.data_type(), key)
}

/// Returns whether the value is the same for all rows.
fn is_known(value: &Expr) -> bool {
    is_free(value) && !is_volatile(value)
}

fn comparable(value: &DataType, key: &DataType) -> bool {
    value == key || (is_integer(value) && is_integer(key)) || (is_varying(value) && is_varying(key))
}

/// Returns whether a type is an integer type.
pub(crate) fn is_integer(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int2 | DataType::Int4 | DataType::Int8)
}

/// Returns whether a type is text without padding, whose values are compared by bytes.
fn is_varying(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Text | DataType::Varchar | DataType::Name)
}

/// Removes casts that change neither the value nor its order.
fn strip<'e>(side: &'e Expr, key: &DataType) -> Option<&'e Expr> {
    match side {
        Expr::Cast { operand, from, to, .. }
            if from == key
                && ((is_integer(from) && is_integer(&to.base) && wider(&to.base, from))
                    || (is_varying(from) && is_varying(&to.base) && to.modifier < 0)) =>
        {
            strip(operand, key)
        }
        side => Some(side),
    }
}

/// Returns whether an integer type has all values of another one.
fn wider(a: &DataType, b: &DataType) -> bool {
    let width = |data_type: &DataType| match data_type {
        DataType::Int2 => 2,
        DataType::Int4 => 4,
        _ => 8,
    };
    width(a) >= width(b)
}

#[cfg(test)]
mod tests {
    use super::like_prefix;

    #[test]
    fn like_prefixes_end_at_first_wildcard() {
        assert_eq!(like_prefix("abc%"), ("abc".to_owned(), "%"));
        assert_eq!(like_prefix("a\\%b_c"), ("a%b".to_owned(), "_c"));
        assert_eq!(like_prefix("%x"), (String::new(), "%x"));
        assert_eq!(like_prefix("plain"), ("plain".to_owned(), ""));
    }
}
