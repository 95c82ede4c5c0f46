//! Property test of join planning: for random joins, the result equals that of a nested-loop
//! evaluation of the joins as written.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::queries::database::Database;

/// Row of all columns of a statement; columns of tables that are not joined yet are NULL.
type Row = Vec<Option<i32>>;

const COLUMNS: [&str; 3] = ["id", "a", "b"];
const TABLES: usize = 3;

/// Random bytes that determine the choices; 0 after the end.
struct Tape<'a>(std::slice::Iter<'a, u8>);

impl Tape<'_> {
    fn pick(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % count
    }

    fn value(&mut self) -> Option<i32> {
        match self.pick(5) {
            0 => None,
            value => Some(value as i32 - 1),
        }
    }
}

/// Rows of the tables.
type Data = Vec<Vec<Row>>;

fn data(tape: &mut Tape<'_>) -> Data {
    let table = |tape: &mut Tape<'_>| {
        let count = tape.pick(6);
        (0..count).map(|id| vec![Some(id as i32), tape.value(), tape.value()]).collect()
    };
    (0..TABLES).map(|_| table(tape)).collect()
}

enum Operand {
    Column(usize),
    Constant(Option<i32>),
    Coalesce(usize),
}

impl Operand {
    fn draw(tape: &mut Tape<'_>, columns: &std::ops::Range<usize>) -> Operand {
        let column = columns.start + tape.pick(columns.len());
        match tape.pick(8) {
            0 => Operand::Constant(tape.value()),
            1 => Operand::Coalesce(column),
            _ => Operand::Column(column),
        }
    }

    fn text(&self) -> String {
        match self {
            Operand::Column(column) => name(*column),
            Operand::Constant(Some(value)) => value.to_string(),
            Operand::Constant(None) => "null::int".to_owned(),
            Operand::Coalesce(column) => format!("coalesce({}, 1)", name(*column)),
        }
    }

    fn value(&self, row: &Row) -> Option<i32> {
        match self {
            Operand::Column(column) => row[*column],
            Operand::Constant(value) => *value,
            Operand::Coalesce(column) => row[*column].or(Some(1)),
        }
    }
}

fn name(column: usize) -> String {
    format!("x{}.{}", column / COLUMNS.len(), COLUMNS[column % COLUMNS.len()])
}

enum Condition {
    Compare(&'static str, Operand, Operand),
    IsNull(Operand),
    Not(Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    /// EXISTS: a row of the table whose column equals the operand.
    Exists(usize, usize, Operand),
    /// IN: the operand is one of the table's values in the column.
    In(usize, usize, Operand),
    /// Comparison of an aggregate, over the table's rows whose column equals the first operand,
    /// with the second operand.
    Aggregate(&'static str, usize, usize, [Operand; 2]),
}

impl Condition {
    fn draw(tape: &mut Tape<'_>, columns: &std::ops::Range<usize>, deep: bool) -> Condition {
        let operand = |tape: &mut Tape<'_>| Operand::draw(tape, columns);
        match tape.pick(if deep { 20 } else { 10 }) {
            0..=6 => Condition::Compare("=", operand(tape), operand(tape)),
            7 => Condition::Compare("<", operand(tape), operand(tape)),
            8 => Condition::Compare("<>", operand(tape), operand(tape)),
            9 => Condition::IsNull(operand(tape)),
            10 => Condition::Not(Box::new(Condition::draw(tape, columns, true))),
            11 => {
                let left = Condition::draw(tape, columns, true);
                let right = Condition::draw(tape, columns, true);
                Condition::Or(Box::new(left), Box::new(right))
            }
            12 | 13 => Condition::Exists(tape.pick(TABLES), tape.pick(3), operand(tape)),
            14 | 15 => Condition::In(tape.pick(TABLES), tape.pick(3), operand(tape)),
            _ => {
                let function = ["count(*)", "count(b)", "max(a)", "sum(b)"][tape.pick(4)];
                let operands = [operand(tape), operand(tape)];
                Condition::Aggregate(function, tape.pick(TABLES), tape.pick(3), operands)
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Condition::Compare(symbol, left, right) => {
                format!("{} {symbol} {}", left.text(), right.text())
            }
            Condition::IsNull(operand) => format!("{} is null", operand.text()),
            Condition::Not(inner) => format!("not ({})", inner.text()),
            Condition::Or(left, right) => format!("({} or {})", left.text(), right.text()),
            Condition::Exists(table, column, operand) => {
                let (column, operand) = (COLUMNS[*column], operand.text());
                format!("exists (select 1 from t{table} z where z.{column} = {operand})")
            }
            Condition::In(table, column, operand) => {
                let column = COLUMNS[*column];
                format!("{} in (select {column} from t{table})", operand.text())
            }
            Condition::Aggregate(function, table, column, [key, other]) => {
                let (column, key, other) = (COLUMNS[*column], key.text(), other.text());
                format!("(select {function} from t{table} z where z.{column} = {key}) = {other}")
            }
        }
    }

    fn value(&self, row: &Row, data: &Data) -> Option<bool> {
        match self {
            Condition::Compare(symbol, left, right) => {
                let (left, right) = (left.value(row)?, right.value(row)?);
                Some(match *symbol {
                    "=" => left == right,
                    "<" => left < right,
                    _ => left != right,
                })
            }
            Condition::IsNull(operand) => Some(operand.value(row).is_none()),
            Condition::Not(inner) => inner.value(row, data).map(|value| !value),
            Condition::Or(left, right) => match (left.value(row, data), right.value(row, data)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Condition::Exists(table, column, operand) => {
                let value = operand.value(row);
                Some(value.is_some() && data[*table].iter().any(|other| other[*column] == value))
            }
            Condition::In(table, column, operand) => {
                let mut values = data[*table].iter().map(|other| other[*column]);
                let value = operand.value(row);
                if values.len() == 0 {
                    return Some(false);
                }
                value?;
                match values.clone().any(|other| other == value) {
                    true => Some(true),
                    false => values.all(|other| other.is_some()).then_some(false),
                }
            }
            Condition::Aggregate(function, table, column, [key, other]) => {
                let key = key.value(row);
                let rows: Vec<&Row> = data[*table]
                    .iter()
                    .filter(|other| key.is_some() && other[*column] == key)
                    .collect();
                let values = |column: usize| rows.iter().filter_map(move |row| row[column]);
                let value = match *function {
                    "count(*)" => Some(rows.len() as i32),
                    "count(b)" => Some(values(2).count() as i32),
                    "max(a)" => values(1).max(),
                    _ => values(2).reduce(|sum, value| sum + value),
                };
                Some(value? == other.value(row)?)
            }
        }
    }
}

enum Joins {
    Table { place: usize, table: usize },
    Join { kind: &'static str, left: Box<Joins>, right: Box<Joins>, on: Vec<Condition> },
}

impl Joins {
    fn draw(tape: &mut Tape<'_>, places: std::ops::Range<usize>) -> Joins {
        if places.len() == 1 {
            return Joins::Table { place: places.start, table: tape.pick(TABLES) };
        }
        let middle = places.start + 1 + tape.pick(places.len() - 1);
        let kinds = ["join", "join", "join", "left join", "left join", "right join", "full join"];
        let kind = kinds[tape.pick(kinds.len())];
        let left = Box::new(Joins::draw(tape, places.start..middle));
        let right = Box::new(Joins::draw(tape, middle..places.end));
        let columns = places.start * COLUMNS.len()..places.end * COLUMNS.len();
        let count = 1 + tape.pick(3);
        let on = (0..count).map(|_| Condition::draw(tape, &columns, false)).collect();
        Joins::Join { kind, left, right, on }
    }

    fn text(&self) -> String {
        match self {
            Joins::Table { place, table } => format!("t{table} x{place}"),
            Joins::Join { kind, left, right, on } => {
                let on: Vec<String> = on.iter().map(Condition::text).collect();
                format!("({} {kind} {} on {})", left.text(), right.text(), on.join(" and "))
            }
        }
    }

    fn rows(&self, width: usize, data: &Data) -> Vec<Row> {
        match self {
            Joins::Table { place, table } => {
                let wide = |row: &Row| {
                    let mut wide = vec![None; width];
                    wide[place * COLUMNS.len()..][..COLUMNS.len()].copy_from_slice(row);
                    wide
                };
                data[*table].iter().map(wide).collect()
            }
            Joins::Join { kind, left, right, on } => {
                let (left, right) = (left.rows(width, data), right.rows(width, data));
                let mut rows = Vec::new();
                let mut matched = vec![false; right.len()];
                for one in &left {
                    let before = rows.len();
                    for (other, matched) in right.iter().zip(&mut matched) {
                        let both: Row = one.iter().zip(other).map(|(a, b)| a.or(*b)).collect();
                        if on.iter().all(|condition| condition.value(&both, data) == Some(true)) {
                            rows.push(both);
                            *matched = true;
                        }
                    }
                    if rows.len() == before && matches!(*kind, "left join" | "full join") {
                        rows.push(one.clone());
                    }
                }
                if matches!(*kind, "right join" | "full join") {
                    let alone = right.into_iter().zip(matched).filter(|(_, matched)| !matched);
                    rows.extend(alone.map(|(row, _)| row));
                }
                rows
            }
        }
    }
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

fn setup(data: &Data, tape: &mut Tape<'_>) -> Database {
    let mut database = Database::default();
    let value = |value: &Option<i32>| value.map_or("null".to_owned(), |value| value.to_string());
    let mut script = String::new();
    for (number, rows) in data.iter().enumerate() {
        let salt = ["", " salt_buckets = 2"][tape.pick(2)];
        let _ =
            writeln!(script, "create table t{number} (id int primary key, a int, b int){salt};");
        let indexes = ["(a)", "(b desc)", "(a, b)", "(b, a) salt_buckets = 3", "(b) include (a)"];
        for (suffix, columns) in indexes.iter().enumerate() {
            if tape.pick(3) == 0 {
                let _ = writeln!(script, "create index t{number}_{suffix} on t{number} {columns};");
            }
        }
        for row in rows {
            let row: Vec<String> = row.iter().map(value).collect();
            let _ = writeln!(script, "insert into t{number} values ({});", row.join(", "));
        }
    }
    let answer = database.script(&script);
    assert!(!answer.contains("error"), "{answer}");
    database
}

fn check(database: &mut Database, data: &Data, tape: &mut Tape<'_>) -> Result<(), TestCaseError> {
    // The row counts determine the choice between complete scans and look-ups.
    for table in 0..TABLES {
        let rows = ["1", "1000", "1000000"][tape.pick(3)];
        database.note_rows(&format!("# rows: t{table} {rows}"));
    }
    let places = 1 + tape.pick(5);
    let width = places * COLUMNS.len();
    let joins = Joins::draw(tape, 0..places);
    let count = tape.pick(4);
    let filter: Vec<Condition> =
        (0..count).map(|_| Condition::draw(tape, &(0..width), true)).collect();
    let columns: Vec<String> = (0..width).map(name).collect();
    let mut sql = format!("select {} from {}", columns.join(", "), joins.text());
    if !filter.is_empty() {
        let filter: Vec<String> = filter.iter().map(Condition::text).collect();
        let _ = write!(sql, " where {}", filter.join(" and "));
    }
    let holds = |row: &Row| filter.iter().all(|one| one.value(row, data) == Some(true));
    let value = |value: &Option<i32>| value.map_or("NULL".to_owned(), |value| value.to_string());
    let text = |row: Row| row.iter().map(value).collect::<Vec<String>>().join("|");
    let expected = joins.rows(width, data).into_iter().filter(holds).map(text).collect();
    let found = database.query(&sql);
    prop_assert!(found.is_ok(), "{sql}\n{found:?}");
    let plan = database.explain(&sql).join("\n");
    prop_assert_eq!(sorted(found.unwrap()), sorted(expected), "{}\n{}", sql, plan);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_join_order_yields_same_rows(
        rows in prop::collection::vec(any::<u8>(), 64),
        queries in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..96), 40),
    ) {
        let tape = &mut Tape(rows.iter());
        let data = data(tape);
        let mut database = setup(&data, tape);
        for query in &queries {
            check(&mut database, &data, &mut Tape(query.iter()))?;
        }
    }
}
