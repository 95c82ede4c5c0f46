//! The families of index rows: an index entry lives as long as the data that it represents, so it
//! has a cell for each part of its row that expires apart from the others, with the version and the
//! TTL of the base row's cell.
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
//! Included columns whose family expires have a family of their own behind these, and are NULL when
//! it has expired; all other columns are in the first. Columns of the predicate count as keys.
//!
//! An entry whose keys have expired is not there: a row that goes on without them has none, and who
//! reads the index asks for nothing that such a row could be
//! ([`EntryFamilies::of`] says which columns those are of).

use types::rowcode::{Place, RowLayout};

/// What a cell of an index entry goes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryFamily {
    /// The row: it has the version of the row's newest cell.
    Row,
    /// The cell of a family of the base table.
    Of {
        /// Its index.
        family: usize,
        /// It has a TTL.
        expires: bool,
    },
}

/// The families of an index, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFamilies {
    all: Vec<EntryFamily>,
    /// An entry needs a cell in so many of the first.
    needed: usize,
}

impl EntryFamilies {
    /// Returns the families of an index whose keys and predicate are over `inputs`, and which
    /// includes other columns. `rows_expire`: a table of one family has a TTL.
    pub fn of(
        base: &RowLayout,
        inputs: &[usize],
        include: &[usize],
        rows_expire: bool,
    ) -> EntryFamilies {
        let expiring = |family: usize| EntryFamily::Of { family, expires: true };
        if base.family_count == 1 {
            let only = EntryFamily::Of { family: 0, expires: rows_expire };
            return EntryFamilies { all: vec![only], needed: 1 };
        }
        let mut all: Vec<EntryFamily> = expiring_families(base, inputs).map(expiring).collect();
        let mut needed = all.len();
        if all.is_empty() && base.expiring.len() == base.family_count {
            return EntryFamilies { all: (0..base.family_count).map(expiring).collect(), needed };
        }
        if all.is_empty() {
            all.push(EntryFamily::Row);
            needed = 1;
        }
        for included in expiring_families(base, include).map(expiring) {
            if !all.contains(&included) {
                all.push(included);
            }
        }
        EntryFamilies { all, needed }
    }

    /// Returns the only family, which goes with the row, of an index that knows of no others.
    pub fn of_rows() -> EntryFamilies {
        EntryFamilies { all: vec![EntryFamily::Row], needed: 1 }
    }

    /// Returns the families, by what their cells go with.
    pub fn all(&self) -> &[EntryFamily] {
        &self.all
    }

    /// Returns those that an entry needs a cell in.
    pub fn needed(&self) -> &[EntryFamily] {
        &self.all[..self.needed]
    }

    /// Returns the families that the store is to require
    /// ([`Store::require_families`](store::Store::require_families)).
    pub fn required(&self) -> Vec<u8> {
        match self.all.len() {
            1 => Vec::new(),
            _ => (0..self.needed as u8).collect(),
        }
    }

    /// Returns whether any of its cells keeps the entry.
    pub fn is_any_enough(&self) -> bool {
        self.needed == 0
    }

    /// Returns those that may expire while the entry goes on, ascending.
    pub fn expiring(&self) -> Vec<usize> {
        (self.needed..self.all.len()).collect()
    }

    /// Returns the family that holds an included column of the base table.
    pub fn of_column(&self, base: &RowLayout, column: usize) -> usize {
        let Place::Packed { family, .. } = base.columns[column].place else { return 0 };
        let is_of = |one: &EntryFamily| match one {
            EntryFamily::Row => false,
            EntryFamily::Of { family: of, .. } => *of == family,
        };
        self.all.iter().position(is_of).unwrap_or(0)
    }
}

/// Returns the families of some columns that expire apart from the row, ascending.
fn expiring_families<'l>(
    base: &'l RowLayout,
    columns: &'l [usize],
) -> impl Iterator<Item = usize> + 'l {
    base.expiring.iter().copied().filter(move |&family| {
        columns.iter().any(|&column| {
            matches!(base.columns[column].place, Place::Packed { family: of, .. } if of == family)
        })
    })
}
