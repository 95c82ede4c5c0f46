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

use imbl::ordmap::DiffItem;

use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::function::FunctionRecord;
use crate::catalog::object::references::ReferenceScope;
use crate::catalog::schema::RelationId;
use crate::catalog::standard_domain;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, ObjectId};

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
    /// The name of a role.
    Role(String),
    /// The name of a database.
    Database(String),
}

impl TakenName {
    /// Returns whether the name is one of all databases.
    pub fn is_shared(&self) -> bool {
        matches!(self, TakenName::Database(_) | TakenName::Role(_))
    }
}

impl Catalog {
    /// Returns the entries that differ from an earlier state.
    pub fn difference(&self, before: &Catalog) -> BTreeSet<CatalogEntry> {
        let differences = before.objects.diff(&self.objects);
        let entries = differences.map(|difference| match difference {
            DiffItem::Add(entry, _) | DiffItem::Remove(entry, _) => entry.clone(),
            DiffItem::Update { new: (entry, _), .. } => entry.clone(),
        });
        entries.collect()
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
        let refers = |side: &Catalog,
                      entries: &BTreeSet<CatalogEntry>,
                      to: &BTreeSet<CatalogEntry>| {
            let numbers: BTreeMap<u32, &CatalogEntry> =
                to.iter().filter_map(|entry| Some((entry.object_id()?.number(), entry))).collect();
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
        match self.object(entry) {
            None => BTreeSet::new(),
            Some(CatalogObject::Schema(schema)) => {
                BTreeSet::from([TakenName::Schema(schema.name.clone())])
            }
            Some(CatalogObject::Role(role)) => BTreeSet::from([TakenName::Role(role.name.clone())]),
            Some(CatalogObject::Database(one)) => {
                BTreeSet::from([TakenName::Database(one.name.clone())])
            }
            Some(CatalogObject::Function(one)) => {
                let takes = one.parameters.iter().map(|sql_type| sql_type.oid()).collect();
                let FunctionRecord { schema, name, .. } = &one.record;
                BTreeSet::from([TakenName::Function(schema.clone(), name.clone(), takes)])
            }
            Some(CatalogObject::Comment(CommentSubjectKey::Extension(number, _), _)) => {
                BTreeSet::from([TakenName::Extension(*number)])
            }
            Some(object) => {
                let names = object.names().into_iter();
                names
                    .map(|(schema, name, _)| TakenName::Relation(schema.into(), name.into()))
                    .collect()
            }
        }
    }

    /// Returns this state with these entries replaced by those of another state.
    ///
    /// The caller has checked that none of them was changed here ([`Catalog::conflict`]).
    #[must_use]
    pub fn with_entries(&self, own: &Catalog, entries: &BTreeSet<CatalogEntry>) -> Catalog {
        let mut next = self.clone().next();
        // Tables before views: a materialized view is both. All old names are removed before new
        // ones are added, because two objects may have swapped names.
        entries.iter().for_each(|entry| next.take(entry));
        entries.iter().filter_map(|entry| own.object(entry)).for_each(|object| {
            next.put(object.clone());
        });
        next
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
                let is_it =
                    named.is_some_and(|one| one.schema == schema.name && one.name == **name);
                if !is_it {
                    return Err(format!(
                        "{}.{name} maps to {id:?}, which has another name",
                        schema.name
                    ));
                }
            }
        }
        self.check_relations()?;
        for known in self.types().filter(|one| !standard_domain::is_standard(one.number())) {
            let (name, schema) = (known.name(), self.schema(known.schema()));
            let found = schema.and_then(|schema| schema.types.get(name));
            let of_relation = schema.and_then(|schema| schema.relations.get(name)?.with_row_type());
            if found != Some(&known.number()) || of_relation.is_some() {
                return Err(format!("two types {}.{name}", known.schema()));
            }
        }
        let mut entries = self.objects.keys().filter(|entry| {
            !matches!(entry, CatalogEntry::Comment(_) | CatalogEntry::Object(ObjectId::Sequence(_)))
        });
        let missing = entries.find_map(|entry| {
            let mut numbers = ReferenceScope::Declared.of(self, entry).into_iter();
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
        for table in self.tables_by_age() {
            for (name, id) in super::table_names(table) {
                stands_for(&table.schema, name, id)?;
            }
            if self.stored.get(&table.id) != Some(&table.oid) {
                return Err(format!("table {} shares its rows with another table", table.name));
            }
        }
        if self.stored.len() != self.tables_by_age().count() {
            return Err("rows of a table that does not exist".to_owned());
        }
        for view in self.views().filter(|view| self.table(view.oid).is_none()) {
            stands_for(&view.schema, &view.name, RelationId::View(view.oid))?;
        }
        for one in self.sequences() {
            stands_for(&one.schema, &one.name, RelationId::Sequence(one.oid))?;
        }
        let mut functions: BTreeMap<Arc<str>, Vec<u32>> = BTreeMap::new();
        for FunctionRecord { name, number, .. } in self.functions().map(|one| &one.record) {
            functions.entry(name.as_str().into()).or_default().push(*number);
        }
        if !self.function_names.iter().eq(&functions) {
            return Err("the names of functions differ from those of the objects".to_owned());
        }
        let mut constraints = BTreeMap::new();
        for (schema, name) in self.objects.values().flat_map(CatalogObject::constraint_names) {
            *constraints.entry((schema, name)).or_insert(0) += 1;
        }
        let registered = self.schemas().flat_map(|schema| {
            let names = schema.constraints.iter();
            names.map(|(name, count)| ((schema.name.as_str(), &**name), *count))
        });
        if !registered.eq(constraints) {
            return Err("the names of constraints differ from those of the objects".to_owned());
        }
        let of_entry = |entry: &CatalogEntry| {
            let keys = self.reference_keys(entry).into_iter();
            keys.map(|key| (key, entry.clone())).collect::<Vec<_>>()
        };
        let references: BTreeSet<_> = self.objects.keys().flat_map(of_entry).collect();
        match self.referrers.iter().eq(&references) {
            true => Ok(()),
            false => Err("the index of references differs from those of the objects".to_owned()),
        }
    }
}

/// Objects are equal if two states share them.
impl PartialEq for CatalogObject {
    fn eq(&self, other: &CatalogObject) -> bool {
        match (self, other) {
            (CatalogObject::Schema(a), CatalogObject::Schema(b)) => Arc::ptr_eq(a, b),
            (CatalogObject::Table(a, of_a), CatalogObject::Table(b, of_b)) => {
                Arc::ptr_eq(a, b)
                    && of_a.as_ref().map(Arc::as_ptr) == of_b.as_ref().map(Arc::as_ptr)
            }
            (CatalogObject::View(a), CatalogObject::View(b)) => Arc::ptr_eq(a, b),
            (CatalogObject::Sequence(a), CatalogObject::Sequence(b)) => Arc::ptr_eq(a, b),
            (CatalogObject::Type(a), CatalogObject::Type(b)) => Arc::ptr_eq(a, b),
            (CatalogObject::Function(a), CatalogObject::Function(b)) => Arc::ptr_eq(a, b),
            (CatalogObject::Role(a), CatalogObject::Role(b)) => Arc::ptr_eq(a, b),
            (CatalogObject::Database(a), CatalogObject::Database(b)) => Arc::ptr_eq(a, b),
            (CatalogObject::Comment(_, a), CatalogObject::Comment(_, b)) => Arc::ptr_eq(a, b),
            (CatalogObject::Quota(_, a), CatalogObject::Quota(_, b)) => a == b,
            (CatalogObject::Statistics(_, a), CatalogObject::Statistics(_, b)) => Arc::ptr_eq(a, b),
            (CatalogObject::Access(_, a), CatalogObject::Access(_, b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}
