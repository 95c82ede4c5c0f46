//! Statement logging by class: the setting `log_statement`.
//!
//! Source: PostgreSQL's `GetCommandLogLevel` (utility.c), which classifies by the statement
//! alone: data changes in a function or in WITH do not count.

use crate::ast::{CopyDirection, Statement};

/// Levels of `log_statement`; each logs also the statements of the levels before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoggedStatements {
    /// No statements.
    None,
    /// DDL statements.
    Ddl,
    /// Data-changing statements, too.
    Mod,
    /// All statements.
    All,
}

impl LoggedStatements {
    /// Parses a value of the setting.
    pub fn named(value: &str) -> LoggedStatements {
        match value {
            "ddl" => LoggedStatements::Ddl,
            "mod" => LoggedStatements::Mod,
            "all" => LoggedStatements::All,
            _ => LoggedStatements::None,
        }
    }

    /// Returns the lowest level that logs a statement.
    pub fn least_for(statement: &Statement) -> LoggedStatements {
        match statement {
            Statement::CreateTable(_)
            | Statement::CreateTableAs(_)
            | Statement::Refresh(_)
            | Statement::CreateSchema(_)
            | Statement::Database(_)
            | Statement::Extension(_)
            | Statement::Role(_)
            | Statement::Grant(_)
            | Statement::Owned(_)
            | Statement::DropNothing(_)
            | Statement::Drop(_)
            | Statement::Comment(_)
            | Statement::Rename(_)
            | Statement::CreateView(_)
            | Statement::CreateSequence(_)
            | Statement::AlterSequence(_)
            | Statement::Type(_)
            | Statement::Function(_)
            | Statement::Trigger(_)
            | Statement::Policy(_)
            | Statement::CreateIndex(_)
            | Statement::AlterTable(_)
            | Statement::AlterIndex(_)
            | Statement::AlterOptions(_) => LoggedStatements::Ddl,
            Statement::Insert(_)
            | Statement::Upsert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Truncate(_) => LoggedStatements::Mod,
            Statement::Copy(copy) if copy.direction == CopyDirection::FromStdin => {
                LoggedStatements::Mod
            }
            Statement::Explain(explain) if explain.analyze => {
                LoggedStatements::least_for(&explain.statement)
            }
            Statement::Prepare(prepare) => LoggedStatements::least_for(&prepare.statement),
            _ => LoggedStatements::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_logged_from_their_class() {
        let least = |text: &str| {
            let parsed = crate::parser::parse_statements(text).unwrap();
            LoggedStatements::least_for(&parsed[0].statement)
        };
        for ddl in [
            "CREATE TABLE t (a int)",
            "CREATE DATABASE d",
            "DROP VIEW v",
            "ALTER TABLE t ADD b int",
        ] {
            assert_eq!(least(ddl), LoggedStatements::Ddl, "{ddl}");
        }
        let changes = ["INSERT INTO t VALUES (1)", "TRUNCATE t", "COPY t FROM STDIN"];
        for change in changes.into_iter().chain(["EXPLAIN ANALYZE DELETE FROM t"]) {
            assert_eq!(least(change), LoggedStatements::Mod, "{change}");
        }
        for other in ["SELECT 1", "COPY t TO STDOUT", "EXPLAIN DELETE FROM t", "BEGIN"] {
            assert_eq!(least(other), LoggedStatements::All, "{other}");
        }
        assert_eq!(least("PREPARE p AS DELETE FROM t"), LoggedStatements::Mod);
    }
}
