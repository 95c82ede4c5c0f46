//! Functions that users define, in the catalog: a row for each.
//!
//! The key is `f` and the function's number; the one cell holds a [`FunctionRecord`], and behind it
//! what records have got since their first form ([`Later`]). The body is statements, kept as text:
//! parsed when the function enters the catalog snapshot, bound for the statements that call it.
//! Procedures are functions, too.

use std::borrow::Cow;
use std::sync::Arc;

use types::{DataType, SqlType};

use crate::ast::{Language, Parallel, Query, Statement, Volatility};
use crate::catalog::Catalog;
use crate::catalog::internal_names::{InternalName, internal_name};
use crate::catalog::later::{Later, decode_with, encode_with};
use crate::catalog::name::SearchPath;
use crate::catalog::user_type::OID_OFFSET;
use crate::error::Result;
use crate::parser;

/// What the keys of functions begin with.
pub const FUNCTIONS_PREFIX: &[u8] = b"f";

/// Returns the key of a function's row.
pub fn function_key(number: u32) -> Vec<u8> {
    [FUNCTIONS_PREFIX, number.to_be_bytes().as_slice()].concat()
}

/// A function on disk.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct FunctionRecord {
    /// Its number.
    pub number: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// What it takes.
    pub parameters: Vec<ParameterRecord>,
    /// What it returns.
    pub returns: ReturnRecord,
    /// How its value may change.
    pub volatility: Volatility,
    /// NULL if an argument is.
    pub strict: bool,
    /// Text of the statements.
    pub body: String,
    /// Where names of the body without a schema are looked for; without one, where the caller looks
    /// for them.
    pub search_path: Option<Vec<String>>,
    /// What it is called by.
    pub kind: Later<RoutineKind>,
    /// What it takes and gives, beside [`FunctionRecord::parameters`], which are those that it
    /// takes.
    pub more: Later<Vec<MoreParameter>>,
    /// The body was given as `RETURN expression`.
    pub is_expression: Later<bool>,
    /// What planners may know of it.
    pub hints: Later<Hints>,
    /// The language of its body.
    pub language: Later<Language>,
    /// Settings that it runs with, and their values as they were given.
    pub settings: Later<Vec<(String, String)>>,
}

/// What PostgreSQL's planner may be told of a function; bennu's sees what is in it, and only shows
/// what was said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hints {
    /// `COST`
    pub cost: Option<f32>,
    /// `ROWS`
    pub rows: Option<f32>,
    /// `PARALLEL`
    pub parallel: Parallel,
    /// `LEAKPROOF`
    pub is_leakproof: bool,
}

/// What calls it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RoutineKind {
    /// Expressions and FROM.
    #[default]
    Function,
    /// CALL.
    Procedure,
}

/// What a parameter is beside something that is taken.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum MoreParameter {
    /// A parameter that is given back as well: its position among those that are taken.
    InOut(u32),
    /// The last one that is taken is an array of any number of arguments.
    Variadic,
    /// One that is given back only: its position among all, name and OID of the type.
    Out(u32, String, u32),
}

/// An addition to the first form of a record.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
enum Addition {
    Procedure,
    Parameter(MoreParameter),
    IsExpression,
    Cost(f32),
    Rows(f32),
    Parallel(Parallel),
    IsLeakproof,
    PlPgSql,
    Setting(String, String),
    Internal,
}

/// Returns the bytes of a function's record.
pub fn encode_function(record: &FunctionRecord) -> Vec<u8> {
    let mut additions = Vec::new();
    if *record.kind == RoutineKind::Procedure {
        additions.push(Addition::Procedure);
    }
    additions.extend(record.more.iter().cloned().map(Addition::Parameter));
    if *record.is_expression {
        additions.push(Addition::IsExpression);
    }
    let Hints { cost, rows, parallel, is_leakproof } = *record.hints;
    additions.extend(cost.map(Addition::Cost));
    additions.extend(rows.map(Addition::Rows));
    if parallel != Parallel::Unsafe {
        additions.push(Addition::Parallel(parallel));
    }
    if is_leakproof {
        additions.push(Addition::IsLeakproof);
    }
    match *record.language {
        Language::Sql => {}
        Language::PlPgSql => additions.push(Addition::PlPgSql),
        Language::Internal => additions.push(Addition::Internal),
    }
    let settings = record.settings.iter().cloned();
    additions.extend(settings.map(|(name, value)| Addition::Setting(name, value)));
    encode_with(record, &additions)
}

/// Returns the function's record of some bytes.
///
/// # Errors
///
/// XX001 if they are not one.
pub fn decode_function(bytes: &[u8]) -> Result<FunctionRecord> {
    let (mut record, additions) = decode_with::<FunctionRecord, Addition>(bytes)?;
    for addition in additions {
        match addition {
            Addition::Procedure => record.kind.0 = RoutineKind::Procedure,
            Addition::Parameter(parameter) => record.more.0.push(parameter),
            Addition::IsExpression => record.is_expression.0 = true,
            Addition::Cost(cost) => record.hints.0.cost = Some(cost),
            Addition::Rows(rows) => record.hints.0.rows = Some(rows),
            Addition::Parallel(parallel) => record.hints.0.parallel = parallel,
            Addition::IsLeakproof => record.hints.0.is_leakproof = true,
            Addition::PlPgSql => record.language.0 = Language::PlPgSql,
            Addition::Setting(name, value) => record.settings.0.push((name, value)),
            Addition::Internal => record.language.0 = Language::Internal,
        }
    }
    Ok(record)
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct ParameterRecord {
    /// Its name; empty without one.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
    /// SQL text of what it is if it is left out.
    pub default: Option<String>,
}

/// What a function returns; types are OIDs.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum ReturnRecord {
    /// One value.
    Value(u32),
    /// Values.
    Set(u32),
    /// Rows.
    Table(Vec<(String, u32)>),
}

/// How a parameter is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is taken.
    In,
    /// It is given back.
    Out,
    /// Both.
    InOut,
    /// An array of all arguments from here on.
    Variadic,
    /// A column of the table that is returned.
    Table,
}

/// A parameter, as the function was declared with it.
#[derive(Debug, Clone)]
pub struct Declared<'a> {
    /// Its name; empty without one.
    pub name: &'a str,
    /// OID of its type.
    pub type_oid: u32,
    /// How it is used.
    pub mode: Mode,
    /// What it is if it is left out.
    pub default: Option<&'a String>,
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// What is stored of it.
    pub record: FunctionRecord,
    /// The types of the parameters that it takes.
    pub parameters: Vec<SqlType>,
    /// The columns of what it returns; one without a name for a value or values.
    pub columns: Vec<(String, SqlType)>,
    /// The body.
    pub statements: Vec<Statement>,
    /// Why the body cannot be read, if it cannot: it was written when more was a name. Such a
    /// function cannot be called; the rest of the database can be used.
    pub unreadable: Option<String>,
    /// Where names of the body are looked for, unless it is where the caller does.
    pub search_path: Option<Arc<SearchPath>>,
}

impl FunctionRecord {
    /// Returns the parameters as they were declared, columns of a returned table last.
    pub fn declared(&self) -> Vec<Declared<'_>> {
        let variadic = self.more.contains(&MoreParameter::Variadic);
        let last = self.parameters.len().saturating_sub(1);
        let taken = self.parameters.iter().enumerate().map(|(at, one)| Declared {
            name: &one.name,
            type_oid: one.type_oid,
            mode: match () {
                () if self.more.contains(&MoreParameter::InOut(at as u32)) => Mode::InOut,
                () if variadic && at == last => Mode::Variadic,
                () => Mode::In,
            },
            default: one.default.as_ref(),
        });
        let mut declared: Vec<Declared<'_>> = taken.collect();
        for more in self.more.iter() {
            if let MoreParameter::Out(at, name, type_oid) = more {
                let at = (*at as usize).min(declared.len());
                let out = Declared { name, type_oid: *type_oid, mode: Mode::Out, default: None };
                declared.insert(at, out);
            }
        }
        if let ReturnRecord::Table(columns) = &self.returns {
            declared.extend(columns.iter().map(|(name, type_oid)| Declared {
                name,
                type_oid: *type_oid,
                mode: Mode::Table,
                default: None,
            }));
        }
        declared
    }

    /// Returns names and types of what it gives back by parameters.
    pub fn outs(&self) -> Vec<(String, u32)> {
        let declared = self.declared().into_iter();
        let outs = declared.filter(|one| !matches!(one.mode, Mode::In | Mode::Variadic));
        outs.map(|one| (one.name.to_owned(), one.type_oid)).collect()
    }

    /// Returns whether it returns a set, and the OID of the type of its rows or values.
    pub fn result(&self) -> (bool, u32) {
        match &self.returns {
            ReturnRecord::Value(oid) => (false, *oid),
            ReturnRecord::Set(oid) => (true, *oid),
            ReturnRecord::Table(columns) => match columns.as_slice() {
                [(_, oid)] => (true, *oid),
                _ => (true, DataType::Record.oid()),
            },
        }
    }

    /// Returns whether the last parameter takes any number of arguments.
    pub fn is_variadic(&self) -> bool {
        self.more.contains(&MoreParameter::Variadic)
    }

    /// Returns the body as SQL: of language `internal` a call of the function that it names.
    pub fn sql_body(&self) -> Cow<'_, str> {
        if *self.language != Language::Internal {
            return Cow::Borrowed(&self.body);
        }
        let taken = (1..=self.parameters.len()).map(|at| format!("${at}"));
        let taken = taken.collect::<Vec<_>>().join(", ");
        let name = match internal_name(&self.body) {
            Some(InternalName::Function(meant)) => meant,
            _ => &self.body,
        };
        Cow::Owned(format!("SELECT pg_catalog.{}({taken})", parser::quoted(name)))
    }

    /// Returns what a call costs, in units of PostgreSQL's operators.
    pub fn shown_cost(&self) -> f32 {
        self.hints.cost.unwrap_or_else(|| self.default_cost())
    }

    /// Returns what a call costs of which nothing is said.
    pub fn default_cost(&self) -> f32 {
        if *self.language == Language::Internal { 1.0 } else { 100.0 }
    }

    /// Returns whether it is called by CALL.
    pub fn is_procedure(&self) -> bool {
        *self.kind == RoutineKind::Procedure
    }

    /// Returns what errors and statements call it.
    pub fn noun(&self) -> &'static str {
        if self.is_procedure() { "procedure" } else { "function" }
    }
}

impl Function {
    /// Returns the function that a record describes.
    ///
    /// # Errors
    ///
    /// XX001 for an unknown type.
    pub fn of_record(record: FunctionRecord, catalog: &Catalog) -> Result<Function> {
        let type_of = |oid: u32| catalog.stored_type(oid, -1);
        let parameters = record.parameters.iter().map(|one| type_of(one.type_oid));
        let parameters = parameters.collect::<Result<_>>()?;
        let outs = record.outs();
        let columns = match &record.returns {
            ReturnRecord::Value(oid) | ReturnRecord::Set(oid) if outs.is_empty() => {
                vec![(String::new(), type_of(*oid)?)]
            }
            _ => {
                let count = outs.len();
                let named = |(at, (name, oid)): (usize, (String, u32))| {
                    let name = match name.is_empty() && count > 1 {
                        true => format!("column{}", at + 1),
                        false => name,
                    };
                    Ok((name, type_of(oid)?))
                };
                outs.into_iter().enumerate().map(named).collect::<Result<_>>()?
            }
        };
        let (statements, unreadable) = match parser::parse_statements(&record.sql_body()) {
            // It is read when it is called.
            _ if *record.language == Language::PlPgSql => (Vec::new(), None),
            Ok(statements) => (statements.into_iter().map(|one| one.statement).collect(), None),
            Err(error) => (Vec::new(), Some(error.message)),
        };
        let search_path = record.search_path.clone().map(|path| Arc::new(SearchPath::of(path)));
        Ok(Function { record, parameters, columns, statements, unreadable, search_path })
    }

    /// Returns its OID.
    pub fn oid(&self) -> u32 {
        self.record.number + OID_OFFSET
    }

    /// Returns how many arguments a call must have: those behind have defaults.
    pub fn required(&self) -> usize {
        let with = self.record.parameters.iter().filter(|one| one.default.is_some()).count();
        self.record.parameters.len() - with
    }

    /// Returns whether it returns any number of rows.
    pub fn is_set(&self) -> bool {
        !matches!(self.record.returns, ReturnRecord::Value(_))
    }

    /// Returns how many rows it is thought to return.
    pub fn shown_rows(&self) -> f32 {
        if self.is_set() { self.record.hints.rows.unwrap_or(1_000.0) } else { 0.0 }
    }

    /// Returns whether it returns rows of the columns that it was declared with.
    pub fn is_row(&self) -> bool {
        self.columns.len() != 1 || self.record.is_procedure() && !self.record.outs().is_empty()
    }

    /// Returns whether it takes or returns a type that is a shell only.
    pub fn is_of_shell(&self, catalog: &Catalog) -> bool {
        let is_shell = |oid: &u32| catalog.type_of_oid(*oid).is_some_and(|found| found.is_shell());
        self.type_oids().iter().any(is_shell)
    }

    /// Returns whether types of it are those of the arguments of a call.
    pub fn is_polymorphic(&self) -> bool {
        self.parameters.iter().any(|one| one.base.is_polymorphic())
    }

    /// Returns the one query of the body, if it is nothing else.
    pub fn query(&self) -> Option<&Query> {
        match self.statements.as_slice() {
            [Statement::Query(query)] => Some(query),
            _ => None,
        }
    }

    /// Returns the OIDs of the types that it takes and returns.
    pub fn type_oids(&self) -> Vec<u32> {
        let mut oids: Vec<u32> = self.parameters.iter().map(|one| one.oid()).collect();
        oids.extend(self.columns.iter().map(|(_, sql_type)| sql_type.oid()));
        oids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::record;

    fn function() -> FunctionRecord {
        FunctionRecord {
            number: 7,
            schema: "public".to_owned(),
            name: "f".to_owned(),
            parameters: vec![ParameterRecord { name: "a".to_owned(), type_oid: 23, default: None }],
            returns: ReturnRecord::Value(23),
            volatility: Volatility::Stable,
            strict: true,
            body: "select a".to_owned(),
            search_path: None,
            kind: Later::default(),
            more: Later::default(),
            is_expression: Later::default(),
            hints: Later::default(),
            language: Later::default(),
            settings: Later::default(),
        }
    }

    #[test]
    fn a_plain_function_is_written_as_it_always_was() {
        let bytes = encode_function(&function());
        assert_eq!(bytes, record::encode(&function()));
        assert_eq!(decode_function(&bytes).unwrap(), function());
    }

    #[test]
    fn a_body_that_cannot_be_read_keeps_nothing_else_from_being_used() {
        let written = FunctionRecord { body: "select binary from t".to_owned(), ..function() };
        let read = Function::of_record(written, &Catalog::default()).unwrap();
        let reason = read.unreadable.unwrap();
        assert_eq!((read.statements.len(), &*reason), (0, "syntax error at or near \"binary\""));
        assert_eq!(Function::of_record(function(), &Catalog::default()).unwrap().unreadable, None);
    }

    #[test]
    fn additions_come_back() {
        let mut written = function();
        written.kind.0 = RoutineKind::Procedure;
        written.is_expression.0 = true;
        written.language.0 = Language::PlPgSql;
        written.settings.0 = vec![("search_path".to_owned(), "a, \"B\"".to_owned())];
        written.more.0 = vec![
            MoreParameter::InOut(0),
            MoreParameter::Variadic,
            MoreParameter::Out(1, "b".to_owned(), 25),
        ];
        assert_eq!(decode_function(&encode_function(&written)).unwrap(), written);
    }
}
