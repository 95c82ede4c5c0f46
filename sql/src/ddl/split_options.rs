//! `ALTER TABLE t SET (split_policy = …, max_filesize = …)` and RESET: the policy of automatic
//! splits of a table's regions and of its indexes' regions.
//!
//! The catalog is changed in the transaction of the statement; the store's descriptor is updated
//! after the commit, or at the next start if the server crashed in between.

use std::sync::Arc;

use store::descriptor::SplitOptions;

use crate::ast::{Ident, TableOption};
use crate::catalog::CatalogObject;
use crate::catalog::record::TableRecord;
use crate::catalog::table::Table;
use crate::ddl::Ddl;
use crate::ddl::options::set_split_option;
use crate::error::Result;
use crate::relation_assembly;

/// A change of a split option.
pub(super) enum SplitChange<'a> {
    /// The written value.
    Set(&'a TableOption),
    /// The default.
    Reset(&'a Ident),
}

/// Returns whether an option is a split option.
pub(super) fn is_split_option(name: &Ident) -> bool {
    matches!(name.value.as_str(), "split_policy" | "max_filesize")
}

impl Ddl<'_> {
    /// Changes the split options of a table and of its indexes.
    pub(super) fn change_split_options(
        &mut self,
        table: &Table,
        changes: &[SplitChange<'_>],
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let mut record = TableRecord::clone(self.record_of(&catalog, table)?.as_ref());
        let mut split = record.descriptor.split.clone();
        let default = SplitOptions::default();
        for change in changes {
            match change {
                SplitChange::Set(option) => set_split_option(&mut split, option)?,
                SplitChange::Reset(name) if name.value == "split_policy" => {
                    split.policy = default.policy.clone();
                }
                SplitChange::Reset(_) => split.max_file_bytes = default.max_file_bytes,
            }
        }
        for index in &mut record.indexes {
            index.descriptor.split = split.clone();
        }
        record.descriptor.split = split;
        let changed = relation_assembly::table(&catalog, &record, Arc::clone(&table.coprocessors))?;
        self.changes.altered.push(table.oid);
        self.store_object(CatalogObject::of_table(changed, record))
    }
}
