//! Database engine: a store, its catalog, and the state that all sessions share.
//!
//! [`crate::open`] creates it. Sessions read the catalog from here, DDL publishes a new catalog
//! after its commit, and the planner reads table statistics through [`Statistics`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ahash::{AHashMap, AHashSet};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use store::descriptor::{Durability, SplitOptions};
use store::memory::AccountId;
use store::transaction::TransactionOptions;
use store::{
    CellBatch, FamilyDescriptor, Get, Mutation, Scan, Sequence, Store, TableDescriptor, TableId,
    Transaction,
};

use crate::activity::SessionRegistry;
use crate::advisory::AdvisoryLocks;
use crate::catalog::access::role::ROLES_PREFIX;
use crate::catalog::comment::{COMMENTS_PREFIX, CommentSubjectKey};
use crate::catalog::composite::{COMPOSITES_PREFIX, Composite, CompositeRecord};
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
use crate::catalog::statistics::{STATISTICS_PREFIX, TableStatistics, table_of_key};
use crate::catalog::table::Table;
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;
use crate::catalog::{Catalog, CatalogObject};
use crate::error::{Error, Result};
use crate::exec::FollowedViews;
use crate::index_builds::followers::{FOLLOWERS_PREFIX, IndexFollowers, IndexPosition, LostIndex};
use crate::index_builds::{BUILDS_PREFIX, BuildClaim, IndexBuild, IndexBuilds, RunningBuild};
use crate::object_ids::ObjectIds;
use crate::planner::statistics::Statistics;
use crate::prepared_transactions::PreparedTransactions;
use crate::quotas::Quotas;
use crate::relation_assembly::{self, TextBinding};
use crate::relation_visibility::{InvisibleRelations, RelationVisibility, exchanged_tables};
use crate::row_ids::RowIds;
use crate::sequences::SequenceStates;
use crate::spill::SpillArea;
use crate::table_coprocessors::{AttachedCoprocessor, CoprocessorRegistry};
use crate::timer::Timer;

/// Coprocessors of each table that has any.
#[derive(Debug, Clone, Default)]
struct CoprocessorsByTable {
    by_table: AHashMap<TableId, Arc<Vec<AttachedCoprocessor>>>,
    /// Tables that only a coprocessor may write to. Each writing statement checks it.
    kept: AHashSet<TableId>,
}

impl CoprocessorsByTable {
    /// Returns a copy in which the coprocessors of one table are replaced.
    fn with(
        &self,
        table: TableId,
        attached: Option<&Arc<Vec<AttachedCoprocessor>>>,
    ) -> CoprocessorsByTable {
        let mut by_table = self.by_table.clone();
        match attached.filter(|attached| !attached.is_empty()) {
            Some(attached) => by_table.insert(table, Arc::clone(attached)),
            None => by_table.remove(&table),
        };
        let all = by_table.values().flat_map(|attached| attached.iter());
        let exclusive = all.filter(|attached| attached.is_exclusive);
        let kept = exclusive.flat_map(|attached| attached.writes.iter().copied()).collect();
        CoprocessorsByTable { by_table, kept }
    }
}

/// Database engine: one per open store.
pub struct Engine {
    store: Arc<Store>,
    catalog: ArcSwap<Catalog>,
    pub(crate) coprocessors: CoprocessorRegistry,
    /// Coprocessors in the present observer chains, including changes of open transactions.
    attached: ArcSwap<CoprocessorsByTable>,
    /// Recently created indexes, and tables with recently rewritten rows.
    new_relations: RelationVisibility,
    /// Held from the commit of a DDL transaction until its catalog is published.
    pub(crate) publishing: Mutex<()>,
    /// Request quotas in force.
    pub(crate) quotas: Quotas,
    /// Allocator of object ids.
    pub(crate) object_ids: ObjectIds,
    /// Allocator of hidden keys for tables without a primary key.
    pub(crate) row_ids: Arc<RowIds>,
    /// States of the sequences.
    pub(crate) sequences: SequenceStates,
    /// Start time of the engine, in microseconds of the Unix epoch.
    pub(crate) opened_micros: i64,
    /// Advisory locks.
    pub(crate) advisory: Arc<AdvisoryLocks>,
    /// Registry of the open sessions.
    pub(crate) sessions: SessionRegistry,
    /// Timer thread for statement timeouts.
    pub(crate) timer: Timer,
    /// Store tables to be dropped, each list with the first commit whose readers do not use them.
    unseen: Mutex<Vec<(Sequence, Vec<TableId>)>>,
    /// True if `unseen` has entries.
    has_unseen: AtomicBool,
    /// The prepared transactions.
    pub prepared: PreparedTransactions,
    /// Spill area of the statements.
    pub(crate) spill: Arc<SpillArea>,
    /// The running index builds.
    pub(crate) index_builds: Arc<IndexBuilds>,
    /// Followers of eventual indexes.
    pub(crate) followers: IndexFollowers,
    /// Version of the last catalog without an index to hand over.
    handed_over: AtomicU64,
}

impl Engine {
    /// Loads the catalog of a store and removes what a crashed DDL statement left behind. No
    /// coprocessors are attached yet.
    pub(crate) fn load(store: Arc<Store>, coprocessors: CoprocessorRegistry) -> Result<Engine> {
        if store.table(CATALOG_TABLE).is_none() {
            store.create_table(catalog_descriptor())?;
        }
        create_public(&store)?;
        let catalog = read_catalog(&store)?;
        let object_ids = ObjectIds::new(&store);
        let row_ids = Arc::new(RowIds::new(&store));
        remove_orphans(&store, &catalog, &row_ids)?;
        let sequences = SequenceStates::new(&store);
        remove_orphan_states(&store, &catalog, &sequences)?;
        let prepared = PreparedTransactions::recover(&store)?;
        let spill = SpillArea::open(store.env(), store.directory().join("spill"))?;
        let engine = Engine {
            opened_micros: store.now_micros(),
            advisory: Arc::new(AdvisoryLocks::new(Arc::clone(&store))),
            sessions: SessionRegistry::default(),
            store,
            object_ids,
            row_ids,
            sequences,
            prepared,
            spill,
            index_builds: Arc::default(),
            followers: IndexFollowers::default(),
            handed_over: AtomicU64::new(0),
            catalog: ArcSwap::from_pointee(catalog),
            coprocessors,
            attached: ArcSwap::default(),
            new_relations: RelationVisibility::default(),
            publishing: Mutex::new(()),
            quotas: Quotas::default(),
            timer: Timer::default(),
            unseen: Mutex::default(),
            has_unseen: AtomicBool::new(false),
        };
        let catalog = engine.catalog();
        // The server may have crashed between a commit and its changes of store descriptors.
        let tables = catalog.tables_by_age().map(|table| table.oid);
        engine.apply_descriptors(tables.filter_map(|table| catalog.record(table)))?;
        engine.quotas.apply(&engine.store, &engine.catalog())?;
        Ok(engine)
    }

    /// Claims the build of an index; `None` if another session has it.
    pub(crate) fn claim_build(
        &self,
        catalog: &Catalog,
        (table, index): (u32, u32),
        (session, command): (i32, &'static str),
    ) -> Option<BuildClaim> {
        let of_table = |table: &Arc<Table>| self.store.row_estimate(table.id).ok();
        let rows_total = catalog.table(table).and_then(of_table).map_or(0, |rows| rows.rows);
        let progress = Default::default();
        self.index_builds.claim(RunningBuild {
            session,
            table,
            index,
            command,
            rows_total,
            progress,
        })
    }

    /// Returns the stored builds of indexes.
    ///
    /// # Errors
    ///
    /// XX001 if a row is damaged; errors of the store.
    pub(crate) fn stored_builds(&self) -> Result<Vec<IndexBuild>> {
        let mut builds = Vec::new();
        read_rows(&self.store, BUILDS_PREFIX, |_, value| {
            builds.push(decode(value)?);
            Ok(())
        })?;
        Ok(builds)
    }

    /// Returns the builds of indexes that no session has, and that have not failed.
    ///
    /// # Errors
    ///
    /// XX001 if a row is damaged; errors of the store.
    pub fn due_builds(&self) -> Result<Vec<IndexBuild>> {
        let mut builds = self.stored_builds()?;
        builds.retain(|one| one.error.is_none() && !self.index_builds.is_running(one.index));
        Ok(builds)
    }

    /// Returns the stored positions of eventual indexes.
    ///
    /// # Errors
    ///
    /// XX001 if a row is damaged; errors of the store.
    pub(crate) fn stored_positions(&self) -> Result<Vec<IndexPosition>> {
        let mut positions = Vec::new();
        read_rows(&self.store, FOLLOWERS_PREFIX, |_, value| {
            positions.push(decode(value)?);
            Ok(())
        })?;
        Ok(positions)
    }

    /// Follows the eventual indexes from their stored positions on, if the store has retained all
    /// versions since it was opened.
    pub(crate) fn resume_followers(&self) -> Result<()> {
        let catalog = self.catalog();
        let positions = self.stored_positions()?;
        for table in catalog.tables() {
            for index in table.indexes.iter().filter(|index| index.is_followed) {
                self.followers.begin(&self.store);
                let stored = positions.iter().find(|one| {
                    self.store.retains_recovered_versions()
                        && one.index == index.oid
                        && one.store_table == index.spec.store_table.0
                        && one.base_table == table.id.0
                        && one.sequence <= self.store.visible().0
                });
                match stored {
                    Some(position) => {
                        let rows = self.store.view(Some(Sequence(position.sequence)));
                        let entries = self.store.view(None);
                        let views = FollowedViews { rows, entries, time_micros: i64::MIN };
                        self.followers.add(position.clone(), views);
                    }
                    None => {
                        let (table, index) = (table.oid, index.oid);
                        self.followers.lose(LostIndex { table, index, error: None });
                    }
                }
            }
        }
        self.store.release_recovered_versions();
        Ok(())
    }

    /// Returns the eventual indexes that writers maintain.
    pub(crate) fn indexes_to_hand_over(&self) -> Vec<(u32, u32)> {
        let catalog = self.catalog();
        let of_table = |table: &Arc<Table>| {
            let indexes = table.indexes.iter().filter(|index| index.is_to_hand_over());
            indexes.map(|index| (table.oid, index.oid)).collect::<Vec<_>>()
        };
        let due: Vec<_> = catalog.tables().into_iter().flat_map(of_table).collect();
        if due.is_empty() {
            self.handed_over.store(catalog.version, Ordering::Relaxed);
        }
        due
    }

    /// Returns whether indexes are to be handed over to the server, or cannot be followed any
    /// more.
    pub fn has_handovers(&self) -> bool {
        let is_new = self.handed_over.load(Ordering::Relaxed) != self.catalog.load().version;
        !self.followers.lost(&self.store).is_empty()
            || (is_new && !self.indexes_to_hand_over().is_empty())
    }

    /// Returns whether followed indexes may lack commits.
    pub fn followers_are_behind(&self) -> bool {
        self.followers.is_used() && self.followers.is_behind(&self.store)
    }

    /// Applies the catalog's descriptors of tables and their indexes to the store. Rows that are
    /// not in the log are flushed if later ones will be logged.
    pub(crate) fn apply_descriptors<'r>(
        &self,
        records: impl Iterator<Item = &'r Arc<TableRecord>>,
    ) -> store::Result<()> {
        let (mut changed, mut unlogged) = (Vec::new(), Vec::new());
        let wanted = records.flat_map(|record| {
            let indexes = record.indexes.iter().map(|index| &index.descriptor);
            std::iter::once(&record.descriptor).chain(indexes)
        });
        for wanted in wanted {
            let Some(found) = self.store.table(wanted.id) else { continue };
            let mut altered = TableDescriptor {
                name: found.name.clone(),
                split_points: found.split_points.clone(),
                ..TableDescriptor::clone(wanted)
            };
            // Transactions that were rolled back have added the others.
            let count = found.families.len().max(altered.families.len());
            altered.families.resize(count, FamilyDescriptor::dropped());
            for (family, found) in altered.families.iter_mut().zip(&found.families) {
                family.retired.clone_from(&found.retired);
            }
            if altered == *found {
                continue;
            }
            if found.durability == Durability::SkipWal && wanted.durability != Durability::SkipWal {
                unlogged.push(wanted.id);
            }
            changed.push(altered);
        }
        if !changed.is_empty() {
            self.store.alter_tables(changed)?;
        }
        unlogged.into_iter().try_for_each(|table| self.store.flush(table))
    }

    /// Drops the families of a store table behind those of a descriptor.
    pub(crate) fn drop_families_behind(&self, wanted: &TableDescriptor) -> store::Result<()> {
        let Some(found) = self.store.table(wanted.id) else { return Ok(()) };
        let mut altered = TableDescriptor::clone(&found);
        let behind = altered.families.iter_mut().skip(wanted.families.len());
        behind.for_each(|family| *family = FamilyDescriptor::dropped());
        if altered == *found { Ok(()) } else { self.store.alter_table(altered) }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns unused reserved values of sequences and object ids to the catalog, before a clean
    /// shutdown.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn return_reserved(&self) -> Result<()> {
        self.object_ids.return_reserved()?;
        self.sequences.return_reserved()
    }

    /// Returns the catalog of the last committed DDL.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Returns the indexes and tables that a snapshot cannot see, if there may be any.
    pub(crate) fn relations_newer_than(&self, snapshot: Sequence) -> Option<InvisibleRelations> {
        self.new_relations.newer_than(snapshot)
    }

    /// Publishes a committed catalog, whose changes are visible to snapshots from `commit` on.
    /// The caller holds `publishing`.
    pub(crate) fn publish(&self, catalog: Arc<Catalog>, commit: Sequence) {
        debug_assert!(self.publishing.is_locked(), "a catalog is published without the lock");
        debug_assert_eq!(catalog.check(), Ok(()), "a catalog that is published");
        let before = self.catalog().version;
        assert!(
            catalog.version > before,
            "version {} is published after {before}",
            catalog.version
        );
        for (old, new) in exchanged_tables(&self.catalog(), &catalog) {
            self.store.exchange_tables(old, new);
        }
        let since = commit.max(self.store.visible());
        self.store.require_for_timeline(since);
        let oldest = self.store.snapshots().first().map(|snapshot| snapshot.sequence);
        self.new_relations.record((&self.catalog(), &catalog), since, oldest);
        if let Err(error) = self.quotas.apply(&self.store, &catalog) {
            tracing::error!(%error, "could not set the quotas of tables");
        }
        self.catalog.store(catalog);
    }

    /// Drops store tables that a transaction has dropped or truncated, as soon as no snapshot
    /// from before the publication of its catalog is open. The caller has published it; a reader
    /// by the previous catalog may have a snapshot that includes the commit.
    pub(crate) fn drop_when_unreferenced(&self, tables: Vec<TableId>, transaction: &Transaction) {
        if !tables.is_empty() {
            let after = Sequence(self.store.visible().0 + 1);
            self.unseen.lock().push((after, tables));
            self.has_unseen.store(true, Ordering::Release);
        }
        self.drop_unseen(Some(transaction.id()));
    }

    /// Drops the store tables that [`Engine::drop_when_unreferenced`] deferred and that no snapshot
    /// needs any more. The snapshot of the transaction `own` does not count: it reads no more.
    pub(crate) fn drop_unseen(&self, own: Option<u64>) {
        if !self.has_unseen.load(Ordering::Acquire) {
            return;
        }
        let Some(mut unseen) = self.unseen.try_lock() else { return };
        let snapshots = self.store.snapshots();
        let mut readers =
            snapshots.iter().filter(|one| !one.is_closed && Some(one.transaction) != own);
        let oldest = readers.next().map(|reader| reader.sequence);
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut *unseen)
            .into_iter()
            .partition(|(from, _)| oldest.is_none_or(|oldest| oldest >= *from));
        self.has_unseen.store(!kept.is_empty(), Ordering::Release);
        *unseen = kept;
        drop(unseen);
        let _server = AccountId::SERVER.enter();
        for (_, tables) in gone {
            self.drop_tables(&tables);
        }
    }

    /// Drops tables from the store. A failure leaves an orphan, which the next start removes.
    pub(crate) fn drop_tables(&self, tables: &[TableId]) {
        for table in tables {
            self.forget_attached(*table);
            if let Err(error) = self.row_ids.remove(*table) {
                let table = table.0;
                tracing::warn!(table, %error, "could not remove the row ID counter of a table");
            }
        }
        if self.store.drop_tables(tables).is_ok() {
            return;
        }
        // A coprocessor may reject the drop of one table.
        for table in tables.iter().filter(|table| self.store.table(**table).is_some()) {
            if let Err(error) = self.store.drop_table(*table) {
                tracing::warn!(table = table.0, %error, "could not drop a table from the store");
            }
        }
    }

    /// Rebuilds the observer chain of a table: constraints, indexes and coprocessors. `catalog`
    /// has the tables that coprocessors write to.
    pub(crate) fn attach_observers(&self, table: &Table, catalog: &Catalog) -> Result<()> {
        let (observers, attached) = self.coprocessors.chain(table, catalog);
        self.store.set_observers(table.id, observers)?;
        // A table, its indexes and its maintained views must have the same content after a crash,
        // so all are logged.
        let is_followed = !table.indexes.is_empty()
            || table.is_maintained()
            || !catalog.maintained_views(table.oid).is_empty();
        self.store.keep_logged(table.id, is_followed)?;
        for index in &table.indexes {
            self.store.keep_logged(index.spec.store_table, true)?;
            let required = index.spec.families.required_family_ids();
            self.store.require_families(index.spec.store_table, required)?;
        }
        let attached = Arc::new(attached);
        self.attached.rcu(|known| known.with(table.id, Some(&attached)));
        Ok(())
    }

    /// Returns the coprocessors of a table, if it has any.
    pub fn attached(&self, table: TableId) -> Option<Arc<Vec<AttachedCoprocessor>>> {
        self.attached.load().by_table.get(&table).cloned()
    }

    /// Removes the coprocessors of a dropped table.
    pub(crate) fn forget_attached(&self, table: TableId) {
        if self.attached.load().by_table.contains_key(&table) {
            self.attached.rcu(|known| known.with(table, None));
        }
    }

    /// Returns the coprocessors that write to a table, each with the table that it is attached
    /// to.
    pub(crate) fn writers_to(&self, target: TableId) -> Vec<(TableId, AttachedCoprocessor)> {
        let known = self.attached.load();
        let all = known.by_table.iter();
        let all = all.flat_map(|(table, attached)| attached.iter().map(|one| (*table, one)));
        let writers = all.filter(|(_, attached)| attached.writes.contains(&target));
        writers.map(|(table, attached)| (table, attached.clone())).collect()
    }

    /// Returns the coprocessor that has exclusive write access to a table, with the table that it
    /// is attached to.
    pub(crate) fn exclusive_writer_of(
        &self,
        target: TableId,
    ) -> Option<(TableId, AttachedCoprocessor)> {
        if !self.attached.load().kept.contains(&target) {
            return None;
        }
        self.writers_to(target).into_iter().find(|(_, attached)| attached.is_exclusive)
    }
}

impl Statistics for Engine {
    fn row_count(&self, table: TableId) -> Option<f64> {
        let estimate = self.store.row_estimate(table).ok()?.rows as f64;
        // The store's estimate may count row versions; it is scaled by the ratio that ANALYZE
        // found.
        Some(match self.catalog.load().statistics(table) {
            Some(then) if then.estimate > 0 => estimate * (then.rows as f64 / then.estimate as f64),
            _ => estimate,
        })
    }

    fn columnar_part(&self, table: TableId) -> f64 {
        let estimate = self.store.row_estimate(table).unwrap_or_default();
        estimate.columnar as f64 / estimate.rows.max(1) as f64
    }

    fn table(&self, table: TableId) -> Option<Arc<TableStatistics>> {
        self.catalog.load().statistics(table).cloned()
    }
}

fn catalog_descriptor() -> TableDescriptor {
    TableDescriptor {
        id: CATALOG_TABLE,
        name: "bennu.catalog".to_owned(),
        families: vec![FamilyDescriptor::new("0")],
        region_replication: 1,
        durability: Durability::SyncWal,
        split_points: Vec::new(),
        memstore_flush_bytes: None,
        split: SplitOptions::disabled(),
        colocated_with: None,
    }
}

/// Creates schema `public` in a new catalog, from which no id was allocated yet.
///
/// # Errors
///
/// 0A000 if a build with other records wrote the catalog.
fn create_public(store: &Arc<Store>) -> Result<()> {
    let transaction = store.begin(TransactionOptions::default());
    transaction.begin_statement();
    let mut batch = CellBatch::new();
    if transaction.get(CATALOG_TABLE, &Get::new(INITIALIZED_KEY), &mut batch)? {
        return check_version(batch.row(0).value(0, b"").unwrap_or_default());
    }
    let public =
        SchemaRecord { oid: PUBLIC_OID, name: PUBLIC.to_owned(), unknown: Default::default() };
    let rows = [
        (object_key(SCHEMAS_PREFIX, PUBLIC_OID), encode(&public)),
        (INITIALIZED_KEY.to_vec(), CATALOG_VERSION.to_be_bytes().to_vec()),
    ];
    let rows = rows.map(|(key, value)| Mutation::new(key).put(0, Vec::new(), value));
    transaction.mutate(CATALOG_TABLE, rows.to_vec())?;
    transaction.commit()?.durable.wait()?;
    Ok(())
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

fn read_catalog(store: &Arc<Store>) -> Result<Catalog> {
    let mut coprocessors: AHashMap<Vec<u8>, Arc<CoprocessorRecords>> = AHashMap::new();
    read_rows(store, COPROCESSORS_PREFIX, |table, bytes| {
        coprocessors.insert(table.to_vec(), Arc::new(decode(bytes)?));
        Ok(())
    })?;
    let mut catalog = Catalog::default();
    catalog.add_standard_roles();
    read_rows(store, ROLES_PREFIX, |_, bytes| {
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
    read_rows(store, ENUMS_PREFIX, |_, bytes| {
        catalog.add(CatalogObject::of_type(UserType::Enum(Enumeration::of_record(decode(bytes)?))));
        Ok(())
    })?;
    read_rows(store, SCHEMAS_PREFIX, |_, bytes| {
        catalog.add(CatalogObject::Schema(Arc::new(decode(bytes)?)));
        Ok(())
    })?;
    let mut definitions = Vec::new();
    let mut read = |prefix, definition: fn(&[u8]) -> Result<Definition>| {
        read_rows(store, prefix, |_, bytes| {
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
    read_rows(store, SEQUENCES_PREFIX, |_, bytes| {
        catalog.add(CatalogObject::Sequence(Arc::new(decode(bytes)?)));
        Ok(())
    })?;
    read_rows(store, COMMENTS_PREFIX, |subject, bytes| {
        let comment = Arc::new(decode(bytes)?);
        catalog.add(CatalogObject::Comment(CommentSubjectKey::of_key(subject)?, comment));
        Ok(())
    })?;
    read_rows(store, QUOTA_PREFIX, |subject, bytes| {
        catalog.add(CatalogObject::Quota(QuotaSubject::of_key(subject)?, decode(bytes)?));
        Ok(())
    })?;
    read_rows(store, STATISTICS_PREFIX, |table, bytes| {
        if let Some(table) = table_of_key(table) {
            catalog.add(CatalogObject::Statistics(table, Arc::new(decode(bytes)?)));
        }
        Ok(())
    })?;
    Ok(catalog)
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

/// Calls `read` for each catalog row with a key prefix, with the rest of the key and the value.
fn read_rows(
    store: &Arc<Store>,
    prefix: &[u8],
    mut read: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let transaction =
        store.begin(TransactionOptions { read_only: true, ..TransactionOptions::default() });
    transaction.begin_statement();
    let range = Scan::range(prefix.to_vec(), types::keycode::prefix_end(prefix));
    let mut scanner = transaction.scan(CATALOG_TABLE, range)?;
    let mut batch = CellBatch::new();
    while scanner.next_batch(1_000, &mut batch)? {
        for row in batch.rows() {
            let name = row.key().get(prefix.len()..).unwrap_or_default();
            read(name, row.value(0, b"").unwrap_or_default())?;
        }
    }
    Ok(())
}

/// Removes the states of sequences that no catalog entry names.
fn remove_orphan_states(
    store: &Arc<Store>,
    catalog: &Catalog,
    sequences: &SequenceStates,
) -> Result<()> {
    let mut kept = Vec::new();
    read_rows(store, STATES_PREFIX, |id, _| {
        kept.extend(id.try_into().map(u32::from_be_bytes));
        Ok(())
    })?;
    let known: AHashSet<u32> = catalog.sequences().map(|sequence| sequence.id).collect();
    let orphans: Vec<u32> = kept.into_iter().filter(|id| !known.contains(id)).collect();
    if orphans.is_empty() { Ok(()) } else { sequences.forget(&orphans) }
}

/// Removes store tables and row-id counters that no catalog entry names, which an interrupted DDL
/// statement left.
fn remove_orphans(store: &Arc<Store>, catalog: &Catalog, row_ids: &RowIds) -> Result<()> {
    let mut numbered = Vec::new();
    read_rows(store, ROW_IDS_PREFIX, |table, _| {
        numbered.extend(table.try_into().map(u32::from_be_bytes).map(TableId));
        Ok(())
    })?;
    for table in numbered {
        if catalog.table_stored(table).is_none() {
            row_ids.remove(table)?;
        }
    }
    let tables = catalog.tables_by_age().flat_map(|table| {
        let indexes = table.indexes.iter().map(|index| index.spec.store_table);
        indexes.chain([table.id])
    });
    let known: AHashSet<TableId> = tables.collect();
    for descriptor in store.tables() {
        if !known.contains(&descriptor.id) && descriptor.id.0 >= FIRST_USER_TABLE {
            tracing::info!(table = %descriptor.name, "removing a table of an unfinished statement");
            store.drop_table(descriptor.id)?;
        }
    }
    Ok(())
}
