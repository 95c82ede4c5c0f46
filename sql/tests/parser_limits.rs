//! Parser robustness: random input, deep nesting and long chains, on the stack size of a
//! connection.

use proptest::prelude::*;
use sql::parser::{ParseError, parse_statements};

/// Parses on a stack of 64 MiB, like a connection thread.
fn parse_on_stack(sql: String) -> Result<usize, ParseError> {
    std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || {
            let parsed = parse_statements(&sql)?;
            // Clone and drop also traverse the tree.
            let copy = parsed.clone();
            Ok(copy.len())
        })
        .expect("a thread starts")
        .join()
        .expect("the parser does not panic")
}

fn repeated(before: &str, part: &str, after: &str, count: usize) -> String {
    format!("{before}{}{after}", part.repeat(count))
}

#[test]
fn excessive_depth_and_chains_are_rejected() {
    let many = 60_000;
    let nest =
        |open: &str, close: &str| format!("select {}1{}", open.repeat(many), close.repeat(many));
    let hostile = [
        nest("(", ")"),
        nest("(select ", ")"),
        nest("case when ", " then 1 end"),
        nest("f(", ")"),
        nest("not ", ""),
        nest("- ", ""),
        nest("(1, ", ")"),
        repeated("select 1", " + 1", "", many),
        repeated("select 1", "::int", "", many),
        repeated("select a", " and a", "", many),
        repeated("select a", " and a", " )", 49_000),
        repeated("select a", " and a", ", f(x limit 1)", 49_000),
        repeated("select a", " is null", "", many),
        repeated("select a", " between 1 and 2", "", many),
        repeated("select a", " between 1 and 2 is null", "", many),
        repeated("select 1", " union select 1", "", many),
        repeated("select 1", " union select 1, 2", "", many),
        repeated("select 1", " union all select 1", " )", 1_000),
        repeated("select 1", " union all select 1", "", 1_000_000),
        repeated("select 1 from t", " join t on true", "", many),
        repeated("select a", " at time zone 'x'", "", many),
        format!("select * from {}t", "(".repeat(many)),
        format!("select cast({}1", "cast(".repeat(many)),
        format!("select {}", "[".repeat(many)),
        format!("select {}", "interval ".repeat(many)),
        format!("explain {}select 1", "explain ".repeat(many)),
        format!("prepare p as {}select 1", "prepare p as ".repeat(many)),
        format!("insert into t values {}1", "(".repeat(many)),
    ];
    for sql in hostile {
        let start: String = sql.chars().take(40).collect();
        let error = parse_on_stack(sql).expect_err(&start);
        assert!(["54001", "42601", "0A000"].contains(&error.sqlstate), "{start}: {error:?}");
    }
}

#[test]
fn reasonable_statements_are_within_limits() {
    let inside = [
        repeated("select a", " and a = 1", "", 49_000),
        repeated("select 1", " + 1", "", 1_000),
        repeated("select a", "[1]", "", 3_000),
        repeated("insert into t values (1)", ", (1 + 1, -2)", "", 0),
        repeated("select 1", ", 1 + 2 * 3", "", 5_000),
        repeated("select 1 where a in (1", ", -1", ")", 5_000),
        format!("select {}1{}", "(".repeat(60), ")".repeat(60)),
        format!("select {}1{}", "(select ".repeat(60), ")".repeat(60)),
        format!("select * from {}t{}", "(select * from ".repeat(50), ") x".repeat(50)),
        repeated("select 1", " union all select 1", "", 1_000),
        format!("select {}a{}", "case when a = 1 then ".repeat(50), " else 2 end".repeat(50)),
    ];
    for sql in inside {
        let start: String = sql.chars().take(60).collect();
        assert_eq!(parse_on_stack(sql), Ok(1), "{start}");
    }
}

#[test]
fn parser_backtracking_is_bounded() {
    for (open, close, count) in [
        ("(", "", 60),
        ("((select ", "", 30),
        ("interval ", "", 60),
        ("case case ", "", 30),
        ("cast(case (", "", 20),
        ("f(a => (", "", 30),
        ("date ", "", 60),
        ("extract(year from ", "", 60),
    ] {
        let _ = parse_on_stack(repeated("select ", open, close, count));
        let _ = parse_on_stack(repeated("select * from ", open, close, count));
    }
}

#[test]
fn overlong_scripts_are_rejected() {
    let sql = " ".repeat(sql::parser::limits::SCRIPT_BYTES + 1);
    assert_eq!(parse_statements(&sql).expect_err("too long").sqlstate, "54001");
}

const WORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "insert",
    "into",
    "values",
    "update",
    "set",
    "delete",
    "create",
    "table",
    "index",
    "on",
    "primary",
    "key",
    "(",
    ")",
    "(",
    ")",
    ",",
    ";",
    "*",
    "a",
    "b",
    "t",
    "\"Q\"",
    "1",
    "2.5",
    "'s'",
    "$1",
    "=",
    "<",
    "+",
    "-",
    "::",
    "int",
    "varchar",
    "and",
    "or",
    "not",
    "null",
    "is",
    "in",
    "like",
    "between",
    "case",
    "when",
    "then",
    "else",
    "end",
    "cast",
    "as",
    "join",
    "left",
    "using",
    "natural",
    "union",
    "all",
    "order",
    "by",
    "limit",
    "offset",
    "group",
    "having",
    "distinct",
    "exists",
    "any",
    "array",
    "[",
    "]",
    "interval",
    "date",
    "extract",
    "substring",
    "trim",
    "for",
    "update",
    "default",
    "returning",
    "conflict",
    "do",
    "nothing",
    "upsert",
    "with",
    "split",
    "copy",
    "stdin",
    "explain",
    "analyze",
    "begin",
    "show",
    "prepare",
    "constraint",
    "check",
    ".",
    "/*+ X(a) */",
    "--c\n",
    "é",
    "at",
    "time",
    "zone",
    "^",
    "@",
    "~",
    "||",
    "row",
    "fetch",
    "first",
    "rows",
    "only",
    "lateral",
    "system_time",
    "of",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn token_sequences_never_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..30)) {
        let sql = words.join(" ");
        if let Ok(statements) = parse_statements(&sql) {
            for parsed in statements {
                let text = parsed.text.as_str();
                prop_assert!(sql[parsed.text.offset()..].starts_with(text));
            }
        }
    }

    #[test]
    fn error_positions_are_within_text(words in prop::collection::vec(prop::sample::select(WORDS), 0..30)) {
        let sql = format!("select {}", words.join(" "));
        if let Err(error) = parse_statements(&sql) {
            let end = sql.chars().count() + 1;
            prop_assert!(error.position.is_none_or(|at| (1..=end).contains(&at)), "{:?}", error);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = parse_statements(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_text_never_panics(text in "\\PC{0,60}") {
        let _ = parse_statements(&text);
    }
}
