//! Cursors: DECLARE, FETCH, MOVE, CLOSE and WHERE CURRENT OF.
//!
//! A cursor is a running statement's [`ResultRows`] under a name, until CLOSE or the end of the
//! transaction; a rollback to a savepoint closes the cursors that were declared after it. WITH
//! HOLD reads all rows at once and materialises them, beyond `work_mem` on disk. Row positions of
//! FETCH and backward movement are in `session/scroll.rs`.
//!
//! Source: PostgreSQL's portalcmds.c and `PortalRunFetch` (pquery.c).

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;

use crate::ast::{self, FetchDirection, Statement};
use crate::batch_buffer::{BatchBuffer, BufferLimit};
use crate::error::{Error, Result};
use crate::exec;
use crate::exec::memory;
use crate::logical::{CurrentRow, CursorTable, OutputColumn};
use crate::parser::ParsedStatement;
use crate::rows::{CommandTag, Completion, ResultRows, RunningPlan};
use crate::session::portals::{Portals, forward};
use crate::session::prepared::{PlannedStatement, StatementPlan};
use crate::session::scroll::ScrollBuffer;
use crate::session::{Execution, Session};
use crate::session_objects::{CursorRow, SessionObjects};
use store::TableId;
use store::transaction::Savepoint;
use types::Datum;

/// Open cursors, shared between the session and the functions that its statements call.
pub(super) type OpenCursors = Arc<Mutex<AHashMap<String, OpenCursor>>>;

/// Cursors and portals of a session.
pub(super) struct Cursors {
    open: OpenCursors,
    /// Portals of the protocol; their names are distinct from those of cursors.
    pub(super) portals: Portals,
    /// Registry for system views; `None` for the cursors of a function, which may not know all.
    shown: Option<Arc<SessionObjects>>,
    /// Number of generated cursor names.
    unnamed_count: u32,
}

pub(super) struct OpenCursor {
    /// Rows of the query, used by one thread at a time; the lock makes the session `Sync`.
    rows: Mutex<ResultRows>,
    columns: Arc<[OutputColumn]>,
    life: CursorLifetime,
    /// Rows read so far; `None` if the cursor only moves forward.
    scroll: Option<Mutex<ScrollBuffer>>,
    /// Declared SCROLL: all read rows are retained.
    is_declared_scroll: bool,
    /// Declared BINARY.
    is_binary: bool,
    /// True if the query locks rows.
    locks: bool,
    /// Tables that the open query reads; empty once all its rows are materialised.
    reads: Vec<TableId>,
    /// Tables whose keys follow the visible columns in its rows.
    tables: Vec<CursorTable>,
    /// Savepoint position in the transaction at which its snapshot was taken.
    since: Savepoint,
    place: CursorPosition,
    /// Number of rows read, if the cursor only moves forward.
    passed: u64,
    /// True after its query has failed.
    is_broken: bool,
}

/// Position of a cursor.
enum CursorPosition {
    Before,
    /// On a row, which includes its keys.
    Row(Vec<Datum>),
    After,
}

/// Life of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CursorLifetime {
    /// Until the end of its transaction, or a rollback below `savepoints`: the number of
    /// savepoints at its declaration.
    Transaction { savepoints: usize },
    /// WITH HOLD: until it is closed, if its transaction commits. `savepoints`: as above.
    Held { committed: bool, savepoints: usize },
}

impl Cursors {
    /// Returns the cursors of a session.
    pub(super) fn of(shown: Arc<SessionObjects>, open: OpenCursors) -> Cursors {
        Cursors { open, portals: Portals::default(), shown: Some(shown), unnamed_count: 0 }
    }

    /// Returns the cursors of a function, which has no portals.
    pub(super) fn of_function(open: OpenCursors) -> Cursors {
        Cursors { open, portals: Portals::default(), shown: None, unnamed_count: 0 }
    }

    fn tell(&self) {
        if let Some(shown) = &self.shown {
            shown.retain_cursors(|name| self.has(name));
        }
    }

    /// Returns whether there is a cursor or portal of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.open.lock().contains_key(name) || self.portals.has(name)
    }

    /// Generates an unused cursor name.
    pub(super) fn unnamed(&mut self) -> String {
        loop {
            self.unnamed_count += 1;
            let name = format!("<unnamed portal {}>", self.unnamed_count);
            if !self.has(&name) {
                return name;
            }
        }
    }

    /// Closes a cursor or portal. Returns whether there was one.
    pub(super) fn close(&mut self, name: &str) -> bool {
        let was_there =
            self.open.lock().remove(name).is_some() | self.portals.remove(name).is_some();
        if was_there {
            self.tell();
        }
        was_there
    }

    /// Closes the portals of the protocol.
    pub(super) fn end_portals(&mut self) {
        self.portals.retain(|_| false);
        // Also removes one that was taken out and not put back.
        self.tell();
    }

    /// Returns whether a cursor WITH HOLD was declared in the open transaction.
    pub(super) fn has_uncommitted_held(&self) -> bool {
        let is_new = |cursor: &OpenCursor| {
            matches!(cursor.life, CursorLifetime::Held { committed: false, .. })
        };
        self.open.lock().values().any(is_new)
    }

    /// Closes the cursors of the transaction; after a commit those WITH HOLD remain.
    pub(super) fn end_transaction(&mut self, is_committed: bool) {
        if self.open.lock().is_empty() {
            self.end_portals();
            return;
        }
        self.portals.retain(|_| false);
        self.open.lock().retain(|_, cursor| match &mut cursor.life {
            CursorLifetime::Transaction { .. } => false,
            CursorLifetime::Held { committed, .. } => {
                *committed |= is_committed;
                *committed
            }
        });
        self.tell();
    }

    /// Closes the cursors that were declared after a savepoint, on a rollback to it. `left`: the
    /// number of remaining savepoints.
    pub(super) fn rollback_to(&mut self, left: usize) {
        let stays = |life: CursorLifetime| match life {
            CursorLifetime::Transaction { savepoints }
            | CursorLifetime::Held { committed: false, savepoints } => savepoints < left,
            CursorLifetime::Held { committed: true, .. } => true,
        };
        self.open.lock().retain(|_, cursor| stays(cursor.life));
        self.portals.retain(|savepoints| savepoints < left);
        self.tell();
    }

    /// Assigns the cursors that were declared after a released savepoint to the enclosing level.
    pub(super) fn release(&mut self, left: usize) {
        self.portals.release(left);
        for cursor in self.open.lock().values_mut() {
            match &mut cursor.life {
                CursorLifetime::Transaction { savepoints }
                | CursorLifetime::Held { savepoints, .. } => {
                    *savepoints = left.min(*savepoints);
                }
            }
        }
    }

    /// Closes all cursors and portals.
    pub(super) fn clear(&mut self) {
        self.open.lock().clear();
        self.portals.retain(|_| false);
        self.tell();
    }

    /// Returns the columns of a cursor's or portal's rows.
    pub(super) fn columns(&self, name: &str) -> Result<Arc<[OutputColumn]>> {
        match (self.open.lock().get(name), self.portals.find(name)) {
            (Some(cursor), _) => Ok(Arc::clone(&cursor.columns)),
            (None, Some(portal)) => Ok(portal.columns().cloned().unwrap_or_else(|| Arc::from([]))),
            (None, None) => Err(unknown(name)),
        }
    }
}

impl Session {
    /// Returns the columns of a DECLAREd cursor, if there is one of the name.
    pub fn cursor_columns(&self, name: &str) -> Option<Arc<[OutputColumn]>> {
        self.cursors.open.lock().get(name).map(|cursor| Arc::clone(&cursor.columns))
    }

    /// Starts the query of a cursor; returns its columns and rows.
    fn open_query(
        &mut self,
        statement: &PlannedStatement,
        mut parameters: Vec<Datum>,
        tag: CommandTag,
    ) -> Result<(Arc<[OutputColumn]>, ResultRows)> {
        if statement.parameter_types.len() > parameters.len() {
            bail!(UNDEFINED_PARAMETER: "there is no parameter $1");
        }
        parameters.resize(statement.planned.parameter_count, Datum::Null);
        let planned = &statement.planned;
        if !planned.plan.is_query() {
            let hint = "Run it as a separate statement.";
            return Err(Error::not_supported("a data-modifying query here", hint));
        }
        self.begin_request();
        self.check_permitted(planned, "SELECT")?;
        let open = self.open.as_ref().expect("a statement was begun");
        let transaction = Arc::clone(&open.transaction);
        let _turn = transaction.turn();
        self.check_readiness(planned)?;
        let context = self.context(open, parameters);
        let context = exec::Context { locks_one_by_one: true, row_by_row: true, ..context };
        let operator = exec::open(&planned.plan, context)?;
        let operator = RunningPlan { operator, transaction: Arc::clone(&transaction) };
        let columns = statement.columns.clone().unwrap_or_else(|| Arc::from([]));
        let rows =
            ResultRows::streaming(Arc::clone(&columns), operator, tag, Arc::clone(&self.stop));
        Ok((columns, rows))
    }

    /// Sets the parameters of WHERE CURRENT OF to the key of the cursor's current row.
    ///
    /// # Errors
    ///
    /// 34000 if there is no such cursor, 24000 if it is not on a row of the table.
    pub(super) fn bind_current_row(
        &self,
        planned: &StatementPlan,
        parameters: &mut [Datum],
    ) -> Result<()> {
        match &planned.current_row {
            Some(row) => self.bind_row_key(row, parameters),
            None => Ok(()),
        }
    }

    /// Sets the parameters of WHERE CURRENT OF to the key of a cursor's current row.
    ///
    /// # Errors
    ///
    /// See [`Session::bind_current_row`].
    pub(super) fn bind_row_key(&self, row: &CurrentRow, parameters: &mut [Datum]) -> Result<()> {
        let open = self.cursors.open.lock();
        let cursor = open.get(&row.cursor).ok_or_else(|| unknown(&row.cursor))?;
        let key = cursor.current_key(row)?;
        let since = cursor.since;
        drop(open);
        let key = self.present_key(row.table, key, since)?;
        for (&parameter, value) in row.parameters.iter().zip(key) {
            parameters[parameter] = value;
        }
        Ok(())
    }

    /// Returns the present key of a row that a cursor has read with `key`, after updates of the
    /// key; NULLs, which no row has, if the row was deleted.
    fn present_key(&self, table: TableId, key: Vec<Datum>, since: Savepoint) -> Result<Vec<Datum>> {
        let catalog = self.catalog();
        let (Some(open), Some(table)) = (&self.open, catalog.table_stored(table)) else {
            return Ok(key);
        };
        let row = table.layout.encode_key_values(&key)?;
        let moved =
            open.key_updates.present_key(&open.transaction, table.id, row.clone(), since)?;
        match moved {
            Some(present) if present == row => Ok(key),
            Some(present) => Ok(table.layout.decode_key(&present)?),
            None => Ok(vec![Datum::Null; key.len()]),
        }
    }

    /// Rejects DDL and TRUNCATE of a table that an open cursor reads or a calling statement
    /// changes.
    ///
    /// # Errors
    ///
    /// 55006
    pub(super) fn check_not_in_use(&self, statement: &Statement) -> Result<()> {
        let is_table = |object: &&ast::ObjectReference| object.kind == ast::ObjectKind::Table;
        let constraints = self.open.as_ref().map(|open| &open.constraints);
        let changed = constraints.map(|held| held.lock().in_use.clone()).unwrap_or_default();
        let named: Vec<&ast::TableName> = match statement {
            _ if self.cursors.open.lock().is_empty() && changed.is_empty() => return Ok(()),
            Statement::Truncate(truncate) => truncate.names.iter().collect(),
            Statement::AlterTable(alter) => vec![&alter.name],
            Statement::CreateIndex(create) => vec![&create.table],
            Statement::Trigger(trigger) => match &**trigger {
                ast::TriggerStatement::Drop(drop) => vec![&drop.table],
                _ => return Ok(()),
            },
            Statement::Drop(drop) => {
                drop.objects.iter().filter(is_table).map(|object| &object.name).collect()
            }
            _ => return Ok(()),
        };
        for name in named {
            // A missing table is reported by the statement.
            let Ok(table) = self.table(name) else { continue };
            let is_read = |table: TableId| {
                self.cursors.open.lock().values().any(|cursor| cursor.reads.contains(&table))
            };
            if changed.contains(&table.id) || is_read(table.id) {
                let verb = match statement {
                    Statement::Truncate(_) => "TRUNCATE",
                    other => other.tag(),
                };
                bail!(OBJECT_IN_USE: "cannot {verb} \"{}\" because it is being used by active queries in this session",
                    table.name);
            }
        }
        Ok(())
    }

    /// Executes DECLARE, FETCH, MOVE or CLOSE.
    pub(super) fn run_cursor(
        &mut self,
        parsed: &Arc<ParsedStatement>,
        statement: &Statement,
    ) -> Result<Execution> {
        match statement {
            Statement::DeclareCursor(cursor) => self.declare_cursor(parsed, cursor)?,
            Statement::Fetch { direction, moves, cursor } => {
                return self.fetch_cursor(*direction, *moves, &cursor.value);
            }
            Statement::Close(Some(name)) => {
                if !self.cursors.close(&name.value) {
                    return Err(unknown(&name.value));
                }
            }
            _ => self.cursors.clear(),
        }
        Ok(Execution::Done(Completion::new(statement.tag())))
    }

    fn declare_cursor(
        &mut self,
        parsed: &Arc<ParsedStatement>,
        declared: &ast::DeclareCursor,
    ) -> Result<()> {
        let (types, parameters) = (self.bound.types.clone(), self.bound.values.clone());
        let planned = loop {
            let planned =
                self.with_planning(|planning| planning.plan_cursor(declared, &types, None))?;
            planned.planned.constants.check(&parameters)?;
            self.begin_statement();
            self.lock_tables_of(&planned.planned)?;
            if !self.is_stale(&planned.planned) {
                break planned;
            }
        };
        if self.is_in_block() || declared.hold == Some(true) {
            return self.add_cursor(parsed, declared, planned, parameters);
        }
        if declared.hold == Some(false) || !declared.query.locking.is_empty() {
            bail!(NO_ACTIVE_SQL_TRANSACTION: "DECLARE CURSOR can only be used in transaction blocks");
        }
        // As in Phoenix, a cursor outside of a transaction block is held.
        let held = ast::DeclareCursor { hold: Some(true), ..declared.clone() };
        self.add_cursor(parsed, &held, planned, parameters)
    }

    /// Opens a cursor.
    pub(super) fn add_cursor(
        &mut self,
        parsed: &Arc<ParsedStatement>,
        declared: &ast::DeclareCursor,
        planned: PlannedStatement,
        parameters: Vec<Datum>,
    ) -> Result<()> {
        let locks = !declared.query.locking.is_empty();
        let is_held = declared.hold == Some(true);
        let name = &declared.name.value;
        if self.cursors.has(name) {
            bail!(DUPLICATE_CURSOR: "cursor \"{name}\" already exists");
        }
        let tag = CommandTag::Returned("FETCH");
        let (columns, mut rows) = self.open_query(&planned, parameters, tag.clone())?;
        let open = self.open.as_ref().expect("a statement was begun");
        let open_savepoints = open.savepoint_count();
        let mut life = CursorLifetime::Transaction { savepoints: open_savepoints };
        let tables = match locks || planned.planned.plan.is_simple_scan() {
            true => planned.cursor_tables,
            false => Vec::new(),
        };
        if !tables.is_empty() {
            open.key_updates.start_recording();
        }
        let since = open.transaction.view()?.place();
        if is_held {
            let batches = self.all_rows(&mut rows)?;
            let stop = Arc::clone(&self.stop);
            rows = ResultRows::buffered(Arc::clone(&columns), batches, tag, stop);
            life = CursorLifetime::Held { committed: false, savepoints: open_savepoints };
        }
        let scroll = (declared.scroll != Some(false) && !locks).then(Mutex::default);
        let is_declared_scroll = declared.scroll == Some(true);
        let shown = CursorRow {
            statement: Some(Arc::clone(&parsed.text.input)),
            since: self.engine.store().now_micros(),
            is_held,
            is_binary: declared.binary,
            is_scrollable: scroll.is_some(),
        };
        self.objects.add_cursor(name, shown);
        let cursor = OpenCursor {
            rows: Mutex::new(rows),
            columns,
            life,
            scroll,
            is_declared_scroll,
            is_binary: declared.binary,
            locks,
            reads: if is_held { Vec::new() } else { planned.reads },
            tables,
            since,
            place: CursorPosition::Before,
            passed: 0,
            is_broken: false,
        };
        self.cursors.open.lock().insert(name.clone(), cursor);
        Ok(())
    }

    pub(super) fn all_rows(&self, rows: &mut ResultRows) -> Result<BatchBuffer> {
        let types = rows.columns().iter().map(|column| column.sql_type.base.clone()).collect();
        let (room, mut batches) = (self.buffer_limit(), BatchBuffer::new(types));
        while let Some(batch) = rows.next_batch(usize::MAX)? {
            batches.push(batch, &room)?;
        }
        Ok(batches)
    }

    /// Returns the memory limit and spill area of materialised rows.
    pub(super) fn buffer_limit(&self) -> BufferLimit {
        BufferLimit {
            spill: self.engine.spill.begin(self.settings.parsed().temp_file_limit),
            bytes: memory::spill_limit(self.settings.parsed().work_mem_bytes),
        }
    }

    fn fetch_cursor(
        &mut self,
        direction: FetchDirection,
        moves: bool,
        name: &str,
    ) -> Result<Execution> {
        if !moves {
            return self.fetch_rows(direction, name).map(Execution::Rows);
        }
        let batches = self.fetch_batches(direction, name)?;
        let count = batches.row_count();
        Ok(Execution::Done(Completion::new(format!("MOVE {count}"))))
    }

    /// Moves a cursor or portal and returns the requested rows.
    pub(super) fn fetch_rows(
        &mut self,
        direction: FetchDirection,
        name: &str,
    ) -> Result<ResultRows> {
        let columns = self.cursors.columns(name)?;
        let is_binary = self.cursors.open.lock().get(name).is_some_and(|cursor| cursor.is_binary);
        let batches = self.fetch_batches(direction, name)?;
        let stop = Arc::clone(&self.stop);
        let mut rows = ResultRows::buffered(columns, batches, CommandTag::Returned("FETCH"), stop);
        rows.is_binary = is_binary;
        Ok(rows)
    }

    pub(super) fn fetch_batches(
        &mut self,
        direction: FetchDirection,
        name: &str,
    ) -> Result<BatchBuffer> {
        let room = self.buffer_limit();
        // Taken out of the map, as its query may call functions that use cursors.
        let taken = self.cursors.open.lock().remove(name);
        let Some(mut cursor) = taken else {
            return match self.cursors.portals.has(name) {
                true => self.fetch_portal(direction, name),
                false => Err(unknown(name)),
            };
        };
        let fetched = match cursor.is_broken {
            true => Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "portal \"{name}\" cannot be run")),
            false => cursor.fetch(direction, &room),
        };
        self.cursors.open.lock().insert(name.to_owned(), cursor);
        fetched
    }
}

impl OpenCursor {
    /// Moves and returns the requested rows.
    fn fetch(&mut self, direction: FetchDirection, room: &BufferLimit) -> Result<BatchBuffer> {
        let read = self.read(direction, room);
        self.is_broken |= read.is_err();
        let mut batches = read?;
        batches.truncate_columns(self.columns.len());
        Ok(batches)
    }

    fn read(&mut self, direction: FetchDirection, room: &BufferLimit) -> Result<BatchBuffer> {
        let rows = self.rows.get_mut();
        if let Some(scroll) = &mut self.scroll {
            let scroll = scroll.get_mut();
            if self.is_declared_scroll || !scroll.is_full(room.bytes) {
                let batches = scroll.fetch(rows, direction, room)?;
                self.place = match scroll.current()? {
                    _ if scroll.is_before() => CursorPosition::Before,
                    Some(row) => CursorPosition::Row(row),
                    None => CursorPosition::After,
                };
                return Ok(batches);
            }
            // Without SCROLL, the cursor only moves forward once its buffer is full.
            self.passed = scroll.passed();
            self.scroll = None;
        }
        let (skipped, count) = forward_range(direction, self.passed)?;
        self.passed = self.passed.saturating_add(skipped).saturating_add(count);
        let mut batches = forward(rows, skipped, count, room)?;
        let returned = batches.row_count();
        self.place = match batches.last()? {
            Some(last) if returned as u64 == count => {
                CursorPosition::Row(last.row(last.row_count - 1))
            }
            _ => CursorPosition::After,
        };
        Ok(batches)
    }

    /// Returns the key of the current row.
    fn current_key(&self, of: &CurrentRow) -> Result<Vec<Datum>> {
        let (name, table) = (&of.cursor, &of.table_name);
        let refused = |message| Err(err!(INVALID_CURSOR_STATE: message));
        if matches!(self.life, CursorLifetime::Held { committed: true, .. }) {
            return refused(format!("cursor \"{name}\" is held from a previous transaction"));
        }
        let mut tables = self.tables.iter().filter(|one| one.table == of.table);
        let found = match (tables.next(), tables.next()) {
            (Some(found), None) => found,
            (Some(_), Some(_)) => {
                return refused(format!(
                    "cursor \"{name}\" has multiple FOR UPDATE/SHARE references to table \"{table}\""
                ));
            }
            (None, _) if self.locks => {
                return refused(format!(
                    "cursor \"{name}\" does not have a FOR UPDATE/SHARE reference to table \"{table}\""
                ));
            }
            (None, _) => {
                return refused(format!(
                    "cursor \"{name}\" is not a simply updatable scan of table \"{table}\""
                ));
            }
        };
        match &self.place {
            CursorPosition::Row(row) => {
                Ok(found.columns.iter().map(|&at| row[at].clone()).collect())
            }
            _ => refused(format!("cursor \"{name}\" is not positioned on a row")),
        }
    }
}

/// Returns the number of rows that a forward-only cursor skips and returns. `passed`: the rows
/// that it has read before.
///
/// # Errors
///
/// 55000 if it would have to move backward.
pub(super) fn forward_range(direction: FetchDirection, passed: u64) -> Result<(u64, u64)> {
    rows_ahead(direction, passed).ok_or_else(|| {
        err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "cursor can only scan forward";
            hint "Declare it with SCROLL option to enable backward scan.")
    })
}

fn rows_ahead(direction: FetchDirection, passed: u64) -> Option<(u64, u64)> {
    match direction {
        FetchDirection::Forward(count @ 1..) => Some((0, count.unsigned_abs())),
        FetchDirection::ForwardAll => Some((0, u64::MAX)),
        FetchDirection::Relative(count @ 1..) => Some((count.unsigned_abs() - 1, 1)),
        FetchDirection::Absolute(count @ 1..) => {
            let left_out = count.unsigned_abs().checked_sub(passed + 1)?;
            Some((left_out, 1))
        }
        _ => None,
    }
}

fn unknown(name: &str) -> Error {
    err!(INVALID_CURSOR_NAME: "cursor \"{name}\" does not exist")
}
