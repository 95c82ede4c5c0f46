//! The catalog: which tables, columns, indexes and constraints there are.
//!
//! Kept as rows of a system table of the same store; read through an immutable snapshot
//! ([`Catalog`]) that is swapped when a DDL transaction commits, so that a look-up costs a pointer
//! and a prepared statement knows by [`Catalog::version`] when its plan is stale.

mod derived;
pub mod enumeration;
pub mod quota;
pub mod record;
pub mod sequence;
pub mod statistics;
pub mod table;
pub mod view;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;
use store::TableId;
use store::quota::QuotaLimits;
use types::{DataType, SqlType};

use crate::ast::TypeName;
use crate::catalog::derived::Derived;
use crate::catalog::enumeration::EnumRecord;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::record::TableRecord;
use crate::catalog::sequence::Sequence;
use crate::catalog::statistics::TableStatistics;
use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::error::Result;

/// One state of the catalog.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Grows with every committed change.
    pub version: u64,
    tables: AHashMap<String, Arc<Table>>,
    /// What is stored of each table, for statements that change it.
    records: AHashMap<String, Arc<TableRecord>>,
    /// Index name to the name of its table.
    indexes: AHashMap<String, String>,
    quotas: BTreeMap<QuotaSubject, QuotaLimits>,
    /// What ANALYZE found out.
    statistics: AHashMap<TableId, Arc<TableStatistics>>,
    /// Shared by catalogs with the same views.
    views: Arc<BTreeMap<String, Arc<View>>>,
    /// Likewise.
    sequences: Arc<BTreeMap<String, Arc<Sequence>>>,
    /// By number.
    enums: Arc<BTreeMap<u32, Arc<EnumRecord>>>,
    derived: Derived,
}

impl Catalog {
    /// Returns what a caller makes of the catalog: the first call makes it, and it is kept as long
    /// as this snapshot. All callers ask for one type.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce(&Catalog) -> T) -> Arc<T> {
        self.derived.get_or_make(|| make(self))
    }

    /// Returns a table by name.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// Returns the table that has an index of this name.
    pub fn table_of_index(&self, index: &str) -> Option<&Arc<Table>> {
        self.indexes.get(index).and_then(|table| self.tables.get(table))
    }

    /// Returns a view by name.
    pub fn view(&self, name: &str) -> Option<&Arc<View>> {
        self.views.get(name)
    }

    /// Returns all views, by name.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.views.values()
    }

    /// Returns a sequence by name.
    pub fn sequence(&self, name: &str) -> Option<&Arc<Sequence>> {
        self.sequences.get(name)
    }

    /// Returns all sequences, by name.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.sequences.values()
    }

    /// Returns the catalog with a sequence added or replaced, one version on.
    #[must_use]
    pub fn with_sequence(&self, sequence: Sequence) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        let name = sequence.name.clone();
        Arc::make_mut(&mut next.sequences).insert(name, Arc::new(sequence));
        next
    }

    /// Returns the catalog without a sequence, one version on.
    #[must_use]
    pub fn without_sequence(&self, name: &str) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        Arc::make_mut(&mut next.sequences).remove(name);
        next
    }

    /// Returns all enums, oldest first.
    pub fn enums(&self) -> impl Iterator<Item = &Arc<EnumRecord>> {
        self.enums.values()
    }

    /// Returns an enum by name.
    pub fn enum_named(&self, name: &str) -> Option<&Arc<EnumRecord>> {
        self.enums.values().find(|record| record.name == name)
    }

    /// Returns the type with an OID, built in or not.
    pub fn type_with_oid(&self, oid: u32) -> Option<DataType> {
        let user_types = || self.enums.values().find_map(|record| record.type_with(oid));
        DataType::from_oid(oid).or_else(user_types)
    }

    /// Returns the type that a statement names.
    ///
    /// # Errors
    ///
    /// 42704 if there is no such type.
    pub fn type_named(&self, name: &TypeName) -> Result<SqlType> {
        let Some(named) = &name.named else { return Ok(name.sql_type) };
        let here = matches!(named.schema.as_deref(), None | Some("public"));
        let found = self.enum_named(&named.name).filter(|_| here);
        let found = found.map(|record| record.enum_type());
        found.map(|of| named.of(of).into()).ok_or_else(|| named.undefined().at(name.position))
    }

    /// Returns the catalog with an enum added or replaced, one version on.
    #[must_use]
    pub fn with_enum(&self, record: EnumRecord) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        Arc::make_mut(&mut next.enums).insert(record.number, Arc::new(record));
        next
    }

    /// Returns the catalog without an enum, one version on.
    #[must_use]
    pub fn without_enum(&self, number: u32) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        Arc::make_mut(&mut next.enums).remove(&number);
        next
    }

    /// Returns the catalog with a view added or replaced, one version on.
    #[must_use]
    pub fn with_view(&self, view: View) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        Arc::make_mut(&mut next.views).insert(view.name.clone(), Arc::new(view));
        next
    }

    /// Returns the catalog without a view, one version on.
    #[must_use]
    pub fn without_view(&self, name: &str) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        Arc::make_mut(&mut next.views).remove(name);
        next
    }

    /// Returns what is stored of a table.
    pub fn record(&self, name: &str) -> Option<&Arc<TableRecord>> {
        self.records.get(name)
    }

    /// Returns all tables, by name.
    pub fn tables(&self) -> Vec<&Arc<Table>> {
        let mut tables: Vec<_> = self.tables.values().collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        tables
    }

    /// Returns a table by its id in the store.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.id == id)
    }

    /// Returns the quotas of tables and roles.
    pub fn quotas(&self) -> &BTreeMap<QuotaSubject, QuotaLimits> {
        &self.quotas
    }

    /// Returns the catalog with another quota, one version on; limits of nothing are none.
    #[must_use]
    pub fn with_quota(&self, subject: QuotaSubject, limits: QuotaLimits) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        match limits == QuotaLimits::default() {
            true => next.quotas.remove(&subject),
            false => next.quotas.insert(subject, limits),
        };
        next
    }

    /// Returns what ANALYZE found out about a table.
    pub fn statistics(&self, table: TableId) -> Option<&Arc<TableStatistics>> {
        self.statistics.get(&table)
    }

    /// Returns the catalog with other statistics of a table, one version on.
    #[must_use]
    pub fn with_statistics(&self, table: TableId, statistics: Option<TableStatistics>) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        match statistics {
            None => next.statistics.remove(&table),
            Some(statistics) => next.statistics.insert(table, Arc::new(statistics)),
        };
        next
    }

    /// Returns the catalog with a table added or replaced, one version on.
    #[must_use]
    pub fn with_table(&self, table: Table) -> Catalog {
        let mut next = self.without_table(&table.name);
        for index in &table.indexes {
            next.indexes.insert(index.name.clone(), table.name.clone());
        }
        next.tables.insert(table.name.clone(), Arc::new(table));
        next
    }

    /// Returns the catalog with a table and what is stored of it, one version on.
    #[must_use]
    pub fn with_stored(&self, table: Table, record: TableRecord) -> Catalog {
        let mut next = self.with_table(table);
        next.records.insert(record.name.clone(), Arc::new(record));
        next
    }

    /// Returns the catalog without a table, one version on.
    #[must_use]
    pub fn without_table(&self, name: &str) -> Catalog {
        let mut next = self.clone();
        next.version += 1;
        next.tables.remove(name);
        next.records.remove(name);
        next.indexes.retain(|_, table| table != name);
        next
    }
}
