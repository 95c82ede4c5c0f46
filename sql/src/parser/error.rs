//! Errors of the parser.

use std::fmt;

pub use types::sqlstate;

/// An error in the text of a statement: invalid syntax, or a feature that is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// PostgreSQL's five-character code.
    pub sqlstate: &'static str,
    /// One sentence, lower case, without a full stop.
    pub message: String,
    /// 1-based character offset into the text, if the error has a position.
    pub position: Option<usize>,
    /// Detail, a full sentence.
    pub detail: Option<String>,
    /// Hint, a full sentence.
    pub hint: Option<String>,
}

/// The hint of statements for functions in Java.
const JARS: &str = "Use CREATE FUNCTION with LANGUAGE sql or LANGUAGE plpgsql.";

/// Hints of constructs that are not supported, where another one has the same effect.
const HINTS: &[(&str, &str)] = &[
    ("ADD JARS or LIST JARS", JARS),
    ("BY NAME", "List the columns of both queries in one order."),
    ("CHECKPOINT", "Use FLUSH table to write the memstores of a table to store files."),
    ("CLUSTER", "Choose a primary key: rows are stored in its order."),
    ("CONNECT BY", "Use WITH RECURSIVE."),
    ("CREATE CDC", "Read the changes with SELECT … FROM t FOR SYSTEM_TIME FROM … TO …."),
    ("CREATE FUNCTION … USING JAR", JARS),
    (
        "CREATE EVENT TRIGGER",
        "Set log_statement to ddl, or use CREATE TRIGGER for the rows of a table.",
    ),
    ("CREATE OR REPLACE CONSTRAINT TRIGGER", "Use DROP TRIGGER, then CREATE CONSTRAINT TRIGGER."),
    ("CREATE RULE", "Use CREATE TRIGGER."),
    ("CREATE TABLE … OF", "Use CREATE TABLE … (LIKE table)."),
    ("CREATE TEMPORARY FUNCTION", JARS),
    ("DELETE JAR", JARS),
    ("DROP CDC", "Omit the statement. The history of a table is part of it."),
    ("FETCH … PERCENT", "Compare percent_rank() in an outer query."),
    ("GRANT ON LANGUAGE", "Omit the statement. Every role may use all languages."),
    ("GROUP BY ALL", "List the expressions."),
    ("INCREMENT", "Use UPSERT … ON DUPLICATE KEY UPDATE n = n + 1, or UPDATE."),
    ("INHERITS", "Use CREATE TABLE … (LIKE table)."),
    ("JSON_TABLE", "Use jsonb_to_recordset() or jsonb_path_query()."),
    ("LIMIT BY", "Compare row_number() in an outer query."),
    ("NO INHERIT", "Omit it. Tables do not inherit from one another."),
    ("ORDER BY ALL", "List the expressions."),
    ("PARTITION BY", "Use CREATE TABLE … SPLIT ON (…), which divides one table into regions."),
    ("PARTITION OF", "Use CREATE TABLE … SPLIT ON (…), which divides one table into regions."),
    ("PIVOT", "Use aggregates with FILTER (WHERE …)."),
    ("QUALIFY", "Compare the window function in an outer query."),
    ("ROW_TIMESTAMP", "Write it after PRIMARY KEY, or after the column in PRIMARY KEY (…)."),
    ("TABLESAMPLE", "Use WHERE random() < 0.1."),
    ("TABLESPACE", "Omit it. All objects are in the data directory."),
    ("TOP", "Use LIMIT."),
    ("TRACE", "Use EXPLAIN (ANALYZE, BUFFERS)."),
    ("UNNEST WITH OFFSET", "Use WITH ORDINALITY."),
    ("a length in octets", "Use bytea; a CHECK on octet_length() can limit it."),
    ("a modified *", "List the columns."),
    ("an exclusion constraint", "Use UNIQUE, if the operators are =."),
];

/// The result of parsing.
pub type Result<T> = std::result::Result<T, ParseError>;

impl ParseError {
    /// Returns an error at a position.
    pub fn new(
        sqlstate: &'static str,
        message: impl Into<String>,
        position: impl Into<Option<usize>>,
    ) -> ParseError {
        ParseError {
            sqlstate,
            message: message.into(),
            position: position.into(),
            detail: None,
            hint: None,
        }
    }

    /// Returns a syntax error.
    pub fn syntax(message: impl Into<String>, position: impl Into<Option<usize>>) -> ParseError {
        ParseError::new(sqlstate::SYNTAX_ERROR, message, position)
    }

    /// Returns `{construct} is not supported`, 0A000, with the construct's hint if there is one.
    pub fn unsupported(
        construct: impl fmt::Display,
        position: impl Into<Option<usize>>,
    ) -> ParseError {
        let construct = construct.to_string();
        let hint = HINTS.iter().find(|(known, _)| *known == construct).map(|(_, hint)| *hint);
        let message = format!("{construct} is not supported");
        let error = ParseError::new(sqlstate::FEATURE_NOT_SUPPORTED, message, position);
        ParseError { hint: hint.map(str::to_owned), ..error }
    }

    /// Returns the same error with a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> ParseError {
        self.detail = Some(detail.into());
        self
    }

    /// Returns the same error with another hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> ParseError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParseError {}
