//! SQL scripts in `tests/slt`, each on its own database, through both protocols.
//!
//! `BENNU_SLT_UPDATE=1 cargo test slt::` records the answers into the scripts, or into the one
//! named by `BENNU_SLT`; changed answers must then be reviewed. Answers to portable statements
//! are PostgreSQL's: with the address of a PostgreSQL in `BENNU_ORACLE` (superuser `bennu`, trust
//! authentication) the ignored test compares or records them. It creates the database `bennu` for
//! each script and drops all other roles.

mod engine;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sqllogictest::runner::{default_normalizer, default_validator, strict_column_validator};
use sqllogictest::{AsyncDB, DefaultColumnType, MakeConnection, Runner};

use crate::harness::TestServer;
use crate::slt::engine::{Dialect, Extended, Simple, create_empty_database};

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|name| name == "slt")).collect();
    if let Ok(only) = std::env::var("BENNU_SLT") {
        scripts.retain(|path| path.file_stem().is_some_and(|name| name == only.as_str()));
    }
    scripts.sort();
    scripts
}

/// Runs a script to its end and returns the differences.
async fn run_script<D, M>(mut runner: Runner<D, M>, script: &Path) -> Vec<String>
where
    D: AsyncDB<ColumnType = DefaultColumnType>,
    M: MakeConnection<Conn = D>,
{
    if std::env::var_os("BENNU_SLT_UPDATE").is_some() {
        refuse_swallowed_records(script);
        runner
            .update_test_file(
                script,
                " ",
                default_validator,
                default_normalizer,
                strict_column_validator,
            )
            .await
            .unwrap();
        return Vec::new();
    }
    let mut failures = Vec::new();
    for record in sqllogictest::parse_file(script).unwrap() {
        if let Err(error) = runner.run_async(record).await {
            failures.push(error.display(false).to_string());
        }
    }
    failures
}

/// Refuses a script with an error of several lines that one empty line ends: records after it are
/// part of the expected error, and an update removes them.
fn refuse_swallowed_records(script: &Path) {
    let text = std::fs::read_to_string(script).unwrap();
    let (mut is_error, mut is_expected) = (false, false);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let begins = ["statement ", "query "].iter().any(|word| line.starts_with(word));
        assert!(!(begins && is_expected), "{}: two empty lines end an error", script.display());
        match line {
            "----" => is_expected = is_error,
            "" if lines.peek().is_some_and(|next| next.is_empty()) => is_expected = false,
            _ => {}
        }
        if begins {
            is_error = line.contains(" error");
        }
    }
}

fn assert_no_failures(failures: &[String]) {
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Runs the scripts over the extended protocol; `label` decides about records that are skipped.
async fn run_extended(connect: fn(SocketAddr) -> Extended, label: Option<&str>) {
    let mut failures = Vec::new();
    for script in scripts() {
        let server = TestServer::start();
        let address = server.address();
        let mut runner = Runner::new(|| async { Ok(connect(address)) });
        label.into_iter().for_each(|label| runner.add_label(label));
        runner.with_column_validator(strict_column_validator);
        failures.extend(run_script(runner, &script).await);
    }
    assert_no_failures(&failures);
}

#[tokio::test]
async fn scripts_over_extended_protocol() {
    run_extended(|address| Extended::connect(address, Dialect::Bennu), None).await;
}

#[tokio::test]
async fn scripts_over_simple_protocol() {
    if std::env::var_os("BENNU_SLT_UPDATE").is_some() {
        return;
    }
    let mut failures = Vec::new();
    for script in scripts() {
        let server = TestServer::start();
        let address = server.address();
        let runner = Runner::new(|| Simple::connect(address, Dialect::Bennu));
        failures.extend(run_script(runner, &script).await);
    }
    assert_no_failures(&failures);
}

/// Runs the scripts with STORAGE = CELL as the default. Records that show cells or the storage are
/// marked `skipif column_cells`.
#[tokio::test]
async fn scripts_with_column_cells() {
    if std::env::var_os("BENNU_SLT_UPDATE").is_none() {
        run_extended(Extended::connect_with_column_cells, Some("column_cells")).await;
    }
}

/// Scripts whose statements PostgreSQL supports, except those marked `onlyif bennu`.
const PORTABLE: &[&str] = &[
    "information_visibility",
    "instead_of_triggers",
    "maintenance_roles",
    "violation_details",
    "security_barrier",
    "distinct_prefix",
    "keyset_pages",
    "generated_keys",
    "bucketed_keys",
    "execute_arguments",
    "object_names",
    "volatile_calls",
    "extensions",
    "plpgsql_transactions",
    "flushed_columns",
    "relation_sizes",
    "large_index_builds",
    "signature_columns",
    "equality",
    "function_settings",
    "input_output_functions",
    "geometry",
    "set_columns",
    "json_keys",
    "word_types",
    "dropped_columns",
    "date_limits",
    "json_values",
    "call_resolution",
    "view_rewrite",
    "view_targets",
    "signature_types",
    "parameter_types",
    "plain_strings",
    "transaction_modes",
    "advisory_locks",
    "lazy_subqueries",
    "lazy_columns",
    "constants_that_fail",
    "computed_once",
    "postgresql_attributes",
    "volatile_columns",
    "name_resolution",
    "roles",
    "session_literals",
    "domain_parts",
    "generated_names",
    "function_precedence",
    "dependencies",
    "value_extremes",
    "information_usage",
    "definition_errors",
    "definition_rules",
    "definitions_and_sessions",
    "renamed_relations",
    "operators",
    "type_names",
    "alter_primary_key",
    "deferrable",
    "aggregates",
    "arrays",
    "altered",
    "alter_columns",
    "alter_table",
    "chained_transactions",
    "check_option",
    "client_queries",
    "comments",
    "collations",
    "composite_types",
    "concurrent_indexes",
    "create_table",
    "called_in_tables",
    "cursors",
    "tables_in_use",
    "two_sessions",
    "steps_and_cursors",
    "locking_limits",
    "names_like_words",
    "nested_targets",
    "window_ranges",
    "duplicate_keys",
    "domain_parameters",
    "function_attributes",
    "expression_definitions",
    "function_names",
    "key_words",
    "read_only",
    "cursor_snapshots",
    "current_of_moved",
    "create_table_as",
    "date_parsing",
    "create_table_like",
    "deferrable_primary_key",
    "deferrable_unique",
    "definitions",
    "delete",
    "distinct",
    "distinct_on",
    "documentation_forms",
    "domain_arrays",
    "jsonpath_errors",
    "record_images",
    "domains",
    "disjunctive_exists",
    "empty_joins",
    "extremes",
    "index_combinations",
    "range_lookups",
    "row_goals",
    "enums",
    "foreign_keys",
    "function_bodies",
    "function_calls",
    "function_values",
    "functions",
    "generated",
    "group_by",
    "identity_columns",
    "grouping_sets",
    "indexes",
    "insert",
    "joins",
    "join_locks",
    "called_changes",
    "locked_views",
    "information_functions",
    "information_schema",
    "json",
    "json_records",
    "keys",
    "lateral",
    "maintained_views",
    "materialized_views",
    "merge",
    "nested_queries",
    "no_primary_key",
    "nulls_not_distinct",
    "order_limit",
    "more_types",
    "pairs",
    "partial_indexes",
    "pg_catalog",
    "row_locks",
    "row_queries",
    "schemas",
    "records",
    "select",
    "select_sets",
    "sql2016",
    "schema_elements",
    "sequences",
    "set_functions",
    "set_operations",
    "session_values",
    "settings",
    "settings_of_clients",
    "subscripts",
    "subqueries",
    "search_cycle",
    "search_path",
    "subqueries_in_changes",
    "subqueries_written_twice",
    "tablesample",
    "system_relations",
    "system_columns",
    "temporary_tables",
    "text_forms",
    "top_n",
    "truncate",
    "transactions",
    "types",
    "updatable_views",
    "update",
    "update_from",
    "user_functions",
    "window",
    "with",
    "with_changes",
    "disabled_triggers",
    "rows_on_demand",
    "view_defaults",
    "views",
    "quantified",
    "escapes",
    "variadic",
    "query_forms",
    "current_of",
    "scroll_cursors",
    "regular_expressions",
    "plpgsql_do",
    "plpgsql_functions",
    "inverted_indexes",
    "inverted_indexes_of_jsonb",
    "triggers",
    "trigger_definitions",
    "trigger_statements",
    "default_privileges",
    "owned_objects",
    "security_definer",
    "granted_privileges",
    "row_security",
    "row_security_leaks",
];

#[tokio::test]
#[ignore = "needs a PostgreSQL 15 at BENNU_ORACLE"]
async fn scripts_match_postgresql() {
    let address = std::env::var("BENNU_ORACLE").unwrap().parse().unwrap();
    let mut failures = Vec::new();
    for script in scripts() {
        let name = script.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if !PORTABLE.contains(&name) {
            continue;
        }
        create_empty_database(address).await.unwrap();
        let mut runner =
            Runner::new(|| async { Ok(Extended::connect(address, Dialect::Postgres)) });
        runner.with_column_validator(strict_column_validator);
        failures.extend(run_script(runner, &script).await);
    }
    assert_no_failures(&failures);
}
