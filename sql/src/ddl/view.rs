//! CREATE VIEW and ALTER VIEW.

use std::sync::Arc;

use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast;
use crate::ast::{ColumnName, ObjectKind, TableChange, ViewOption};
use crate::binder::{NameContext, ViewDefinition, check_writable};
use crate::catalog::derived_cache::DerivedCache;
use crate::catalog::name::SearchPath;
use crate::catalog::record::ViewRelation;
use crate::catalog::view::{View, ViewColumn};
use crate::catalog::{Catalog, CatalogObject, CatalogRelation};
use crate::ddl::alter_table::{refused_action, without_position};
use crate::ddl::sequence::bound_default;
use crate::ddl::{Ddl, undefined_table};
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Creates or replaces a view. `definition` was bound with the catalog that
    /// [`Ddl::catalog`] has returned.
    pub fn create_view(
        &mut self,
        statement: &ast::CreateView,
        definition: ViewDefinition,
    ) -> Result<()> {
        let catalog = self.catalog();
        let schema = self.creation_schema(&catalog, &statement.name)?;
        let view_name = &statement.name.name.value;
        let new = (ObjectKind::View, schema.as_str(), view_name.as_str());
        if statement.if_not_exists && self.name_exists(&catalog, new, true)? {
            return Ok(());
        }
        let mut columns = named_columns(statement, definition.columns)?;
        if self.is_phoenix_compatible() {
            self.set_fixed_values(&catalog, &statement.query.query, &mut columns)?;
        }
        let mut triggers = Vec::new();
        let oid = match catalog.relation(&schema, view_name) {
            None => {
                self.check_row_type_name(&catalog, &schema, view_name)?;
                self.take_ids(1)?
            }
            Some(CatalogRelation::View(old)) if statement.or_replace => {
                check_replacement(self.names(&catalog), old, &columns)?;
                for (column, before) in columns.iter_mut().zip(&old.columns) {
                    column.default.clone_from(&before.default);
                }
                check_recursion(&catalog, old, &definition.relations)?;
                triggers.clone_from(&old.triggers);
                old.oid
            }
            Some(_) if statement.or_replace => {
                bail!(WRONG_OBJECT_TYPE: "\"{view_name}\" is not a view");
            }
            Some(_) => bail!(DUPLICATE_TABLE: "relation \"{view_name}\" already exists"),
        };
        let query = crate::parser::parse_query(&definition.text)?;
        let mut view = View {
            oid,
            schema,
            name: view_name.clone(),
            columns,
            query: Ok(query.into()),
            text: definition.text,
            relations: definition.relations,
            search_path: SearchPath::clone(&definition.search_path),
            check_option: None,
            security_invoker: None,
            security_barrier: None,
            triggers,
            row_type: DerivedCache::default(),
            table: DerivedCache::default(),
            unknown: Default::default(),
        };
        set_options(&mut view, &statement.options);
        if view.check_option.is_some() {
            check_writable(&Arc::new(view.clone()), &catalog, self.system.as_ref())?;
        }
        self.store_view(view)
    }

    /// Sets the defaults of columns that a condition `column = constant` fixes, for the view of
    /// `SELECT * FROM table WHERE …`: rows inserted through the view meet its conditions, as in
    /// Phoenix.
    fn set_fixed_values(
        &self,
        catalog: &Catalog,
        query: &ast::QueryExpr,
        columns: &mut [ViewColumn],
    ) -> Result<()> {
        let ast::QueryBody::Select(select) = &query.body else { return Ok(()) };
        let is_whole = matches!(select.items.as_slice(), [ast::SelectItem::Wildcard { .. }]);
        let conditions: &[ast::Expr] = match &select.selection {
            Some(ast::Expr::And(conditions)) => conditions,
            Some(condition) => std::slice::from_ref(condition),
            None => &[],
        };
        if !is_whole || select.from.len() != 1 {
            return Ok(());
        }
        for (name, value) in conditions.iter().filter_map(fixed_value) {
            let Some(column) = columns.iter_mut().find(|one| one.name == name) else { continue };
            let of = (column.name.as_str(), column.sql_type.clone());
            let (text, bound) = bound_default(self.names(catalog), &value, of)?;
            refuse_named(&bound)?;
            column.default = Some(text);
        }
        Ok(())
    }

    /// Changes options of a view. With IF EXISTS, a missing view is only a notice.
    pub fn alter_view_options(
        &mut self,
        statement: &ast::AlterTable,
        options: &[ViewOption],
    ) -> Result<()> {
        let catalog = self.catalog();
        let name = &statement.name.name.value;
        let mut view = match self.find(&catalog, &statement.name) {
            Some(CatalogRelation::View(view)) => View::clone(view),
            Some(_) => bail!(WRONG_OBJECT_TYPE: "\"{name}\" is not a view"),
            None => {
                let missing = Error { position: None, ..undefined_table(&statement.name) };
                return self.missing_object(missing, statement.if_exists);
            }
        };
        set_options(&mut view, options);
        let sets_check = options.iter().any(|one| matches!(one, ViewOption::Check(Some(_))));
        if sets_check {
            check_writable(&Arc::new(view.clone()), &catalog, self.system.as_ref())?;
        }
        self.store_view(view)
    }

    /// Applies ALTER VIEW: only column names and defaults can change.
    pub(super) fn alter_view(
        &mut self,
        view: &View,
        statement: &ast::AlterTable,
        changes: &[TableChange],
    ) -> Result<()> {
        let name = &statement.name.name.value;
        for change in changes {
            if let Some(ColumnName { family: Some(family), name }) = change.clone().column_mut() {
                bail!(UNDEFINED_COLUMN: "column \"{}.{}\" does not exist", family.value, name.value);
            }
            if let TableChange::ColumnDefault { column, default } = change {
                self.set_view_default(view.oid, &column.name, default.as_ref())?;
                continue;
            }
            let TableChange::RenameColumn { column, to } = change else {
                return Err(refused_action(change, name, "views"));
            };
            let (from, to) = (&column.name.value, &to.value);
            let catalog = self.changes.catalog(self.engine);
            let Some(view) = catalog.view(view.oid) else { return Ok(()) };
            let known = |name: &String| view.columns.iter().any(|column| column.name == *name);
            if !known(from) {
                bail!(UNDEFINED_COLUMN: "column \"{from}\" does not exist");
            }
            if known(to) {
                bail!(DUPLICATE_COLUMN: "column \"{to}\" of relation \"{name}\" already exists");
            }
            self.rename_view_column(view, from, to)?;
        }
        Ok(())
    }

    /// Sets or drops the default of a column of a view.
    fn set_view_default(
        &mut self,
        oid: u32,
        column: &ast::Ident,
        default: Option<&ast::SourceExpr>,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(view) = catalog.view(oid) else { return Ok(()) };
        let mut view = view.as_ref().clone();
        let found = view.columns.iter().position(|one| one.name == column.value);
        let at = found.ok_or_else(|| {
            let (column, view) = (&column.value, &view.name);
            err!(UNDEFINED_COLUMN: "column \"{column}\" of relation \"{view}\" does not exist")
        })?;
        let of = (view.columns[at].name.as_str(), view.columns[at].sql_type.clone());
        let text = match default {
            None => None,
            Some(default) => {
                let bound = bound_default(self.names(&catalog), default, of);
                let (text, bound) = bound.map_err(without_position)?;
                refuse_named(&bound)?;
                Some(text)
            }
        };
        view.columns[at].default = text;
        self.store_view(view)
    }

    /// Renames a column of a view. Queries stored with the old name keep working.
    pub(super) fn rename_view_column(&mut self, view: &View, from: &str, to: &str) -> Result<()> {
        let mut view = view.clone();
        for column in view.columns.iter_mut().filter(|column| column.name == from) {
            to.clone_into(&mut column.name);
        }
        self.store_view(view)
    }

    /// Stores a view and adds it to the visible catalog.
    pub(super) fn store_view(&mut self, view: View) -> Result<()> {
        let before = self.changes.catalog(self.engine);
        let oid = view.oid;
        self.store_object(CatalogObject::View(Arc::new(view)))?;
        self.follow_rows(&before, oid)
    }
}

/// Sets options of a view; the last one of a kind counts.
fn set_options(view: &mut View, options: &[ViewOption]) {
    for option in options {
        match option {
            ViewOption::Check(check) => view.check_option = *check,
            ViewOption::SecurityInvoker(invoker) => view.security_invoker = *invoker,
            ViewOption::SecurityBarrier(barrier) => view.security_barrier = *barrier,
        }
    }
}

/// Returns the column and the constant of a condition `column = constant`.
fn fixed_value(condition: &ast::Expr) -> Option<(&str, ast::SourceExpr)> {
    let ast::Expr::Binary { operator: ast::BinaryOperator::Equal, left, right, .. } = condition
    else {
        return None;
    };
    let (ast::Expr::Column(parts), constant) = (match left.as_ref() {
        column @ ast::Expr::Column(_) => (column, right.as_ref()),
        constant => (right.as_ref(), constant),
    }) else {
        return None;
    };
    let text = match constant {
        ast::Expr::Boolean { value, .. } => value.to_string(),
        ast::Expr::Number { text, .. } => text.clone(),
        ast::Expr::String { value, .. } => format!("'{}'", value.replace('\'', "''")),
        ast::Expr::TypedString { type_name, value, .. } if type_name.named.is_none() => {
            format!("{} '{}'", type_name.sql_type.name(), value.replace('\'', "''"))
        }
        ast::Expr::Unary { operator: ast::UnaryOperator::Minus, operand, .. } => {
            let ast::Expr::Number { text, .. } = operand.as_ref() else { return None };
            format!("-{text}")
        }
        _ => return None,
    };
    let source = ast::SourceExpr { expr: constant.clone(), text };
    Some((parts.last()?.value.as_str(), source))
}

/// Rejects a default that references objects by name, because it would have to follow renames.
fn refuse_named(default: &Expr) -> Result<()> {
    let mut names = false;
    default.walk(&mut |part| {
        names |= match part {
            Expr::Routine { .. } | Expr::Domain { .. } => true,
            Expr::Call { function, .. } => ["nextval", "currval", "setval"]
                .contains(&types::function::signature(*function).name),
            other => {
                let data_type = other.data_type();
                matches!(data_type, DataType::Enum(_) | DataType::Composite(_))
            }
        };
    });
    match names {
        true => {
            let what = "a view column default that references a sequence, user-defined function or \
                        user-defined type";
            Err(Error::not_supported(what, "Set the default on the column of the table."))
        }
        false => Ok(()),
    }
}

/// Returns the columns with the names of the statement.
fn named_columns(
    statement: &ast::CreateView,
    mut columns: Vec<ViewColumn>,
) -> Result<Vec<ViewColumn>> {
    if statement.columns.len() > columns.len() {
        bail!(SYNTAX_ERROR: "CREATE VIEW specifies more column names than columns");
    }
    for (column, name) in columns.iter_mut().zip(&statement.columns) {
        column.name.clone_from(&name.value);
    }
    for (index, column) in columns.iter().enumerate() {
        if columns[..index].iter().any(|other| other.name == column.name) {
            bail!(DUPLICATE_COLUMN: "column \"{}\" specified more than once", column.name);
        }
    }
    Ok(columns)
}

/// Checks that a new definition has the old columns, optionally followed by new ones.
fn check_replacement(names: NameContext<'_>, old: &View, columns: &[ViewColumn]) -> Result<()> {
    let invalid = |message: String| err!(INVALID_TABLE_DEFINITION: message);
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
            let shown = |sql_type: &SqlType| {
                let (oid, modifier) = (sql_type.oid(), sql_type.modifier);
                let shown = names.catalog.shown_type_with(oid, modifier, names.path);
                shown.unwrap_or_else(|| sql_type.base.sql_name().to_owned())
            };
            let message = format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                old.name,
                shown(&old.sql_type),
                shown(&new.sql_type)
            );
            return Err(invalid(message));
        }
    }
    Ok(())
}

/// Checks that a view does not reference itself, directly or through other views.
fn check_recursion(catalog: &Catalog, view: &View, relations: &[ViewRelation]) -> Result<()> {
    let mut known: Vec<u32> = relations.iter().map(|relation| relation.oid).collect();
    let mut next = 0;
    while let Some(&relation) = known.get(next) {
        next += 1;
        if relation == view.oid {
            bail!(INVALID_OBJECT_DEFINITION: "infinite recursion detected in rules for relation \"{}\"", view.name);
        }
        for one in catalog.view(relation).iter().flat_map(|view| &view.relations) {
            if !known.contains(&one.oid) {
                known.push(one.oid);
            }
        }
    }
    Ok(())
}
