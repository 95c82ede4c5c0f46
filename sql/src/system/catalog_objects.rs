//! Catalog objects by OID and by name, as clients see them: the module that defines the OIDs of
//! all objects.
//!
//! Built once for each catalog snapshot, at the first query of a system catalog
//! ([`SystemViewCache::of`]). User objects keep the number that the catalog has assigned for their
//! life; their OID is that number shifted to PostgreSQL's first user OID ([`user_oid`]). The
//! primary key is stored in its table, but clients see it as an index, whose OID is the table's
//! with bit [`PRIMARY_KEY`]. OIDs of constraints and defaults are hashes of the OID of the table
//! and the name ([`hashed_oid`]).
//!
//! [`SystemViewCache::of`]: crate::system::view_cache::SystemViewCache::of

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use ahash::AHashMap;
use types::expr::Expr;
use types::function::quote_ident;
use types::{DataType, Datum, SqlType};

use crate::ast::Collation;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::{AclRecord, PRIVILEGES, PUBLIC_ROLE};
use crate::catalog::access::role::PREDEFINED_ROLES;
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::composite::Composite;
use crate::catalog::database::DatabaseRecord;
use crate::catalog::domain::Domain;
use crate::catalog::extension::{self, EXTENSIONS, Extension};
use crate::catalog::foreign_key;
use crate::catalog::name;
use crate::catalog::record::{FIRST_USER_TABLE, IdentityRecord, TableRecord};
use crate::catalog::schema::{PUBLIC_OID, Schema};
use crate::catalog::sequence::Sequence;
use crate::catalog::table::{Index, Table};
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;
use crate::catalog::{Catalog, collation};
use crate::system::definition;
use crate::system::relation_definitions::{self, RelationDefinition, SHAPES};
use crate::system::value::{array, oid, text};

/// First OID of user objects, as in PostgreSQL.
const FIRST_USER_OID: u32 = 16_384;
/// The bit that is set in the OID of the index of a primary key.
const PRIMARY_KEY: u32 = 0x4000_0000;
/// The bit that is set in hashed OIDs.
const MADE: u32 = 0x8000_0000;

/// OID of extension `plpgsql`.
const PLPGSQL_EXTENSION: u32 = 13_559;

/// OID of the role that owns all objects.
pub(super) const OWNER: u32 = name::BOOTSTRAP_ROLE;

/// A table, index, view or sequence.
#[derive(Debug)]
pub(super) struct SystemRelation {
    pub(super) oid: u32,
    /// OID of its schema.
    pub(super) schema: u32,
    pub(super) name: String,
    pub(super) kind: SystemRelationKind,
    pub(super) columns: Vec<Attribute>,
}

/// Kind of a relation, with its catalog object.
#[derive(Debug)]
pub(super) enum SystemRelationKind {
    Table(Arc<Table>),
    /// The primary key of a table, as an index.
    PrimaryKey(Arc<Table>),
    Index(Arc<Table>, Arc<Index>),
    View(Arc<View>),
    /// A materialized view: its stored table and its query.
    Materialized(Arc<Table>, Arc<View>),
    Sequence(Arc<Sequence>),
    /// A composite type, whose attributes are in `pg_attribute` under a relation of kind `c`.
    Composite(u32),
    System(&'static RelationDefinition),
}

/// OID of `pg_class`, for `classoid` of `pg_description`.
const CLASS: u32 = 1_259;
/// OID of `pg_constraint`.
const CONSTRAINT: u32 = 2_606;
/// OID of `pg_authid`.
pub(super) const AUTHID: u32 = 1_260;
/// OID of `pg_database`.
pub(super) const DATABASE_CLASS: u32 = 1_262;
/// OID of `pg_proc`.
const PROC: u32 = 1_255;
/// OID of `pg_namespace`.
const NAMESPACE: u32 = 2_615;
/// OID of `pg_type`.
const TYPE: u32 = 1_247;
/// OID of `pg_trigger`.
pub(super) const TRIGGER: u32 = 2_620;
/// OID of `pg_policy`.
pub(super) const POLICY: u32 = 3_256;
/// OID of `pg_extension`.
pub(super) const EXTENSION: u32 = 3_079;

/// A column of a relation.
#[derive(Debug)]
pub(super) struct Attribute {
    /// Attribute number, from 1.
    pub(super) number: i16,
    pub(super) name: String,
    pub(super) sql_type: SqlType,
    pub(super) not_null: bool,
    /// SQL text of the DEFAULT or the GENERATED expression, as the catalog has it.
    pub(super) default: Option<String>,
    /// Numbers of the sequences that the default or the identity uses.
    pub(super) sequences: Vec<u32>,
    pub(super) is_generated: bool,
    pub(super) identity: Option<IdentityRecord>,
    /// Its collation, if its type is collatable.
    pub(super) collation: Option<Collation>,
}

/// A constraint of a table or domain.
#[derive(Debug)]
pub(super) struct CatalogConstraint {
    pub(super) oid: u32,
    pub(super) name: String,
    /// OID of its table; 0 for a domain constraint.
    pub(super) table: u32,
    /// OID of its domain; 0 for a table constraint.
    pub(super) domain: u32,
    pub(super) schema: u32,
    pub(super) kind: ConstraintRowKind,
    /// Attribute numbers of the columns, in the order of the constraint.
    pub(super) columns: Vec<i16>,
    /// False for a constraint that was added NOT VALID and not yet validated.
    pub(super) valid: bool,
}

/// Kind of a constraint, with its details.
#[derive(Debug)]
pub(super) enum ConstraintRowKind {
    /// CHECK constraint.
    Check {
        /// Its SQL text, as the catalog has it.
        text: String,
    },
    /// PRIMARY KEY, with the OID of its index.
    PrimaryKey(u32),
    /// UNIQUE, with the OID of its index.
    Unique(u32),
    /// FOREIGN KEY.
    ForeignKey(ForeignKeyTarget),
}

/// The referenced side of a foreign key.
#[derive(Debug)]
pub(super) struct ForeignKeyTarget {
    /// OID of the referenced table.
    pub(super) table: u32,
    /// Attribute numbers of the referenced columns, parallel to the constraint's.
    pub(super) columns: Vec<i16>,
    /// OID of the unique index on them.
    pub(super) index: u32,
    /// Attribute numbers of the columns that ON DELETE sets; empty for all.
    pub(super) delete_columns: Vec<i16>,
    /// The foreign key as the catalog has it.
    pub(super) key: foreign_key::ForeignKey,
}

/// A schema.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) oid: u32,
    pub(super) name: String,
}

/// All objects, by OID and by name.
#[derive(Debug)]
pub(super) struct CatalogObjects {
    pub(super) namespaces: Vec<Namespace>,
    /// Sorted by OID.
    pub(super) relations: Vec<SystemRelation>,
    pub(super) constraints: Vec<CatalogConstraint>,
    /// Sorted by OID.
    pub(super) domains: Vec<Arc<Domain>>,
    relation_by_oid: AHashMap<u32, usize>,
    relation_by_name: AHashMap<(u32, String), usize>,
    constraint_by_oid: AHashMap<u32, usize>,
    constraint_by_index: AHashMap<u32, usize>,
    sequence_by_column: AHashMap<(u32, i16), usize>,
    /// By OID of the catalog, OID of the object and attribute number, as in `pg_description`.
    pub(super) comments: BTreeMap<(u32, u32, i32), Arc<str>>,
}

/// Returns the OID of a role by its number in the catalog.
pub(super) fn role_oid(number: u32) -> u32 {
    let predefined = PREDEFINED_ROLES.iter().find(|(known, ..)| *known == number);
    match predefined {
        Some((_, oid, ..)) => *oid,
        None if number == name::BOOTSTRAP_ROLE => number,
        None => user_oid(number),
    }
}

/// Returns the OID of a user object by its number in the catalog.
pub(super) fn user_oid(number: u32) -> u32 {
    number.saturating_sub(FIRST_USER_TABLE).saturating_add(FIRST_USER_OID)
}

/// Returns the OID of a database.
pub(super) fn database_oid(number: u32) -> u32 {
    if number < FIRST_USER_TABLE { number } else { user_oid(number) }
}

/// Returns the database of an OID.
pub(super) fn database_of_oid(catalog: &Catalog, oid: u32) -> Option<&Arc<DatabaseRecord>> {
    catalog.databases().find(|database| database_oid(database.oid) == oid)
}

/// Returns the OID of the `pg_class` row of a composite type.
pub(super) fn composite_relation_oid(number: u32) -> u32 {
    user_oid(number + 2)
}

/// Returns the OID of a schema.
pub(super) fn schema_oid_of(schema: &Schema) -> u32 {
    if schema.oid < FIRST_USER_TABLE || schema.oid == PUBLIC_OID {
        schema.oid
    } else {
        user_oid(schema.oid)
    }
}

/// Returns the OID of a dependent object: a hash of its owner's OID and its name.
pub(super) fn hashed_oid(owner: u32, name: &str) -> u32 {
    // Fixed seeds, since the OID must not change after a restart.
    let state = ahash::RandomState::with_seeds(1, 2, 3, 4);
    let mut hasher = state.build_hasher();
    hasher.write_u32(owner);
    hasher.write(name.as_bytes());
    MADE | (hasher.finish() as u32)
}

/// Returns the OID of an extension. That of PL/pgSQL is PostgreSQL's own, so that pg_dump leaves
/// it out.
pub(super) fn extension_oid(extension: &Extension) -> u32 {
    match extension.number == extension::PLPGSQL.number {
        true => PLPGSQL_EXTENSION,
        false => hashed_oid(extension.number, extension.name),
    }
}

impl CatalogObjects {
    /// Returns the objects of a catalog.
    pub(super) fn of(catalog: &Catalog) -> CatalogObjects {
        let namespace = |oid, name: &str| Namespace { oid, name: name.to_owned() };
        let mut objects = CatalogObjects {
            namespaces: vec![
                namespace(relation_definitions::PG_CATALOG, "pg_catalog"),
                namespace(relation_definitions::INFORMATION_SCHEMA, "information_schema"),
                namespace(relation_definitions::BENNU, "bennu"),
            ],
            relations: Vec::new(),
            constraints: Vec::new(),
            domains: Vec::new(),
            relation_by_oid: AHashMap::new(),
            relation_by_name: AHashMap::new(),
            constraint_by_oid: AHashMap::new(),
            constraint_by_index: AHashMap::new(),
            sequence_by_column: AHashMap::new(),
            comments: BTreeMap::new(),
        };
        let own = catalog.schemas().map(|schema| namespace(schema_oid_of(schema), &schema.name));
        objects.namespaces.extend(own);
        objects.namespaces.sort_by_key(|namespace| namespace.oid);
        let shown = SHAPES.iter().filter(|shape| !shape.is_hidden());
        shown.for_each(|shape| objects.add_system(shape));
        for table in catalog.tables() {
            objects.add_table(table, catalog);
            objects.add_foreign_keys(catalog, table);
        }
        let views = catalog.views().filter(|view| catalog.table(view.oid).is_none());
        views.for_each(|view| objects.add_view(view));
        catalog.sequences().for_each(|sequence| objects.add_sequence(sequence));
        catalog.types().for_each(|one| match one.as_ref() {
            UserType::Domain(domain) => objects.add_domain(domain),
            UserType::Composite(composite) => objects.add_composite(composite, catalog),
            UserType::Enum(_) => {}
        });
        objects.index();
        let public = (NAMESPACE, PUBLIC_OID, 0);
        objects.comments.insert(public, Arc::from("standard public schema"));
        let language = (EXTENSION, extension_oid(&extension::PLPGSQL), 0);
        objects.comments.insert(language, Arc::from(extension::PLPGSQL.comment));
        objects.describe_views();
        for (subject, text) in catalog.comments() {
            if let Some(address) = objects.address_of(catalog, subject) {
                objects.comments.insert(address, Arc::from(text));
            }
        }
        objects.comments.retain(|_, text| !text.is_empty());
        objects
    }

    /// Adds the descriptions of the views of schema `bennu` and of their columns.
    fn describe_views(&mut self) {
        let namespace = (NAMESPACE, relation_definitions::BENNU, 0);
        self.comments.insert(namespace, Arc::from("system views of bennu"));
        let shapes = SHAPES.iter().filter(|shape| shape.schema == relation_definitions::BENNU);
        for (view, shape) in super::VIEWS.iter().zip(shapes) {
            self.comments.insert((CLASS, shape.oid, 0), Arc::from(view.description));
            for (number, column) in (1..).zip(view.columns) {
                self.comments.insert((CLASS, shape.oid, number), Arc::from(column.description));
            }
        }
    }

    /// Returns the OID of the catalog, the OID of the object and the attribute number of the
    /// subject of a comment.
    fn address_of(
        &self,
        catalog: &Catalog,
        subject: &CommentSubjectKey,
    ) -> Option<(u32, u32, i32)> {
        Some(match subject {
            CommentSubjectKey::Relation(number) => (CLASS, user_oid(*number), 0),
            CommentSubjectKey::PrimaryKey(table) => (CLASS, user_oid(*table) | PRIMARY_KEY, 0),
            CommentSubjectKey::Column(relation, column) => {
                let number = match catalog.table(*relation) {
                    Some(table) => attribute_number(table, *column as usize),
                    None => i16::try_from(column + 1).ok()?,
                };
                (CLASS, user_oid(*relation), i32::from(number))
            }
            CommentSubjectKey::Schema(number) => {
                let mut schemas = catalog.schemas();
                let schema = schemas.find(|schema| schema.oid == *number)?;
                (NAMESPACE, schema_oid_of(schema), 0)
            }
            CommentSubjectKey::Trigger(table, name) => {
                let trigger = catalog.table_or_view(*table)?.trigger(name)?;
                (TRIGGER, user_oid(trigger.record.number), 0)
            }
            CommentSubjectKey::Policy(table, name) => {
                let policy = catalog.table(*table)?.row_security.policy(name)?;
                (POLICY, user_oid(policy.record.number), 0)
            }
            CommentSubjectKey::Type(number) => (TYPE, catalog.user_type(*number)?.oid(), 0),
            CommentSubjectKey::Function(number) => (PROC, catalog.function(*number)?.oid(), 0),
            CommentSubjectKey::Database(number) => (DATABASE_CLASS, database_oid(*number), 0),
            CommentSubjectKey::Role(number) => (AUTHID, role_oid(*number), 0),
            CommentSubjectKey::Extension(number, _) => {
                let known = EXTENSIONS.iter().find(|one| one.number == *number)?;
                (EXTENSION, extension_oid(known), 0)
            }
            CommentSubjectKey::Constraint(of, name) => {
                let domain = match catalog.user_type(*of).map(AsRef::as_ref) {
                    Some(UserType::Domain(domain)) => Some(domain.sql_type.oid()),
                    _ => None,
                };
                let is_it = |one: &&CatalogConstraint| match domain {
                    Some(domain) => one.domain == domain,
                    None => one.table == user_oid(*of),
                };
                let found = self.constraints.iter().filter(is_it).find(|one| one.name == *name)?;
                (CONSTRAINT, found.oid, 0)
            }
        })
    }

    fn index(&mut self) {
        self.relations.sort_by_key(|relation| relation.oid);
        for (at, relation) in self.relations.iter().enumerate() {
            self.relation_by_oid.insert(relation.oid, at);
            self.relation_by_name.insert((relation.schema, relation.name.clone()), at);
        }
        for (at, constraint) in self.constraints.iter_mut().enumerate() {
            // A hash collision is resolved by the next free OID, in the order of the tables.
            while self.constraint_by_oid.contains_key(&constraint.oid) {
                constraint.oid = MADE | constraint.oid.wrapping_add(1);
            }
            self.constraint_by_oid.insert(constraint.oid, at);
            if constraint.index() != 0 {
                self.constraint_by_index.insert(constraint.index(), at);
            }
        }
        for (at, relation) in self.relations.iter().enumerate() {
            let SystemRelationKind::Sequence(sequence) = &relation.kind else { continue };
            let owner = self.owner(sequence).map(|(table, column)| (table.oid, column.number));
            if let Some(owner) = owner {
                self.sequence_by_column.insert(owner, at);
            }
        }
    }

    fn add(
        &mut self,
        oid: u32,
        schema: u32,
        name: &str,
        kind: SystemRelationKind,
        columns: Vec<Attribute>,
    ) {
        self.relations.push(SystemRelation { oid, schema, name: name.to_owned(), kind, columns });
    }

    fn add_system(&mut self, shape: &'static RelationDefinition) {
        let columns = shape.columns.iter().map(|(name, sql_type)| (*name, sql_type));
        self.add(
            shape.oid,
            shape.schema,
            shape.name,
            SystemRelationKind::System(shape),
            plain(columns),
        );
    }

    fn add_view(&mut self, view: &Arc<View>) {
        let columns = view.columns.iter().map(|column| (column.name.as_str(), &column.sql_type));
        let (oid, schema) = (user_oid(view.oid), self.schema_oid(&view.schema));
        let mut columns = plain(columns);
        for (shown, column) in columns.iter_mut().zip(&view.columns) {
            shown.default.clone_from(&column.default);
        }
        self.add(oid, schema, &view.name, SystemRelationKind::View(Arc::clone(view)), columns);
    }

    fn add_sequence(&mut self, sequence: &Arc<Sequence>) {
        let columns = [
            ("last_value", &DataType::Int8.into()),
            ("log_cnt", &DataType::Int8.into()),
            ("is_called", &DataType::Bool.into()),
        ];
        let mut columns = plain(columns.into_iter());
        columns.iter_mut().for_each(|column| column.not_null = true);
        let kind = SystemRelationKind::Sequence(Arc::clone(sequence));
        let schema = self.schema_oid(&sequence.schema);
        self.add(user_oid(sequence.oid), schema, &sequence.name, kind, columns);
    }

    fn add_composite(&mut self, composite: &Composite, catalog: &Catalog) {
        let Some(record) = &composite.record else { return };
        let identity = composite.composite_type.identity();
        let schema = self.schema_oid(&identity.schema);
        let attribute = |one: &types::datatype::composite::Attribute| Attribute {
            number: i16::try_from(one.number + 1).unwrap_or(i16::MAX),
            name: one.name.to_string(),
            sql_type: one.sql_type.clone(),
            not_null: false,
            default: None,
            sequences: Vec::new(),
            is_generated: false,
            identity: None,
            collation: match record.attributes.get(one.number) {
                Some(written) if written.collation.is_some() => written.collation,
                _ => collation::of(catalog, &one.sql_type),
            },
        };
        let columns = composite.composite_type.attributes().iter().map(attribute).collect();
        let kind = SystemRelationKind::Composite(identity.oid);
        self.add(composite_relation_oid(record.number), schema, &identity.name, kind, columns);
    }

    fn add_domain(&mut self, domain: &Arc<Domain>) {
        let schema = self.schema_oid(&domain.record.schema);
        let oid = domain.sql_type.oid();
        // CHECK constraints of the domain itself; those of a base domain belong to that domain.
        for record in &domain.record.checks {
            let name = &record.name;
            let kind = ConstraintRowKind::Check { text: record.predicate.clone() };
            let (name, id) = (name.clone(), hashed_oid(oid, name));
            let columns = Vec::new();
            let domain = oid;
            self.constraints.push(CatalogConstraint {
                oid: id,
                name,
                table: 0,
                domain,
                schema,
                kind,
                columns,
                valid: record.valid,
            });
        }
        self.domains.push(Arc::clone(domain));
    }

    /// Returns a domain by OID.
    pub(super) fn domain(&self, oid: u32) -> Option<&Arc<Domain>> {
        self.domains.iter().find(|domain| domain.sql_type.oid() == oid)
    }

    fn add_table(&mut self, table: &Arc<Table>, catalog: &Catalog) {
        let query = catalog.view(table.oid);
        let oid = user_oid(table.oid);
        let schema = self.schema_oid(&table.schema);
        let record = catalog.record(table.oid);
        let attributes = attributes(table, record, catalog);
        let type_of = |column: usize| &table.columns[column].sql_type;
        let unchecked: Vec<&str> = catalog.record(table.oid).map_or(Vec::new(), |record| {
            let unchecked = record.checks.iter().filter(|check| !check.valid);
            unchecked.map(|check| check.name.as_str()).collect()
        });
        let constraint = |name: &str, kind, columns| CatalogConstraint {
            oid: hashed_oid(oid, name),
            name: name.to_owned(),
            table: oid,
            domain: 0,
            schema,
            kind,
            columns,
            valid: !unchecked.contains(&name),
        };
        if !table.primary_key_name.is_empty() {
            let index = oid | PRIMARY_KEY;
            let name = &table.primary_key_name;
            let key: Vec<usize> = table.key_columns().collect();
            let columns =
                key.iter().map(|column| (table.columns[*column].name.as_str(), type_of(*column)));
            let kind = ConstraintRowKind::PrimaryKey(index);
            let numbers = key.iter().map(|column| attribute_number(table, *column)).collect();
            self.constraints.push(constraint(name, kind, numbers));
            let kind = SystemRelationKind::PrimaryKey(Arc::clone(table));
            self.add(index, schema, name, kind, plain(columns));
        }
        for check in &table.constraints.checks {
            let mut written = record.iter().flat_map(|record| &record.checks);
            let written = written.find(|one| one.name == check.name);
            let text = written.map(|one| one.predicate.clone()).unwrap_or_default();
            let kind = ConstraintRowKind::Check { text };
            let columns = definition::columns_of(&check.predicate);
            let numbers = columns.iter().map(|column| attribute_number(table, *column)).collect();
            self.constraints.push(constraint(&check.name, kind, numbers));
        }
        for index in &table.indexes {
            let index_oid = user_oid(index.oid);
            let keys = definition::index_keys(table, index);
            if index.constraint {
                let kind = match index.primary {
                    true => ConstraintRowKind::PrimaryKey(index_oid),
                    false => ConstraintRowKind::Unique(index_oid),
                };
                let numbers = keys.iter().map(|key| key.number).collect();
                self.constraints.push(constraint(&index.name, kind, numbers));
            }
            let included = index.spec.include.iter().map(|column| &table.columns[*column]);
            let included = included.map(|column| (column.name.as_str(), &column.sql_type));
            let columns = keys.iter().map(|key| (key.name.as_str(), &key.sql_type)).chain(included);
            let kind = SystemRelationKind::Index(Arc::clone(table), Arc::clone(index));
            self.add(index_oid, schema, &index.name, kind, plain(columns));
        }
        let kind = match query {
            Some(view) => SystemRelationKind::Materialized(Arc::clone(table), Arc::clone(view)),
            None => SystemRelationKind::Table(Arc::clone(table)),
        };
        self.add(oid, schema, &table.name, kind, attributes);
    }

    fn add_foreign_keys(&mut self, catalog: &Catalog, table: &Table) {
        let (oid, schema) = (user_oid(table.oid), self.schema_oid(&table.schema));
        for key in &table.foreign_keys {
            let Some(referenced) = catalog.table(key.table) else { continue };
            let numbers = |of: &Table, columns: &[u32]| {
                columns.iter().map(|column| attribute_number(of, *column as usize)).collect()
            };
            let index = key.index.map_or(user_oid(key.table) | PRIMARY_KEY, user_oid);
            self.constraints.push(CatalogConstraint {
                oid: hashed_oid(oid, &key.name),
                name: key.name.clone(),
                table: oid,
                domain: 0,
                schema,
                kind: ConstraintRowKind::ForeignKey(ForeignKeyTarget {
                    table: user_oid(key.table),
                    columns: numbers(referenced, &key.referenced),
                    index,
                    delete_columns: numbers(table, &key.delete_columns),
                    key: key.clone(),
                }),
                columns: numbers(table, &key.columns),
                valid: key.valid,
            });
        }
    }

    /// Returns a relation by OID.
    pub(super) fn relation(&self, oid: u32) -> Option<&SystemRelation> {
        self.relation_by_oid.get(&oid).map(|at| &self.relations[*at])
    }

    /// Returns a relation by OID of its schema and name.
    pub(super) fn relation_named(&self, schema: u32, name: &str) -> Option<&SystemRelation> {
        let at = self.relation_by_name.get(&(schema, name.to_owned()))?;
        Some(&self.relations[*at])
    }

    /// Returns a constraint by OID.
    pub(super) fn constraint(&self, oid: u32) -> Option<&CatalogConstraint> {
        self.constraint_by_oid.get(&oid).map(|at| &self.constraints[*at])
    }

    /// Returns the constraint that an index enforces.
    pub(super) fn constraint_of_index(&self, index: u32) -> Option<&CatalogConstraint> {
        self.constraint_by_index.get(&index).map(|at| &self.constraints[*at])
    }

    /// Returns the sequence that a column owns.
    pub(super) fn sequence_of(&self, table: u32, column: &Attribute) -> Option<&Arc<Sequence>> {
        let at = self.sequence_by_column.get(&(table, column.number))?;
        match &self.relations[*at].kind {
            SystemRelationKind::Sequence(sequence) => Some(sequence),
            _ => None,
        }
    }

    /// Returns the table and the column that own a sequence.
    pub(super) fn owner(&self, sequence: &Sequence) -> Option<(&SystemRelation, &Attribute)> {
        let (table, column) = sequence.owned_by?;
        let relation = self.relation(user_oid(table))?;
        let SystemRelationKind::Table(table) = &relation.kind else { return None };
        let number = attribute_number(table, column as usize);
        Some((relation, relation.columns.iter().find(|column| column.number == number)?))
    }

    /// Returns true if a sequence belongs to an identity column.
    pub(super) fn is_identity(&self, sequence: &Sequence) -> bool {
        self.owner(sequence).is_some_and(|(_, column)| {
            column.identity.is_some() && column.sequences.contains(&sequence.oid)
        })
    }

    /// Returns the relations that the query of a view reads; none for other relations.
    pub(super) fn view_dependencies<'o>(
        &'o self,
        relation: &'o SystemRelation,
    ) -> impl Iterator<Item = &'o SystemRelation> {
        let read = match &relation.kind {
            SystemRelationKind::View(view) | SystemRelationKind::Materialized(_, view) => {
                view.relations.as_slice()
            }
            _ => &[],
        };
        let mut oids: Vec<u32> = read.iter().map(|read| read.oid).collect();
        oids.sort_unstable();
        oids.dedup();
        oids.into_iter().filter_map(|oid| self.relation(user_oid(oid)))
    }

    /// Returns the OID of a schema by name; 0 if there is none.
    pub(super) fn schema_oid(&self, name: &str) -> u32 {
        self.namespace_named(name).map_or(0, |namespace| namespace.oid)
    }

    /// Returns a schema by name.
    pub(super) fn namespace_named(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.iter().find(|namespace| namespace.name == name)
    }

    /// Returns the name of a schema by OID; empty if there is none.
    pub(super) fn namespace(&self, oid: u32) -> &str {
        let found = self.namespaces.iter().find(|namespace| namespace.oid == oid);
        found.map_or("", |namespace| &namespace.name)
    }
}

impl SystemRelation {
    /// Returns `relrowsecurity` and `relforcerowsecurity`.
    pub(super) fn row_security(&self) -> (bool, bool) {
        match &self.kind {
            SystemRelationKind::Table(table) => {
                (table.row_security.is_enabled, table.row_security.is_forced)
            }
            _ => (false, false),
        }
    }

    /// `pg_class.relkind`
    pub(super) fn relkind(&self) -> char {
        match &self.kind {
            SystemRelationKind::Table(_) => 'r',
            SystemRelationKind::PrimaryKey(_) | SystemRelationKind::Index(..) => 'i',
            SystemRelationKind::View(_) => 'v',
            SystemRelationKind::Materialized(..) => 'm',
            SystemRelationKind::Sequence(_) => 'S',
            SystemRelationKind::Composite(_) => 'c',
            SystemRelationKind::System(shape) if shape.is_table => 'r',
            SystemRelationKind::System(_) => 'v',
        }
    }

    /// Returns false for a materialized view that has not been refreshed (`relispopulated`).
    pub(super) fn is_populated(&self) -> bool {
        match &self.kind {
            SystemRelationKind::Materialized(table, _) => table.kind.is_populated() == Some(true),
            _ => true,
        }
    }

    /// Returns the highest attribute number, dropped columns included.
    pub(super) fn last_column(&self) -> i16 {
        match &self.kind {
            SystemRelationKind::Table(table) | SystemRelationKind::Materialized(table, _) => {
                let hidden = usize::from(table.row_id_column().is_some());
                i16::try_from(table.columns.len() - hidden).unwrap_or(i16::MAX)
            }
            _ => self.columns.iter().map(|column| column.number).max().unwrap_or(0),
        }
    }

    /// Returns the attribute numbers of the dropped columns.
    pub(super) fn dropped_columns(&self) -> impl Iterator<Item = i16> {
        let there: HashSet<i16> = self.columns.iter().map(|column| column.number).collect();
        (1..=self.last_column()).filter(move |number| !there.contains(number))
    }

    /// Returns the OID of its row type, or 0.
    pub(super) fn row_type(&self) -> u32 {
        match &self.kind {
            SystemRelationKind::Table(_)
            | SystemRelationKind::View(_)
            | SystemRelationKind::Materialized(..) => self.oid,
            SystemRelationKind::Composite(oid) => *oid,
            _ => 0,
        }
    }

    /// Returns true if it is not a system catalog or view.
    pub(super) fn is_user(&self) -> bool {
        !matches!(self.kind, SystemRelationKind::System(_))
    }

    /// Returns a column by name.
    pub(super) fn column(&self, name: &str) -> Option<&Attribute> {
        self.columns.iter().find(|column| column.name == name)
    }
}

impl CatalogConstraint {
    /// Returns the OID of the index that enforces it, or 0.
    pub(super) fn index(&self) -> u32 {
        match self.kind {
            ConstraintRowKind::Check { .. } | ConstraintRowKind::ForeignKey(_) => 0,
            ConstraintRowKind::PrimaryKey(index) | ConstraintRowKind::Unique(index) => index,
        }
    }
}

/// Returns attributes from names and types alone.
fn plain<'a>(columns: impl Iterator<Item = (&'a str, &'a SqlType)>) -> Vec<Attribute> {
    let column = |(number, (name, sql_type)): (i16, (&str, &SqlType))| Attribute {
        number,
        name: name.to_owned(),
        sql_type: sql_type.clone(),
        not_null: false,
        default: None,
        sequences: Vec::new(),
        is_generated: false,
        identity: None,
        collation: collation::of_type(&sql_type.base),
    };
    (1..).zip(columns).map(column).collect()
}

/// Returns the attribute number of a column of a table; 0 for the hidden row ID.
pub(super) fn attribute_number(table: &Table, column: usize) -> i16 {
    let hidden = table.row_id_column();
    if hidden == Some(column) {
        return 0;
    }
    let before = hidden.is_some_and(|hidden| hidden < column);
    i16::try_from(column + 1 - usize::from(before)).unwrap_or(i16::MAX)
}

fn attributes(
    table: &Table,
    record: Option<&Arc<TableRecord>>,
    catalog: &Catalog,
) -> Vec<Attribute> {
    let attribute = |column: usize| {
        let written = record.and_then(|record| record.columns.get(column));
        let number = attribute_number(table, column);
        let column = &table.columns[column];
        // An identity column's default is its sequence, which clients see as the identity instead.
        let default = written.and_then(|written| {
            let is_null = matches!(column.default, Some(Expr::Constant { value: Datum::Null, .. }));
            // A default of NULL is the same as none.
            let default = written.default.as_ref();
            let default = default.filter(|_| column.identity.is_none() && !is_null);
            default.or(written.generated.as_ref())
        });
        let taken_from =
            column.default.as_ref().filter(|_| default.is_some() || column.identity.is_some());
        Attribute {
            number,
            name: column.name.clone(),
            sql_type: column.sql_type.clone(),
            not_null: column.not_null,
            sequences: taken_from.map_or_else(Vec::new, |expr| catalog.sequences_of_default(expr)),
            default: default
                .map(|text| definition::stored_default(text, &column.sql_type, catalog)),
            is_generated: column.generated.is_some(),
            identity: column.identity,
            collation: column.collation,
        }
    };
    table.visible_columns().map(attribute).collect()
}

/// Returns the subject of the privileges on a relation: for an index, its table.
pub(super) fn subject_of(relation: &SystemRelation) -> Option<AccessSubject> {
    let number = match &relation.kind {
        SystemRelationKind::Table(table)
        | SystemRelationKind::PrimaryKey(table)
        | SystemRelationKind::Index(table, _)
        | SystemRelationKind::Materialized(table, _) => table.oid,
        SystemRelationKind::View(view) => view.oid,
        SystemRelationKind::Sequence(sequence) => sequence.oid,
        _ => return None,
    };
    Some(AccessSubject::Relation(number))
}

/// Returns the OID of the owner of an object; that of the bootstrap superuser for system objects.
pub(super) fn owner_oid(catalog: &Catalog, subject: Option<AccessSubject>) -> Datum {
    let owner = subject.map(|subject| catalog.access(subject).owner);
    oid(owner.map_or(OWNER, role_oid))
}

/// Returns the list of the privileges on an object; NULL for the default ones.
pub(super) fn acl_of(catalog: &Catalog, subject: Option<AccessSubject>) -> Datum {
    let access = subject.map(|subject| catalog.access(subject));
    let items = access.as_ref().and_then(|access| access.acl.as_ref());
    items.map_or(Datum::Null, |items| acl_list(catalog, items))
}

/// Returns a list of privileges.
pub(super) fn acl_list(catalog: &Catalog, items: &[AclRecord]) -> Datum {
    array(items.iter().map(|item| text(item_text(catalog, item))).collect())
}

/// Returns the text of an item, `grantee=privileges/grantor`.
fn item_text(catalog: &Catalog, item: &AclRecord) -> String {
    let name = |number: u32| match catalog.role(number) {
        Some(role) => quote_ident(&role.name),
        None => role_oid(number).to_string(),
    };
    let mut out = if item.grantee == PUBLIC_ROLE { String::new() } else { name(item.grantee) };
    out.push('=');
    for (at, (letter, _)) in PRIVILEGES.iter().enumerate() {
        if item.privileges & 1 << at != 0 {
            out.push(*letter);
        }
        if item.grantable & 1 << at != 0 {
            out.push('*');
        }
    }
    out.push('/');
    out.push_str(&name(item.grantor));
    out
}
