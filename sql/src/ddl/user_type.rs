//! User-defined types of all kinds: their names, their dependents, DROP TYPE.
//!
//! Columns reference their types by OID. Texts of the catalog reference them by name: expressions
//! of tables with the schema ([`stored_text`]), views as written, with a search path of their own.
//! So texts are changed when a type is renamed.

use std::collections::BTreeSet;
use std::sync::Arc;

use store::transaction::TableLockMode;
use types::SqlType;
use types::datatype::composite::CompositeType;

use crate::binder::{
    self, NameContext, TableClause, bind_table_expression, is_built_in, view_meaning,
};
use crate::catalog::column_family;
use crate::catalog::composite::Composite;
use crate::catalog::domain::{Domain, DomainRecord, VALUE};
use crate::catalog::function::{Function, FunctionRecord};
use crate::catalog::name::{ObjectName, SearchPath};
use crate::catalog::object::references::{reads_type, texts_of, types_of};
use crate::catalog::record::{IndexRecord, TableRecord};
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, ObjectId};
use crate::ddl::Ddl;
use crate::error::Result;
use crate::parser;
use crate::relation_assembly;

/// A function that returns the meaning of a text with a catalog; equal results mean equal
/// meanings.
pub(super) type Meaning<'a> = dyn Fn(&Catalog, &str) -> Result<String> + 'a;

/// A change of the texts of a type's dependents.
pub(super) trait TextChange {
    /// Returns the changed text. `path` is the search path of its unqualified names.
    fn change(&mut self, text: &str, path: &SearchPath, meaning: &Meaning<'_>) -> Result<String>;

    /// Called for each view whose text was changed.
    fn changed_view(&mut self, _view: &View) {}
}

/// The change that leaves texts as they are.
struct UnchangedTexts;

impl TextChange for UnchangedTexts {
    fn change(&mut self, text: &str, _: &SearchPath, _: &Meaning<'_>) -> Result<String> {
        Ok(text.to_owned())
    }
}

/// The change that replaces the name of a type.
struct TypeRenaming {
    /// The catalog with the old name.
    catalog: Arc<Catalog>,
    number: u32,
    /// The new qualified name as SQL text.
    full: String,
}

impl TextChange for TypeRenaming {
    fn change(&mut self, text: &str, path: &SearchPath, _: &Meaning<'_>) -> Result<String> {
        let mut places = parser::type_references(text)?;
        places.retain(|one| {
            let found = self.catalog.find_type(one.schema.as_deref(), &one.name, path);
            found.is_some_and(|found| found.number() == self.number)
        });
        let places = places.into_iter().map(|one| (one.range, self.full.clone()));
        Ok(parser::replace(text, &places.collect::<Vec<_>>()))
    }
}

impl Ddl<'_> {
    // ---- names ----

    /// Renames a type, also in texts.
    pub(super) fn rename_type(
        &mut self,
        catalog: &Arc<Catalog>,
        known: &UserType,
        new: &ObjectName,
    ) -> Result<()> {
        let (catalog, full) = (Arc::clone(catalog), new.to_string());
        let mut change = TypeRenaming { catalog, number: known.number(), full };
        self.replace_type_and_texts(known.renamed(&new.schema, &new.name), &mut change)
    }

    // ---- the catalog ----

    /// Rebuilds a table with its texts changed.
    fn put_table_together(&mut self, oid: u32, change: &mut dyn TextChange) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let (Some(table), Some(record)) = (catalog.table(oid), catalog.record(oid)) else {
            return Ok(());
        };
        self.lock_table(table.id, TableLockMode::AccessExclusive)?;
        let mut record = TableRecord::clone(record);
        change_texts(&mut record, change)?;
        self.store_changed(table, record)
    }

    /// Updates the dependents of a relation's row type after a change of the relation.
    pub(super) fn follow_rows(&mut self, before: &Catalog, relation: u32) -> Result<()> {
        if before.possible_type_users(relation).is_empty() {
            return Ok(());
        }
        let catalog = self.changes.catalog(self.engine);
        let rows = |catalog: &Catalog| match catalog.user_type(relation).map(AsRef::as_ref) {
            Some(UserType::Composite(composite)) => Some(Arc::clone(&composite.composite_type)),
            _ => None,
        };
        let (Some(was), Some(is)) = (rows(before), rows(&catalog)) else { return Ok(()) };
        let name = |one: &CompositeType| {
            ObjectName::new(&one.identity().schema, &one.identity().name).to_string()
        };
        if name(&was) != name(&is) {
            let full = name(&is);
            let change =
                &mut TypeRenaming { catalog: Arc::new(before.clone()), number: relation, full };
            return self.put_together(before, relation, change);
        }
        match was.attributes() == is.attributes() {
            true => Ok(()),
            false => self.put_together(before, relation, &mut UnchangedTexts),
        }
    }

    /// Stores a changed type, and rebuilds its dependents.
    pub(super) fn replace_type(&mut self, user_type: UserType) -> Result<()> {
        self.replace_type_and_texts(user_type, &mut UnchangedTexts)
    }

    /// Stores a changed type, and rebuilds its dependents; `change` is called for each text of
    /// these, with a function that returns its meaning.
    pub(super) fn replace_type_and_texts(
        &mut self,
        changed: UserType,
        change: &mut dyn TextChange,
    ) -> Result<()> {
        let before = self.changes.catalog(self.engine);
        let number = changed.number();
        self.store_object(CatalogObject::of_type(changed))?;
        self.put_together(&before, number, change)
    }

    /// Rebuilds the dependents of a type, also those of other owners. `before` is the catalog
    /// before the change.
    pub(super) fn put_together(
        &mut self,
        before: &Catalog,
        number: u32,
        change: &mut dyn TextChange,
    ) -> Result<()> {
        self.with_others(|ddl| ddl.put_dependents_together(before, number, change))
    }

    fn put_dependents_together(
        &mut self,
        before: &Catalog,
        number: u32,
        change: &mut dyn TextChange,
    ) -> Result<()> {
        let mut numbers = vec![number];
        numbers.extend(types_of_type(before, number));
        for known in numbers.iter().skip(1).filter_map(|number| before.user_type(*number)) {
            let catalog = self.changes.catalog(self.engine);
            match known.as_ref() {
                UserType::Domain(domain) => {
                    let mut record = domain.record.clone();
                    change_domain_texts(&mut record, &domain.base_type, change)?;
                    let domain = relation_assembly::domain(&catalog, record)?;
                    self.store_object(CatalogObject::of_type(UserType::Domain(domain.into())))?;
                }
                UserType::Composite(Composite { record: Some(record), .. }) => {
                    let composite = Composite::of_record(record.clone(), &catalog)?;
                    self.store_object(CatalogObject::of_type(UserType::Composite(composite)))?;
                }
                UserType::Composite(Composite { record: None, number, .. }) => {
                    self.put_table_together(*number, change)?;
                }
                UserType::Enum(_) => {}
            }
        }
        let mut users = BTreeSet::new();
        for &number in &numbers {
            let possible = before.possible_type_users(number).into_iter();
            users.extend(possible.filter(|entry| uses_type(before, entry, number)));
        }
        let functions = users.iter().filter_map(|entry| match entry {
            CatalogEntry::Object(ObjectId::Function(number)) => before.function(*number),
            _ => None,
        });
        for function in functions {
            let mut record = function.record.clone();
            change_defaults(&mut record, change)?;
            let catalog = self.changes.catalog(self.engine);
            self.store_object(CatalogObject::Function(Arc::new(Function::of_record(
                record, &catalog,
            )?)))?;
        }
        for entry in &users {
            match entry {
                CatalogEntry::Object(ObjectId::Table(table)) if !numbers.contains(table) => {
                    self.put_table_together(*table, change)?;
                }
                _ => {}
            }
        }
        let views = users.iter().filter_map(|entry| match entry {
            CatalogEntry::Object(ObjectId::View(number)) => before.view(*number),
            _ => None,
        });
        for view in views {
            let meaning = |catalog: &Catalog, text: &str| {
                view_meaning(view, &parser::parse_query(text)?, catalog, self.system.as_ref())
            };
            let mut record = view.record();
            record.text = change.change(&record.text, &view.search_path, &meaning)?;
            let catalog = self.changes.catalog(self.engine);
            let view = View::of_record(record, &catalog)?;
            change.changed_view(&view);
            self.store_object(CatalogObject::View(Arc::new(view)))?;
        }
        Ok(())
    }
}

/// Returns the numbers of the types that contain or are based on a type, oldest first, including
/// row types.
fn types_of_type(catalog: &Catalog, number: u32) -> Vec<u32> {
    let mut found = vec![number];
    let mut at = 0;
    while let Some(used) = found.get(at).copied() {
        at += 1;
        let uses = |known: &UserType| match known {
            UserType::Domain(_) => {
                uses_type(catalog, &CatalogEntry::Object(ObjectId::Type(known.number())), used)
            }
            UserType::Composite(composite) => {
                let used = catalog.user_type(used);
                used.is_some_and(|used| composite.has_attribute_of([used.oid(), used.array_oid()]))
            }
            UserType::Enum(_) => false,
        };
        let users = catalog.possible_type_users(used).into_iter();
        let types = users.filter_map(|entry| catalog.user_type(entry.object_id()?.number()));
        let numbers = types.filter(|known| uses(known)).map(|known| known.number());
        let numbers: Vec<u32> = numbers.filter(|number| !found.contains(number)).collect();
        found.extend(numbers);
    }
    found.remove(0);
    found.sort_unstable();
    // A materialized view is a table and a view of the same number.
    found.dedup();
    found
}

/// Returns the catalog with a changed type, also in the types and columns of tables that use it.
/// Bound expressions of tables are not rebuilt.
pub(super) fn with_changed_type(catalog: &Catalog, changed: UserType) -> Result<Catalog> {
    let mut numbers = vec![changed.number()];
    numbers.extend(types_of_type(catalog, changed.number()));
    let mut next = catalog.with(CatalogObject::of_type(changed));
    for number in &numbers[1..] {
        let changed = match catalog.created_type(*number).map(AsRef::as_ref) {
            Some(UserType::Domain(domain)) => {
                let over = next.stored_type(domain.record.type_oid, domain.record.modifier)?;
                let sql_type = SqlType { domain: domain.sql_type.domain, ..over.clone() };
                let domain = Domain { base_type: over, sql_type, ..domain.as_ref().clone() };
                UserType::Domain(domain.with_array().into())
            }
            Some(UserType::Composite(Composite { record: Some(record), .. })) => {
                UserType::Composite(Composite::of_record(record.clone(), &next)?)
            }
            _ => {
                next = with_column_types(next, &CatalogEntry::Object(ObjectId::Table(*number)))?;
                continue;
            }
        };
        next = next.with(CatalogObject::of_type(changed));
    }
    let users = numbers.into_iter().flat_map(|number| catalog.possible_type_users(number));
    users.collect::<BTreeSet<_>>().iter().try_fold(next, with_column_types)
}

/// Returns the catalog with the types of a table's columns resolved again.
fn with_column_types(catalog: Catalog, entry: &CatalogEntry) -> Result<Catalog> {
    let Some(CatalogObject::Table(table, Some(record))) = catalog.object(entry) else {
        return Ok(catalog);
    };
    let mut table = table.as_ref().clone();
    for (column, record) in table.columns.iter_mut().zip(&record.columns) {
        column.sql_type = catalog.column_type(record)?;
    }
    Ok(catalog.with(CatalogObject::Table(Arc::new(table), Some(Arc::clone(record)))))
}

/// Returns an expression for storage: names of user-defined types and functions are qualified, so
/// that they do not depend on the search path, literals are rewritten so that they do not depend on
/// session settings, and columns have their names in the catalog. It is bound over `columns`, as a
/// value of type `target`.
pub(super) fn stored_text(
    names: NameContext<'_>,
    text: &str,
    columns: &[(String, SqlType)],
    target: Option<SqlType>,
) -> Result<String> {
    let NameContext { catalog, path, .. } = names;
    let text = &binder::text_with_fixed_literals(text, columns, target, names)?;
    let mut places = Vec::new();
    for one in parser::type_references(text)? {
        if one.schema.is_some() {
            continue;
        }
        if let Some(found) = catalog.find_type(None, &one.name, path) {
            places.push((one.range, ObjectName::new(found.schema(), found.name()).to_string()));
        }
    }
    for one in parser::call_references(text)? {
        if one.schema.is_some() || is_built_in(&one.name) {
            continue;
        }
        if let Some(found) = catalog.functions_named(None, &one.name, path).first() {
            let record = &found.record;
            places.push((one.range, ObjectName::new(&record.schema, &record.name).to_string()));
        }
    }
    if let Some(families) = names.families {
        let columns = columns.iter().zip(families.iter());
        let columns = columns.map(|((name, _), family)| (name.as_str(), family.as_str()));
        for one in parser::column_references(text)? {
            let family = one.schema.as_deref().unwrap_or_default();
            if let Some(found) = column_family::find(columns.clone(), family, &one.name) {
                let (name, _) = columns.clone().nth(found).unwrap_or_default();
                places.push((one.range, parser::quoted(name)));
            }
        }
    }
    places.sort_by_key(|(range, _)| range.start);
    Ok(parser::replace(text, &places))
}

/// Returns whether a text calls a function, or another one of the same name.
pub(super) fn text_calls(
    catalog: &Catalog,
    path: &SearchPath,
    text: &str,
    function: &Function,
) -> bool {
    let references = parser::call_references(text).unwrap_or_default();
    references.into_iter().filter(|one| one.schema.is_some() || !is_built_in(&one.name)).any(
        |one| {
            let found = catalog.functions_named(one.schema.as_deref(), &one.name, path);
            found.iter().any(|found| found.record.number == function.record.number)
        },
    )
}

/// Changes the texts of a table.
fn change_texts(record: &mut TableRecord, change: &mut dyn TextChange) -> Result<()> {
    let shape = record.clone();
    let path = SearchPath::default();
    let meaning = |target: Option<usize>, with_columns: bool| {
        let shape = &shape;
        move |catalog: &Catalog, text: &str| -> Result<String> {
            let target = match target {
                Some(column) => Some(catalog.column_type(&shape.columns[column])?),
                None => None,
            };
            let columns =
                if with_columns { catalog.columns_of(&shape.columns)? } else { Vec::new() };
            meaning_of(catalog, text, &columns, target)
        }
    };
    for (position, column) in record.columns.iter_mut().enumerate() {
        if let Some(default) = &mut column.default {
            *default = change.change(default, &path, &meaning(Some(position), false))?;
        }
        if let Some(made) = &mut column.generated {
            *made = change.change(made, &path, &meaning(Some(position), true))?;
        }
    }
    for check in &mut record.checks {
        check.predicate = change.change(&check.predicate, &path, &meaning(None, true))?;
    }
    for text in record.indexes.iter_mut().flat_map(IndexRecord::texts_mut) {
        *text = change.change(text, &path, &meaning(None, true))?;
    }
    Ok(())
}

/// Changes the texts of a domain.
fn change_domain_texts(
    record: &mut DomainRecord,
    over: &SqlType,
    change: &mut dyn TextChange,
) -> Result<()> {
    let path = SearchPath::default();
    let stored = over.stored_oid_and_modifier();
    if let Some(default) = &mut record.default {
        let meaning = |catalog: &Catalog, text: &str| {
            let over = catalog.stored_type(stored.0, stored.1)?;
            meaning_of(catalog, text, &[], Some(over.base_type()))
        };
        *default = change.change(default, &path, &meaning)?;
    }
    for check in &mut record.checks {
        let meaning = |catalog: &Catalog, text: &str| {
            let over = catalog.stored_type(stored.0, stored.1)?;
            meaning_of(catalog, text, &[(VALUE.to_owned(), over)], None)
        };
        check.predicate = change.change(&check.predicate, &path, &meaning)?;
    }
    Ok(())
}

/// Changes the defaults of a function's parameters. The body is not changed: it is resolved at
/// each call.
fn change_defaults(record: &mut FunctionRecord, change: &mut dyn TextChange) -> Result<()> {
    for parameter in &mut record.parameters {
        let oid = parameter.type_oid;
        let meaning = |catalog: &Catalog, text: &str| {
            meaning_of(catalog, text, &[], Some(catalog.stored_type(oid, -1)?))
        };
        if let Some(default) = &mut parameter.default {
            *default = change.change(default, &SearchPath::default(), &meaning)?;
        }
    }
    Ok(())
}

/// Returns whether the definition of an object uses a type. Bodies of functions do not count: they
/// are resolved at each call.
fn uses_type(catalog: &Catalog, entry: &CatalogEntry, number: u32) -> bool {
    let Some(used) = catalog.user_type(number) else { return false };
    let oids = [used.oid(), used.array_oid()];
    let path = SearchPath::default();
    types_of(catalog, entry).iter().any(|one| oids.contains(&one.type_oid))
        || reads_type(catalog, entry, oids)
        || texts_of(catalog, entry).iter().any(|one| {
            let is_it = |one: &UserType| one.number() == number;
            !one.is_body() && text_uses(catalog, one.path.unwrap_or(&path), one.text, is_it)
        })
}

/// Returns the meaning of an expression, as the text of its bound form.
fn meaning_of(
    catalog: &Catalog,
    text: &str,
    columns: &[(String, SqlType)],
    target: Option<SqlType>,
) -> Result<String> {
    let parsed = parser::parse_expression(text)?;
    let bound = bind_table_expression(
        TableClause::Catalog,
        &parsed,
        columns,
        target,
        NameContext::stored(catalog),
    )?;
    Ok(format!("{bound:?}"))
}

/// Returns whether a text references a type for which `is_used` holds. `path` is the search path of
/// its unqualified names.
pub(super) fn text_uses(
    catalog: &Catalog,
    path: &SearchPath,
    text: &str,
    is_used: impl Fn(&UserType) -> bool,
) -> bool {
    let references = parser::type_references(text).unwrap_or_default();
    references.into_iter().any(|one| {
        let found = catalog.find_type(one.schema.as_deref(), &one.name, path);
        found.is_some_and(|found| is_used(found))
    })
}
