//! Resolution of the names and literals of a text, recorded for the deparser.
//!
//! The deparser ([`crate::deparse`]) walks the syntax tree; the facts that the tree lacks (the
//! relation of a column, the operand types of an operator, the type of a literal) are recorded
//! here by the binder. They are keyed by position in the text, which is the same in clones of the
//! tree. Forms without a position of their own, such as AND, need no record.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use types::function::Signature;
use types::{DataType, SqlType};

use crate::ast::{self, Ident, JoinQualifier, TableRef};
use crate::binder::level::Binder;
use crate::binder::polymorphic::instantiate_domains;
use crate::binder::scope::{RelationKind, ScopeColumn, ScopeRelation};
use crate::binder::typed::Typed;
use crate::catalog::function::Function;
use crate::error::Result;

/// The resolution of a column reference.
#[derive(Debug, Clone)]
pub struct ColumnNote {
    /// The entry of FROM, by [`entry_position`]; `None` for a merged column of a join, or without
    /// FROM.
    pub relation: Option<usize>,
    /// The position of the column in it; `None` for a column that is not in `*`.
    pub index: Option<usize>,
    /// The name of the column in the text.
    pub name: String,
}

/// The kind of an entry of FROM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A table or view, by number.
    Relation(u32),
    /// A system view, by schema.
    System(String),
    /// Any other, which the tree determines.
    Other,
}

/// An entry of FROM.
#[derive(Debug, Clone)]
pub struct EntryNote {
    /// Its kind.
    pub kind: EntryKind,
    /// Its columns: the name in the text, the present name, the type.
    pub columns: Vec<(String, String, SqlType)>,
    /// Its columns that were added after the text was written.
    pub later: Vec<String>,
}

/// A call of a user-defined function.
#[derive(Debug, Clone)]
pub struct CallNote {
    /// The function.
    pub function: Arc<Function>,
    /// The type to which each argument of the call is converted.
    pub wanted: Vec<SqlType>,
    /// The position of the first argument that is an element of the VARIADIC array.
    pub gathered: Option<usize>,
}

/// The recorded resolution of a text.
#[derive(Debug, Default)]
pub struct ResolutionNotes {
    types: HashMap<(usize, Discriminant<ast::Expr>), SqlType>,
    literals: HashMap<usize, SqlType>,
    operands: HashMap<(usize, String), Vec<Vec<SqlType>>>,
    /// Column references.
    pub columns: HashMap<usize, ColumnNote>,
    /// Names of relations used as whole-row references, with the entry of FROM and the row's type.
    pub rows: HashMap<usize, (usize, SqlType)>,
    /// The entries of FROM, by [`entry_position`].
    pub entries: HashMap<usize, EntryNote>,
    /// Calls of user-defined functions.
    pub calls: HashMap<usize, CallNote>,
}

impl ResolutionNotes {
    /// Returns the type of an expression before any conversion.
    pub fn type_of(&self, expr: &ast::Expr) -> Option<SqlType> {
        self.types.get(&key(expr)?).cloned()
    }

    /// Returns the type of a literal.
    pub fn literal(&self, position: usize) -> Option<SqlType> {
        self.literals.get(&position).cloned()
    }

    /// Returns the types to which an operator or function converts its operands; `nth` counts
    /// several uses at the same position, as a comparison of rows has.
    pub fn operands(&self, position: usize, name: &str, nth: usize) -> Option<&[SqlType]> {
        let uses = self.operands.get(&(position, name.to_owned()))?;
        uses.get(nth).map(Vec::as_slice)
    }
}

/// Returns the key of an expression.
fn key(expr: &ast::Expr) -> Option<(usize, Discriminant<ast::Expr>)> {
    Some((own_position(expr)?, discriminant(expr)))
}

/// Returns the position of an expression itself, not of its first operand.
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

/// Returns the key of an entry of FROM: the position of its name; 0 for a join without one.
pub fn entry_position(entry: &TableRef) -> usize {
    match entry {
        TableRef::Table { name, .. } => name.position(),
        TableRef::Subquery { query, .. } => query.position,
        TableRef::Function(function) => {
            function.calls.first().map_or(0, |one| one.call.name.position())
        }
        TableRef::Renamed { alias, .. } => alias.name.position,
        TableRef::Join { condition: JoinQualifier::Using { alias: Some(alias), .. }, .. } => {
            alias.position
        }
        TableRef::Join { .. } => 0,
    }
}

impl Binder<'_> {
    /// Records the type of an expression.
    pub(super) fn note_type(&mut self, expr: &ast::Expr, value: &Result<Typed>) {
        if let (Some(notes), Ok(value)) = (&mut self.notes, value)
            && let Some(key) = key(expr)
        {
            notes.types.insert(key, value.sql_type.clone());
        }
    }

    /// Records the type of a literal.
    pub(super) fn note_literal(&mut self, position: usize, sql_type: &SqlType) {
        if let Some(notes) = &mut self.notes {
            notes.literals.insert(position, sql_type.clone());
        }
    }

    /// Records the operand types of an operator or function.
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

    /// Records operand types that are known, as [`Binder::note_call`] does.
    pub(super) fn note_operands(&mut self, position: usize, name: &str, wanted: Vec<SqlType>) {
        if let Some(notes) = &mut self.notes {
            notes.operands.entry((position, name.to_owned())).or_default().push(wanted);
        }
    }

    /// Records the user-defined function of a call.
    pub(super) fn note_user_call(&mut self, position: usize, note: impl FnOnce() -> CallNote) {
        if let Some(notes) = &mut self.notes {
            notes.calls.insert(position, note());
        }
    }

    /// Records the column of the query level at `depth` that a name refers to.
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

    /// Records the row that the name of a relation refers to.
    pub(super) fn note_row(&mut self, name: &[Ident], row: &Typed) {
        let Some(position) = name.first().map(|part| part.position) else { return };
        let found = self.levels.iter().rev().find_map(|level| level.scope.relation(name));
        let Some(at) = found.map(|relation| relation.at) else { return };
        if let Some(notes) = &mut self.notes {
            notes.rows.insert(position, (at, row.sql_type.clone()));
        }
    }

    /// Records an entry of FROM, and sets its key in its relations.
    pub(super) fn note_entry(&mut self, entry: &TableRef, relations: &mut [ScopeRelation]) {
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

    fn entry_note(&self, entry: &TableRef, relation: &ScopeRelation) -> EntryNote {
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
            (written.clone(), now.cloned().unwrap_or(written), column.sql_type.clone())
        };
        let columns = relation.columns.iter().enumerate().map(column).collect();
        let later = relation.later.iter().map(|column| column.name.clone()).collect();
        EntryNote { kind, columns, later }
    }
}

/// Returns the common type of a list of IN; literals are of type [`DataType::Unknown`].
pub fn common_type(types: &[DataType]) -> Option<DataType> {
    let value =
        |data_type: &DataType| Typed::new(crate::binder::typed::null(data_type), data_type, 1);
    let values: Vec<Typed> = types.iter().map(value).collect();
    crate::binder::coercion::common_type(&values, "IN").ok()
}
