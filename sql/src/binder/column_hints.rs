//! Hints for unknown column names: the existing columns with the most similar names.
//!
//! Source: PostgreSQL's `searchRangeTableForCol` and `errorMissingColumn` (parse_relation.c).

use crate::binder::scope::{RelationKind, ScopeRelation};

/// The maximum edit distance of a suggested name.
const DISTANCE_MAX: usize = 3;

/// The columns whose names are nearest to a name.
#[derive(Default)]
struct NearestColumns<'a> {
    /// Their distance; `None` before the first one within the limit.
    distance: Option<usize>,
    /// At most two; none if there are more.
    columns: Vec<(&'a str, &'a str)>,
    /// True if there are more than two.
    is_crowded: bool,
}

impl<'a> NearestColumns<'a> {
    fn consider(&mut self, alias: &'a str, column: &'a str, distance: usize) {
        let best = self.distance.unwrap_or(DISTANCE_MAX + 1);
        if distance < best {
            self.distance = Some(distance);
            self.columns = vec![(alias, column)];
            self.is_crowded = false;
        } else if distance == best && self.distance.is_some() && !self.is_crowded {
            self.columns.push((alias, column));
            self.is_crowded = self.columns.len() > 2;
        }
        if self.is_crowded {
            self.columns.clear();
        }
    }
}

/// Returns the hint for a name with its qualifier, from all relations of the enclosing queries,
/// the innermost first, whether visible or not.
pub(super) fn hint<'a>(
    relations: impl Iterator<Item = &'a ScopeRelation>,
    alias: Option<&str>,
    name: &str,
) -> Option<String> {
    let mut nearest = NearestColumns::default();
    for relation in relations.filter(|relation| relation.kind != RelationKind::Join) {
        let penalty = alias.map_or(0, |alias| edit_distance(alias, &relation.alias));
        if penalty > nearest.distance.unwrap_or(DISTANCE_MAX + 1) {
            continue;
        }
        for column in &relation.columns {
            if penalty == 0 && column.name == name {
                return Some(format!(
                    "There is a column named \"{name}\" in table \"{}\", but it cannot be \
                     referenced from this part of the query.",
                    relation.alias
                ));
            }
            let distance = edit_distance(name, &column.name);
            if distance <= name.len() / 2 {
                nearest.consider(&relation.alias, &column.name, distance + penalty);
            }
        }
    }
    match nearest.columns.as_slice() {
        [one] => Some(format!("Perhaps you meant to reference the column {}.", quoted(*one))),
        [one, two] => Some(format!(
            "Perhaps you meant to reference the column {} or the column {}.",
            quoted(*one),
            quoted(*two)
        )),
        _ => None,
    }
}

fn quoted((alias, column): (&str, &str)) -> String {
    match alias {
        "" => format!("\"{column}\""),
        alias => format!("\"{alias}.{column}\""),
    }
}

/// Returns the Levenshtein distance.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let cost = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_edits() {
        assert_eq!(edit_distance("name", "nmae"), 2);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("city", "city"), 0);
    }
}
