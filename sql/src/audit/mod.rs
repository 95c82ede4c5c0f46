//! Classes of audited statements: the settings `pgaudit.…`.
//!
//! Source: the names, classes and rules of the extension pgAudit, which logs by class (session
//! audit) and by the privileges of a role on objects (object audit).

use crate::ast::{CopyDirection, Statement};
use crate::statement_log::LoggedStatements;

/// The prefix of the settings. Other names with it are rejected.
pub(crate) const PREFIX: &str = "pgaudit.";

/// The classes, with their names in `pgaudit.log`.
pub(crate) const CLASSES: [(&str, AuditClass); 8] = [
    ("read", AuditClass::Read),
    ("write", AuditClass::Write),
    ("function", AuditClass::Function),
    ("role", AuditClass::Role),
    ("ddl", AuditClass::Ddl),
    ("misc_set", AuditClass::MiscSet),
    ("misc", AuditClass::Misc),
    ("all", AuditClass::All),
];

/// Hint of the error for another class.
pub(crate) const CLASSES_HINT: &str =
    "Classes are read, write, function, role, ddl, misc, misc_set, all and none.";

/// A class of statements, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditClass {
    /// SELECT, COPY … TO
    Read = 1,
    /// INSERT, UPDATE, DELETE, TRUNCATE, COPY … FROM
    Write = 2,
    /// Calls of user-defined functions, and DO.
    Function = 4,
    /// Statements on roles and privileges.
    Role = 8,
    /// Other definitions.
    Ddl = 16,
    /// SET, RESET and others that change settings.
    MiscSet = 32,
    /// Other statements, and those of [`AuditClass::MiscSet`].
    Misc = 32 + 64,
    /// All of them.
    All = 127,
}

/// The parsed values of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AuditSettings {
    /// `pgaudit.log`: bits of the classes.
    classes: u8,
    /// `pgaudit.log_catalog` is off: queries of no user's table are not logged.
    pub skips_catalog: bool,
    /// `pgaudit.log_relation`: an entry for each relation.
    pub by_relation: bool,
    /// `pgaudit.log_statement`: with the text.
    pub with_statement: bool,
    /// `pgaudit.role`: the role whose privileges select objects.
    pub role: Option<Box<str>>,
}

impl AuditSettings {
    /// Reads the values of the settings.
    pub(crate) fn of<'v>(value: impl Fn(&'static str) -> &'v str) -> AuditSettings {
        let is_on = |name: &'static str| value(name) == "on";
        AuditSettings {
            classes: parse_classes(value("pgaudit.log")).unwrap_or(0),
            skips_catalog: !is_on("pgaudit.log_catalog"),
            by_relation: is_on("pgaudit.log_relation"),
            with_statement: is_on("pgaudit.log_statement"),
            role: Some(value("pgaudit.role")).filter(|role| !role.is_empty()).map(Box::from),
        }
    }

    /// Returns whether nothing is logged.
    pub(crate) fn is_off(&self) -> bool {
        self.classes == 0 && self.role.is_none()
    }

    /// Returns whether a class is logged.
    pub(crate) fn logs(&self, class: AuditClass) -> bool {
        let bits = match class {
            AuditClass::Misc => AuditClass::Misc as u8 & !(AuditClass::MiscSet as u8),
            class => class as u8,
        };
        self.classes & bits != 0
    }
}

/// Returns the bits of a list of classes as `ddl, role` or `all, -misc`; `None` if one is unknown.
pub(crate) fn parse_classes(list: &str) -> Option<u8> {
    let mut bits = 0;
    for word in list.split(',').map(|word| word.trim().to_ascii_lowercase()) {
        let name = word.strip_prefix('-');
        if word == "none" {
            bits = 0;
            continue;
        }
        let class = CLASSES.iter().find(|(known, _)| *known == name.unwrap_or(&word));
        let class = class.map(|(_, class)| *class as u8)?;
        bits = if name.is_some() { bits & !class } else { bits | class };
    }
    Some(bits)
}

/// Returns the class of a statement that is not planned.
pub(crate) fn class_of(statement: &Statement) -> AuditClass {
    match statement {
        Statement::Role(_) | Statement::Grant(_) | Statement::Owned(_) => AuditClass::Role,
        Statement::Truncate(_) => AuditClass::Write,
        Statement::Copy(copy) => match copy.direction {
            CopyDirection::FromStdin => AuditClass::Write,
            CopyDirection::ToStdout => AuditClass::Read,
        },
        Statement::Do(_) => AuditClass::Function,
        Statement::Set(_)
        | Statement::Reset(_)
        | Statement::AlterSession { .. }
        | Statement::SetTransaction(_)
        | Statement::SetSessionCharacteristics(_)
        | Statement::SetConstraints(_) => AuditClass::MiscSet,
        Statement::Reindex(_) => AuditClass::Ddl,
        other => match LoggedStatements::least_for(other) {
            LoggedStatements::Ddl => AuditClass::Ddl,
            _ => AuditClass::Misc,
        },
    }
}

/// Returns the name of a class in log entries.
pub(crate) fn name_of(class: AuditClass) -> String {
    let found = CLASSES.iter().find(|(_, known)| *known == class);
    found.map_or_else(String::new, |(name, _)| name.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_classes_are_parsed_in_order() {
        assert_eq!(parse_classes("none"), Some(0));
        assert_eq!(parse_classes("DDL, role"), Some(16 + 8));
        assert_eq!(parse_classes("all,-misc"), Some(127 - 96));
        assert_eq!(parse_classes("all, -misc, misc_set"), Some(127 - 64));
        assert_eq!(parse_classes("ddl,none"), Some(0));
        for bad in ["", "some", "ddl,,role", "-", "read write"] {
            assert_eq!(parse_classes(bad), None, "{bad}");
        }
    }

    #[test]
    fn statements_have_the_classes_of_pgaudit() {
        let class = |text: &str| {
            let parsed = crate::parser::parse_statements(text).unwrap();
            class_of(&parsed[0].statement)
        };
        assert_eq!(class("GRANT SELECT ON t TO a"), AuditClass::Role);
        assert_eq!(class("ALTER ROLE a LOGIN"), AuditClass::Role);
        assert_eq!(class("CREATE TABLE t (a int)"), AuditClass::Ddl);
        assert_eq!(class("CREATE DATABASE d"), AuditClass::Ddl);
        assert_eq!(class("DROP POLICY p ON t"), AuditClass::Ddl);
        assert_eq!(class("COPY t FROM STDIN"), AuditClass::Write);
        assert_eq!(class("COPY t TO STDOUT"), AuditClass::Read);
        assert_eq!(class("DO 'BEGIN END'"), AuditClass::Function);
        assert_eq!(class("SET a.b = 1"), AuditClass::MiscSet);
        assert_eq!(class("VACUUM"), AuditClass::Misc);
    }
}
