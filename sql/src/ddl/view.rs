//! CREATE VIEW and DROP VIEW.

use store::Mutation;

use crate::ast;
use crate::binder::ViewDefinition;
use crate::catalog::Catalog;
use crate::catalog::record::{CATALOG_TABLE, encode, view_key};
use crate::catalog::view::{View, ViewColumn};
use crate::ddl::{Ddl, check_schema, name};
use crate::error::{Error, Result, sqlstate};

impl Ddl<'_> {
    /// Creates or replaces a view. `definition` was bound with the catalog that
    /// [`Ddl::lock_catalog`] has returned.
    pub fn create_view(
        &mut self,
        statement: &ast::CreateView,
        definition: ViewDefinition,
    ) -> Result<()> {
        let catalog = self.lock_catalog()?;
        check_schema(&statement.name)?;
        let view_name = &statement.name.name.value;
        let columns = named_columns(statement, definition.columns)?;
        if let Some(old) = catalog.view(view_name).filter(|_| statement.or_replace) {
            check_replacement(old, &columns)?;
            check_recursion(&catalog, view_name, &definition.relations)?;
        } else if statement.or_replace && catalog.table(view_name).is_some() {
            let message = format!("\"{view_name}\" is not a view");
            return Err(Error::new(sqlstate::WRONG_OBJECT_TYPE, message));
        } else if name::Taken::of(&catalog).contains(view_name) {
            let message = format!("relation \"{view_name}\" already exists");
            return Err(Error::new(sqlstate::DUPLICATE_TABLE, message));
        }
        let query = crate::parser::parse_query(&definition.text)?;
        let view = View {
            name: view_name.clone(),
            columns,
            query: query.into(),
            text: definition.text,
            relations: definition.relations,
        };
        let row = Mutation::new(view_key(view_name)).put(0, Vec::new(), encode(&view.record()));
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        self.changes.set_catalog(catalog.with_view(view));
        Ok(())
    }

    /// Drops views. Returns notices for those that do not exist, if the statement allows that, and
    /// about what went with them.
    pub fn drop_view(&mut self, statement: &ast::DropView) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        let mut names: Vec<String> = Vec::new();
        let catalog = self.lock_catalog()?;
        for name in &statement.names {
            check_schema(name)?;
            let name = &name.name.value;
            if catalog.view(name).is_some() {
                names.push(name.clone());
                continue;
            }
            if catalog.table(name).is_some() {
                let message = format!("\"{name}\" is not a view");
                return Err(Error::new(sqlstate::WRONG_OBJECT_TYPE, message)
                    .with_hint("Use DROP TABLE to remove a table."));
            }
            let message = format!("view \"{name}\" does not exist");
            if !statement.if_exists {
                return Err(Error::new(sqlstate::UNDEFINED_TABLE, message));
            }
            notices.push(format!("{message}, skipping"));
        }
        notices.extend(self.drop_dependents(&names, statement.cascade)?);
        for name in &names {
            self.remove_view(name)?;
        }
        Ok(notices)
    }
}

/// Returns the columns under the names that the statement gives them.
fn named_columns(
    statement: &ast::CreateView,
    mut columns: Vec<ViewColumn>,
) -> Result<Vec<ViewColumn>> {
    if statement.columns.len() > columns.len() {
        let message = "CREATE VIEW specifies more column names than columns";
        return Err(Error::new(sqlstate::SYNTAX_ERROR, message));
    }
    for (column, name) in columns.iter_mut().zip(&statement.columns) {
        column.name.clone_from(&name.value);
    }
    for (index, column) in columns.iter().enumerate() {
        if columns[..index].iter().any(|other| other.name == column.name) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(Error::new(sqlstate::DUPLICATE_COLUMN, message));
        }
    }
    Ok(columns)
}

/// A new definition has the old columns, and may have more behind them.
fn check_replacement(old: &View, columns: &[ViewColumn]) -> Result<()> {
    let invalid = |message: String| Error::new(sqlstate::INVALID_TABLE_DEFINITION, message);
    if columns.len() < old.columns.len() {
        return Err(invalid("cannot drop columns from view".to_owned()));
    }
    for (old, new) in old.columns.iter().zip(columns) {
        if old.name != new.name {
            let message =
                format!("cannot change name of view column \"{}\" to \"{}\"", old.name, new.name);
            return Err(invalid(message).with_hint(
                "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.",
            ));
        }
        if old.sql_type != new.sql_type {
            let message = format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                old.name,
                old.sql_type.base.sql_name(),
                new.sql_type.base.sql_name()
            );
            return Err(invalid(message));
        }
    }
    Ok(())
}

/// A view may not name itself, or a view that does.
fn check_recursion(catalog: &Catalog, name: &str, relations: &[String]) -> Result<()> {
    let mut known: Vec<String> = relations.to_vec();
    let mut next = 0;
    while let Some(relation) = known.get(next).cloned() {
        next += 1;
        if relation == name {
            let message = format!("infinite recursion detected in rules for relation \"{name}\"");
            return Err(Error::new("42P17", message));
        }
        let more = catalog.view(&relation).map(|view| view.relations.clone()).unwrap_or_default();
        for one in more {
            if !known.contains(&one) {
                known.push(one);
            }
        }
    }
    Ok(())
}
