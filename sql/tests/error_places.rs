//! Positions of errors within definitions: they must be those of the faulty text.

use sql::EngineOptions;

use crate::server::{Server, rows};

/// Statements, each with the text at which PostgreSQL 15 reports its error.
const PLACES: &[(&str, &str)] = &[
    ("CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT $1 %- 2'", "%- 2"),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1; selec 2'", "selec"),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $x$\nSELECT 'é', nope$x$", "nope"),
    ("CREATE FUNCTION f() RETURNS text LANGUAGE sql AS 'SELECT ''it''''s'', nope'", "nope"),
    ("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT a FROM nope; END", "nope"),
    ("CREATE FUNCTION f() RETURNS int RETURN /* x */ 1 + upper(1)", "upper"),
    ("CREATE FUNCTION f(x int DEFAULT y) RETURNS int RETURN 1", "y)"),
    ("CREATE TABLE d (a int, b int GENERATED ALWAYS AS (a + 'x') STORED)", "'x'"),
    ("CREATE TABLE d (a int DEFAULT 1 + upper(1))", "upper"),
    ("SELECT 1 OPERATOR(pg_catalog.@@@) 2", "OPERATOR"),
    ("SELECT 1 ?| 2", "?|"),
];

#[test]
fn definition_errors_have_precise_position() {
    let server = Server::start(EngineOptions::default);
    let mut session = server.session();
    for (statement, at) in PLACES {
        let error = rows(&mut session, statement, &mut |_| {}).unwrap_err();
        let position = error.position.unwrap_or_else(|| panic!("{statement}: {error:?}"));
        let found: String = statement.chars().skip(position - 1).collect();
        assert!(found.starts_with(at), "{statement}: {found}");
    }
}
