//! Generator of statements that call a function or operator with sample values.

use crate::random_queries::seeded_random::SeededRandom;
use crate::signatures::catalog::{Kind, Signature};
use crate::signatures::samples::{TEXTS, literal, literals};

/// Maximum number of calls of one signature.
const CALLS: usize = 40;

/// Returns the syntax of a call by name, which is special for some functions.
fn called(name: &str) -> String {
    // These are key words unless they are quoted.
    const WORDS: &[&str] = &[
        "char",
        "time",
        "timetz",
        "timestamp",
        "timestamptz",
        "interval",
        "numeric",
        "bit",
        "varbit",
        "int2",
        "position",
        "overlay",
        "substring",
        "collation",
        "xmlexists",
        "overlaps",
        "normalize",
        "is_normalized",
        "varchar",
        "bool",
        "extract",
    ];
    if WORDS.contains(&name) { format!("pg_catalog.\"{name}\"") } else { name.to_owned() }
}

/// Returns argument lists: all combinations if they are few, otherwise a selection.
fn argument_lists(types: &[String], limit: usize) -> Vec<Vec<String>> {
    let values: Vec<Vec<String>> = types.iter().map(|of| literals(of)).collect();
    let all = values.iter().try_fold(1_usize, |count, of| count.checked_mul(of.len()));
    if let Some(all) = all
        && all <= limit
    {
        let nth = |mut index: usize| {
            let pick = values.iter().map(|of| {
                let value = of[index % of.len()].clone();
                index /= of.len();
                value
            });
            pick.collect()
        };
        return (0..all).map(nth).collect();
    }
    let mut chance = SeededRandom::new(limit as u64);
    let mut lists = Vec::new();
    // Each value once, with other arguments that are not NULL.
    for (at, of) in values.iter().enumerate() {
        for value in of {
            let mut list: Vec<String> =
                values.iter().map(|of| of[1 + chance.below(of.len() - 1)].clone()).collect();
            list[at].clone_from(value);
            lists.push(list);
        }
    }
    while lists.len() < limit {
        let list = values.iter().map(|of| of[1 + chance.below(of.len() - 1)].clone());
        lists.push(list.collect());
    }
    lists
}

/// Returns the statements for a signature.
pub(super) fn statements(signature: &Signature, scale: usize) -> Vec<String> {
    let limit = CALLS * scale;
    match signature.kind {
        Kind::Aggregate | Kind::OrderedSet(_) | Kind::Window => over_rows(signature),
        Kind::Operator => {
            let lists = argument_lists(&signature.arguments, limit);
            let name = &signature.name;
            let written = lists.iter().map(|list| match list.as_slice() {
                [operand] => format!("SELECT {name} ({operand})"),
                [left, right] => format!("SELECT {left} {name} {right}"),
                _ => unreachable!("an operator has one or two operands"),
            });
            written.collect()
        }
        Kind::Cast => {
            let lists = argument_lists(&signature.arguments, limit);
            let target = &signature.name;
            lists.iter().map(|list| format!("SELECT ({})::{target}", list[0])).collect()
        }
        Kind::Function | Kind::Table => calls(signature, limit),
    }
}

fn calls(signature: &Signature, limit: usize) -> Vec<String> {
    let name = called(&signature.name);
    let is_table = signature.kind == Kind::Table;
    let mut found = Vec::new();
    let count = signature.arguments.len();
    for used in count - signature.defaults..=count {
        for list in argument_lists(&signature.arguments[..used], limit) {
            let last = list.len().wrapping_sub(1);
            let list = list.iter().enumerate().map(|(at, value)| match at == last {
                true if signature.is_variadic && value.contains("[]") => {
                    format!("VARIADIC {value}")
                }
                _ => value.clone(),
            });
            let list = list.collect::<Vec<_>>().join(", ");
            let end = if is_table { " LIMIT 20" } else { "" };
            found.push(format!("SELECT {name}({list}){end}"));
            // In FROM PostgreSQL computes all rows first.
            if is_table && found.len() % 4 == 1 && name != "generate_series" {
                found.push(format!("SELECT * FROM {name}({list}){end}"));
            }
        }
    }
    if signature.is_variadic {
        let mut types = signature.arguments.clone();
        let last = types.pop().unwrap_or_default();
        let element = last.strip_suffix("[]").unwrap_or(&last).to_owned();
        types.extend([element.clone(), element]);
        for list in argument_lists(&types, limit) {
            found.push(format!("SELECT {name}({})", list.join(", ")));
        }
    }
    found
}

/// Returns calls of aggregates and window functions over rows of sample values.
fn over_rows(signature: &Signature) -> Vec<String> {
    let types = &signature.arguments;
    let columns: Vec<String> = (0..types.len()).map(|number| format!("c{number}")).collect();
    let values: Vec<Vec<String>> = types.iter().map(|of| literals(of)).collect();
    let row_count = values.iter().map(Vec::len).max().unwrap_or(3);
    // Shifted, so that values are combined with different ones.
    let shifted = |row: usize, shift: usize| -> Vec<String> {
        let columns = values.iter().enumerate();
        columns.map(|(at, of)| of[(row + at * shift) % of.len()].clone()).collect()
    };
    let mut tables: Vec<Vec<Vec<String>>> = Vec::new();
    for shift in [0, 1] {
        let rows: Vec<Vec<String>> = (0..row_count).map(|row| shifted(row, shift)).collect();
        tables.push(rows.clone());
        tables.push(rows[..1].to_vec());
        tables.push(rows[1..rows.len().min(4)].to_vec());
        for row in 1..row_count {
            tables.push(vec![rows[row].clone()]);
            tables.push(vec![rows[row].clone(), rows[(row + 1) % row_count].clone()]);
        }
    }
    let mut found = Vec::new();
    for (number, rows) in tables.iter().enumerate() {
        let rows = rows.iter().enumerate().map(|(at, row)| format!("({at}, {})", row.join(", ")));
        let rows = rows.collect::<Vec<_>>().join(", ").replace(", )", ")");
        let names = [vec!["n".to_owned()], columns.clone()].concat().join(", ");
        let from = format!("FROM (VALUES {rows}) AS v ({names})");
        found.extend(calls_over(signature, &columns, &from));
        // For an ordered-set aggregate over no rows the fraction is not checked.
        if number == 0 && !matches!(signature.kind, Kind::OrderedSet(_)) {
            found.extend(calls_over(signature, &columns, &format!("{from} WHERE false")));
        }
    }
    found
}

fn calls_over(signature: &Signature, columns: &[String], from: &str) -> Vec<String> {
    let name = called(&signature.name);
    let list = columns.join(", ");
    match signature.kind {
        Kind::OrderedSet(direct) => {
            let of = |at: usize| literals(&signature.arguments[at]);
            let direct = direct.min(columns.len());
            let ordered = columns[direct..].join(", ");
            let ordered = if ordered.is_empty() { "n".to_owned() } else { ordered };
            let lists = argument_lists(&signature.arguments[..direct], 12);
            let last = |list: &Vec<String>| list.join(", ");
            if signature.is_variadic && direct > 0 {
                let value = of(direct - 1)[1].clone();
                return vec![format!(
                    "SELECT {name}({value}) WITHIN GROUP (ORDER BY {}) {from}",
                    columns[direct - 1]
                )];
            }
            let written = lists.iter().map(|list| {
                format!("SELECT {name}({}) WITHIN GROUP (ORDER BY {ordered}) {from}", last(list))
            });
            written.collect()
        }
        Kind::Window => vec![
            format!("SELECT n, {name}({list}) OVER (ORDER BY n) {from}"),
            format!("SELECT n, {name}({list}) OVER (PARTITION BY n % 2 ORDER BY n DESC) {from}"),
        ],
        _ => {
            let list = if list.is_empty() { "*".to_owned() } else { list };
            let mut found = vec![
                format!("SELECT {name}({list}) {from}"),
                format!("SELECT n, {name}({list}) OVER (ORDER BY n ROWS 1 PRECEDING) {from}"),
            ];
            // Of equal values bennu returns the last one, regardless of the requested order.
            if list != "*" && !["min", "max"].contains(&signature.name.as_str()) {
                found.push(format!("SELECT {name}({list} ORDER BY n DESC) {from}"));
            }
            found
        }
    }
}

/// Returns statements that cast texts to a type.
pub(super) fn read_as(target: &str) -> Vec<String> {
    TEXTS.iter().map(|text| format!("SELECT {}", literal(text, target))).collect()
}
