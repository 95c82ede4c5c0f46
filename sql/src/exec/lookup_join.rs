//! Lookup join: the right rows are read by key, for a batch of left rows at a time.
//!
//! ```text
//! left batch -> its different keys -> gets or ranges -> right rows -> hash join with the batch
//! ```
//!
//! The right table is read as it was when the join was opened.

use std::collections::BTreeSet;
use std::sync::Arc;

use store::transaction::TableReader;
use types::aggregate::GroupTable;
use types::vector::{BATCH_BYTES, BATCH_ROWS};
use types::{Batch, DataType, Vector};

use crate::error::{Error, Result, sqlstate};
use crate::exec::feed::{read_points, with_salt, with_salts};
use crate::exec::hash_join::KeyIndex;
use crate::exec::history;
use crate::exec::key_range::{Keys, resolve, united};
use crate::exec::measured::measured;
use crate::exec::pairs::{Collected, JoinParts, PairJoin};
use crate::exec::part_reader::{PathRows, RowStage};
use crate::exec::project::columns_of;
use crate::exec::range_reader::{RangeReader, RowOptions};
use crate::exec::scan::first_rows;
use crate::exec::stage::{Input, Stage};
use crate::exec::{Context, Operator, build};
use crate::plan::scan::ScanNode;
use crate::plan::{LookupJoinNode, Node};

/// So many left rows are gathered before their keys are looked up, fewer at first with a row goal.
const GATHERED_ROWS: usize = 256;

/// See the module.
pub(super) struct LookupJoin {
    left: Input,
    lookup: Arc<Lookup>,
    /// The left batch at hand and its right rows.
    pairs: Option<PairJoin<KeyIndex>>,
    was_begun: bool,
    /// So many left rows are gathered next.
    gathered_rows: usize,
}

/// Finds the right rows of left batches.
struct Lookup {
    node: Arc<LookupJoinNode>,
    scan: Arc<ScanNode>,
    context: Arc<Context>,
    table: Arc<TableReader>,
    stage: Arc<RowStage>,
    options: RowOptions,
}

impl LookupJoin {
    /// Opens it and its left side.
    pub(super) fn open(node: &Arc<LookupJoinNode>, context: &Arc<Context>) -> Result<LookupJoin> {
        let Node::Scan(scan) = &node.right else {
            return Err(Error::new(sqlstate::INTERNAL_ERROR, "a look-up reads no table"));
        };
        let stage = Arc::new(RowStage::open(scan, context)?);
        let options = RowOptions {
            families: stage.families(),
            sections: stage.sections()?,
            time_range: history::time_range(scan, context)?,
            limit: None,
            reverse: false,
        };
        let lookup = Lookup {
            table: Arc::new(context.reader(scan.path.store_table)?),
            stage,
            options,
            scan: Arc::clone(scan),
            node: Arc::clone(node),
            context: Arc::clone(context),
        };
        let first = first_rows(&node.goal, context)?;
        Ok(LookupJoin {
            gathered_rows: first.unwrap_or(GATHERED_ROWS).clamp(1, GATHERED_ROWS),
            left: Input::new(build(&node.left, context)?),
            lookup: Arc::new(lookup),
            pairs: None,
            was_begun: false,
        })
    }

    /// Gathers the next left rows.
    fn gather(&mut self) -> Result<Option<Batch>> {
        let wanted = self.gathered_rows;
        self.gathered_rows = (wanted * 4).min(GATHERED_ROWS);
        let Some(first) = self.left.next()? else { return Ok(None) };
        if first.row_count >= wanted {
            return Ok(Some(first));
        }
        let mut all = Collected::new(&self.lookup.node.left_types);
        all.add(&first);
        while all.row_count < wanted && all.byte_count() < BATCH_BYTES {
            let Some(batch) = self.left.next()? else { break };
            all.add(&batch);
        }
        let columns = all.columns.into_iter().map(Arc::new).collect();
        Ok(Some(Batch { columns, row_count: all.row_count }))
    }

    fn own_stage(lookup: &Arc<Lookup>) -> Arc<dyn Stage> {
        Arc::clone(lookup) as Arc<dyn Stage>
    }
}

impl Lookup {
    /// Computes the keys of the rows that a batch asks for.
    fn keys(&self, batch: &Batch) -> Result<Keys> {
        let expressions: Vec<_> = self.node.bindings.iter().map(|(_, e)| e.clone()).collect();
        let types: Vec<DataType> = expressions.iter().map(|e| e.data_type()).collect();
        let columns = columns_of(&expressions, batch, &self.context.eval)?;
        let values: Vec<&Vector> = columns.iter().map(Arc::as_ref).collect();
        let (mut groups, mut known) = (Vec::new(), 0);
        GroupTable::new(&types).assign(&values, batch.row_count, &mut groups);
        let mut eval = self.context.eval.clone();
        let (mut points, mut ranges) = (Vec::new(), Vec::new());
        for (row, &group) in groups.iter().enumerate() {
            // Groups are numbered as they are met.
            if group < known {
                continue;
            }
            known = group + 1;
            for ((parameter, _), column) in self.node.bindings.iter().zip(&columns) {
                eval.parameters[*parameter] = column.datum(row);
            }
            match resolve(&self.scan.path, &eval)? {
                Keys::Points(more) => points.extend(more),
                Keys::Ranges(more) => ranges.extend(more),
            }
        }
        let points: BTreeSet<Vec<u8>> = points.into_iter().collect();
        match ranges.is_empty() {
            true => Ok(Keys::Points(points.into_iter().collect())),
            false => Ok(Keys::Ranges(united(ranges))),
        }
    }

    /// Opens the join of a left batch with its right rows.
    fn turn_to(&self, batch: Batch) -> Result<PairJoin<KeyIndex>> {
        let layout = &self.scan.path.layout;
        let source = match self.keys(&batch)? {
            Keys::Points(keys) => Source::Points(with_salt(layout, keys).into_iter()),
            Keys::Ranges(ranges) => {
                let ranges = with_salts(layout, ranges);
                Source::Ranges(Box::new(RangeReader::new(&self.table, ranges, &self.options)))
            }
        };
        let right = RightRows {
            scan: Arc::clone(&self.scan),
            context: Arc::clone(&self.context),
            table: Arc::clone(&self.table),
            stage: Arc::clone(&self.stage),
            options: self.options.clone(),
            source,
            rows: PathRows::default(),
        };
        let node = &self.node;
        let parts = JoinParts {
            kind: node.kind,
            left: Box::new(OneBatch(Some(batch))),
            right: measured(node.right.address(), Box::new(right), &self.context),
            candidates: KeyIndex::new(node.left_keys.clone(), node.right_keys.clone()),
            on: node.residual.clone(),
            left_types: node.left_types.clone(),
            right_types: node.right_types.clone(),
        };
        Ok(PairJoin::new(parts, &self.context))
    }
}

impl Stage for Lookup {
    fn apply(&self, batch: Batch, _: &Context, out: &mut Vec<Batch>) -> Result<()> {
        let mut pairs = self.turn_to(batch)?;
        while let Some(batch) = pairs.next()? {
            out.push(batch);
        }
        Ok(())
    }
}

impl Operator for LookupJoin {
    fn takes_stages(&self) -> bool {
        self.left.takes_stages()
    }

    fn attach(&mut self, stage: &Arc<dyn Stage>) -> Result<bool> {
        self.was_begun = true;
        self.left.attach(|| LookupJoin::own_stage(&self.lookup), stage)
    }

    fn rewind(&mut self) -> Result<bool> {
        self.pairs = None;
        self.left.rewind()
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        if !std::mem::replace(&mut self.was_begun, true) {
            self.left.attach_own(|| LookupJoin::own_stage(&self.lookup))?;
        }
        if self.left.is_attached() {
            return self.left.next();
        }
        loop {
            if let Some(pairs) = &mut self.pairs {
                if let Some(batch) = pairs.next()? {
                    return Ok(Some(batch));
                }
                self.pairs = None;
            }
            let Some(batch) = self.gather()? else { return Ok(None) };
            self.pairs = Some(self.lookup.turn_to(batch)?);
        }
    }
}

/// A batch, as a step.
pub(super) struct OneBatch(pub(super) Option<Batch>);

impl Operator for OneBatch {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.take())
    }
}

enum Source {
    Points(std::vec::IntoIter<Vec<u8>>),
    Ranges(Box<RangeReader>),
}

/// The right rows of a left batch.
struct RightRows {
    scan: Arc<ScanNode>,
    context: Arc<Context>,
    table: Arc<TableReader>,
    stage: Arc<RowStage>,
    options: RowOptions,
    source: Source,
    rows: PathRows,
}

impl RightRows {
    /// Reads the next rows; returns whether there are any.
    fn read(&mut self) -> Result<bool> {
        let rows = &mut self.rows.stored;
        rows.clear();
        match &mut self.source {
            Source::Points(keys) => read_points(keys, &self.table, BATCH_ROWS, &self.options, rows),
            Source::Ranges(ranges) => ranges.next(BATCH_ROWS, rows),
        }
    }

    fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            self.context.check()?;
            if !self.rows.has_more() && !self.read()? {
                return Ok(None);
            }
            if let Some(wanted) = self.stage.wanted(&mut self.rows)? {
                return Ok(Some(self.stage.output(&wanted.batch)));
            }
        }
    }
}

impl Operator for RightRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        let batch = self.next_batch();
        let range = self.options.time_range;
        batch.map_err(|error| history::named(error, (&self.scan, range), &self.context))
    }
}
