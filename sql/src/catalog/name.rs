//! Object names and the search path for unqualified names.

use std::fmt;

pub use crate::ast::TEMP;
pub use crate::catalog::database::BOOTSTRAP_ROLE;
use crate::catalog::policy::RowSecurityMode;
use crate::error::{Error, Result};
use crate::parser;

/// The bootstrap superuser.
pub const OWNER: &str = "bennu";

/// The name of the database.
pub const DATABASE: &str = crate::ast::DATABASE;

/// The schema that every new database has.
pub const PUBLIC: &str = "public";

/// The schema of system objects.
pub const PG_CATALOG: &str = "pg_catalog";

/// The prefix of schemas of temporary objects; the number of the session follows.
pub const TEMP_PREFIX: &str = "pg_temp_";

/// Returns whether a schema is one of temporary objects.
pub fn is_temporary(schema: &str) -> bool {
    schema.starts_with(TEMP_PREFIX)
}

/// The qualified name of a table, index, view or sequence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The schema.
    pub schema: String,
    /// The name within the schema.
    pub name: String,
}

impl ObjectName {
    /// Returns a name in a schema.
    pub fn new(schema: &str, name: &str) -> ObjectName {
        ObjectName { schema: schema.to_owned(), name: name.to_owned() }
    }

    /// Returns the name as system views show it: unqualified for schema `public`.
    pub fn short(&self) -> String {
        match self.schema == PUBLIC {
            true => self.name.clone(),
            false => format!("{}.{}", self.schema, self.name),
        }
    }

    /// Returns a name in schema `public`.
    pub fn public(name: &str) -> ObjectName {
        ObjectName::new(PUBLIC, name)
    }
}

/// SQL text of the name, with its schema.
impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", parser::quoted(&self.schema), parser::quoted(&self.name))
    }
}

/// The schemas that are searched for unqualified names, in order. Some of them may not exist.
/// System objects come before all of them unless the path contains `pg_catalog`. The path of a
/// session also has the time at which the found tables are read, and the current role, because
/// plans depend on them likewise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SearchPath {
    schemas: Vec<String>,
    /// The schema of the session's temporary objects.
    temp: Option<String>,
    /// The time of setting `as_of`.
    as_of: Option<i64>,
    /// Names of relations and columns that do not exist as written are looked up in lower case.
    ignores_case: bool,
    /// The number of the current role.
    role: u32,
    /// The mode of row-level security.
    row_security: RowSecurityMode,
}

impl Default for SearchPath {
    fn default() -> SearchPath {
        SearchPath {
            schemas: vec![PUBLIC.to_owned()],
            temp: None,
            as_of: None,
            ignores_case: false,
            role: BOOTSTRAP_ROLE,
            row_security: RowSecurityMode::On,
        }
    }
}

impl SearchPath {
    /// Parses the value of setting `search_path`; `"$user"` stands for the user's name.
    ///
    /// # Errors
    ///
    /// 22023 if it is not a list of names.
    pub fn parse(value: &str, user: &str) -> Result<SearchPath> {
        let schemas = parser::parse_name_list(value).ok_or_else(|| {
            err!(INVALID_PARAMETER_VALUE: "invalid value for parameter \"search_path\": \"{value}\"";
                detail "List syntax is invalid.")
        })?;
        let known = |name: String| if name == "$user" { user.to_owned() } else { name };
        Ok(SearchPath::of(schemas.into_iter().map(known).collect()))
    }

    /// Returns a path of these schemas.
    pub fn of(schemas: Vec<String>) -> SearchPath {
        SearchPath { schemas, ..SearchPath::default() }
    }

    /// Returns the path with a schema prepended.
    #[must_use]
    pub fn with_first(&self, schema: &str) -> SearchPath {
        let mut path = self.clone();
        path.schemas.insert(0, schema.to_owned());
        path
    }

    /// Returns the path of a session whose temporary objects are in this schema.
    #[must_use]
    pub fn with_temp(mut self, temp: &str) -> SearchPath {
        for schema in self.schemas.iter_mut().filter(|schema| *schema == TEMP) {
            temp.clone_into(schema);
        }
        self.temp = Some(temp.to_owned());
        self
    }

    /// Returns the path of a session that reads tables as they were at a time, in microseconds
    /// since 2000-01-01 UTC. Temporary tables are read as they are.
    #[must_use]
    pub fn with_as_of(self, as_of: Option<i64>) -> SearchPath {
        SearchPath { as_of, ..self }
    }

    /// Returns the path that looks up names as written, or also in lower case.
    #[must_use]
    pub fn with_ignored_case(self, ignores_case: bool) -> SearchPath {
        SearchPath { ignores_case, ..self }
    }

    /// Returns the path of a session with this current role.
    #[must_use]
    pub fn with_role(self, role: u32) -> SearchPath {
        SearchPath { role, ..self }
    }

    /// Returns the number of the current role of the session.
    pub fn role(&self) -> u32 {
        self.role
    }

    /// Returns the path of a session with a mode of row-level security.
    #[must_use]
    pub fn with_row_security(self, row_security: RowSecurityMode) -> SearchPath {
        SearchPath { row_security, ..self }
    }

    /// Returns the mode of row-level security of the session.
    pub fn row_security(&self) -> RowSecurityMode {
        self.row_security
    }

    /// Returns whether names of relations and columns that do not exist as written are looked up in
    /// lower case, in which unquoted names are stored.
    pub fn ignores_case(&self) -> bool {
        self.ignores_case
    }

    /// Returns the time at which tables are read; `None` for the present.
    pub fn as_of(&self) -> Option<i64> {
        self.as_of
    }

    /// Returns the schema of the session's temporary objects.
    pub fn temp(&self) -> Option<&str> {
        self.temp.as_deref()
    }

    /// Returns the schemas that are searched for relations, in order: temporary objects come
    /// first, unless the path contains their schema.
    pub fn of_relations(&self) -> impl Iterator<Item = &String> {
        let first = self.temp.iter().filter(|temp| !self.schemas.contains(temp));
        first.chain(&self.schemas)
    }

    /// Returns the schema of a name in a statement; `None` for the temporary schema of another
    /// session.
    pub fn schema<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        match &self.temp {
            Some(temp) if name == TEMP => Some(temp),
            Some(temp) if is_temporary(name) && name != temp => None,
            _ => Some(name),
        }
    }

    /// Returns the schemas in order.
    pub fn schemas(&self) -> &[String] {
        &self.schemas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_path_is_parsed_as_name_list() {
        let path = |text: &str| SearchPath::parse(text, "ann").map(|path| path.schemas);
        assert_eq!(path("\"$user\", public").unwrap(), ["ann", "public"]);
        assert_eq!(path(" A , \"B c\" ").unwrap(), ["a", "B c"]);
        assert_eq!(path("").unwrap(), [""; 0]);
        assert_eq!(path("a b").unwrap_err().sqlstate, "22023");
        assert_eq!(path("a,").unwrap_err().sqlstate, "22023");
    }

    #[test]
    fn object_names_are_quoted_where_needed() {
        assert_eq!(ObjectName::new("s", "Tab").to_string(), "s.\"Tab\"");
    }
}
