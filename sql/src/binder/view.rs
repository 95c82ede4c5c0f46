//! Views: their definition at CREATE VIEW, and their rows in FROM.
//!
//! The query of a view is bound again at each use, with its own name resolution: it sees neither
//! the enclosing queries nor their parameters. Errors in its text were reported at creation.

use std::collections::BTreeSet;
use std::sync::Arc;

use types::text::TextStyle;

use crate::ast::{Locking, NamedQueryBody, QueryExpr, SourceQuery, TableName};
use crate::binder::level::{Binder, DependencyTrace};
use crate::binder::parameters::Parameters;
use crate::binder::rows::Rows;
use crate::binder::scope::{RelationKind, Scope, ScopeColumn, ScopeRelation};
use crate::binder::stored_literals::LiteralSettler;
use crate::binder::system::{SessionConstants, SystemCatalog};
use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::catalog::record::ViewRelation;
use crate::catalog::table::Table;
use crate::catalog::view::{View, ViewColumn};
use crate::error::{Error, Result};
use crate::logical::{Logical, Origin, OutputColumn};
use crate::parser;

/// The maximum depth of nested views, which bounds the stack.
const DEPTH_MAX: usize = 32;

/// The remaining stack below which the query of a view runs on a new stack segment, and the size
/// of that.
pub(super) const RED_ZONE_BYTES: usize = 256 << 10;
pub(super) const STACK_BYTES: usize = 2 << 20;

/// The short form of `SELECT * FROM`, with a blank that cannot be part of a name.
const TABLE: &str = "table ";

/// The definition of a view, from its query.
#[derive(Debug, Clone)]
pub struct ViewDefinition {
    /// Its columns, with the names that the query determines.
    pub columns: Vec<ViewColumn>,
    /// Its text, with each `*` expanded to columns.
    pub text: String,
    /// The tables and views that it references.
    pub relations: Vec<ViewRelation>,
    /// The search path at creation.
    pub search_path: SearchPath,
}

/// Binds the query of CREATE VIEW.
///
/// # Errors
///
/// PostgreSQL's errors of the query, with positions in the statement; 42P02 for a parameter.
pub fn bind_view_definition(
    source: &SourceQuery,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
    (constants, session): (&SessionConstants, &TextStyle),
) -> Result<ViewDefinition> {
    // The stored text is bound without the setting of the session.
    let mut exact = constants.clone();
    let path = SearchPath::clone(constants.search_path()).with_ignored_case(false);
    exact.set_search_path(path.into());
    let constants = &exact;
    let binder = || Binder::new(catalog, system, constants, Parameters::none());
    let queries = source.query.with.iter().flat_map(|with| &with.queries);
    if queries.into_iter().any(|query| matches!(query.body, NamedQueryBody::Change(_))) {
        bail!(FEATURE_NOT_SUPPORTED: "views must not contain data-modifying statements in WITH");
    }
    let mut first = binder();
    first.trace = Some(DependencyTrace::default());
    let columns = view_columns(&first.bind_query(&source.query, true)?.columns);
    let mut trace = first.trace.take().unwrap_or_default();
    let text = replace_stars(source, std::mem::take(&mut trace.stars));
    let again = parser::parse_query(&text).map_err(Error::from);
    let mut second = binder();
    second.settler = Some(LiteralSettler::new(session.clone()));
    let again = again.and_then(|query| second.bind_query(&query, true));
    if again.as_ref().ok().map(|bound| view_columns(&bound.columns)).as_ref() != Some(&columns) {
        let hint = "List the columns.";
        return Err(Error::not_supported("* in this part of a view", hint));
    }
    let text = match second.settler.take() {
        Some(settler) => settler.rewritten(&text)?,
        None => text,
    };
    let search_path = SearchPath::clone(constants.search_path());
    Ok(ViewDefinition { columns, text, relations: trace.into_relations(catalog), search_path })
}

/// Returns a text that is equal for queries with the same plan, for a query that may replace that
/// of a view.
///
/// # Errors
///
/// PostgreSQL's errors of the query.
pub fn view_meaning(
    view: &Arc<View>,
    query: &QueryExpr,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
) -> Result<String> {
    let constants = SessionConstants::new();
    let mut binder = Binder::new(catalog, system, &constants, Parameters::none());
    binder.view = Some(Arc::clone(view));
    binder.bind_query(query, true).map(|bound| format!("{:?}", bound.plan))
}

fn view_columns(columns: &[OutputColumn]) -> Vec<ViewColumn> {
    let column = |column: &OutputColumn| ViewColumn {
        name: column.name.clone(),
        sql_type: column.sql_type.clone(),
        default: None,
        unknown: Default::default(),
    };
    columns.iter().map(column).collect()
}

/// Returns the text with each `*` expanded to columns.
fn replace_stars(source: &SourceQuery, mut stars: Vec<(usize, String)>) -> String {
    stars.sort();
    stars.dedup();
    let characters: Vec<char> = source.text.chars().collect();
    let mut text = String::with_capacity(source.text.len());
    let mut done = 0;
    for (position, columns) in stars {
        let Some(start) = position.checked_sub(source.position) else { continue };
        let rest = characters.get(start..).unwrap_or_default();
        let is_table =
            rest.iter().take(TABLE.len()).collect::<String>().eq_ignore_ascii_case(TABLE);
        let length = if is_table { Some(TABLE.len()) } else { star_length(rest) };
        let Some(length) = length.filter(|_| start >= done) else { continue };
        text.extend(&characters[done..start]);
        match is_table {
            true => text.push_str(&format!("SELECT {columns} FROM ")),
            false => text.push_str(&columns),
        }
        done = start + length;
    }
    text.extend(&characters[done..]);
    text
}

/// Returns the length of `*`, `t.*` or `"t".*` if the text begins with one. A query in parentheses
/// may be recorded as a `*` that is not in the text.
fn star_length(text: &[char]) -> Option<usize> {
    let mut quoted = false;
    for (index, c) in text.iter().enumerate() {
        match c {
            '"' => quoted = !quoted,
            '*' if !quoted => return Some(index + 1),
            _ if quoted || c.is_alphanumeric() || matches!(c, '_' | '$' | '.') => {}
            c if c.is_whitespace() && index > 0 => {}
            _ => return None,
        }
    }
    None
}

/// The dependencies of a definition.
#[derive(Debug, Default)]
pub struct Dependencies {
    /// The tables and views that it reads, with the columns in use.
    pub relations: Vec<ViewRelation>,
    /// Tables, by number, whose primary key functionally determines ungrouped columns.
    pub determining: BTreeSet<u32>,
}

/// Returns the dependencies of the query of a view.
///
/// # Errors
///
/// The error of the query, which a later change of an object can cause.
pub fn dependencies_of_view(
    view: &Arc<View>,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
) -> Result<Dependencies> {
    let constants = SessionConstants::unknown();
    let mut binder = Binder::new(catalog, system, &constants, Parameters::none());
    (binder.view, binder.trace) = (Some(Arc::clone(view)), Some(DependencyTrace::default()));
    binder.bind_query(view.query()?, true)?;
    Ok(binder.trace.take().unwrap_or_default().into_uses(catalog))
}

impl DependencyTrace {
    /// Returns the dependencies.
    pub(super) fn into_uses(mut self, catalog: &Catalog) -> Dependencies {
        let determining = std::mem::take(&mut self.determining);
        Dependencies { relations: self.into_relations(catalog), determining }
    }

    /// Returns the relations, with the columns in use.
    fn into_relations(self, catalog: &Catalog) -> Vec<ViewRelation> {
        let DependencyTrace { mut relations, used, .. } = self;
        for relation in &mut relations {
            let table = catalog.table(relation.oid).map(|table| Origin::Relation(table.oid));
            let columns = used.iter().filter(|(used, _)| Some(*used) == table);
            relation.used = columns.map(|(_, column)| *column as u32).collect();
        }
        relations
    }
}

impl Binder<'_> {
    /// Records a relation that the query references, with the names of its columns.
    pub(super) fn note_relation(
        &mut self,
        name: &TableName,
        oid: u32,
        columns: impl Iterator<Item = String>,
    ) {
        let Some(trace) = &mut self.trace else { return };
        let schema = name.schema.as_ref().map(|schema| schema.value.clone());
        let name = name.name.value.clone();
        if trace.relations.iter().any(|one| one.schema == schema && one.name == name) {
            return;
        }
        let (columns, used) = (columns.collect(), Vec::new());
        trace.relations.push(ViewRelation {
            schema,
            name,
            oid,
            columns,
            used,
            unknown: Default::default(),
        });
    }

    /// Records a column that the query uses.
    pub(super) fn note_column(&mut self, column: &ScopeColumn) {
        self.request_column(column.origin);
        if let Some(trace) = &mut self.trace {
            trace.used.extend(column.origin);
        }
    }

    /// Records a column that the statement assigns.
    pub(super) fn note_written(&mut self, table: &Table, column: usize) {
        if let Some(trace) = &mut self.trace {
            trace.used.insert((Origin::Relation(table.oid), column));
        }
    }

    /// Returns the relation that a name in the current view has referred to since the view was
    /// created.
    pub(super) fn view_relation(&self, name: &TableName) -> Option<&ViewRelation> {
        let schema = name.schema.as_ref().map(|schema| &schema.value);
        let mut relations = self.view.as_ref()?.relations.iter();
        relations.find(|one| one.schema.as_ref() == schema && one.name == name.name.value)
    }

    /// Records the expansion of a `*` over the current query level.
    pub(super) fn note_star(&mut self, position: usize, columns: &[ScopeColumn]) {
        columns.iter().for_each(|column| self.request_column(column.origin));
        let Some(trace) = &mut self.trace else { return };
        trace.used.extend(columns.iter().filter_map(|column| column.origin));
        let Some(level) = self.levels.last() else { return };
        let names: Vec<String> = columns.iter().map(|column| level.scope.name_of(column)).collect();
        trace.stars.push((position, names.join(", ")));
    }

    /// Returns the rows of a view, with these row-locking clauses.
    pub(super) fn bind_view_rows(
        &mut self,
        view: &Arc<View>,
        alias: &str,
        locking: &[Locking],
    ) -> Result<(Rows, Scope)> {
        if self.view_depth >= DEPTH_MAX {
            bail!(STATEMENT_TOO_COMPLEX: "views are nested more than {DEPTH_MAX} deep");
        }
        let query = view.query()?;
        let levels = std::mem::take(&mut self.levels);
        let named = std::mem::take(&mut self.named);
        let is_definition = self.policies.is_definition || self.is_defining();
        let was_definition = std::mem::replace(&mut self.policies.is_definition, is_definition);
        let check_as = self.policies.check_as.take();
        let (trace, notes, settler) = (self.trace.take(), self.notes.take(), self.settler.take());
        let outer = self.view.replace(Arc::clone(view));
        self.view_depth += 1;
        let bound = stacker::maybe_grow(RED_ZONE_BYTES, STACK_BYTES, || match locking {
            [] => self.bind_query(query, true),
            clauses => {
                let mut query = QueryExpr::clone(query);
                query.locking.extend(clauses.iter().cloned());
                self.bind_query(&query, true)
            }
        });
        self.view_depth -= 1;
        self.policies.is_definition = was_definition;
        self.policies.check_as = check_as;
        self.view = outer;
        self.levels = levels;
        self.named = named;
        (self.trace, self.notes, self.settler) = (trace, notes, settler);
        // A position in the view's text must not be reported as one in the statement.
        let bound = bound.map_err(|error| Error { position: None, ..error })?;
        if bound.columns.len() != view.columns.len() {
            bail!(INTERNAL_ERROR: "view \"{}\" no longer matches its definition", view.name);
        }
        let named = bound.columns.iter().zip(&view.columns).enumerate();
        let columns: Vec<OutputColumn> = named
            .map(|(at, (bound, column))| OutputColumn {
                name: column.name.clone(),
                sql_type: bound.sql_type.clone(),
                origin: Some((Origin::Relation(view.oid), at)),
            })
            .collect();
        let relation =
            ScopeRelation { kind: RelationKind::Query, ..ScopeRelation::new(alias, &columns) };
        let types = columns.iter().map(|column| column.sql_type.base.clone()).collect();
        let plan = match view.security_barrier {
            Some(true) => Logical::Barrier { input: Box::new(bound.plan) },
            _ => bound.plan,
        };
        Ok((Rows::new(plan, types), Scope::of(relation)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_length_covers_qualified_star() {
        let length = |text: &str| star_length(&text.chars().collect::<Vec<_>>());
        assert_eq!(length("*, a"), Some(1));
        assert_eq!(length("t.*, a"), Some(3));
        assert_eq!(length("public . \"T * \" . * from"), Some(19));
        assert_eq!(length("(select 1)"), None);
        assert_eq!(length("select a from t order by b"), None);
        assert_eq!(length(""), None);
    }
}
