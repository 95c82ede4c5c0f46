//! Decorrelated groups of an apply, in which rows find the values of their subquery.
//!
//! ```text
//! first qualifying rows  ->  plan of groups, run once  ->  each row: keys -> group -> value
//!                                 \  a value fails, or the groups are too large
//!                                  `-> none: the subquery is executed for each row
//! ```
//!
//! A group that no row uses may fail, and the statement must not; so an error of a value only
//! means that there are no groups.

use std::sync::Arc;

use ahash::AHashMap;
use types::keycode;
use types::{Batch, DataType, Datum, Vector};

use crate::error::{Error, Result, sqlstate};
use crate::exec::{Context, Operator, build, memory};
use crate::plan::ApplyGroupsNode;

/// Groups by their encoded keys.
pub(super) struct DecorrelatedGroups {
    batches: Vec<Batch>,
    /// Batch and row of each group.
    places: AHashMap<Vec<u8>, (usize, usize)>,
}

impl DecorrelatedGroups {
    /// Computes the groups; `None` if a value fails or they are too large.
    ///
    /// # Errors
    ///
    /// Errors that do not concern values, for example a cancellation.
    pub(super) fn make(
        node: &ApplyGroupsNode,
        context: &Arc<Context>,
    ) -> Result<Option<DecorrelatedGroups>> {
        let made = build(&node.plan, context)
            .and_then(|mut plan| DecorrelatedGroups::gather(plan.as_mut(), node, context));
        match made {
            Ok(groups) => Ok(Some(groups)),
            Err(error) if is_of_groups(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn gather(
        plan: &mut dyn Operator,
        node: &ApplyGroupsNode,
        context: &Context,
    ) -> Result<DecorrelatedGroups> {
        let mut groups = DecorrelatedGroups { batches: Vec::new(), places: AHashMap::new() };
        let mut bytes = 0;
        while let Some(batch) = plan.next()? {
            context.check()?;
            bytes += batch.columns.iter().map(|column| column.byte_count()).sum::<usize>();
            for row in 0..batch.row_count {
                let keys = node.keys.iter().zip(&batch.columns).zip(&node.types);
                let keys = keys.map(|((_, key), data_type)| (key.datum(row), data_type));
                if let Some(form) = form(keys)? {
                    bytes += form.len() + size_of::<(Vec<u8>, usize, usize)>();
                    groups.places.insert(form, (groups.batches.len(), row));
                }
            }
            memory::check(bytes, context.work_mem())?;
            groups.batches.push(batch);
        }
        Ok(groups)
    }

    /// Returns the values for rows of the apply's input.
    pub(super) fn values(
        &self,
        node: &ApplyGroupsNode,
        rows: Batch,
        context: &Context,
    ) -> Result<Vector> {
        let keys = node.keys.iter().map(|key| Ok(key.eval_batch(&rows, &context.eval)?));
        let keys = keys.collect::<Result<Vec<Vector>>>()?;
        let found = (0..rows.row_count).map(|row| {
            let keys = node.keys.iter().zip(&keys);
            let form = form(keys.map(|(expr, key)| (key.datum(row), expr.data_type())))?;
            Ok(form.and_then(|form| self.places.get(&form).copied()))
        });
        let found = found.collect::<Result<Vec<Option<(usize, usize)>>>>()?;
        let mut both = rows;
        for (at, data_type) in node.types.iter().enumerate() {
            let mut column = Vector::new(data_type, found.len());
            for place in &found {
                match place {
                    Some((batch, row)) => {
                        column.push(&self.batches[*batch].columns[at].datum(*row));
                    }
                    None => column.push_null(),
                }
            }
            both.columns.push(Arc::new(column));
        }
        Ok(node.value.eval_batch(&both, &context.eval)?)
    }
}

/// Returns the encoding of keys, which is the same for equal values of different types; `None` if
/// one is NULL, which equals nothing.
fn form<'t>(keys: impl Iterator<Item = (Datum, &'t DataType)>) -> Result<Option<Vec<u8>>> {
    let mut form = Vec::new();
    for (value, data_type) in keys {
        let (value, data_type) = match (value.as_i64(), data_type) {
            _ if value.is_null() => return Ok(None),
            (Some(integer), _) => (Datum::Int8(integer), &DataType::Int8),
            (None, DataType::Varchar) => (value, &DataType::Text),
            (None, data_type) => (value, data_type),
        };
        keycode::encode(&value, data_type, false, false, &mut form)?;
    }
    Ok(Some(form))
}

/// Returns whether an error concerns the value of a group, or the size of the groups.
fn is_of_groups(error: &Error) -> bool {
    let code = &error.sqlstate;
    ["21", "22", "54"].iter().any(|class| code.starts_with(class))
        || *code == sqlstate::OUT_OF_MEMORY
}
