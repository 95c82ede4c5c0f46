//! Random PL/pgSQL: valid and invalid blocks, functions and procedures.
//!
//! Statements and expressions are generated without regard to types, over variables of all kinds
//! of types: records, composite types, domains, arrays, enums, cursors. The server must neither
//! panic nor report an internal error, and the session must continue.
//!
//! `BENNU_BLOCKS=100000` sets the number of bodies, `BENNU_SEED=7` the first seed.

use crate::harness::TestServer;
use crate::random_queries::seeded_random::SeededRandom;
use crate::raw::{Raw, sqlstate};

/// Number of bodies in the default run.
const BODIES: usize = 1_500;
/// Number of bodies after which tables, types and functions are re-created.
const BODIES_OF_A_SETUP: usize = 100;
/// Maximum nesting depth of statements.
const DEPTH: usize = 3;

const SETUP: &[&str] = &[
    "ROLLBACK",
    "DROP SCHEMA IF EXISTS fuzz CASCADE",
    "CREATE SCHEMA fuzz",
    "SET search_path = fuzz",
    "SET statement_timeout = '500ms'",
    "SET client_min_messages = 'error'",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE TYPE nest AS (p pair, l int[], m mood)",
    "CREATE DOMAIN posint AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN short AS text CHECK (length(VALUE) < 4)",
    "CREATE DOMAIN ints AS int[] CHECK (cardinality(VALUE) < 4)",
    "CREATE DOMAIN part AS pair CHECK ((VALUE).a IS NOT NULL)",
    "CREATE TABLE t (id int PRIMARY KEY, a int, b text, p pair, l int[], d posint)",
    "INSERT INTO t VALUES (1, 10, 'one', (1, 'x'), '{1,2}', 1), (2, NULL, 'two', NULL, '{}', 2), \
     (3, 30, NULL, (NULL, NULL), NULL, NULL)",
    "CREATE TABLE u (id int, m mood, n nest, j jsonb)",
    "INSERT INTO u VALUES (1, 'sad', ROW((1, 'x'), '{1}', 'ok'), '{\"a\": [1, 2]}'), (2, NULL, NULL, NULL)",
    "CREATE FUNCTION plus(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN i + 1; END'",
    "CREATE FUNCTION pairs(n int) RETURNS SETOF pair LANGUAGE plpgsql AS \
     'BEGIN FOR i IN 1..n LOOP RETURN NEXT (i, i::text); END LOOP; END'",
    "CREATE FUNCTION rec() RETURNS record LANGUAGE plpgsql AS 'BEGIN RETURN (1, ''two''); END'",
    "CREATE FUNCTION two(OUT x int, OUT y pair) LANGUAGE plpgsql AS 'BEGIN x := 1; y := (2, ''b''); END'",
    "CREATE PROCEDURE change(INOUT x int) LANGUAGE plpgsql AS \
     'BEGIN UPDATE t SET a = x; x := x + 1; END'",
];

const TYPES: &[&str] = &[
    "int",
    "bigint",
    "text",
    "numeric",
    "bool",
    "int[]",
    "text[]",
    "record",
    "record",
    "pair",
    "nest",
    "mood",
    "posint",
    "short",
    "ints",
    "part",
    "t",
    "t%ROWTYPE",
    "t.p%TYPE",
    "t.l%TYPE",
    "u",
    "jsonb",
    "timestamptz",
    "interval",
    "date",
    "refcursor",
    "bytea",
    "float8",
    "uuid",
    "pair[]",
    "mood[]",
    "posint[]",
    "varchar(3)",
    "char(2)",
    "numeric(4,2)",
    "int2",
    "name",
    "oid",
    "regclass",
    "nest[]",
];

const LITERALS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "2147483647",
    "9223372036854775807",
    "1.5",
    "'NaN'::float8",
    "NULL",
    "true",
    "false",
    "''",
    "'a'",
    "'long text'",
    "'1'",
    "'{1,2,3}'",
    "'{}'",
    "'{{1,2},{3,4}}'::int[]",
    "ARRAY[1,2]",
    "ARRAY[NULL,'x']",
    "'[5:6]={1,2}'::int[]",
    "(1,'two')",
    "ROW()",
    "ROW(1)",
    "ROW(1,2,3)",
    "ROW((1,'x'),'{1}','ok')",
    "(1,'two')::pair",
    "'(1,x)'::pair",
    "NULL::pair",
    "ROW(NULL,NULL)::pair",
    "'sad'::mood",
    "'{\"a\":[1,{\"b\":2}]}'::jsonb",
    "now()",
    "'1 day'::interval",
    "'2024-02-29'::date",
    "'\\x00ff'::bytea",
    "1e300",
    "ARRAY[(1,'a')::pair]",
    "ARRAY[]::pair[]",
    "NULL::t",
    "'t'::regclass",
];

const OPERATORS: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "=",
    "<>",
    "<",
    ">=",
    "AND",
    "OR",
    "->",
    "->>",
    "@>",
    "IS DISTINCT FROM",
    "&",
    "^",
    "LIKE",
];

const FIELDS: &[&str] = &["a", "b", "p", "l", "m", "id", "f1", "f2", "d", "x", "n", "j", "nosuch"];

const FUNCTIONS: &[&str] = &[
    "length",
    "coalesce",
    "array_length",
    "array_append",
    "cardinality",
    "to_jsonb",
    "row_to_json",
    "plus",
    "upper",
    "abs",
    "pairs",
    "rec",
    "two",
    "unnest",
    "array_to_string",
    "jsonb_build_object",
    "format",
    "greatest",
    "nullif",
    "quote_literal",
    "pg_typeof",
    "generate_series",
    "num_nulls",
    "concat",
    "sum",
    "count",
    "array_agg",
    "row_number",
    "jsonb_populate_record",
    "to_char",
    "substr",
    "nosuch",
];

const CONDITIONS: &[&str] = &[
    "others",
    "division_by_zero",
    "unique_violation",
    "SQLSTATE '22012'",
    "no_data_found",
    "assert_failure",
    "data_exception OR others",
    "raise_exception",
    "query_canceled",
    "invalid_cursor_state",
];

const DIAGNOSTICS: &[&str] = &["ROW_COUNT", "PG_CONTEXT", "RETURNED_SQLSTATE", "MESSAGE_TEXT"];

/// Generator of bodies.
struct BodyGenerator {
    chance: SeededRandom,
    /// The variables in scope.
    variables: Vec<String>,
    /// The labels of the enclosing loops and blocks.
    labels: Vec<String>,
    names: usize,
}

impl BodyGenerator {
    fn new(seed: u64) -> BodyGenerator {
        BodyGenerator {
            chance: SeededRandom::new(seed),
            variables: Vec::new(),
            labels: Vec::new(),
            names: 0,
        }
    }

    fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.chance.one_of::<&'static str>(words)
    }

    fn new_name(&mut self, letter: char) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    /// Returns statements that define functions and call them, or one DO.
    fn body(&mut self) -> Vec<String> {
        (self.variables, self.labels) = (Vec::new(), Vec::new());
        let way = self.chance.below(10);
        if way < 5 {
            return vec![format!("DO $do$ {} $do$", self.block(DEPTH))];
        }
        let parameter = self.word(TYPES);
        let argument = self.expression(1);
        self.variables.extend(["x".to_owned(), "y".to_owned()]);
        let kind = self.word(&["", "", "IN ", "INOUT ", "OUT ", "VARIADIC "]);
        if way == 5 {
            let block = self.block(DEPTH);
            return vec![
                "DROP PROCEDURE IF EXISTS fz".to_owned(),
                format!(
                    "CREATE PROCEDURE fz(INOUT x int, {kind}y {parameter}) LANGUAGE plpgsql AS $f$ {block} $f$"
                ),
                format!("CALL fz(1, {argument})"),
                "DROP ROUTINE fz".to_owned(),
            ];
        }
        let result = match self.chance.below(8) {
            0 => "RETURNS TABLE (c1 int, c2 text)".to_owned(),
            1 => "RETURNS void".to_owned(),
            2 => "RETURNS SETOF record".to_owned(),
            3 => String::new(),
            4 | 5 => format!("RETURNS SETOF {}", self.word(TYPES)),
            _ => format!("RETURNS {}", self.word(TYPES)),
        };
        let volatility = self.word(&["", "STABLE", "IMMUTABLE STRICT"]);
        let block = self.block(DEPTH);
        let call = match self.chance.below(4) {
            0 => format!("SELECT fz(1, {argument})"),
            1 => format!("SELECT * FROM fz(1, {argument}) AS f (c1 int, c2 text)"),
            2 => format!("SELECT (fz(id, {argument})).* FROM t"),
            _ => format!("SELECT * FROM fz(1, {argument})"),
        };
        vec![
            format!(
                "CREATE FUNCTION fz(x int, {kind}y {parameter}) {result} LANGUAGE plpgsql {volatility} \
                 AS $f$ {block} $f$"
            ),
            call.clone(),
            call,
            "DROP ROUTINE fz".to_owned(),
        ]
    }

    /// Returns a block, optionally with a label.
    fn block(&mut self, depth: usize) -> String {
        let (variables, labels) = (self.variables.len(), self.labels.len());
        let mut text = String::new();
        if self.chance.percent(20) {
            let label = self.new_name('l');
            text = format!("<<{label}>> ");
            self.labels.push(label);
        }
        text.push_str("DECLARE ");
        for _ in 0..self.chance.below(5) {
            let declaration = self.declaration();
            text.push_str(&declaration);
        }
        text.push_str("BEGIN ");
        text.push_str(&self.statements(depth));
        if self.chance.percent(30) {
            text.push_str("EXCEPTION ");
            for _ in 0..=self.chance.below(2) {
                let (condition, handler) =
                    (self.word(CONDITIONS), self.statements(depth.saturating_sub(1)));
                text.push_str(&format!("WHEN {condition} THEN {handler}"));
            }
        }
        self.variables.truncate(variables);
        self.labels.truncate(labels);
        text + "END;"
    }

    fn declaration(&mut self) -> String {
        let name = self.new_name('v');
        let declared = match self.chance.below(12) {
            0 => format!("{name} CURSOR FOR {}; ", self.query(1)),
            1 => format!("{name} CURSOR (k int) FOR SELECT * FROM t WHERE id > k; "),
            2 => {
                let other = self.variable();
                format!("{name} {other}%TYPE; ")
            }
            3..=6 => format!("{name} {}; ", self.word(TYPES)),
            7 => format!("{name} CONSTANT {} := {}; ", self.word(TYPES), self.expression(1)),
            8 => format!("{name} {} NOT NULL := {}; ", self.word(TYPES), self.expression(1)),
            _ => format!("{name} {} := {}; ", self.word(TYPES), self.expression(1)),
        };
        self.variables.push(name);
        declared
    }

    fn variable(&mut self) -> String {
        match self.variables.is_empty() || self.chance.percent(3) {
            true => self.word(&["nosuch", "found", "sqlstate", "t", "id"]).to_owned(),
            false => self.chance.one_of(&self.variables).clone(),
        }
    }

    fn target(&mut self) -> String {
        let variable = self.variable();
        match self.chance.below(8) {
            0 => format!("{variable}.{}", self.word(FIELDS)),
            1 => format!("{variable}[{}]", self.expression(1)),
            2 => format!("{variable}[{}].{}", self.chance.between(-1, 3), self.word(FIELDS)),
            3 => format!("{variable}.{}.{}", self.word(FIELDS), self.word(FIELDS)),
            4 => format!("{variable}.{}[{}]", self.word(FIELDS), self.expression(0)),
            5 => format!("{variable}[1:{}]", self.chance.between(-1, 3)),
            _ => variable,
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.chance.percent(50) {
                true => self.word(LITERALS).to_owned(),
                false => self.variable(),
            };
        }
        let under = depth - 1;
        match self.chance.below(16) {
            0 | 1 => self.word(LITERALS).to_owned(),
            2 | 3 => self.variable(),
            4 => format!("{}.{}", self.variable(), self.word(FIELDS)),
            5 => format!("({}).{}", self.expression(under), self.word(FIELDS)),
            6 => format!("({})[{}]", self.expression(under), self.expression(under)),
            7 => format!("({})::{}", self.expression(under), self.word(TYPES)),
            8 => format!("({})", self.query(under)),
            9 => format!("ROW({}, {})", self.expression(under), self.expression(under)),
            10 => format!("ARRAY[{}, {}]", self.expression(under), self.expression(under)),
            11 => {
                let condition = self.expression(under);
                format!(
                    "CASE WHEN {condition} THEN {} ELSE {} END",
                    self.expression(under),
                    self.expression(0)
                )
            }
            12 => format!("({} IS NULL)", self.expression(under)),
            13 => {
                let arguments: Vec<String> =
                    (0..self.chance.below(3)).map(|_| self.expression(under)).collect();
                format!("{}({})", self.word(FUNCTIONS), arguments.join(", "))
            }
            _ => format!(
                "({} {} {})",
                self.expression(under),
                self.word(OPERATORS),
                self.expression(under)
            ),
        }
    }

    fn query(&mut self, depth: usize) -> String {
        match self.chance.below(8) {
            0 => "SELECT * FROM t".to_owned(),
            1 => "SELECT t FROM t ORDER BY id".to_owned(),
            2 => format!("SELECT {} FROM t WHERE id < 3", self.expression(depth)),
            3 => format!("SELECT {}, {}", self.expression(depth), self.expression(depth)),
            4 => format!("VALUES ({}), ({})", self.expression(0), self.expression(0)),
            5 => "SELECT * FROM pairs(2)".to_owned(),
            6 => format!("SELECT u.*, {} FROM u", self.expression(depth)),
            _ => format!("SELECT {}", self.expression(depth)),
        }
    }

    fn statements(&mut self, depth: usize) -> String {
        let count = 1 + self.chance.below(4);
        (0..count).map(|_| self.statement(depth) + " ").collect()
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth > 0 && self.chance.percent(35) {
            return self.compound(depth - 1);
        }
        match self.chance.below(24) {
            0..=5 => format!("{} := {};", self.target(), self.expression(2)),
            6 => format!("PERFORM {};", self.expression(2)),
            7 => format!(
                "SELECT {}, {} INTO {}, {};",
                self.expression(1),
                self.expression(1),
                self.target(),
                self.target()
            ),
            8 => {
                let query = self.query(1).replacen("SELECT ", "", 1);
                format!("SELECT {query} INTO {}{};", self.word(&["", "STRICT "]), self.target())
            }
            9 => self.change(),
            10 | 11 => self.dynamic(),
            12 => format!(
                "GET {}DIAGNOSTICS {} = {};",
                self.word(&["", "STACKED "]),
                self.target(),
                self.word(DIAGNOSTICS)
            ),
            13..=15 => self.cursor(),
            16 => self.raise(),
            17 => match self.chance.below(4) {
                0 => "RETURN;".to_owned(),
                1 => format!("RETURN {};", self.variable()),
                _ => format!("RETURN {};", self.expression(2)),
            },
            18 => format!("RETURN NEXT {};", self.expression(2)),
            19 => format!("RETURN QUERY {};", self.query(1)),
            20 => format!(
                "RETURN QUERY EXECUTE {} USING {};",
                self.text_of_query(),
                self.expression(1)
            ),
            21 => {
                let label = match self.labels.is_empty() {
                    true => String::new(),
                    false => self.chance.one_of(&self.labels).clone(),
                };
                format!("{} {label} WHEN {};", self.word(&["EXIT", "CONTINUE"]), self.expression(1))
            }
            22 => format!("CALL change({});", self.target()),
            _ => self
                .word(&[
                    "NULL;",
                    "COMMIT;",
                    "ROLLBACK;",
                    "SET LOCAL work_mem = '1MB';",
                    "ASSERT false;",
                ])
                .to_owned(),
        }
    }

    fn compound(&mut self, depth: usize) -> String {
        match self.chance.below(9) {
            0 | 1 => self.block(depth),
            2 => {
                let (condition, then) = (self.expression(1), self.statements(depth));
                let (other, middle) = (self.expression(1), self.statements(depth));
                format!(
                    "IF {condition} THEN {then}ELSIF {other} THEN {middle}ELSE {}END IF;",
                    self.statements(depth)
                )
            }
            3 => {
                let operand =
                    if self.chance.percent(50) { self.expression(1) } else { String::new() };
                let (when, then) = (self.expression(1), self.statements(depth));
                let otherwise = match self.chance.percent(50) {
                    true => format!("ELSE {}", self.statements(depth)),
                    false => String::new(),
                };
                format!("CASE {operand} WHEN {when} THEN {then}{otherwise}END CASE;")
            }
            _ => self.loop_statement(depth),
        }
    }

    fn loop_statement(&mut self, depth: usize) -> String {
        let label = self.new_name('l');
        self.labels.push(label.clone());
        let name = match self.chance.percent(40) {
            true => self.variable(),
            false => self.new_name('r'),
        };
        let head = match self.chance.below(6) {
            0 => format!(
                "FOR {name} IN {}1..{} BY {}",
                self.word(&["", "REVERSE "]),
                self.expression(0),
                self.chance.between(0, 2)
            ),
            1 | 2 => format!("FOR {name} IN {}", self.query(1)),
            3 => format!(
                "FOR {name} IN EXECUTE {} USING {}",
                self.text_of_query(),
                self.expression(0)
            ),
            4 => {
                let slice = self.word(&["", "SLICE 1", "SLICE 2", "SLICE 0"]);
                format!("FOREACH {} {slice} IN ARRAY {}", self.target(), self.expression(1))
            }
            _ => format!("FOR {name} IN {}", self.variable()),
        };
        let count = self.variables.len();
        self.variables.push(name);
        let body = self.statements(depth);
        self.variables.truncate(count);
        self.labels.pop();
        format!("<<{label}>> {head} LOOP {body}END LOOP {label};")
    }

    fn change(&mut self) -> String {
        let (value, other) = (self.expression(1), self.expression(1));
        let returning = match self.chance.percent(50) {
            true => format!(
                " RETURNING {} INTO {}",
                self.word(&["*", "id, a", "p", "t", "l"]),
                self.target()
            ),
            false => String::new(),
        };
        match self.chance.below(5) {
            0 => format!("INSERT INTO t (id, a) VALUES ({value}, {other}){returning};"),
            1 => format!("UPDATE t SET p = {value}, l = {other}{returning};"),
            2 => format!("UPDATE t SET p.a = {value}, l[2] = {other} WHERE id = 1{returning};"),
            3 => format!("DELETE FROM t WHERE a = {value}{returning};"),
            _ => {
                format!("UPDATE t SET a = {value} WHERE CURRENT OF {}{returning};", self.variable())
            }
        }
    }

    /// Returns an expression for the text of a dynamic statement.
    fn text_of_query(&mut self) -> String {
        match self.chance.below(6) {
            0 => self.expression(1),
            1 => "'SELECT $1'".to_owned(),
            2 => "'SELECT * FROM t WHERE id = $1'".to_owned(),
            3 => "'UPDATE t SET a = 1 RETURNING *'".to_owned(),
            4 => self
                .word(&["'COMMIT'", "'DROP TABLE u'", "'CREATE TABLE w (i int)'", "''", "'SELECT'"])
                .to_owned(),
            _ => format!("$q${}$q$", self.query(1)),
        }
    }

    fn dynamic(&mut self) -> String {
        let into = match self.chance.percent(60) {
            true => format!(" INTO {}{}", self.word(&["", "STRICT "]), self.target()),
            false => String::new(),
        };
        let using = match self.chance.percent(60) {
            true => format!(" USING {}", self.expression(1)),
            false => String::new(),
        };
        format!("EXECUTE {}{into}{using};", self.text_of_query())
    }

    fn cursor(&mut self) -> String {
        let cursor = self.variable();
        match self.chance.below(9) {
            0 => format!("OPEN {cursor};"),
            1 => format!("OPEN {cursor}({});", self.expression(1)),
            2 => format!(
                "OPEN {cursor} {}FOR {};",
                self.word(&["", "SCROLL ", "NO SCROLL "]),
                self.query(1)
            ),
            3 => format!(
                "OPEN {cursor} FOR EXECUTE {} USING {};",
                self.text_of_query(),
                self.expression(1)
            ),
            4 => format!("CLOSE {cursor};"),
            5 => {
                let way = self.word(&[
                    "NEXT",
                    "PRIOR",
                    "LAST",
                    "ABSOLUTE -1",
                    "FORWARD ALL",
                    "BACKWARD 2",
                    "RELATIVE 0",
                ]);
                format!("MOVE {way} FROM {cursor};")
            }
            _ => {
                let way = self.word(&[
                    "",
                    "",
                    "PRIOR FROM ",
                    "FIRST FROM ",
                    "ABSOLUTE 2 FROM ",
                    "RELATIVE 1 FROM ",
                ]);
                format!("FETCH {way}{cursor} INTO {};", self.target())
            }
        }
    }

    fn raise(&mut self) -> String {
        let level = self.word(&["NOTICE", "EXCEPTION", "WARNING", "DEBUG", "INFO"]);
        match self.chance.below(5) {
            0 => "RAISE;".to_owned(),
            1 => format!("RAISE {level} '%, %', {}, {};", self.expression(1), self.expression(1)),
            2 => format!("RAISE {level} '%' USING DETAIL = {};", self.expression(1)),
            3 => format!(
                "RAISE {} USING MESSAGE = {};",
                self.word(&["division_by_zero", "SQLSTATE '12345'", "nosuch"]),
                self.expression(1)
            ),
            _ => format!(
                "RAISE {level} '%', {} USING ERRCODE = {}, HINT = 'h';",
                self.expression(1),
                self.expression(1)
            ),
        }
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

#[test]
fn session_survives_random_plpgsql_bodies() {
    let seed = variable("BENNU_SEED", 1);
    let count = variable("BENNU_BLOCKS", BODIES as u64) as usize;
    println!("seed {seed}, {count} bodies");
    let server = TestServer::start();
    let mut raw = Raw::login(server.address());
    let mut succeeded = 0;
    for number in 0..count {
        if number % BODIES_OF_A_SETUP == 0 {
            for statement in SETUP {
                let code = sqlstate(&raw.query(statement));
                assert!(code.is_none() || *statement == "ROLLBACK", "{statement}: {code:?}");
            }
        }
        let body_seed = seed.wrapping_mul(1 << 32).wrapping_add(number as u64);
        for statement in BodyGenerator::new(body_seed).body() {
            let messages = raw.query(&statement);
            let goes_on = messages.last().is_some_and(|last| last.kind == b'Z');
            let code = sqlstate(&messages);
            let is_internal = code.as_ref().is_some_and(|code| code.starts_with("XX"));
            assert!(goes_on && !is_internal, "body {number} of seed {seed}: {code:?}\n{statement}");
            succeeded += usize::from(code.is_none());
        }
    }
    println!("{succeeded} statements succeeded");
    assert!(succeeded * 10 > count, "hardly a body does what it says: {succeeded}");
}
