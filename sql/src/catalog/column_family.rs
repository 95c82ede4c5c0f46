//! Column families in the names of columns: what `f.x`, `f.*` and `x` mean.
//!
//! A column has one name, which is unique in its table: the name without the family. If the
//! definition of a table gives the same name to columns of several families, or a column is added
//! whose name is taken, the name is that with the family, `f.x`. So a new column never changes
//! what a name means in an existing statement, view or function.
//!
//! `f.x` is the column `x` of family `f`, otherwise the column `f.x` of family `f`. An unqualified
//! `x` is never a column `f.x`: it is an error if there is one, as in Phoenix, and not a column of
//! an enclosing query.
//!
//! All functions take the columns of a relation with the families that they are in; the family of
//! key columns, which are in none, is empty.

use types::function::quote_ident;

use crate::ast::ColumnName;
use crate::error::{Error, Result};

/// Returns the position of the column that a name in a definition or a target list means.
///
/// # Errors
///
/// For a name without a family, if only columns of families have it.
pub fn named<'a>(
    columns: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    name: &ColumnName,
) -> Result<Option<usize>> {
    let ColumnName { family, name } = name;
    if let Some(family) = family {
        return Ok(find(columns, &family.value, &name.value));
    }
    match columns.clone().position(|(column, _)| column == name.value) {
        Some(found) => Ok(Some(found)),
        None => match ambiguity(columns, &name.value) {
            Some(error) => Err(error.at(name.position)),
            None => Ok(None),
        },
    }
}

/// Returns the position of the column that `family.name` means.
pub fn find<'a>(
    columns: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    family: &str,
    name: &str,
) -> Option<usize> {
    // Families of HBase often have names in upper case.
    let spellings = [str::eq, str::eq_ignore_ascii_case];
    spellings.iter().find_map(|same: &fn(&str, &str) -> bool| {
        let mut plain = columns.clone();
        let mut qualified = columns.clone();
        plain.position(|(column, of)| same(of, family) && column == name).or_else(|| {
            qualified.position(|(column, of)| same(of, family) && is_qualified(column, of, name))
        })
    })
}

/// Returns the name of a column without the family.
pub fn base_name<'a>(column: &'a str, family: &str) -> &'a str {
    let name = column.strip_prefix(family).and_then(|rest| rest.strip_prefix('.'));
    name.filter(|name| !family.is_empty() && !name.is_empty()).unwrap_or(column)
}

/// Returns the name of a column with the family.
pub fn qualified_name(family: &str, name: &str) -> String {
    format!("{family}.{name}")
}

/// Returns the error for an unqualified name of no column, if columns have it with their family.
pub fn ambiguity<'a>(
    columns: impl Iterator<Item = (&'a str, &'a str)>,
    name: &str,
) -> Option<Error> {
    let qualified = columns.filter(|(column, family)| is_qualified(column, family, name));
    let written: Vec<String> = qualified
        .map(|(_, family)| format!("{}.{}", quote_ident(family), quote_ident(name)))
        .collect();
    let error = match written.len() {
        0 => return None,
        1 => err!(UNDEFINED_COLUMN: "column \"{name}\" does not exist"),
        _ => err!(AMBIGUOUS_COLUMN: "column reference \"{name}\" is ambiguous"),
    };
    Some(error.with_hint(format!("Write {}.", written.join(" or "))))
}

/// Returns whether `column` is `name` with this family.
fn is_qualified(column: &str, family: &str, name: &str) -> bool {
    column.len() == family.len() + 1 + name.len()
        && !family.is_empty()
        && base_name(column, family) == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_name_and_exact_family_have_precedence() {
        let columns = [("f.x", ""), ("f.x", "f"), ("x", "F"), ("x", "g"), ("y", "G"), ("g.x", "0")];
        let found = |family: &str, name: &str| find(columns.iter().copied(), family, name);
        assert_eq!(found("f", "x"), Some(1));
        assert_eq!(found("F", "x"), Some(2));
        assert_eq!(found("g", "x"), Some(3));
        assert_eq!(found("g", "y"), Some(4));
        assert_eq!(found("0", "g.x"), Some(5));
        assert_eq!(found("", "f.x"), Some(0));
        assert_eq!(found("h", "x"), None);
        assert_eq!(found("f", ""), None);
    }

    #[test]
    fn base_name_is_without_own_family_only() {
        assert_eq!(base_name("f.x", "f"), "x");
        assert_eq!(base_name("f.x", "g"), "f.x");
        assert_eq!(base_name("f.", "f"), "f.");
        assert_eq!(base_name(".x", ""), ".x");
        assert_eq!(base_name("ä.ö.ü", "ä"), "ö.ü");
    }

    #[test]
    fn unqualified_name_of_qualified_columns_is_an_error() {
        let error = |name: &str| {
            let columns = [("f.x", "f"), ("A b.x", "A b"), ("g.y", "g"), ("g.z", "f")];
            ambiguity(columns.into_iter(), name)
                .map(|error| (error.sqlstate.into_owned(), error.hint.unwrap_or_default()))
        };
        let expected = ("42702".to_owned(), "Write f.x or \"A b\".x.".to_owned());
        assert_eq!(error("x"), Some(expected));
        assert_eq!(error("y"), Some(("42703".to_owned(), "Write g.y.".to_owned())));
        assert_eq!(error("z"), None);
        assert_eq!(error("f.x"), None);
    }
}
