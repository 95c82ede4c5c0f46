//! User-defined functions and procedures in the catalog: one row each.
//!
//! The key is `f` and the function's number; the only cell holds a [`FunctionRecord`]. The body is
//! stored as text: parsed when the function enters the catalog snapshot, and bound for the
//! statements that call it.

use std::sync::Arc;

use store::codec::tagged::UnknownFields;
use types::{DataType, SqlType};

use crate::ast::{Language, Parallel, QueryExpr, Statement, Volatility};
use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::catalog::record::FIRST_USER_TABLE;
use crate::catalog::user_type::OID_OFFSET;
use crate::error::Result;
use crate::parser;

/// The key prefix of functions.
pub const FUNCTIONS_PREFIX: &[u8] = b"f";

/// A function as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionRecord {
    /// Its number.
    pub number: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its input parameters.
    pub parameters: Vec<ParameterRecord>,
    /// Its result.
    pub returns: ReturnRecord,
    /// Its volatility.
    pub volatility: Volatility,
    /// True if the result is NULL when an argument is.
    pub strict: bool,
    /// The text of the statements.
    pub body: String,
    /// The search path for its body; if absent, the caller's applies.
    pub search_path: Option<Vec<String>>,
    /// Function or procedure.
    pub kind: RoutineKind,
    /// Modes of parameters other than IN; [`FunctionRecord::parameters`] are the input parameters.
    pub more: Vec<ParameterExtension>,
    /// True if the body was written as `RETURN expression`.
    pub is_expression: bool,
    /// Planner hints.
    pub hints: PlannerHints,
    /// The language of its body.
    pub language: Language,
    /// The settings that it runs with, with the values as written.
    pub settings: Vec<(String, String)>,
    /// `SECURITY DEFINER`: it runs with the privileges of its owner.
    pub security_definer: bool,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// Planner hints of a function. They are only stored and shown: bennu's planner examines the body
/// instead.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannerHints {
    /// `COST`
    pub cost: Option<f32>,
    /// `ROWS`
    pub rows: Option<f32>,
    /// `PARALLEL`
    pub parallel: Parallel,
    /// `LEAKPROOF`
    pub is_leakproof: bool,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// The kind of a routine, by what can call it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RoutineKind {
    /// Called in expressions and FROM.
    #[default]
    Function,
    /// Called by CALL.
    Procedure,
}

/// A parameter mode other than IN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterExtension {
    /// INOUT: its position among the input parameters.
    InOut(u32),
    /// VARIADIC: the last input parameter is an array of the remaining arguments.
    Variadic,
    /// OUT: its position among all parameters, name and OID of the type.
    Out(u32, String, u32),
}

/// The cost of a call without COST.
pub const DEFAULT_COST: f32 = 100.0;

/// A parameter of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParameterRecord {
    /// Its name; empty without one.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
    /// SQL text of its default.
    pub default: Option<String>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// The result of a function; types are OIDs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReturnRecord {
    /// One value.
    Value(u32),
    /// A set of values.
    Set(u32),
    /// A set of rows.
    Table(Vec<(String, u32)>),
}

/// The mode of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclaredMode {
    /// `IN`
    In,
    /// `OUT`
    Out,
    /// `INOUT`
    InOut,
    /// `VARIADIC`: an array of the remaining arguments.
    Variadic,
    /// A column of RETURNS TABLE.
    Table,
}

/// A parameter as declared.
#[derive(Debug, Clone)]
pub struct DeclaredParameter<'a> {
    /// Its name; empty without one.
    pub name: &'a str,
    /// OID of its type.
    pub type_oid: u32,
    /// Its mode.
    pub mode: DeclaredMode,
    /// SQL text of its default.
    pub default: Option<&'a String>,
}

/// A function.
#[derive(Debug)]
pub struct Function {
    /// The stored record.
    pub record: FunctionRecord,
    /// The types of the input parameters.
    pub parameters: Vec<SqlType>,
    /// The columns of the result; one without a name for a scalar value or a set of them.
    pub columns: Vec<(String, SqlType)>,
    /// The body.
    pub statements: Vec<Statement>,
    /// The parse error of a body that this version cannot parse, because it uses as a name what
    /// has become a keyword. Such a function cannot be called; the rest of the database is usable.
    pub unreadable: Option<String>,
    /// The search path of the body; if absent, the caller's applies.
    pub search_path: Option<Arc<SearchPath>>,
}

impl Function {
    /// Returns whether only triggers call it.
    pub fn is_trigger(&self) -> bool {
        matches!(self.columns.as_slice(), [(_, of)] if of.base == DataType::Trigger)
    }
}

impl FunctionRecord {
    /// Returns the parameters as declared, with the columns of RETURNS TABLE last.
    pub fn declared(&self) -> Vec<DeclaredParameter<'_>> {
        let variadic = self.more.contains(&ParameterExtension::Variadic);
        let last = self.parameters.len().saturating_sub(1);
        let taken = self.parameters.iter().enumerate().map(|(at, one)| DeclaredParameter {
            name: &one.name,
            type_oid: one.type_oid,
            mode: match () {
                () if self.more.contains(&ParameterExtension::InOut(at as u32)) => {
                    DeclaredMode::InOut
                }
                () if variadic && at == last => DeclaredMode::Variadic,
                () => DeclaredMode::In,
            },
            default: one.default.as_ref(),
        });
        let mut declared: Vec<DeclaredParameter<'_>> = taken.collect();
        for more in self.more.iter() {
            if let ParameterExtension::Out(at, name, type_oid) = more {
                let at = (*at as usize).min(declared.len());
                let out = DeclaredParameter {
                    name,
                    type_oid: *type_oid,
                    mode: DeclaredMode::Out,
                    default: None,
                };
                declared.insert(at, out);
            }
        }
        if let ReturnRecord::Table(columns) = &self.returns {
            declared.extend(columns.iter().map(|(name, type_oid)| DeclaredParameter {
                name,
                type_oid: *type_oid,
                mode: DeclaredMode::Table,
                default: None,
            }));
        }
        declared
    }

    /// Returns names and types of the output parameters.
    pub fn output_parameters(&self) -> Vec<(String, u32)> {
        let declared = self.declared().into_iter();
        let outs =
            declared.filter(|one| !matches!(one.mode, DeclaredMode::In | DeclaredMode::Variadic));
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

    /// Returns whether the last parameter is VARIADIC.
    pub fn is_variadic(&self) -> bool {
        self.more.contains(&ParameterExtension::Variadic)
    }

    /// Returns its COST, in units of PostgreSQL's `cpu_operator_cost`.
    pub fn shown_cost(&self) -> f32 {
        self.hints.cost.unwrap_or(DEFAULT_COST)
    }

    /// Returns whether it is a procedure.
    pub fn is_procedure(&self) -> bool {
        self.kind == RoutineKind::Procedure
    }

    /// Returns whether it is one of [`standard_function`](super::standard_function).
    pub fn is_standard(&self) -> bool {
        self.number < FIRST_USER_TABLE
    }

    /// Returns whether it runs in an environment of its own, with other settings or privileges
    /// than its caller. It is not inlined then, and cannot end the transaction.
    pub fn has_own_environment(&self) -> bool {
        self.security_definer || !self.settings.is_empty()
    }

    /// Returns its noun in messages.
    pub fn noun(&self) -> &'static str {
        if self.is_procedure() { "procedure" } else { "function" }
    }
}

impl Function {
    /// Returns the function of a stored record.
    ///
    /// # Errors
    ///
    /// XX001 for an unknown type.
    pub fn of_record(record: FunctionRecord, catalog: &Catalog) -> Result<Function> {
        let type_of = |oid: u32| catalog.stored_type(oid, -1);
        let parameters = record.parameters.iter().map(|one| type_of(one.type_oid));
        let parameters = parameters.collect::<Result<_>>()?;
        let outs = record.output_parameters();
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
        let (statements, unreadable) = match parser::parse_statements(&record.body) {
            // PL/pgSQL is parsed at the first call.
            _ if record.language == Language::PlPgSql => (Vec::new(), None),
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

    /// Returns the number of required arguments; further ones have defaults.
    pub fn required(&self) -> usize {
        let with = self.record.parameters.iter().filter(|one| one.default.is_some()).count();
        self.record.parameters.len() - with
    }

    /// Returns whether it is set-returning.
    pub fn is_set(&self) -> bool {
        !matches!(self.record.returns, ReturnRecord::Value(_))
    }

    /// Returns its ROWS estimate.
    pub fn shown_rows(&self) -> f32 {
        if self.is_set() { self.record.hints.rows.unwrap_or(1_000.0) } else { 0.0 }
    }

    /// Returns whether it returns rows of declared columns.
    pub fn is_row(&self) -> bool {
        self.columns.len() != 1
            || self.record.is_procedure() && !self.record.output_parameters().is_empty()
    }

    /// Returns whether it has polymorphic parameters.
    pub fn is_polymorphic(&self) -> bool {
        self.parameters.iter().any(|one| one.base.is_polymorphic())
    }

    /// Returns the query of the body, if it is a single query.
    pub fn query(&self) -> Option<&QueryExpr> {
        match self.statements.as_slice() {
            [Statement::Query(query)] => Some(query),
            _ => None,
        }
    }

    /// Returns the OIDs of the types of its parameters and its result.
    pub fn type_oids(&self) -> Vec<u32> {
        let mut oids: Vec<u32> = self.parameters.iter().map(|one| one.oid()).collect();
        oids.extend(self.columns.iter().map(|(_, sql_type)| sql_type.oid()));
        oids
    }
}

impl Catalog {
    /// Returns `f(integer,text)`.
    pub fn display_signature(&self, name: &str, types: &[SqlType], path: &SearchPath) -> String {
        let types: Vec<String> = types.iter().map(|one| self.shown_type_of(one, path)).collect();
        format!("{name}({})", types.join(","))
    }

    /// Returns `f(integer,text)`, schema-qualified unless the search path finds the function.
    pub fn display_function(&self, function: &Function, path: &SearchPath) -> String {
        let record = &function.record;
        let found = self.functions_named(None, &record.name, path);
        let name = match found.iter().any(|one| one.record.number == record.number) {
            true => record.name.clone(),
            false => format!("{}.{}", record.schema, record.name),
        };
        self.display_signature(&name, &function.parameters, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> FunctionRecord {
        FunctionRecord {
            number: 7,
            schema: "public".to_owned(),
            name: "f".to_owned(),
            parameters: vec![ParameterRecord {
                name: "a".to_owned(),
                type_oid: 23,
                default: None,
                unknown: Default::default(),
            }],
            returns: ReturnRecord::Value(23),
            volatility: Volatility::Stable,
            strict: true,
            body: "select a".to_owned(),
            search_path: None,
            kind: Default::default(),
            more: Default::default(),
            is_expression: Default::default(),
            hints: Default::default(),
            language: Default::default(),
            settings: Default::default(),
            security_definer: Default::default(),
            unknown: Default::default(),
        }
    }

    #[test]
    fn unreadable_function_body_does_not_prevent_loading() {
        let written = FunctionRecord { body: "select binary from t".to_owned(), ..function() };
        let read = Function::of_record(written, &Catalog::default()).unwrap();
        let reason = read.unreadable.unwrap();
        assert_eq!((read.statements.len(), &*reason), (0, "syntax error at or near \"binary\""));
        assert_eq!(Function::of_record(function(), &Catalog::default()).unwrap().unreadable, None);
    }
}
