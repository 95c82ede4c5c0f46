//! Binding of FROM: tables, views, functions, subqueries and joins.
//!
//! Each entry is bound to its rows ([`Rows`]) and the names in it ([`Scope`]). References of an
//! entry to preceding ones (LATERAL) become parameters, which the join sets for each row of its
//! left side.

use std::sync::Arc;

use types::cast::CastContext;
use types::expr::Expr;
use types::{DataType, Datum, SqlType};

use crate::ast::SystemTime;
use crate::ast::{
    self, DynamicColumn, FunctionCall, FunctionName, Ident, JoinQualifier, TableAlias, TableName,
    TableRef,
};
use crate::binder::dynamic_column;
use crate::binder::level::{Binder, Clause, ColumnVisibility, LateralBar};
use crate::binder::operators::all_of;
use crate::binder::query_limits;
use crate::binder::rows::Rows;
use crate::binder::scope::{RelationKind, Scope, ScopeColumn, ScopeRelation, tableoid};
use crate::binder::tree::map_columns;
use crate::binder::typed::{Typed, boolean};
use crate::catalog::CatalogRelation;
use crate::catalog::access::privilege::SELECT;
use crate::catalog::name::is_temporary;
use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::logical::{
    JoinKind, Logical, OPERATION_COLUMN, OutputColumn, SystemRows, TIMESTAMP_COLUMN, TableScan,
};

/// The name of the pseudo-column with the commit timestamp of a row version.
pub(super) const TIMESTAMP_NAME: &str = "_timestamp";

/// The pseudo-column of the kind of a row version.
const OPERATION_NAME: &str = "_operation";

/// The internal table function that returns the row of a sequence, by its number.
pub const SEQUENCE_ROWS: &str = "row of a sequence";

/// Lateral parameters with the values of preceding entries that they get.
type Values = Vec<(usize, Expr)>;

impl Binder<'_> {
    /// Binds a FROM clause; without entries it returns one row without columns.
    pub(super) fn bind_from(&mut self, from: &[TableRef]) -> Result<(Rows, Scope)> {
        let base = std::mem::replace(&mut self.from_base, self.levels.len());
        let bound = self.bind_entries(from);
        self.from_base = base;
        bound
    }

    /// Binds FROM or USING of a statement that changes a table; the columns of the target table
    /// are not visible in it.
    pub(super) fn bind_from_of_target(
        &mut self,
        from: &[TableRef],
        changed: &Scope,
    ) -> Result<(Rows, Scope)> {
        self.push_level(changed.clone(), Clause::QueryInFrom);
        let base = std::mem::replace(&mut self.from_base, self.levels.len() - 1);
        let level = self.level();
        level.reach = ColumnVisibility::Hidden;
        level.barred = Some(LateralBar::Changed);
        let bound = self.bind_entries(from);
        self.pop_level();
        self.from_base = base;
        bound
    }

    fn bind_entries(&mut self, from: &[TableRef]) -> Result<(Rows, Scope)> {
        query_limits::check_count(from.len())?;
        let mut bound: Option<(Rows, Scope)> = None;
        for entry in from {
            bound = Some(match bound {
                None => {
                    let bound = self.bind_table_ref(entry);
                    self.noted(entry, bound)?
                }
                Some((mut rows, scope)) => {
                    let (right, right_scope, bindings) = self.bind_beside(entry, &scope, None)?;
                    let bindings = rows.bind(bindings);
                    let scope = scope.join(right_scope, rows.types.len())?;
                    rows.join_lateral(right, JoinKind::Inner, boolean(true), bindings);
                    (rows, scope)
                }
            });
        }
        Ok(bound.unwrap_or_else(|| (Rows::unit(), Scope::default())))
    }

    /// Binds an entry that may refer to columns of preceding entries. Also returns these
    /// references as parameter values. `barred` is the reason if the preceding entries are not
    /// visible.
    fn bind_beside(
        &mut self,
        entry: &TableRef,
        before: &Scope,
        barred: Option<LateralBar>,
    ) -> Result<(Rows, Scope, Values)> {
        let clause = match entry {
            TableRef::Function(_) => Clause::FunctionInFrom,
            _ => Clause::QueryInFrom,
        };
        self.push_level(before.clone(), clause);
        let level = self.level();
        level.reach = ColumnVisibility::Hidden;
        level.barred = barred;
        let bound = self.bind_table_ref(entry);
        let level = self.pop_level();
        let (rows, scope) = self.noted(entry, bound)?;
        Ok((rows, scope, level.open_bindings))
    }

    /// Records a bound entry in the notes. It is a separate function to save stack in the
    /// recursion.
    fn noted(&mut self, entry: &TableRef, bound: Result<(Rows, Scope)>) -> Result<(Rows, Scope)> {
        let (rows, mut scope) = bound?;
        self.note_entry(entry, &mut scope.relations);
        Ok((rows, scope))
    }

    fn bind_table_ref(&mut self, entry: &TableRef) -> Result<(Rows, Scope)> {
        match entry {
            TableRef::Table { name, dynamic_columns, alias, system_time, sample, locking } => {
                let named = (name, dynamic_columns.as_slice());
                let bound = self.bind_table(named, alias.as_ref(), system_time.as_ref(), locking);
                let mut bound = match bound {
                    Err(error) if self.search_path().ignores_case() => {
                        let rows = self.index_rows(name, alias.as_ref())?.ok_or(error)?;
                        return self.bind_table_ref(&rows);
                    }
                    bound => bound?,
                };
                dynamic_column::check_relations(dynamic_columns, &bound.1.relations)?;
                if alias.is_none() && self.view.is_some() {
                    bound.1.relations.iter_mut().for_each(|one| one.go_by(name));
                }
                let Some(sample) = sample else { return Ok(bound) };
                let (mut rows, scope) = bound;
                match &rows.plan {
                    Logical::Scan(scan) => {
                        let table = Arc::clone(&scan.table);
                        self.bind_sample(&mut rows, (&table, &scope), sample)?;
                    }
                    Logical::SystemRows(_) => {
                        let hint = "Copy the rows to a table and sample that table.";
                        return Err(Error::not_supported("TABLESAMPLE of the catalog", hint)
                            .at(name.position()));
                    }
                    _ => {
                        bail!(FEATURE_NOT_SUPPORTED: "TABLESAMPLE clause can only be applied to tables and materialized views";
                            at name.position());
                    }
                }
                Ok((rows, scope))
            }
            TableRef::Subquery { query, lateral, alias } => {
                let bound = match lateral {
                    true => self.lateral(|binder| binder.bind_query(query, true))?,
                    false => self.bind_query(query, true)?,
                };
                let name = alias.as_ref().map_or("unnamed_subquery", |alias| &alias.name.value);
                let mut relation = ScopeRelation::new(name, &bound.columns);
                relation.rename(alias.as_ref().map_or(&[], |alias| &alias.columns))?;
                relation.learn_fields(&bound.plan);
                let types =
                    bound.columns.iter().map(|column| column.sql_type.base.clone()).collect();
                Ok((Rows::new(bound.plan, types), Scope::of(relation)))
            }
            TableRef::Function(function) => {
                self.lateral(|binder| binder.bind_table_function(function))
            }
            TableRef::Renamed { join, alias } => self.bind_renamed(join, alias),
            TableRef::Join { left, right, kind, condition } => {
                self.bind_join((left, right), *kind, condition)
            }
        }
    }

    /// Resolves a relation name in the catalog; `None` if only the system catalog may have it.
    pub(super) fn find_relation(&self, name: &TableName) -> Option<CatalogRelation<'_>> {
        let Some(view) = &self.view else {
            return self.catalog.find(name, self.search_path());
        };
        match self.view_relation(name) {
            Some(relation) => {
                let table = self.catalog.table(relation.oid).map(CatalogRelation::Table);
                table.or_else(|| self.catalog.view(relation.oid).map(CatalogRelation::View))
            }
            None => self.catalog.find(name, &view.search_path),
        }
    }

    /// Returns the error for a name that is not a relation.
    pub(super) fn no_table(&self, name: &TableName) -> Error {
        let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
        let relation = name.name.value.as_str();
        if let Some(CatalogRelation::Index(..) | CatalogRelation::PrimaryKey(_)) =
            self.find_relation(name)
        {
            return err!(WRONG_OBJECT_TYPE: "\"{relation}\" is an index"; at name.position());
        }
        let full = match schema {
            Some(schema) => format!("{schema}.{relation}"),
            None => relation.to_owned(),
        };
        err!(UNDEFINED_TABLE: "relation \"{full}\" does not exist"; at name.position())
    }

    fn bind_table(
        &mut self,
        (name, dynamic_columns): (&TableName, &[DynamicColumn]),
        alias: Option<&TableAlias>,
        system_time: Option<&SystemTime<ast::Expr>>,
        locking: &[ast::Locking],
    ) -> Result<(Rows, Scope)> {
        let alias_name = alias.map_or(&name.name.value, |alias| &alias.name.value);
        let renamed: &[Ident] = alias.map_or(&[], |alias| &alias.columns);
        if let Some(named) = self.bind_named(name, (alias_name, renamed))? {
            let hint = "Use FOR SYSTEM_TIME with the tables that it reads.";
            refuse_system_time(system_time, "a WITH query", hint)?;
            return Ok(named);
        }
        if let Some(rows) = self.transition_rows(name, alias)? {
            return self.bind_table_ref(&rows);
        }
        let (rows, mut scope, oid) = match self.find_relation(name) {
            Some(CatalogRelation::Table(table)) => {
                let table = Arc::clone(table);
                if table.kind.is_populated() == Some(false) {
                    self.unpopulated.get_or_insert_with(|| table.name.clone());
                }
                let columns = table.columns.iter().map(|one| one.shown_name().to_owned());
                self.note_relation(name, table.oid, columns);
                self.request(table.oid, SELECT);
                let system_time = match system_time {
                    Some(clause) => Some(self.bind_system_time(clause)?),
                    None => self.session_as_of(&table).map(SystemTime::as_of),
                };
                let extended = self.with_dynamic_columns(&table, dynamic_columns)?;
                let (mut rows, mut scope) = scan_of(&extended, alias_name, system_time);
                self.secure_read(&mut rows.plan, &table, !locking.is_empty())?;
                scope.conceal_dynamic_columns(table.columns.len(), dynamic_columns);
                (rows, scope, table.oid)
            }
            Some(CatalogRelation::View(view)) => {
                let view = Arc::clone(view);
                let hint = "Use FOR SYSTEM_TIME with the tables that it reads.";
                refuse_system_time(system_time, "a view", hint)?;
                let columns = view.columns.iter().map(|column| column.name.clone());
                self.note_relation(name, view.oid, columns);
                self.request(view.oid, SELECT);
                let (rows, mut scope) = self.bind_view_rows(&view, alias_name, locking)?;
                if alias.is_none() {
                    let schema = &view.schema;
                    scope.relations.iter_mut().for_each(|one| one.schema = Some(schema.clone()));
                }
                scope.relations.iter_mut().for_each(|one| one.row_type = Some(view.oid));
                (rows, scope, view.oid)
            }
            Some(CatalogRelation::Sequence(sequence)) => {
                refuse_system_time(
                    system_time,
                    "a sequence",
                    "Only the current state of a sequence can be read.",
                )?;
                if self.trace.is_some() {
                    let hint = "Query the sequence directly, or use the view bennu.sequences.";
                    return Err(
                        Error::not_supported("a view on a sequence", hint).at(name.position())
                    );
                }
                let oid = sequence.oid;
                self.request(oid, SELECT);
                return sequence_rows(oid, (alias_name, renamed));
            }
            _ => return self.bind_system_view(name, alias_name, renamed, system_time),
        };
        let known = self.view_relation(name).filter(|known| known.oid == oid);
        for relation in &mut scope.relations {
            if let Some(known) = known {
                relation.name_as(&known.columns);
            }
            relation.rename(renamed)?;
        }
        Ok((rows, scope))
    }

    fn bind_system_view(
        &mut self,
        name: &TableName,
        alias: &str,
        renamed: &[Ident],
        system_time: Option<&SystemTime<ast::Expr>>,
    ) -> Result<(Rows, Scope)> {
        let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
        let view = self.system.view(schema, &name.name.value);
        self.request_system(&name.name.value);
        let columns = view.ok_or_else(|| self.explain_later(name, self.no_table(name)))?;
        refuse_system_time(
            system_time,
            "a system view",
            "Only the current state of a system view can be read.",
        )?;
        let full = match schema {
            Some(schema) => format!("{schema}.{}", name.name.value),
            None => name.name.value.clone(),
        };
        let (rows, mut scope) = system_rows(full, Vec::new(), columns, (alias, renamed))?;
        if let Some(oid) = self.system.table_oid(schema, &name.name.value) {
            let xmin = self.system_row_version()?;
            for relation in &mut scope.relations {
                relation.hidden.extend([tableoid(oid), xmin.clone()]);
                relation.witness = relation.columns.first().map(|column| column.expr.clone());
            }
        }
        if alias == name.name.value {
            let schema = schema.unwrap_or("pg_catalog");
            scope.relations.iter_mut().for_each(|one| one.schema = Some(schema.to_owned()));
        }
        Ok((rows, scope))
    }

    /// Returns column `xmin` of system relations. Their rows are made for each statement: their
    /// version is its transaction.
    fn system_row_version(&mut self) -> Result<ScopeColumn> {
        let name = Ident { value: "pg_current_xact_id".to_owned(), position: 1 };
        let call = FunctionCall::plain(FunctionName { schema: None, name }, Vec::new());
        let id = self.bind_call(&call)?;
        let (operand, from, to) = (Box::new(id.expr), DataType::XID8, SqlType::from(DataType::XID));
        let expr = Expr::Cast { operand, from, to: to.clone(), explicit: true };
        let name = "xmin".to_owned();
        Ok(ScopeColumn { name, sql_type: to, expr, origin: None, fields: None })
    }

    /// Returns the time of setting `as_of`, at which all tables are read but temporary ones.
    fn session_as_of(&self, table: &Table) -> Option<Expr> {
        let as_of = self.constants.search_path().as_of();
        let time = as_of.filter(|_| !is_temporary(&table.schema))?;
        Some(Expr::constant(Datum::Timestamptz(time), DataType::Timestamptz))
    }

    fn bind_system_time(&mut self, clause: &SystemTime<ast::Expr>) -> Result<SystemTime<Expr>> {
        let times = clause.times.iter().map(|time| self.bind_time(time)).collect::<Result<_>>()?;
        Ok(SystemTime { form: clause.form, times })
    }

    fn bind_time(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let bind = |binder: &mut Self| {
            let value = binder.bind_expr(expr)?;
            let (from, position) = (value.base().clone(), value.position);
            let to = SqlType::from(DataType::Timestamptz);
            binder.coerce(value, &to, CastContext::Assignment)?.ok_or_else(|| {
                err!(DATATYPE_MISMATCH: "argument of FOR SYSTEM_TIME must be type timestamp with time zone, not type {}",
                    from.sql_name(); with_type_mention from; at position)
            })
        };
        let (expr, level) = self.in_new_level(Scope::default(), Clause::SystemTime, bind)?;
        level.refuse_subqueries("FOR SYSTEM_TIME")?;
        Ok(expr)
    }

    fn bind_join(
        &mut self,
        sides: (&TableRef, &TableRef),
        kind: ast::JoinType,
        condition: &JoinQualifier,
    ) -> Result<(Rows, Scope)> {
        let (pads_left, pads_right) = (
            matches!(kind, ast::JoinType::Right | ast::JoinType::Full),
            matches!(kind, ast::JoinType::Left | ast::JoinType::Full),
        );
        let (mut rows, left) = self.bind_side(sides.0, pads_left)?;
        let barred = pads_left.then_some(LateralBar::Optional);
        let place = if pads_right { Some("within an outer join") } else { None };
        let (right_rows, mut right, bindings) = match place {
            None => self.bind_beside(sides.1, &left, barred)?,
            Some(place) => {
                self.without_recursion(place, |b| b.bind_beside(sides.1, &left, barred))?
            }
        };
        if pads_right {
            right.relations.iter_mut().for_each(ScopeRelation::pad);
        }
        let bindings = rows.bind(bindings);
        let width = rows.types.len();
        let kind = match kind {
            ast::JoinType::Inner | ast::JoinType::Cross => JoinKind::Inner,
            ast::JoinType::Left => JoinKind::Left,
            ast::JoinType::Right => JoinKind::Right,
            ast::JoinType::Full => JoinKind::Full,
        };
        let names = match condition {
            JoinQualifier::Using { columns, .. } => columns.clone(),
            JoinQualifier::Natural => common_names(&left, &right),
            JoinQualifier::On(on) => {
                let scope = left.join(right, width)?;
                let bind = |binder: &mut Self| binder.bind_condition(on, Clause::JoinOn);
                let (on, level) = self.in_new_level(scope, Clause::JoinOn, bind)?;
                let right = (right_rows, bindings);
                self.join_on(&mut rows, right, kind, on, &level)?;
                return Ok((rows, level.scope));
            }
            JoinQualifier::None => Vec::new(),
        };
        // Reports incompatible column types before a missing operator.
        let merged = if names.is_empty() {
            None
        } else {
            Some(self.merged_columns(&left, &right, (kind, width), &names)?)
        };
        let on = self.join_using(&left, &right, width, &names)?;
        let mut scope = left.join(right, width)?;
        if let Some(merged) = merged {
            if let JoinQualifier::Using { columns, alias: Some(alias) } = condition {
                scope.name_merged(alias, &merged[..columns.len()])?;
            }
            scope.merge(merged);
        }
        rows.join_lateral(right_rows, kind, on, bindings);
        Ok((rows, scope))
    }

    /// Binds a join in parentheses with an alias.
    fn bind_renamed(&mut self, join: &TableRef, alias: &TableAlias) -> Result<(Rows, Scope)> {
        let bound = self.bind_table_ref(join);
        let (rows, scope) = self.noted(join, bound)?;
        let mut relation = ScopeRelation::new(&alias.name.value, &[]);
        relation.kind = RelationKind::Join;
        relation.columns = scope.columns().into_iter().cloned().collect();
        relation.rename(&alias.columns)?;
        Ok((rows, scope.behind(relation)))
    }

    fn bind_side(&mut self, side: &TableRef, padded: bool) -> Result<(Rows, Scope)> {
        if padded {
            let bind = |binder: &mut Self| binder.bind_table_ref(side);
            let bound = self.without_recursion("within an outer join", bind);
            let (rows, mut scope) = self.noted(side, bound)?;
            scope.relations.iter_mut().for_each(ScopeRelation::pad);
            return Ok((rows, scope));
        }
        let bound = self.bind_table_ref(side);
        self.noted(side, bound)
    }

    fn join_using(
        &mut self,
        left: &Scope,
        right: &Scope,
        width: usize,
        names: &[Ident],
    ) -> Result<Expr> {
        let mut equal = Vec::new();
        for name in names {
            let left = using_column(left, name, "left")?;
            let right = shifted(using_column(right, name, "right")?, width);
            self.note_column(&left);
            self.note_column(&right);
            let (left, right) = (typed(&left, name.position), typed(&right, name.position));
            equal.push(self.operator("=", left, right, name.position)?.expr);
        }
        Ok(if equal.is_empty() { boolean(true) } else { all_of(equal) })
    }

    /// Returns the columns that unqualified names refer to after JOIN … USING: the merged columns,
    /// then the others.
    fn merged_columns(
        &mut self,
        left: &Scope,
        right: &Scope,
        (kind, width): (JoinKind, usize),
        names: &[Ident],
    ) -> Result<Vec<ScopeColumn>> {
        let mut merged = Vec::new();
        for name in names {
            let from_left = using_column(left, name, "left")?;
            let from_right = shifted(using_column(right, name, "right")?, width);
            let both = vec![typed(&from_left, name.position), typed(&from_right, name.position)];
            let fields = from_left.fields.filter(|_| kind == JoinKind::Inner);
            let (mut both, sql_type) = self.unify(both, "JOIN/USING")?;
            let origin = if kind == JoinKind::Right { from_right.origin } else { from_left.origin };
            let (expr, origin) = match kind {
                JoinKind::Full => {
                    (Expr::Coalesce { operands: both, data_type: sql_type.base.clone() }, None)
                }
                JoinKind::Right => (both.remove(1), origin),
                _ => (both.remove(0), origin),
            };
            merged.push(ScopeColumn { name: name.value.clone(), sql_type, expr, origin, fields });
        }
        let shared = |column: &&ScopeColumn| names.iter().all(|name| name.value != column.name);
        merged.extend(left.columns().into_iter().filter(shared).cloned());
        let rest = right.columns().into_iter().filter(shared);
        merged.extend(rest.map(|column| shifted(column.clone(), width)));
        Ok(merged)
    }
}

fn refuse_system_time(
    system_time: Option<&SystemTime<ast::Expr>>,
    of: &str,
    hint: &str,
) -> Result<()> {
    let Some(SystemTime { times, .. }) = system_time else { return Ok(()) };
    let error = Error::not_supported(format!("FOR SYSTEM_TIME of {of}"), hint);
    Err(match times.first() {
        Some(time) => error.at(time.position()),
        None => error,
    })
}

/// Returns a scan of a table and its scope. The columns after the table's columns are
/// `_timestamp`, and for row versions `_operation`.
pub(super) fn scan_of(
    table: &Arc<Table>,
    alias: &str,
    system_time: Option<SystemTime<Expr>>,
) -> (Rows, Scope) {
    let mut types: Vec<DataType> =
        table.columns.iter().map(|column| column.sql_type.base.clone()).collect();
    let mut columns: Vec<usize> = (0..types.len()).collect();
    let mut relation = ScopeRelation::of_table(alias, table, 0);
    let mut pseudo_columns = vec![(TIMESTAMP_NAME, TIMESTAMP_COLUMN, DataType::Timestamptz)];
    if system_time.as_ref().is_some_and(SystemTime::has_versions) {
        pseudo_columns.push((OPERATION_NAME, OPERATION_COLUMN, DataType::Text));
        relation.has_versions = true;
    }
    for (name, column, data_type) in pseudo_columns {
        relation.hidden.push(ScopeColumn {
            name: name.to_owned(),
            sql_type: data_type.clone().into(),
            expr: Expr::Column { index: types.len(), data_type: data_type.clone() },
            origin: None,
            fields: None,
        });
        columns.push(column);
        types.push(data_type);
    }
    let plan = Logical::Scan(TableScan {
        table: Arc::clone(table),
        alias: alias.to_owned(),
        columns,
        system_time,
        lock: None,
        index_hint: None,
        statistics: None,
        policies: None,
    });
    (Rows::new(plan, types), Scope::of(relation))
}

/// Returns the rows of a sequence as a relation.
fn sequence_rows(number: u32, names: (&str, &[Ident])) -> Result<(Rows, Scope)> {
    let columns = [
        ("last_value", DataType::Int8),
        ("log_cnt", DataType::Int8),
        ("is_called", DataType::Bool),
    ];
    let column = |(name, data_type): (&str, DataType)| OutputColumn {
        name: name.to_owned(),
        sql_type: data_type.into(),
        origin: None,
    };
    let number = Expr::constant(Datum::Int8(i64::from(number)), DataType::Int8);
    let columns = columns.into_iter().map(column).collect();
    system_rows(SEQUENCE_ROWS.to_owned(), vec![number], columns, names)
}

fn system_rows(
    name: String,
    arguments: Vec<Expr>,
    columns: Vec<OutputColumn>,
    (alias, renamed): (&str, &[Ident]),
) -> Result<(Rows, Scope)> {
    let mut relation = ScopeRelation::new(alias, &columns);
    relation.kind = RelationKind::Opaque;
    relation.rename(renamed)?;
    let types = columns.iter().map(|column| column.sql_type.base.clone()).collect();
    let plan = Logical::SystemRows(SystemRows { name, arguments, target: None, columns });
    Ok((Rows::new(plan, types), Scope::of(relation)))
}

fn typed(column: &ScopeColumn, position: usize) -> Typed {
    Typed { expr: column.expr.clone(), sql_type: column.sql_type.clone(), position }
}

fn shifted(mut column: ScopeColumn, width: usize) -> ScopeColumn {
    map_columns(&mut column.expr, &|index| index + width);
    column
}

fn common_names(left: &Scope, right: &Scope) -> Vec<Ident> {
    let right = right.columns();
    let shared = |column: &&ScopeColumn| right.iter().any(|other| other.name == column.name);
    let ident = |column: &ScopeColumn| Ident { value: column.name.clone(), position: 1 };
    left.columns().into_iter().filter(shared).map(ident).collect()
}

fn using_column(scope: &Scope, name: &Ident, side: &str) -> Result<ScopeColumn> {
    let columns = scope.columns();
    let mut found = columns.iter().filter(|column| column.name == name.value);
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => {
            bail!(AMBIGUOUS_COLUMN: "common column name \"{}\" appears more than once in {side} table", name.value)
        }
        (Some(column), None) => Ok((*column).clone()),
        (None, _) => {
            bail!(UNDEFINED_COLUMN: "column \"{}\" specified in USING clause does not exist in {side} table", name.value)
        }
    }
}
