//! Property test of access paths: the result equals that of a full scan with a filter.

use proptest::prelude::*;
use sql::parser::parse_statements;

use crate::queries::database::Database;

const TABLES: &[&str] = &[
    "create table t (a int, b text, c bigint, d smallint, e int[], primary key (a, b desc))",
    "create table t (a int, b text, c bigint, d smallint, e int[], primary key (b, a)) salt_buckets = 3",
    "create table t (a int, b text, c bigint, d smallint, e int[], primary key (a desc, b))",
];

const INDEXES: &[&str] = &[
    "create index t_i on t (c)",
    "create index t_j on t (c desc, d) include (b)",
    "create index t_k on t (d nulls first, c)",
    "create index t_l on t (c) salt_buckets = 2",
    "create index t_m on t using gin (e)",
    "create index t_n on t using gin (e) salt_buckets = 2",
];

fn row() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec!["", "a", "ab", "abc", "b", "ba", "é"]);
    let wide = prop_oneof![Just("null".to_owned()), (-3i64..4).prop_map(|c| c.to_string())];
    let narrow = prop_oneof![Just("null".to_owned()), (-2i16..3).prop_map(|d| d.to_string())];
    let arrays = prop::sample::select(vec![
        "null",
        "'{}'",
        "'{0}'",
        "'{0,1}'",
        "'{1,0,1}'",
        "'{null}'",
        "'{2,null}'",
        "'{{0,2},{1,1}}'",
    ]);
    (-4i32..5, text, wide, narrow, arrays)
        .prop_map(|(a, b, c, d, e)| format!("({a}, '{b}', {c}, {d}, {e})"))
}

fn comparison(column: &'static str, values: Vec<&'static str>) -> BoxedStrategy<String> {
    let operator = prop::sample::select(vec!["=", "<", "<=", ">", ">=", "<>"]);
    let value = prop::sample::select(values);
    let list = prop::collection::vec(value.clone(), 1..4);
    prop_oneof![
        4 => (operator, value.clone()).prop_map(move |(o, v)| format!("{column} {o} {v}")),
        2 => list.prop_map(move |list| format!("{column} in ({})", list.join(", "))),
        1 => (value.clone(), value).prop_map(move |(x, y)| format!("{column} between {x} and {y}")),
        1 => Just(format!("{column} is null")),
        1 => Just(format!("{column} is not null")),
    ]
    .boxed()
}

/// Returns random conditions such as `(a, b) in ((1, 'a'), (2, 'b'))`.
fn rows_of_values() -> impl Strategy<Value = String> {
    let a = prop::sample::select(vec!["0", "1", "-2", "3", "null"]);
    let b = prop::sample::select(vec!["'a'", "'ab'", "''", "'b'"]);
    let row = (a.clone(), b).prop_map(|(a, b)| format!("({a}, {b})"));
    let narrow = (a.clone(), a).prop_map(|(c, d)| format!("({c}, {d})"));
    prop_oneof![
        prop::collection::vec(row, 1..5)
            .prop_map(|rows| format!("(a, b) in ({})", rows.join(", "))),
        prop::collection::vec(narrow, 1..4)
            .prop_map(|rows| format!("(c, d) in ({})", rows.join(", "))),
    ]
}

/// Returns random conditions on the elements of an array.
fn on_elements() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec!["@>", "<@", "&&", "="]);
    let array = prop::sample::select(vec![
        "'{}'",
        "'{0}'",
        "'{0,1}'",
        "'{1,2,3}'",
        "'{0,1,2}'",
        "'{null}'",
        "'{0,null}'",
        "null",
    ]);
    let element = prop::sample::select(vec!["0", "1", "2", "3", "null", "99999999999"]);
    prop_oneof![
        3 => (operator.clone(), array.clone()).prop_map(|(o, array)| format!("e {o} {array}::int[]")),
        1 => (operator, array).prop_map(|(o, array)| format!("{array}::int[] {o} e")),
        1 => element.prop_map(|element| format!("{element} = any (e)")),
    ]
}

fn condition() -> BoxedStrategy<String> {
    let integers = vec!["0", "1", "-2", "3", "99999999999", "-99999999999", "1.5", "null"];
    let leaf = prop_oneof![
        comparison("a", integers.clone()),
        comparison("b", vec!["'a'", "'ab'", "''", "'é'", "null"]),
        comparison("c", integers.clone()),
        comparison("d", integers),
        rows_of_values(),
        on_elements(),
        on_elements(),
        prop::sample::select(vec!["b like 'a%'", "b like 'ab'", "b like '%b'", "b like 'a_'"])
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let some = prop::collection::vec(inner, 2..4);
        prop_oneof![
            3 => some.clone().prop_map(|parts| format!("({})", parts.join(" and "))),
            1 => some.clone().prop_map(|parts| format!("({})", parts.join(" or "))),
            1 => some.prop_map(|parts| format!("not ({})", parts.join(" or "))),
        ]
    })
    .boxed()
}

fn setup(table: &str, indexes: &[usize], rows: &[String]) -> Database {
    let mut database = Database::default();
    let mut script = vec![table.to_owned()];
    script.extend(indexes.iter().map(|&index| INDEXES[index].to_owned()));
    for row in rows {
        script.push(format!("insert into t values {row} on conflict do nothing"));
    }
    let answer = database.script(&script.join(";\n"));
    assert!(!answer.contains("error"), "{answer}");
    database
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_access_path_matches_full_scan(
        table in prop::sample::select(TABLES),
        indexes in prop::sample::subsequence(vec![0, 1, 2, 3, 4, 5], 0..=4),
        rows in prop::collection::vec(row(), 0..40),
        conditions in prop::collection::vec(condition(), 40),
        columns in prop::sample::select(vec!["a, b, c, d, e", "a, c", "b", "e"]),
    ) {
        let mut database = setup(table, &indexes, &rows);
        for condition in conditions {
            let fast = format!("select {columns} from t where {condition}");
            // Condition in a form that prevents key access.
            let slow = format!(
                "select {columns} from t where coalesce({condition}, false) = (a is not null)"
            );
            prop_assume!(parse_statements(&fast).is_ok());
            let plan = database.explain(&fast);
            let expected = sorted(database.query(&slow).unwrap());
            let found = sorted(database.query(&fast).unwrap());
            prop_assert_eq!(&found, &expected, "{}\n{}", &fast, plan.join("\n"));
            let count = database.query(&format!("select count(*) from t where {condition}"));
            prop_assert_eq!(count.unwrap(), vec![expected.len().to_string()], "{}", &fast);
            for (order, key) in [("c desc, a, b", 2), ("a, b desc", 0), ("b desc, a desc", 1)] {
                let all = format!("select a, b, c, d from t where {condition} order by {order}");
                let rows = database.query(&all).unwrap();
                prop_assert_eq!(rows.len(), expected.len(), "{}", &all);
                let first = database.query(&format!("{all} limit 3")).unwrap();
                let keys = |rows: &[String]| -> Vec<String> {
                    let key = |row: &String| row.split('|').nth(key).unwrap().to_owned();
                    rows.iter().map(key).collect()
                };
                prop_assert_eq!(&keys(&rows)[..first.len()], &keys(&first)[..], "{}", &all);
                prop_assert_eq!(first.len(), rows.len().min(3), "{}", &all);
            }
        }
    }
}
