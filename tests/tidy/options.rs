//! Storage options: `docs/sql/table-options.md` lists the table of
//! `sql/src/storage_options/table.rs`.

use sql::storage_options::{OPTIONS, OptionChange, OptionKind, OptionScope, OptionSpec};

use super::assert_generated;

fn scope(scope: &OptionScope) -> &'static str {
    match scope {
        OptionScope::Table => "table",
        OptionScope::Family => "family",
        OptionScope::Toast => "TOAST table",
        OptionScope::Index => "index",
        OptionScope::HashIndex => "hash index",
        OptionScope::InvertedIndex => "inverted index",
        OptionScope::Constraint => "key",
        OptionScope::Column => "column",
        OptionScope::Role => "role",
    }
}

fn values(kind: &OptionKind) -> String {
    let range = |low: String, high: Option<String>| match high {
        Some(high) => format!("{low} to {high}"),
        None => format!("from {low}"),
    };
    match kind {
        OptionKind::Bool => "Boolean".to_owned(),
        OptionKind::Integer(low, high) => {
            range(low.to_string(), (*high < i64::MAX).then(|| high.to_string()))
        }
        OptionKind::Bytes(low, high) => {
            let high = (*high < i64::MAX).then(|| high.to_string());
            format!("bytes, {}", range(low.to_string(), high))
        }
        OptionKind::Real(low, high) => {
            range(low.to_string(), (*high < f64::MAX).then(|| high.to_string()))
        }
        OptionKind::IntegerOrWord(low, high, words) => {
            let range = range(low.to_string(), (*high < i64::MAX).then(|| high.to_string()));
            format!("{range}, {}", words.join(", ").to_uppercase())
        }
        OptionKind::Word(words) => words.join(", ").to_uppercase(),
        OptionKind::Special(form, _) => (*form).to_owned(),
    }
}

fn row(spec: &OptionSpec) -> String {
    // An index of another method has the options of ordered ones, and perhaps more.
    let others = [OptionScope::HashIndex, OptionScope::InvertedIndex];
    let is_listed = |scope: &&OptionScope| spec.scopes.len() == 1 || !others.contains(*scope);
    let scopes = spec.scopes.iter().filter(is_listed);
    let scopes = scopes.map(scope).collect::<Vec<_>>().join(", ");
    let head = format!("| `{}` | {scopes} | {} |", spec.name.to_uppercase(), values(&spec.kind));
    let change = match spec.change {
        OptionChange::Never => "no",
        OptionChange::AtCommit => "at commit",
        OptionChange::NewFiles => "for new files",
        OptionChange::ByCopy => "by a copy, online",
        OptionChange::NewTransactions => "for new transactions",
        OptionChange::NoEffect => return head.replace(&spec.name.to_uppercase(), spec.name) + "\n",
        OptionChange::Noted => return head + "\n",
    };
    format!("{head} {} | {change} | {} |\n", spec.default, spec.description)
}

#[test]
fn options_page_matches_option_table() {
    let (stored, own): (Vec<_>, Vec<_>) = OPTIONS.iter().partition(|spec| spec.is_stored_text());
    let (noted, parameters): (Vec<_>, Vec<_>) =
        stored.into_iter().partition(|spec| spec.is_noted());
    let mut part = "\n| Option | Objects | Values | Default | ALTER | Description |\n".to_owned();
    part += "| --- | --- | --- | --- | --- | --- |\n";
    part.extend(own.into_iter().map(row));
    part += "\nPostgreSQL's storage parameters are stored and shown without effect:\n\n";
    part += "| Parameter | Objects | Values |\n| --- | --- | --- |\n";
    part.extend(parameters.into_iter().map(row));
    part += "\nOptions of Phoenix and HBase that have no effect here are stored and shown, with a notice:\n\n";
    part += "| Option | Objects | Values |\n| --- | --- | --- |\n";
    part.extend(noted.into_iter().map(row));
    assert_generated("docs/sql/table-options.md", &(part + "\n"));
}
