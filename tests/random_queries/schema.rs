//! Generator of tables with rows.

use std::collections::HashSet;

use crate::random_queries::seeded_random::SeededRandom;

/// The types of columns and expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Smallint,
    Integer,
    Bigint,
    Numeric,
    Double,
    Text,
    Boolean,
    Date,
    Timestamp,
    Timestamptz,
    Time,
    Interval,
    Uuid,
    Integers,
    Texts,
    Json,
}

impl Type {
    /// All of them.
    pub(super) const ALL: [Type; 16] = [
        Type::Smallint,
        Type::Integer,
        Type::Bigint,
        Type::Numeric,
        Type::Double,
        Type::Text,
        Type::Boolean,
        Type::Date,
        Type::Timestamp,
        Type::Timestamptz,
        Type::Time,
        Type::Interval,
        Type::Uuid,
        Type::Integers,
        Type::Texts,
        Type::Json,
    ];

    /// Returns the type's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Smallint => "smallint",
            Type::Integer => "integer",
            Type::Bigint => "bigint",
            Type::Numeric => "numeric",
            Type::Double => "double precision",
            Type::Text => "text",
            Type::Boolean => "boolean",
            Type::Date => "date",
            Type::Timestamp => "timestamp",
            Type::Timestamptz => "timestamptz",
            Type::Time => "time",
            Type::Interval => "interval",
            Type::Uuid => "uuid",
            Type::Integers => "integer[]",
            Type::Texts => "text[]",
            Type::Json => "jsonb",
        }
    }

    /// Returns whether it has `+` and `-`.
    pub(super) fn is_number(self) -> bool {
        use Type::{Bigint, Double, Integer, Numeric, Smallint};
        matches!(self, Smallint | Integer | Bigint | Numeric | Double)
    }

    /// Returns whether a column of this type may be a key: equal values have equal literals, and
    /// bennu has a key encoding for it.
    fn is_key(self) -> bool {
        !matches!(self, Type::Boolean | Type::Json | Type::Interval)
    }
}

/// A column in a query.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Its name, or an expression.
    pub(super) name: String,
    /// Its type.
    pub(super) data_type: Type,
}

/// A table.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Positions of the primary key's columns.
    pub(super) key: Vec<usize>,
    /// Position of a unique column, if there is one besides the key.
    pub(super) unique: Option<usize>,
}

/// A set-up statement in two variants.
#[derive(Debug, Clone, Default)]
pub(super) struct Setup {
    /// For PostgreSQL, and for bennu with simple plans.
    pub(super) plain: Option<String>,
    /// For bennu with indexes, regions, statistics and files.
    pub(super) rich: Option<String>,
}

/// Tables and the statements that create them.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) tables: Vec<Table>,
    pub(super) setup: Vec<Setup>,
}

/// Column names with their types in all tables. `varchar(6)` counts as text.
const COLUMNS: [(&str, Type, &str); 19] = [
    ("i", Type::Integer, "integer"),
    ("j", Type::Integer, "integer"),
    ("h", Type::Smallint, "smallint"),
    ("b", Type::Bigint, "bigint"),
    ("n", Type::Numeric, "numeric(8, 2)"),
    ("f", Type::Double, "double precision"),
    ("t", Type::Text, "text"),
    ("v", Type::Text, "varchar(6)"),
    ("p", Type::Boolean, "boolean"),
    ("d", Type::Date, "date"),
    ("m", Type::Timestamp, "timestamp"),
    ("x", Type::Text, "char(3)"),
    ("z", Type::Timestamptz, "timestamptz"),
    ("k", Type::Time, "time"),
    ("l", Type::Interval, "interval"),
    ("u", Type::Uuid, "uuid"),
    ("a", Type::Integers, "integer[]"),
    ("w", Type::Texts, "text[]"),
    ("o", Type::Json, "jsonb"),
];

/// Returns whether a column with a declared length is read as text.
fn as_text(declared: &str) -> bool {
    declared.starts_with("varchar") || declared.starts_with("char")
}

/// Returns a literal of few different values; never NULL.
pub(super) fn literal(chance: &mut SeededRandom, data_type: Type) -> String {
    let quarters = |chance: &mut SeededRandom| chance.between(-10, 20) as f64 / 4.0;
    match data_type {
        Type::Smallint | Type::Integer | Type::Bigint => {
            let value = match chance.below(60) {
                0 => 30_000,
                1 => -30_000,
                2..=9 => chance.between(-2, 40),
                _ => chance.between(-2, 6),
            };
            // A negative number is in parentheses, so that it has the precedence of a positive
            // one.
            if value < 0 { format!("({value})") } else { value.to_string() }
        }
        Type::Numeric => format!("{:.2}", quarters(chance)),
        Type::Double => match chance.below(40) {
            0 => "'NaN'".to_owned(),
            1 => "'-Infinity'".to_owned(),
            _ => format!("'{}'", quarters(chance)),
        },
        Type::Text => {
            let texts = ["", "a", "b", "ab", "B", "ba", "á", "a%", "_b", "abc", "12", "x y"];
            format!("'{}'", chance.one_of(&texts))
        }
        Type::Boolean => ["true", "false"][chance.below(2)].to_owned(),
        Type::Date => format!("'2020-0{}-{}'", chance.between(1, 3), chance.between(10, 29)),
        Type::Timestamp => {
            let (day, hour) = (chance.between(10, 14), chance.between(0, 23));
            format!("'2020-02-{day} {hour:02}:30:00'")
        }
        Type::Timestamptz => {
            let (day, hour) = (chance.between(10, 14), chance.between(0, 23));
            format!("'2020-02-{day} {hour:02}:30:00+00'")
        }
        Type::Time => format!("'{:02}:{}0:00'", chance.between(0, 23), chance.between(0, 5)),
        // No two of these are equal, and expressions produce no such values: '1 day' equals
        // '24:00'.
        Type::Interval => match chance.below(2) {
            0 => format!("'{} days'", chance.between(-3, 5)),
            _ => format!("'{:02}:30:00'", chance.between(0, 23)),
        },
        Type::Uuid => format!("'00000000-0000-0000-0000-00000000000{}'", chance.below(6)),
        Type::Integers => {
            let lists = ["", "1", "2", "1,2", "2,1", "1,NULL", "0,1,2,3", "NULL", "3,3"];
            format!("'{{{}}}'", chance.one_of(&lists))
        }
        Type::Texts => {
            let lists = ["", "a", "b", "a,b", "ab", "a,NULL", "\"x y\",B", "\"\"", "b,a,b"];
            format!("'{{{}}}'", chance.one_of(&lists))
        }
        Type::Json => {
            let values = [
                "1",
                "-2",
                "null",
                "true",
                "\"a\"",
                "[]",
                "{}",
                "[1, 2]",
                "[1, \"a\", null]",
                "{\"a\": 1}",
                "{\"a\": \"b\", \"b\": [1]}",
                "{\"a\": {\"b\": 2}}",
                "[[1], {\"a\": 3}]",
                "{\"b\": null, \"a\": true}",
            ];
            format!("'{}'", chance.one_of(&values))
        }
    }
}

fn table(chance: &mut SeededRandom, number: usize) -> (Table, Vec<Setup>) {
    let mut chosen: Vec<_> = COLUMNS.iter().filter(|_| chance.percent(40)).collect();
    if chosen.len() < 3 {
        chosen = COLUMNS[..5].iter().collect();
    }
    let column = |(name, data_type, _): &&(&str, Type, &str)| Column {
        name: (*name).to_owned(),
        data_type: *data_type,
    };
    let columns: Vec<Column> = chosen.iter().map(column).collect();
    let mut key: Vec<usize> = Vec::new();
    for _ in 0..chance.below(4) {
        let at = chance.below(columns.len());
        if !key.contains(&at) && columns[at].data_type.is_key() {
            key.push(at);
        }
    }
    let unique = chance.percent(25).then(|| chance.below(columns.len()));
    let unique = unique.filter(|at| !key.contains(at) && columns[*at].data_type.is_key());
    let name = format!("t{number}");
    let table = Table { name, columns, key, unique };
    let declared: Vec<&str> = chosen.iter().map(|(_, _, declared)| *declared).collect();
    let mut setup = vec![create(chance, &table, &declared)];
    setup.extend(rows(chance, &table, &declared));
    setup.extend(extras(chance, &table));
    (table, setup)
}

fn create(chance: &mut SeededRandom, table: &Table, declared: &[&str]) -> Setup {
    let columns = table.columns.iter().zip(declared);
    let columns: Vec<String> =
        columns.map(|(column, declared)| format!("{} {declared}", column.name)).collect();
    let mut plain = format!("CREATE TABLE {} ({}", table.name, columns.join(", "));
    if let Some(at) = table.unique {
        plain.push_str(&format!(", UNIQUE ({})", table.columns[at].name));
    }
    let mut rich = plain.clone();
    if !table.key.is_empty() {
        let names: Vec<&str> = table.key.iter().map(|&at| &*table.columns[at].name).collect();
        plain.push_str(&format!(", PRIMARY KEY ({})", names.join(", ")));
        let directed: Vec<String> = names
            .iter()
            .map(|name| format!("{name}{}", if chance.percent(30) { " DESC" } else { "" }))
            .collect();
        rich.push_str(&format!(", PRIMARY KEY ({})", directed.join(", ")));
    }
    plain.push(')');
    rich.push(')');
    let options: Vec<&str> = [(30, "SALT_BUCKETS = 3"), (30, "DATA_BLOCK_ENCODING = ROW")]
        .iter()
        .filter_map(|&(percent, option)| chance.percent(percent).then_some(option))
        .collect();
    rich.push_str(&format!(" {}", options.join(", ")));
    Setup { plain: Some(plain), rich: Some(rich) }
}

fn rows(chance: &mut SeededRandom, table: &Table, declared: &[&str]) -> Vec<Setup> {
    let count = match chance.below(10) {
        0 => 0,
        1 => 1,
        2 => 150,
        _ => 3 + chance.below(25),
    };
    let mut seen = HashSet::new();
    let mut seen_unique = HashSet::new();
    let mut statements = Vec::new();
    for _ in 0..count {
        let values: Vec<String> = table
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| match chance.percent(20) && !table.key.contains(&at) {
                true => "NULL".to_owned(),
                false => literal(chance, column.data_type),
            })
            .collect();
        // Trailing blanks of char(n) are not significant.
        let shown = |at: usize| match as_text(declared[at]) {
            true => values[at].replace(' ', ""),
            false => values[at].clone(),
        };
        let key: Vec<String> = table.key.iter().map(|&at| shown(at)).collect();
        if !table.key.is_empty() && !seen.insert(key.join("|")) {
            continue;
        }
        if let Some(at) = table.unique
            && values[at] != "NULL"
            && !seen_unique.insert(shown(at))
        {
            continue;
        }
        let insert = format!("INSERT INTO {} VALUES ({})", table.name, values.join(", "));
        statements.push(Setup { plain: Some(insert.clone()), rich: Some(insert) });
    }
    statements
}

/// Returns set-up statements that affect only plans.
fn extras(chance: &mut SeededRandom, table: &Table) -> Vec<Setup> {
    let mut setup = Vec::new();
    let mut rich = |text: String| setup.push(Setup { plain: None, rich: Some(text) });
    for number in 0..chance.below(3) {
        let mut columns = Vec::new();
        for _ in 0..=chance.below(2) {
            let column = chance.one_of(&table.columns);
            let direction = ["", " DESC", " NULLS FIRST"][chance.below(3)];
            let key = match (column.data_type, chance.below(6)) {
                (Type::Double, _) => continue,
                (Type::Text, 0) => format!("(upper({}))", column.name),
                (Type::Integer, 0) => format!("(-{})", column.name),
                _ => column.name.clone(),
            };
            columns.push(format!("{key}{direction}"));
        }
        if columns.is_empty() {
            continue;
        }
        let include = match chance.percent(20) {
            true => format!(" INCLUDE ({})", chance.one_of(&table.columns).name),
            false => String::new(),
        };
        let (name, columns) = (&table.name, columns.join(", "));
        rich(format!("CREATE INDEX {name}_{number} ON {name} ({columns}){include}"));
    }
    if chance.percent(30) {
        rich(format!("FLUSH {}", table.name));
    }
    if chance.percent(40) {
        rich(format!("ANALYZE {}", table.name));
    }
    setup
}

/// Returns a foreign key between two tables, or within one; violating rows are deleted before.
fn foreign_key(chance: &mut SeededRandom, tables: &[Table]) -> Vec<Setup> {
    let (child, parent) = (chance.one_of(tables), chance.one_of(tables));
    let known = match (&*parent.key, parent.unique) {
        (_, Some(at)) => at,
        ([at], None) => *at,
        _ => return Vec::new(),
    };
    let known = &parent.columns[known];
    // char(n) has different comparison rules.
    let alike = |column: &&Column| {
        column.data_type == known.data_type && (column.name == "x") == (known.name == "x")
    };
    let same: Vec<&Column> = child.columns.iter().filter(alike).collect();
    if same.is_empty() {
        return Vec::new();
    }
    let (own, column) = (&child.name, &chance.one_of(&same).name);
    let (other, key) = (&parent.name, &known.name);
    let actions = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"];
    let (deleted, updated) = (chance.one_of(&actions), chance.one_of(&actions));
    let deferral = chance.one_of(&["", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"]);
    let both = |text: String| Setup { plain: Some(text.clone()), rich: Some(text) };
    vec![
        both(format!("DELETE FROM {own} WHERE {column} NOT IN (SELECT {key} FROM {other})")),
        both(format!(
            "ALTER TABLE {own} ADD FOREIGN KEY ({column}) REFERENCES {other} ({key}) \
             ON DELETE {deleted} ON UPDATE {updated}{deferral}"
        )),
    ]
}

impl Schema {
    /// Returns random tables.
    pub(super) fn random(chance: &mut SeededRandom) -> Schema {
        let (mut tables, mut setup) = (Vec::new(), Vec::new());
        for number in 0..3 + chance.below(2) {
            let (table, statements) = table(chance, number);
            tables.push(table);
            setup.extend(statements);
        }
        for _ in 0..chance.below(8) {
            setup.extend(foreign_key(chance, &tables));
        }
        if chance.percent(20) {
            setup.push(Setup { plain: None, rich: Some("SET work_mem = '64kB'".to_owned()) });
        }
        Schema { tables, setup }
    }
}
