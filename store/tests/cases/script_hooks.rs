//! Script commands with observers that trace all hooks, and execute configured actions in some.
//!
//! ```text
//! watch TABLE NAME [priority=] [hooks=a,b] [essential] [veto=HOOK] [fail=HOOK] [panic=HOOK]
//!         [slow=HOOK] [bypass=HOOK] [hide=ROW] [drop=VALUE] [change=OLD/NEW]
//!         [spoils=VALUE]
//! watch-wal NAME …      watch-master NAME …      unwatch TABLE
//! trace                 the calls since the last trace
//! coprocessors          statistics of all
//! resume TABLE NAME
//! limits failures=      reopens the store with another limit, without observers
//! calm NAME             removes all actions; only traces from now on
//! scan-once TABLE [batch=ROWS] [limit=ROWS]
//! bulk-load TABLE FAMILY:QUALIFIER ROW/VALUE …
//! split TABLE ROW       merge TABLE
//! alter TABLE versions= checkpoint DIRECTORY
//! ```
//!
//! A name in `slow` takes six seconds by the simulated clock; the limit is five.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use store::bulk_load::BulkCell;
use store::cell::CellType;
use store::env::Env;
use store::env::fault::FaultEnv;
use store::error::Veto;
use store::observer::{
    BatchOutcome, BulkLoadRef, CellFilter, CellVerdict, CoprocessorLimits, CoprocessorScope,
    CoprocessorState, Flow, Hook, HookContext, Hooks, MasterObserver, ObserverContext,
    RegionObserver, RegionRef, Rewrite, RewriteKind, Rewritten, StoreFileRef, TableContext,
    WalCommit, WalObserver, WalRoll,
};
use store::store::SplitPoint;
use store::wal::CommitClock;
use store::{
    CellBatch, ColumnName, Condition, Error, Get, Mutation, Result, RowMutation, Scan,
    TableDescriptor, TableId, Transaction, row_mutation::WrittenValue,
};

use crate::{Answer, Attached, ScriptRun, Words, shown};

/// The tracing observers of a script.
#[derive(Default)]
pub(crate) struct Watchers {
    tables: BTreeMap<TableId, Vec<Attached>>,
    wal: Vec<(i32, Arc<dyn WalObserver>)>,
    master: Vec<(i32, Arc<dyn MasterObserver>)>,
    tracers: BTreeMap<String, Arc<Tracer>>,
    failures_max: Option<u32>,
}

impl Watchers {
    /// Returns the number of consecutive failures after which a coprocessor is suspended.
    pub(crate) fn failures_max(&self) -> u32 {
        self.failures_max.unwrap_or(CoprocessorLimits::default().failures_max)
    }
}

/// Action of a tracer in a hook.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Veto,
    Fail,
    Panic,
    Slow,
    Bypass,
}

const DEEDS: [(&str, Deed); 5] = [
    ("veto", Deed::Veto),
    ("fail", Deed::Fail),
    ("panic", Deed::Panic),
    ("slow", Deed::Slow),
    ("bypass", Deed::Bypass),
];

/// Observer that traces all hooks.
struct Tracer {
    name: String,
    hooks: Hooks,
    essential: bool,
    trace: Arc<Mutex<Vec<String>>>,
    env: FaultEnv,
    deeds: Mutex<BTreeMap<String, Deed>>,
    /// Hides this row from readers.
    hide: Option<String>,
    /// Action of its filters.
    drop: Option<String>,
    change: Option<(String, String)>,
    spoils: Option<String>,
}

struct TracerFilter {
    drop: Option<String>,
    change: Option<(String, String)>,
    /// Fails at this value.
    spoils: Option<String>,
    fault: Option<Deed>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn range(region: RegionRef<'_>) -> String {
    let start = if region.start.is_empty() { "start".to_owned() } else { text(region.start) };
    format!("{start}..{}", region.stop.map_or("end".to_owned(), text))
}

fn rows(batch: &[Mutation]) -> String {
    batch.iter().map(|mutation| text(&mutation.row)).collect::<Vec<_>>().join(",")
}

fn keys(batch: &CellBatch) -> String {
    let keys: Vec<String> = batch.rows().map(|row| text(row.key())).collect();
    if keys.is_empty() { "nothing".into() } else { keys.join(",") }
}

fn written(written: &[WrittenValue]) -> String {
    let shown = |written: &WrittenValue| crate::cases::script_writes::shown_value(&written.value);
    written.iter().map(shown).collect::<Vec<_>>().join(",")
}

impl Tracer {
    /// Traces a call and executes its action; returns whether to bypass.
    fn on(&self, hook: Hook, what: impl std::fmt::Display) -> Result<bool> {
        let name = hook.name();
        self.trace.lock().push(format!("{}: {name} {what}", self.name).trim_end().to_owned());
        let deed = self.deeds.lock().get(name).copied();
        match deed {
            None => Ok(false),
            Some(Deed::Bypass) => Ok(true),
            Some(Deed::Veto) => Err(Error::Vetoed(Box::new(Veto {
                code: "P0001".into(),
                message: format!("no {name} here"),
                ..Veto::default()
            }))),
            Some(Deed::Fail) => Err(Error::InvalidRequest("this cannot be".into())),
            Some(Deed::Panic) => panic!("told to"),
            Some(Deed::Slow) => {
                self.env.set_now(self.env.now_micros() + 6_000_000);
                Ok(false)
            }
        }
    }

    fn flow<T>(&self, hook: Hook, what: impl std::fmt::Display, answer: T) -> Result<Flow<T>> {
        Ok(if self.on(hook, what)? { Flow::Bypass(answer) } else { Flow::Proceed })
    }

    fn filter(&self) -> Option<Box<dyn CellFilter>> {
        let fault = self.deeds.lock().get("filter").copied();
        let filter = TracerFilter {
            drop: self.drop.clone(),
            change: self.change.clone(),
            spoils: self.spoils.clone(),
            fault,
        };
        let wanted = filter.spoils.is_some()
            || filter.drop.is_some()
            || filter.change.is_some()
            || fault.is_some();
        wanted.then(|| Box::new(filter) as Box<dyn CellFilter>)
    }

    fn shows(&self, row: &[u8]) -> bool {
        self.hide.as_ref().is_none_or(|hidden| hidden.as_bytes() != row)
    }
}

impl CellFilter for TracerFilter {
    fn judge(&mut self, cell: &store::cell::CellRef<'_>) -> Result<CellVerdict> {
        match self.fault {
            Some(Deed::Panic) => panic!("told to"),
            Some(_) => return Err(Error::InvalidRequest("this cannot be".into())),
            None => {}
        }
        let value = text(cell.value);
        if self.spoils.as_ref() == Some(&value) {
            return Err(Error::InvalidRequest("this cannot be".into()));
        }
        if self.drop.as_ref() == Some(&value) {
            return Ok(CellVerdict::Drop);
        }
        match &self.change {
            Some((old, new)) if *old == value => Ok(CellVerdict::Change(new.clone().into())),
            _ => Ok(CellVerdict::Keep),
        }
    }
}

impl RegionObserver for Tracer {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn is_essential(&self) -> bool {
        self.essential
    }

    fn pre_open(&self, _: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        self.on(Hook::PreOpen, range(region)).map(drop)
    }

    fn post_open(&self, _: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        self.on(Hook::PostOpen, range(region)).map(drop)
    }

    fn pre_close(&self, _: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        self.on(Hook::PreClose, range(region)).map(drop)
    }

    fn post_close(&self, _: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        self.on(Hook::PostClose, range(region)).map(drop)
    }

    fn pre_flush(&self, _: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        self.on(Hook::PreFlush, range(region)).map(drop)
    }

    fn pre_flush_store(
        &self,
        _: &TableContext<'_>,
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        let what = format!("{} family {}", range(rewrite.region), rewrite.family);
        self.on(Hook::PreFlushStore, what)?;
        Ok(self.filter())
    }

    fn post_flush(
        &self,
        _: &TableContext<'_>,
        region: RegionRef<'_>,
        done: &Rewritten,
    ) -> Result<()> {
        let what = format!("{} {} of {}", range(region), done.cells_out, done.cells_in);
        self.on(Hook::PostFlush, what).map(drop)
    }

    fn pre_compact(
        &self,
        _: &TableContext<'_>,
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        let what = format!(
            "{} family {} {:?} of {} files",
            range(rewrite.region),
            rewrite.family,
            rewrite.kind,
            rewrite.inputs.len()
        );
        self.on(Hook::PreCompact, what)?;
        Ok(self.filter())
    }

    fn post_compact(
        &self,
        _: &TableContext<'_>,
        rewrite: &Rewrite<'_>,
        done: &Rewritten,
    ) -> Result<()> {
        let what = format!("{} {} of {}", range(rewrite.region), done.cells_out, done.cells_in);
        self.on(Hook::PostCompact, what).map(drop)
    }

    fn pre_commit_store_file(&self, _: &TableContext<'_>, file: &StoreFileRef<'_>) -> Result<()> {
        let what = format!("{} {:?} {}", range(file.region), file.origin, file.file.0);
        self.on(Hook::PreCommitStoreFile, what).map(drop)
    }

    fn post_commit_store_file(&self, _: &TableContext<'_>, file: &StoreFileRef<'_>) -> Result<()> {
        let what = format!("{} {:?} {}", range(file.region), file.origin, file.file.0);
        self.on(Hook::PostCommitStoreFile, what).map(drop)
    }

    fn pre_bulk_load(&self, _: &TableContext<'_>, load: &BulkLoadRef<'_>) -> Result<()> {
        let what = format!("{} cells for {} regions", load.cell_count, load.regions.len());
        self.on(Hook::PreBulkLoad, what).map(drop)
    }

    fn post_bulk_load(&self, _: &TableContext<'_>, load: &BulkLoadRef<'_>) -> Result<()> {
        self.on(Hook::PostBulkLoad, format!("{} files", load.file_count)).map(drop)
    }

    fn pre_get(&self, _: &TableContext<'_>, get: &mut Get, row: &mut CellBatch) -> Result<Flow> {
        let flow = self.flow(Hook::PreGet, text(&get.row), ())?;
        if flow != Flow::Proceed {
            row.start_row(&get.row);
            row.push(store::cell::CellRef {
                row: &get.row,
                family: 0,
                qualifier: b"q",
                timestamp: store::Timestamp(1),
                sequence: store::Sequence(0),
                cell_type: CellType::Put,
                value: b"made up",
                ttl: None,
            });
        }
        Ok(flow)
    }

    fn post_get(&self, _: &TableContext<'_>, get: &Get, row: &mut CellBatch) -> Result<()> {
        self.on(Hook::PostGet, format!("{} {} cells", text(&get.row), row.cell_count()))?;
        row.retain_rows(|row| self.shows(row.key()));
        Ok(())
    }

    fn pre_exists(&self, _: &TableContext<'_>, get: &mut Get) -> Result<Flow<bool>> {
        self.flow(Hook::PreExists, text(&get.row), true)
    }

    fn post_exists(&self, _: &TableContext<'_>, get: &Get, exists: &mut bool) -> Result<()> {
        self.on(Hook::PostExists, format!("{} {exists}", text(&get.row)))?;
        *exists &= self.shows(&get.row);
        Ok(())
    }

    fn pre_scanner_open(&self, _: &TableContext<'_>, scan: &mut Scan) -> Result<()> {
        self.on(Hook::PreScannerOpen, format!("limit {:?}", scan.limit)).map(drop)
    }

    fn post_scanner_open(&self, _: &TableContext<'_>, _: &Scan) -> Result<()> {
        self.on(Hook::PostScannerOpen, "").map(drop)
    }

    fn pre_scanner_next(&self, _: &TableContext<'_>, _: &Scan, _: &mut CellBatch) -> Result<Flow> {
        self.flow(Hook::PreScannerNext, "", ())
    }

    fn post_scanner_next(
        &self,
        _: &TableContext<'_>,
        _: &Scan,
        rows: &mut CellBatch,
    ) -> Result<()> {
        self.on(Hook::PostScannerNext, keys(rows))?;
        rows.retain_rows(|row| self.shows(row.key()));
        Ok(())
    }

    fn post_scanner_close(&self, _: &TableContext<'_>, _: &Scan) -> Result<()> {
        self.on(Hook::PostScannerClose, "").map(drop)
    }

    fn pre_put(&self, _: &dyn ObserverContext, mutation: &mut Mutation) -> Result<Flow> {
        self.flow(Hook::PrePut, text(&mutation.row), ())
    }

    fn pre_delete(&self, _: &dyn ObserverContext, mutation: &mut Mutation) -> Result<Flow> {
        self.flow(Hook::PreDelete, text(&mutation.row), ())
    }

    fn pre_batch(&self, _: &dyn ObserverContext, batch: &mut [Mutation]) -> Result<()> {
        self.on(Hook::PreBatch, rows(batch)).map(drop)
    }

    fn post_batch(&self, _: &TableContext<'_>, batch: &[Mutation]) -> Result<()> {
        self.on(Hook::PostBatch, rows(batch)).map(drop)
    }

    fn post_put(&self, _: &TableContext<'_>, mutation: &Mutation) -> Result<()> {
        self.on(Hook::PostPut, text(&mutation.row)).map(drop)
    }

    fn post_delete(&self, _: &TableContext<'_>, mutation: &Mutation) -> Result<()> {
        self.on(Hook::PostDelete, text(&mutation.row)).map(drop)
    }

    fn post_batch_indispensably(
        &self,
        _: &TableContext<'_>,
        batch: &[Mutation],
        fate: BatchOutcome,
    ) -> Result<()> {
        let what = format!("{} {fate:?}", rows(batch));
        self.on(Hook::PostBatchIndispensably, what).map(drop)
    }

    fn pre_increment(
        &self,
        _: &dyn ObserverContext,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Vec<WrittenValue>>> {
        let column = ColumnName::new(0, "q");
        let answer = vec![WrittenValue { column, value: 7i64.to_be_bytes().to_vec() }];
        self.flow(Hook::PreIncrement, text(&mutation.row), answer)
    }

    fn post_increment(
        &self,
        _: &dyn ObserverContext,
        mutation: &RowMutation,
        result: &mut Vec<WrittenValue>,
    ) -> Result<()> {
        let what = format!("{} {}", text(&mutation.row), written(result));
        self.on(Hook::PostIncrement, what).map(drop)
    }

    fn pre_append(
        &self,
        _: &dyn ObserverContext,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Vec<WrittenValue>>> {
        self.flow(Hook::PreAppend, text(&mutation.row), Vec::new())
    }

    fn post_append(
        &self,
        _: &dyn ObserverContext,
        mutation: &RowMutation,
        result: &mut Vec<WrittenValue>,
    ) -> Result<()> {
        let what = format!("{} {}", text(&mutation.row), written(result));
        self.on(Hook::PostAppend, what).map(drop)
    }

    fn pre_check_and_mutate(
        &self,
        _: &dyn ObserverContext,
        _: &mut Condition,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Option<Vec<WrittenValue>>>> {
        self.flow(Hook::PreCheckAndMutate, text(&mutation.row), None)
    }

    fn post_check_and_mutate(
        &self,
        _: &dyn ObserverContext,
        _: &Condition,
        result: &mut Option<Vec<WrittenValue>>,
    ) -> Result<()> {
        let what = if result.is_some() { "it held" } else { "it did not hold" };
        self.on(Hook::PostCheckAndMutate, what).map(drop)
    }
}

fn commit(commit: &WalCommit<'_>) -> String {
    let edits = commit.edits.iter().map(|edit| {
        let cells = edit
            .cells
            .of(CommitClock { sequence: store::Sequence(0), timestamp: store::Timestamp(0) });
        format!("{} cells of {} rows of table {}", cells.count(), edit.row_count, edit.table.0)
    });
    edits.collect::<Vec<_>>().join(", ")
}

impl WalObserver for Tracer {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn is_essential(&self) -> bool {
        self.essential
    }

    fn pre_wal_append(&self, _: &HookContext<'_>, appended: &WalCommit<'_>) -> Result<()> {
        self.on(Hook::PreWalAppend, commit(appended)).map(drop)
    }

    fn post_wal_append(
        &self,
        _: &HookContext<'_>,
        appended: &WalCommit<'_>,
        place: CommitClock,
    ) -> Result<()> {
        let what = format!("{} at {}", commit(appended), place.timestamp.0);
        self.on(Hook::PostWalAppend, what).map(drop)
    }

    fn post_wal_roll(&self, _: &HookContext<'_>, roll: WalRoll) -> Result<()> {
        self.on(Hook::PostWalRoll, format!("{} to {}", roll.closed, roll.opened)).map(drop)
    }
}

impl MasterObserver for Tracer {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        self.hooks
    }

    fn is_essential(&self) -> bool {
        self.essential
    }

    fn pre_create_table(
        &self,
        _: &HookContext<'_>,
        descriptor: &mut TableDescriptor,
    ) -> Result<()> {
        self.on(Hook::PreCreateTable, &descriptor.name).map(drop)
    }

    fn post_create_table(&self, _: &HookContext<'_>, descriptor: &TableDescriptor) -> Result<()> {
        self.on(Hook::PostCreateTable, &descriptor.name).map(drop)
    }

    fn pre_alter_table(
        &self,
        _: &HookContext<'_>,
        before: &TableDescriptor,
        after: &mut TableDescriptor,
    ) -> Result<()> {
        let (before, after) = (before.families[0].versions, after.families[0].versions);
        self.on(Hook::PreAlterTable, format!("versions {before} to {after}")).map(drop)
    }

    fn post_alter_table(
        &self,
        _: &HookContext<'_>,
        before: &TableDescriptor,
        after: &TableDescriptor,
    ) -> Result<()> {
        let (before, after) = (before.families[0].versions, after.families[0].versions);
        self.on(Hook::PostAlterTable, format!("versions {before} to {after}")).map(drop)
    }

    fn pre_drop_table(&self, _: &HookContext<'_>, descriptor: &TableDescriptor) -> Result<()> {
        self.on(Hook::PreDropTable, &descriptor.name).map(drop)
    }

    fn post_drop_table(&self, _: &HookContext<'_>, descriptor: &TableDescriptor) -> Result<()> {
        self.on(Hook::PostDropTable, &descriptor.name).map(drop)
    }

    fn pre_flush_table(&self, _: &HookContext<'_>, table: TableId) -> Result<()> {
        self.on(Hook::PreFlushTable, table.0).map(drop)
    }

    fn post_flush_table(
        &self,
        _: &HookContext<'_>,
        table: TableId,
        done: &Rewritten,
    ) -> Result<()> {
        self.on(Hook::PostFlushTable, format!("{} {} files", table.0, done.files_out)).map(drop)
    }

    fn pre_compact_table(
        &self,
        _: &HookContext<'_>,
        table: TableId,
        kind: RewriteKind,
    ) -> Result<()> {
        self.on(Hook::PreCompactTable, format!("{} {kind:?}", table.0)).map(drop)
    }

    fn post_compact_table(
        &self,
        _: &HookContext<'_>,
        table: TableId,
        kind: RewriteKind,
        done: &Rewritten,
    ) -> Result<()> {
        let what = format!("{} {kind:?} {} files", table.0, done.files_out);
        self.on(Hook::PostCompactTable, what).map(drop)
    }

    fn pre_checkpoint(&self, _: &HookContext<'_>, directory: &Path) -> Result<()> {
        self.on(Hook::PreCheckpoint, directory.display()).map(drop)
    }

    fn post_checkpoint(&self, _: &HookContext<'_>, directory: &Path) -> Result<()> {
        self.on(Hook::PostCheckpoint, directory.display()).map(drop)
    }

    fn pre_split(&self, _: &HookContext<'_>, region: RegionRef<'_>, row: &[u8]) -> Result<()> {
        self.on(Hook::PreSplit, format!("{} at {}", range(region), text(row))).map(drop)
    }

    fn post_split(
        &self,
        _: &HookContext<'_>,
        parent: RegionRef<'_>,
        [left, right]: [RegionRef<'_>; 2],
    ) -> Result<()> {
        let what = format!("{} to {} {}", range(parent), range(left), range(right));
        self.on(Hook::PostSplit, what).map(drop)
    }

    fn pre_merge(&self, _: &HookContext<'_>, regions: &[RegionRef<'_>]) -> Result<()> {
        let ranges: Vec<String> = regions.iter().map(|region| range(*region)).collect();
        self.on(Hook::PreMerge, ranges.join(" ")).map(drop)
    }

    fn post_merge(
        &self,
        _: &HookContext<'_>,
        regions: &[RegionRef<'_>],
        merged: RegionRef<'_>,
    ) -> Result<()> {
        self.on(Hook::PostMerge, format!("{} to {}", regions.len(), range(merged))).map(drop)
    }
}

impl ScriptRun {
    /// Runs a command of this module that is not part of a transaction.
    pub(crate) fn run_hooks(&mut self, verb: &str, words: &mut Words<'_>) -> Option<Answer> {
        Some(match verb {
            "watch" => self.watch(words),
            "watch-wal" => self.tracer(words).and_then(|(priority, tracer)| {
                self.watchers.wal.push((priority, tracer));
                let watchers = self.watchers.wal.clone();
                done(self.store().set_wal_observers(watchers))
            }),
            "watch-master" => self.tracer(words).and_then(|(priority, tracer)| {
                self.watchers.master.push((priority, tracer));
                let watchers = self.watchers.master.clone();
                done(self.store().set_master_observers(watchers))
            }),
            "unwatch" => self.table(words).and_then(|table| {
                self.watchers.tables.remove(&table);
                done(self.store().set_observers(table, Vec::new()))
            }),
            "calm" => words.next("name").and_then(|name| {
                let tracer = self.watchers.tracers.get(name).ok_or("no such observer")?;
                tracer.deeds.lock().clear();
                Ok(String::new())
            }),
            "limits" => words.number("failures", 1).and_then(|failures_max| {
                self.watchers =
                    Watchers { failures_max: Some(failures_max), ..Watchers::default() };
                self.run("reopen")
            }),
            "coprocessors" => Ok(self.coprocessors()),
            "resume" => self.resume(words),
            "bulk-load" => self.bulk_load(words),
            "split" => self.table(words).and_then(|table| {
                let row = words.next("row")?.into();
                done(self.store().split_region(table, SplitPoint::At(row)).map(drop))
            }),
            "merge" => self.table(words).and_then(|table| {
                let regions = self.store().regions(table).map_err(shown)?;
                let regions: Vec<_> = regions.iter().map(|region| region.region).collect();
                done(self.store().merge_regions(table, &regions).map(drop))
            }),
            "alter" => self.table(words).and_then(|table| {
                let tables = self.store().tables();
                let found = tables.iter().find(|descriptor| descriptor.id == table);
                let mut descriptor = TableDescriptor::clone(found.ok_or("no such table")?);
                descriptor.families[0].versions = words.number("versions", 1)?;
                done(self.store().alter_table(descriptor))
            }),
            "checkpoint" => words.next("directory").and_then(|directory| {
                done(self.store().checkpoint(Path::new(directory)).map(drop))
            }),
            _ => return None,
        })
    }

    fn watch(&mut self, words: &mut Words<'_>) -> Answer {
        let table = self.table(words)?;
        let (priority, tracer) = self.tracer(words)?;
        let mut observers = self.watchers.tables.get(&table).cloned().unwrap_or_default();
        observers.push((priority, tracer));
        self.store().set_observers(table, observers.clone()).map_err(shown)?;
        self.watchers.tables.insert(table, observers);
        Ok(String::new())
    }

    fn tracer(&mut self, words: &mut Words<'_>) -> std::result::Result<(i32, Arc<Tracer>), String> {
        let essential = words.flag("essential");
        let name = words.next("name")?.to_owned();
        let hooks = match words.named.remove("hooks") {
            None => Hooks::ALL,
            Some(list) => {
                let find = |name: &str| {
                    let found = Hook::ALL.iter().find(|hook| hook.name() == name);
                    found.copied().ok_or_else(|| format!("no hook {name}"))
                };
                let hooks: std::result::Result<Vec<Hook>, String> =
                    list.split(',').map(find).collect();
                Hooks::of(&hooks?)
            }
        };
        let deeds = DEEDS.iter().filter_map(|(word, deed)| {
            words.named.remove(word).map(|hook| (hook.to_owned(), *deed))
        });
        let deeds = Mutex::new(deeds.collect());
        let change = words.named.remove("change").map(|change| {
            let (old, new) = change.split_once('/').ok_or("bad change")?;
            Ok::<_, String>((old.to_owned(), new.to_owned()))
        });
        let tracer = Arc::new(Tracer {
            name: name.clone(),
            hooks,
            essential,
            trace: Arc::clone(&self.trace),
            env: self.env.clone(),
            deeds,
            hide: words.named.remove("hide").map(str::to_owned),
            drop: words.named.remove("drop").map(str::to_owned),
            spoils: words.named.remove("spoils").map(str::to_owned),
            change: change.transpose()?,
        });
        self.watchers.tracers.insert(name, Arc::clone(&tracer));
        Ok((words.number("priority", 100)?, tracer))
    }

    fn coprocessors(&self) -> String {
        let mut out = String::new();
        for status in self.store().coprocessors() {
            let place = match status.scope {
                CoprocessorScope::Table(table) => format!("table {}", table.0),
                CoprocessorScope::Wal => "wal".into(),
                CoprocessorScope::Master => "master".into(),
            };
            let state = match status.state {
                CoprocessorState::Active => "active",
                CoprocessorState::Suspended => "suspended",
            };
            writeln!(
                out,
                "{place} {} priority={} {state} calls={} refusals={} errors={} panics={} overruns={} \
                 in_a_row={} spent={:?} longest={:?} last={}",
                status.name,
                status.priority,
                status.calls,
                status.refusals,
                status.errors,
                status.panics,
                status.overruns,
                status.failures_in_a_row,
                status.spent,
                status.longest,
                status.last_error.as_deref().unwrap_or("none")
            )
            .unwrap();
        }
        out
    }

    fn resume(&self, words: &mut Words<'_>) -> Answer {
        let scope = CoprocessorScope::Table(self.table(words)?);
        let found = self.store().resume_coprocessor(scope, words.next("name")?).map_err(shown)?;
        Ok(if found { "resumed\n".into() } else { "nobody of that name\n".into() })
    }

    fn bulk_load(&self, words: &mut Words<'_>) -> Answer {
        let table = self.table(words)?;
        let (family, qualifier) = self.column(table, words.next("column")?)?;
        let mut load = self.store().bulk_load(table).map_err(shown)?;
        while let Some(word) = words.positional.pop_front() {
            let (row, value) = word.split_once('/').ok_or("expected row/value")?;
            load.add(BulkCell {
                row: row.as_bytes(),
                family,
                qualifier: &qualifier,
                timestamp: None,
                cell_type: CellType::Put,
                value: value.as_bytes(),
            })
            .map_err(shown)?;
        }
        let loaded = load.adopt().map_err(shown)?;
        Ok(format!("loaded {} cells\n", loaded.cell_count))
    }

    /// Scans a table once, in batches.
    pub(crate) fn scan_once(&self, transaction: &Transaction, words: &mut Words<'_>) -> Answer {
        let table = self.table(words)?;
        let row_limit = words.number("batch", 100)?;
        let limit = match words.number("limit", 0)? {
            0 => None,
            limit => Some(limit),
        };
        let mut scanner = transaction.scan(table, Scan { limit, ..Scan::all() }).map_err(shown)?;
        let (mut batch, mut out) = (CellBatch::new(), String::new());
        while scanner.next_batch(row_limit, &mut batch).map_err(shown)? {
            out.push_str(&self.show(table, &batch, false));
        }
        Ok(if out.is_empty() { "no rows\n".into() } else { out })
    }
}

fn done(result: Result<()>) -> Answer {
    result.map(|()| String::new()).map_err(shown)
}
