//! ALTER TABLE … ATTACH and DETACH COPROCESSOR.
//!
//! Attached coprocessors are a row of the catalog. The observer chain of the table changes
//! immediately, under the table's exclusive lock, and is restored if the transaction is rolled
//! back.

use std::sync::Arc;

use coprocessors::registry::TableDefinition;
use store::observer::CoprocessorScope;
use store::transaction::TableLockMode;
use store::{CellBatch, Mutation, Scan, TableId};

use crate::ast;
use crate::ast::{
    AlterCoprocessor, AlterTableAction, AttachCoprocessor, Ident, OptionValue, TableName,
};
use crate::catalog::CatalogObject;
use crate::catalog::name::PUBLIC;
use crate::catalog::record::{
    COPROCESSORS_PREFIX, CoprocessorKind, CoprocessorRecord, CoprocessorRecords, encode, object_key,
};
use crate::catalog::table::Table;
use crate::ddl::{Ddl, DerivedTable};
use crate::error::{Error, Result, sqlstate};
use crate::maintained_views;
use crate::table_coprocessors;
use crate::table_coprocessors::{
    AttachedCoprocessor, CheckedCoprocessor, TABLE_PRIORITY, duplicate,
};

impl Ddl<'_> {
    /// Attaches, detaches or resumes a coprocessor of a table.
    pub fn alter_coprocessors(&mut self, statement: &ast::AlterTable) -> Result<()> {
        let AlterTableAction::Coprocessor(action) = &statement.action else {
            unreachable!("the caller passes what changes the catalog only")
        };
        let catalog = self.catalog();
        let table = self.table(&catalog, &statement.name)?;
        match action {
            AlterCoprocessor::Attach(attach) => {
                if !catalog.is_superuser(self.roles.current.number) {
                    // It runs in the server, and may write to any table.
                    bail!(INSUFFICIENT_PRIVILEGE: "permission denied to attach a coprocessor";
                        hint "Must be superuser to attach a coprocessor.");
                }
                self.lock_table(table.id, TableLockMode::AccessExclusive)?;
                self.attach(&table, attach)
            }
            AlterCoprocessor::Detach(name) => {
                if !table.coprocessors.attached.iter().any(|one| one.name == name.value) {
                    return Err(not_attached(&table, name));
                }
                self.lock_table(table.id, TableLockMode::AccessExclusive)?;
                self.detach(&table, &name.value)
            }
            AlterCoprocessor::Resume(name) => {
                // RESUME takes effect immediately, outside of the transaction: it is not a
                // property of the catalog.
                let scope = CoprocessorScope::Table(table.id);
                match self.engine.store().resume_coprocessor(scope, &name.value)? {
                    true => Ok(()),
                    false => Err(not_attached(&table, name)),
                }
            }
        }
    }

    fn attach(&mut self, table: &Table, statement: &AttachCoprocessor) -> Result<()> {
        let mut records = CoprocessorRecords::clone(&table.coprocessors);
        let name = statement.alias.as_ref().unwrap_or(&statement.coprocessor);
        let coprocessors = &self.engine.coprocessors;
        let (kind, priority) = match coprocessors.endpoint(&statement.coprocessor.value) {
            Some(_) => (CoprocessorKind::Endpoint, TABLE_PRIORITY),
            None => {
                let factory = coprocessors.factory(&statement.coprocessor.value);
                let factory = factory.map_err(|error| error.at(statement.coprocessor.position))?;
                let priority = factory.default_priority().unwrap_or(TABLE_PRIORITY);
                (CoprocessorKind::Observer, priority)
            }
        };
        if coprocessors.has_link(table, &name.value) {
            let owner = format!("table \"{}\"", table.name);
            return Err(duplicate(&name.value, &owner).at(name.position));
        }
        let record = CoprocessorRecord {
            name: name.value.clone(),
            coprocessor: statement.coprocessor.value.clone(),
            kind,
            priority: statement.priority.unwrap_or(priority),
            arguments: statement
                .arguments
                .iter()
                .map(|option| (option.name.value.clone(), argument_text(&option.value)))
                .collect(),
            unknown: Default::default(),
        };
        if kind == CoprocessorKind::Endpoint {
            if statement.priority.is_some() {
                bail!(INVALID_PARAMETER_VALUE: "endpoint \"{}\" has no priority", name.value;
                    hint "Only observers have priorities; endpoints are called by name.");
            }
            coprocessors.check_endpoint(&record, table)?;
            records.attached.push(record);
            return self.store_coprocessors(table, records);
        }
        coprocessors.check_expiry(table, Some(&record))?;
        if let Some(expiring) = coprocessors.expiring(table, Some(&record))
            && let Some(keeper) = self.keeper_of(table.id)
        {
            return Err(expires_what_is_kept(table, &expiring, &keeper.record));
        }
        let catalog = self.changes.catalog(self.engine);
        if let Some((view, _)) = maintained_views::views_of(&catalog, table.oid).first()
            && let Some(expiring) = coprocessors.expiring(table, Some(&record))
        {
            let hint = format!("Drop materialized view \"{}\" first.", view.name);
            let what = format!("{expiring} on a table with a maintained view");
            return Err(Error::not_supported(what, hint));
        }
        let mut checked = coprocessors.check(&record, table, &catalog)?;
        for notice in self.prepare_target(table, &record, &mut checked)? {
            self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, notice);
        }
        checked.build()?;
        records.attached.push(record);
        // The exclusive lock excludes concurrent writers. Earlier commits must be completely
        // visible, including those that are applied but not yet durable.
        self.engine.store().wait_for_commits()?;
        self.transaction.begin_statement();
        self.store_coprocessors(table, records)?;
        checked.fill(self.transaction)
    }

    /// Returns the coprocessor with exclusive write access to a table, if there is one.
    pub(super) fn keeper_of(&self, table: TableId) -> Option<AttachedCoprocessor> {
        let (source, keeper) = self.engine.exclusive_writer_of(table)?;
        (!self.changes.drops(source)).then_some(keeper)
    }

    fn detach(&mut self, table: &Table, name: &str) -> Result<()> {
        // Others must not write to tables that it wrote exclusively, until it is detached for
        // good.
        for attached in self.engine.attached(table.id).iter().flat_map(|known| known.iter()) {
            if attached.record.name == name && attached.is_exclusive {
                for &target in &attached.writes {
                    self.lock_table(target, TableLockMode::AccessExclusive)?;
                }
            }
        }
        let mut records = CoprocessorRecords::clone(&table.coprocessors);
        records.attached.retain(|one| one.name != name);
        self.store_coprocessors(table, records)
    }

    /// Stores the coprocessors of a table, and rebuilds its observer chain.
    fn store_coprocessors(&mut self, table: &Table, records: CoprocessorRecords) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let record = self.record_of(&catalog, table)?;
        let key = object_key(COPROCESSORS_PREFIX, table.oid);
        let row = match records.attached.is_empty() {
            true => Mutation::new(key).delete_row(),
            false => Mutation::new(key).put(0, Vec::new(), encode(&records)),
        };
        self.transaction.mutate(self.engine.catalog_table, vec![row])?;
        let changed = Table { coprocessors: Arc::new(records), ..table.clone() };
        let catalog = catalog.with(CatalogObject::Table(Arc::new(changed.clone()), Some(record)));
        self.lock_observed_table(table.oid)?;
        self.engine.attach_observers(&changed, &catalog)?;
        self.changes.set_catalog(catalog);
        Ok(())
    }

    /// Creates or checks the tables to which coprocessors of the server write for this table.
    pub(crate) fn prepare_server_targets(&mut self, table: &Table) -> Result<()> {
        for record in self.engine.coprocessors.of_server(table) {
            let catalog = self.changes.catalog(self.engine);
            let mut checked = self.engine.coprocessors.check(record, table, &catalog)?;
            self.prepare_target(table, record, &mut checked)?;
            checked.build()?;
        }
        Ok(())
    }

    /// Creates or checks the table to which a coprocessor writes. Returns notices.
    fn prepare_target(
        &mut self,
        table: &Table,
        record: &CoprocessorRecord,
        checked: &mut CheckedCoprocessor,
    ) -> Result<Vec<String>> {
        let definition = checked.target()?;
        let mut notices = Vec::new();
        let catalog = self.changes.catalog(self.engine);
        if let Some(definition) = &definition
            && table_coprocessors::target(&catalog, &definition.name).is_none()
        {
            self.create_target(definition)?;
            notices.push(format!(
                "table \"{}\" created for coprocessor \"{}\"",
                definition.name, record.name
            ));
        }
        let catalog = self.changes.catalog(self.engine);
        for name in checked.arguments.tables() {
            let other = table_coprocessors::target(&catalog, name)
                .ok_or_else(|| err!(UNDEFINED_TABLE: "relation \"{name}\" does not exist"))?;
            if self.reaches(other.id, table.id) {
                bail!(INVALID_OBJECT_DEFINITION: "coprocessor \"{}\" would write to its own table", record.name;
                    detail "Its writes to table \"{name}\" would cause writes to table \"{}\".", table.name);
            }
            let target = definition.as_ref().filter(|definition| definition.name == name);
            self.check_target(other, target, record)?;
        }
        checked.resolve_tables(&catalog);
        Ok(notices)
    }

    fn check_target(
        &mut self,
        target: &Table,
        definition: Option<&TableDefinition>,
        record: &CoprocessorRecord,
    ) -> Result<()> {
        let is_exclusive = definition.is_some_and(|definition| definition.is_exclusive);
        let writers = self.engine.writers_to(target.id).into_iter();
        let mut writers = writers.filter(|(writer, _)| !self.changes.drops(*writer));
        if let Some((_, other)) = writers.find(|(_, one)| is_exclusive || one.is_exclusive) {
            bail!(OBJECT_IN_USE: "table \"{}\" is the output table of coprocessor \"{}\"", target.name, other.record.name;
                hint "Specify another table, or detach the other coprocessor.");
        }
        let Some(definition) = definition else { return Ok(()) };
        definition.check(&record.coprocessor, &target.shape())?;
        if is_exclusive {
            if let Some(expiring) = self.engine.coprocessors.expiring(target, None) {
                return Err(expires_what_is_kept(target, &expiring, record));
            }
            self.lock_table(target.id, TableLockMode::AccessExclusive)?;
            self.engine.store().wait_for_commits()?;
            self.transaction.begin_statement();
            let mut rows = CellBatch::new();
            if self.transaction.scan(target.id, Scan::all())?.next_batch(1, &mut rows)? {
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "table \"{}\" is not empty", target.name;
                    hint "Delete its rows, or specify a table that does not exist.");
            }
        }
        Ok(())
    }

    /// Returns whether writes to one table are propagated to another by coprocessors.
    fn reaches(&self, from: TableId, to: TableId) -> bool {
        let mut seen = vec![from];
        let mut next = 0;
        while let Some(&table) = seen.get(next) {
            if table == to {
                return true;
            }
            for attached in self.engine.attached(table).iter().flat_map(|known| known.iter()) {
                let new = attached.writes.iter().filter(|write| !seen.contains(write));
                let new: Vec<TableId> = new.copied().collect();
                seen.extend(new);
            }
            next += 1;
        }
        false
    }

    /// Creates the table that a coprocessor needs.
    fn create_target(&mut self, definition: &TableDefinition) -> Result<()> {
        let ident = |name: &str| Ident { value: name.to_owned(), position: 1 };
        let columns = definition.columns.iter().map(|column| {
            let name = ast::ColumnName { family: None, name: ident(&column.name) };
            let type_name = ast::TypeName {
                sql_type: column.sql_type.clone(),
                named: None,
                collation: None,
                position: 1,
            };
            let not_null = column.not_null;
            ast::ColumnDefinition { not_null, ..ast::ColumnDefinition::new(name, type_name) }
        });
        let key = definition.columns.iter().take(definition.key_count);
        let key_columns = key.clone().map(|column| {
            ast::KeyColumn::ascending(ast::ColumnName { family: None, name: ident(&column.name) })
        });
        let statement = ast::CreateTable {
            columns: columns.collect(),
            constraints: vec![ast::TableConstraint {
                deferral: ast::Deferral::Never,
                not_valid: false,
                index: ast::IndexClauses::default(),
                name: None,
                kind: ast::ConstraintKind::PrimaryKey(key_columns.collect()),
                position: 1,
            }],
            ..ast::CreateTable::new(TableName { schema: None, name: ident(&definition.name) })
        };
        let nullable: Vec<usize> = key
            .enumerate()
            .filter(|(_, column)| !column.not_null)
            .map(|(position, _)| position)
            .collect();
        let derived = DerivedTable { nullable: &nullable, ..DerivedTable::default() };
        // The positions do not refer to the client's text.
        self.create_new_table(&statement, PUBLIC, derived)
            .map_err(|error| Error { position: None, ..error })
    }

    /// Rejects dropping a table to which coprocessors of other tables write, or detaches these
    /// with CASCADE.
    pub(super) fn release_target(
        &mut self,
        target: &Table,
        cascade: bool,
        dropped_too: &[u32],
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        if self.engine.coprocessors.server_writes_to(target) {
            bail!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop table {} because coprocessors of the server write to it",
                target.name; hint "Remove them from the configuration file and restart the server.");
        }
        for (writer, attached) in self.engine.writers_to(target.id) {
            let Some(table) = catalog.table_stored(writer).cloned() else { continue };
            if dropped_too.contains(&table.oid) {
                continue;
            }
            let name = &attached.record.name;
            if !cascade {
                bail!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop table {} because other objects depend on it", target.name;
                    detail "coprocessor {name} of table {} depends on table {}", table.name, target.name;
                    hint "Use DROP ... CASCADE to drop the dependent objects too.");
            }
            self.lock_table(writer, TableLockMode::AccessExclusive)?;
            // Several of its coprocessors may be detached one by one.
            let catalog = self.changes.catalog(self.engine);
            if let Some(table) = catalog.table(table.oid).cloned() {
                self.detach(&table, name)?;
            }
        }
        Ok(())
    }
}

fn not_attached(table: &Table, name: &Ident) -> Error {
    err!(UNDEFINED_OBJECT: "table \"{}\" has no coprocessor \"{}\" attached", table.name, name.value; at name.position)
}

fn expires_what_is_kept(table: &Table, expiring: &str, keeper: &CoprocessorRecord) -> Error {
    Error::not_supported(
        format!("{expiring} on the output table of a coprocessor"),
        format!(
            "Expired rows of table \"{}\" would be missing from the output of coprocessor \"{}\".",
            table.name, keeper.name
        ),
    )
}

/// Returns the text of an argument for the catalog.
fn argument_text(value: &OptionValue) -> String {
    match value {
        OptionValue::Number(text) | OptionValue::String(text) | OptionValue::Word(text) => {
            text.clone()
        }
        OptionValue::Boolean(value) => value.to_string(),
    }
}
