//! Names of output columns that have no alias.
//!
//! Source: PostgreSQL's `FigureColname` (parse_target.c).

use crate::ast::{Expr, MinMax, QueryBody, QueryExpr, SelectItem, SqlValueFunction, TypeName};

/// Strength of a derived name; a cast replaces only a weak one by the name of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Weak,
    Strong,
}

/// Returns the name of an output column.
pub fn output_name(expr: &Expr) -> String {
    figure(expr).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// Returns the name of a column of an index over an expression: PostgreSQL's `FigureIndexColname`.
pub fn index_column_name(expr: &Expr) -> String {
    figure(expr).map_or_else(|| "expr".to_owned(), |(name, _)| name)
}

fn strong(name: &str) -> Option<(String, Strength)> {
    Some((name.to_owned(), Strength::Strong))
}

fn figure(expr: &Expr) -> Option<(String, Strength)> {
    match expr {
        Expr::Field { name, .. } => strong(&name.value),
        Expr::Column(parts) | Expr::WholeRow(parts) => {
            parts.last().and_then(|part| strong(&part.value))
        }
        Expr::Call(call) => strong(&call.name.name.value),
        Expr::NullIf { .. } => strong("nullif"),
        Expr::Coalesce { .. } => strong("coalesce"),
        Expr::MinMax { kind: MinMax::Greatest, .. } => strong("greatest"),
        Expr::MinMax { kind: MinMax::Least, .. } => strong("least"),
        Expr::SqlValue { function, .. } => strong(sql_value(*function)),
        Expr::Exists(_) => strong("exists"),
        Expr::Row { .. } => strong("row"),
        Expr::Array { .. } | Expr::ArraySubquery { .. } => strong("array"),
        Expr::Subscript { operand, .. } | Expr::Collate { operand, .. } => figure(operand),
        Expr::Subquery(query) => strong(&first_column(query)),
        // A bit string literal, whose syntax implies its type.
        Expr::TypedString { type_name, position, .. } if type_name.position == *position => None,
        Expr::TypedString { type_name, .. } => Some((type_text(type_name), Strength::Weak)),
        Expr::Cast { operand, type_name, .. } => match figure(operand) {
            Some((name, Strength::Strong)) => Some((name, Strength::Strong)),
            _ => Some((type_text(type_name), Strength::Weak)),
        },
        Expr::Case { otherwise, .. } => match otherwise.as_deref().and_then(figure) {
            Some((name, Strength::Strong)) => Some((name, Strength::Strong)),
            _ => Some(("case".to_owned(), Strength::Weak)),
        },
        _ => None,
    }
}

fn type_text(type_name: &TypeName) -> String {
    match &type_name.named {
        // An array has the name of its element type.
        Some(named) => named.name.clone(),
        None => {
            let base = &type_name.sql_type.base;
            let element = base.element().filter(|_| matches!(base, types::DataType::Array(_)));
            element.unwrap_or(base).internal_name().to_owned()
        }
    }
}

/// Returns the name of a query's first column.
fn first_column(query: &QueryExpr) -> String {
    match &query.body {
        QueryBody::Select(select) => match select.items.first() {
            Some(SelectItem::Expr { alias: Some(alias), .. }) => alias.value.clone(),
            Some(SelectItem::Expr { expr, alias: None }) => output_name(expr),
            _ => "?column?".to_owned(),
        },
        QueryBody::Values(_) => "column1".to_owned(),
        QueryBody::SetOperation { left, .. } => first_column(left),
    }
}

fn sql_value(function: SqlValueFunction) -> &'static str {
    match function {
        SqlValueFunction::CurrentDate => "current_date",
        SqlValueFunction::CurrentTime => "current_time",
        SqlValueFunction::CurrentTimestamp => "current_timestamp",
        SqlValueFunction::LocalTime => "localtime",
        SqlValueFunction::LocalTimestamp => "localtimestamp",
        SqlValueFunction::CurrentUser => "current_user",
        SqlValueFunction::CurrentRole => "current_role",
        SqlValueFunction::User => "user",
        SqlValueFunction::SessionUser => "session_user",
        SqlValueFunction::CurrentCatalog => "current_catalog",
        SqlValueFunction::CurrentSchema => "current_schema",
    }
}
