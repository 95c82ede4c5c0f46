//! The rows of an aggregate that needs all of them at the end: of DISTINCT once each, of ORDER BY
//! and WITHIN GROUP in their order.
//!
//! A row is the number of its group, then what it is sorted and told apart by, then those arguments
//! that are not among that ([`Aggregate::kept_expressions`]).

use super::group_table::GroupTable;
use super::{Accumulator, Aggregate};
use crate::datatype::DataType;
use crate::error::Result;
use crate::expr::Expr;
use crate::interrupt::{self, Interrupt};
use crate::order::{KeyOrder, compare_rows};
use crate::vector::{Vector, VectorData};

/// See the module.
pub(super) struct Kept {
    /// What the rows hold behind the group.
    pub(super) expressions: Vec<Expr>,
    orders: Vec<KeyOrder>,
    /// Whether rows are fed in their order; else as they came.
    is_sorted: bool,
    /// Where each argument stands behind the group.
    places: Vec<usize>,
    rows: Rows,
    interrupt: Interrupt,
}

enum Rows {
    /// Each that differs in group and keys.
    Distinct(GroupTable),
    /// All, and what they hold beside their columns.
    All { columns: Vec<Vector>, heap_bytes: usize },
}

impl Kept {
    /// Returns no rows; `None` if the aggregate takes rows as they come.
    pub(super) fn new(aggregate: &Aggregate, interrupt: &Interrupt) -> Option<Kept> {
        if !aggregate.keeps_rows() {
            return None;
        }
        let keys = aggregate.sort_keys();
        let expressions = aggregate.kept_expressions();
        let place = |argument: &Expr| expressions.iter().position(|kept| kept == argument);
        let places = aggregate.arguments.iter().filter_map(place).collect();
        let types: Vec<DataType> = aggregate.kept_types();
        let rows = match aggregate.distinct {
            true => Rows::Distinct(GroupTable::with_payload(&types, keys.len() + 1)),
            false => Rows::All {
                columns: types.iter().map(|data_type| Vector::new(*data_type, 0)).collect(),
                heap_bytes: 0,
            },
        };
        Some(Kept {
            orders: keys.iter().map(KeyOrder::from).collect(),
            is_sorted: !aggregate.order_by.is_empty() || aggregate.depends_on_order(),
            expressions,
            places,
            rows,
            interrupt: interrupt.clone(),
        })
    }

    /// Adds rows: their groups, and the columns of [`Kept::expressions`].
    pub(super) fn add(&mut self, groups: &[u32], columns: &[&Vector]) {
        let numbers = groups.iter().map(|group| i64::from(*group)).collect();
        let numbers = Vector { data: VectorData::Int8(numbers), validity: None };
        let added = std::iter::once(&numbers).chain(columns.iter().copied());
        match &mut self.rows {
            Rows::Distinct(table) => {
                table.assign(&added.collect::<Vec<_>>(), groups.len(), &mut Vec::new());
            }
            Rows::All { columns, heap_bytes } => {
                for (column, added) in columns.iter_mut().zip(added) {
                    *heap_bytes += added.byte_count() - added.flat_byte_count();
                    column.append(added);
                }
            }
        }
    }

    /// Returns the columns of all rows.
    pub(super) fn into_columns(self) -> Vec<Vector> {
        match self.rows {
            Rows::Distinct(table) => table.into_keys(),
            Rows::All { columns, .. } => columns,
        }
    }

    /// Feeds the rows to an accumulator.
    pub(super) fn feed(self, accumulator: &mut dyn Accumulator) -> Result<()> {
        /// Rows fed at a time: their arguments are there twice.
        const ROWS: usize = 4096;
        let (orders, is_sorted, places) =
            (self.orders.clone(), self.is_sorted, self.places.clone());
        let interrupt = self.interrupt.clone();
        let columns = self.into_columns();
        let (groups, values) = columns.split_first().expect("the first column is the group");
        let groups: Vec<u32> = group_numbers(groups).map(|group| group as u32).collect();
        let mut order: Vec<u32> = (0..groups.len() as u32).collect();
        if is_sorted {
            // Rows that sort alike stay in the order in which they came.
            order = interrupt::sort(order, &interrupt, |&a, &b| {
                let keys = |row: u32| (&values[..orders.len()], row as usize);
                (groups[a as usize].cmp(&groups[b as usize]))
                    .then_with(|| compare_rows(&orders, keys(a), keys(b)))
                    .then(a.cmp(&b))
            })?;
        }
        for some in order.chunks(ROWS) {
            interrupt.check()?;
            let groups: Vec<u32> = some.iter().map(|row| groups[*row as usize]).collect();
            let arguments: Vec<Vector> =
                places.iter().map(|place| values[*place].take(some)).collect();
            accumulator.update(&groups, &arguments.iter().collect::<Vec<&Vector>>())?;
        }
        Ok(())
    }

    /// Returns the bytes held.
    pub(super) fn byte_count(&self) -> usize {
        match &self.rows {
            Rows::Distinct(table) => table.byte_count(),
            Rows::All { columns, heap_bytes } => {
                columns.iter().map(Vector::flat_byte_count).sum::<usize>() + heap_bytes
            }
        }
    }
}

/// Returns the group numbers of rows.
pub(super) fn group_numbers(column: &Vector) -> impl Iterator<Item = usize> {
    let VectorData::Int8(numbers) = &column.data else {
        unreachable!("group numbers are kept as bigint");
    };
    numbers.iter().map(|number| usize::try_from(*number).expect("groups are numbered from 0"))
}
