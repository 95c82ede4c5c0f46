//! Differences between two states of the catalog, and their application to another state.
//!
//! ```text
//!   base ──statements of a transaction──▶ own
//!    │                                     │  difference
//!    └──commits of others──▶ newest ───────┴──▶ newest with the changes of the transaction
//! ```
//!
//! The commit of a DDL transaction merges its changes into the newest state. States share
//! unchanged objects, so a difference is found by comparing pointers.
//!
//! # Invariants
//!
//! 1. No object is changed by both sides, no name is used for new objects by both, and neither
//!    side adds a reference to an object that the other has changed or dropped:
//!    [`Catalog::conflict`]. The locks of definitions (`ddl::object_locks`) prevent conflicts;
//!    they are checked whenever a difference is applied.
//! 2. Names refer to objects that have them, and objects refer to existing objects:
//!    [`Catalog::check`].
//!
//! `Changes::rebase` returns an error if 1 does not hold. In debug builds, 2 is asserted there and
//! in `Engine::publish`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ahash::AHashMap;
use store::TableId;

use crate::catalog::Catalog;
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::references::ReferenceScope;
use crate::catalog::schema::{RelationId, Schema};
use crate::catalog::user_type::UserType;

/// A changeable unit of the catalog, identified by what never changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CatalogEntry {
    /// A schema, by its number.
    Schema(u32),
    /// A table with its indexes and constraints, by its number.
    Table(u32),
    /// A view, by its number.
    View(u32),
    /// A sequence, by its number.
    Sequence(u32),
    /// A user-defined type other than a row type, by its number.
    Type(u32),
    /// A function, by its number.
    Function(u32),
    /// A comment.
    Comment(CommentSubjectKey),
    /// A quota.
    Quota(QuotaSubject),
    /// Statistics of a table.
    Statistics(TableId),
}

/// A name that only one object can have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TakenName {
    /// The name of a schema.
    Schema(String),
    /// The name of a relation or a type in a schema.
    Relation(String, String),
    /// The name of a function in a schema, with the OIDs of its parameter types.
    Function(String, String, Vec<u32>),
    /// The name of an extension, by its number.
    Extension(u32),
}

impl CatalogEntry {
    /// Returns the number of the object; `None` for properties of an object.
    pub fn number(&self) -> Option<u32> {
        match self {
            CatalogEntry::Schema(number)
            | CatalogEntry::Table(number)
            | CatalogEntry::View(number)
            | CatalogEntry::Sequence(number)
            | CatalogEntry::Type(number)
            | CatalogEntry::Function(number) => Some(*number),
            CatalogEntry::Comment(_) | CatalogEntry::Quota(_) | CatalogEntry::Statistics(_) => None,
        }
    }
}

impl Catalog {
    /// Returns the entries that differ from an earlier state.
    pub fn difference(&self, before: &Catalog) -> BTreeSet<CatalogEntry> {
        let mut found = BTreeSet::new();
        let schemas = |catalog: &Catalog| -> BTreeMap<u32, Arc<Schema>> {
            catalog.schemas().map(|schema| (schema.oid, Arc::clone(schema))).collect()
        };
        let same_name = |a: &Arc<Schema>, b: &Arc<Schema>| a.name == b.name;
        let (own, old) = (schemas(self), schemas(before));
        found.extend(differing(own.iter(), old.iter(), same_name).map(CatalogEntry::Schema));
        let tables = hashed(&self.tables, &before.tables, Arc::ptr_eq);
        found.extend(tables.into_iter().map(CatalogEntry::Table));
        let records = hashed(&self.records, &before.records, Arc::ptr_eq);
        found.extend(records.into_iter().map(CatalogEntry::Table));
        found.extend(shared(&self.views, &before.views).map(CatalogEntry::View));
        found.extend(shared(&self.sequences, &before.sequences).map(CatalogEntry::Sequence));
        found.extend(shared(&self.functions, &before.functions).map(CatalogEntry::Function));
        // Row types exist with their relations.
        let is_own = |number: &u32| {
            let of_rows =
                |one: &Catalog| one.user_type(*number).is_some_and(|one| one.is_of_rows());
            !of_rows(self) && !of_rows(before)
        };
        found.extend(shared(&self.types, &before.types).filter(is_own).map(CatalogEntry::Type));
        if !Arc::ptr_eq(&self.comments, &before.comments) {
            let comments = differing(self.comments.iter(), before.comments.iter(), Arc::ptr_eq);
            found.extend(comments.map(CatalogEntry::Comment));
        }
        let quotas = differing(self.quotas.iter(), before.quotas.iter(), |a, b| a == b);
        found.extend(quotas.map(CatalogEntry::Quota));
        let statistics = hashed(&self.statistics, &before.statistics, Arc::ptr_eq);
        found.extend(statistics.into_iter().map(CatalogEntry::Statistics));
        found
    }

    /// Returns a conflict between the changes of two sides: an entry that both have changed, a
    /// name that both use for new objects, or an entry that one has changed and to which the other
    /// has added a reference.
    pub fn conflict(
        base: &Catalog,
        own: &Catalog,
        newest: &Catalog,
        references: ReferenceScope,
    ) -> Option<CatalogEntry> {
        let (changed, others) = (own.difference(base), newest.difference(base));
        if changed.is_empty() || others.is_empty() {
            return None;
        }
        if let Some(both) = changed.intersection(&others).next() {
            return Some(both.clone());
        }
        let refers =
            |side: &Catalog, entries: &BTreeSet<CatalogEntry>, to: &BTreeSet<CatalogEntry>| {
                let numbers: BTreeMap<u32, &CatalogEntry> =
                    to.iter().filter_map(|entry| Some((entry.number()?, entry))).collect();
                entries.iter().find_map(|entry| {
                    let new = side.new_references(base, entry, references);
                    new.iter().find_map(|number| numbers.get(number).map(|&entry| entry.clone()))
                })
            };
        refers(own, &changed, &others).or_else(|| refers(newest, &others, &changed)).or_else(|| {
            let taken = |side: &Catalog, entries: &BTreeSet<CatalogEntry>| -> BTreeSet<TakenName> {
                entries.iter().flat_map(|entry| side.new_names(base, entry)).collect()
            };
            let theirs = taken(newest, &others);
            let is_taken = |entry: &&CatalogEntry| {
                own.new_names(base, entry).iter().any(|name| theirs.contains(name))
            };
            changed.iter().find(is_taken).cloned()
        })
    }

    /// Returns the numbers of the objects that an entry refers to, but did not in another state.
    pub fn new_references(
        &self,
        before: &Catalog,
        entry: &CatalogEntry,
        references: ReferenceScope,
    ) -> BTreeSet<u32> {
        let mut new = references.of(self, entry);
        if !new.is_empty() {
            let old = references.of(before, entry);
            new.retain(|number| !old.contains(number));
        }
        new
    }

    /// Returns the names that an entry has, but did not have in another state.
    pub fn new_names(&self, before: &Catalog, entry: &CatalogEntry) -> BTreeSet<TakenName> {
        let mut new = self.names_of(entry);
        if !new.is_empty() {
            let old = before.names_of(entry);
            new.retain(|name| !old.contains(name));
        }
        new
    }

    fn names_of(&self, entry: &CatalogEntry) -> BTreeSet<TakenName> {
        let named = |schema: &str, name: &str| TakenName::Relation(schema.into(), name.into());
        match entry {
            CatalogEntry::Schema(number) => {
                let schema = self.schemas().find(|schema| schema.oid == *number);
                schema.map(|schema| TakenName::Schema(schema.name.clone())).into_iter().collect()
            }
            CatalogEntry::Table(number) => {
                let names = self.table(*number).into_iter().flat_map(|table| {
                    super::table_names(table).map(|(name, _)| named(&table.schema, name))
                });
                names.collect()
            }
            CatalogEntry::View(number) => {
                let view = self.view(*number);
                view.map(|view| named(&view.schema, &view.name)).into_iter().collect()
            }
            CatalogEntry::Sequence(number) => {
                let sequence = self.sequence(*number);
                sequence.map(|one| named(&one.schema, &one.name)).into_iter().collect()
            }
            CatalogEntry::Type(number) => {
                let known = self.user_type(*number);
                known.map(|one| named(one.schema(), one.name())).into_iter().collect()
            }
            CatalogEntry::Function(number) => {
                let name = self.function(*number).map(|one| {
                    let takes = one.parameters.iter().map(|sql_type| sql_type.oid()).collect();
                    let record = &one.record;
                    TakenName::Function(record.schema.clone(), record.name.clone(), takes)
                });
                name.into_iter().collect()
            }
            CatalogEntry::Comment(subject @ CommentSubjectKey::Extension(number, _))
                if self.comments.contains_key(subject) =>
            {
                BTreeSet::from([TakenName::Extension(*number)])
            }
            CatalogEntry::Comment(_) | CatalogEntry::Quota(_) | CatalogEntry::Statistics(_) => {
                BTreeSet::new()
            }
        }
    }

    /// Returns this state with these entries replaced by those of another state.
    ///
    /// The caller has checked that none of them was changed here ([`Catalog::conflict`]).
    #[must_use]
    pub fn with_entries(&self, own: &Catalog, entries: &BTreeSet<CatalogEntry>) -> Catalog {
        let mut next = self.next();
        // Tables before views: a materialized view is both. All old names are removed before new
        // ones are added, because two objects may have swapped names.
        entries.iter().for_each(|entry| next.take(entry));
        entries.iter().for_each(|entry| next.put(own, entry));
        next
    }

    fn take(&mut self, entry: &CatalogEntry) {
        match entry {
            CatalogEntry::Schema(number) => self.schemas.retain(|_, schema| schema.oid != *number),
            CatalogEntry::Table(number) => self.take_table(*number),
            CatalogEntry::View(number) => self.take_view(*number),
            CatalogEntry::Sequence(number) => self.take_sequence(*number),
            CatalogEntry::Type(number) => drop(Arc::make_mut(&mut self.types).remove(number)),
            CatalogEntry::Function(number) => {
                drop(Arc::make_mut(&mut self.functions).remove(number))
            }
            CatalogEntry::Comment(subject) => {
                drop(Arc::make_mut(&mut self.comments).remove(subject))
            }
            CatalogEntry::Quota(subject) => drop(self.quotas.remove(subject)),
            CatalogEntry::Statistics(table) => drop(self.statistics.remove(table)),
        }
    }

    fn put(&mut self, own: &Catalog, entry: &CatalogEntry) {
        match entry {
            CatalogEntry::Schema(number) => {
                let schema = own.schemas().find(|schema| schema.oid == *number);
                // The content of the schema consists of separate entries.
                let schema = schema.map(|schema| Schema::of_record(schema.record()));
                self.schemas.extend(schema.map(|one| (one.name.clone(), Arc::new(one))));
            }
            CatalogEntry::Table(number) => {
                if let Some(table) = own.table(*number) {
                    self.put_table(Arc::clone(table), own.record(*number).cloned());
                }
            }
            CatalogEntry::View(number) => {
                if let Some(view) = own.view(*number) {
                    self.put_view(Arc::clone(view));
                }
            }
            CatalogEntry::Sequence(number) => {
                if let Some(sequence) = own.sequence(*number) {
                    self.put_sequence(Arc::clone(sequence));
                }
            }
            CatalogEntry::Type(number) => copy(&mut self.types, &own.types, number),
            CatalogEntry::Function(number) => copy(&mut self.functions, &own.functions, number),
            CatalogEntry::Comment(subject) => copy(&mut self.comments, &own.comments, subject),
            CatalogEntry::Quota(subject) => {
                let limits = own.quotas.get(subject).copied();
                self.quotas.extend(limits.map(|limits| (subject.clone(), limits)));
            }
            CatalogEntry::Statistics(table) => {
                let statistics = own.statistics.get(table).cloned();
                self.statistics.extend(statistics.map(|statistics| (*table, statistics)));
            }
        }
    }

    /// Checks that names refer to objects that have them, that objects have their names, and that
    /// the objects that tables, views, types and functions refer to exist.
    ///
    /// # Errors
    ///
    /// A description of the first violation.
    pub fn check(&self) -> Result<(), String> {
        for schema in self.schemas() {
            for (name, id) in &schema.relations {
                let named = self.relation(&schema.name, name).map(|found| found.name());
                let is_it = named.is_some_and(|one| one.schema == schema.name && one.name == *name);
                if !is_it {
                    return Err(format!(
                        "{}.{name} maps to {id:?}, which has another name",
                        schema.name
                    ));
                }
            }
        }
        self.check_relations()?;
        for known in self.types() {
            let others = self
                .types()
                .filter(|one| one.name() == known.name() && one.schema() == known.schema());
            if others.count() > 1 {
                return Err(format!("two types {}.{}", known.schema(), known.name()));
            }
        }
        let entries = self.tables.keys().map(|number| CatalogEntry::Table(*number));
        let entries = entries.chain(self.views.keys().map(|number| CatalogEntry::View(*number)));
        let entries =
            entries.chain(self.functions.keys().map(|number| CatalogEntry::Function(*number)));
        let types = self.types().filter(|one| !one.is_of_rows());
        let mut entries = entries.chain(types.map(|one| CatalogEntry::Type(one.number())));
        let missing = entries.find_map(|entry| {
            let mut numbers = ReferenceScope::Declared.of(self, &entry).into_iter();
            numbers.find(|number| !self.has(*number)).map(|number| (entry, number))
        });
        match missing {
            None => Ok(()),
            Some((entry, number)) => {
                Err(format!("{entry:?} refers to {number}, which does not exist"))
            }
        }
    }

    fn check_relations(&self) -> Result<(), String> {
        let stands_for = |schema: &str, name: &str, id: RelationId| {
            let found = self.schema(schema).and_then(|schema| schema.relations.get(name));
            match found {
                Some(found) if *found == id => Ok(()),
                found => Err(format!("{schema}.{name} maps to {found:?}, not {id:?}")),
            }
        };
        for table in self.tables.values() {
            for (name, id) in super::table_names(table) {
                stands_for(&table.schema, name, id)?;
            }
            if self.stored.get(&table.id) != Some(&table.oid) {
                return Err(format!("table {} shares its rows with another table", table.name));
            }
            for key in &table.foreign_keys {
                if !self.referencing.get(&key.table).is_some_and(|by| by.contains(&table.oid)) {
                    return Err(format!(
                        "foreign key {} is not registered in the referenced table",
                        key.name
                    ));
                }
            }
        }
        if self.stored.len() != self.tables.len() {
            return Err("rows of a table that does not exist".to_owned());
        }
        for view in self.views().filter(|view| !self.tables.contains_key(&view.oid)) {
            stands_for(&view.schema, &view.name, RelationId::View(view.oid))?;
        }
        for one in self.sequences() {
            stands_for(&one.schema, &one.name, RelationId::Sequence(one.oid))?;
        }
        let relations = self.tables.keys().chain(self.views.keys());
        let without = relations.copied().find(|number| {
            !self.types.get(number).is_some_and(|rows| matches!(&**rows, UserType::Composite(_)))
        });
        without.map_or(Ok(()), |number| Err(format!("relation {number} has no row type")))
    }

    /// Returns whether an object with a number exists.
    pub fn has(&self, number: u32) -> bool {
        self.tables.contains_key(&number)
            || self.types.contains_key(&number)
            || self.views.contains_key(&number)
            || self.sequences.contains_key(&number)
            || self.functions.contains_key(&number)
            || self.schemas().any(|schema| schema.oid == number)
    }
}

fn copy<K: Ord + Clone, V: ?Sized>(
    to: &mut Arc<BTreeMap<K, Arc<V>>>,
    from: &BTreeMap<K, Arc<V>>,
    key: &K,
) {
    let value = from.get(key).cloned();
    Arc::make_mut(to).extend(value.map(|value| (key.clone(), value)));
}

/// Returns the keys whose values differ, or that only one side has.
fn differing<'a, K: Ord + Clone + 'a, V: 'a>(
    own: impl Iterator<Item = (&'a K, &'a V)>,
    old: impl Iterator<Item = (&'a K, &'a V)>,
    is_same: impl Fn(&V, &V) -> bool,
) -> impl Iterator<Item = K> {
    let mut old: BTreeMap<&K, &V> = old.collect();
    let mut found = Vec::new();
    for (key, value) in own {
        match old.remove(key) {
            Some(before) if is_same(value, before) => {}
            _ => found.push(key.clone()),
        }
    }
    found.extend(old.into_keys().cloned());
    found.into_iter()
}

fn hashed<K: Eq + std::hash::Hash + Copy, V>(
    own: &AHashMap<K, V>,
    old: &AHashMap<K, V>,
    is_same: impl Fn(&V, &V) -> bool,
) -> Vec<K> {
    let differs = |(key, value): &(&K, &V)| !old.get(key).is_some_and(|old| is_same(value, old));
    let mut found: Vec<K> = own.iter().filter(differs).map(|(key, _)| *key).collect();
    found.extend(old.keys().filter(|key| !own.contains_key(key)));
    found
}

fn shared<V>(
    own: &Arc<BTreeMap<u32, Arc<V>>>,
    old: &Arc<BTreeMap<u32, Arc<V>>>,
) -> impl Iterator<Item = u32> + use<V> {
    let mut found = Vec::new();
    if !Arc::ptr_eq(own, old) {
        let differs = |(key, value): &(&u32, &Arc<V>)| {
            !old.get(key).is_some_and(|old| Arc::ptr_eq(value, old))
        };
        found.extend(own.iter().filter(differs).map(|(key, _)| *key));
        found.extend(old.keys().filter(|key| !own.contains_key(key)));
    }
    found.into_iter()
}
