//! References of catalog objects to others, by number: objects that other transactions must not
//! change or drop while the transaction that made the reference is open.
//!
//! Texts of definitions are not bound for this: each word of a text counts as a reference to all
//! functions, types and sequences of that name. So a definition may wait for an unrelated one, but
//! no reference is missed.

use std::collections::BTreeSet;

use ahash::AHashSet;

use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::record::TableRecord;
use crate::catalog::user_type::UserType;
use crate::catalog::{Catalog, CatalogEntry};

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
        if let Some(own) = entry.number() {
            found.remove(&own);
        }
        found
    }
}

/// Adds the numbers of the objects that the texts of an entry may name.
fn add_named(catalog: &Catalog, entry: &CatalogEntry, found: &mut BTreeSet<u32>) {
    let mut words = Words::default();
    match entry {
        CatalogEntry::Table(number) => {
            if let Some(record) = catalog.record(*number) {
                words.add_table(record);
            }
            let table = catalog.table(*number);
            let attached = table.iter().flat_map(|table| &table.coprocessors.attached);
            for (_, value) in attached.flat_map(|one| &one.arguments) {
                words.add(value);
                words.names_relations = true;
            }
        }
        CatalogEntry::View(number) => {
            if let Some(view) = catalog.view(*number) {
                words.add(&view.text);
                view.columns.iter().filter_map(|one| one.default.as_ref()).for_each(|text| {
                    words.add(text);
                });
            }
        }
        CatalogEntry::Type(number) => {
            if let Some(UserType::Domain(domain)) = catalog.user_type(*number).map(AsRef::as_ref) {
                let checks = domain.record.checks.iter().map(|check| &check.predicate);
                checks.chain(&domain.record.default).for_each(|text| words.add(text));
            }
        }
        CatalogEntry::Function(number) => {
            if let Some(function) = catalog.function(*number) {
                let parameters = function.record.parameters.iter();
                parameters.filter_map(|one| one.default.as_ref()).for_each(|text| words.add(text));
                // Other bodies are resolved at each call.
                if function.search_path.is_some() {
                    words.add(&function.record.body);
                    words.names_relations = true;
                }
            }
        }
        _ => {}
    }
    words.find(catalog, found);
}

/// Returns the numbers that an entry itself refers to, without those in its texts.
fn declared(catalog: &Catalog, entry: &CatalogEntry) -> Vec<u32> {
    let schema = |name: &str| catalog.schema(name).map(|schema| schema.oid);
    let of_type = |oid: u32| catalog.type_of_oid(oid).map(|known| known.number());
    let mut found = Vec::new();
    match entry {
        CatalogEntry::Schema(_) | CatalogEntry::Quota(QuotaSubject::Role(_)) => {}
        CatalogEntry::Table(number) => {
            let Some(table) = catalog.table(*number) else { return found };
            found.extend(schema(&table.schema));
            found.extend(table.foreign_keys.iter().map(|key| key.table));
            let columns = table.columns.iter().filter(|column| !column.dropped);
            found.extend(columns.filter_map(|column| of_type(column.sql_type.oid())));
        }
        CatalogEntry::View(number) => {
            let Some(view) = catalog.view(*number) else { return found };
            found.extend(schema(&view.schema));
            found.extend(view.relations.iter().map(|relation| relation.oid));
            let columns = view.columns.iter();
            found.extend(columns.filter_map(|column| of_type(column.sql_type.oid())));
        }
        CatalogEntry::Sequence(number) => {
            let Some(sequence) = catalog.sequence(*number) else { return found };
            found.extend(schema(&sequence.schema));
            found.extend(sequence.owned_by.map(|(table, _)| table));
        }
        CatalogEntry::Type(number) => {
            let Some(known) = catalog.user_type(*number) else { return found };
            found.extend(schema(known.schema()));
            match known.as_ref() {
                UserType::Enum(_) => {}
                UserType::Domain(domain) => found.extend(of_type(domain.record.type_oid)),
                UserType::Composite(composite) => {
                    let attributes = composite.record.iter().flat_map(|record| &record.attributes);
                    let attributes = attributes.filter(|attribute| !attribute.dropped);
                    found.extend(attributes.filter_map(|one| of_type(one.type_oid)));
                }
            }
        }
        CatalogEntry::Function(number) => {
            let Some(function) = catalog.function(*number) else { return found };
            found.extend(schema(&function.record.schema));
            found.extend(function.type_oids().into_iter().filter_map(of_type));
        }
        CatalogEntry::Comment(subject) => {
            if catalog.comment(subject).is_some() {
                found.extend(subject_of(catalog, subject));
            }
        }
        CatalogEntry::Quota(QuotaSubject::Table(table)) | CatalogEntry::Statistics(table) => {
            found.extend(catalog.table_stored(*table).map(|table| table.oid));
        }
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
        | CommentSubjectKey::Schema(number)
        | CommentSubjectKey::Type(number)
        | CommentSubjectKey::Function(number) => Some(*number),
        CommentSubjectKey::Extension(_, schema) => (*schema != 0).then_some(*schema),
        CommentSubjectKey::Database => None,
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
    fn add_table(&mut self, record: &TableRecord) {
        for column in &record.columns {
            column.default.iter().chain(&column.generated).for_each(|text| self.add(text));
        }
        record.checks.iter().for_each(|check| self.add(&check.predicate));
        record.indexes.iter().flat_map(|index| index.texts()).for_each(|text| self.add(text));
    }

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
        let is_named = |name: &str| self.words.contains(name);
        let functions = catalog.functions().filter(|one| is_named(&one.record.name));
        found.extend(functions.map(|one| one.record.number));
        let types = catalog.types().filter(|one| self.names_relations || !one.is_of_rows());
        // An array type has the name of its element type with a leading underscore.
        let types =
            types.filter(|one| is_named(one.name()) || is_named(&format!("_{}", one.name())));
        found.extend(types.map(|one| one.number()));
        let sequences = catalog.sequences().filter(|one| is_named(&one.name));
        found.extend(sequences.map(|one| one.oid));
    }
}
