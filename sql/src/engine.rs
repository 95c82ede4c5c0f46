//! Engine of a database, and the cluster, the state that the databases of a store share.
//!
//! ```text
//!   Cluster: store (one log, one transaction manager), object ids, sessions, prepared transactions
//!     |-- Engine of database bennu      catalog table 1, also the shared catalog
//!     |-- Engine of database postgres   catalog table 4
//!     `-- Engine of ...                 one catalog table each
//! ```
//!
//! [`crate::open`] creates them. Sessions read the catalog from their engine, DDL publishes a new
//! catalog after its commit, and the planner reads table statistics through [`Statistics`].
//!
//! # Invariants
//!
//! 1. An object of the store belongs to one database: ids of store tables are of one counter.
//! 2. The catalogs of all open databases have the same shared objects: [`Engine::publish`] changes
//!    them in all, under one lock, which the opening of a database holds too.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ahash::{AHashMap, AHashSet};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use store::descriptor::Durability;
use store::memory::AccountId;
use store::{FamilyDescriptor, Sequence, Store, TableDescriptor, TableId, Transaction};

use crate::activity::SessionRegistry;
use crate::advisory::AdvisoryLocks;
use crate::catalog::database::{DEFAULT_DATABASE, DatabaseRecord};
use crate::catalog::record::{CATALOG_TABLE, TableRecord, decode};
use crate::catalog::statistics::TableStatistics;
use crate::catalog::table::Table;
use crate::catalog::{Catalog, CatalogEntry, ObjectId};
use crate::catalog_reader::{
    create_catalog, read_catalog, read_databases, read_rows, remove_orphan_rows,
    remove_orphan_tables,
};
use crate::database_slots::DatabaseSlots;
use crate::error::Result;
use crate::exec::FollowedViews;
use crate::index_builds::followers::{FOLLOWERS_PREFIX, IndexFollowers, IndexPosition, LostIndex};
use crate::index_builds::{BUILDS_PREFIX, BuildClaim, IndexBuild, IndexBuilds, RunningBuild};
use crate::notifications::NotificationQueue;
use crate::object_ids::ObjectIds;
use crate::planner::statistics::Statistics;
use crate::prepared_transactions::PreparedTransactions;
use crate::quotas::{Quotas, RoleQuotas};
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

/// State that the databases of a store share.
pub struct Cluster {
    store: Arc<Store>,
    pub(crate) coprocessors: CoprocessorRegistry,
    /// Held from the commit of a DDL transaction until its catalog is published.
    pub(crate) publishing: Mutex<()>,
    /// Allocator of object ids.
    pub(crate) object_ids: ObjectIds,
    /// Start time, in microseconds of the Unix epoch.
    pub(crate) opened_micros: i64,
    /// Registry of the open sessions.
    pub(crate) sessions: SessionRegistry,
    /// Timer thread for statement timeouts.
    pub(crate) timer: Timer,
    /// The prepared transactions.
    pub prepared: PreparedTransactions,
    /// Spill area of the statements.
    pub(crate) spill: Arc<SpillArea>,
    /// Quotas of roles.
    role_quotas: Arc<RoleQuotas>,
    /// The open databases.
    pub(crate) databases: Arc<DatabaseSlots<Engine>>,
    /// Held while a database is opened or closed.
    pub(crate) opening: Mutex<()>,
}

impl Cluster {
    /// Reads the databases of a store, and removes what crashed statements have left.
    pub(crate) fn load(store: Arc<Store>, coprocessors: CoprocessorRegistry) -> Result<Cluster> {
        create_catalog(&store, CATALOG_TABLE)?;
        let databases = read_databases(&store)?;
        remove_orphan_tables(&store, &databases)?;
        let prepared = PreparedTransactions::recover(&store)?;
        let spill = SpillArea::open(store.env(), store.directory().join("spill"))?;
        Ok(Cluster {
            coprocessors,
            publishing: Mutex::new(()),
            object_ids: ObjectIds::new(&store),
            opened_micros: store.now_micros(),
            sessions: SessionRegistry::default(),
            timer: Timer::default(),
            prepared,
            spill,
            role_quotas: Arc::default(),
            databases: Arc::default(),
            opening: Mutex::new(()),
            store,
        })
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the engines of all open databases, that of the default database first.
    pub fn engines(&self) -> Vec<Arc<Engine>> {
        self.databases.engines()
    }

    /// Closes the databases that have no session and no work to do.
    pub fn close_unused_databases(&self) {
        let _opening = self.opening.lock();
        self.databases.engines().iter().for_each(|engine| engine.drop_unseen(None));
        let unused = self.databases.close_unused(Engine::is_unused);
        unused.iter().for_each(|engine| engine.close());
    }

    /// Returns whether rows of a catalog table need an open engine: index builds and positions of
    /// followed indexes.
    pub(crate) fn has_work(&self, catalog_table: TableId) -> Result<bool> {
        let mut found = false;
        if self.store.table(catalog_table).is_some() {
            for prefix in [BUILDS_PREFIX, FOLLOWERS_PREFIX] {
                read_rows((&self.store, catalog_table), prefix, |_, _| {
                    found = true;
                    Ok(())
                })?;
            }
        }
        Ok(found)
    }
}

/// Engine of an open database.
pub struct Engine {
    cluster: Arc<Cluster>,
    /// Number of the database.
    pub(crate) database: u32,
    /// The store table of the catalog.
    pub(crate) catalog_table: TableId,
    catalog: ArcSwap<Catalog>,
    /// Coprocessors in the present observer chains, including changes of open transactions.
    attached: ArcSwap<CoprocessorsByTable>,
    /// Recently created indexes, and tables with recently rewritten rows.
    new_relations: RelationVisibility,
    /// Request quotas in force.
    pub(crate) quotas: Quotas,
    /// Allocator of hidden keys for tables without a primary key.
    pub(crate) row_ids: Arc<RowIds>,
    /// States of the sequences.
    pub(crate) sequences: SequenceStates,
    /// Advisory locks.
    pub(crate) advisory: Arc<AdvisoryLocks>,
    /// Notifications of LISTEN and NOTIFY.
    pub(crate) notifications: Arc<NotificationQueue>,
    /// Store tables to be dropped, each list with the first commit whose readers do not use them.
    unseen: Mutex<Vec<(Sequence, Vec<TableId>)>>,
    /// True if `unseen` has entries.
    has_unseen: AtomicBool,
    /// The running index builds.
    pub(crate) index_builds: Arc<IndexBuilds>,
    /// Followers of eventual indexes.
    pub(crate) followers: IndexFollowers,
    /// Version of the last catalog without an index to hand over.
    handed_over: AtomicU64,
}

impl Deref for Engine {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Engines of other databases refer to the cluster, which retains them.
        if self.database == DEFAULT_DATABASE {
            drop(self.cluster.databases.close_all());
        }
    }
}

impl Engine {
    /// Loads the catalog of a database. No coprocessors are attached yet.
    pub(crate) fn load(cluster: Arc<Cluster>, database: &DatabaseRecord) -> Result<Engine> {
        let (store, catalog_table) = (&cluster.store, database.catalog_table());
        create_catalog(store, catalog_table)?;
        let catalog = read_catalog((store, catalog_table), database.oid)?;
        let row_ids = Arc::new(RowIds::new(store, catalog_table));
        let sequences = SequenceStates::new(store, catalog_table);
        remove_orphan_rows((store, catalog_table), &catalog, &sequences, &row_ids)?;
        let engine = Engine {
            database: database.oid,
            catalog_table,
            advisory: Arc::new(AdvisoryLocks::new(Arc::clone(store), database.oid)),
            notifications: Arc::default(),
            row_ids,
            sequences,
            index_builds: Arc::default(),
            followers: IndexFollowers::new(catalog_table),
            handed_over: AtomicU64::new(0),
            catalog: ArcSwap::from_pointee(catalog),
            attached: ArcSwap::default(),
            new_relations: RelationVisibility::default(),
            quotas: Quotas::new(&cluster.role_quotas),
            unseen: Mutex::default(),
            has_unseen: AtomicBool::new(false),
            cluster,
        };
        let catalog = engine.catalog();
        // The server may have crashed between a commit and its changes of store descriptors.
        let tables = catalog.tables_by_age().map(|table| table.oid);
        engine.apply_descriptors(tables.filter_map(|table| catalog.record(table)))?;
        engine.quotas.apply(&engine.store, &engine.catalog())?;
        Ok(engine)
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Returns the record of the database; `None` once it was dropped.
    pub fn record(&self) -> Option<Arc<DatabaseRecord>> {
        self.catalog.load().database(self.database).cloned()
    }

    /// Returns whether a statement needs the database without sessions.
    pub fn is_claimed(&self) -> bool {
        self.databases.is_claimed(self.database)
    }

    /// Returns whether sessions can use the database: it was not dropped.
    pub(crate) fn is_open(&self) -> bool {
        self.database == DEFAULT_DATABASE || self.databases.get(self.database).is_some()
    }

    /// Returns whether nothing needs the engine, if no session does.
    fn is_unused(&self) -> bool {
        !self.followers.is_used()
            && !self.has_unseen.load(Ordering::Acquire)
            && self.due_builds().is_ok_and(|builds| builds.is_empty())
            && self.sessions.others_in(self.database, 0) == 0
    }

    /// Returns unused reserved values, and detaches the observers of the tables.
    fn close(&self) {
        if let Err(error) = self.sequences.return_reserved() {
            // The reserved values are skipped.
            tracing::warn!(%error, "could not return cached sequence values of a database");
        }
        for table in self.catalog().tables_by_age() {
            if let Err(error) = self.store.set_observers(table.id, Vec::new()) {
                tracing::warn!(%error, table = table.name, "could not detach observers");
            }
        }
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
        read_rows((&self.store, self.catalog_table), BUILDS_PREFIX, |_, value| {
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
        read_rows((&self.store, self.catalog_table), FOLLOWERS_PREFIX, |_, value| {
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

    /// Returns unused reserved values of sequences and object ids to the catalogs, before a clean
    /// shutdown.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn return_reserved(&self) -> Result<()> {
        self.object_ids.return_reserved()?;
        self.engines().iter().try_for_each(|engine| engine.sequences.return_reserved())
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
        self.publish_shared(&self.catalog(), &catalog);
        self.catalog.store(catalog);
    }

    /// Publishes changes of shared objects to the other open databases.
    fn publish_shared(&self, before: &Catalog, after: &Catalog) {
        let mut changed = after.difference(before);
        changed.retain(CatalogEntry::is_shared);
        if changed.is_empty() {
            return;
        }
        for other in self
            .databases
            .engines_to_publish()
            .iter()
            .filter(|other| other.database != self.database)
        {
            let catalog = Arc::new(other.catalog().with_entries(after, &changed));
            if let Err(error) = other.quotas.apply(&other.store, &catalog) {
                tracing::error!(%error, "could not set the quotas of tables");
            }
            other.catalog.store(catalog);
        }
        for entry in &changed {
            if let CatalogEntry::Object(ObjectId::Database(number)) = entry
                && after.object(entry).is_none()
            {
                self.databases.close(*number);
            }
        }
    }

    /// Takes the store tables that are still to be dropped.
    pub(crate) fn take_unseen(&self) -> Vec<TableId> {
        let unseen = std::mem::take(&mut *self.unseen.lock());
        unseen.into_iter().flat_map(|(_, tables)| tables).collect()
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
