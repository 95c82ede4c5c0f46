//! Script commands that write: edits, and changes of a row that depend on the row.

use std::fmt::Write as _;
use std::time::Duration;

use store::scan::filter::{CompareOp, Comparison, Filter};
use store::{
    ColumnName, Condition, Edit, RowChange, RowMutation, TableId, TimeRange, Timestamp, Transaction,
};

use crate::{Answer, ScriptRun, Words, shown};

impl ScriptRun {
    /// Returns the edit of a verb: `put d:q value [ttl=MILLISECONDS]`, `delete-row`,
    /// `delete-family d`, `delete-family-version d`, `delete-column d:q`, `delete-version d:q`.
    pub(crate) fn edit(
        &self,
        verb: &str,
        table: TableId,
        timestamp: Option<Timestamp>,
        words: &mut Words<'_>,
    ) -> Result<Edit, String> {
        if verb == "delete-row" {
            return Ok(Edit::DeleteRow { timestamp });
        }
        let (family, qualifier) = self.column(table, words.next("column")?)?;
        let version = timestamp.ok_or("the version is missing");
        Ok(match verb {
            "delete-family" => Edit::DeleteFamily { family, timestamp },
            "delete-family-version" => Edit::DeleteFamilyVersion { family, timestamp: version? },
            "delete-column" => Edit::DeleteColumn { family, qualifier, timestamp },
            "delete-version" => Edit::DeleteVersion { family, qualifier, timestamp: version? },
            "put" => {
                let value = value(words.next("value")?);
                let ttl = words.named.remove("ttl");
                let ttl = ttl.map(|ttl| ttl.parse().map(Duration::from_millis));
                let ttl = ttl.transpose().map_err(|_| "bad ttl")?;
                Edit::Put { family, qualifier, timestamp, value, ttl }
            }
            other => return Err(format!("unknown change {other}")),
        })
    }

    /// `change TABLE ROW [since= until=] [ttl=] [if CONDITION /] CHANGE [/ CHANGE …]`, where a
    /// condition is `d:q eq value` (or ne, lt, le, gt, ge), `d:q absent` or `row-has value`, and a
    /// change an edit, `increment d:q 5`, `append d:q text` or `delete-newest d:q`.
    pub(crate) fn change(&self, transaction: &Transaction, words: &mut Words<'_>) -> Answer {
        let table = self.table(words)?;
        let mut mutation = RowMutation::new(words.next("row")?);
        let min = Timestamp(words.number("since", i64::MIN)?);
        let max = Timestamp(words.number("until", i64::MAX)?);
        mutation.time_range = TimeRange::new(min, max);
        let mut condition = None;
        let parts: Vec<&str> = words.positional.drain(..).collect();
        for part in parts.split(|word| *word == "/") {
            let mut part = Words { positional: part.iter().copied().collect(), ..Words::new("") };
            part.named.append(&mut words.named);
            match part.next("change")? {
                "if" => condition = Some(self.condition(table, &mut part)?),
                verb => mutation.changes.push(self.row_change(verb, table, &mut part)?),
            }
            mutation.ttl = match part.number("new-ttl", 0)? {
                0 => mutation.ttl,
                ttl => Some(Duration::from_millis(ttl)),
            };
            part.end()?;
        }
        let row = String::from_utf8_lossy(&mutation.row).into_owned();
        let written = match condition {
            None => Some(transaction.mutate_row(table, mutation).map_err(shown)?),
            Some(condition) => {
                transaction.check_and_mutate(table, &condition, mutation).map_err(shown)?
            }
        };
        let Some(written) = written else { return Ok("not changed\n".into()) };
        let mut out = String::new();
        for written in written {
            let family = &self.families[&table][usize::from(written.column.family)];
            let qualifier = String::from_utf8_lossy(&written.column.qualifier);
            writeln!(out, "{row} {family}:{qualifier} = {}", shown_value(&written.value)).unwrap();
        }
        Ok(out)
    }

    fn row_change(
        &self,
        verb: &str,
        table: TableId,
        words: &mut Words<'_>,
    ) -> Result<RowChange, String> {
        let column = |words: &mut Words<'_>| {
            let (family, qualifier) = self.column(table, words.next("column")?)?;
            Ok::<ColumnName, String>(ColumnName { family, qualifier })
        };
        Ok(match verb {
            "increment" => {
                let column = column(words)?;
                let amount = words.next("amount")?.parse().map_err(|_| "bad amount")?;
                RowChange::Increment { column, amount }
            }
            "append" => {
                RowChange::Append { column: column(words)?, value: value(words.next("value")?) }
            }
            "delete-newest" => RowChange::DeleteNewest { column: column(words)? },
            _ => {
                let timestamp = words.at()?;
                RowChange::Edit(self.edit(verb, table, timestamp, words)?)
            }
        })
    }

    fn condition(&self, table: TableId, words: &mut Words<'_>) -> Result<Condition, String> {
        let what = words.next("condition")?;
        if what == "row-has" {
            let equal = Comparison::binary(CompareOp::Equal, value(words.next("value")?));
            return Ok(Condition::Row(Filter::Value(equal)));
        }
        let (family, qualifier) = self.column(table, what)?;
        let column = ColumnName { family, qualifier };
        let op = match words.next("operator")? {
            "absent" => return Ok(Condition::Absent(column)),
            "eq" => CompareOp::Equal,
            "ne" => CompareOp::NotEqual,
            "lt" => CompareOp::Less,
            "le" => CompareOp::LessOrEqual,
            "gt" => CompareOp::Greater,
            "ge" => CompareOp::GreaterOrEqual,
            other => return Err(format!("unknown operator {other}")),
        };
        Ok(Condition::Value { column, op, value: value(words.next("value")?) })
    }
}

/// Returns the bytes of a word; `#5` is the number 5.
fn value(word: &str) -> Vec<u8> {
    match word.strip_prefix('#').and_then(|number| number.parse::<i64>().ok()) {
        Some(number) => number.to_be_bytes().to_vec(),
        None => word.into(),
    }
}

/// Returns a value as a word.
pub(crate) fn shown_value(value: &[u8]) -> String {
    match <[u8; 8]>::try_from(value) {
        Ok(bytes) if matches!(bytes[0], 0 | 0x7f..) => format!("#{}", i64::from_be_bytes(bytes)),
        _ => String::from_utf8_lossy(value).into_owned(),
    }
}
