//! Functions and operators: `docs/sql/functions` lists the tables of `types/src/function`, and the
//! names of aggregates.

use std::collections::BTreeSet;

use types::aggregate::AggregateKind;
use types::function::{self, FunctionChapter, Signature, sets};

use super::{assert_generated, read, root};

/// The page of each chapter.
const PAGES: [(FunctionChapter, &str); 12] = [
    (FunctionChapter::Comparison, "comparison"),
    (FunctionChapter::Mathematics, "mathematics"),
    (FunctionChapter::Strings, "strings"),
    (FunctionChapter::BytesAndBits, "bytes-and-bits"),
    (FunctionChapter::PatternMatching, "pattern-matching"),
    (FunctionChapter::Formatting, "formatting"),
    (FunctionChapter::DatesAndTimes, "dates-and-times"),
    (FunctionChapter::Json, "json"),
    (FunctionChapter::Arrays, "arrays"),
    (FunctionChapter::Geometry, "geometry"),
    (FunctionChapter::OtherTypes, "other-types"),
    (FunctionChapter::System, "system"),
];

/// Returns the arguments of a function, with their names if it has names.
fn arguments(signature: &Signature) -> String {
    let last = signature.arguments.len().saturating_sub(1);
    let argument = |(at, data_type): (usize, &types::DataType)| {
        let name = signature.names.get(at).map(|name| format!("{name} ")).unwrap_or_default();
        let more = if signature.variadic && at == last { ", …" } else { "" };
        format!("{name}{}{more}", data_type.sql_name())
    };
    signature.arguments.iter().enumerate().map(argument).collect::<Vec<_>>().join(", ")
}

/// Returns a call, or an operator with the types of its operands.
fn call(signature: &Signature) -> String {
    let name = signature.name.replace('|', "\\|");
    let operand = |at: usize| signature.arguments.get(at).map_or("", |one| one.sql_name());
    match (function::is_operator(signature.name), signature.arguments.len()) {
        (true, 1) => format!("`{name} {}`", operand(0)),
        (true, _) => format!("`{} {name} {}`", operand(0), operand(1)),
        (false, _) => format!("`{name}({})`", arguments(signature)),
    }
}

fn rows<'a>(title: &str, signatures: impl Iterator<Item = &'a Signature>) -> String {
    let rows: String = signatures
        .map(|signature| format!("| {} | {} |\n", call(signature), signature.result.sql_name()))
        .collect();
    match rows.is_empty() {
        true => rows,
        false => format!("\n## {title}s\n\n| {title} | Result |\n| --- | --- |\n{rows}"),
    }
}

/// Returns the tables of a chapter. Comparisons exist for all types and are not listed.
fn tables(chapter: FunctionChapter) -> String {
    let all = || {
        let of_chapter = |one: &&Signature| function::chapter(one.id) == chapter;
        function::all().iter().filter(of_chapter).filter(|one| !function::is_internal(one.name))
    };
    let functions = all().filter(|one| !function::is_operator(one.name));
    let operators = all()
        .filter(|one| function::is_operator(one.name) && chapter != FunctionChapter::Comparison);
    rows("Function", functions) + &rows("Operator", operators)
}

/// Returns the table of functions that return sets, with the columns of their rows.
fn table_of_sets() -> String {
    let mut table = "\n## Functions\n\n| Function | Columns |\n| --- | --- |\n".to_owned();
    for signature in sets::all() {
        let columns = sets::columns(signature.id).iter();
        let columns: Vec<String> =
            columns.map(|(name, of)| format!("`{name}` {}", of.sql_name())).collect();
        table += &format!("| {} | {} |\n", call(signature), columns.join(", "));
    }
    table
}

#[test]
fn function_pages_match_tables() {
    let chapters = PAGES.iter().map(|(chapter, name)| (*name, tables(*chapter)));
    for (name, tables) in chapters.chain([("set-returning", table_of_sets())]) {
        assert_generated(&format!("docs/sql/functions/{name}.md"), &tables);
    }
}

#[test]
fn aggregates_page_lists_aggregates() {
    let page = read(&root().join("docs/sql/functions/aggregates.md"));
    let (aggregates, _) = page.split_once("\n## Window functions").expect("it has both parts");
    let names = aggregates.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<&str> = names.filter_map(|name| name.split(['(', '`']).next()).collect();
    let hypothetical = ["rank", "dense_rank", "percent_rank", "cume_dist"];
    let known: BTreeSet<&str> = AggregateKind::names().chain(hypothetical).collect();
    assert_eq!(listed, known);
}
