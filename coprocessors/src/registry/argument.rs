//! Arguments of coprocessors: the declared parameters, and the values of
//! `WITH (name = value, …)`.
//!
//! The catalog stores arguments as written, names and texts. [`Arguments::read`] checks them
//! against the parameters and the table, so that mistakes are reported when the coprocessor is
//! attached, not when the first row is written.

use std::collections::BTreeMap;

use types::datetime::TimeZone;
use types::text::{self, TextStyle};
use types::{DataType, Datum, Error, Result};

use crate::registry::TableSchema;

/// Kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Any text.
    Text,
    /// An integer.
    Integer,
    /// `true` or `false`, in the spellings of SQL.
    Boolean,
    /// A fixed duration: an interval without months. A plain number is in seconds.
    Duration,
    /// A column of the table.
    Column,
    /// Distinct columns of the table, separated by commas.
    Columns,
    /// The name of another table.
    Table,
}

/// Requirement of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterRequirement {
    /// It must be present.
    Required,
    /// It may be omitted.
    Optional,
    /// It may be omitted and then has this value.
    Default(&'static str),
}

/// A parameter of a coprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: ArgumentKind,
    /// Requirement: required, optional or with a default.
    pub need: ParameterRequirement,
    /// A short description.
    pub about: &'static str,
}

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Argument {
    Text(String),
    Integer(i64),
    Boolean(bool),
    Duration(i64),
    Columns(Vec<usize>),
    Table(String),
}

/// The checked arguments of one attachment, with defaults filled in.
///
/// Each accessor returns `None` if the argument is of another kind or was omitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    values: BTreeMap<&'static str, Argument>,
}

impl Arguments {
    /// Checks the arguments of `WITH` and fills in defaults.
    ///
    /// # Errors
    ///
    /// `22023` for an unknown or repeated name, a value of the wrong kind and a missing required
    /// argument; `42703` for a column that the table does not have.
    pub fn read(
        coprocessor: &str,
        parameters: &[Parameter],
        table: &TableSchema,
        written: &[(String, String)],
    ) -> Result<Arguments> {
        let mut values = Arguments::read_partial(coprocessor, parameters, table, written)?.values;
        for parameter in parameters {
            if values.contains_key(parameter.name) {
                continue;
            }
            match parameter.need {
                ParameterRequirement::Optional => {}
                ParameterRequirement::Default(value) => {
                    values.insert(parameter.name, read(parameter, table, value)?);
                }
                ParameterRequirement::Required => {
                    bail!(INVALID_PARAMETER_VALUE: "coprocessor \"{coprocessor}\" requires parameter \"{}\"", parameter.name;
                        detail "The parameter is {}.", parameter.about);
                }
            }
        }
        Ok(Arguments { values })
    }

    /// Checks a part of the arguments, to which others may be added: without defaults and without
    /// a check for missing ones.
    ///
    /// # Errors
    ///
    /// As [`Arguments::read`].
    pub fn read_partial(
        coprocessor: &str,
        parameters: &[Parameter],
        table: &TableSchema,
        written: &[(String, String)],
    ) -> Result<Arguments> {
        let mut values = BTreeMap::new();
        for (name, value) in written {
            let Some(parameter) = parameters.iter().find(|known| known.name == name) else {
                return Err(unknown(coprocessor, parameters, name));
            };
            if values.insert(parameter.name, read(parameter, table, value)?).is_some() {
                bail!(INVALID_PARAMETER_VALUE: "parameter \"{name}\" specified more than once");
            }
        }
        Ok(Arguments { values })
    }

    /// Returns a text argument.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Argument::Text(value) => Some(value),
            _ => None,
        }
    }

    /// Returns an integer argument.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.values.get(name)? {
            Argument::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a boolean argument.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        match self.values.get(name)? {
            Argument::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a duration in microseconds.
    pub fn duration_micros(&self, name: &str) -> Option<i64> {
        match self.values.get(name)? {
            Argument::Duration(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns(name)?.first().copied()
    }

    /// Returns the positions of columns, in the order in which they were written.
    pub fn columns(&self, name: &str) -> Option<&[usize]> {
        match self.values.get(name)? {
            Argument::Columns(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the name of another table.
    pub fn table(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Argument::Table(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the names of all other tables in arguments.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.values.values().filter_map(|value| match value {
            Argument::Table(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

fn unknown(coprocessor: &str, parameters: &[Parameter], name: &str) -> Error {
    let known: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    let detail = match known[..] {
        [] => "It has no parameters.".to_owned(),
        _ => format!("Its parameters are {}.", known.join(", ")),
    };
    err!(INVALID_PARAMETER_VALUE: "coprocessor \"{coprocessor}\" has no parameter \"{name}\""; detail detail)
}

fn read(parameter: &Parameter, table: &TableSchema, text: &str) -> Result<Argument> {
    let bad = |why: &str| {
        err!(INVALID_PARAMETER_VALUE: "invalid value for parameter \"{}\": \"{text}\"", parameter.name;
            detail "{why}.")
    };
    Ok(match parameter.kind {
        ArgumentKind::Text => Argument::Text(text.to_owned()),
        ArgumentKind::Table if text.is_empty() => {
            return Err(bad("The value must be the name of a table"));
        }
        ArgumentKind::Table => Argument::Table(text.to_owned()),
        ArgumentKind::Integer => {
            Argument::Integer(text.parse().map_err(|_| bad("The value must be an integer"))?)
        }
        ArgumentKind::Boolean => {
            let value = text::parse(text, &DataType::Bool, &TextStyle::default());
            let value = value.ok().and_then(|value| value.as_bool());
            Argument::Boolean(value.ok_or_else(|| bad("The value must be true or false"))?)
        }
        ArgumentKind::Duration => Argument::Duration(duration_micros(text).ok_or_else(|| {
            bad("The value must be an interval without months, such as '7 days'")
        })?),
        ArgumentKind::Column | ArgumentKind::Columns => {
            let names = names(text)
                .ok_or_else(|| bad("The value must be a comma-separated list of columns"))?;
            if parameter.kind == ArgumentKind::Column && names.len() != 1 {
                return Err(bad("The value must be the name of one column"));
            }
            let mut columns = Vec::with_capacity(names.len());
            for name in &names {
                let column = table.column(name).ok_or_else(|| undefined_column(table, name))?;
                if columns.contains(&column) {
                    return Err(bad("A column appears more than once"));
                }
                columns.push(column);
            }
            Argument::Columns(columns)
        }
    })
}

/// Returns `column "c" of relation "t" does not exist`.
fn undefined_column(table: &TableSchema, column: &str) -> Error {
    err!(UNDEFINED_COLUMN: "column \"{column}\" of relation \"{}\" does not exist", table.name)
}

/// Returns the names of a list, case-folded as in SQL; `None` if one is empty or malformed.
fn names(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    loop {
        let name;
        if let Some(quoted) = rest.strip_prefix('"') {
            // A doubled quote stands for one.
            let mut end = 0;
            let bytes = quoted.as_bytes();
            loop {
                end += quoted.get(end..)?.find('"')?;
                if bytes.get(end + 1) != Some(&b'"') {
                    break;
                }
                end += 2;
            }
            name = quoted[..end].replace("\"\"", "\"");
            rest = quoted[end + 1..].trim_start();
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            name = rest[..end].trim_end().to_lowercase();
            rest = &rest[end..];
        }
        if name.is_empty() {
            return None;
        }
        names.push(name);
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => return rest.is_empty().then_some(names),
        }
    }
}

/// Returns a duration in microseconds; `None` if it is malformed, has months or is not above
/// zero.
fn duration_micros(text: &str) -> Option<i64> {
    let micros = match text.parse::<i64>() {
        Ok(seconds) => seconds.checked_mul(1_000_000)?,
        Err(_) => {
            let style = TextStyle { time_zone: TimeZone::default(), ..TextStyle::default() };
            let Ok(Datum::Interval(value)) = text::parse(text, &DataType::Interval, &style) else {
                return None;
            };
            if value.months != 0 {
                return None;
            }
            i64::from(value.days).checked_mul(86_400_000_000)?.checked_add(value.microseconds)?
        }
    };
    (micros > 0).then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::shape;

    const PARAMETERS: &[Parameter] = &[
        Parameter {
            name: "table",
            kind: ArgumentKind::Table,
            need: ParameterRequirement::Required,
            about: "x",
        },
        Parameter {
            name: "by",
            kind: ArgumentKind::Columns,
            need: ParameterRequirement::Optional,
            about: "x",
        },
        Parameter {
            name: "at",
            kind: ArgumentKind::Column,
            need: ParameterRequirement::Optional,
            about: "x",
        },
        Parameter {
            name: "after",
            kind: ArgumentKind::Duration,
            need: ParameterRequirement::Default("1 hour"),
            about: "x",
        },
        Parameter {
            name: "count",
            kind: ArgumentKind::Integer,
            need: ParameterRequirement::Optional,
            about: "x",
        },
        Parameter {
            name: "strict",
            kind: ArgumentKind::Boolean,
            need: ParameterRequirement::Optional,
            about: "x",
        },
    ];

    fn read_all(written: &[(&str, &str)]) -> Result<Arguments> {
        let table = shape("t", &[("id", DataType::Int4), ("Größe, x", DataType::Text)]);
        let written: Vec<(String, String)> =
            written.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Arguments::read("summary", PARAMETERS, &table, &written)
    }

    #[test]
    fn arguments_are_parsed_with_defaults() {
        let arguments = read_all(&[
            ("table", "s"),
            ("by", " ID , \"Größe, x\""),
            ("at", "id"),
            ("count", "-7"),
            ("strict", "on"),
        ])
        .unwrap();
        assert_eq!(arguments.table("table"), Some("s"));
        assert_eq!(arguments.tables().collect::<Vec<_>>(), ["s"]);
        assert_eq!(arguments.columns("by"), Some(&[0, 1][..]));
        assert_eq!(arguments.column("at"), Some(0));
        assert_eq!(arguments.integer("count"), Some(-7));
        assert_eq!(arguments.boolean("strict"), Some(true));
        assert_eq!(arguments.duration_micros("after"), Some(3_600_000_000));
        assert_eq!(arguments.text("table"), None, "it is of another kind");
    }

    #[test]
    fn invalid_arguments_have_specific_sqlstates() {
        let code = |written: &[(&str, &str)]| read_all(written).unwrap_err().sqlstate;
        assert_eq!(code(&[]), "22023");
        assert_eq!(code(&[("table", "s"), ("colour", "red")]), "22023");
        assert_eq!(code(&[("table", "s"), ("table", "s")]), "22023");
        assert_eq!(code(&[("table", "")]), "22023");
        for bad in ["1 month", "-3", "soon"] {
            assert_eq!(code(&[("table", "s"), ("after", bad)]), "22023", "{bad}");
        }
        assert_eq!(code(&[("table", "s"), ("count", "1.5")]), "22023");
        assert_eq!(code(&[("table", "s"), ("strict", "perhaps")]), "22023");
        assert_eq!(code(&[("table", "s"), ("by", "id, id")]), "22023");
        assert_eq!(code(&[("table", "s"), ("by", "id,")]), "22023");
        assert_eq!(code(&[("table", "s"), ("by", "\"id")]), "22023");
        assert_eq!(code(&[("table", "s"), ("at", "id, \"Größe, x\"")]), "22023");
        assert_eq!(code(&[("table", "s"), ("by", "nothing")]), "42703");
    }

    #[test]
    fn doubled_quotes_in_names_are_unescaped() {
        assert_eq!(names("\"a\"\"b\" , C"), Some(vec!["a\"b".to_owned(), "c".to_owned()]));
        assert_eq!(names("\"a\" b"), None);
    }
}
