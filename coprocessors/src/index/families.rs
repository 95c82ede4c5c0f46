//! Column families of index rows.
//!
//! An index entry expires with the data that it represents. So it has a cell for each cell of its
//! row that expires independently, with the timestamp and the TTL of that cell.
//!
//! ```text
//!   base table                        keys are of    families of the index
//!   one family                        any            that one
//!   several, none with a TTL          any            the row
//!   several, some with a TTL          some with      those of the keys, all of them needed
//!                                     none with      the row, if some family has no TTL
//!                                     none with      all, any of which is enough
//! ```
//!
//! In a table of CELL storage each column of a family with a TTL expires independently: the index
//! has a family for each such column, also if the table has one family. Where the table above says
//! family, this is then the column.
//!
//! Included columns whose cell expires have their own families after these, and are NULL when
//! the cell has expired; all other columns are in the first. Columns of the predicate count as
//! keys.
//!
//! An entry whose keys have expired does not exist, even if its row does. The index is therefore
//! read only for conditions that such a row cannot satisfy ([`EntryFamilies::of`] has the columns
//! concerned).

use types::rowcode::{ColumnPlace, RowLayout};

/// The data whose lifetime a cell of an index entry has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryFamily {
    /// The row: the cell has the timestamp of the row's newest cell.
    Row,
    /// One cell of the base row.
    Of {
        /// Number of the cell in the layout of the base table.
        cell: usize,
        /// Its family has a TTL.
        expires: bool,
    },
}

/// The families of an index, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFamilies {
    all: Vec<EntryFamily>,
    /// Number of leading families in which an entry needs a cell.
    needed: usize,
}

impl EntryFamilies {
    /// Returns the families of an index with keys and predicate over `inputs` that includes the
    /// columns `include`. `rows_expire` is set for a table of one family with a TTL.
    pub fn of(
        base: &RowLayout,
        inputs: &[usize],
        include: &[usize],
        rows_expire: bool,
    ) -> EntryFamilies {
        let expiring = |cell: usize| EntryFamily::Of { cell, expires: true };
        if base.living_families() == 1 && !base.has_column_cells() {
            let only = EntryFamily::Of { cell: 0, expires: rows_expire };
            return EntryFamilies { all: vec![only], needed: 1 };
        }
        let mut all: Vec<EntryFamily> = expiring_cells(base, inputs).map(expiring).collect();
        let mut needed = all.len();
        if all.is_empty() && base.expiring.len() == base.living_families() {
            // The row lives as long as its last family, whose own cell is as young as its columns.
            all = base.expiring.iter().copied().map(expiring).collect();
        } else if all.is_empty() {
            all.push(EntryFamily::Row);
            needed = 1;
        }
        for included in expiring_cells(base, include).map(expiring) {
            if !all.contains(&included) {
                all.push(included);
            }
        }
        EntryFamilies { all, needed }
    }

    /// Returns the single family of an index that was defined without families; it lives as long
    /// as the row.
    pub fn of_rows() -> EntryFamilies {
        EntryFamilies { all: vec![EntryFamily::Row], needed: 1 }
    }

    /// Returns the families, by the data whose lifetime their cells have.
    pub fn all(&self) -> &[EntryFamily] {
        &self.all
    }

    /// Returns the families in which an entry needs a cell.
    pub fn required_families(&self) -> &[EntryFamily] {
        &self.all[..self.needed]
    }

    /// Returns the families for [`Store::require_families`](store::Store::require_families).
    pub fn required_family_ids(&self) -> Vec<u8> {
        match self.all.len() {
            1 => Vec::new(),
            _ => (0..self.needed as u8).collect(),
        }
    }

    /// Returns whether a cell in any family is enough for the entry to exist.
    pub fn is_any_family_sufficient(&self) -> bool {
        self.needed == 0
    }

    /// Returns the families that may expire before the entry, ascending.
    pub fn expiring(&self) -> Vec<usize> {
        (self.needed..self.all.len()).collect()
    }

    /// Returns the family of an included column of the base table.
    pub fn of_column(&self, base: &RowLayout, column: usize) -> usize {
        let ColumnPlace::Packed { cell, .. } = base.columns[column].place else { return 0 };
        let is_of = |one: &EntryFamily| match one {
            EntryFamily::Row => false,
            EntryFamily::Of { cell: of, .. } => *of == cell,
        };
        self.all.iter().position(is_of).unwrap_or(0)
    }
}

/// Returns the cells of some columns that expire independently of the row, ascending.
fn expiring_cells<'l>(
    base: &'l RowLayout,
    columns: &'l [usize],
) -> impl Iterator<Item = usize> + 'l {
    let packed = |column: &usize| match base.columns[*column].place {
        ColumnPlace::Packed { cell, .. } => Some(cell),
        ColumnPlace::Key(_) => None,
    };
    let mut cells: Vec<usize> = columns.iter().filter_map(packed).collect();
    cells.sort_unstable();
    cells.dedup();
    cells.into_iter().filter(|&cell| base.expiring.contains(&base.family_of_cell(cell)))
}
