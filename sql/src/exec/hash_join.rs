//! Hash join: candidates are the right rows with equal keys. NULL keys match nothing.

use std::sync::Arc;

use types::aggregate::GroupTable;
use types::expr::Expr;
use types::{Batch, Vector};

use crate::error::Result;
use crate::exec::pairs::{Candidates, JoinParts, PairJoin};
use crate::exec::project::columns_of;
use crate::exec::{Context, Operator, build};
use crate::plan::HashJoinNode;

/// Marks the end of a chain.
const END: u32 = u32::MAX;

/// Right rows by key.
pub(super) struct KeyIndex {
    left_keys: Arc<[Expr]>,
    right_keys: Arc<[Expr]>,
    table: GroupTable,
    /// First right row of each group.
    heads: Vec<u32>,
    /// The right row after each in its group.
    chain: Vec<u32>,
    /// Groups of the left batch at hand.
    groups: Vec<u32>,
    /// Whether a key of the left row is NULL.
    has_null: Vec<bool>,
}

/// See the module.
pub(super) struct HashJoin {
    pairs: PairJoin<KeyIndex>,
}

impl HashJoin {
    /// Opens it and both sides.
    pub(super) fn open(node: &Arc<HashJoinNode>, context: &Arc<Context>) -> Result<HashJoin> {
        let candidates = KeyIndex::new(node.left_keys.clone(), node.right_keys.clone());
        let parts = JoinParts {
            kind: node.kind,
            left: build(&node.left, context)?,
            right: build(&node.right, context)?,
            candidates,
            on: node.residual.clone(),
            left_types: node.left_types.clone(),
            right_types: node.right_types.clone(),
        };
        Ok(HashJoin { pairs: PairJoin::new(parts, context) })
    }
}

impl Operator for HashJoin {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.pairs.next()
    }
}

impl KeyIndex {
    /// Returns an index of no rows by these keys, which have the same types.
    pub(super) fn new(left_keys: Vec<Expr>, right_keys: Vec<Expr>) -> KeyIndex {
        let key_types: Vec<_> = right_keys.iter().map(Expr::data_type).collect();
        KeyIndex {
            left_keys: left_keys.into(),
            right_keys: right_keys.into(),
            table: GroupTable::new(&key_types),
            heads: Vec::new(),
            chain: Vec::new(),
            groups: Vec::new(),
            has_null: Vec::new(),
        }
    }

    /// Numbers the keys of a batch; what was numbered before keeps its number.
    fn number(&mut self, keys: &[Expr], batch: &Batch, context: &Context) -> Result<()> {
        let keys = columns_of(keys, batch, &context.eval)?;
        self.has_null.clear();
        self.has_null.resize(batch.row_count, false);
        for key in &keys {
            if let Some(validity) = &key.validity {
                let rows = self.has_null.iter_mut().zip(validity);
                rows.for_each(|(has_null, valid)| *has_null |= !valid);
            }
        }
        let keys: Vec<&Vector> = keys.iter().map(Arc::as_ref).collect();
        self.table.assign(&keys, batch.row_count, &mut self.groups);
        Ok(())
    }
}

impl Candidates for KeyIndex {
    fn add(&mut self, batch: &Batch, context: &Context) -> Result<()> {
        let keys = Arc::clone(&self.right_keys);
        self.number(&keys, batch, context)?;
        self.heads.resize(self.table.group_count(), END);
        for (&group, &has_null) in self.groups.iter().zip(&self.has_null) {
            let row = self.chain.len() as u32;
            let head = &mut self.heads[group as usize];
            if has_null {
                self.chain.push(END);
            } else {
                self.chain.push(*head);
                *head = row;
            }
        }
        Ok(())
    }

    fn probe(&mut self, batch: &Batch, context: &Context) -> Result<()> {
        let keys = Arc::clone(&self.left_keys);
        self.number(&keys, batch, context)
    }

    fn first(&self, left_row: usize) -> Option<u32> {
        if *self.has_null.get(left_row)? {
            return None;
        }
        // Keys that only the left side has were numbered after all heads.
        let head = self.heads.get(self.groups[left_row] as usize)?;
        (*head != END).then_some(*head)
    }

    fn after(&self, right_row: u32) -> Option<u32> {
        let next = self.chain[right_row as usize];
        (next != END).then_some(next)
    }

    fn byte_count(&self) -> usize {
        self.table.byte_count() + (self.heads.len() + self.chain.len()) * size_of::<u32>()
    }
}
