//! Row buffer of aggregates that need all rows at the end: deduplicated for DISTINCT, sorted for
//! ORDER BY and WITHIN GROUP.
//!
//! A buffered row is the number of its group, the sort or DISTINCT keys, and the arguments that
//! are neither among these nor constants ([`Aggregate::kept_expressions`]).

use super::group_table::GroupTable;
use super::{Accumulator, Aggregate};
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::Expr;
use crate::interrupt::{self, Interrupt};
use crate::order::{KeyOrder, compare_rows};
use crate::vector::{Vector, VectorData};

/// The row buffer of one aggregate.
pub(super) struct AggregateRowBuffer {
    /// The expressions of a buffered row, after the group number.
    pub(super) expressions: Vec<Expr>,
    orders: Vec<KeyOrder>,
    /// Rows are fed in sort order, otherwise in input order.
    is_sorted: bool,
    arguments: Vec<BufferedArgument>,
    rows: Rows,
    interrupt: Interrupt,
}

/// Source of an argument when the rows are fed.
#[derive(Clone)]
enum BufferedArgument {
    /// Column of the buffered rows, after the group number.
    Column(usize),
    /// Value of all rows.
    Constant(Datum, DataType),
}

impl BufferedArgument {
    /// Returns the values of some rows.
    fn values(&self, columns: &[Vector], rows: &[u32]) -> Vector {
        match self {
            BufferedArgument::Column(column) => columns[*column].take(rows),
            BufferedArgument::Constant(value, data_type) => {
                Vector::constant(value, data_type, rows.len())
            }
        }
    }
}

enum Rows {
    /// The rows that differ in group or keys.
    Distinct(GroupTable),
    /// All rows, and their heap bytes outside the columns.
    All { columns: Vec<Vector>, heap_bytes: usize },
}

impl AggregateRowBuffer {
    /// Creates an empty buffer; `None` if the aggregate is fed directly.
    pub(super) fn new(aggregate: &Aggregate, interrupt: &Interrupt) -> Option<AggregateRowBuffer> {
        if !aggregate.buffers_rows() {
            return None;
        }
        let keys = aggregate.sort_keys();
        let expressions = aggregate.kept_expressions();
        let source = |argument: &Expr| {
            let column = expressions.iter().position(|kept| kept == argument);
            match (column, argument) {
                (Some(column), _) => Some(BufferedArgument::Column(column)),
                (None, Expr::Constant { value, data_type }) => {
                    Some(BufferedArgument::Constant(value.clone(), data_type.clone()))
                }
                (None, _) => None,
            }
        };
        let arguments: Vec<BufferedArgument> =
            aggregate.arguments.iter().filter_map(source).collect();
        debug_assert_eq!(arguments.len(), aggregate.arguments.len(), "all arguments are kept");
        let types: Vec<DataType> = aggregate.buffered_types();
        let rows = match aggregate.distinct {
            true => Rows::Distinct(GroupTable::with_payload(&types, keys.len() + 1)),
            false => Rows::All {
                columns: types.iter().map(|data_type| Vector::new(data_type, 0)).collect(),
                heap_bytes: 0,
            },
        };
        Some(AggregateRowBuffer {
            orders: keys.iter().map(KeyOrder::from).collect(),
            is_sorted: !aggregate.order_by.is_empty() || aggregate.depends_on_order(),
            expressions,
            arguments,
            rows,
            interrupt: interrupt.clone(),
        })
    }

    /// Adds rows: their groups, and the columns of [`AggregateRowBuffer::expressions`].
    pub(super) fn add(&mut self, groups: &[u32], columns: &[&Vector]) {
        debug_assert_eq!(columns.len(), self.expressions.len(), "a column for each expression");
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
        /// Rows that are fed at a time, whose arguments are copied.
        const ROWS: usize = 4096;
        let (orders, is_sorted, sources) =
            (self.orders.clone(), self.is_sorted, self.arguments.clone());
        let interrupt = self.interrupt.clone();
        let columns = self.into_columns();
        let (groups, values) = columns.split_first().expect("the first column is the group");
        let groups: Vec<u32> = group_numbers(groups).map(|group| group as u32).collect();
        let order: Vec<u32> = match is_sorted {
            true => sorted(&groups, &values[..orders.len()], &orders, &interrupt)?,
            false => (0..groups.len() as u32).collect(),
        };
        for some in order.chunks(ROWS) {
            interrupt.check()?;
            let groups: Vec<u32> = some.iter().map(|row| groups[*row as usize]).collect();
            let arguments: Vec<Vector> =
                sources.iter().map(|source| source.values(values, some)).collect();
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

/// Returns the rows by group and keys. The sort is stable.
fn sorted(
    groups: &[u32],
    keys: &[Vector],
    orders: &[KeyOrder],
    interrupt: &Interrupt,
) -> Result<Vec<u32>> {
    let all = 0..groups.len() as u32;
    let (Some(first), Some(order)) = (keys.first(), orders.first()) else {
        let rows = interrupt::sort(all.collect(), interrupt, |&a: &u32, &b: &u32| {
            groups[a as usize].cmp(&groups[b as usize]).then(a.cmp(&b))
        });
        return rows;
    };
    let values: Vec<u32> = all.clone().filter(|row| !first.is_null(*row as usize)).collect();
    let (numbers, are_exact) = order.sort_prefixes(first, &values);
    let mut numbers = numbers.into_iter();
    // Group and position of NULL, first key as a number, row.
    let item = |row: u32| {
        let group = u64::from(groups[row as usize]) << 2;
        match first.is_null(row as usize) {
            true => (group | if order.nulls_first { 0 } else { 2 }, 0, row),
            false => (group | 1, numbers.next().unwrap_or_default(), row),
        }
    };
    let items: Vec<(u64, u64, u32)> = all.map(item).collect();
    // Keys that decide if the numbers are equal.
    let rest = usize::from(are_exact)..;
    let (rest_of_keys, rest_of_orders) = (&keys[rest.clone()], &orders[rest]);
    let items = interrupt::sort(items, interrupt, |a, b| {
        let keys = |row: u32| (rest_of_keys, row as usize);
        (a.0.cmp(&b.0).then(a.1.cmp(&b.1)))
            .then_with(|| compare_rows(rest_of_orders, keys(a.2), keys(b.2)))
            .then(a.2.cmp(&b.2))
    })?;
    Ok(items.into_iter().map(|item| item.2).collect())
}

/// Returns the group numbers of rows.
pub(super) fn group_numbers(column: &Vector) -> impl Iterator<Item = usize> {
    let VectorData::Int8(numbers) = &column.data else {
        unreachable!("group numbers are kept as bigint");
    };
    numbers.iter().map(|number| usize::try_from(*number).expect("groups are numbered from 0"))
}
