//! Queries of the system views that are defined by SQL, from the texts in `views`.
//!
//! A query is planned once, or once for each database whose name it contains: it reads system
//! relations and calls built-in functions only, so that its plan does not depend on the rest of the
//! catalog. Its rows are cached with the catalog snapshot, unless the text says otherwise.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use types::SqlType;

use crate::binder::{self, BoundStatement, SessionConstants, SystemCatalog};
use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::error::{Error, Result};
use crate::parser;
use crate::plan::Plan;
use crate::planner;
use crate::planner::statistics::NoStatistics;
use crate::system::value::text;

const TEXTS: [&str; 3] = [
    include_str!("views/information_schema.sql"),
    include_str!("views/pg_catalog.sql"),
    include_str!("views/phoenix.sql"),
];

/// Maximum number of plans of a query, of as many databases.
const PLANS_MAX: usize = 16;

/// A dependency of a view's rows, besides the catalog and the formats of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewDependency {
    /// Nothing.
    Catalog,
    /// The role of the session.
    Role,
    /// Something else: they are not cached.
    Other,
}

/// The options of views with a dependency.
const DEPENDENCIES: [(&str, ViewDependency); 2] = [
    (" with (cached = role)", ViewDependency::Role),
    (" with (cached = off)", ViewDependency::Other),
];

/// The query of a system view.
#[derive(Debug)]
pub(super) struct ViewQuery {
    text: &'static str,
    pub(super) dependency: ViewDependency,
    /// By the name of the database, if the text contains it.
    plans: Mutex<AHashMap<String, Arc<Plan>>>,
}

/// Returns the queries by the full names of their views.
pub(super) fn read() -> AHashMap<&'static str, ViewQuery> {
    let texts = TEXTS.iter().flat_map(|text| text.split("\ncreate view ").skip(1));
    let view = |one: &'static str| {
        let (head, text) = one.split_once(" as\n")?;
        // What follows the semicolon is the comment of the next view.
        let (text, _) = text.split_once(";\n")?;
        let mut options = DEPENDENCIES.iter();
        let option = options.find_map(|(option, of)| Some((head.strip_suffix(option)?, *of)));
        let (name, dependency) = option.unwrap_or((head, ViewDependency::Catalog));
        Some((name, ViewQuery { text, dependency, plans: Mutex::default() }))
    };
    texts.filter_map(view).collect()
}

impl ViewQuery {
    /// Returns the plan, whose rows have these columns: those that the query names, and NULL for
    /// the others.
    ///
    /// # Errors
    ///
    /// Errors of the text, which tests exclude.
    pub(super) fn plan(
        &self,
        columns: &[(&'static str, SqlType)],
        catalog: &Catalog,
        system: &dyn SystemCatalog,
    ) -> Result<Arc<Plan>> {
        // The name of the database is a constant of the plan.
        let database = match self.text.contains("current_database") {
            true => catalog.current_database(),
            false => "",
        };
        if let Some(plan) = self.plans.lock().get(database) {
            return Ok(Arc::clone(plan));
        }
        let named = bind(self.text, catalog, system)?;
        let named = named.bound.columns().unwrap_or_default();
        let column = |(name, sql_type): &(&str, SqlType)| {
            let is_named = named.iter().any(|one| one.name == *name);
            let value = if is_named { parser::quoted(name) } else { "NULL".to_owned() };
            format!("CAST({value} AS {})", sql_type.name())
        };
        let list: Vec<String> = columns.iter().map(column).collect();
        let all = format!("SELECT {} FROM ({}) AS view", list.join(", "), self.text);
        let plan = Arc::new(planner::plan(&bind(&all, catalog, system)?.bound, &NoStatistics)?);
        let mut plans = self.plans.lock();
        if plans.len() >= PLANS_MAX {
            plans.clear();
        }
        plans.insert(database.to_owned(), Arc::clone(&plan));
        Ok(plan)
    }
}

/// Binds a query with system relations and functions only.
fn bind(query: &str, catalog: &Catalog, system: &dyn SystemCatalog) -> Result<BoundStatement> {
    let statement = parser::parse_statements(query)?.pop();
    let statement =
        statement.ok_or_else(|| err!(INTERNAL_ERROR: "the query of a view is empty"))?;
    let mut constants = SessionConstants::new();
    constants.set_search_path(Arc::new(SearchPath::parse("pg_catalog", "")?));
    constants.insert("current_database", text(catalog.current_database()));
    binder::bind(&statement.statement, catalog, system, &constants, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::SystemNames;
    use crate::system::relation_definitions::SHAPES;

    #[test]
    fn view_queries_match_declared_columns() {
        let catalog = Catalog::default();
        let names = SystemNames { coprocessors: None, settings: None };
        let planned = SHAPES.iter().filter_map(|shape| Some((shape, shape.query.as_ref()?)));
        let planned = planned.map(|(shape, query)| {
            let bound = bind(query.text, &catalog, &names).unwrap();
            for column in bound.bound.columns().unwrap() {
                let mut columns = shape.columns.iter();
                let name = &column.name;
                assert!(columns.any(|(one, _)| one == name), "{}: {name}", shape.name);
            }
            query.plan(&shape.columns, &catalog, &names).unwrap();
        });
        assert_eq!(planned.count(), read().len(), "a text has no relation in relations.txt");
    }
}
