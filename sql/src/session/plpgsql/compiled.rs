//! Compiled PL/pgSQL bodies: the parse tree with resolved variable types and cached plans.
//!
//! The plan cache of the session has the compiled bodies of functions, with the plans that calls
//! have made.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{Ident, TableName};
use crate::binder::VariableSignature;
use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::error::{Error, Result};
use crate::planner::statistics::TableSizes;
use crate::plpgsql::body_tree::{Body, VariableConflict, VariableType};
use crate::session::Session;
use crate::session::plan_cache::{CachedPlan, PlanUsage, PlanValidity, PlanningState};
use crate::session::plpgsql::evaluation::FragmentPlan;
use crate::session::plpgsql::results::ResultShape;

/// Conversion expressions by source and target type; `None` where there is no cast.
type Conversions = AHashMap<(SqlType, SqlType), Option<Arc<Expr>>>;

/// A compiled body.
pub(super) struct CompiledBody {
    /// Parse tree.
    pub(super) body: Body,
    /// Function name in the CONTEXT of errors.
    pub(super) label: String,
    /// Initial types of the variables.
    pub(super) shapes: Arc<Vec<VariableSignature>>,
    /// State that its types were resolved in.
    pub(super) validity: PlanValidity,
    /// Size and last use, with its plans.
    pub(super) usage: PlanUsage,
    /// Result type.
    pub(super) result: ResultShape,
    /// Resolution of names that are both a variable and a column.
    pub(super) conflict: VariableConflict,
    /// Plan of each SQL fragment, by its number.
    pub(super) sites: Vec<Mutex<Option<Arc<FragmentPlan>>>>,
    /// Conversions between types for assignments.
    pub(super) conversions: Mutex<Conversions>,
}

impl CachedPlan for CompiledBody {
    fn usage(&self) -> &PlanUsage {
        &self.usage
    }

    /// Its types do not depend on the snapshot.
    fn is_current(&self, now: &PlanningState<'_>) -> bool {
        self.validity.is_current(&PlanningState { old_snapshot: None, ..*now })
    }
}

impl Session {
    /// Compiles a body. `parameters`: the types of its parameters.
    pub(super) fn compiled_body(
        &self,
        body: Body,
        label: &str,
        parameters: &[SqlType],
    ) -> Result<CompiledBody> {
        let catalog = self.catalog();
        let path = Arc::clone(self.constants.search_path());
        let shapes = shapes_of((&body, label), parameters, &catalog, &path)?;
        let conflict = body.conflict.unwrap_or_else(|| {
            match self.settings.show("plpgsql.variable_conflict").map_or("", |(_, value)| value) {
                "use_variable" => VariableConflict::Variable,
                "use_column" => VariableConflict::Column,
                _ => VariableConflict::Error,
            }
        });
        Ok(CompiledBody {
            sites: (0..body.fragment_count).map(|_| Mutex::default()).collect(),
            body,
            label: label.to_owned(),
            validity: PlanValidity::new(
                &self.planning_state(catalog.version, None),
                None,
                TableSizes::default(),
            ),
            usage: PlanUsage::default(),
            result: ResultShape::default(),
            shapes: Arc::new(shapes),
            conflict,
            conversions: Mutex::default(),
        })
    }
}

/// Resolves the types of a body's variables.
///
/// # Errors
///
/// 42704 and 42P01 for missing types and tables.
fn shapes_of(
    (body, label): (&Body, &str),
    parameters: &[SqlType],
    catalog: &Catalog,
    path: &SearchPath,
) -> Result<Vec<VariableSignature>> {
    let mut shapes: Vec<VariableSignature> = Vec::with_capacity(body.variables.len());
    for variable in &body.variables {
        let near = |error: Error| {
            let line = variable.line;
            let context = format!("compilation of PL/pgSQL function \"{label}\" near line {line}");
            Error { context: Some(context), ..error }
        };
        let sql_type = match &variable.of {
            VariableType::Parameter(at) => {
                parameters.get(*at).cloned().unwrap_or(DataType::Text.into())
            }
            VariableType::Named(name, _) => catalog.type_named(name, path).map_err(unplaced)?,
            VariableType::OfVariable(other) => shapes[*other].sql_type.clone(),
            VariableType::Record => DataType::Record.into(),
            VariableType::Cursor | VariableType::Operand => DataType::Text.into(),
            VariableType::RowOf(parts) => row_type(parts, catalog, path).map_err(near)?,
            VariableType::Like(parts, is_array) => {
                let of = column_type(parts, catalog, path).map_err(near)?;
                match is_array {
                    false => of,
                    true => of.base.array().map_or(of, SqlType::from),
                }
            }
        };
        check_variable(&variable.name, &sql_type)?;
        shapes.push(VariableSignature { name: variable.name.clone(), sql_type, fields: None });
    }
    Ok(shapes)
}

fn check_variable(name: &str, sql_type: &SqlType) -> Result<()> {
    let pseudo = [DataType::CString, DataType::Void, DataType::Trigger, DataType::Unknown];
    if !pseudo.contains(&sql_type.base) {
        return Ok(());
    }
    let shown = sql_type.base.sql_name();
    bail!(FEATURE_NOT_SUPPORTED: "variable \"{name}\" has pseudo-type {shown}")
}

/// Removes the position, which refers to the type name and not to the statement.
fn unplaced(error: Error) -> Error {
    Error { position: None, ..error }
}

fn table_name(parts: &[String]) -> TableName {
    let ident = |value: &String| Ident { value: value.clone(), position: 1 };
    match parts {
        [.., schema, name] => TableName { schema: Some(ident(schema)), name: ident(name) },
        parts => {
            let name = parts.first().map_or(String::new(), String::clone);
            TableName { schema: None, name: Ident { value: name, position: 1 } }
        }
    }
}

fn row_type(parts: &[String], catalog: &Catalog, path: &SearchPath) -> Result<SqlType> {
    let (schema, name) = match parts {
        [.., schema, name] => (Some(schema.as_str()), name.as_str()),
        parts => (None, parts.first().map_or("", String::as_str)),
    };
    let found = catalog.find_type(schema, name, path).map(|found| found.sql_type());
    let found = found.or_else(|| {
        let table = catalog.find_table(&table_name(parts), path)?;
        catalog.row_type(table.oid)
    });
    found
        .filter(|found| found.base.is_row())
        .ok_or_else(|| err!(UNDEFINED_TABLE: "relation \"{}\" does not exist", parts.join(".")))
}

fn column_type(parts: &[String], catalog: &Catalog, path: &SearchPath) -> Result<SqlType> {
    let Some((column, relation)) = parts.split_last().filter(|(_, of)| !of.is_empty()) else {
        bail!(UNDEFINED_OBJECT: "type \"{}\" does not exist", parts.join("."));
    };
    let (schema, name) = match relation {
        [.., schema, name] => (Some(schema.as_str()), name.as_str()),
        parts => (None, parts.first().map_or("", String::as_str)),
    };
    catalog.type_of_column((schema, name), column, path)
}
