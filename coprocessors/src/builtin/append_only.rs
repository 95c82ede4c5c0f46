//! The `append_only` coprocessor: rows are inserted and never changed.
//!
//! ```sql
//! ALTER TABLE ledger ATTACH COPROCESSOR append_only;
//! ```
//!
//! A mutation of a row that exists is vetoed with `55000`: UPDATE, DELETE, UPSERT and ON CONFLICT
//! DO UPDATE of such a row. A row ends only by its TTL, or with all others by TRUNCATE and DROP.

use std::sync::Arc;

use store::error::Veto;
use store::observer::{BulkLoadRef, Hook, Hooks, ObserverContext, RegionObserver, TableContext};
use store::{Error, Mutation};
use types::rowcode::RowLayout;
use types::{Result, sqlstate};

use crate::change::{bulk_load_error, changes, load_previous};
use crate::registry::{Attachment, CoprocessorFactory, Parameter};

/// The factory of `append_only`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AppendOnlyFactory;

impl CoprocessorFactory for AppendOnlyFactory {
    fn name(&self) -> &str {
        "append_only"
    }

    fn about(&self) -> &str {
        "rejects changes of rows that exist"
    }

    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    fn build(&self, attachment: &Attachment<'_>) -> Result<Arc<dyn RegionObserver>> {
        Ok(Arc::new(AppendOnly {
            name: attachment.name.to_owned(),
            table: attachment.table.name.clone(),
            layout: Arc::clone(&attachment.table.layout),
        }))
    }
}

/// The observer of one table.
struct AppendOnly {
    name: String,
    table: String,
    layout: Arc<RowLayout>,
}

impl RegionObserver for AppendOnly {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch, Hook::PreBulkLoad])
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn pre_bulk_load(&self, _: &TableContext<'_>, _: &BulkLoadRef<'_>) -> store::Result<()> {
        Err(bulk_load_error("rows that are only added"))
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        load_previous(context, &self.layout, batch, |_| true)?;
        match changes(&self.layout, batch).iter().any(|change| change.old.exists()) {
            true => Err(Error::Vetoed(Box::new(self.veto()))),
            false => Ok(()),
        }
    }
}

impl AppendOnly {
    fn veto(&self) -> Veto {
        Veto {
            coprocessor: self.name.clone(),
            code: sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE.to_owned(),
            message: format!("cannot change a row of the append-only table \"{}\"", self.table),
            detail: format!("Coprocessor \"{}\" of the table rejects it.", self.name),
            table: self.table.clone(),
            ..Veto::default()
        }
    }
}
