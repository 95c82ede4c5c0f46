//! A store under a schedule, and its expected content by its history.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::bulk_load::{BulkCell, BulkLoad};
use store::cell::CellType;
use store::descriptor::{CompactionOptions, CompactionPolicy, Durability, LeveledOptions};
use store::env::fault::{Fault, FaultEnv, Unsynced};
use store::store::SplitPoint;
use store::transaction::TransactionOptions;
use store::wal::DurableTicket;
use store::{
    CellBatch, Error, FamilyDescriptor, Get, Mutation, Options, Scan, Store, TableDescriptor,
    TableId, Transaction,
};

use crate::cases::columnar_family;
use crate::cases::schedules::plan::{End, Plan, ROWS, SLOTS, Settings, Step, WaitingStep, Write};

const DIRECTORY: &str = "/data";

/// Values by table, row and family.
type Values = BTreeMap<(TableId, u8, u8), String>;
/// Changes of a commit; `None` is a delete.
type Effects = Vec<((TableId, u8, u8), Option<String>)>;

/// Known outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnownOutcome {
    No,
    Maybe,
    Yes,
}

struct Table {
    id: TableId,
    slot: u8,
    created: KnownOutcome,
    dropped: KnownOutcome,
    /// Index of the first commit after a drop that failed.
    doubtful_from: usize,
    families: u8,
    regions: u8,
    replicas: u8,
}

/// The store, its disk, its history.
pub(super) struct ScheduleRun {
    settings: Settings,
    env: FaultEnv,
    store: Option<Arc<Store>>,
    tables: Vec<Table>,
    next_table: u32,
    /// All commits that may be on disk, in order.
    history: Vec<Effects>,
    /// Number of them that must be on disk.
    acknowledged: usize,
    /// Failed bulk loads after all of them: one may be on disk until the next commit.
    doubtful_loads: Vec<Effects>,
    /// Tickets that were not waited for yet, with the commits that they acknowledge.
    tickets: Vec<(usize, DurableTicket)>,
    /// True if this process has met an injected failure.
    disturbed: bool,
    /// True if a bit was flipped in a file.
    flipped: bool,
    next_value: u32,
    /// Checkpoints of this process: directory, content, and outcome.
    checkpoints: Vec<(PathBuf, Values, KnownOutcome)>,
    next_checkpoint: u32,
}

impl ScheduleRun {
    pub(super) fn new(plan: &Plan) -> ScheduleRun {
        let mut world = ScheduleRun {
            settings: plan.settings.clone(),
            env: FaultEnv::new(plan.seed),
            store: None,
            tables: Vec::new(),
            next_table: 1,
            history: Vec::new(),
            acknowledged: 0,
            doubtful_loads: Vec::new(),
            tickets: Vec::new(),
            disturbed: false,
            flipped: false,
            next_value: 0,
            checkpoints: Vec::new(),
            next_checkpoint: 0,
        };
        world.store = Some(world.open(Path::new(DIRECTORY)).unwrap());
        world
    }

    fn open(&self, directory: &Path) -> Result<Arc<Store>, Error> {
        let options = Options {
            env: Arc::new(self.env.clone()),
            memory_bytes: 4 << 20,
            wal_segment_bytes: self.settings.wal_segment_bytes,
            memstore_flush_bytes: self.settings.memstore_flush_bytes,
            staged_bytes_max: self.settings.staged_bytes_max,
            region_threads: 1,
            wal_archive: self.settings.archive.then(|| PathBuf::from("/archive")),
            ..Options::default()
        };
        Store::open(directory, options)
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    /// Runs a step; returns whether the schedule continues.
    pub(super) fn run(&mut self, step: &Step) -> Result<bool, String> {
        match step {
            Step::Commit { writes, waiting } => self.commit(writes, *waiting)?,
            Step::Wait => self.wait(),
            Step::Read => self.read()?,
            Step::Flush { slot } => {
                self.on_table(*slot, |store, table| store.flush_table(table).map(drop))?;
            }
            Step::FlushSoon { slot } => self.on_table(*slot, Store::flush)?,
            Step::Compact { slot, major } => {
                self.on_table(*slot, |store, table| store.compact(table, *major))?;
            }
            Step::BulkLoad { slot, rows } => self.bulk_load(*slot, rows)?,
            Step::Create { slot, regions, replicas } => self.create(*slot, *regions, *replicas)?,
            Step::Drop { slot } => self.drop_table(*slot)?,
            Step::Alter { slot } => self.alter(*slot)?,
            Step::Split { slot, row } => self.split(*slot, *row)?,
            Step::Merge { slot, row } => self.merge(*slot, *row)?,
            Step::Checkpoint => self.checkpoint()?,
            Step::Inject(fault) => self.disturb(|env| env.inject(*fault)),
            Step::LeaveRoom(bytes) => self.disturb(|env| env.leave_room(*bytes)),
            Step::FailAfter(count) => self.disturb(|env| env.fail_after(*count)),
            Step::Calm => self.env.calm(),
            Step::Restart { end, fault } => self.restart(*end, *fault)?,
            Step::Flip { file, bit } => {
                self.flip(*file, *bit)?;
                return Ok(false);
            }
            Step::Impossible => return Err("an impossible step".to_owned()),
        }
        Ok(true)
    }

    /// Ends a schedule: the present content must exist after one more restart.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.restart(End::Crash(Unsynced::Lost), None)
    }

    fn disturb(&mut self, change: impl FnOnce(&FaultEnv)) {
        self.disturbed = true;
        change(&self.env);
    }

    /// Checks an outcome: only a disturbed process may fail, and only with errors of injected
    /// failures.
    fn accept<T>(&self, outcome: Result<T, Error>, what: &str) -> Result<Option<T>, String> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Error::Io { .. } | Error::LogFailed { .. }) if self.disturbed => Ok(None),
            Err(Error::Corrupt { .. }) if self.flipped => Ok(None),
            Err(error) => Err(format!("{what}: {error}")),
        }
    }

    /// Returns the table in a slot that the process knows.
    fn table_of(&self, slot: u8) -> Option<&Table> {
        self.tables.iter().find(|table| {
            table.slot == slot
                && table.created == KnownOutcome::Yes
                && table.dropped != KnownOutcome::Yes
        })
    }

    fn on_table(
        &mut self,
        slot: u8,
        run: impl FnOnce(&Store, TableId) -> Result<(), Error>,
    ) -> Result<(), String> {
        let Some(table) = self.table_of(slot) else { return Ok(()) };
        let outcome = run(self.store(), table.id);
        self.accept(outcome, "a flush or a compaction").map(drop)
    }

    fn commit(&mut self, writes: &[Write], waiting: WaitingStep) -> Result<(), String> {
        let mut effects = Effects::new();
        let mut batches: BTreeMap<TableId, Vec<Mutation>> = BTreeMap::new();
        for write in writes {
            let Some(table) = self.table_of(write.slot()) else { continue };
            let (table, families) = (table.id, table.families);
            let batch = batches.entry(table).or_default();
            batch.push(match write {
                Write::Put { row, family, bytes, .. } => {
                    self.next_value += 1;
                    let value = format!("{}{}", self.next_value, ".".repeat(usize::from(*bytes)));
                    let family = family % families;
                    effects.push(((table, *row, family), Some(value.clone())));
                    Mutation::new(row_key(*row)).put(family, "q", value.into_bytes())
                }
                Write::DeleteRow { row, .. } => {
                    effects.extend((0..families).map(|family| ((table, *row, family), None)));
                    Mutation::new(row_key(*row)).delete_row()
                }
            });
        }
        if batches.is_empty() {
            return Ok(());
        }
        let durability = (waiting == WaitingStep::Asynchronous).then_some(Durability::AsyncWal);
        let options = TransactionOptions { durability, ..TransactionOptions::default() };
        let transaction = self.store().begin(options);
        transaction.begin_statement();
        for (table, batch) in batches {
            let staged = transaction.mutate(table, batch);
            if self.accept(staged, "staging")?.is_none() {
                return Ok(());
            }
        }
        let Some(commit) = self.accept(transaction.commit(), "a commit")? else {
            if self.settings.staged_bytes_max.is_some() {
                // It is adopted as a load is.
                self.doubtful_loads.push(effects);
            }
            return Ok(());
        };
        drop(transaction);
        self.doubtful_loads.clear();
        self.history.push(effects);
        if waiting != WaitingStep::Asynchronous {
            self.tickets.push((self.history.len(), commit.durable));
        }
        if waiting == WaitingStep::Durable {
            self.wait();
        }
        Ok(())
    }

    /// A load is a commit; it is durable when it was adopted.
    fn bulk_load(&mut self, slot: u8, rows: &[u8]) -> Result<(), String> {
        let Some(table) = self.table_of(slot).map(|table| table.id) else { return Ok(()) };
        if rows.is_empty() {
            return Ok(());
        }
        let mut effects = Effects::new();
        for row in rows {
            self.next_value += 1;
            effects.push(((table, *row, 0), Some(format!("{} loaded", self.next_value))));
        }
        let written = load(self.store(), table, &effects);
        let Some(load) = self.accept(written, "writing a bulk load")? else { return Ok(()) };
        let adopted = load.adopt();
        if self.accept(adopted, "a bulk load")?.is_none() {
            self.doubtful_loads.push(effects);
            return Ok(());
        }
        self.doubtful_loads.clear();
        self.history.push(effects);
        self.acknowledged = self.history.len();
        Ok(())
    }

    fn wait(&mut self) {
        for (commits, ticket) in std::mem::take(&mut self.tickets) {
            if ticket.wait().is_ok() {
                self.acknowledged = self.acknowledged.max(commits);
                let written = &self.history[commits - 1];
                for table in self.tables.iter_mut().filter(|table| table.doubtful_from < commits) {
                    // It took an acknowledged commit after its drop had failed: it is not
                    // dropped.
                    if written.iter().any(|((id, ..), _)| *id == table.id) {
                        table.dropped = KnownOutcome::No;
                    }
                }
            }
        }
    }

    fn descriptor(table: &Table) -> TableDescriptor {
        let points = [row_key(ROWS / 3), row_key(ROWS * 2 / 3)];
        let points = &points[..usize::from(table.regions) - 1];
        TableDescriptor {
            region_replication: table.replicas,
            split_points: points.iter().map(|point| point.as_bytes().to_vec()).collect(),
            ..TableDescriptor::new(
                table.id,
                format!("t{}", table.id.0),
                (0..table.families).map(|n| family(table.slot, n)).collect(),
            )
        }
    }

    fn create(&mut self, slot: u8, regions: u8, replicas: u8) -> Result<(), String> {
        if self.table_of(slot).is_some() {
            return Ok(());
        }
        let id = TableId(self.next_table);
        self.next_table += 1;
        let (created, dropped) = (KnownOutcome::Maybe, KnownOutcome::No);
        let (doubtful_from, families) = (usize::MAX, 1);
        let mut table =
            Table { id, slot, created, dropped, doubtful_from, families, regions, replicas };
        let created = self.store().create_table(ScheduleRun::descriptor(&table));
        if self.accept(created, "creating a table")?.is_some() {
            table.created = KnownOutcome::Yes;
        }
        self.tables.push(table);
        Ok(())
    }

    fn drop_table(&mut self, slot: u8) -> Result<(), String> {
        // So that the DDL is not ahead of commits that may still be lost.
        self.wait();
        let Some(id) = self.table_of(slot).map(|table| table.id) else { return Ok(()) };
        let dropped = self.store().drop_table(id);
        let fate = match self.accept(dropped, "dropping a table")? {
            Some(()) => KnownOutcome::Yes,
            None => KnownOutcome::Maybe,
        };
        let doubtful_from = self.history.len();
        let table = self.table(id);
        table.dropped = fate;
        table.doubtful_from = doubtful_from;
        Ok(())
    }

    fn alter(&mut self, slot: u8) -> Result<(), String> {
        let Some(table) = self.table_of(slot).filter(|table| table.families == 1) else {
            return Ok(());
        };
        let id = table.id;
        let mut descriptor = ScheduleRun::descriptor(table);
        descriptor.families.push(family(slot, 1));
        let altered = self.store().alter_table(descriptor);
        if self.accept(altered, "altering a table")?.is_some() {
            self.table(id).families = 2;
        }
        Ok(())
    }

    fn split(&mut self, slot: u8, row: u8) -> Result<(), String> {
        let row = row_key(row).into_bytes();
        self.on_table(slot, |store, table| {
            let begins = store.regions(table)?.iter().any(|region| region.start == row);
            match begins {
                true => Ok(()),
                false => store.split_region(table, SplitPoint::At(row)).map(drop),
            }
        })
    }

    fn merge(&mut self, slot: u8, row: u8) -> Result<(), String> {
        let row = row_key(row).into_bytes();
        self.on_table(slot, |store, table| {
            let regions = store.regions(table)?;
            let first = regions.partition_point(|region| region.start <= row) - 1;
            match regions.get(first..first + 2) {
                Some([a, b]) => store.merge_regions(table, &[a.region, b.region]).map(drop),
                _ => Ok(()),
            }
        })
    }

    /// A checkpoint has all applied commits, acknowledged or not.
    fn checkpoint(&mut self) -> Result<(), String> {
        let directory = PathBuf::from(format!("/copies/{}", self.next_checkpoint));
        self.next_checkpoint += 1;
        let known: Vec<TableId> = self.known_tables().collect();
        let mut values = Values::new();
        for effects in &self.history {
            apply(effects, |table| known.contains(&table), &mut values);
        }
        let made = self.store().checkpoint(&directory);
        let fate = match self.accept(made, "a checkpoint")? {
            Some(_) => KnownOutcome::Yes,
            None => KnownOutcome::Maybe,
        };
        self.checkpoints.push((directory, values, fate));
        Ok(())
    }

    /// Opens the existing checkpoints of the last process.
    fn check_checkpoints(&mut self) -> Result<(), String> {
        for (directory, values, fate) in std::mem::take(&mut self.checkpoints) {
            let is_there = self.env.paths().iter().any(|path| path.starts_with(&directory));
            if !is_there && fate == KnownOutcome::Maybe {
                continue;
            }
            let name = directory.display();
            let opened =
                self.open(&directory).map_err(|error| format!("opening {name}: {error}"))?;
            let tables: Vec<TableId> = opened.tables().iter().map(|table| table.id).collect();
            let found =
                read_tables(&opened, &tables).map_err(|error| format!("{name}: {error}"))?;
            if found != values {
                return Err(format!("{name} holds {found:?}\nnot {values:?}"));
            }
        }
        Ok(())
    }

    fn known_tables(&self) -> impl Iterator<Item = TableId> {
        let known = |t: &&Table| t.created == KnownOutcome::Yes && t.dropped != KnownOutcome::Yes;
        self.tables.iter().filter(known).map(|table| table.id)
    }

    fn table(&mut self, id: TableId) -> &mut Table {
        self.tables.iter_mut().find(|table| table.id == id).unwrap()
    }

    fn restart(&mut self, end: End, fault: Option<Fault>) -> Result<(), String> {
        if end == End::Clean {
            self.tickets.clear();
            self.store = None;
            if !self.disturbed {
                // All commits were passed to the log, and the log is synced at the end.
                self.acknowledged = self.history.len();
            }
        }
        let unsynced = match end {
            End::Clean => Unsynced::Lost,
            End::Crash(unsynced) => unsynced,
        };
        let next = self.env.after_crash(unsynced);
        self.tickets.clear();
        self.store = None;
        self.env = next;
        self.disturbed = false;
        self.check_checkpoints()?;
        self.disturbed = fault.is_some();
        if let Some(fault) = fault {
            self.env.inject(fault);
        }
        let opened = self.open(Path::new(DIRECTORY));
        if let Some(store) = self.accept(opened, "opening")? {
            self.store = Some(store);
        } else {
            // The opening failed half-way: once more, after one more crash.
            self.env = self.env.after_crash(unsynced);
            self.store = Some(
                self.open(Path::new(DIRECTORY))
                    .map_err(|error| format!("opening again: {error}"))?,
            );
        }
        self.env.calm();
        self.check_tables()?;
        self.check()?;
        self.disturbed = false;
        Ok(())
    }

    /// Compares the tables with the expected ones, and resolves unknown outcomes.
    fn check_tables(&mut self) -> Result<(), String> {
        let found = self.store().tables();
        for table in &mut self.tables {
            let there = found.iter().find(|descriptor| descriptor.id == table.id);
            let possible = match there {
                Some(_) => table.created != KnownOutcome::No && table.dropped != KnownOutcome::Yes,
                None => table.created != KnownOutcome::Yes || table.dropped != KnownOutcome::No,
            };
            if !possible {
                let (created, dropped) = (table.created, table.dropped);
                let is = if there.is_some() { "there" } else { "not there" };
                let id = table.id.0;
                return Err(format!(
                    "table {id} is {is}; created: {created:?}, dropped: {dropped:?}"
                ));
            }
            table.created = if there.is_some() { KnownOutcome::Yes } else { KnownOutcome::No };
            table.dropped = KnownOutcome::No;
            table.doubtful_from = usize::MAX;
            if let Some(descriptor) = there {
                let families = descriptor.families.len() as u8;
                if families < table.families {
                    return Err(format!("table {} has lost a family", table.id.0));
                }
                table.families = families;
            }
        }
        // One slot may have two tables, if the creation of the first one had failed: one
        // suffices.
        for slot in 0..SLOTS {
            while self
                .tables
                .iter()
                .filter(|t| t.slot == slot && t.created == KnownOutcome::Yes)
                .count()
                > 1
            {
                let extra = self.table_of(slot).map(|table| table.id).unwrap();
                self.store().drop_table(extra).map_err(|error| error.to_string())?;
                self.table(extra).dropped = KnownOutcome::Yes;
                self.table(extra).created = KnownOutcome::No;
            }
        }
        self.tables.retain(|table| table.created == KnownOutcome::Yes);
        Ok(())
    }

    /// Reads all rows and determines the prefix of history; later commits never happened.
    fn check(&mut self) -> Result<(), String> {
        let doubtful = std::mem::take(&mut self.doubtful_loads);
        let Some(found) = self.read_all()? else { return Ok(()) };
        let known = self.prefix(&found);
        let with = |world: &mut ScheduleRun, load: Effects| {
            world.history.push(load);
            let commits = world.history.len();
            // It was on disk, and all before it.
            let acknowledged = std::mem::replace(&mut world.acknowledged, commits);
            let found = world.prefix(&found);
            if found.is_err() {
                world.history.pop();
                world.acknowledged = acknowledged;
            }
            found.ok()
        };
        let commits = match known {
            Ok(commits) => commits,
            Err(why) => doubtful.into_iter().find_map(|load| with(self, load)).ok_or(why)?,
        };
        self.history.truncate(commits);
        self.acknowledged = commits;
        Ok(())
    }

    fn read(&mut self) -> Result<(), String> {
        let Some(found) = self.read_all()? else { return Ok(()) };
        self.prefix(&found).map(drop)
    }

    /// Returns the number of commits that produce the values.
    fn prefix(&self, found: &Values) -> Result<usize, String> {
        let known: Vec<TableId> = self.known_tables().collect();
        let mut values = Values::new();
        let at_least = if self.flipped { 0 } else { self.acknowledged };
        let mut closest = None;
        for commits in 0..=self.history.len() {
            if commits > 0 {
                let effects = &self.history[commits - 1];
                apply(effects, |table| known.contains(&table), &mut values);
            }
            if commits == at_least {
                closest = Some(values.clone());
            }
            if commits >= at_least && values == *found {
                return Ok(commits);
            }
        }
        let length = self.history.len();
        Err(format!("not a prefix of {length} commits from {at_least}: {found:?}\nnot {closest:?}"))
    }

    /// Reads all tables; `None` if an injected failure prevents that.
    fn read_all(&self) -> Result<Option<Values>, String> {
        let tables: Vec<TableId> = self.known_tables().collect();
        self.accept(read_tables(self.store(), &tables), "a read")
    }

    /// Flips a bit while no process runs. Reads then return correct results, or an error of the
    /// damage; the end of the log looks torn, so that less of history may remain.
    fn flip(&mut self, file: u64, bit: u64) -> Result<(), String> {
        self.wait();
        self.tickets.clear();
        self.store = None;
        self.env = self.env.after_crash(Unsynced::Kept);
        let mut paths = self.env.paths();
        paths.retain(|path| path.starts_with("/data/regions") || path.starts_with("/data/wal"));
        if paths.is_empty() {
            return Ok(());
        }
        let path = paths.swap_remove(file as usize % paths.len());
        let bits = self.env.bytes(&path).unwrap_or_default().len() * 8;
        if bits == 0 {
            return Ok(());
        }
        self.env.flip(&path, (bit % bits as u64) as usize);
        self.flipped = true;
        let opened = self.open(Path::new(DIRECTORY));
        let Some(store) = self.accept(opened, "opening a damaged store")? else { return Ok(()) };
        self.store = Some(store);
        self.read()?;
        for slot in 0..SLOTS {
            self.on_table(slot, |store, table| store.compact(table, true))?;
        }
        self.read()
    }
}

/// Returns the descriptor of a family: it depends on the slot.
fn family(slot: u8, number: u8) -> FamilyDescriptor {
    let name = format!("f{number}");
    let small = LeveledOptions { level0_files: 2, base_bytes: 4000, multiplier: 2 };
    match slot {
        1 => FamilyDescriptor { name, ..columnar_family() },
        2 => FamilyDescriptor {
            compaction: CompactionOptions {
                file_bytes: 1000,
                ..CompactionOptions::of(CompactionPolicy::Leveled(small))
            },
            ..FamilyDescriptor::new(name)
        },
        _ => FamilyDescriptor::new(name),
    }
}

/// Writes the puts of a bulk load.
fn load(store: &Arc<Store>, table: TableId, effects: &Effects) -> Result<BulkLoad, Error> {
    let mut load = store.bulk_load(table)?;
    for ((_, row, family), value) in effects {
        load.add(BulkCell {
            row: row_key(*row).as_bytes(),
            family: *family,
            qualifier: b"q",
            timestamp: None,
            cell_type: CellType::Put,
            value: value.as_deref().unwrap_or_default().as_bytes(),
        })?;
    }
    Ok(load)
}

fn apply(effects: &Effects, is_known: impl Fn(TableId) -> bool, values: &mut Values) {
    for (place, value) in effects {
        match value {
            Some(value) if is_known(place.0) => values.insert(*place, value.clone()),
            _ => values.remove(place),
        };
    }
}

/// Reads tables by scans and by gets, which must agree.
fn read_tables(store: &Arc<Store>, tables: &[TableId]) -> Result<Values, Error> {
    let transaction = store.begin(TransactionOptions::default());
    transaction.begin_statement();
    let mut scanned = Values::new();
    let mut got = Values::new();
    for &table in tables {
        scan(&transaction, table, &mut scanned)?;
        for row in 0..ROWS {
            get(&transaction, table, row, &mut got)?;
        }
    }
    assert_eq!(scanned, got, "scans and gets differ");
    Ok(scanned)
}

fn row_key(row: u8) -> String {
    format!("r{row:02}")
}

fn scan(transaction: &Transaction, table: TableId, values: &mut Values) -> Result<(), Error> {
    let mut scanner = transaction.scan(table, Scan::all())?;
    let mut batch = CellBatch::new();
    while scanner.next_batch(5, &mut batch)? {
        collect(table, &batch, values);
    }
    Ok(())
}

fn get(
    transaction: &Transaction,
    table: TableId,
    row: u8,
    values: &mut Values,
) -> Result<(), Error> {
    let mut batch = CellBatch::new();
    transaction.get(table, &Get::new(row_key(row)), &mut batch)?;
    collect(table, &batch, values);
    Ok(())
}

fn collect(table: TableId, batch: &CellBatch, values: &mut Values) {
    for cell in batch.rows().flat_map(|row| row.cells()) {
        let row = std::str::from_utf8(&cell.row[1..]).unwrap().parse().unwrap();
        let value = String::from_utf8(cell.value.to_vec()).unwrap();
        values.insert((table, row, cell.family), value);
    }
}
