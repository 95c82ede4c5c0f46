//! Syntax tree of CREATE, ALTER and DROP DATABASE.

use super::Ident;
use super::ddl::OptionValue;
use super::function::SettingClause;
use super::role::Role;

/// A statement on a database.
#[derive(Debug, Clone, PartialEq)]
pub enum DatabaseStatement {
    /// `CREATE DATABASE`
    Create {
        /// Its name.
        name: Ident,
        /// The options, in the order of the text.
        options: Vec<DatabaseOption>,
    },
    /// `ALTER DATABASE`
    Alter {
        /// Its name.
        name: Ident,
        /// The change.
        action: AlterDatabaseAction,
    },
    /// `DROP DATABASE`
    Drop {
        /// Its name.
        name: Ident,
        /// `IF EXISTS`
        if_exists: bool,
        /// `WITH (FORCE)`
        force: bool,
    },
}

/// A change of ALTER DATABASE.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterDatabaseAction {
    /// `RENAME TO`
    Rename(Ident),
    /// `OWNER TO`
    Owner(Role),
    /// `[WITH] option …`
    Options(Vec<DatabaseOption>),
    /// `SET …` and `RESET …`
    Setting(SettingClause),
    /// `REFRESH COLLATION VERSION`
    RefreshCollation,
}

/// An option of CREATE or ALTER DATABASE.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseOption {
    /// Its name, in lower case; `connection_limit` for CONNECTION LIMIT.
    pub name: Ident,
    /// Its value; `None` for DEFAULT.
    pub value: Option<OptionValue>,
    /// The position of the value.
    pub value_position: usize,
}

impl DatabaseStatement {
    /// Returns the text of its command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            DatabaseStatement::Create { .. } => "CREATE DATABASE",
            DatabaseStatement::Alter { .. } => "ALTER DATABASE",
            DatabaseStatement::Drop { .. } => "DROP DATABASE",
        }
    }
}
