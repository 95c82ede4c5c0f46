//! References of catalog objects to others: the types and the SQL texts of each object, and the
//! numbers of the objects that it refers to.
//!
//! Dependents for DROP and ALTER, the rows of `pg_depend`, and the objects that other transactions
//! must not change ([`ReferenceScope`]) are derived from these.
//!
//! Texts of definitions are not bound for a [`ReferenceScope`]: each word of a text counts as a
//! reference to all functions, types and sequences of that name. So a definition may wait for an
//! unrelated one, but no reference is missed.

use std::collections::BTreeSet;
use std::sync::Arc;

use ahash::AHashSet;

use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::PUBLIC_ROLE;
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::composite::{Composite, ROW_ARRAY};
use crate::catalog::name::SearchPath;
use crate::catalog::object::Object;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::schema::RelationId;
use crate::catalog::table::Table;
use crate::catalog::user_type::{OID_OFFSET, UserType};
use crate::catalog::view::View;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, ObjectId, ReferenceKey};
use crate::parser::{self, NameReference};

/// The type of a column, attribute or parameter, or the base type of a domain.
#[derive(Debug)]
pub struct TypeReference {
    /// The object or part that has the type.
    pub part: Object,
    /// OID of the type.
    pub type_oid: u32,
    /// True for a dropped column or attribute, whose stored values remain.
    pub is_dropped: bool,
}

/// A SQL text in the definition of an object.
#[derive(Debug)]
pub struct TextReference<'c> {
    /// The object or part that is defined by the text.
    pub part: Object,
    /// The search path of its unqualified names; `None` if names are qualified.
    pub path: Option<&'c SearchPath>,
    /// The text.
    pub text: &'c str,
}

impl TextReference<'_> {
    /// Returns the strings of the text, which may be names of sequences, if it calls `nextval` or
    /// a related function.
    pub fn sequence_names(&self) -> Vec<String> {
        let calls = parser::call_references(self.text).unwrap_or_default();
        let takes = ["nextval", "currval", "setval"];
        if !calls.iter().any(|call| takes.contains(&call.name.as_str())) {
            return Vec::new();
        }
        let strings = parser::strings(self.text).unwrap_or_default();
        strings.into_iter().map(|(_, string)| string).collect()
    }

    /// Returns whether it is the body of a function.
    pub fn is_body(&self) -> bool {
        self.path.is_some() && matches!(self.part, Object::Whole(ObjectId::Function(_)))
    }
}

/// Returns the types of an object and of its parts.
pub fn types_of(catalog: &Catalog, entry: &CatalogEntry) -> Vec<TypeReference> {
    let mut found = Vec::new();
    let mut add = |part: Object, type_oid: u32, is_dropped: bool| {
        found.push(TypeReference { part, type_oid, is_dropped });
    };
    match catalog.object(entry) {
        Some(CatalogObject::Table(table, Some(record))) => {
            for (at, column) in record.columns.iter().enumerate() {
                add(Object::Column(table.oid, at), column.type_oid, column.dropped);
            }
        }
        Some(CatalogObject::View(view)) => {
            let columns = view.columns.iter();
            columns.for_each(|one| add(of_view(catalog, view), one.sql_type.oid(), false));
        }
        Some(CatalogObject::Type(known)) => match known.as_ref() {
            UserType::Domain(domain) => {
                add(Object::Whole(ObjectId::Type(known.number())), domain.record.type_oid, false);
            }
            UserType::Composite(Composite { record: Some(record), .. }) => {
                for (at, attribute) in record.attributes.iter().enumerate() {
                    let part = Object::Attribute(record.number, at);
                    add(part, attribute.type_oid, attribute.dropped);
                }
            }
            UserType::Composite(_) | UserType::Enum(_) => {}
        },
        Some(CatalogObject::Function(function)) => {
            let part = Object::Whole(ObjectId::Function(function.record.number));
            function.type_oids().into_iter().for_each(|oid| add(part.clone(), oid, false));
        }
        _ => {}
    }
    found
}

/// Returns the SQL texts of an object and of its parts. Bodies of functions that are resolved at
/// each call are not among them.
pub fn texts_of<'c>(catalog: &'c Catalog, entry: &CatalogEntry) -> Vec<TextReference<'c>> {
    let mut found = Vec::new();
    let mut add = |part: Object, path: Option<&'c SearchPath>, text: &'c str| {
        found.push(TextReference { part, path, text });
    };
    match catalog.object(entry) {
        Some(CatalogObject::Table(table, Some(record))) => {
            let of = table.oid;
            for (at, column) in record.columns.iter().enumerate() {
                column.default.iter().for_each(|text| add(Object::Default(of, at), None, text));
                column.generated.iter().for_each(|text| add(Object::Column(of, at), None, text));
            }
            for check in &record.checks {
                add(Object::Constraint(of, check.name.clone()), None, &check.predicate);
            }
            for trigger in &record.triggers {
                let part = Object::Trigger(of, trigger.name.clone());
                trigger.condition.iter().for_each(|text| add(part.clone(), None, text));
            }
            for policy in &table.row_security.policies {
                let part = Object::Policy(of, policy.record.name.clone());
                let queries = policy.expressions();
                queries.for_each(|one| add(part.clone(), Some(&one.search_path), &one.text));
            }
            for index in &record.indexes {
                let part = Object::Index(of, index.name.clone());
                index.texts().for_each(|text| add(part.clone(), None, text));
            }
        }
        Some(CatalogObject::View(view)) => {
            add(of_view(catalog, view), Some(&view.search_path), &view.text);
            let defaults = view.columns.iter().filter_map(|one| one.default.as_ref());
            defaults.for_each(|text| add(of_view(catalog, view), None, text));
        }
        Some(CatalogObject::Type(known)) => {
            if let UserType::Domain(domain) = known.as_ref() {
                let checks = domain.record.checks.iter().map(|check| &check.predicate);
                let texts = domain.record.default.iter().chain(checks);
                texts.for_each(|text| {
                    add(Object::Whole(ObjectId::Type(known.number())), None, text)
                });
            }
        }
        Some(CatalogObject::Function(function)) => {
            let part = Object::Whole(ObjectId::Function(function.record.number));
            let parameters = function.record.parameters.iter();
            let defaults = parameters.filter_map(|one| one.default.as_ref());
            defaults.for_each(|text| add(part.clone(), None, text));
            if let Some(path) = &function.search_path {
                add(part, Some(path), &function.record.body);
            }
        }
        _ => {}
    }
    found
}

impl Catalog {
    /// Returns the references of an entry that the catalog indexes.
    pub(in crate::catalog) fn reference_keys(
        &self,
        entry: &CatalogEntry,
    ) -> BTreeSet<ReferenceKey> {
        let types = types_of(self, entry).into_iter().filter(|one| one.type_oid >= OID_OFFSET);
        let mut keys: BTreeSet<_> = types.map(|one| ReferenceKey::Type(one.type_oid)).collect();
        for text in texts_of(self, entry) {
            let calls = parser::call_references(text.text).unwrap_or_default().into_iter();
            let is_of_user = |one: &NameReference| {
                one.schema.is_some() || types::function::overloads(&one.name).is_empty()
            };
            let calls = calls.filter(is_of_user);
            keys.extend(calls.map(|one| ReferenceKey::FunctionName(one.name.into())));
            for string in text.sequence_names() {
                // It is the plain name, or SQL text of it.
                let parsed = parser::parse_relation_name(&string).ok().map(|one| one.name.value);
                let names = parsed.into_iter().chain([string]);
                keys.extend(names.map(|name| ReferenceKey::SequenceName(name.into())));
            }
            if !text.is_body() {
                let names = parser::type_references(text.text).unwrap_or_default().into_iter();
                keys.extend(names.map(|one| ReferenceKey::TypeName(one.name.into())));
            }
        }
        let triggers = match self.object(entry) {
            Some(CatalogObject::Table(table, _)) => table.triggers.as_slice(),
            Some(CatalogObject::View(view)) => view.triggers.as_slice(),
            _ => &[],
        };
        let functions = triggers.iter().map(|one| one.record.function);
        keys.extend(functions.map(ReferenceKey::TriggerFunction));
        let relations: Vec<u32> = match self.object(entry) {
            Some(CatalogObject::Table(table, _)) => table
                .foreign_keys
                .iter()
                .map(|key| key.table)
                .chain(policy_relations(table))
                .collect(),
            Some(CatalogObject::View(view)) => view.relations.iter().map(|one| one.oid).collect(),
            Some(CatalogObject::Sequence(one)) => one.owned_by.iter().map(|of| of.0).collect(),
            _ => Vec::new(),
        };
        keys.extend(relations.into_iter().map(ReferenceKey::Relation));
        keys
    }

    fn with_reference(&self, key: ReferenceKey) -> impl Iterator<Item = &CatalogEntry> {
        let first = (key.clone(), CatalogEntry::Object(ObjectId::Schema(0)));
        let pairs = self.referrers.range(first..).take_while(move |(other, _)| *other == key);
        pairs.map(|(_, entry)| entry)
    }

    /// Returns the views that read a table or view, the tables with foreign keys to it and the
    /// sequences that it owns, by kind and age.
    pub fn referrers(&self, relation: u32) -> impl Iterator<Item = &CatalogEntry> {
        self.with_reference(ReferenceKey::Relation(relation))
    }

    /// Returns the entries that may read a sequence, by kind and age: those with a text that
    /// contains its name, and the table that owns it.
    pub fn possible_sequence_users(&self, number: u32) -> BTreeSet<CatalogEntry> {
        let Some(sequence) = self.sequence(number) else { return BTreeSet::new() };
        let users = self.with_reference(ReferenceKey::SequenceName(sequence.name.as_str().into()));
        let owner =
            sequence.owned_by.map(|(table, _)| CatalogEntry::Object(ObjectId::Table(table)));
        users.cloned().chain(owner).collect()
    }

    /// Returns the entries with a text that calls a function of this name, by kind and age.
    /// Built-in functions take precedence over unqualified names.
    pub fn possible_callers(&self, name: &str) -> impl Iterator<Item = &CatalogEntry> {
        self.with_reference(ReferenceKey::FunctionName(name.into()))
    }

    /// Returns the tables with triggers that call a function.
    pub fn tables_with_trigger_of(&self, function: u32) -> impl Iterator<Item = &Arc<Table>> {
        let entries = self.with_reference(ReferenceKey::TriggerFunction(function));
        entries.filter_map(|entry| match entry {
            CatalogEntry::Object(ObjectId::Table(number) | ObjectId::View(number)) => {
                self.table_or_view(*number)
            }
            _ => None,
        })
    }

    /// Returns the entries that may use a type, by kind and age: those with its OID, those with a
    /// text that contains its name, and the views that read one of these.
    pub fn possible_type_users(&self, number: u32) -> BTreeSet<CatalogEntry> {
        let oid = number + OID_OFFSET;
        // A row type is not made only to find that nothing uses it.
        let of_view = || Some(([oid, oid | ROW_ARRAY], self.view(number)?.name.as_str()));
        let used = match (self.created_type(number), self.table(number)) {
            (Some(known), _) => Some(([oid, known.array_oid()], known.name())),
            (None, Some(table)) => Some(([oid, oid | ROW_ARRAY], table.name.as_str())),
            (None, None) => of_view(),
        };
        let Some((oids, name)) = used else { return BTreeSet::new() };
        let oids = oids.into_iter().map(ReferenceKey::Type);
        let keys = oids.chain([ReferenceKey::TypeName(name.into())]);
        let mut found: BTreeSet<_> =
            keys.flat_map(|key| self.with_reference(key)).cloned().collect();
        let relations = found.iter().filter_map(|entry| match entry {
            CatalogEntry::Object(ObjectId::Table(number))
            | CatalogEntry::Object(ObjectId::View(number)) => Some(*number),
            _ => None,
        });
        let readers: Vec<_> =
            relations.flat_map(|number| self.referrers(number)).cloned().collect();
        found.extend(
            readers
                .into_iter()
                .filter(|entry| matches!(entry, CatalogEntry::Object(ObjectId::View(_)))),
        );
        found
    }
}

/// Returns the other relations that the policies of a table reference.
fn policy_relations(table: &Table) -> impl Iterator<Item = u32> {
    let queries = table.row_security.policies.iter().flat_map(|policy| policy.expressions());
    let relations = queries.flat_map(|query| query.relations.iter().map(|one| one.oid));
    relations.filter(|relation| *relation != table.oid)
}

/// Returns the object of a view, which is a table if the view is materialized.
fn of_view(catalog: &Catalog, view: &View) -> Object {
    match catalog.table(view.oid) {
        Some(_) => Object::Whole(ObjectId::Table(view.oid)),
        None => Object::Whole(ObjectId::View(view.oid)),
    }
}

/// Returns whether the query of a view reads a column with one of these types.
pub fn reads_type(catalog: &Catalog, entry: &CatalogEntry, oids: [u32; 2]) -> bool {
    let Some(CatalogObject::View(view)) = catalog.object(entry) else { return false };
    view.relations.iter().any(|relation| {
        let relation_entry = match catalog.view(relation.oid) {
            Some(_) => CatalogEntry::Object(ObjectId::View(relation.oid)),
            None => CatalogEntry::Object(ObjectId::Table(relation.oid)),
        };
        let is_used = |part: &Object| match part {
            Object::Column(_, at) => relation.used.contains(&(*at as u32)),
            _ => true,
        };
        let types = types_of(catalog, &relation_entry);
        types.iter().any(|one| oids.contains(&one.type_oid) && is_used(&one.part))
    })
}

/// The references that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceScope {
    /// Those by number.
    Declared,
    /// Also those that words of texts may refer to. An object that another transaction creates
    /// later may be among them, without a lock.
    Possible,
}

impl ReferenceScope {
    /// Returns the numbers of the objects that an entry refers to.
    pub fn of(self, catalog: &Catalog, entry: &CatalogEntry) -> BTreeSet<u32> {
        let mut found: BTreeSet<u32> = declared(catalog, entry).into_iter().collect();
        if self == ReferenceScope::Possible {
            add_named(catalog, entry, &mut found);
        }
        if let Some(own) = entry.object_id().map(ObjectId::number) {
            found.remove(&own);
        }
        found
    }
}

/// Adds the numbers of the objects that the texts of an entry may name.
fn add_named(catalog: &Catalog, entry: &CatalogEntry, found: &mut BTreeSet<u32>) {
    let mut words = Words::default();
    for one in texts_of(catalog, entry) {
        words.add(one.text);
        words.names_relations |= one.is_body();
    }
    if let Some(CatalogObject::Table(table, _)) = catalog.object(entry) {
        for (_, value) in table.coprocessors.attached.iter().flat_map(|one| &one.arguments) {
            words.add(value);
            words.names_relations = true;
        }
    }
    words.find(catalog, found);
}

/// Returns the numbers that an entry itself refers to, without those in its texts.
fn declared(catalog: &Catalog, entry: &CatalogEntry) -> Vec<u32> {
    let mut found = Vec::new();
    if !matches!(entry, CatalogEntry::Object(ObjectId::Schema(_) | ObjectId::Role(_))) {
        let name = catalog.object(entry).and_then(CatalogObject::name);
        found.extend(name.and_then(|name| catalog.schema(&name.schema)).map(|schema| schema.oid));
    }
    let types = types_of(catalog, entry).into_iter().filter(|one| !one.is_dropped);
    found.extend(types.filter_map(|one| Some(catalog.type_of_oid(one.type_oid)?.number())));
    match catalog.object(entry) {
        Some(CatalogObject::Table(table, _)) => {
            found.extend(table.foreign_keys.iter().map(|key| key.table));
            found.extend(table.triggers.iter().map(|one| one.record.function));
            found.extend(policy_relations(table));
            let policies = table.row_security.policies.iter();
            let roles = policies.flat_map(|policy| policy.record.roles.iter().copied());
            found.extend(roles.filter(|role| *role != PUBLIC_ROLE));
        }
        Some(CatalogObject::View(view)) => {
            found.extend(view.triggers.iter().map(|one| one.record.function));
            found.extend(view.relations.iter().map(|relation| relation.oid));
        }
        Some(CatalogObject::Sequence(sequence)) => {
            found.extend(sequence.owned_by.map(|(table, _)| table));
        }
        Some(CatalogObject::Role(role)) => {
            found.extend(role.member_of.iter().map(|one| one.role));
        }
        Some(CatalogObject::Database(database)) => {
            found.extend(catalog.access(AccessSubject::Database(database.oid)).roles());
        }
        Some(CatalogObject::Access(subject, record)) => {
            found.extend(subject.number());
            found.extend(record.roles());
        }
        Some(CatalogObject::Comment(subject, _)) => found.extend(subject_of(catalog, subject)),
        _ => {}
    }
    if let CatalogEntry::Quota(QuotaSubject::Table(table)) | CatalogEntry::Statistics(table) = entry
    {
        found.extend(catalog.table_stored(*table).map(|table| table.oid));
    }
    if let CatalogEntry::Quota(QuotaSubject::Schema(schema)) = entry {
        found.push(*schema);
    }
    found
}

/// Returns the number of the object that is the subject of a comment, or contains it.
fn subject_of(catalog: &Catalog, subject: &CommentSubjectKey) -> Option<u32> {
    match subject {
        CommentSubjectKey::Relation(number) if !catalog.has(*number) => {
            let tables = catalog.tables();
            let mut tables = tables.iter();
            let of_it = tables.find(|table| table.indexes.iter().any(|one| one.oid == *number));
            of_it.map(|table| table.oid)
        }
        CommentSubjectKey::Relation(number)
        | CommentSubjectKey::PrimaryKey(number)
        | CommentSubjectKey::Column(number, _)
        | CommentSubjectKey::Constraint(number, _)
        | CommentSubjectKey::Trigger(number, _)
        | CommentSubjectKey::Policy(number, _)
        | CommentSubjectKey::Schema(number)
        | CommentSubjectKey::Type(number)
        | CommentSubjectKey::Function(number)
        | CommentSubjectKey::Role(number) => Some(*number),
        CommentSubjectKey::Extension(_, schema) => (*schema != 0).then_some(*schema),
        CommentSubjectKey::Database(_) => None,
    }
}

/// The words of texts, including those within quotes.
#[derive(Default)]
struct Words {
    words: AHashSet<String>,
    /// True if tables and views count, too.
    names_relations: bool,
}

impl Words {
    fn add(&mut self, text: &str) {
        let is_part = |one: char| one.is_alphanumeric() || one == '_' || one == '$';
        let quoted = text.split(['"', '\'']);
        let parts = text.split(['"', '\'', '.']);
        for word in text.split(|one| !is_part(one)).chain(quoted).chain(parts) {
            if !word.is_empty() {
                self.words.insert(word.to_lowercase());
                self.words.insert(word.to_owned());
            }
        }
    }

    fn find(&self, catalog: &Catalog, found: &mut BTreeSet<u32>) {
        if self.words.is_empty() {
            return;
        }
        // An array type has the name of its element type with a leading underscore.
        let arrays = self.words.iter().filter_map(|word| word.strip_prefix('_'));
        let names: AHashSet<&str> = self.words.iter().map(String::as_str).chain(arrays).collect();
        let functions = names.iter().filter_map(|name| catalog.function_names.get(*name));
        found.extend(functions.flatten());
        for (schema, name) in
            catalog.schemas().flat_map(|one| names.iter().map(move |name| (one, *name)))
        {
            found.extend(schema.types.get(name));
            found.extend(schema.relations.get(name).and_then(|relation| match relation {
                RelationId::Sequence(number) => Some(*number),
                relation if self.names_relations => relation.with_row_type(),
                _ => None,
            }));
        }
    }
}
