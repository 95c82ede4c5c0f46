//! Audit of the statements of a session: entries of the log with target [`TARGET`].
//!
//! A planned statement is audited by the permissions that it needs, also within functions. A
//! utility statement is audited by its class. The text is that of the client's statement.

use crate::audit::{self, AuditClass, AuditSettings};
use crate::binder::RelationUse;
use crate::catalog::access::privilege::{DELETE, INSERT, TRUNCATE, UPDATE};
use crate::catalog::table::Table;
use crate::error::Result;
use crate::parser::ParsedStatement;
use crate::session::prepared::StatementPlan;
use crate::session::statement_executor::StatementExecutor;

/// The log target of the entries.
const TARGET: &str = "bennu::audit";

/// The privileges of statements that write, with their names in entries.
const WRITES: [(u32, &str); 4] =
    [(INSERT, "INSERT"), (UPDATE, "UPDATE"), (DELETE, "DELETE"), (TRUNCATE, "TRUNCATE")];

/// An entry.
struct AuditEntry<'a> {
    /// `SESSION` or `OBJECT`.
    kind: &'static str,
    class: AuditClass,
    command: &'a str,
    /// The noun and the qualified name; empty if the entry is of no object.
    object: (&'a str, &'a str),
}

/// Returns the class and the command of a statement on a relation.
fn class_of(relation: &RelationUse) -> (AuditClass, &'static str) {
    let write = WRITES.iter().find(|(privilege, _)| relation.privileges & privilege != 0);
    write.map_or((AuditClass::Read, "SELECT"), |(_, command)| (AuditClass::Write, command))
}

impl StatementExecutor {
    /// Checks that a plan may be executed, and audits its execution.
    ///
    /// # Errors
    ///
    /// Those of [`StatementPlan::check_readiness`].
    pub(in crate::session) fn check_readiness(&self, planned: &StatementPlan) -> Result<()> {
        planned.check_readiness()?;
        let settings = &self.settings.parsed().audit;
        if !settings.is_off() {
            self.audit_plan(settings, planned);
        }
        Ok(())
    }

    /// Audits a statement that is not planned.
    pub(in crate::session) fn audit_utility(&self, parsed: &ParsedStatement) {
        let settings = &self.settings.parsed().audit;
        let class = audit::class_of(&parsed.statement);
        // The query of COPY … TO is audited as a plan.
        if settings.is_off() || !settings.logs(class) || class == AuditClass::Read {
            return;
        }
        let command = parsed.statement.tag();
        let entry = AuditEntry { kind: "SESSION", class, command, object: ("", "") };
        self.write_entry(settings, &entry);
    }

    /// Audits the rows that COPY … FROM inserts into a table as an INSERT, if the audit role has
    /// privileges on it. The statement itself is audited as a utility statement.
    pub(in crate::session) fn audit_copy(&self, table: &Table, is_granted: impl Fn(u32) -> bool) {
        let settings = &self.settings.parsed().audit;
        let catalog = self.catalog();
        let role = settings.role.as_deref().and_then(|name| catalog.role_named(name));
        if role.is_none_or(|role| !is_granted(role.number)) {
            return;
        }
        let name = format!("{}.{}", table.schema, table.name);
        let object = ("table", name.as_str());
        let (kind, class, command) = ("OBJECT", AuditClass::Write, "INSERT");
        self.write_entry(settings, &AuditEntry { kind, class, command, object });
    }

    fn audit_plan(&self, settings: &AuditSettings, planned: &StatementPlan) {
        let catalog = self.catalog();
        let audit_role = settings.role.as_deref().and_then(|name| catalog.role_named(name));
        let audit_role = audit_role.map(|role| role.number);
        let mut of_statement: Option<(AuditClass, &str)> = None;
        let relations = planned.permissions.relations(&catalog, audit_role);
        for relation in &relations {
            let (class, command) = class_of(relation);
            let is_written = class == AuditClass::Write;
            if of_statement.is_none_or(|(known, _)| is_written && known == AuditClass::Read) {
                of_statement = Some((class, command));
            }
            let entry =
                |kind| AuditEntry { kind, class, command, object: (relation.noun, &relation.name) };
            if relation.is_granted {
                self.write_entry(settings, &entry("OBJECT"));
            }
            if settings.by_relation && settings.logs(class) {
                self.write_entry(settings, &entry("SESSION"));
            }
        }
        let is_of_catalog = relations.is_empty() && settings.skips_catalog;
        let (class, command) = of_statement.unwrap_or((AuditClass::Read, "SELECT"));
        let is_logged_by_relation = settings.by_relation && !relations.is_empty();
        if settings.logs(class) && !is_of_catalog && !is_logged_by_relation {
            let object = ("", "");
            let entry = AuditEntry { kind: "SESSION", class, command, object };
            self.write_entry(settings, &entry);
        }
        if settings.logs(AuditClass::Function) {
            for (noun, name) in planned.permissions.functions(&catalog) {
                let (class, command) = (AuditClass::Function, "EXECUTE");
                let object = (noun, name.as_str());
                let entry = AuditEntry { kind: "SESSION", class, command, object };
                self.write_entry(settings, &entry);
            }
        }
    }

    fn write_entry(&self, settings: &AuditSettings, entry: &AuditEntry<'_>) {
        let roles = self.settings.roles();
        let text = self.activity.statement_text();
        let statement = if settings.with_statement { text } else { "<not logged>".to_owned() };
        let class = audit::name_of(entry.class);
        let (object_type, object) = entry.object;
        tracing::info!(
            target: TARGET, process_id = self.process_id, user = &*roles.session.name,
            role = &*roles.current.name, database = self.database_name(), kind = entry.kind,
            class, command = entry.command, object_type, object, statement, "audit"
        );
    }

    fn database_name(&self) -> String {
        self.engine.record().map_or_else(String::new, |record| record.name.clone())
    }
}
