//! The catalog: schemas, tables, columns, indexes, constraints, views, sequences, types and
//! functions.
//!
//! It is stored as rows of a system table of the same store, and read through an immutable
//! snapshot ([`Catalog`]) that is replaced when a DDL transaction commits. So a look-up costs a
//! pointer, and a prepared statement detects by [`Catalog::version`] that its plan is stale.
//!
//! Each object has a number that never changes, unlike its name and the store table of its rows;
//! all numbers and the ids of store tables come from one counter. Tables, indexes, views and
//! sequences of a schema share one name space ([`Schema::relations`]).

pub mod collation;
pub mod comment;
pub mod composite;
mod derived_cache;
pub mod difference;
pub mod domain;
pub mod enumeration;
pub mod extension;
pub mod foreign_key;
pub mod function;
pub mod history_marks;
pub mod operator_functions;
pub mod name;
pub mod quota;
pub mod references;
pub mod ignored_attributes;
pub mod record;
pub mod schema;
pub mod sequence;
pub mod standard_function;
pub mod statistics;
pub mod table;
pub mod user_type;
pub mod view;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::AHashMap;
use store::TableId;
use store::quota::QuotaLimits;
use types::expr::Expr;
use types::function::quote_ident;
use types::{DataType, SqlType};

use crate::ast::{Ident, TableName, TypeName};
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::composite::{Composite, ROW_ARRAY};
use crate::catalog::derived_cache::DerivedCache;
use crate::catalog::domain::Domain;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::function::Function;
use crate::catalog::name::{ObjectName, SearchPath, TEMP, is_temporary};
use crate::catalog::quota::QuotaSubject;
use crate::catalog::record::{ColumnRecord, TableRecord};
use crate::catalog::schema::{RelationId, Schema};
use crate::catalog::sequence::{Sequence, sequence_name};
use crate::catalog::statistics::TableStatistics;
use crate::catalog::table::{Index, Table};
use crate::catalog::user_type::{OID_OFFSET, UserType};
use crate::catalog::view::View;
use crate::error::{Error, Result};
use crate::parser;

/// The last assigned version.
static VERSION: AtomicU64 = AtomicU64::new(0);

/// One state of the catalog.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Unique for each state, committed or of an open transaction, and higher than those of the
    /// states that it was derived from.
    pub version: u64,
    schemas: BTreeMap<String, Arc<Schema>>,
    /// Tables by number.
    tables: AHashMap<u32, Arc<Table>>,
    /// Numbers by id in the store.
    stored: AHashMap<TableId, u32>,
    /// The tables with foreign keys to each table, by number.
    referencing: Arc<BTreeMap<u32, BTreeSet<u32>>>,
    /// Stored records of tables, for statements that alter them.
    records: AHashMap<u32, Arc<TableRecord>>,
    quotas: BTreeMap<QuotaSubject, QuotaLimits>,
    /// Statistics of ANALYZE.
    statistics: AHashMap<TableId, Arc<TableStatistics>>,
    /// Views by number. Catalogs with the same views share the map.
    views: Arc<BTreeMap<u32, Arc<View>>>,
    /// Sequences by number, shared likewise.
    sequences: Arc<BTreeMap<u32, Arc<Sequence>>>,
    /// User-defined types by number, and the row types of tables and views.
    types: Arc<BTreeMap<u32, Arc<UserType>>>,
    /// Functions by number, shared likewise.
    functions: Arc<BTreeMap<u32, Arc<Function>>>,
    /// Comments.
    comments: Arc<BTreeMap<CommentSubjectKey, Arc<str>>>,
    derived: DerivedCache,
}

/// A relation that a name in a schema refers to.
#[derive(Debug, Clone, Copy)]
pub enum CatalogRelation<'a> {
    /// A table.
    Table(&'a Arc<Table>),
    /// The index of a table's primary key, which has a name but no definition of its own.
    PrimaryKey(&'a Arc<Table>),
    /// An index, with its table.
    Index(&'a Arc<Table>, &'a Arc<Index>),
    /// A view.
    View(&'a Arc<View>),
    /// A sequence.
    Sequence(&'a Arc<Sequence>),
}

impl Catalog {
    /// Returns a value that the caller derives from the catalog: the first call computes it, and
    /// it is cached as long as this snapshot. All callers must request the same type.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce(&Catalog) -> T) -> Arc<T> {
        self.derived.get_or_make(|| make(self))
    }

    // ---- look-up ----

    /// Returns the relation of a name in a schema.
    pub fn relation(&self, schema: &str, name: &str) -> Option<CatalogRelation<'_>> {
        let id = *self.schemas.get(schema)?.relations.get(name)?;
        Some(match id {
            RelationId::Table(table) => CatalogRelation::Table(self.tables.get(&table)?),
            RelationId::PrimaryKey(table) => CatalogRelation::PrimaryKey(self.tables.get(&table)?),
            RelationId::Index(table) => {
                let table = self.tables.get(&table)?;
                let index = table.indexes.iter().find(|index| index.name == name)?;
                CatalogRelation::Index(table, index)
            }
            RelationId::View(view) => CatalogRelation::View(self.views.get(&view)?),
            RelationId::Sequence(sequence) => {
                CatalogRelation::Sequence(self.sequences.get(&sequence)?)
            }
        })
    }

    /// Returns the relation of a name in a statement; if unqualified, the first one on the search
    /// path.
    pub fn find(&self, name: &TableName, path: &SearchPath) -> Option<CatalogRelation<'_>> {
        match &name.schema {
            Some(schema) => self.relation(path.schema(&schema.value)?, &name.name.value),
            None => {
                let mut schemas = path.of_relations();
                schemas.find_map(|schema| self.relation(schema, &name.name.value))
            }
        }
    }

    /// Returns the relation of a name in a text, which is the plain name, or SQL text of it.
    ///
    /// # Errors
    ///
    /// 42601 if it is neither.
    pub fn find_text(&self, text: &str, path: &SearchPath) -> Result<Option<CatalogRelation<'_>>> {
        let mut schemas = path.of_relations();
        if let Some(found) = schemas.find_map(|schema| self.relation(schema, text)) {
            return Ok(Some(found));
        }
        Ok(self.find(&parser::parse_relation_name(text)?, path))
    }

    /// Returns the table of a name in a statement, if it is a table.
    pub fn find_table(&self, name: &TableName, path: &SearchPath) -> Option<&Arc<Table>> {
        match self.find(name, path) {
            Some(CatalogRelation::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// Returns the table of a qualified name.
    pub fn table_named(&self, name: &ObjectName) -> Option<&Arc<Table>> {
        match self.relation(&name.schema, &name.name) {
            Some(CatalogRelation::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// Returns the schema in which objects with unqualified names are created: the first existing
    /// one on the path, which may be `pg_catalog`, where creation is not allowed.
    pub fn current_schema<'p>(&self, path: &'p SearchPath) -> Option<&'p str> {
        let is_there =
            |name: &&String| *name == "pg_catalog" || self.schemas.contains_key(name.as_str());
        path.schemas().iter().find(is_there).map(String::as_str)
    }

    /// Returns the name of an object as it must be written: unqualified if the search path
    /// resolves it.
    pub fn display_name(&self, schema: &str, name: &str, path: &SearchPath) -> String {
        let known = path.of_relations().find(|one| self.relation(one, name).is_some());
        match known.is_some_and(|known| known == schema) {
            true => name.to_owned(),
            false => format!("{schema}.{name}"),
        }
    }

    /// Returns the name of a type as it must be written: unqualified if the search path resolves
    /// it.
    pub fn display_type(&self, known: &UserType, path: &SearchPath) -> String {
        let found = self.find_type(None, known.name(), path);
        match found.is_some_and(|found| found.number() == known.number()) {
            true => quote_ident(known.name()),
            false => format!("{}.{}", quote_ident(known.schema()), quote_ident(known.name())),
        }
    }

    /// Returns the name of the type with an OID as `format_type` prints it, if there is one.
    pub fn shown_type_with(&self, oid: u32, modifier: i32, path: &SearchPath) -> Option<String> {
        let Some(known) = self.type_of_oid(oid) else {
            let base = DataType::from_oid(oid)?;
            return Some(SqlType::new(base, modifier).name());
        };
        let array = if known.array_oid() == oid { "[]" } else { "" };
        Some(format!("{}{array}", self.display_type(known, path)))
    }

    /// Returns the name of a type without its modifier, as it is in messages.
    pub fn shown_type_of(&self, sql_type: SqlType, path: &SearchPath) -> String {
        let shown = self.shown_type_with(sql_type.oid(), -1, path);
        shown.unwrap_or_else(|| sql_type.base.sql_name().to_owned())
    }

    // ---- schemas ----

    /// Returns a schema by name.
    pub fn schema(&self, name: &str) -> Option<&Arc<Schema>> {
        self.schemas.get(name)
    }

    /// Returns all schemas, by name.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.schemas.values()
    }

    /// Returns the catalog with an empty schema added, as a new version.
    #[must_use]
    pub fn with_schema(&self, schema: Schema) -> Catalog {
        let mut next = self.next();
        next.schemas.insert(schema.name.clone(), Arc::new(schema));
        next
    }

    /// Returns the catalog without an empty schema, as a new version.
    #[must_use]
    pub fn without_schema(&self, name: &str) -> Catalog {
        let mut next = self.next();
        next.schemas.remove(name);
        next
    }

    // ---- tables ----

    /// Returns a table by its number.
    pub fn table(&self, oid: u32) -> Option<&Arc<Table>> {
        self.tables.get(&oid)
    }

    /// Returns the numbers of the sequences that a default reads with `nextval`.
    pub fn sequences_of_default(&self, default: &Expr) -> Vec<u32> {
        let mut sequences = Vec::new();
        default.walk(&mut |part| {
            let Expr::Call { function, arguments, .. } = part else { return };
            if types::function::signature(*function).name != "nextval" {
                return;
            }
            if let [argument] = arguments.as_slice()
                && let Some(name) = sequence_name(argument)
                && let Ok(Some(CatalogRelation::Sequence(named))) =
                    self.find_text(name, &SearchPath::default())
            {
                sequences.push(named.oid);
            }
        });
        sequences
    }

    /// Returns the table whose rows are in a store table.
    pub fn table_stored(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.get(self.stored.get(&id)?)
    }

    /// Returns the stored record of a table.
    pub fn record(&self, oid: u32) -> Option<&Arc<TableRecord>> {
        self.records.get(&oid)
    }

    /// Returns the foreign keys to a table, each with the referencing table, oldest table first.
    pub fn referencing(&self, table: u32) -> impl Iterator<Item = (&Arc<Table>, &ForeignKey)> {
        let tables = self.referencing.get(&table).into_iter().flatten();
        let tables = tables.filter_map(|referencing| self.tables.get(referencing));
        tables.flat_map(move |referencing| {
            let keys = referencing.foreign_keys.iter();
            keys.filter(move |key| key.table == table).map(move |key| (referencing, key))
        })
    }

    /// Returns all tables, by schema and name.
    pub fn tables(&self) -> Vec<&Arc<Table>> {
        let mut tables: Vec<_> = self.tables.values().collect();
        tables.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        tables
    }

    /// Returns the catalog with a table added or replaced, as a new version.
    #[must_use]
    pub fn with_table(&self, table: Table) -> Catalog {
        let mut next = self.without_table(table.oid);
        next.put_table(Arc::new(table), None);
        next
    }

    /// Returns the catalog with a table and its stored record, as a new version.
    #[must_use]
    pub fn with_stored(&self, table: Table, record: TableRecord) -> Catalog {
        let mut next = self.without_table(table.oid);
        next.put_table(Arc::new(table), Some(Arc::new(record)));
        next
    }

    /// Returns the catalog without a table, as a new version.
    #[must_use]
    pub fn without_table(&self, oid: u32) -> Catalog {
        let mut next = self.next();
        next.take_table(oid);
        next
    }

    fn put_table(&mut self, table: Arc<Table>, record: Option<Arc<TableRecord>>) {
        let id = table.oid;
        debug_assert_eq!(table.columns.len(), table.layout.columns.len(), "columns in the layout");
        if let Some(record) = &record {
            debug_assert_eq!(record.oid, id, "record of another table");
        }
        for (name, stands_for) in table_names(&table) {
            self.name(&table.schema, name, stands_for);
        }
        for key in &table.foreign_keys {
            Arc::make_mut(&mut self.referencing).entry(key.table).or_default().insert(id);
        }
        let rows = UserType::Composite(Composite::of_table(&table));
        Arc::make_mut(&mut self.types).insert(id, Arc::new(rows));
        let other = self.stored.insert(table.id, id);
        debug_assert!(other.is_none(), "tables {other:?} and {id} have the same rows");
        self.tables.insert(id, table);
        self.records.extend(record.map(|record| (id, record)));
    }

    fn take_table(&mut self, oid: u32) {
        self.records.remove(&oid);
        let Some(table) = self.tables.remove(&oid) else { return };
        self.stored.remove(&table.id);
        Arc::make_mut(&mut self.types).remove(&oid);
        for key in &table.foreign_keys {
            let referencing = Arc::make_mut(&mut self.referencing);
            if let Some(tables) = referencing.get_mut(&key.table) {
                tables.remove(&oid);
            }
        }
        for (name, _) in table_names(&table) {
            self.unname(&table.schema, name);
        }
    }

    // ---- views and sequences ----

    /// Returns a view by its number.
    pub fn view(&self, oid: u32) -> Option<&Arc<View>> {
        self.views.get(&oid)
    }

    /// Returns all views, materialized ones included, oldest first.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.views.values()
    }

    /// Returns the catalog with a view added or replaced, as a new version.
    #[must_use]
    pub fn with_view(&self, view: View) -> Catalog {
        let mut next = self.without_view(view.oid);
        next.put_view(Arc::new(view));
        next
    }

    /// Returns the catalog without a view, as a new version.
    #[must_use]
    pub fn without_view(&self, oid: u32) -> Catalog {
        let mut next = self.next();
        next.take_view(oid);
        next
    }

    fn put_view(&mut self, view: Arc<View>) {
        // A materialized view has the name and the row type of its table.
        if !self.tables.contains_key(&view.oid) {
            self.name(&view.schema, &view.name, RelationId::View(view.oid));
            let rows = UserType::Composite(Composite::of_view(&view));
            Arc::make_mut(&mut self.types).insert(view.oid, Arc::new(rows));
        }
        Arc::make_mut(&mut self.views).insert(view.oid, view);
    }

    fn take_view(&mut self, oid: u32) {
        let Some(view) = Arc::make_mut(&mut self.views).remove(&oid) else { return };
        if !self.tables.contains_key(&oid) {
            Arc::make_mut(&mut self.types).remove(&oid);
            self.unname(&view.schema, &view.name);
        }
    }

    /// Returns a sequence by its number.
    pub fn sequence(&self, oid: u32) -> Option<&Arc<Sequence>> {
        self.sequences.get(&oid)
    }

    /// Returns all sequences, oldest first.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.sequences.values()
    }

    /// Returns the catalog with a sequence added or replaced, as a new version.
    #[must_use]
    pub fn with_sequence(&self, sequence: Sequence) -> Catalog {
        let mut next = self.without_sequence(sequence.oid);
        next.put_sequence(Arc::new(sequence));
        next
    }

    /// Returns the catalog without a sequence, as a new version.
    #[must_use]
    pub fn without_sequence(&self, oid: u32) -> Catalog {
        let mut next = self.next();
        next.take_sequence(oid);
        next
    }

    fn put_sequence(&mut self, sequence: Arc<Sequence>) {
        self.name(&sequence.schema, &sequence.name, RelationId::Sequence(sequence.oid));
        Arc::make_mut(&mut self.sequences).insert(sequence.oid, sequence);
    }

    fn take_sequence(&mut self, oid: u32) {
        if let Some(sequence) = Arc::make_mut(&mut self.sequences).remove(&oid) {
            self.unname(&sequence.schema, &sequence.name);
        }
    }

    // ---- types ----

    /// Returns all user-defined types, oldest first.
    pub fn types(&self) -> impl Iterator<Item = &Arc<UserType>> {
        self.types.values()
    }

    /// Returns a user-defined type by its number.
    pub fn user_type(&self, number: u32) -> Option<&Arc<UserType>> {
        self.types.get(&number)
    }

    /// Returns the domain with an OID, or the array type of a domain.
    pub fn domain(&self, oid: u32) -> Option<&Arc<Domain>> {
        let UserType::Domain(domain) = self.type_of_oid(oid)?.as_ref() else { return None };
        if domain.sql_type.oid() == oid { Some(domain) } else { domain.array.as_ref() }
    }

    /// Returns the array type of a type; `None` for arrays, and for domains over them.
    pub fn array_of(&self, element: SqlType) -> Option<SqlType> {
        match element.domain {
            None => element.base.array().map(|base| SqlType::new(base, element.modifier)),
            Some(oid) => self.domain(oid)?.array.as_ref().map(|array| array.sql_type),
        }
    }

    /// Returns the element type of an array type; `None` for other types.
    pub fn element_of(&self, array: SqlType) -> Option<SqlType> {
        let element = array.base.element()?;
        let Some(oid) = array.domain else { return Some(SqlType::new(element, array.modifier)) };
        match array.is_domain_array() {
            true => Some(self.type_of_oid(oid)?.sql_type()),
            false => self.element_of(array.domain_array_type()),
        }
    }

    /// Returns the user-defined composite type of a name in a schema.
    pub fn composite(&self, schema: &str, name: &str) -> Option<&Composite> {
        match self.type_in(schema, name)?.as_ref() {
            UserType::Composite(composite) if !composite.is_of_rows() => Some(composite),
            _ => None,
        }
    }

    /// Returns the row type of a table or view.
    pub fn row_type(&self, relation: u32) -> Option<SqlType> {
        self.user_type(relation).map(|one| one.sql_type())
    }

    /// Returns the user-defined type of a name in a schema.
    pub fn type_in(&self, schema: &str, name: &str) -> Option<&Arc<UserType>> {
        self.types.values().find(|one| one.name() == name && one.schema() == schema)
    }

    /// Returns the user-defined type of a name in a statement; if unqualified, the first one on
    /// the search path.
    pub fn find_type(
        &self,
        schema: Option<&str>,
        name: &str,
        path: &SearchPath,
    ) -> Option<&Arc<UserType>> {
        match schema {
            Some(schema) => self.type_in(path.schema(schema)?, name),
            None => path.of_relations().find_map(|schema| self.type_in(schema, name)),
        }
    }

    /// Returns the user-defined type whose array type has the name `_type`.
    pub fn find_array_type(
        &self,
        schema: Option<&str>,
        name: &str,
        path: &SearchPath,
    ) -> Option<&Arc<UserType>> {
        let found = self.find_type(schema, name.strip_prefix('_')?, path);
        found.filter(|found| found.array().is_some())
    }

    /// Returns the user-defined type that has an OID, or whose array type has it.
    pub fn type_of_oid(&self, oid: u32) -> Option<&Arc<UserType>> {
        let number = (oid & !ROW_ARRAY).checked_sub(OID_OFFSET)?;
        let mut numbers = [Some(number), number.checked_sub(1)].into_iter().flatten();
        numbers.find_map(|number| {
            self.types.get(&number).filter(|one| one.oid() == oid || one.array_oid() == oid)
        })
    }

    /// Returns the type with an OID, built in or user-defined.
    pub fn type_with_oid(&self, oid: u32) -> Option<SqlType> {
        let of_users = || self.type_of_oid(oid)?.type_with(oid);
        DataType::from_oid(oid).map(SqlType::from).or_else(of_users)
    }

    /// Returns the type that is stored as an OID and a modifier.
    ///
    /// # Errors
    ///
    /// XX001 if there is no such type.
    pub fn stored_type(&self, oid: u32, modifier: i32) -> Result<SqlType> {
        let known = self.type_with_oid(oid).ok_or_else(
            || err!(DATA_CORRUPTED: "the catalog names an unknown type with OID {oid}"),
        )?;
        Ok(if modifier < 0 { known } else { SqlType { modifier, ..known } })
    }

    /// Returns the type of a column.
    ///
    /// # Errors
    ///
    /// XX001 if the type does not exist.
    pub fn column_type(&self, column: &ColumnRecord) -> Result<SqlType> {
        self.stored_type(column.type_oid, column.modifier)
    }

    /// Returns names and types of the columns of a table for its expressions; dropped columns have
    /// a name that no statement can contain.
    ///
    /// # Errors
    ///
    /// Those of [`Catalog::column_type`].
    pub fn columns_of(&self, columns: &[ColumnRecord]) -> Result<Vec<(String, SqlType)>> {
        let name = |column: &ColumnRecord| match column.dropped {
            // No statement can contain this name.
            true => "\0".to_owned(),
            false => column.name.clone(),
        };
        columns.iter().map(|column| Ok((name(column), self.column_type(column)?))).collect()
    }

    /// Returns the type of a type name in a statement.
    ///
    /// # Errors
    ///
    /// 42704 and 3F000 if there is no such type.
    pub fn type_named(&self, name: &TypeName, path: &SearchPath) -> Result<SqlType> {
        let Some(named) = &name.named else { return Ok(name.sql_type) };
        let schema = named.schema.as_deref();
        if let Some(column) = &named.of_column {
            return self.type_of_column((schema, &named.name), column, path);
        }
        let found = self.find_type(schema, &named.name, path);
        let Some(found) = found else {
            let array = self.find_array_type(schema, &named.name, path).and_then(|of| of.array());
            let no_type = || self.no_type(schema, &named.display_name()).at(name.position);
            return array.ok_or_else(no_type);
        };
        if !named.is_array {
            return Ok(found.sql_type());
        }
        found.array().ok_or_else(|| {
            let hint = "Use an array of the elements' type.";
            Error::not_supported("an array of a domain over arrays", hint).at(name.position)
        })
    }

    /// Returns the type of a column of a relation.
    ///
    /// # Errors
    ///
    /// 42P01 and 42703 if the relation or column does not exist.
    pub fn type_of_column(
        &self,
        (schema, relation): (Option<&str>, &str),
        column: &str,
        path: &SearchPath,
    ) -> Result<SqlType> {
        let shown = match schema {
            Some(schema) => format!("{schema}.{relation}"),
            None => relation.to_owned(),
        };
        let ident = |value: &str| Ident { value: value.to_owned(), position: 1 };
        let name = TableName { schema: schema.map(ident), name: ident(relation) };
        let missing = || err!(UNDEFINED_COLUMN: "column \"{column}\" of relation \"{relation}\" does not exist");
        if let Some(table) = self.find_table(&name, path) {
            let at = table.column_index(column).ok_or_else(missing)?;
            return Ok(table.columns[at].sql_type);
        }
        let found = self.find_type(schema, relation, path).map(|found| found.sql_type());
        let Some(DataType::Composite(of)) = found.map(|found| found.base) else {
            bail!(UNDEFINED_TABLE: "relation \"{shown}\" does not exist");
        };
        let mut attributes = of.attributes().iter();
        let found = attributes.find(|one| *one.name == *column).map(|one| one.sql_type);
        found.ok_or_else(missing)
    }

    /// Returns the error for a type that does not exist, by its name in the statement.
    pub fn no_type(&self, schema: Option<&str>, shown: &str) -> Error {
        // The schema of temporary objects is created on first use.
        let is_missing = |schema: &&str| *schema != TEMP && !self.schemas.contains_key(*schema);
        if let Some(schema) = schema.filter(is_missing) {
            return err!(INVALID_SCHEMA_NAME: "schema \"{schema}\" does not exist");
        }
        err!(UNDEFINED_OBJECT: "type \"{shown}\" does not exist")
    }

    /// Returns the catalog with a user-defined type added or replaced, as a new version.
    #[must_use]
    pub fn with_type(&self, user_type: UserType) -> Catalog {
        let mut next = self.next();
        Arc::make_mut(&mut next.types).insert(user_type.number(), Arc::new(user_type));
        next
    }

    /// Returns the catalog without a type, as a new version.
    #[must_use]
    pub fn without_type(&self, number: u32) -> Catalog {
        let mut next = self.next();
        Arc::make_mut(&mut next.types).remove(&number);
        next
    }

    // ---- functions ----

    /// Returns all user-defined functions, oldest first.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values()
    }

    /// Returns a user-defined function by its number.
    pub fn function(&self, number: u32) -> Option<&Arc<Function>> {
        self.functions.get(&number)
    }

    /// Returns the user-defined functions of a name in a call. Unqualified names do not find
    /// temporary functions, and built-in functions take precedence over the result.
    pub fn functions_named(
        &self,
        schema: Option<&str>,
        name: &str,
        path: &SearchPath,
    ) -> Vec<Arc<Function>> {
        let mut found: Vec<Arc<Function>> = Vec::new();
        let schemas: Vec<&str> = match schema {
            Some(schema) => path.schema(schema).into_iter().collect(),
            None => {
                path.schemas().iter().map(String::as_str).filter(|s| !is_temporary(s)).collect()
            }
        };
        for schema in schemas {
            let here = self.functions.values().filter(|one| {
                one.record.name == name
                    && one.record.schema == schema
                    && !found.iter().any(|known| known.parameters == one.parameters)
            });
            let here: Vec<Arc<Function>> = here.cloned().collect();
            found.extend(here);
        }
        found
    }

    /// Returns the catalog with a function added or replaced, as a new version.
    #[must_use]
    pub fn with_function(&self, function: Arc<Function>) -> Catalog {
        let mut next = self.next();
        Arc::make_mut(&mut next.functions).insert(function.record.number, function);
        next
    }

    /// Returns the catalog without a function, as a new version.
    #[must_use]
    pub fn without_function(&self, number: u32) -> Catalog {
        let mut next = self.next();
        Arc::make_mut(&mut next.functions).remove(&number);
        next
    }

    // ---- comments, quotas and statistics ----

    /// Returns all comments.
    pub fn comments(&self) -> &BTreeMap<CommentSubjectKey, Arc<str>> {
        &self.comments
    }

    /// Returns the catalog with a comment set or removed, as a new version.
    #[must_use]
    pub fn with_comment(&self, subject: CommentSubjectKey, text: Option<&str>) -> Catalog {
        let mut next = self.next();
        let comments = Arc::make_mut(&mut next.comments);
        match text {
            None => comments.remove(&subject),
            Some(text) => comments.insert(subject, text.into()),
        };
        next
    }

    /// Returns the quotas of tables and roles.
    pub fn quotas(&self) -> &BTreeMap<QuotaSubject, QuotaLimits> {
        &self.quotas
    }

    /// Returns the catalog with another quota, as a new version; empty limits remove it.
    #[must_use]
    pub fn with_quota(&self, subject: QuotaSubject, limits: QuotaLimits) -> Catalog {
        let mut next = self.next();
        match limits == QuotaLimits::default() {
            true => next.quotas.remove(&subject),
            false => next.quotas.insert(subject, limits),
        };
        next
    }

    /// Returns the statistics of a table.
    pub fn statistics(&self, table: TableId) -> Option<&Arc<TableStatistics>> {
        self.statistics.get(&table)
    }

    /// Returns the catalog with other statistics of a table, as a new version.
    #[must_use]
    pub fn with_statistics(&self, table: TableId, statistics: Option<TableStatistics>) -> Catalog {
        let mut next = self.next();
        match statistics {
            None => next.statistics.remove(&table),
            Some(statistics) => next.statistics.insert(table, Arc::new(statistics)),
        };
        next
    }

    // ---- helper functions ----

    fn next(&self) -> Catalog {
        Catalog { version: VERSION.fetch_add(1, Ordering::Relaxed) + 1, ..self.clone() }
    }

    fn name(&mut self, schema: &str, name: &str, id: RelationId) {
        let schema = self.schemas.entry(schema.to_owned()).or_insert_with_key(|name| {
            // Only a catalog that is being built, or a damaged one, lacks the schema.
            Arc::new(Schema { oid: 0, name: name.clone(), relations: AHashMap::new() })
        });
        Arc::make_mut(schema).relations.insert(name.to_owned(), id);
    }

    fn unname(&mut self, schema: &str, name: &str) {
        if let Some(schema) = self.schemas.get_mut(schema) {
            Arc::make_mut(schema).relations.remove(name);
        }
    }
}

/// Returns the names that a table uses in its schema: its own, and those of its indexes.
fn table_names(table: &Table) -> impl Iterator<Item = (&str, RelationId)> {
    let key = table.primary_key_name.as_str();
    let key = (!key.is_empty()).then_some((key, RelationId::PrimaryKey(table.oid)));
    let own = std::iter::once((table.name.as_str(), RelationId::Table(table.oid))).chain(key);
    let indexes = table.indexes.iter();
    own.chain(indexes.map(|index| (index.name.as_str(), RelationId::Index(table.oid))))
}

impl CatalogRelation<'_> {
    /// Returns its noun: `table`, `index`, `view`, `materialized view`, `sequence`.
    pub fn kind(self) -> &'static str {
        match self {
            CatalogRelation::Table(table) => table.kind_name(),
            CatalogRelation::PrimaryKey(_) | CatalogRelation::Index(..) => "index",
            CatalogRelation::View(_) => "view",
            CatalogRelation::Sequence(_) => "sequence",
        }
    }

    /// Returns its number.
    pub fn oid(self) -> u32 {
        match self {
            CatalogRelation::Table(table) | CatalogRelation::PrimaryKey(table) => table.oid,
            CatalogRelation::Index(_, index) => index.oid,
            CatalogRelation::View(view) => view.oid,
            CatalogRelation::Sequence(sequence) => sequence.oid,
        }
    }

    /// Returns its schema and name.
    pub fn name(self) -> ObjectName {
        let (schema, name) = match self {
            CatalogRelation::Table(table) => (&table.schema, &table.name),
            CatalogRelation::PrimaryKey(table) => (&table.schema, &table.primary_key_name),
            CatalogRelation::Index(table, index) => (&table.schema, &index.name),
            CatalogRelation::View(view) => (&view.schema, &view.name),
            CatalogRelation::Sequence(sequence) => (&sequence.schema, &sequence.name),
        };
        ObjectName::new(schema, name)
    }
}
