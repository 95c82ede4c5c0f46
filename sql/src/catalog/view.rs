//! Views of a catalog snapshot.
//!
//! The stored form is the text of the query with each `*` expanded at creation: columns that are
//! added to a table later are not in the view. The text is parsed when the view enters the catalog
//! snapshot and bound at each use. Names of relations and columns keep referring to the same
//! objects ([`ViewRelation`]) after these are renamed.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::codec::tagged::UnknownFields;
use types::SqlType;

use crate::ast::{CheckOption, QueryExpr, TriggerEvent, TriggerTiming};
use crate::catalog::Catalog;
use crate::catalog::composite::Composite;
use crate::catalog::derived_cache::DerivedCache;
use crate::catalog::name::SearchPath;
use crate::catalog::record::{TableKind, ViewColumnRecord, ViewRecord, ViewRelation};
use crate::catalog::table::Table;
use crate::catalog::trigger::{Trigger, TriggerRecord};
use crate::catalog::user_type::UserType;
use crate::error::{Error, Result};
use crate::parser;

/// A view.
#[derive(Debug, Clone)]
pub struct View {
    /// Its number.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name in the schema.
    pub name: String,
    /// The columns, in order.
    pub columns: Vec<ViewColumn>,
    /// The query, or the parse error if this version cannot parse its text. Such a view cannot be
    /// used; the rest of the database can.
    pub query: std::result::Result<Arc<QueryExpr>, String>,
    /// The text of the query.
    pub text: String,
    /// The tables and views that the query references.
    pub relations: Vec<ViewRelation>,
    /// The search path at creation.
    pub search_path: SearchPath,
    /// `WITH CHECK OPTION`
    pub check_option: Option<CheckOption>,
    /// `security_invoker`, if it was written: its relations are read with the privileges of the
    /// current role.
    pub security_invoker: Option<bool>,
    /// `security_barrier`, if it was written: conditions of a statement that could reveal other
    /// rows are evaluated for the rows of the view only.
    pub security_barrier: Option<bool>,
    /// Its triggers, by name: the order of their calls.
    pub triggers: Vec<Arc<Trigger>>,
    /// The cache of [`View::row_type`].
    pub row_type: DerivedCache<Arc<UserType>>,
    /// The cache of [`View::as_table`].
    pub table: DerivedCache<Arc<Table>>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A column of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// SQL text of its default, for INSERT through the view.
    pub default: Option<String>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// Returns the populated maintained views of each table.
pub(super) fn maintained_views(catalog: &Catalog) -> BTreeMap<u32, Vec<u32>> {
    let mut views: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for view in catalog.views() {
        let Some(table) = catalog.table(view.oid) else { continue };
        if table.kind != (TableKind::Maintained { populated: true }) {
            continue;
        }
        for relation in &view.relations {
            let known = views.entry(relation.oid).or_default();
            if known.last() != Some(&view.oid) {
                known.push(view.oid);
            }
        }
    }
    views
}

impl View {
    /// Returns the view of a stored record.
    ///
    /// # Errors
    ///
    /// XX001 if a type is unknown.
    pub fn of_record(record: ViewRecord, catalog: &Catalog) -> Result<View> {
        let query = parser::parse_query(&record.text);
        let query = query.map(Arc::new).map_err(|error| error.message);
        let column = |column: &ViewColumnRecord| {
            let sql_type = catalog.stored_type(column.type_oid, column.modifier)?;
            let ViewColumnRecord { name, default, unknown, .. } = column.clone();
            Ok(ViewColumn { name, sql_type, default, unknown })
        };
        let columns = record.columns.iter().map(column).collect::<Result<_>>()?;
        Ok(View {
            oid: record.oid,
            schema: record.schema,
            name: record.name,
            columns,
            query,
            text: record.text,
            relations: record.relations,
            search_path: SearchPath::of(record.search_path),
            check_option: record.check_option,
            security_invoker: record.security_invoker,
            security_barrier: record.security_barrier,
            triggers: View::sorted_triggers(record.triggers),
            row_type: DerivedCache::default(),
            table: DerivedCache::default(),
            unknown: record.unknown,
        })
    }

    /// Returns the names and the values of its options.
    pub fn options(&self) -> Vec<(String, String)> {
        let invoker = self.security_invoker.map(|on| ("security_invoker", on.to_string()));
        let barrier = self.security_barrier.map(|on| ("security_barrier", on.to_string()));
        let check = self.check_option.map(|option| ("check_option", option.word().to_lowercase()));
        let options = [invoker, barrier, check].into_iter().flatten();
        options.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Returns its row type, which is made at its first use. A materialized view has that of its
    /// table.
    pub fn row_type(&self) -> &Arc<UserType> {
        self.row_type.get_or_make(|| Arc::new(UserType::Composite(Composite::of_view(self))))
    }

    /// Returns the form of the view that its triggers are on: a table without rows in the store.
    pub fn as_table(&self) -> &Arc<Table> {
        self.table.get_or_make(|| Arc::new(Table::of_view(self)))
    }

    /// Returns whether INSTEAD OF triggers execute the changes of an event.
    pub fn has_instead(&self, event: TriggerEvent) -> bool {
        self.triggers.iter().any(|one| one.record.is_for(TriggerTiming::InsteadOf, event, true))
    }

    /// Returns triggers in the order of their calls. WHEN is refused when they are created.
    pub fn sorted_triggers(records: Vec<TriggerRecord>) -> Vec<Arc<Trigger>> {
        let trigger = |record| Arc::new(Trigger { record, condition: None });
        let mut triggers: Vec<_> = records.into_iter().map(trigger).collect();
        triggers.sort_by(|a, b| a.record.name.cmp(&b.record.name));
        triggers
    }

    /// Returns the records of its triggers, oldest first.
    pub fn trigger_records(&self) -> Vec<TriggerRecord> {
        let mut records: Vec<_> = self.triggers.iter().map(|one| one.record.clone()).collect();
        records.sort_by_key(|one| one.number);
        records
    }

    /// Returns the query.
    ///
    /// # Errors
    ///
    /// XX001 if its text cannot be parsed.
    pub fn query(&self) -> Result<&Arc<QueryExpr>> {
        self.query.as_ref().map_err(|reason| {
            err!(DATA_CORRUPTED: "the query of view \"{}\" cannot be read: {reason}", self.name;
                hint "Drop the view and create it again.")
        })
    }

    /// Returns the record to store.
    pub fn record(&self) -> ViewRecord {
        let column = |column: &ViewColumn| ViewColumnRecord {
            name: column.name.clone(),
            type_oid: column.sql_type.stored_oid_and_modifier().0,
            modifier: column.sql_type.stored_oid_and_modifier().1,
            default: column.default.clone(),
            unknown: column.unknown.clone(),
        };
        ViewRecord {
            oid: self.oid,
            schema: self.schema.clone(),
            name: self.name.clone(),
            columns: self.columns.iter().map(column).collect(),
            text: self.text.clone(),
            relations: self.relations.clone(),
            search_path: self.search_path.schemas().to_vec(),
            check_option: self.check_option,
            security_invoker: self.security_invoker,
            security_barrier: self.security_barrier,
            triggers: self.trigger_records(),
            unknown: self.unknown.clone(),
        }
    }
}
