//! Table of the implemented settings, with their defaults and values.
//!
//! [`settings`](crate::settings) merges it with PostgreSQL's settings that are accepted without
//! effect.

use super::{Kind, Spec, spec};

/// `server_version`: the PostgreSQL version of language and protocol, followed by the version of
/// bennu.
const SERVER_VERSION: &str = concat!("15.0 (bennu ", env!("CARGO_PKG_VERSION"), ")");

const ISOLATIONS: &[&str] =
    &["serializable", "repeatable read", "read committed", "read uncommitted"];
/// Names of the only locale.
const LOCALES: &[&str] = &["C", "POSIX", "C.UTF-8", "C.UTF8"];
const INTERVALS: &[&str] = &["postgres", "postgres_verbose", "sql_standard", "iso_8601"];
const LOGGED: &[&str] = &["none", "ddl", "mod", "all"];
pub(super) const LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "info", "notice", "warning", "error",
];

/// Implemented settings, and those for which only the default is implemented.
pub(super) const OWN: &[Spec] = &[
    spec("application_name", "", Kind::Name, true, "Name of the client program."),
    spec(
        "array_nulls",
        "on",
        Kind::Only(&["on", "true", "1", "yes"]),
        false,
        "NULL in the text of an array is a NULL.",
    ),
    spec("bytea_output", "hex", Kind::Word(&["escape", "hex"]), false, "Text form of bytea."),
    spec(
        "check_function_bodies",
        "on",
        Kind::Bool,
        false,
        "Whether the body of a function is checked when it is created.",
    ),
    spec("client_encoding", "UTF8", Kind::Encoding, true, "Encoding of the client's text."),
    spec(
        "client_min_messages",
        "notice",
        Kind::Word(LEVELS),
        false,
        "Least severe message that is sent.",
    ),
    spec(
        "consistency",
        "STRONG",
        Kind::Word(&["STRONG", "TIMELINE"]),
        false,
        "Whether reads may go to a region replica when the primary does not answer.",
    ),
    spec(
        "coprocessor_failures_max",
        "",
        Kind::Fixed,
        false,
        "Failures in a row after which a coprocessor is suspended.",
    ),
    spec(
        "coprocessor_time_limit",
        "",
        Kind::Fixed,
        false,
        "Time that a call of a coprocessor may take; 0: no limit.",
    ),
    spec(
        "DateStyle",
        "ISO, MDY",
        Kind::Dates,
        true,
        "Text form of dates, and the order of day, month and year in what is read.",
    ),
    spec(
        "deadlock_timeout",
        "1s",
        Kind::Milliseconds,
        false,
        "How long a statement waits for a lock before it looks for a deadlock.",
    ),
    spec(
        "default_table_access_method",
        "heap",
        Kind::Only(&["heap"]),
        false,
        "How tables are kept.",
    ),
    spec(
        "default_tablespace",
        "",
        Kind::Only(&["", "pg_default"]),
        false,
        "Where tables are kept: the data directory.",
    ),
    spec(
        "default_transaction_deferrable",
        "off",
        Kind::Bool,
        false,
        "Whether new transactions that are SERIALIZABLE and READ ONLY wait for a safe snapshot.",
    ),
    spec(
        "default_transaction_isolation",
        "read committed",
        Kind::Word(ISOLATIONS),
        false,
        "Isolation of new transactions.",
    ),
    spec(
        "default_transaction_read_only",
        "off",
        Kind::Bool,
        true,
        "Whether new transactions are read only.",
    ),
    spec(
        "extra_float_digits",
        "1",
        Kind::Integer(-15, 3),
        false,
        "Digits of floats beyond 15 or 6; above 0: the fewest that give the same value.",
    ),
    spec("handlers", "", Kind::Fixed, false, "Long statements that compute at a time."),
    spec(
        "idle_in_transaction_session_timeout",
        "0",
        Kind::Milliseconds,
        false,
        "Longest time a transaction may wait for its client; 0: no limit.",
    ),
    spec(
        "idle_session_timeout",
        "0",
        Kind::Milliseconds,
        false,
        "Longest time a session without a transaction may wait for its client; 0: no limit.",
    ),
    spec("in_hot_standby", "off", Kind::Fixed, true, "Whether this is a standby."),
    spec("integer_datetimes", "on", Kind::Fixed, true, "Dates are whole numbers."),
    spec("IntervalStyle", "postgres", Kind::Word(INTERVALS), true, "Text form of intervals."),
    spec("is_superuser", "on", Kind::Fixed, true, "Whether the user is a superuser."),
    spec("lc_monetary", "C", Kind::Only(LOCALES), false, "Locale of amounts of money."),
    spec("lc_numeric", "C", Kind::Only(LOCALES), false, "Locale of numbers."),
    spec("lc_time", "C", Kind::Only(LOCALES), false, "Locale of dates."),
    spec("lock_timeout", "0", Kind::Milliseconds, false, "Longest wait for a lock; 0: no limit."),
    spec("log_connections", "off", Kind::Fixed, false, "Whether connections are logged."),
    spec("log_disconnections", "off", Kind::Fixed, false, "Whether ends of sessions are logged."),
    spec(
        "log_statement",
        "none",
        Kind::Word(LOGGED),
        false,
        "Which statements are logged: of ddl, of mod also those that change data.",
    ),
    spec("max_connections", "1000", Kind::Fixed, false, "Clients that may be connected at a time."),
    spec("max_identifier_length", "63", Kind::Fixed, false, "Bytes of an identifier."),
    spec("max_index_keys", "32", Kind::Fixed, false, "Columns of a key, as clients ask for it."),
    spec(
        "max_prepared_transactions",
        "64",
        Kind::Fixed,
        false,
        "Transactions that may be prepared at a time.",
    ),
    spec(
        "portable_definitions",
        "off",
        Kind::Bool,
        false,
        "Whether the catalog leaves out the options of tables that PostgreSQL does not know.",
    ),
    spec(
        "primary_call_timeout",
        "10ms",
        Kind::Milliseconds,
        false,
        "How long a TIMELINE read waits for the primary's region before it asks a replica.",
    ),
    spec(
        "quote_all_identifiers",
        "off",
        Kind::Only(&["off", "false", "0", "no"]),
        false,
        "Whether definitions quote every name.",
    ),
    spec("role", "none", Kind::Text, false, "The role that the session has taken, or none."),
    spec(
        "row_security",
        "on",
        Kind::Bool,
        false,
        "Off refuses queries whose rows a policy would hide; there are no policies.",
    ),
    spec(
        "search_path",
        "\"$user\", public",
        Kind::Names,
        false,
        "Schemas that names are looked up in.",
    ),
    spec("server_encoding", "UTF8", Kind::Fixed, true, "Encoding of stored text."),
    spec("server_version", SERVER_VERSION, Kind::Fixed, true, "Version of the server."),
    spec(
        "server_version_num",
        "150000",
        Kind::Fixed,
        false,
        "PostgreSQL's version that is spoken.",
    ),
    spec("session_authorization", "bennu", Kind::Fixed, true, "The user."),
    spec(
        "session_replication_role",
        "origin",
        Kind::Word(&["origin", "local", "replica"]),
        false,
        "As a replica, foreign keys are not checked.",
    ),
    spec(
        "standard_conforming_strings",
        "on",
        Kind::Bool,
        true,
        "Backslashes in '…' are plain characters.",
    ),
    spec(
        "statement_timeout",
        "0",
        Kind::Milliseconds,
        false,
        "Longest time of a statement; 0: no limit.",
    ),
    spec(
        "superuser_reserved_connections",
        "3",
        Kind::Fixed,
        false,
        "Connections that only the owner of the database may use.",
    ),
    spec(
        "synchronize_seqscans",
        "on",
        Kind::Bool,
        false,
        "Accepted, as PostgreSQL has it; without effect here.",
    ),
    spec(
        "synchronous_commit",
        "on",
        Kind::Word(&["on", "off", "local", "remote_write", "remote_apply"]),
        false,
        "Whether a commit waits for the disk.",
    ),
    spec(
        "temp_file_limit",
        "-1",
        Kind::KilobyteLimit,
        false,
        "What a statement may set aside on disk at a time; -1: no limit.",
    ),
    spec(
        "temp_tablespaces",
        "",
        Kind::Only(&["", "pg_default"]),
        false,
        "Where temporary tables are kept: the data directory.",
    ),
    spec("TimeZone", "UTC", Kind::Zone, true, "The session's time zone."),
    spec(
        "transaction_deferrable",
        "off",
        Kind::Bool,
        false,
        "Whether the transaction, if SERIALIZABLE and READ ONLY, waits for a safe snapshot.",
    ),
    spec(
        "transaction_isolation",
        "read committed",
        Kind::Word(ISOLATIONS),
        false,
        "Isolation of the transaction.",
    ),
    spec(
        "transaction_read_only",
        "off",
        Kind::Bool,
        false,
        "Whether the transaction is read only.",
    ),
    spec(
        "transform_null_equals",
        "off",
        Kind::Only(&["off", "false", "0", "no"]),
        false,
        "Whether x = NULL means x IS NULL.",
    ),
    spec("work_mem", "64MB", Kind::Kilobytes, false, "Memory of a sort, join or aggregate."),
];
