//! Terms that a `jsonpath` needs: those of the keys of its paths and of the scalars that they are
//! compared with.
//!
//! An item that has no terms ends its path: the terms of the items before it remain. A negated
//! condition needs none.
//!
//! Source: `extract_jsp_query` of PostgreSQL's `jsonb_gin.c`. Differences: keys are also used if
//! the path is not compared for equality.

use std::sync::Arc;

use super::json::{JsonScalar, ROOT, key_term, part_term, path_of_key, path_term};
use super::{InvertedClass, TermQuery};
use crate::datum::JsonPath;
use crate::datum::json_path::{Comparison, Item, Kind};
use crate::error::Result;

/// Place of a value in a document, as far as a path determines it.
#[derive(Clone)]
struct JsonPlace {
    class: InvertedClass,
    /// Some of the keys above it.
    keys: Vec<Arc<str>>,
    /// Hash of all keys above it; `None` if they are not known.
    path: Option<u64>,
}

/// Returns the terms for `@?`.
pub(super) fn of_exists(class: InvertedClass, path: &JsonPath) -> Result<TermQuery> {
    JsonPlace::root(class).of_path(&path.root, None)
}

/// Returns the terms for `@@`.
pub(super) fn of_match(class: InvertedClass, path: &JsonPath) -> Result<TermQuery> {
    match path.root.kind.is_predicate() {
        true => JsonPlace::root(class).of_predicate(&path.root),
        false => of_exists(class, path),
    }
}

impl JsonPlace {
    fn root(class: InvertedClass) -> JsonPlace {
        JsonPlace { class, keys: Vec::new(), path: Some(ROOT) }
    }

    /// Returns the terms of a document in which a path from this place on leads to a value, which
    /// is equal to `scalar` if that is given.
    fn of_path(&self, path: &Item, scalar: Option<&JsonScalar<'_>>) -> Result<TermQuery> {
        let (mut place, mut needed) = (self.clone(), Vec::new());
        let mut next = Some(path);
        while let Some(item) = next {
            match &item.kind {
                Kind::Root => place = JsonPlace::root(self.class),
                Kind::Current | Kind::AnyArray | Kind::Subscripts(_) => {}
                Kind::Key(key) => {
                    place.path = place.path.map(|path| path_of_key(path, key));
                    place.keys.push(Arc::clone(key));
                }
                Kind::AnyKey | Kind::AnyLevel { .. } => place.path = None,
                Kind::Filter(condition) => needed.push(place.of_predicate(condition)?),
                _ => {
                    needed.push(place.terms(None)?);
                    return Ok(TermQuery::all_of(needed));
                }
            }
            next = item.next.as_deref();
        }
        needed.push(place.terms(scalar)?);
        Ok(TermQuery::all_of(needed))
    }

    /// Returns the terms of a document in which a condition on a value at this place is true.
    fn of_predicate(&self, condition: &Item) -> Result<TermQuery> {
        match &condition.kind {
            Kind::And(left, right) => {
                Ok(TermQuery::all_of([self.of_predicate(left)?, self.of_predicate(right)?]))
            }
            Kind::Or(left, right) => {
                Ok(TermQuery::any_of([self.of_predicate(left)?, self.of_predicate(right)?]))
            }
            Kind::Exists(path) => self.of_path(path, None),
            Kind::Compare(comparison, left, right) => {
                let is_equal = *comparison == Comparison::Equal;
                let scalar = |item: &Item| if is_equal { is_scalar(item) } else { false };
                match (scalar(left), scalar(right)) {
                    (false, true) => self.of_path(left, as_scalar(right).as_ref()),
                    (true, false) => self.of_path(right, as_scalar(left).as_ref()),
                    _ => Ok(TermQuery::all_of([
                        self.of_path(left, None)?,
                        self.of_path(right, None)?,
                    ])),
                }
            }
            Kind::StartsWith(operand, _) | Kind::LikeRegex { operand, .. } => {
                self.of_path(operand, None)
            }
            _ => Ok(TermQuery::All),
        }
    }

    /// Returns the terms of a document with a value at this place, which is equal to `scalar` if
    /// that is given.
    fn terms(&self, scalar: Option<&JsonScalar<'_>>) -> Result<TermQuery> {
        if self.class == InvertedClass::JsonbPath {
            return match (scalar, self.path) {
                (Some(scalar), Some(path)) => path_term(scalar, path).map(TermQuery::Term),
                _ => Ok(TermQuery::All),
            };
        }
        let mut needed: Vec<TermQuery> = self.keys.iter().map(|key| key_term(key)).collect();
        if let Some(scalar) = scalar {
            // Arrays are unwrapped, so that a string may be an element.
            let terms = [part_term(scalar, false)?, part_term(scalar, true)?];
            needed.push(TermQuery::any_of(terms.map(TermQuery::Term)));
        }
        Ok(TermQuery::all_of(needed))
    }
}

fn is_scalar(item: &Item) -> bool {
    as_scalar(item).is_some()
}

/// Returns a literal.
fn as_scalar(item: &Item) -> Option<JsonScalar<'_>> {
    if item.next.is_some() {
        return None;
    }
    match &item.kind {
        Kind::Null => Some(JsonScalar::Null),
        Kind::Bool(value) => Some(JsonScalar::Bool(*value)),
        Kind::Number(number) => Some(JsonScalar::Number(number)),
        Kind::String(text) => Some(JsonScalar::String(text)),
        _ => None,
    }
}
