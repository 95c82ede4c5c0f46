//! Rows of `pg_cast`: the casts of `casts.txt`, which are PostgreSQL's between the supported
//! types.
//!
//! Casts are executed by [`types::cast`]; a test compares its contexts with these rows.

use types::DataType;

use crate::system::Row;
use crate::system::pg_proc;
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{char, oid};

/// A row of `pg_cast`.
pub(super) struct Cast {
    oid: u32,
    pub(super) source: DataType,
    pub(super) target: DataType,
    /// The name of the cast function; `None` for a binary-coercible cast or one through text.
    pub(super) function: Option<&'static str>,
    context: char,
    method: char,
}

/// Returns the casts.
pub(super) fn all() -> impl Iterator<Item = Cast> {
    let lines = include_str!("casts.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let fields: Vec<&'static str> = line.split(' ').collect();
        let [number, source, target, function, context, method] = fields.as_slice() else {
            return None;
        };
        Some(Cast {
            oid: number.parse().ok()?,
            source: named(source)?,
            target: named(target)?,
            function: Some(*function).filter(|function| *function != "-"),
            context: context.chars().next()?,
            method: method.chars().next()?,
        })
    })
}

/// Returns the type of a `pg_type.typname`.
fn named(name: &str) -> Option<DataType> {
    DataType::all().find(|one| one.internal_name() == name)
}

/// Returns the rows of `pg_cast`.
pub(super) fn rows(shape: &RelationDefinition) -> Vec<Row> {
    let row = |cast: Cast| {
        let function = cast.function.map_or(0, |name| pg_proc::cast_oid(name, &cast.source));
        shape.row([
            ("oid", oid(cast.oid)),
            ("castsource", oid(cast.source.oid())),
            ("casttarget", oid(cast.target.oid())),
            ("castfunc", oid(function)),
            ("castcontext", char(cast.context)),
            ("castmethod", char(cast.method)),
        ])
    };
    all().map(row).collect()
}

#[cfg(test)]
mod tests {
    use types::cast::{CastContext, cast_context};

    use super::*;

    #[test]
    fn pg_cast_contexts_match_casts() {
        assert_eq!(all().count(), include_str!("casts.txt").lines().count() - 1);
        for cast in all().filter(|cast| cast.source != cast.target) {
            let context = match cast.context {
                'i' => CastContext::Implicit,
                'a' => CastContext::Assignment,
                _ => CastContext::Explicit,
            };
            let (source, target) = (cast.source, cast.target);
            assert_eq!(cast_context(&source, &target), Some(context), "{source:?} {target:?}");
        }
    }
}
