//! Catalog reader: the objects of a catalog table, as a [`Catalog`], and the removal of what an
//! interrupted statement left.
//!
//! Each database has a catalog table. That of the default database is also the shared catalog, with
//! the objects that the catalogs of all databases have.

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use store::transaction::TransactionOptions;
use store::{CellBatch, FamilyDescriptor, Get, Mutation, Scan, Store, TableDescriptor, TableId};

use crate::catalog::access::object_access::{ACCESS_PREFIX, AccessRecord, AccessSubject};
use crate::catalog::access::role::ROLES_PREFIX;
use crate::catalog::comment::{COMMENTS_PREFIX, CommentSubjectKey};
use crate::catalog::composite::{COMPOSITES_PREFIX, Composite, CompositeRecord};
use crate::catalog::database::{DATABASES_PREFIX, DatabaseRecord};
use crate::catalog::domain::{DOMAINS_PREFIX, DomainRecord};
use crate::catalog::enumeration::{ENUMS_PREFIX, Enumeration};
use crate::catalog::function::{FUNCTIONS_PREFIX, Function, FunctionRecord};
use crate::catalog::name::PUBLIC;
use crate::catalog::quota::{QUOTA_PREFIX, QuotaSubject};
use crate::catalog::record::{
    CATALOG_TABLE, CATALOG_VERSION, COPROCESSORS_PREFIX, CoprocessorRecords, FIRST_USER_TABLE,
    INITIALIZED_KEY, ROW_IDS_PREFIX, TABLES_PREFIX, TableRecord, VIEWS_PREFIX, ViewRecord, decode,
    encode, object_key,
};
use crate::catalog::schema::{PUBLIC_OID, SCHEMAS_PREFIX, SchemaRecord};
use crate::catalog::sequence::{SEQUENCES_PREFIX, STATES_PREFIX};
use crate::catalog::standard_domain;
use crate::catalog::standard_function;
use crate::catalog::statistics::{STATISTICS_PREFIX, table_of_key};
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;
use crate::catalog::{Catalog, CatalogObject};
use crate::error::{Error, Result};
use crate::relation_assembly::{self, TextBinding};
use crate::row_ids::RowIds;
use crate::sequences::SequenceStates;

/// Returns the descriptor of a catalog table.
fn catalog_descriptor(id: TableId) -> TableDescriptor {
    TableDescriptor::new(id, "bennu.catalog", vec![FamilyDescriptor::new("0")])
}

/// Creates an empty catalog table.
///
/// # Errors
///
/// Errors of the store.
pub(crate) fn create_catalog_table(store: &Store, catalog_table: TableId) -> store::Result<()> {
    store.create_table(catalog_descriptor(catalog_table))
}

/// Creates a catalog table, unless it exists, with schema `public`.
///
/// # Errors
///
/// 0A000 if a build with other records wrote the catalog.
pub(crate) fn create_catalog(store: &Arc<Store>, catalog_table: TableId) -> Result<()> {
    if store.table(catalog_table).is_none() {
        create_catalog_table(store, catalog_table)?;
    }
    let transaction = store.begin(TransactionOptions::default());
    transaction.begin_statement();
    let mut batch = CellBatch::new();
    if transaction.get(catalog_table, &Get::new(INITIALIZED_KEY), &mut batch)? {
        return check_version(batch.row(0).value(0, b"").unwrap_or_default());
    }
    let public =
        SchemaRecord { oid: PUBLIC_OID, name: PUBLIC.to_owned(), unknown: Default::default() };
    let rows = [
        (object_key(SCHEMAS_PREFIX, PUBLIC_OID), encode(&public)),
        (INITIALIZED_KEY.to_vec(), CATALOG_VERSION.to_be_bytes().to_vec()),
    ];
    let rows = rows.map(|(key, value)| Mutation::new(key).put(0, Vec::new(), value));
    transaction.mutate(catalog_table, rows.to_vec())?;
    transaction.commit()?.durable.wait()?;
    Ok(())
}

/// Reads the databases from the shared catalog; stores the initial ones if it has none.
///
/// # Errors
///
/// XX001 if a record is damaged; errors of the store.
pub(crate) fn read_databases(store: &Arc<Store>) -> Result<Vec<DatabaseRecord>> {
    let mut databases: Vec<DatabaseRecord> = Vec::new();
    read_rows((store, CATALOG_TABLE), DATABASES_PREFIX, |_, bytes| {
        databases.push(decode(bytes)?);
        Ok(())
    })?;
    if databases.is_empty() {
        databases = DatabaseRecord::initial().to_vec();
        let row = |one: &DatabaseRecord| {
            let key = object_key(DATABASES_PREFIX, one.oid);
            Mutation::new(key).put(0, Vec::new(), encode(one))
        };
        let transaction = store.begin(TransactionOptions::default());
        transaction.begin_statement();
        transaction.mutate(CATALOG_TABLE, databases.iter().map(row).collect())?;
        transaction.commit()?.durable.wait()?;
    }
    Ok(databases)
}

/// Returns the roles that each object of another database names: its owner and the roles of its
/// privileges, or those of a policy. Empty if the database does not exist.
///
/// # Errors
///
/// XX001 if a record is damaged; errors of the store.
pub(crate) fn referenced_roles(
    store: &Arc<Store>,
    catalog_table: TableId,
) -> Result<Vec<Vec<u32>>> {
    let mut referenced = Vec::new();
    if store.table(catalog_table).is_none() {
        return Ok(referenced);
    }
    read_rows((store, catalog_table), ACCESS_PREFIX, |_, bytes| {
        referenced.push(decode::<AccessRecord>(bytes)?.roles().collect());
        Ok(())
    })?;
    read_rows((store, catalog_table), TABLES_PREFIX, |_, bytes| {
        let policies = decode::<TableRecord>(bytes)?.policies;
        referenced.extend(policies.into_iter().map(|policy| policy.roles));
        Ok(())
    })?;
    Ok(referenced)
}

fn check_version(stored: &[u8]) -> Result<()> {
    if stored == CATALOG_VERSION.to_be_bytes() {
        return Ok(());
    }
    // The first version had no number.
    let stored = stored.try_into().map_or(1, u32::from_be_bytes);
    bail!(FEATURE_NOT_SUPPORTED: "the data directory has a catalog of version {stored}, and this \
         build reads version {CATALOG_VERSION}: dump the database with the build that wrote it, \
         and restore the dump into a new directory")
}

/// Reads the catalog of a database: the objects of its catalog table and the shared objects.
///
/// # Errors
///
/// XX001 if a record is damaged; errors of the store.
pub(crate) fn read_catalog(rows: CatalogRows<'_>, database: u32) -> Result<Catalog> {
    let store = rows.0;
    let mut coprocessors: AHashMap<Vec<u8>, Arc<CoprocessorRecords>> = AHashMap::new();
    read_rows(rows, COPROCESSORS_PREFIX, |table, bytes| {
        coprocessors.insert(table.to_vec(), Arc::new(decode(bytes)?));
        Ok(())
    })?;
    let mut catalog = Catalog::default();
    catalog.database = database;
    catalog.add_standard_roles();
    read_rows((store, CATALOG_TABLE), ROLES_PREFIX, |_, bytes| {
        catalog.add(CatalogObject::Role(Arc::new(decode(bytes)?)));
        Ok(())
    })?;
    for function in standard_function::all(&catalog)? {
        catalog.add(CatalogObject::Function(Arc::new(function)));
    }
    for record in standard_domain::records() {
        let domain = relation_assembly::domain(&catalog, record)?;
        catalog.add(CatalogObject::of_type(UserType::Domain(domain.into())));
    }
    read_rows(rows, ENUMS_PREFIX, |_, bytes| {
        catalog.add(CatalogObject::of_type(UserType::Enum(Enumeration::of_record(decode(bytes)?))));
        Ok(())
    })?;
    read_rows(rows, SCHEMAS_PREFIX, |_, bytes| {
        catalog.add(CatalogObject::Schema(Arc::new(decode(bytes)?)));
        Ok(())
    })?;
    let mut definitions = Vec::new();
    let mut read = |prefix, definition: fn(&[u8]) -> Result<Definition>| {
        read_rows(rows, prefix, |_, bytes| {
            definitions.push(definition(bytes)?);
            Ok(())
        })
    };
    read(DOMAINS_PREFIX, |bytes| Ok(Definition::Domain(decode(bytes)?)))?;
    read(COMPOSITES_PREFIX, |bytes| Ok(Definition::Composite(decode(bytes)?)))?;
    read(FUNCTIONS_PREFIX, |bytes| Ok(Definition::Function(decode(bytes)?)))?;
    read(TABLES_PREFIX, |bytes| Ok(Definition::Table(Box::new(decode(bytes)?))))?;
    read(VIEWS_PREFIX, |bytes| Ok(Definition::View(decode(bytes)?)))?;
    catalog = with_definitions(catalog, definitions, &coprocessors)?;
    read_rows(rows, SEQUENCES_PREFIX, |_, bytes| {
        catalog.add(CatalogObject::Sequence(Arc::new(decode(bytes)?)));
        Ok(())
    })?;
    read_properties(&mut catalog, rows, false)?;
    read_properties(&mut catalog, (store, CATALOG_TABLE), true)?;
    read_rows((store, CATALOG_TABLE), DATABASES_PREFIX, |_, bytes| {
        catalog.add(CatalogObject::Database(Arc::new(decode(bytes)?)));
        Ok(())
    })?;
    read_rows(rows, ACCESS_PREFIX, |subject, bytes| {
        let record = Arc::new(decode(bytes)?);
        catalog.add(CatalogObject::Access(AccessSubject::of_key(subject)?, record));
        Ok(())
    })?;
    read_rows(rows, STATISTICS_PREFIX, |table, bytes| {
        if let Some(table) = table_of_key(table) {
            catalog.add(CatalogObject::Statistics(table, Arc::new(decode(bytes)?)));
        }
        Ok(())
    })?;
    Ok(catalog)
}

/// Adds the comments and quotas of a catalog table: those of shared objects, or the others.
fn read_properties(catalog: &mut Catalog, rows: CatalogRows<'_>, shared: bool) -> Result<()> {
    let mut add = |object: CatalogObject| {
        if object.entry().is_shared() == shared {
            catalog.add(object);
        }
    };
    read_rows(rows, COMMENTS_PREFIX, |subject, bytes| {
        let comment = Arc::new(decode(bytes)?);
        add(CatalogObject::Comment(CommentSubjectKey::of_key(subject)?, comment));
        Ok(())
    })?;
    read_rows(rows, QUOTA_PREFIX, |subject, bytes| {
        add(CatalogObject::Quota(QuotaSubject::of_key(subject)?, decode(bytes)?));
        Ok(())
    })
}

/// A definition as stored in the catalog, before the names in it are resolved.
enum Definition {
    Domain(DomainRecord),
    Composite(CompositeRecord),
    Function(FunctionRecord),
    Table(Box<TableRecord>),
    View(ViewRecord),
}

/// Adds definitions, which may refer to each other, to the catalog: those with unresolved
/// references are retried after the others.
fn with_definitions(
    mut catalog: Catalog,
    mut definitions: Vec<Definition>,
    coprocessors: &AHashMap<Vec<u8>, Arc<CoprocessorRecords>>,
) -> Result<Catalog> {
    while !definitions.is_empty() {
        let before = definitions.len();
        let mut left = Vec::new();
        for definition in definitions {
            match object_of(&catalog, &definition, coprocessors, false) {
                Ok(object) => catalog.add(object),
                Err(error) => left.push((definition, error)),
            }
        }
        if left.len() == before {
            // The rest depends on a definition that cannot be read. Those that allow it are
            // loaded with the error deferred until they are used.
            let late = left.iter().position(|(definition, error)| {
                let object = object_of(&catalog, definition, coprocessors, true);
                if let Ok(object) = object {
                    tracing::error!(error = %unreadable(definition, error), "damaged definition");
                    catalog.add(object);
                    return true;
                }
                false
            });
            let (definition, error) = left.remove(late.unwrap_or_default());
            if late.is_none() {
                return Err(unreadable(&definition, &error));
            }
        }
        definitions = left.into_iter().map(|(definition, _)| definition).collect();
    }
    Ok(catalog)
}

/// Returns an error that names the object whose definition cannot be read.
fn unreadable(definition: &Definition, error: &Error) -> Error {
    let (what, name) = match definition {
        Definition::Domain(record) => ("domain", &record.name),
        Definition::Composite(record) => ("type", &record.name),
        Definition::Function(record) => ("function", &record.name),
        Definition::Table(record) => ("table", &record.name),
        Definition::View(record) => ("view", &record.name),
    };
    err!(DATA_CORRUPTED: "could not read the definition of {what} \"{name}\": {}", error.message)
}

/// Returns the object of a definition; `fail_late` defers errors until texts are used.
fn object_of(
    catalog: &Catalog,
    definition: &Definition,
    coprocessors: &AHashMap<Vec<u8>, Arc<CoprocessorRecords>>,
    fail_late: bool,
) -> Result<CatalogObject> {
    let texts = TextBinding { catalog, fail_late };
    Ok(match definition {
        Definition::Domain(record) => {
            let domain = relation_assembly::domain_of(texts, record.clone())?;
            CatalogObject::of_type(UserType::Domain(domain.into()))
        }
        Definition::Composite(record) => {
            let composite = Composite::of_record(record.clone(), catalog)?;
            CatalogObject::of_type(UserType::Composite(composite))
        }
        Definition::Function(record) => {
            CatalogObject::Function(Arc::new(Function::of_record(record.clone(), catalog)?))
        }
        Definition::Table(record) => {
            let attached = coprocessors.get(record.oid.to_be_bytes().as_slice()).cloned();
            let table = relation_assembly::table_of(texts, record, attached.unwrap_or_default())?;
            CatalogObject::of_table(table, record.as_ref().clone())
        }
        Definition::View(record) => {
            CatalogObject::View(Arc::new(View::of_record(record.clone(), catalog)?))
        }
    })
}

/// The rows of a catalog table of a store.
pub(crate) type CatalogRows<'s> = (&'s Arc<Store>, TableId);

/// Calls `read` for each catalog row with a key prefix, with the rest of the key and the value.
///
/// # Errors
///
/// Errors of `read` and of the store.
pub(crate) fn read_rows(
    (store, catalog_table): CatalogRows<'_>,
    prefix: &[u8],
    mut read: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let transaction =
        store.begin(TransactionOptions { read_only: true, ..TransactionOptions::default() });
    transaction.begin_statement();
    let range = Scan::range(prefix.to_vec(), types::keycode::prefix_end(prefix));
    let mut scanner = transaction.scan(catalog_table, range)?;
    let mut batch = CellBatch::new();
    while scanner.next_batch(1_000, &mut batch)? {
        for row in batch.rows() {
            let name = row.key().get(prefix.len()..).unwrap_or_default();
            read(name, row.value(0, b"").unwrap_or_default())?;
        }
    }
    Ok(())
}

/// Removes the states of sequences and the row-id counters that no catalog entry names.
///
/// # Errors
///
/// Errors of the store.
pub(crate) fn remove_orphan_rows(
    rows: CatalogRows<'_>,
    catalog: &Catalog,
    sequences: &SequenceStates,
    row_ids: &RowIds,
) -> Result<()> {
    let mut kept = Vec::new();
    read_rows(rows, STATES_PREFIX, |id, _| {
        kept.extend(id.try_into().map(u32::from_be_bytes));
        Ok(())
    })?;
    let known: AHashSet<u32> = catalog.sequences().map(|sequence| sequence.id).collect();
    let orphans: Vec<u32> = kept.into_iter().filter(|id| !known.contains(id)).collect();
    if !orphans.is_empty() {
        sequences.forget(&orphans)?;
    }
    let mut numbered = Vec::new();
    read_rows(rows, ROW_IDS_PREFIX, |table, _| {
        numbered.extend(table.try_into().map(u32::from_be_bytes).map(TableId));
        Ok(())
    })?;
    numbered.retain(|table| catalog.table_stored(*table).is_none());
    numbered.into_iter().try_for_each(|table| row_ids.remove(table))
}

/// Returns the store tables of the tables and indexes of a database, and its catalog table. The
/// definitions are not bound.
///
/// # Errors
///
/// XX001 if a record is damaged; errors of the store.
pub(crate) fn store_tables_of(
    store: &Arc<Store>,
    database: &DatabaseRecord,
) -> Result<Vec<TableId>> {
    let catalog_table = database.catalog_table();
    let mut tables = Vec::new();
    if store.table(catalog_table).is_none() {
        return Ok(tables);
    }
    tables.push(catalog_table);
    read_rows((store, catalog_table), TABLES_PREFIX, |_, bytes| {
        let record: TableRecord = decode(bytes)?;
        tables.push(record.descriptor.id);
        tables.extend(record.indexes.iter().map(|index| index.descriptor.id));
        Ok(())
    })?;
    Ok(tables)
}

/// Removes store tables that no catalog names, which an interrupted statement left.
///
/// # Errors
///
/// XX001 if a record is damaged; errors of the store.
pub(crate) fn remove_orphan_tables(store: &Arc<Store>, databases: &[DatabaseRecord]) -> Result<()> {
    let mut known: AHashSet<TableId> = AHashSet::new();
    for database in databases {
        known.extend(store_tables_of(store, database)?);
    }
    for descriptor in store.tables() {
        if !known.contains(&descriptor.id) && descriptor.id.0 >= FIRST_USER_TABLE {
            tracing::info!(table = %descriptor.name, "removing a table of an unfinished statement");
            store.drop_table(descriptor.id)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::catalog::history_marks::HISTORY_PREFIX;
    use crate::catalog::record::{NEXT_ID_KEY, PREPARED_PREFIX};
    use crate::index_builds::BUILDS_PREFIX;
    use crate::index_builds::followers::FOLLOWERS_PREFIX;

    #[test]
    fn kinds_of_rows_have_different_keys() {
        let keys = [
            ACCESS_PREFIX,
            BUILDS_PREFIX,
            COMMENTS_PREFIX,
            COMPOSITES_PREFIX,
            COPROCESSORS_PREFIX,
            DATABASES_PREFIX,
            DOMAINS_PREFIX,
            ENUMS_PREFIX,
            FOLLOWERS_PREFIX,
            FUNCTIONS_PREFIX,
            HISTORY_PREFIX,
            INITIALIZED_KEY,
            NEXT_ID_KEY,
            PREPARED_PREFIX,
            QUOTA_PREFIX,
            ROLES_PREFIX,
            ROW_IDS_PREFIX,
            SCHEMAS_PREFIX,
            SEQUENCES_PREFIX,
            STATES_PREFIX,
            STATISTICS_PREFIX,
            TABLES_PREFIX,
            VIEWS_PREFIX,
        ];
        assert!(keys.iter().all(|key| key.len() == 1));
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
    }
}
