//! SEARCH and CYCLE: generated columns of a recursive query.
//!
//! ```text
//! SEARCH DEPTH FIRST BY a SET seq      first: ARRAY[ROW(a)]    then: seq || ROW(a)
//! SEARCH BREADTH FIRST BY a SET seq    first: ROW(0, a)        then: ROW(seq's depth + 1, a)
//! CYCLE a SET mark TO x DEFAULT y USING path
//!                                      first: y, ARRAY[ROW(a)]
//!                                      then, where mark <> x:
//!                                             x if ROW(a) = ANY (path), else y; path || ROW(a)
//! ```
//!
//! The recursive term also returns the columns of its work table, after its own columns; a
//! projection above it computes the generated columns. They are visible in the recursive term, but
//! not in its `*`.
//!
//! Source: PostgreSQL's `analyzeCTE` (parse_cte.c) and `rewriteSearchAndCycle`.

use std::sync::Arc;

use types::expr::Expr;
use types::function::FunctionId;
use types::{DataType, Datum, SqlType};

use crate::ast::{self, Ident, NamedQuery, QueryBody, SelectItem, TableRef};
use crate::binder::level::{Binder, Clause, TableClause};
use crate::binder::records::row_of;
use crate::binder::scope::Scope;
use crate::binder::tree::identity;
use crate::binder::typed::Typed;
use crate::error::{Error, Result};
use crate::logical::{Logical, OutputColumn};

/// The generated columns of a recursive query.
pub(super) struct GeneratedColumns {
    /// The added columns: the sequence, the mark, the path.
    pub(super) columns: Vec<OutputColumn>,
    search: Option<SearchColumns>,
    cycle: Option<CycleColumns>,
}

struct SearchColumns {
    depth_first: bool,
    /// The columns, by position.
    columns: Vec<usize>,
}

struct CycleColumns {
    /// The columns, by position.
    columns: Vec<usize>,
    /// The mark of a row that was visited before.
    found: Typed,
    /// The mark of any other row.
    otherwise: Typed,
}

impl Binder<'_> {
    /// Returns the generated columns of a query whose own columns are these.
    pub(super) fn carried(
        &mut self,
        query: &NamedQuery,
        own: &[OutputColumn],
    ) -> Result<GeneratedColumns> {
        let mut carried = GeneratedColumns { columns: Vec::new(), search: None, cycle: None };
        if let Some(search) = &query.search {
            let columns = positions(&search.columns, own, ("search", search.position))?;
            check_new(&search.sequence, own, ("search sequence", search.position))?;
            let array = DataType::Record.array().unwrap_or(DataType::Record);
            let data_type = if search.depth_first { array } else { DataType::Record };
            carried.columns.push(column(&search.sequence, &data_type));
            carried.search = Some(SearchColumns { depth_first: search.depth_first, columns });
        }
        if let Some(cycle) = &query.cycle {
            let (found, otherwise) = self.marks_of(cycle)?;
            let columns = positions(&cycle.columns, own, ("cycle", cycle.position))?;
            check_new(&cycle.mark, own, ("cycle mark", cycle.position))?;
            check_new(&cycle.path, own, ("cycle path", cycle.position))?;
            let mut pairs = vec![((&cycle.mark, "cycle mark"), (&cycle.path, "cycle path"))];
            if let Some(search) = &query.search {
                let sequence = (&search.sequence, "search sequence");
                pairs.push((sequence, (&cycle.mark, "cycle mark")));
                pairs.push((sequence, (&cycle.path, "cycle path")));
            }
            if let Some((a, b)) = pairs.iter().find(|(a, b)| a.0.value == b.0.value) {
                let position = query.search.as_ref().map_or(cycle.position, |one| one.position);
                bail!(SYNTAX_ERROR: "{} column name and {} column name are the same", a.1, b.1; at position);
            }
            let array = DataType::Record.array().unwrap_or(DataType::Record);
            carried.columns.push(column(&cycle.mark, otherwise.base()));
            carried.columns.push(column(&cycle.path, &array));
            carried.cycle = Some(CycleColumns { columns, found, otherwise });
        }
        Ok(carried)
    }

    /// Binds the mark values.
    fn marks_of(&mut self, cycle: &ast::Cycle) -> Result<(Typed, Typed)> {
        let constant = |value| {
            let value = Expr::Constant { value: Datum::Bool(value), data_type: DataType::Bool };
            Typed::new(value, DataType::Bool, cycle.position)
        };
        let Some((found, otherwise)) = &cycle.values else {
            return Ok((constant(true), constant(false)));
        };
        let bind = |binder: &mut Self| {
            let values = vec![binder.bind_expr(found)?, binder.bind_expr(otherwise)?];
            binder.unify(values, "CYCLE")
        };
        let ((values, sql_type), level) =
            self.in_new_level(Scope::default(), Clause::Table(TableClause::CycleMark), bind)?;
        level.refuse_subqueries("CYCLE")?;
        if !sql_type.base.is_ordered() {
            let name = sql_type.base.sql_name();
            bail!(UNDEFINED_FUNCTION: "could not identify an equality operator for type {name}");
        }
        let mut values =
            values.into_iter().map(|value| Typed::new(value, sql_type.base.clone(), 1));
        match (values.next(), values.next()) {
            (Some(found), Some(otherwise)) => Ok((found, otherwise)),
            _ => Ok((constant(true), constant(false))),
        }
    }

    /// Returns the recursive term with the columns of its work table after its own.
    pub(super) fn with_carried(
        &self,
        query: &NamedQuery,
        carried: &GeneratedColumns,
        step: &ast::QueryExpr,
    ) -> Result<ast::QueryExpr> {
        let name = &query.name.value;
        let mut step = step.clone();
        let QueryBody::Select(select) = &mut step.body else {
            bail!(SYNTAX_ERROR: "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT");
        };
        let alias = select.from.iter().find_map(|entry| alias_of(entry, name));
        let Some(alias) = alias.cloned() else {
            bail!(FEATURE_NOT_SUPPORTED: "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must \
                be at the top level of its right-hand SELECT");
        };
        for column in &carried.columns {
            let name = Ident { value: column.name.clone(), position: alias.position };
            let expr = ast::Expr::Column(vec![alias.clone(), name]);
            select.items.push(SelectItem::Expr { expr, alias: None });
        }
        Ok(step)
    }

    /// Returns the first term with the generated columns.
    pub(super) fn first_carried(
        &self,
        carried: &GeneratedColumns,
        start: Logical,
        types: &[SqlType],
    ) -> Logical {
        let bases: Vec<DataType> = types.iter().map(|one| one.base.clone()).collect();
        let mut expressions = identity(&bases);
        if let Some(search) = &carried.search {
            let row = row(&search.columns, &bases, (!search.depth_first).then(|| bigint(0)));
            expressions.push(if search.depth_first { call(" path", vec![row]) } else { row });
        }
        if let Some(cycle) = &carried.cycle {
            expressions.push(cycle.otherwise.expr.clone());
            expressions.push(call(" path", vec![row(&cycle.columns, &bases, None)]));
        }
        Logical::Project { input: Box::new(start), expressions }
    }

    /// Returns the recursive term with the generated columns, given one that returns the columns
    /// of the work table after its own.
    pub(super) fn next_carried(
        &mut self,
        carried: &GeneratedColumns,
        mut step: Logical,
        types: &[SqlType],
    ) -> Result<Logical> {
        let bases: Vec<DataType> = types.iter().map(|one| one.base.clone()).collect();
        let before = |index: usize| Expr::Column {
            index: bases.len() + index,
            data_type: carried.columns[index].sql_type.base.clone(),
        };
        let mut expressions = identity(&bases);
        let mut at = 0;
        if let Some(search) = &carried.search {
            let depth = (!search.depth_first).then(|| call(" next depth", vec![before(0)]));
            let row = row(&search.columns, &bases, depth);
            expressions.push(match search.depth_first {
                true => call(" longer path", vec![before(0), row]),
                false => row,
            });
            at = 1;
        }
        if let Some(cycle) = &carried.cycle {
            let data_type = cycle.otherwise.base();
            let mark = Typed::new(before(at), data_type, 1);
            let goes_on = self.operator("<>", mark, cycle.found.clone(), 1)?;
            step = Logical::Filter { input: Box::new(step), predicate: goes_on.expr };
            let (path, row) = (before(at + 1), row(&cycle.columns, &bases, None));
            let found = call(" is on path", vec![path.clone(), row.clone()]);
            expressions.push(Expr::Case {
                branches: vec![(found, cycle.found.expr.clone())],
                otherwise: Box::new(cycle.otherwise.expr.clone()),
                data_type: data_type.clone(),
            });
            expressions.push(call(" longer path", vec![path, row]));
        }
        Ok(Logical::Project { input: Box::new(step), expressions })
    }
}

fn column(name: &Ident, data_type: &DataType) -> OutputColumn {
    OutputColumn { name: name.value.clone(), sql_type: data_type.into(), origin: None }
}

fn bigint(value: i64) -> Expr {
    Expr::Constant { value: Datum::Int8(value), data_type: DataType::Int8 }
}

/// Returns a row of some columns, optionally with a value before them.
fn row(columns: &[usize], types: &[DataType], first: Option<Expr>) -> Expr {
    let columns = columns.iter().map(|&index| Expr::column(index, &types[index]));
    let values = first.into_iter().chain(columns).enumerate().map(|(index, value)| {
        let data_type = value.data_type().clone();
        (Arc::from(format!("f{}", index + 1)), Typed::new(value, data_type, 1))
    });
    row_of(values.collect(), 1).expr
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let signature = types::function::overloads(name).first();
    let signature = signature.expect("the functions of SEARCH and CYCLE are there");
    let function: FunctionId = signature.id;
    Expr::Call { function, arguments, data_type: signature.result.clone() }
}

/// Returns the positions of the columns in a clause.
fn positions(
    names: &[Ident],
    own: &[OutputColumn],
    (clause, position): (&str, usize),
) -> Result<Vec<usize>> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let Some(index) = own.iter().position(|column| column.name == name.value) else {
            bail!(SYNTAX_ERROR: "{clause} column \"{}\" not in WITH query column list", name.value; at position);
        };
        if found.contains(&index) {
            bail!(DUPLICATE_COLUMN: "{clause} column \"{}\" specified more than once", name.value; at position);
        }
        found.push(index);
    }
    Ok(found)
}

fn check_new(name: &Ident, own: &[OutputColumn], (what, position): (&str, usize)) -> Result<()> {
    if own.iter().all(|column| column.name != name.value) {
        return Ok(());
    }
    let name = &name.value;
    bail!(SYNTAX_ERROR: "{what} column name \"{name}\" already used in WITH query column list"; at position)
}

/// Returns the name of a table in an entry of FROM, unless the table is inside of a subquery.
fn alias_of<'a>(entry: &'a TableRef, name: &str) -> Option<&'a Ident> {
    match entry {
        TableRef::Table { name: table, alias, .. } => {
            let found = table.schema.is_none() && table.name.value == name;
            found.then(|| alias.as_ref().map_or(&table.name, |alias| &alias.name))
        }
        TableRef::Join { left, right, .. } => {
            alias_of(left, name).or_else(|| alias_of(right, name))
        }
        TableRef::Subquery { .. } | TableRef::Function(_) | TableRef::Renamed { .. } => None,
    }
}
