//! ALTER TABLE and ALTER INDEX with SALT_BUCKETS: a copy of the rows or entries under other keys,
//! while others read and write them.
//!
//! ```text
//!   table locked against definitions ──▶ copy ──▶ flush, copy the rest ──▶ … until little is left
//!     ──▶ table locked against writers ──▶ copy the rest ──▶ store tables exchanged, commit
//! ```
//!
//! It is one transaction. After an error or a crash the copy is dropped, and the table is as it
//! was. The lock against writers is requested for some milliseconds at a time, and returned if a
//! transaction that held it up has left much to copy.

use std::sync::Arc;

use store::bulk_load::table_copy::SaltChange;
use store::transaction::{LockMode, TableLockMode};
use types::rowcode::salt_of;

use crate::ast::{AlterOptions, OptionsChange, OptionsOwner, Statement};
use crate::catalog::record::CATALOG_TABLE;
use crate::ddl::{TableSalting, relation_lock};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::storage_options::{OptionScope, StorageSettings, find};

/// The option.
const OPTION: &str = "salt_buckets";
/// The largest number of bytes that are copied while writers are blocked.
const LAST_BYTES_MAX: u64 = 4 << 20;

impl Session {
    /// Executes `ALTER { TABLE | INDEX } … SET (salt_buckets = n)` or RESET; returns false for any
    /// other change of options.
    ///
    /// # Errors
    ///
    /// 25001 in a transaction block, 53100 if the disk has no space for a copy; errors of the
    /// option and of the definition.
    pub(in crate::session) fn alter_salt(&mut self, statement: &Statement) -> Result<bool> {
        let Statement::AlterOptions(alter) = statement else { return Ok(false) };
        if let OptionsOwner::Schema(_) = alter.of {
            return Ok(false);
        }
        let Some(buckets) = changed_buckets(alter)? else { return Ok(false) };
        self.check_may_define(statement.tag())?;
        self.reject_in_block("ALTER … SET (salt_buckets)")?;
        match &alter.of {
            OptionsOwner::Table(name) => {
                if self.open.as_ref().is_some_and(|open| open.modes.is_repeatable()) {
                    return Err(Error::not_supported(
                        "ALTER TABLE at REPEATABLE READ",
                        "Use a READ COMMITTED transaction.",
                    ));
                }
                let begun = self.in_any_ddl(|ddl| ddl.begin_salting(alter, name, buckets))?;
                if let Some(begun) = begun {
                    self.salt_table(begun)?;
                }
            }
            OptionsOwner::Index(name) => {
                let index = self.in_any_ddl(|ddl| ddl.index_to_salt(alter, name, buckets))?;
                if let Some(index) = index {
                    self.rebuild_online(index, Some(buckets))?;
                    self.commit()?;
                }
            }
            OptionsOwner::Schema(_) => {}
        }
        Ok(true)
    }

    fn salt_table(&mut self, salting: TableSalting) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let transaction = Arc::clone(&open.transaction);
        // The snapshot of the definition would retain all versions meanwhile.
        transaction.begin_without_snapshot();
        let store = self.engine.store();
        let (from, to) = salting.buckets;
        let salt = SaltChange { from, to, bucket: salt_of };
        let mut copy = store.copy_table(salting.store_tables, salt, transaction.id())?;
        let stop = &self.stop.stop;
        let lock = relation_lock(salting.store_tables.0.0);
        copy.advance(stop)?;
        loop {
            copy.flush()?;
            copy.advance(stop)?;
            let before = transaction.lock_place();
            let mode = LockMode::Table(TableLockMode::Exclusive);
            transaction.lock_without_queueing(CATALOG_TABLE, &lock, mode)?;
            if copy.pending_bytes() <= LAST_BYTES_MAX {
                break;
            }
            transaction.release_locks_after(before);
        }
        store.wait_for_commits()?;
        copy.advance(stop)?;
        self.in_any_ddl(|ddl| ddl.finish_salting(salting))?;
        self.commit()?;
        copy.end();
        Ok(())
    }
}

/// Returns the number of buckets that a statement sets, if it changes nothing else.
fn changed_buckets(alter: &AlterOptions) -> Result<Option<u16>> {
    match &alter.change {
        OptionsChange::Set(options) => {
            let [option] = options.as_slice() else { return Ok(None) };
            if option.name.value != OPTION || option.family.is_some() {
                return Ok(None);
            }
            let spec = find(option, OptionScope::Table)?;
            let (Some(field), value) = (&spec.field, spec.parse(option)?) else { return Ok(None) };
            let mut settings = StorageSettings::default();
            (field.set)(&mut settings, value);
            Ok(Some(settings.salt_buckets))
        }
        OptionsChange::Reset(names) => match names.as_slice() {
            [one] if one.name.value == OPTION && one.family.is_none() => Ok(Some(0)),
            _ => Ok(None),
        },
        OptionsChange::ResetAll => Ok(None),
    }
}
