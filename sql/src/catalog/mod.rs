//! The catalog: schemas, tables, columns, indexes, constraints, views, sequences, types and
//! functions.
//!
//! It is stored as rows of a system table of the same store, and read through an immutable
//! snapshot ([`Catalog`]) that is replaced when a DDL transaction commits. So a look-up costs a
//! pointer, and a prepared statement detects by [`Catalog::version`] that its plan is stale. The
//! maps of a snapshot are persistent: successive snapshots share all nodes but those that differ,
//! so to add, replace or remove an object copies O(log n) nodes.
//!
//! Each object has a number that never changes, unlike its name and the store table of its rows;
//! all numbers and the ids of store tables come from one counter. Tables, indexes, views and
//! sequences of a schema share one name space ([`Schema::relations`]).

pub mod collation;
pub mod column_family;
pub mod comment;
pub mod composite;
pub mod derived_cache;
pub mod difference;
pub mod domain;
pub mod enumeration;
pub mod extension;
pub mod foreign_key;
pub mod function;
pub mod database;
pub mod history_marks;
pub mod operator_functions;
pub mod policy;
pub mod name;
pub mod quota;
pub mod object;
pub mod ignored_attributes;
pub mod record;
pub mod access;
pub mod schema;
pub mod sequence;
pub mod standard_function;
pub mod standard_domain;
pub mod statistics;
pub mod trigger;
pub mod table;
mod tags;
pub mod user_type;
pub mod view;
mod view_table;

use std::any::Any;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imbl::{OrdMap, OrdSet};
use store::TableId;
use store::quota::QuotaLimits;
use types::expr::Expr;
use types::function::quote_ident;
use types::{DataType, SqlType};

use crate::ast::{ObjectKind, TableName};
use crate::catalog::access::object_access::{AccessRecord, AccessSubject};
use crate::catalog::access::role::{ROLES_PREFIX, RoleRecord};
use crate::catalog::comment::{COMMENTS_PREFIX, CommentRecord, CommentSubjectKey};
use crate::catalog::composite::COMPOSITES_PREFIX;
use crate::catalog::database::{DATABASES_PREFIX, DatabaseRecord};
use crate::catalog::derived_cache::DerivedCache;
use crate::catalog::domain::DOMAINS_PREFIX;
use crate::catalog::enumeration::ENUMS_PREFIX;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::function::{FUNCTIONS_PREFIX, Function};
use crate::catalog::name::{ObjectName, SearchPath, is_temporary};
use crate::catalog::quota::{QUOTA_PREFIX, QuotaSubject};
use crate::catalog::record::{
    NEXT_ID_KEY, PREPARED_PREFIX, TABLES_PREFIX, TableRecord, VIEWS_PREFIX, encode, object_key,
};
use crate::catalog::schema::{RelationId, SCHEMAS_PREFIX, Schema, SchemaRecord};
use crate::catalog::sequence::{SEQUENCES_PREFIX, Sequence, sequence_name};
use crate::catalog::statistics::{TableStatistics, statistics_key};
use crate::catalog::table::{Index, Table};
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;
use crate::error::Result;
use crate::parser;

/// The last assigned version.
static VERSION: AtomicU64 = AtomicU64::new(0);

/// One state of the catalog.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Unique for each state, committed or of an open transaction, and higher than those of the
    /// states that it was derived from.
    pub version: u64,
    /// The number of the database whose catalog it is.
    pub database: u32,
    /// All objects with their properties.
    objects: OrdMap<CatalogEntry, CatalogObject>,
    /// The schemas by name, with the names in them.
    schemas: OrdMap<String, Arc<Schema>>,
    /// Numbers of user-defined functions by name, in any schema, oldest first.
    function_names: OrdMap<Arc<str>, Vec<u32>>,
    /// Numbers of tables by their ids in the store.
    stored: OrdMap<TableId, u32>,
    /// The references of all objects, each with the object that has it.
    referrers: OrdSet<(ReferenceKey, CatalogEntry)>,
    derived: DerivedCache<Arc<dyn Any + Send + Sync>>,
    /// The cache of [`Catalog::maintained_views`].
    maintained: DerivedCache<BTreeMap<u32, Vec<u32>>>,
}

/// A reference in the definition of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ReferenceKey {
    /// A table or view by its number: that of a foreign key, a query, or an owned sequence.
    Relation(u32),
    /// A user-defined type by its OID, or by that of its array type.
    Type(u32),
    /// A type by its name in a SQL text, in any schema.
    TypeName(Arc<str>),
    /// A sequence by its name in a SQL text, in any schema.
    SequenceName(Arc<str>),
    /// A function by its name in a call in a SQL text, in any schema.
    FunctionName(Arc<str>),
    /// The function of a trigger, by its number.
    TriggerFunction(u32),
}

/// The identity of an object of the catalog: its kind and its number, which never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectId {
    /// A schema.
    Schema(u32),
    /// A table with its indexes and constraints.
    Table(u32),
    /// A view; that of a materialized view has the number of its table.
    View(u32),
    /// A sequence.
    Sequence(u32),
    /// A user-defined type.
    Type(u32),
    /// A user-defined function.
    Function(u32),
    /// A role.
    Role(u32),
    /// A database.
    Database(u32),
}

/// The key of an object or property of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CatalogEntry {
    /// An object.
    Object(ObjectId),
    /// A comment.
    Comment(CommentSubjectKey),
    /// A quota.
    Quota(QuotaSubject),
    /// Statistics of a table.
    Statistics(TableId),
    /// Owner and privileges of an object.
    Access(AccessSubject),
}

/// An object or property of the catalog.
#[derive(Debug, Clone)]
pub enum CatalogObject {
    /// A schema.
    Schema(Arc<SchemaRecord>),
    /// A table with its stored record, which statements that alter it read.
    Table(Arc<Table>, Option<Arc<TableRecord>>),
    /// A view.
    View(Arc<View>),
    /// A sequence.
    Sequence(Arc<Sequence>),
    /// A user-defined type.
    Type(Arc<UserType>),
    /// A function.
    Function(Arc<Function>),
    /// A role.
    Role(Arc<RoleRecord>),
    /// A database.
    Database(Arc<DatabaseRecord>),
    /// A comment.
    Comment(CommentSubjectKey, Arc<CommentRecord>),
    /// A quota.
    Quota(QuotaSubject, QuotaLimits),
    /// Statistics of ANALYZE.
    Statistics(TableId, Arc<TableStatistics>),
    /// Owner and privileges of an object.
    Access(AccessSubject, Arc<AccessRecord>),
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
        let value = Arc::clone(self.derived.get_or_make(|| Arc::new(make(self))));
        value.downcast().expect("a catalog has one derived value")
    }

    /// Returns the populated maintained views of a table, by number.
    pub fn maintained_views(&self, table: u32) -> &[u32] {
        self.all_maintained_views().get(&table).map_or(&[], Vec::as_slice)
    }

    /// Returns whether any table has maintained views.
    pub fn has_maintained_views(&self) -> bool {
        !self.all_maintained_views().is_empty()
    }

    fn all_maintained_views(&self) -> &BTreeMap<u32, Vec<u32>> {
        self.maintained.get_or_make(|| view::maintained_views(self))
    }

    // ---- look-up ----

    /// Returns the relation of a name in a schema.
    pub fn relation(&self, schema: &str, name: &str) -> Option<CatalogRelation<'_>> {
        let id = *self.schemas.get(schema)?.relations.get(name)?;
        Some(match id {
            RelationId::Table(table) => CatalogRelation::Table(self.table(table)?),
            RelationId::PrimaryKey(table) => CatalogRelation::PrimaryKey(self.table(table)?),
            RelationId::Index(table) => {
                let table = self.table(table)?;
                let index = table.indexes.iter().find(|index| index.name == name)?;
                CatalogRelation::Index(table, index)
            }
            RelationId::View(view) => CatalogRelation::View(self.view(view)?),
            RelationId::Sequence(sequence) => CatalogRelation::Sequence(self.sequence(sequence)?),
        })
    }

    /// Returns the relation of a name in a statement; if unqualified, the first one on the search
    /// path.
    pub fn find(&self, name: &TableName, path: &SearchPath) -> Option<CatalogRelation<'_>> {
        let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
        let found = self.find_as_written(schema, &name.name.value, path);
        if found.is_some() || !path.ignores_case() {
            return found;
        }
        let schema = schema.map(str::to_lowercase);
        self.find_as_written(schema.as_deref(), &name.name.value.to_lowercase(), path)
    }

    fn find_as_written(
        &self,
        schema: Option<&str>,
        name: &str,
        path: &SearchPath,
    ) -> Option<CatalogRelation<'_>> {
        match schema {
            Some(schema) => self.relation(path.schema(schema)?, name),
            None => {
                let mut schemas = path.of_relations();
                schemas.find_map(|schema| self.relation(schema, name))
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
        let name = parser::parse_relation_name_in(text, self.current_database())?;
        Ok(self.find(&name, path))
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
        match known.map_or(schema == standard_function::SCHEMAS[1], |known| known == schema) {
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
    pub fn shown_type_of(&self, sql_type: &SqlType, path: &SearchPath) -> String {
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

    // ---- databases ----

    /// Returns the name of the database whose catalog it is.
    pub fn current_database(&self) -> &str {
        self.database(self.database).map_or(name::DATABASE, |database| &database.name)
    }

    /// Returns a database by name.
    pub fn database_named(&self, name: &str) -> Option<&Arc<DatabaseRecord>> {
        self.databases().find(|database| database.name == name)
    }

    // ---- tables ----

    /// Returns a table by its number.
    pub fn table(&self, oid: u32) -> Option<&Arc<Table>> {
        match self.objects.get(&CatalogEntry::Object(ObjectId::Table(oid)))? {
            CatalogObject::Table(table, _) => Some(table),
            _ => None,
        }
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
        self.table(*self.stored.get(&id)?)
    }

    /// Returns the stored record of a table.
    pub fn record(&self, oid: u32) -> Option<&Arc<TableRecord>> {
        match self.objects.get(&CatalogEntry::Object(ObjectId::Table(oid)))? {
            CatalogObject::Table(_, record) => record.as_ref(),
            _ => None,
        }
    }

    /// Returns the foreign keys to a table, each with the referencing table, oldest table first.
    pub fn referencing(&self, table: u32) -> impl Iterator<Item = (&Arc<Table>, &ForeignKey)> {
        let tables = self.referrers(table).filter_map(|entry| match entry {
            CatalogEntry::Object(ObjectId::Table(referencing)) => self.table(*referencing),
            _ => None,
        });
        tables.flat_map(move |referencing| {
            let keys = referencing.foreign_keys.iter();
            keys.filter(move |key| key.table == table).map(move |key| (referencing, key))
        })
    }

    /// Returns all tables, by schema and name.
    pub fn tables(&self) -> Vec<&Arc<Table>> {
        let mut tables: Vec<_> = self.tables_by_age().collect();
        tables.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        tables
    }

    /// Returns all tables, oldest first.
    pub fn tables_by_age(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.objects.range(CatalogEntry::Object(ObjectId::Table(0))..).map_while(|(_, object)| {
            match object {
                CatalogObject::Table(table, _) => Some(table),
                _ => None,
            }
        })
    }

    // ---- functions ----

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
                // The default user has the name of the schema of Phoenix's functions.
                let is_searched =
                    |s: &&str| !is_temporary(s) && *s != standard_function::PHOENIX_SCHEMA;
                let listed = path.schemas().iter().map(String::as_str);
                listed.filter(is_searched).chain([standard_function::SCHEMAS[1]]).collect()
            }
        };
        for schema in schemas {
            let is_new = |one: &&Arc<Function>| {
                !found.iter().any(|known| known.parameters == one.parameters)
            };
            let here: Vec<_> = self.functions_in(schema, name).filter(is_new).cloned().collect();
            found.extend(here);
        }
        found
    }

    /// Returns the user-defined functions of a name in a schema, oldest first.
    pub fn functions_in<'c>(
        &'c self,
        schema: &'c str,
        name: &str,
    ) -> impl Iterator<Item = &'c Arc<Function>> {
        let numbers = self.function_names.get(name).into_iter().flatten();
        let named = numbers.filter_map(|number| self.function(*number));
        named.filter(move |one| one.record.schema == schema)
    }

    // ---- comments, quotas and statistics ----

    /// Returns the comment on a subject.
    pub fn comment(&self, subject: &CommentSubjectKey) -> Option<&str> {
        match self.objects.get(&CatalogEntry::Comment(subject.clone()))? {
            CatalogObject::Comment(_, comment) => Some(&comment.text),
            _ => None,
        }
    }

    /// Returns all comments, by subject.
    pub fn comments(&self) -> impl Iterator<Item = (&CommentSubjectKey, &str)> {
        self.comments_from(CommentSubjectKey::Relation(0))
    }

    /// Returns the comments on this subject and later ones, in their order.
    pub fn comments_from(
        &self,
        first: CommentSubjectKey,
    ) -> impl Iterator<Item = (&CommentSubjectKey, &str)> {
        let comments = self.objects.range(CatalogEntry::Comment(first)..);
        comments.map_while(|(_, object)| match object {
            CatalogObject::Comment(subject, comment) => Some((subject, comment.text.as_str())),
            _ => None,
        })
    }

    /// Returns the subjects of the comments on a relation or domain and on its parts.
    pub fn comments_of(&self, number: u32) -> impl Iterator<Item = &CommentSubjectKey> {
        let firsts = [
            CommentSubjectKey::Relation(number),
            CommentSubjectKey::PrimaryKey(number),
            CommentSubjectKey::Column(number, 0),
            CommentSubjectKey::Constraint(number, String::new()),
        ];
        firsts.into_iter().flat_map(move |first| {
            let kind = mem::discriminant(&first);
            let subjects = self.comments_from(first).map(|(subject, _)| subject);
            subjects.take_while(move |one| mem::discriminant(*one) == kind && one.is_of(number))
        })
    }

    /// Returns the quotas of tables and roles.
    pub fn quotas(&self) -> impl Iterator<Item = (&QuotaSubject, QuotaLimits)> {
        let first = CatalogEntry::Quota(QuotaSubject::Table(TableId(0)));
        self.objects.range(first..).map_while(|(_, object)| match object {
            CatalogObject::Quota(subject, limits) => Some((subject, *limits)),
            _ => None,
        })
    }

    /// Returns the quota of a table or role.
    pub fn quota(&self, subject: &QuotaSubject) -> Option<QuotaLimits> {
        match self.objects.get(&CatalogEntry::Quota(subject.clone()))? {
            CatalogObject::Quota(_, limits) => Some(*limits),
            _ => None,
        }
    }

    /// Returns the statistics of a table.
    pub fn statistics(&self, table: TableId) -> Option<&Arc<TableStatistics>> {
        match self.objects.get(&CatalogEntry::Statistics(table))? {
            CatalogObject::Statistics(_, statistics) => Some(statistics),
            _ => None,
        }
    }

    // ---- objects of all kinds ----

    /// Returns an object or property by its key.
    pub fn object(&self, entry: &CatalogEntry) -> Option<&CatalogObject> {
        self.objects.get(entry)
    }

    /// Returns the keys of all objects, by kind and age.
    pub fn entries(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.objects.keys().take_while(|entry| entry.object_id().is_some())
    }

    /// Returns whether an object with a number exists.
    pub fn has(&self, number: u32) -> bool {
        let mut ids = ObjectId::KINDS.iter().map(|kind| kind(number));
        ids.any(|id| self.objects.contains_key(&CatalogEntry::Object(id)))
    }

    /// Returns the catalog with an object added or replaced, as a new version.
    #[must_use]
    pub fn with(&self, object: CatalogObject) -> Catalog {
        let mut next = self.clone();
        next.add(object);
        next
    }

    /// Adds or replaces an object in place, which makes this a new version.
    pub fn add(&mut self, object: CatalogObject) {
        *self = mem::take(self).next();
        self.take(&object.entry());
        self.put(object);
    }

    /// Returns the catalog without an object, as a new version.
    #[must_use]
    pub fn without(&self, entry: &CatalogEntry) -> Catalog {
        let mut next = self.clone().next();
        next.take(entry);
        next
    }

    /// Returns a new version with the same objects.
    fn next(self) -> Catalog {
        let version = VERSION.fetch_add(1, Ordering::Relaxed) + 1;
        let (derived, maintained) = Default::default();
        Catalog { version, derived, maintained, ..self }
    }

    /// Adds an object with its names and references.
    fn put(&mut self, object: CatalogObject) {
        match &object {
            CatalogObject::Schema(schema) => self.names_in(&schema.name).oid = schema.oid,
            CatalogObject::Table(table, record) => {
                debug_assert_eq!(table.columns.len(), table.layout.columns.len(), "columns stored");
                debug_assert!(record.as_ref().is_none_or(|record| record.oid == table.oid));
                let other = self.stored.insert(table.id, table.oid);
                debug_assert!(other.is_none(), "{other:?} and {} have the same rows", table.oid);
            }
            CatalogObject::Function(one) => {
                let numbers = self.function_names.entry(one.record.name.as_str().into());
                let numbers = numbers.or_default();
                let at = numbers.partition_point(|number| *number < one.record.number);
                numbers.insert(at, one.record.number);
            }
            _ => {}
        }
        for (schema, name) in object.constraint_names() {
            *self.names_in(schema).constraints.entry(name.into()).or_insert(0) += 1;
        }
        // A materialized view has the name of its table.
        if !self.is_materialized(&object) {
            for (schema, name, relation) in object.names() {
                let names = self.names_in(schema);
                match (relation, &object) {
                    (Some(relation), _) => drop(names.relations.insert(name.into(), relation)),
                    (None, CatalogObject::Type(known)) => {
                        names.types.insert(name.into(), known.number());
                    }
                    (None, _) => {}
                }
            }
        }
        let entry = object.entry();
        self.objects.insert(entry.clone(), object);
        for key in self.reference_keys(&entry) {
            self.referrers.insert((key, entry.clone()));
        }
    }

    /// Removes an object with its names and references.
    fn take(&mut self, entry: &CatalogEntry) {
        for key in self.reference_keys(entry) {
            self.referrers.remove(&(key, entry.clone()));
        }
        let Some(object) = self.objects.remove(entry) else { return };
        if self.is_materialized(&object) {
            return;
        }
        match &object {
            CatalogObject::Schema(schema) => drop(self.schemas.remove(&schema.name)),
            CatalogObject::Table(table, _) => drop(self.stored.remove(&table.id)),
            CatalogObject::Function(one) => {
                let name = one.record.name.as_str();
                let numbers = self.function_names.get_mut(name);
                let left = numbers.map_or(0, |numbers| {
                    numbers.retain(|number| *number != one.record.number);
                    numbers.len()
                });
                if left == 0 {
                    self.function_names.remove(name);
                }
            }
            _ => {}
        }
        for (schema, name) in object.constraint_names() {
            let Some(schema) = self.schemas.get_mut(schema).map(Arc::make_mut) else { continue };
            match schema.constraints.get_mut(name) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(schema.constraints.remove(name)),
            }
        }
        for (schema, name, relation) in object.names() {
            let Some(names) = self.schemas.get_mut(schema).map(Arc::make_mut) else { continue };
            match relation {
                Some(_) => drop(names.relations.remove(name)),
                None => drop(names.types.remove(name)),
            }
        }
    }

    /// Returns whether an object is the view of a materialized view.
    fn is_materialized(&self, object: &CatalogObject) -> bool {
        matches!(object, CatalogObject::View(view) if self.table(view.oid).is_some())
    }

    fn names_in(&mut self, schema: &str) -> &mut Schema {
        // Only a catalog that is being built, or a damaged one, lacks the schema.
        let entry = self.schemas.entry(schema.to_owned());
        Arc::make_mut(entry.or_insert_with(|| Arc::new(Schema::empty(0, schema))))
    }
}

/// Defines the look-ups of objects of a kind: by number, and all of them.
macro_rules! object_look_ups {
    ($($kind:ident: $object:ident, $one:ident, $all:ident, $noun:literal;)*) => {
        impl Catalog { $(
            #[doc = concat!("Returns a ", $noun, " by its number.")]
            pub fn $one(&self, number: u32) -> Option<&Arc<$object>> {
                match self.objects.get(&CatalogEntry::Object(ObjectId::$kind(number)))? {
                    CatalogObject::$kind(object) => Some(object),
                    _ => None,
                }
            }

            #[doc = concat!("Returns every ", $noun, ", oldest first.")]
            pub fn $all(&self) -> impl Iterator<Item = &Arc<$object>> {
                self.objects.range(CatalogEntry::Object(ObjectId::$kind(0))..).map_while(|(_, object)| match object {
                    CatalogObject::$kind(object) => Some(object),
                    _ => None,
                })
            }
        )* }
    };
}

object_look_ups! {
    View: View, view, views, "view";
    Sequence: Sequence, sequence, sequences, "sequence";
    Type: UserType, created_type, types, "type of CREATE TYPE or CREATE DOMAIN";
    Function: Function, function, functions, "user-defined function";
    Role: RoleRecord, role, roles, "role";
    Database: DatabaseRecord, database, databases, "database";
}

impl ObjectId {
    /// The kinds of objects.
    const KINDS: [fn(u32) -> ObjectId; 8] = {
        use ObjectId::{Database, Function, Role, Schema, Sequence, Table, Type, View};
        [Schema, Table, View, Sequence, Type, Function, Role, Database]
    };

    /// Returns whether the catalogs of all databases have the object.
    pub fn is_shared(self) -> bool {
        matches!(self, ObjectId::Database(_) | ObjectId::Role(_))
    }

    /// Returns the number.
    pub fn number(self) -> u32 {
        match self {
            ObjectId::Schema(number) | ObjectId::Table(number) | ObjectId::View(number) => number,
            ObjectId::Sequence(number) | ObjectId::Type(number) => number,
            ObjectId::Function(number) | ObjectId::Role(number) => number,
            ObjectId::Database(number) => number,
        }
    }
}

impl CatalogEntry {
    /// Returns the identity of the object; `None` for properties of an object.
    pub fn object_id(&self) -> Option<ObjectId> {
        match self {
            CatalogEntry::Object(id) => Some(*id),
            _ => None,
        }
    }

    /// Returns whether the catalogs of all databases have the object or property. Its row is in
    /// the shared catalog.
    pub fn is_shared(&self) -> bool {
        match self {
            CatalogEntry::Object(id) => id.is_shared(),
            CatalogEntry::Comment(subject) => {
                matches!(subject, CommentSubjectKey::Database(_) | CommentSubjectKey::Role(_))
            }
            CatalogEntry::Quota(subject) => {
                matches!(subject, QuotaSubject::Role(_) | QuotaSubject::Database(_))
            }
            CatalogEntry::Statistics(_) | CatalogEntry::Access(_) => false,
        }
    }
}

impl CatalogObject {
    /// Returns the object of a table with its stored record.
    pub fn of_table(table: Table, record: TableRecord) -> CatalogObject {
        CatalogObject::Table(Arc::new(table), Some(Arc::new(record)))
    }

    /// Returns the object of a user-defined type.
    pub fn of_type(known: UserType) -> CatalogObject {
        CatalogObject::Type(Arc::new(known))
    }

    /// Returns the key of the object.
    pub fn entry(&self) -> CatalogEntry {
        match self {
            CatalogObject::Schema(schema) => CatalogEntry::Object(ObjectId::Schema(schema.oid)),
            CatalogObject::Table(table, _) => CatalogEntry::Object(ObjectId::Table(table.oid)),
            CatalogObject::View(view) => CatalogEntry::Object(ObjectId::View(view.oid)),
            CatalogObject::Sequence(sequence) => {
                CatalogEntry::Object(ObjectId::Sequence(sequence.oid))
            }
            CatalogObject::Type(known) => CatalogEntry::Object(ObjectId::Type(known.number())),
            CatalogObject::Function(function) => {
                CatalogEntry::Object(ObjectId::Function(function.record.number))
            }
            CatalogObject::Role(role) => CatalogEntry::Object(ObjectId::Role(role.number)),
            CatalogObject::Database(one) => CatalogEntry::Object(ObjectId::Database(one.oid)),
            CatalogObject::Comment(subject, _) => CatalogEntry::Comment(subject.clone()),
            CatalogObject::Quota(subject, _) => CatalogEntry::Quota(subject.clone()),
            CatalogObject::Statistics(table, _) => CatalogEntry::Statistics(*table),
            CatalogObject::Access(subject, _) => CatalogEntry::Access(*subject),
        }
    }

    /// Returns the schema and the name; a schema or role is in no schema, a property has no name.
    pub fn name(&self) -> Option<ObjectName> {
        Some(match self {
            CatalogObject::Schema(schema) => ObjectName::new("", &schema.name),
            CatalogObject::Table(table, _) => table.full_name(),
            CatalogObject::View(view) => ObjectName::new(&view.schema, &view.name),
            CatalogObject::Sequence(one) => ObjectName::new(&one.schema, &one.name),
            CatalogObject::Type(known) => ObjectName::new(known.schema(), known.name()),
            CatalogObject::Function(one) => ObjectName::new(&one.record.schema, &one.record.name),
            CatalogObject::Role(role) => ObjectName::new("", &role.name),
            CatalogObject::Database(one) => ObjectName::new("", &one.name),
            CatalogObject::Comment(..)
            | CatalogObject::Quota(..)
            | CatalogObject::Statistics(..)
            | CatalogObject::Access(..) => return None,
        })
    }

    /// Returns the names that only this object can have, with their schemas: `None` for the name
    /// of a type.
    fn names(&self) -> Vec<(&str, &str, Option<RelationId>)> {
        match self {
            CatalogObject::Table(table, _) => table_names(table)
                .map(|(name, relation)| (table.schema.as_str(), name, Some(relation)))
                .collect(),
            CatalogObject::View(view) => {
                vec![(&view.schema, &view.name, Some(RelationId::View(view.oid)))]
            }
            CatalogObject::Sequence(one) => {
                vec![(&one.schema, &one.name, Some(RelationId::Sequence(one.oid)))]
            }
            // The names of standard domains are not stored.
            CatalogObject::Type(known) if !standard_domain::is_standard(known.number()) => {
                vec![(known.schema(), known.name(), None)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the names of the constraints of a table or domain, with their schemas.
    fn constraint_names(&self) -> Vec<(&str, &str)> {
        match self {
            CatalogObject::Table(_, Some(record)) => {
                let key = (!record.primary_key_name.is_empty()).then_some(&record.primary_key_name);
                let indexes = record.indexes.iter().filter(|index| index.constraint);
                let names = record.checks.iter().map(|check| &check.name);
                let names = names.chain(record.foreign_keys.iter().map(|key| &key.name));
                let names = names.chain(indexes.map(|index| &index.name)).chain(key);
                names.map(|name| (record.schema.as_str(), name.as_str())).collect()
            }
            CatalogObject::Type(known) => match &**known {
                UserType::Domain(domain) if !standard_domain::is_standard(known.number()) => {
                    let checks = domain.record.checks.iter();
                    checks.map(|check| (known.schema(), check.name.as_str())).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Returns the key of its row and its stored form; `None` for a row type, which is not stored.
    pub fn row(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let of = |prefix, number, value| Some((object_key(prefix, number), value));
        match self {
            CatalogObject::Schema(schema) => of(SCHEMAS_PREFIX, schema.oid, encode(&**schema)),
            CatalogObject::Table(table, record) => {
                of(TABLES_PREFIX, table.oid, encode(&**record.as_ref()?))
            }
            CatalogObject::View(view) => of(VIEWS_PREFIX, view.oid, encode(&view.record())),
            CatalogObject::Sequence(one) => of(SEQUENCES_PREFIX, one.oid, encode(&**one)),
            CatalogObject::Type(known) => match &**known {
                UserType::Enum(one) => of(ENUMS_PREFIX, one.record.number, encode(&one.record)),
                UserType::Domain(domain) => {
                    of(DOMAINS_PREFIX, domain.record.number, encode(&domain.record))
                }
                UserType::Composite(composite) => {
                    of(COMPOSITES_PREFIX, composite.number, encode(composite.record.as_ref()?))
                }
            },
            CatalogObject::Function(function) => {
                of(FUNCTIONS_PREFIX, function.record.number, encode(&function.record))
            }
            CatalogObject::Role(role) => of(ROLES_PREFIX, role.number, encode(&**role)),
            CatalogObject::Database(one) => of(DATABASES_PREFIX, one.oid, encode(&**one)),
            CatalogObject::Comment(subject, text) => Some((subject.key(), encode(&**text))),
            CatalogObject::Quota(subject, limits) => Some((subject.key(), encode(limits))),
            CatalogObject::Statistics(table, statistics) => {
                Some((statistics_key(*table), encode(&**statistics)))
            }
            CatalogObject::Access(subject, record) => Some((subject.key(), encode(&**record))),
        }
    }
}

/// Returns whether a key of a catalog table is that of a row of the shared catalog.
pub fn is_shared_row(key: &[u8]) -> bool {
    let objects = [DATABASES_PREFIX, ROLES_PREFIX, NEXT_ID_KEY, PREPARED_PREFIX];
    let comments = [b"d", b"g"].map(|kind| [COMMENTS_PREFIX, kind].concat());
    let quotas = [b"r", b"d"].map(|kind| [QUOTA_PREFIX, kind].concat());
    objects.iter().any(|prefix| key.starts_with(prefix))
        || comments.iter().chain(&quotas).any(|prefix| key.starts_with(prefix))
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
    /// Returns its kind.
    pub fn kind(self) -> ObjectKind {
        match self {
            CatalogRelation::Table(table) => table.object_kind(),
            CatalogRelation::PrimaryKey(_) | CatalogRelation::Index(..) => ObjectKind::Index,
            CatalogRelation::View(_) => ObjectKind::View,
            CatalogRelation::Sequence(_) => ObjectKind::Sequence,
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
