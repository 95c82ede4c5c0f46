//! Dependencies between catalog objects, for DROP and ALTER.
//!
//! The rules and the order are those of PostgreSQL's `findDependentObjects`: a dependent object is
//! either dropped automatically (a sequence with the column that owns it), or prevents the drop
//! unless the statement says CASCADE (a view). Most dependencies are not stored; they are found by
//! searching the definitions of objects.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use types::expr::Expr;

use crate::binder::{self, Dependencies, SystemCatalog};
use crate::catalog::extension::EXTENSIONS;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::name::SearchPath;
use crate::catalog::object::Object;
use crate::catalog::object::references::{TextReference, reads_type, texts_of, types_of};
use crate::catalog::record::ViewRelation;
use crate::catalog::table::{Index, Table};
use crate::catalog::trigger::Trigger;
use crate::catalog::view::View;
use crate::catalog::{Catalog, CatalogEntry, CatalogRelation, ObjectId};
use crate::ddl::user_type::{text_calls, text_uses};
use crate::error::{Error, Result, sqlstate};

/// An object that a statement drops.
#[derive(Debug, Clone)]
pub(super) struct DroppedObject {
    /// The object.
    pub(super) object: Object,
    /// The object that it depends on; `None` for an object named by the statement.
    on: Option<Object>,
    /// True if it is dropped automatically.
    silent: bool,
}

/// Returns the objects that a drop includes, with the named ones: each before those that it
/// depends on.
pub(super) fn dropped_objects(
    catalog: &Catalog,
    system: &dyn SystemCatalog,
    named: &[Object],
) -> Vec<DroppedObject> {
    let world = DependencyContext { catalog, system, bodies: OnceCell::new() };
    let mut search = Search {
        world,
        named: named.iter().collect(),
        stack: Vec::new(),
        found: Vec::new(),
        positions: AHashMap::new(),
    };
    for object in named {
        search.visit(object, None, true);
    }
    // Parts of dropped objects are not reported.
    for one in &mut search.found {
        one.silent |= one.object.wholes().any(|whole| search.positions.contains_key(&whole));
    }
    search.found
}

/// Checks that no function body references a relation or column that is renamed: bodies are stored
/// as text.
///
/// # Errors
///
/// `0A000`.
pub(super) fn refuse_named_in_body(
    catalog: &Catalog,
    system: &dyn SystemCatalog,
    object: &Object,
) -> Result<()> {
    let world = DependencyContext { catalog, system, bodies: OnceCell::new() };
    let users = dependents(&world, object);
    match users.iter().any(|(one, _)| matches!(one, Object::Whole(ObjectId::Function(_)))) {
        true => Err(Error::not_supported(
            "renaming or moving an object that a function body references",
            "Drop the function and create it again.",
        )),
        false => Ok(()),
    }
}

/// Rejects a drop if other objects depend on the named ones, unless the statement says CASCADE.
/// Returns the notice about the others that are dropped.
///
/// # Errors
///
/// `2BP01`, with all dependent objects.
pub(super) fn check(
    catalog: &Catalog,
    path: &SearchPath,
    going: &[DroppedObject],
    cascade: bool,
) -> Result<Option<Error>> {
    let named: Vec<&DroppedObject> = going.iter().filter(|one| one.on.is_none()).collect();
    let pulled: Vec<&DroppedObject> =
        going.iter().rev().filter(|one| one.on.is_some() && !one.silent).collect();
    let name = |object: &Object| object.describe(catalog, path);
    if pulled.is_empty() {
        return Ok(None);
    }
    if cascade {
        let line = |one: &&DroppedObject| format!("drop cascades to {}", name(&one.object));
        let lines: Vec<String> = pulled.iter().map(line).collect();
        let code = sqlstate::SUCCESSFUL_COMPLETION;
        return Ok(Some(match lines.as_slice() {
            [one] => Error::new(code, one.clone()),
            many => Error::new(code, format!("drop cascades to {} other objects", many.len()))
                .with_detail(many.join("\n")),
        }));
    }
    let message = match named.as_slice() {
        [one] => {
            let what = name(&one.object);
            format!("cannot drop {what} because other objects depend on it")
        }
        _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
    };
    let line = |one: &&DroppedObject| {
        let on = one.on.as_ref().map(&name).unwrap_or_default();
        // An array depends on the array type of a type.
        let array = match &one.on {
            Some(Object::Whole(ObjectId::Type(number)))
                if is_of_arrays(catalog, &one.object, *number) =>
            {
                "[]"
            }
            _ => "",
        };
        format!("{} depends on {on}{array}", name(&one.object))
    };
    let detail: Vec<String> = pulled.iter().map(line).collect();
    bail!(DEPENDENT_OBJECTS_STILL_EXIST: message; detail detail.join("\n");
        hint "Use DROP ... CASCADE to drop the dependent objects too.")
}

/// The catalog that is searched for dependencies.
struct DependencyContext<'a> {
    catalog: &'a Catalog,
    system: &'a dyn SystemCatalog,
    /// The dependencies of function bodies in SQL-standard form, by the number of the function.
    bodies: OnceCell<Vec<(u32, Dependencies)>>,
}

impl DependencyContext<'_> {
    /// Finds the functions whose bodies have certain dependencies.
    fn bodies(&self, uses: impl Fn(&Dependencies) -> bool, found: &mut Vec<(Object, bool)>) {
        let bodies = self.bodies.get_or_init(|| {
            let functions = self.catalog.functions().filter(|one| one.search_path.is_some());
            let used = functions.filter_map(|one| {
                let uses = binder::dependencies_of_body(one, self.catalog, self.system).ok()?;
                Some((one.record.number, uses))
            });
            used.collect()
        });
        let users = bodies.iter().filter(|(_, body)| uses(body));
        found.extend(users.map(|(number, _)| (Object::Whole(ObjectId::Function(*number)), false)));
    }

    /// Finds the objects of these entries whose texts satisfy a condition.
    fn texts<'e>(
        &self,
        entries: impl Iterator<Item = &'e CatalogEntry>,
        means: impl Fn(&SearchPath, &TextReference<'_>) -> bool,
        found: &mut Vec<(Object, bool)>,
    ) {
        let qualified = SearchPath::default();
        for entry in entries {
            let texts = texts_of(self.catalog, entry).into_iter();
            let texts = texts.filter(|one| means(one.path.unwrap_or(&qualified), one));
            for part in texts.map(|one| (one.part, false)) {
                if !found.contains(&part) {
                    found.push(part);
                }
            }
        }
    }

    /// Finds the views and functions that use ungrouped columns because the primary key of a table
    /// is grouped.
    fn determined(&self, table: u32, found: &mut Vec<(Object, bool)>) {
        let is_determined = |view: &Arc<View>| {
            view.text.to_ascii_lowercase().contains("group")
                && binder::dependencies_of_view(view, self.catalog, self.system)
                    .is_ok_and(|uses| uses.determining.contains(&table))
        };
        views(self.catalog, table, is_determined, found);
        self.bodies(|body| body.determining.contains(&table), found);
    }
}

struct Search<'a> {
    world: DependencyContext<'a>,
    named: AHashSet<&'a Object>,
    stack: Vec<Object>,
    found: Vec<DroppedObject>,
    /// The positions in `found`.
    positions: AHashMap<Object, usize>,
}

impl Search<'_> {
    fn visit(&mut self, object: &Object, on: Option<&Object>, silent: bool) {
        if let Some(position) = self.positions.get(object) {
            self.found[*position].silent |= silent;
            return;
        }
        let is_around =
            |object: &Object| self.named.contains(object) || self.stack.contains(object);
        if on.is_some() && (is_around(object) || object.wholes().any(|whole| is_around(&whole))) {
            return;
        }
        self.stack.push(object.clone());
        // The newest first, because reports reverse the order.
        for (dependent, silent) in dependents(&self.world, object).into_iter().rev() {
            self.visit(&dependent, Some(object), silent);
        }
        self.stack.pop();
        let on = on.cloned();
        self.positions.insert(object.clone(), self.found.len());
        self.found.push(DroppedObject { object: object.clone(), on, silent });
    }
}

/// Returns direct dependencies on user-defined types and functions, as pairs of the dependent
/// object and the referenced one. Parts of tables and readers of tables are not included.
pub fn dependencies(catalog: &Catalog) -> Vec<(Object, Object)> {
    let mut found = Vec::new();
    let mut add = |on: Object, dependents: Vec<(Object, bool)>| {
        found.extend(dependents.into_iter().map(|(dependent, _)| (dependent, on.clone())));
    };
    let used = catalog.entries().flat_map(|entry| types_of(catalog, entry));
    let used: AHashSet<u32> = used.map(|one| one.type_oid).collect();
    // Calls of functions are found in the texts.
    let world =
        DependencyContext { catalog, system: &binder::EmptySystemCatalog, bodies: OnceCell::new() };
    let used = used.into_iter().filter_map(|oid| catalog.type_of_oid(oid));
    for number in catalog.types().chain(used).map(|known| known.number()).collect::<BTreeSet<_>>() {
        let mut dependents = Vec::new();
        users_of_type(catalog, number, &mut dependents);
        add(Object::Whole(ObjectId::Type(number)), dependents);
    }
    for function in catalog.functions() {
        let mut dependents = Vec::new();
        users_of_function(&world, function.record.number, &mut dependents);
        add(Object::Whole(ObjectId::Function(function.record.number)), dependents);
    }
    for table in catalog.tables().iter().filter(|table| !table.primary_key_name.is_empty()) {
        let mut dependents = Vec::new();
        world.determined(table.oid, &mut dependents);
        add(Object::Constraint(table.oid, table.primary_key_name.clone()), dependents);
    }
    found.retain(|(dependent, on)| dependent != on);
    found
}

/// Returns the direct dependents of an object, oldest first, and whether each is dropped
/// automatically.
fn dependents(world: &DependencyContext<'_>, object: &Object) -> Vec<(Object, bool)> {
    let catalog = world.catalog;
    let mut found: Vec<(Object, bool)> = Vec::new();
    match object {
        Object::Whole(ObjectId::Schema(number)) => {
            let content = content_of_schema(catalog, *number).into_iter();
            found.extend(content.map(|object| (object, false)));
        }
        // DROP DATABASE drops what is in it.
        Object::Whole(ObjectId::Database(_)) => {}
        Object::Whole(ObjectId::Type(number)) => users_of_type(catalog, *number, &mut found),
        Object::Whole(ObjectId::Function(number)) => users_of_function(world, *number, &mut found),
        Object::Whole(ObjectId::Role(_)) => {}
        Object::Whole(ObjectId::Table(table)) => {
            found.push((Object::Whole(ObjectId::Type(*table)), true));
            views(catalog, *table, |_| true, &mut found);
            world.bodies(|body| body.relations.iter().any(|one| one.oid == *table), &mut found);
            sequences_of(catalog, *table, None, &mut found);
            foreign_keys(catalog, *table, |_| true, &mut found);
            policies(catalog, *table, |_| true, &mut found);
        }
        Object::Whole(ObjectId::View(oid)) => {
            found.push((Object::Whole(ObjectId::Type(*oid)), true));
            views(catalog, *oid, |_| true, &mut found);
            policies(catalog, *oid, |_| true, &mut found);
            world.bodies(|body| body.relations.iter().any(|one| one.oid == *oid), &mut found);
        }
        Object::Column(table, column) => users_of_column(world, (*table, *column), &mut found),
        Object::Whole(ObjectId::Sequence(oid)) => users_of_sequence(world, *oid, &mut found),
        Object::Constraint(table, name) => {
            if catalog.table(*table).is_some_and(|table| table.primary_key_name == *name) {
                world.determined(*table, &mut found);
            }
            let is_it = |index: &Arc<Index>| index.constraint && index.name == *name;
            let is_kept = |table: &Arc<Table>| {
                table.primary_key_name == *name || table.indexes.iter().any(is_it)
            };
            if catalog.table(*table).is_some_and(is_kept) {
                found.push((Object::Index(*table, name.clone()), true));
            }
        }
        Object::Index(table, name) => {
            let index = catalog.table(*table).and_then(|table| {
                table.indexes.iter().find(|index| index.name == *name).map(|index| index.oid)
            });
            let is_primary =
                catalog.table(*table).is_some_and(|table| table.primary_key_name == *name);
            if index.is_some() || is_primary {
                foreign_keys(catalog, *table, |key| key.index == index, &mut found);
            }
        }
        Object::Default(..)
        | Object::Attribute(..)
        | Object::Extension(_)
        | Object::Trigger(..)
        | Object::Policy(..) => {}
    }
    // The dependents of arrays depend on the array type, which is as old as the type.
    let of_arrays = |one: &Object| match object {
        Object::Whole(ObjectId::Type(number)) => is_of_arrays(catalog, one, *number),
        _ => false,
    };
    found.sort_by_key(|(one, _)| (!of_arrays(one), one.number()));
    found
}

/// Finds the dependents of a column.
fn users_of_column(
    world: &DependencyContext<'_>,
    (table, column): (u32, usize),
    found: &mut Vec<(Object, bool)>,
) {
    let catalog = world.catalog;
    let used = column as u32;
    let reads = |relations: &[ViewRelation]| {
        relations.iter().any(|one| one.oid == table && one.used.contains(&used))
    };
    views(catalog, table, |view| reads(&view.relations), found);
    world.bodies(|body| reads(&body.relations), found);
    sequences_of(catalog, table, Some(used), found);
    foreign_keys(catalog, table, |key| key.referenced.contains(&used), found);
    if let Some(of) = catalog.table(table) {
        let reads = |one: &&Arc<Trigger>| one.reads_column(column, of.columns.len());
        found.extend(of.triggers.iter().filter(reads).map(|one| trigger_of(of, one)));
    }
    let own = |one: &View| reads(&one.relations);
    policies(catalog, table, own, found);
    if let Some(of) = catalog.table(table) {
        found.extend(policies_of(of, own));
    }
    for (position, other) in
        catalog.table(table).iter().flat_map(|of| of.columns.iter().enumerate())
    {
        if other.generated.as_ref().is_some_and(|made| made.columns().contains(&column)) {
            found.push((Object::Column(table, position), false));
        }
    }
}

/// Returns a trigger as a dependent, which is not dropped automatically.
fn trigger_of(table: &Table, trigger: &Trigger) -> (Object, bool) {
    (Object::Trigger(table.oid, trigger.record.name.clone()), false)
}

/// Finds the policies of other tables that reference a relation and satisfy a condition.
fn policies(
    catalog: &Catalog,
    relation: u32,
    is_dependent: impl Fn(&View) -> bool,
    found: &mut Vec<(Object, bool)>,
) {
    for table in catalog.tables_with_policy_on(relation).filter(|one| one.oid != relation) {
        let reads = |query: &View| {
            query.relations.iter().any(|one| one.oid == relation) && is_dependent(query)
        };
        found.extend(policies_of(table, reads));
    }
}

/// Returns the policies of a table with an expression that satisfies a condition.
fn policies_of(
    table: &Table,
    is_dependent: impl Fn(&View) -> bool,
) -> impl Iterator<Item = (Object, bool)> {
    let policies = table.row_security.policies.iter();
    let mut dependent: Vec<_> =
        policies.filter(|policy| policy.expressions().any(|query| is_dependent(query))).collect();
    dependent.sort_by_key(|policy| policy.record.number);
    dependent
        .into_iter()
        .map(|policy| (Object::Policy(table.oid, policy.record.name.clone()), false))
}

/// Finds the foreign keys of other tables that reference a table.
fn foreign_keys(
    catalog: &Catalog,
    table: u32,
    uses: impl Fn(&ForeignKey) -> bool,
    found: &mut Vec<(Object, bool)>,
) {
    let keys = catalog.referencing(table).filter(|(_, key)| uses(key));
    found.extend(
        keys.map(|(referencing, key)| {
            (Object::Constraint(referencing.oid, key.name.clone()), false)
        }),
    );
}

/// Finds the views that read a relation and satisfy a condition.
fn views(
    catalog: &Catalog,
    relation: u32,
    is_dependent: impl Fn(&Arc<View>) -> bool,
    found: &mut Vec<(Object, bool)>,
) {
    let views = catalog.referrers(relation).filter_map(|entry| match entry {
        CatalogEntry::Object(ObjectId::View(view)) => catalog.view(*view),
        _ => None,
    });
    let views = views.filter(|view| is_dependent(view));
    found.extend(views.map(|view| match catalog.table(view.oid) {
        Some(table) => (Object::Whole(ObjectId::Table(table.oid)), false),
        None => (Object::Whole(ObjectId::View(view.oid)), false),
    }));
}

/// Returns the objects in a schema.
pub(super) fn content_of_schema(catalog: &Catalog, number: u32) -> Vec<Object> {
    let Some(schema) = catalog.schemas().find(|one| one.oid == number) else { return Vec::new() };
    let name = schema.name.as_str();
    let extensions = EXTENSIONS.iter().filter(|one| one.schema(catalog) == Some(number));
    let mut found: Vec<Object> = extensions.map(|one| Object::Extension(one.number)).collect();
    found.extend(schema.relations.keys().filter_map(|relation| {
        let found = catalog.relation(name, relation).map(Object::of);
        found.filter(|object| !matches!(object, Object::Index(..)))
    }));
    found.extend(schema.types.values().map(|number| Object::Whole(ObjectId::Type(*number))));
    let functions = catalog.functions().filter(|one| one.record.schema == name);
    found.extend(functions.map(|one| Object::Whole(ObjectId::Function(one.record.number))));
    found
}

/// Finds the texts that call a function.
fn users_of_function(world: &DependencyContext<'_>, number: u32, found: &mut Vec<(Object, bool)>) {
    let catalog = world.catalog;
    let Some(function) = catalog.function(number) else { return };
    let calls = |path: &SearchPath, text: &TextReference<'_>| {
        text_calls(catalog, path, text.text, function)
    };
    world.texts(catalog.possible_callers(&function.record.name), calls, found);
    for table in catalog.tables_with_trigger_of(number) {
        let of_function = |one: &&Arc<Trigger>| one.record.function == number;
        let mut triggers: Vec<_> = table.triggers.iter().filter(of_function).collect();
        triggers.sort_by_key(|one| one.record.number);
        found.extend(triggers.into_iter().map(|one| trigger_of(table, one)));
    }
    found.retain(|(object, _)| *object != Object::Whole(ObjectId::Function(number)));
}

/// Finds the texts and defaults that read a sequence.
fn users_of_sequence(world: &DependencyContext<'_>, number: u32, found: &mut Vec<(Object, bool)>) {
    let catalog = world.catalog;
    let users = catalog.possible_sequence_users(number);
    // Defaults of tables are bound.
    let others =
        users.iter().filter(|entry| !matches!(entry, CatalogEntry::Object(ObjectId::Table(_))));
    let names =
        |path: &SearchPath, text: &TextReference<'_>| names_sequence(catalog, path, text, number);
    world.texts(others, names, found);
    for entry in &users {
        let CatalogEntry::Object(ObjectId::Table(table)) = entry else { continue };
        let columns = catalog.table(*table).into_iter().flat_map(|table| &table.columns);
        for (position, column) in columns.enumerate() {
            let takes = column.default.as_ref();
            if takes.is_some_and(|default| takes_from(catalog, default, number)) {
                found.push((Object::Default(*table, position), false));
            }
        }
    }
}

/// Returns whether a text calls a sequence function with the name of a sequence.
fn names_sequence(
    catalog: &Catalog,
    path: &SearchPath,
    text: &TextReference<'_>,
    oid: u32,
) -> bool {
    text.sequence_names().iter().any(|name| {
        let found = catalog.find_text(name, path);
        matches!(found, Ok(Some(CatalogRelation::Sequence(sequence))) if sequence.oid == oid)
    })
}

/// Returns whether a dependent of a type uses its array type.
fn is_of_arrays(catalog: &Catalog, object: &Object, number: u32) -> bool {
    let Some(known) = catalog.user_type(number) else { return false };
    let whole = match object {
        Object::Column(table, _) => CatalogEntry::Object(ObjectId::Table(*table)),
        Object::Attribute(of, _) | Object::Whole(ObjectId::Type(of)) => {
            CatalogEntry::Object(ObjectId::Type(*of))
        }
        Object::Whole(ObjectId::Function(function)) => {
            CatalogEntry::Object(ObjectId::Function(*function))
        }
        _ => return false,
    };
    let types = types_of(catalog, &whole);
    let mut oids = types.iter().filter(|one| one.part == *object).map(|one| one.type_oid);
    let is_of_it = oids.clone().any(|oid| oid == known.oid());
    !is_of_it && oids.any(|oid| oid == known.array_oid())
}

/// Finds the columns of a type, those of its array type first, and the texts that reference it.
fn users_of_type(catalog: &Catalog, number: u32, found: &mut Vec<(Object, bool)>) {
    let Some(used) = catalog.user_type(number) else { return };
    let qualified = SearchPath::default();
    for entry in &catalog.possible_type_users(number) {
        let types = types_of(catalog, entry);
        let mut parts: Vec<Object> = Vec::new();
        for oid in [used.array_oid(), used.oid()] {
            let of_it = types.iter().filter(|one| one.type_oid == oid && !one.is_dropped);
            parts.extend(of_it.map(|one| one.part.clone()));
        }
        let columns = parts.clone();
        let texts = texts_of(catalog, entry);
        let is_named = |one: &&TextReference<'_>| {
            let path = one.path.unwrap_or(&qualified);
            !one.is_body() && text_uses(catalog, path, one.text, |one| one.number() == number)
        };
        // Expressions over a column of the type are dropped with the column.
        let reads_column = |part: &Object| {
            columns.iter().any(|column| part == column || part.is_part_of(column))
                || matches!(part, Object::Constraint(..) | Object::Index(..))
                    && texts.iter().any(|one| one.part == *part && reads(catalog, one, &columns))
        };
        let named = texts.iter().filter(is_named).map(|one| &one.part);
        parts.extend(named.filter(|part| !reads_column(part)).cloned());
        if let (true, Some(view)) = (
            reads_type(catalog, entry, [used.oid(), used.array_oid()]),
            entry.object_id().map(Object::Whole),
        ) {
            let table = Object::Whole(ObjectId::Table(view.number()));
            parts.push(if catalog.table(view.number()).is_some() { table } else { view });
        }
        for part in parts.into_iter().map(|part| (part, false)) {
            if !found.contains(&part) {
                found.push(part);
            }
        }
    }
}

/// Returns whether an expression of a table reads one of these columns of it.
fn reads(catalog: &Catalog, text: &TextReference<'_>, columns: &[Object]) -> bool {
    let Some(record) = catalog.record(text.part.number()) else { return false };
    columns.iter().any(|column| {
        matches!(column, Object::Column(_, at)
            if super::alter_column::uses_column(catalog, record, text.text, *at))
    })
}

/// Finds the sequences that are owned by a table, or by a column of it.
fn sequences_of(
    catalog: &Catalog,
    table: u32,
    column: Option<u32>,
    found: &mut Vec<(Object, bool)>,
) {
    for entry in catalog.referrers(table) {
        let CatalogEntry::Object(ObjectId::Sequence(number)) = entry else { continue };
        let owner = catalog.sequence(*number).and_then(|sequence| sequence.owned_by);
        if owner.is_some_and(|(_, owner)| column.is_none_or(|column| column == owner)) {
            found.push((Object::Whole(ObjectId::Sequence(*number)), true));
        }
    }
}

/// Returns whether a default reads a sequence.
pub(super) fn takes_from(catalog: &Catalog, default: &Expr, sequence: u32) -> bool {
    catalog.sequences_of_default(default).contains(&sequence)
}
