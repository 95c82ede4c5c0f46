//! Scopes: the relations of a FROM clause and their columns, as names refer to them.
//!
//! A column is an expression over the *base row*, the concatenation of the columns of all entries
//! of FROM. JOIN … USING merges two columns into one, so the columns that an unqualified name or
//! `*` refers to can differ from those of the relations.

use std::sync::Arc;

use types::expr::Expr;
use types::{DataType, Datum, SqlType};

use crate::ast::{DynamicColumn, Ident, TableName};
use crate::binder::tree::map_columns;
use crate::catalog::column_family;
use crate::catalog::table::Table;
use crate::catalog::user_type::OID_OFFSET;
use crate::error::{Error, Result};
use crate::logical::{Origin, OutputColumn};
use crate::parser;

/// A visible column.
#[derive(Debug, Clone)]
pub(super) struct ScopeColumn {
    /// Its name.
    pub(super) name: String,
    /// Its type.
    pub(super) sql_type: SqlType,
    /// Its value, over the base row.
    pub(super) expr: Expr,
    /// The column of a relation of which it is an unchanged copy.
    pub(super) origin: Option<(Origin, usize)>,
    /// The fields of an anonymous record, if they are known.
    pub(super) fields: Option<Fields>,
}

/// Names and types of the fields of a row.
pub(super) use types::datatype::composite::Fields;

/// The kind of a relation, which determines whether its rows can be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelationKind {
    /// A table.
    Table,
    /// A subquery in FROM, or a view.
    Query,
    /// The target view of a data-modifying statement.
    Opaque,
    /// Functions, and system views.
    Function,
    /// A WITH query.
    Named,
    /// A join with an alias.
    Join,
}

/// A table, view, function or query in FROM.
#[derive(Debug, Clone)]
pub(super) struct ScopeRelation {
    /// Its alias or name.
    pub(super) alias: String,
    /// The table, if it is a table.
    pub(super) table: Option<Arc<Table>>,
    /// The schema of a view without an alias; in the query of a view, where relations are known by
    /// the names at its creation, of a table, too.
    pub(super) schema: Option<String>,
    /// The table or view whose rows these are.
    pub(super) row_type: Option<u32>,
    /// Its kind.
    pub(super) kind: RelationKind,
    /// The columns.
    pub(super) columns: Vec<ScopeColumn>,
    /// Columns that are visible by name but are not in `*`.
    pub(super) hidden: Vec<ScopeColumn>,
    /// Columns that were added after the query of a view was written, which are not visible in it.
    pub(super) later: Vec<ScopeColumn>,
    /// The families of the columns of a definition's table, which is not in the catalog.
    pub(super) families: Option<Arc<[String]>>,
    /// The key of its entry of FROM in the notes, if recorded.
    pub(super) at: usize,
    /// True for the work table of a recursive query.
    pub(super) is_work_table: bool,
    /// True if its name refers to the value of its only column: for a single function in FROM that
    /// returns scalar values.
    pub(super) is_value: bool,
    /// True if it is on the nullable side of an outer join.
    pub(super) is_padded: bool,
    /// True if the rows are versions, of which several have one key.
    pub(super) has_versions: bool,
    /// An expression that is never NULL in its rows, so that it is NULL only in null-extended
    /// rows.
    pub(super) witness: Option<Expr>,
}

/// The relations of one FROM clause.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// The relations, from left to right.
    pub(super) relations: Vec<ScopeRelation>,
    /// The columns of unqualified names and `*`, if they are not the columns of all relations.
    merged: Option<Vec<ScopeColumn>>,
    /// Relations inside of a join with an alias, which are not visible; used for hints.
    concealed: Vec<ScopeRelation>,
}

impl ScopeRelation {
    /// Sets the name of a relation in the query of a view to the name in its text, regardless of
    /// its present name.
    pub(super) fn go_by(&mut self, name: &TableName) {
        let own = self.table.as_ref().map(|table| table.schema.clone());
        let written = name.schema.as_ref().map(|schema| schema.value.clone());
        self.schema = written.or(own).or(self.schema.take());
    }

    /// Returns a relation whose columns are `0..` of its rows.
    pub(super) fn new(alias: &str, columns: &[OutputColumn]) -> ScopeRelation {
        let column = |(index, column): (usize, &OutputColumn)| ScopeColumn {
            name: column.name.clone(),
            sql_type: column.sql_type.clone(),
            expr: Expr::Column { index, data_type: column.sql_type.base.clone() },
            origin: column.origin,
            fields: None,
        };
        ScopeRelation {
            alias: alias.to_owned(),
            table: None,
            schema: None,
            row_type: None,
            kind: RelationKind::Query,
            columns: columns.iter().enumerate().map(column).collect(),
            hidden: Vec::new(),
            later: Vec::new(),
            families: None,
            at: 0,
            is_work_table: false,
            is_value: false,
            is_padded: false,
            has_versions: false,
            witness: None,
        }
    }

    /// Returns a relation of the visible columns of a table whose first column is column `first`
    /// of the row.
    pub(super) fn of_table(alias: &str, table: &Arc<Table>, first: usize) -> ScopeRelation {
        let column = |index: usize| {
            let column = &table.columns[index];
            ScopeColumn {
                name: column.name.clone(),
                sql_type: column.sql_type.clone(),
                expr: Expr::Column {
                    index: first + index,
                    data_type: column.sql_type.base.clone(),
                },
                origin: Some((Origin::Relation(table.oid), index)),
                fields: None,
            }
        };
        let witness = table.key_columns().next().map(|index| column(index).expr);
        ScopeRelation {
            alias: alias.to_owned(),
            table: Some(Arc::clone(table)),
            schema: None,
            row_type: Some(table.oid),
            kind: RelationKind::Table,
            columns: table.visible_columns().map(column).collect(),
            hidden: vec![tableoid(table.oid + OID_OFFSET)],
            later: Vec::new(),
            families: None,
            at: 0,
            is_work_table: false,
            is_value: false,
            is_padded: false,
            has_versions: false,
            witness,
        }
    }

    /// Renames the leading columns.
    pub(super) fn rename(&mut self, names: &[Ident]) -> Result<()> {
        if names.len() > self.columns.len() {
            let what = if self.kind == RelationKind::Join { "join expression" } else { "table" };
            bail!(INVALID_COLUMN_REFERENCE: "{what} \"{}\" has {} columns available but {} columns specified",
                self.alias, self.columns.len(), names.len());
        }
        for (column, name) in self.columns.iter_mut().zip(names) {
            column.name.clone_from(&name.value);
        }
        Ok(())
    }

    /// Hides the origin of the columns behind the first `declared`: they are dynamic columns, which
    /// the catalog does not know, and make rows of another type.
    fn conceal_origins(&mut self, declared: usize) {
        self.row_type = None;
        for column in &mut self.columns {
            column.origin = column.origin.filter(|(_, position)| *position < declared);
        }
    }

    /// Sets the columns to their names in the query of a view; columns that were added later
    /// become invisible.
    pub(super) fn name_as(&mut self, names: &[String]) {
        let is_table = self.table.is_some();
        for (index, column) in std::mem::take(&mut self.columns).into_iter().enumerate() {
            let origin = column.origin.filter(|_| is_table).map(|(_, position)| position);
            match names.get(origin.unwrap_or(index)).filter(|name| !name.is_empty()) {
                Some(name) => self.columns.push(ScopeColumn { name: name.clone(), ..column }),
                None => self.later.push(column),
            }
        }
    }

    /// Returns the columns of its rows as values.
    pub(super) fn row_columns(&self) -> Vec<ScopeColumn> {
        let mut columns = self.columns.clone();
        if self.row_type.is_some() && !self.later.is_empty() {
            columns.extend(self.later.iter().cloned());
            columns.sort_by_key(|column| column.origin.map(|(_, position)| position));
        }
        columns
    }

    fn column(&self, name: &str) -> Result<Option<&ScopeColumn>> {
        let mut found = self.columns.iter().filter(|column| column.name == name);
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(ambiguous(name)),
            (Some(column), None) => Ok(Some(column)),
            (None, _) => Ok(self.hidden.iter().find(|column| column.name == name)),
        }
    }

    /// Returns the column that is a column of its table; `None` if that is hidden.
    pub(super) fn table_column(&self, position: usize) -> Option<&ScopeColumn> {
        let origin = Some((Origin::Relation(self.table.as_ref()?.oid), position));
        self.columns.iter().find(|column| column.origin == origin)
    }

    /// Returns the family of a column; empty if it is in none.
    fn family_of(&self, column: &ScopeColumn) -> &str {
        match (&self.table, &self.families, &column.expr) {
            (Some(table), ..) => {
                // Dynamic columns have no origin.
                let position = column.origin.map(|(_, position)| position);
                let position = position.or_else(|| table.column_index(&column.name));
                position.map_or("", |position| table.family_name(position))
            }
            (None, Some(families), Expr::Column { index, .. }) => {
                families.get(*index).map_or("", String::as_str)
            }
            _ => "",
        }
    }

    /// Returns the names of the columns with their families.
    fn names(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.columns.iter().map(|column| (column.name.as_str(), self.family_of(column)))
    }

    /// Returns the columns of a family; `None` if the table has no such family.
    fn family_columns(&self, family: &str) -> Option<Vec<ScopeColumn>> {
        let families = &self.table.as_ref()?.descriptor.families;
        let exact = families.iter().find(|one| one.name == family);
        let other = || families.iter().find(|one| one.name.eq_ignore_ascii_case(family));
        let name = &exact.or_else(other)?.name;
        let columns = self.columns.iter().filter(|column| self.family_of(column) == name);
        Some(columns.cloned().collect())
    }

    /// Returns the error for an unqualified name that only columns of families have.
    fn ambiguity(&self, name: &str) -> Option<Error> {
        let has_families = self.table.is_some() || self.families.is_some();
        has_families.then(|| column_family::ambiguity(self.names(), name)).flatten()
    }

    /// Marks the relation as nullable.
    pub(super) fn pad(&mut self) {
        self.is_padded = true;
        let Some(witness) = &self.witness else { return };
        let constants =
            self.hidden.iter_mut().filter(|one| matches!(one.expr, Expr::Constant { .. }));
        for ScopeColumn { expr, .. } in constants {
            let data_type = expr.data_type();
            let missing = Expr::IsNull(Box::new(witness.clone()));
            *expr = Expr::Case {
                branches: vec![(missing, Expr::constant(Datum::Null, data_type))],
                otherwise: Box::new(expr.clone()),
                data_type: data_type.clone(),
            };
        }
    }

    fn shift(&mut self, by: usize) {
        let named = self.columns.iter_mut().chain(&mut self.hidden);
        let values = named.chain(&mut self.later).map(|column| &mut column.expr);
        for value in values.chain(&mut self.witness) {
            map_columns(value, &|index| index + by);
        }
    }
}

impl Scope {
    /// Hides the origins of dynamic columns of the only relation, behind its declared ones.
    pub(super) fn conceal_dynamic_columns(&mut self, declared: usize, columns: &[DynamicColumn]) {
        if !columns.is_empty() {
            self.relations.iter_mut().for_each(|relation| relation.conceal_origins(declared));
        }
    }

    /// Returns the scope of one relation.
    pub(super) fn of(relation: ScopeRelation) -> Scope {
        Scope { relations: vec![relation], merged: None, concealed: Vec::new() }
    }

    /// Returns the scope of a relation that hides the relations of this one.
    pub(super) fn behind(self, relation: ScopeRelation) -> Scope {
        let concealed = self.concealed.into_iter().chain(self.relations).collect();
        Scope { concealed, ..Scope::of(relation) }
    }

    /// Returns all relations, including those that are not visible.
    pub(super) fn all_relations(&self) -> impl Iterator<Item = &ScopeRelation> {
        self.concealed.iter().chain(&self.relations)
    }

    /// Returns whether a visible relation has this alias.
    pub(super) fn has_alias(&self, alias: &str) -> bool {
        self.relations.iter().any(|relation| relation.alias == alias)
    }

    /// Returns the columns that `*` and unqualified names refer to.
    pub(super) fn columns(&self) -> Vec<&ScopeColumn> {
        match &self.merged {
            Some(merged) => merged.iter().collect(),
            None => self.relations.iter().flat_map(|relation| &relation.columns).collect(),
        }
    }

    /// Returns the relation for a qualifier: `t`, or `schema.t` for a table or view without an
    /// alias.
    pub(super) fn relation(&self, qualifier: &[Ident]) -> Option<&ScopeRelation> {
        match qualifier {
            [name] => self.relations.iter().find(|relation| relation.alias == name.value),
            [schema, name] => self.relations.iter().find(|relation| {
                let table = relation.table.as_ref().filter(|table| table.schema == schema.value);
                relation.alias == name.value
                    && (table.is_some_and(|table| table.name == name.value)
                        || relation.schema.as_ref() == Some(&schema.value))
            }),
            _ => None,
        }
    }

    /// Returns this scope's columns followed by those of `right`, whose row starts at `width`.
    ///
    /// # Errors
    ///
    /// 42712 if both have a relation of the same name.
    pub(super) fn join(mut self, mut right: Scope, width: usize) -> Result<Scope> {
        for relation in &mut right.relations {
            if self.relations.iter().any(|other| other.alias == relation.alias) {
                return Err(specified_twice(&relation.alias));
            }
            relation.shift(width);
        }
        for column in right.merged.iter_mut().flatten() {
            map_columns(&mut column.expr, &|index| index + width);
        }
        if self.merged.is_some() || right.merged.is_some() {
            let both = self.columns().into_iter().chain(right.columns()).cloned().collect();
            self.merged = Some(both);
        }
        self.relations.append(&mut right.relations);
        self.concealed.append(&mut right.concealed);
        Ok(self)
    }

    /// Returns the scope without its first relation.
    pub(super) fn without_first(&self) -> Scope {
        let mut scope = self.clone();
        if scope.relations.is_empty() {
            return scope;
        }
        let first = scope.relations.remove(0);
        if let Some(merged) = &mut scope.merged {
            merged.drain(..first.columns.len());
        }
        scope
    }

    /// Adds an alias for the columns that a join has merged.
    ///
    /// # Errors
    ///
    /// 42712 if another entry of FROM has this name.
    pub(super) fn name_merged(&mut self, alias: &Ident, columns: &[ScopeColumn]) -> Result<()> {
        if self.relations.iter().any(|other| other.alias == alias.value) {
            return Err(specified_twice(&alias.value));
        }
        let mut relation = ScopeRelation::new(&alias.value, &[]);
        relation.kind = RelationKind::Join;
        relation.columns = columns.to_vec();
        self.relations.push(relation);
        Ok(())
    }

    /// Sets the columns that unqualified names and `*` refer to.
    pub(super) fn merge(&mut self, columns: Vec<ScopeColumn>) {
        self.merged = Some(columns);
    }

    /// Returns the column of a name; `None` if neither it nor its relation is in this scope.
    pub(super) fn find(&self, parts: &[Ident]) -> Result<Option<&ScopeColumn>> {
        match parts {
            [name] => self.find_unqualified(&name.value),
            [qualifier @ .., name] => {
                if let Some(relation) = self.relation(qualifier) {
                    let missing = || missing_in(relation, &name.value);
                    return relation.column(&name.value)?.map(Some).ok_or_else(missing);
                }
                self.find_in_family(qualifier, &name.value)
            }
            [] => Ok(None),
        }
    }

    fn find_unqualified(&self, name: &str) -> Result<Option<&ScopeColumn>> {
        let mut found: Option<&ScopeColumn> = None;
        let mut consider = |column| match found.replace(column) {
            Some(_) => Err(ambiguous(name)),
            None => Ok(()),
        };
        match &self.merged {
            Some(merged) => {
                merged.iter().filter(|column| column.name == name).try_for_each(&mut consider)?;
            }
            None => self
                .relations
                .iter()
                .flat_map(|relation| &relation.columns)
                .filter(|column| column.name == name)
                .try_for_each(&mut consider)?,
        }
        if found.is_none() {
            let hidden = self.relations.iter().flat_map(|relation| &relation.hidden);
            hidden.filter(|column| column.name == name).try_for_each(|column| {
                match found.replace(column) {
                    Some(_) => Err(ambiguous(name)),
                    None => Ok(()),
                }
            })?;
        }
        if found.is_none()
            && let Some(error) = self.relations.iter().find_map(|one| one.ambiguity(name))
        {
            return Err(error);
        }
        Ok(found)
    }

    /// Returns the relations whose families a qualifier can mean: `f` or `t.f`.
    fn relations_of(&self, qualifier: &[Ident]) -> impl Iterator<Item = &ScopeRelation> {
        let table = qualifier.split_last().map(|(_, table)| table).unwrap_or_default();
        let is_any = table.is_empty();
        let named = self.relation(table).into_iter();
        self.relations.iter().filter(move |_| is_any).chain(named)
    }

    fn find_in_family(&self, qualifier: &[Ident], name: &str) -> Result<Option<&ScopeColumn>> {
        let Some(family) = qualifier.last() else { return Ok(None) };
        let mut found = self.relations_of(qualifier).filter_map(|relation| {
            let position = column_family::find(relation.names(), &family.value, name)?;
            relation.columns.get(position)
        });
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(ambiguous(name)),
            (first, _) => Ok(first),
        }
    }

    /// Returns the columns of `t.*`, `f.*` or `t.f.*`; `None` if neither a relation nor a family
    /// of one has the name.
    ///
    /// # Errors
    ///
    /// 42702 if two relations have the family.
    pub(super) fn star(&self, qualifier: &[Ident]) -> Result<Option<Vec<ScopeColumn>>> {
        if let Some(relation) = self.relation(qualifier) {
            return Ok(Some(relation.columns.clone()));
        }
        let Some(family) = qualifier.last() else { return Ok(None) };
        let relations = self.relations_of(qualifier);
        let mut found = relations.filter_map(|relation| relation.family_columns(&family.value));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => {
                let family = &family.value;
                bail!(AMBIGUOUS_COLUMN: "column family \"{family}\" is ambiguous";
                    hint "Qualify it with the table: SELECT t.f.* FROM t.")
            }
            (first, _) => Ok(first),
        }
    }

    /// Returns SQL text that refers to one of [`Scope::columns`] or of a relation's columns.
    pub(super) fn name_of(&self, column: &ScopeColumn) -> String {
        let name = parser::quoted(&column.name);
        let is_it = |one: &ScopeColumn| one.name == column.name && one.expr == column.expr;
        // A merged column is referenced by its name alone, because both sides may have it.
        let merged = self.merged.iter().flatten().filter(|one| one.name == column.name).count();
        let owner = self.relations.iter().find(|one| one.columns.iter().any(is_it));
        match owner {
            Some(owner) if self.merged.is_none() || merged > 1 => {
                format!("{}.{name}", parser::quoted(&owner.alias))
            }
            _ => name,
        }
    }

    /// Returns `t.x` for a column of the base row, for messages.
    pub(super) fn describe(&self, index: usize) -> Option<String> {
        for relation in &self.relations {
            for column in relation.columns.iter().chain(&relation.hidden) {
                if matches!(&column.expr, Expr::Column { index: at, .. } if *at == index) {
                    return Some(format!("{}.{}", relation.alias, column.name));
                }
            }
        }
        None
    }
}

fn missing_in(relation: &ScopeRelation, name: &str) -> Error {
    if let Some(error) = system_column(name).or_else(|| relation.ambiguity(name)) {
        return error;
    }
    err!(UNDEFINED_COLUMN: "column {}.{name} does not exist", relation.alias)
}

fn specified_twice(name: &str) -> Error {
    err!(DUPLICATE_ALIAS: "table name \"{name}\" specified more than once")
}

/// System columns of PostgreSQL's tables with the physical location of a row and its transactions.
const ROW_LOCATORS: [&str; 5] = ["ctid", "xmin", "cmin", "xmax", "cmax"];

/// Returns the error for a system column of PostgreSQL that bennu does not have.
pub(super) fn system_column(name: &str) -> Option<Error> {
    ROW_LOCATORS.contains(&name).then(|| {
        let hint = match name {
            "xmin" => {
                "Use column _timestamp as the version of a row: UPDATE t SET v = 2 WHERE id = 1 \
                 AND _timestamp = '2024-05-01 12:00:00.123456+00'."
            }
            _ => "Rows have no physical address. Use the primary key.",
        };
        Error::not_supported(format!("system column {name}"), hint)
    })
}

/// Returns the system column with the OID of a row's relation.
pub(super) fn tableoid(oid: u32) -> ScopeColumn {
    ScopeColumn {
        name: "tableoid".to_owned(),
        sql_type: DataType::Oid.into(),
        expr: Expr::constant(Datum::Int8(i64::from(oid)), DataType::Oid),
        origin: None,
        fields: None,
    }
}

fn ambiguous(name: &str) -> Error {
    err!(AMBIGUOUS_COLUMN: "column reference \"{name}\" is ambiguous")
}
