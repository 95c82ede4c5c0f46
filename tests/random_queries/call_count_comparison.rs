//! Comparison of two servers by computed expressions
//! ([`call_count_generator`](super::call_count_generator)).

use std::time::{Duration, Instant};

use crate::harness::TestServer;
use crate::random_queries::call_count_generator::{
    CallCountGenerator, GeneratedStatement, counts, restart, setup,
};
use crate::random_queries::seeded_random::SeededRandom;
use crate::random_queries::shrinkable_sql::SqlNode;
use crate::random_queries::{Answer, Side, is_of_values, normal_rows, number};

/// Statements per seed.
const STATEMENTS: usize = 100;
/// Time limit for shrinking one difference.
const SHRINKING: Duration = Duration::from_secs(8);

/// Outcome of a statement.
#[derive(Debug)]
struct Outcome {
    answer: Answer,
    /// Number of calls of each sequence.
    counts: Answer,
    /// The changed table, afterwards.
    table: Option<Answer>,
}

fn outcome(side: &mut Side, piece: &SqlNode, changes: Option<&str>) -> Outcome {
    side.ask(&restart());
    side.ask("BEGIN");
    let answer = side.ask(&piece.to_string());
    let table = match answer.error.is_some() {
        true => None,
        false => changes.map(|table| side.ask(&format!("SELECT * FROM {table}"))),
    };
    side.ask("ROLLBACK");
    Outcome { answer, counts: side.ask(&counts()), table }
}

fn difference(
    left: &Outcome,
    right: &Outcome,
    (ordered, is_limited, filters): (bool, bool, bool),
) -> Option<&'static str> {
    match (&left.answer.error, &right.answer.error) {
        // The first of two errors depends on the order of rows.
        (Some((a, _)), Some((b, _))) => {
            (a != b && !(is_of_values(a) && is_of_values(b))).then_some("SQLSTATE")
        }
        // With LIMIT the plan determines which rows are read, and bennu computes the select list
        // only for the rows within the limit.
        (Some(_), None) => (!is_limited || !filters).then_some("only the left side fails"),
        (None, Some(_)) => (!is_limited).then_some("only the right side fails"),
        (None, None) => {
            let tables = [left, right]
                .map(|side| side.table.as_ref().map(|answer| normal_rows(answer, false)));
            let same =
                |ordered| normal_rows(&left.answer, ordered) == normal_rows(&right.answer, ordered);
            if !same(false) || tables[0] != tables[1] {
                Some("rows")
            } else if ordered && !same(true) {
                Some("order of rows")
            } else {
                (left.counts.rows != right.counts.rows).then_some("counts")
            }
        }
    }
}

struct CallCountComparison {
    left: Side,
    right: Side,
    /// Number of failed statements.
    failed: usize,
}

impl CallCountComparison {
    fn compare(&mut self, drawn: &GeneratedStatement, piece: &SqlNode) -> Option<&'static str> {
        let left = outcome(&mut self.left, piece, drawn.changes.as_deref());
        let right = outcome(&mut self.right, piece, drawn.changes.as_deref());
        self.failed += usize::from(right.answer.error.is_some());
        // A shrunk text may be invalid.
        let code = right.answer.error.as_ref().map_or("", |(code, _)| code.as_str());
        match code.starts_with("42") && left.answer.error == right.answer.error {
            true => None,
            false => {
                let text = piece.to_string();
                let (is_limited, filters) = (text.contains("LIMIT"), text.contains("WHERE ("));
                difference(&left, &right, (drawn.ordered, is_limited, filters))
            }
        }
    }

    fn shrink(&mut self, drawn: &GeneratedStatement, kind: &str) -> SqlNode {
        let mut smallest = drawn.piece.clone();
        let began = Instant::now();
        'again: loop {
            for candidate in smallest.shrunk_variants() {
                if began.elapsed() > SHRINKING {
                    return smallest;
                }
                if self.compare(drawn, &candidate) == Some(kind) {
                    smallest = candidate;
                    continue 'again;
                }
            }
            return smallest;
        }
    }

    fn run(&mut self, seed: u64) -> Vec<String> {
        let chance = &mut SeededRandom::new(seed);
        let setup = setup(chance);
        for side in [&mut self.left, &mut self.right] {
            for sql in &setup {
                let answer = side.ask(sql);
                assert!(answer.error.is_none(), "{sql}: {answer:?}");
            }
        }
        let mut found = Vec::new();
        for _ in 0..STATEMENTS {
            let drawn = CallCountGenerator::new(chance).statement();
            let Some(kind) = self.compare(&drawn, &drawn.piece) else { continue };
            let smallest = self.shrink(&drawn, kind);
            let sides = [&mut self.left, &mut self.right];
            let shown = sides.map(|side| {
                let outcome = outcome(side, &smallest, drawn.changes.as_deref());
                let called = outcome.counts.rows.iter().filter_map(|row| match &row[1] {
                    Some(count) if count != "0" => Some(format!("s{:?}: {count}", row[0])),
                    _ => None,
                });
                let called: Vec<String> = called.collect();
                let (rows, error) = (outcome.answer.rows, outcome.answer.error);
                format!("--   {error:?} {} {rows:?}\n", called.join(", "))
            });
            let rows: Vec<&String> = setup.iter().filter(|sql| sql.contains("INSERT")).collect();
            let rows = if found.is_empty() { format!("{rows:?}\n") } else { String::new() };
            let text = format!("-- seed {seed}: {kind}\n{rows}{smallest};\n{}", shown.concat());
            println!("{text}");
            found.push(text);
        }
        found
    }
}

fn run_all(left: Side, right: Side, first: u64, count: u64) {
    let mut pair = CallCountComparison { left, right, failed: 0 };
    let found: Vec<String> = (first..first + count).flat_map(|seed| pair.run(seed)).collect();
    println!("{} failed, {} differences", pair.failed, found.len());
    assert!(found.is_empty());
}

#[test]
#[ignore = "needs a PostgreSQL 15 at BENNU_ORACLE"]
fn function_call_counts_match_postgresql() {
    let oracle = std::env::var("BENNU_ORACLE").unwrap().parse().unwrap();
    let own = std::env::var("BENNU_SERVER").map(|address| address.parse().unwrap());
    let server = own.is_err().then(TestServer::start);
    let address = server.as_ref().map_or_else(|| own.unwrap(), TestServer::address);
    let (left, right) = (Side::new(address, true, false), Side::new(oracle, false, false));
    run_all(left, right, number("BENNU_SEED", 1), number("BENNU_CASES", 50));
}
