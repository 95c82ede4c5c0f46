//! What the names and values of a text were found to mean, for those who write it anew.
//!
//! The deparser ([`crate::deparse`]) walks the syntax tree; what the tree does not say (which
//! relation a column is of, what an operator takes its sides for, what a literal is) stands here.
//! Everything goes by where it stands in the text: that survives clones of the tree. Of a form
//! that has no place of its own, as AND, nothing need be known.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use types::function::Signature;
use types::{DataType, SqlType};

use crate::ast::{self, Ident, JoinCondition, TableRef};
use crate::binder::level::Binder;
use crate::binder::polymorphic::instantiate_domains;
use crate::binder::scope::{Relation, RelationKind, ScopeColumn};
use crate::binder::typed::Typed;
use crate::catalog::function::Function;
use crate::error::Result;

/// What a column reference means.
#[derive(Debug, Clone)]
pub struct ColumnNote {
    /// The entry of FROM that it is of, by [`entry_position`]; `None` for a column that a join
    /// has made of several, or without FROM.
    pub relation: Option<usize>,
    /// Which column of it; `None` for one that is not in `*`.
    pub index: Option<usize>,
    /// The name of the column, as the text knows it.
    pub name: String,
}

/// What an entry of FROM is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A table or view, by number.
    Relation(u32),
    /// What the system shows, by schema.
    System(String),
    /// Anything else: the tree tells.
    Other,
}

/// An entry of FROM.
#[derive(Debug, Clone)]
pub struct EntryNote {
    /// What it is.
    pub kind: EntryKind,
    /// Its columns: the name by which the text knows it, the name that it has by now, its type.
    pub columns: Vec<(String, String, SqlType)>,
    /// Its columns that came after the text was written.
    pub later: Vec<String>,
}

/// A call of a function of users.
#[derive(Debug, Clone)]
pub struct CallNote {
    /// The function.
    pub function: Arc<Function>,
    /// What each argument of the call is taken for.
    pub wanted: Vec<SqlType>,
    /// The arguments from here on are elements of an array.
    pub gathered: Option<usize>,
}

/// See the module's header.
#[derive(Debug, Default)]
pub struct Notes {
    types: HashMap<(usize, Discriminant<ast::Expr>), SqlType>,
    literals: HashMap<usize, SqlType>,
    operands: HashMap<(usize, String), Vec<Vec<SqlType>>>,
    /// Column references.
    pub columns: HashMap<usize, ColumnNote>,
    /// Names of relations that mean their rows, with the entry of FROM and the row's type.
    pub rows: HashMap<usize, (usize, SqlType)>,
    /// The entries of FROM, by [`entry_position`].
    pub entries: HashMap<usize, EntryNote>,
    /// Calls of functions of users.
    pub calls: HashMap<usize, CallNote>,
}

impl Notes {
    /// Returns the type of an expression, as it is before anybody converts it.
    pub fn type_of(&self, expr: &ast::Expr) -> Option<SqlType> {
        self.types.get(&key(expr)?).copied()
    }

    /// Returns what a literal was taken for.
    pub fn literal(&self, position: usize) -> Option<SqlType> {
        self.literals.get(&position).copied()
    }

    /// Returns what an operator or function takes its operands for; `nth`: of several uses of the
    /// same one, as a comparison of rows makes.
    pub fn operands(&self, position: usize, name: &str, nth: usize) -> Option<&[SqlType]> {
        let uses = self.operands.get(&(position, name.to_owned()))?;
        uses.get(nth).map(Vec::as_slice)
    }
}

/// Returns what an expression is known by.
fn key(expr: &ast::Expr) -> Option<(usize, Discriminant<ast::Expr>)> {
    Some((own_position(expr)?, discriminant(expr)))
}

/// Returns where an expression stands, not its first operand.
fn own_position(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Binary { position, .. }
        | ast::Expr::Cast { position, .. }
        | ast::Expr::Collate { position, .. } => Some(*position),
        ast::Expr::Field { name, .. } => Some(name.position),
        ast::Expr::Subscript { operand, .. } => own_position(operand),
        ast::Expr::And(_) | ast::Expr::Or(_) | ast::Expr::Not(_) | ast::Expr::IsNull { .. } => None,
        other => Some(other.position()),
    }
}

/// Returns what an entry of FROM is known by: where its name stands; 0 for a join without one.
pub fn entry_position(entry: &TableRef) -> usize {
    match entry {
        TableRef::Table { name, .. } => name.position(),
        TableRef::Subquery { query, .. } => query.position,
        TableRef::Function(function) => {
            function.calls.first().map_or(0, |one| one.call.name.position())
        }
        TableRef::Renamed { alias, .. } => alias.name.position,
        TableRef::Join { condition: JoinCondition::Using { alias: Some(alias), .. }, .. } => {
            alias.position
        }
        TableRef::Join { .. } => 0,
    }
}

impl Binder<'_> {
    /// Notes the type of an expression.
    pub(super) fn note_type(&mut self, expr: &ast::Expr, value: &Result<Typed>) {
        if let (Some(notes), Ok(value)) = (&mut self.notes, value)
            && let Some(key) = key(expr)
        {
            notes.types.insert(key, value.sql_type);
        }
    }

    /// Notes what a literal is.
    pub(super) fn note_literal(&mut self, position: usize, sql_type: SqlType) {
        if let Some(notes) = &mut self.notes {
            notes.literals.insert(position, sql_type);
        }
    }

    /// Notes what an operator or function takes its operands for.
    pub(super) fn note_call(
        &mut self,
        position: usize,
        signature: &Signature,
        arguments: &[SqlType],
    ) {
        if self.notes.is_some()
            && let Some((wanted, _)) = instantiate_domains(self.catalog, signature, arguments)
        {
            self.note_operands(position, signature.name, wanted);
        }
    }

    /// As [`Binder::note_call`], with what the operands are taken for.
    pub(super) fn note_operands(&mut self, position: usize, name: &str, wanted: Vec<SqlType>) {
        if let Some(notes) = &mut self.notes {
            notes.operands.entry((position, name.to_owned())).or_default().push(wanted);
        }
    }

    /// Notes the function of users that a call means.
    pub(super) fn note_user_call(&mut self, position: usize, note: impl FnOnce() -> CallNote) {
        if let Some(notes) = &mut self.notes {
            notes.calls.insert(position, note());
        }
    }

    /// Notes which column of the level at `depth` a name means.
    pub(super) fn note_reference(&mut self, depth: usize, parts: &[Ident], column: &ScopeColumn) {
        let Some(notes) = &mut self.notes else { return };
        let Some(position) = parts.first().map(|part| part.position) else { return };
        let mut note = ColumnNote { relation: None, index: None, name: column.name.clone() };
        let scope = &self.levels[depth].scope;
        let is_it = |one: &ScopeColumn| one.name == column.name && one.expr == column.expr;
        for relation in scope.relations.iter().filter(|relation| relation.at > 0) {
            let index = relation.columns.iter().position(|one| one.expr == column.expr);
            if index.is_some() || relation.hidden.iter().any(is_it) {
                (note.relation, note.index) = (Some(relation.at), index);
                break;
            }
        }
        notes.columns.insert(position, note);
    }

    /// Notes which row the name of a relation means.
    pub(super) fn note_row(&mut self, name: &[Ident], row: &Typed) {
        let Some(position) = name.first().map(|part| part.position) else { return };
        let found = self.levels.iter().rev().find_map(|level| level.scope.relation(name));
        let Some(at) = found.map(|relation| relation.at) else { return };
        if let Some(notes) = &mut self.notes {
            notes.rows.insert(position, (at, row.sql_type));
        }
    }

    /// Notes what an entry of FROM is, and marks its relations with it.
    pub(super) fn note_entry(&mut self, entry: &TableRef, relations: &mut [Relation]) {
        let at = entry_position(entry);
        if self.notes.is_none() || at == 0 {
            return;
        }
        for relation in relations.iter_mut().filter(|relation| relation.at == 0) {
            relation.at = at;
            let note = self.entry_note(entry, relation);
            if let Some(notes) = &mut self.notes {
                notes.entries.insert(at, note);
            }
        }
    }

    fn entry_note(&self, entry: &TableRef, relation: &Relation) -> EntryNote {
        let kind = match (entry, relation.row_type, &relation.schema) {
            (TableRef::Table { .. }, Some(oid), _) => EntryKind::Relation(oid),
            (TableRef::Table { name, .. }, None, _) if relation.kind == RelationKind::Opaque => {
                let schema = name.schema.as_ref().map(|one| one.value.clone());
                EntryKind::System(schema.unwrap_or_else(|| "pg_catalog".to_owned()))
            }
            _ => EntryKind::Other,
        };
        let view = match kind {
            EntryKind::Relation(oid) => self.catalog.view(oid),
            _ => None,
        };
        let column = |(at, column): (usize, &ScopeColumn)| {
            let of_table = relation.table.as_ref().zip(column.origin);
            let now = match of_table {
                Some((table, (_, position))) => table.columns.get(position).map(|one| &one.name),
                None => view.and_then(|view| view.columns.get(at)).map(|one| &one.name),
            };
            let written = column.name.clone();
            (written.clone(), now.cloned().unwrap_or(written), column.sql_type)
        };
        let columns = relation.columns.iter().enumerate().map(column).collect();
        let later = relation.later.iter().map(|column| column.name.clone()).collect();
        EntryNote { kind, columns, later }
    }
}

/// Returns the type that values of these types have in common, in a list of IN; literals are of
/// type [`DataType::Unknown`].
pub fn common_type(types: &[DataType]) -> Option<DataType> {
    let value =
        |data_type: &DataType| Typed::new(crate::binder::typed::null(*data_type), *data_type, 1);
    let values: Vec<Typed> = types.iter().map(value).collect();
    crate::binder::coercion::common_type(&values, "IN").ok()
}
