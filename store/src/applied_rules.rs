//! Retired rules that compactions have applied to all cells of a table: they are removed from its
//! families.
//!
//! ```text
//!   major compaction of each region --> FamilyStore::applied_rules --> ManifestEdit::AlterTables
//! ```
//!
//! A restart or a split forgets what was applied; the next major compaction finds it again.
//!
//! # Invariants
//!
//! 1. A read returns the same before and after the removal: the cells that the rules end are in
//!    no file, no memstore has cells of commits under them, and no snapshot is older.

use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::descriptor::{TableDescriptor, TableId};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::manifest::ManifestEdit;
use crate::scan::rules;

/// Removes the retired rules of a table that no cell needs. The caller holds the lock of
/// definitions.
///
/// # Errors
///
/// Those of the manifest. A table that does not exist any more is none.
pub(crate) fn remove(
    engine: &Engine,
    table: TableId,
    _defining: &MutexGuard<'_, ()>,
) -> Result<()> {
    let table = match engine.table(table) {
        Err(Error::NoSuchTable(_)) => return Ok(()),
        table => table?,
    };
    let present = Arc::clone(&table.descriptor());
    if present.families.iter().all(|family| family.retired.is_empty()) {
        return Ok(());
    }
    let visible = engine.visible();
    let regions = Arc::clone(&table.regions());
    let counts: Vec<Vec<usize>> =
        regions.all().iter().map(|region| region.applied_rules(visible)).collect();
    let mut descriptor = TableDescriptor::clone(&present);
    for (index, family) in descriptor.families.iter_mut().enumerate() {
        let counts = counts.iter().map(|counts| counts.get(index).copied().unwrap_or(0));
        family.retired = rules::applied(family, counts.min().unwrap_or(0));
    }
    if descriptor == *present {
        return Ok(());
    }
    let descriptor = Arc::new(descriptor);
    let descriptors = vec![Arc::clone(&descriptor)];
    engine.append_edits(&[ManifestEdit::AlterTables { descriptors }])?;
    regions.all().iter().try_for_each(|region| region.alter(&descriptor, engine))?;
    table.set_descriptor(descriptor);
    Ok(())
}
