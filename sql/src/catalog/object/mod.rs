//! Identities of catalog objects and of their parts, and what is derived from them for all kinds:
//! names, descriptions in messages, subjects of comments.

pub mod references;
mod types;

use crate::ast::ObjectKind;
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::composite::{AttributeRecord, Composite};
use crate::catalog::extension::EXTENSIONS;
use crate::catalog::name::{ObjectName, SearchPath};
use crate::catalog::user_type::UserType;
use crate::catalog::{Catalog, CatalogEntry, CatalogRelation, ObjectId};

/// An object, or a part of one, that can be dropped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Object {
    /// An object with a record of its own.
    Whole(ObjectId),
    /// An extension, by its number.
    Extension(u32),
    /// An index of a table, by name.
    Index(u32, String),
    /// A column of a table or view, by position.
    Column(u32, usize),
    /// The default of a column.
    Default(u32, usize),
    /// An attribute of a composite type, by position.
    Attribute(u32, usize),
    /// A constraint of a table or domain, by name.
    Constraint(u32, String),
    /// A trigger of a table, by name.
    Trigger(u32, String),
    /// A policy of a table, by name.
    Policy(u32, String),
}

impl Object {
    /// Returns the object of a relation.
    pub fn of(relation: CatalogRelation<'_>) -> Object {
        match relation {
            CatalogRelation::Table(table) => Object::Whole(ObjectId::Table(table.oid)),
            CatalogRelation::View(view) => Object::Whole(ObjectId::View(view.oid)),
            CatalogRelation::Sequence(sequence) => Object::Whole(ObjectId::Sequence(sequence.oid)),
            CatalogRelation::Index(table, _) | CatalogRelation::PrimaryKey(table) => {
                Object::Index(table.oid, relation.name().name)
            }
        }
    }

    /// Returns the key of the object; `None` for an extension and for parts.
    pub fn entry(&self) -> Option<CatalogEntry> {
        match self {
            Object::Whole(id) => Some(CatalogEntry::Object(*id)),
            _ => None,
        }
    }

    /// Returns the number of the object, or of the object that it is a part of.
    pub fn number(&self) -> u32 {
        match self {
            Object::Whole(id) => id.number(),
            Object::Extension(number) | Object::Attribute(number, _) => *number,
            Object::Column(number, _) | Object::Default(number, _) => *number,
            Object::Index(number, _)
            | Object::Constraint(number, _)
            | Object::Trigger(number, _)
            | Object::Policy(number, _) => *number,
        }
    }

    /// Returns the kind of the object; `None` for parts without names of their own.
    pub fn kind(&self, catalog: &Catalog) -> Option<ObjectKind> {
        Some(match self {
            Object::Whole(ObjectId::Table(number)) => {
                catalog.table(*number).map_or(ObjectKind::Table, |table| table.object_kind())
            }
            Object::Whole(ObjectId::Schema(_)) => ObjectKind::Schema,
            Object::Whole(ObjectId::View(_)) => ObjectKind::View,
            Object::Whole(ObjectId::Sequence(_)) => ObjectKind::Sequence,
            Object::Whole(ObjectId::Type(_)) => ObjectKind::Type,
            Object::Whole(ObjectId::Function(_)) => ObjectKind::Function,
            Object::Whole(ObjectId::Role(_)) => ObjectKind::Role,
            Object::Extension(_) => ObjectKind::Extension,
            Object::Index(..) => ObjectKind::Index,
            _ => return None,
        })
    }

    /// Returns the schema and the name; a schema and an extension are in no schema.
    pub fn name(&self, catalog: &Catalog) -> Option<ObjectName> {
        match self {
            // It may be the row type of a relation.
            Object::Whole(ObjectId::Type(number)) => {
                let known = catalog.user_type(*number)?;
                Some(ObjectName::new(known.schema(), known.name()))
            }
            Object::Whole(id) => catalog.object(&CatalogEntry::Object(*id))?.name(),
            Object::Extension(number) => {
                let known = EXTENSIONS.iter().find(|one| one.number == *number)?;
                Some(ObjectName::new("", known.name))
            }
            Object::Index(table, name) => {
                Some(ObjectName::new(&catalog.table(*table)?.schema, name))
            }
            _ => None,
        }
    }

    /// Returns the key of its comment; `None` if it cannot have one.
    pub fn comment_key(&self, catalog: &Catalog) -> Option<CommentSubjectKey> {
        Some(match self {
            Object::Whole(ObjectId::Schema(number)) => CommentSubjectKey::Schema(*number),
            Object::Whole(ObjectId::Table(number))
            | Object::Whole(ObjectId::View(number))
            | Object::Whole(ObjectId::Sequence(number)) => CommentSubjectKey::Relation(*number),
            Object::Whole(ObjectId::Database(number)) => CommentSubjectKey::Database(*number),
            Object::Whole(ObjectId::Type(number)) => CommentSubjectKey::Type(*number),
            Object::Whole(ObjectId::Function(number)) => CommentSubjectKey::Function(*number),
            Object::Whole(ObjectId::Role(number)) => CommentSubjectKey::Role(*number),
            Object::Extension(number) => {
                let known = EXTENSIONS.iter().find(|one| one.number == *number)?;
                CommentSubjectKey::Extension(*number, known.schema(catalog)?)
            }
            Object::Index(table, name) => {
                let table = catalog.table(*table)?;
                match table.indexes.iter().find(|index| index.name == *name) {
                    Some(index) => CommentSubjectKey::Relation(index.oid),
                    None => CommentSubjectKey::PrimaryKey(table.oid),
                }
            }
            Object::Column(number, at) => CommentSubjectKey::Column(*number, *at as u32),
            Object::Constraint(of, name) => CommentSubjectKey::Constraint(*of, name.clone()),
            Object::Trigger(of, name) => CommentSubjectKey::Trigger(*of, name.clone()),
            Object::Policy(of, name) => CommentSubjectKey::Policy(*of, name.clone()),
            Object::Default(..) | Object::Attribute(..) => return None,
        })
    }

    /// Returns the objects that it is a part of.
    pub fn wholes(&self) -> impl Iterator<Item = Object> + use<> {
        let (whole, other) = match self {
            Object::Column(table, _)
            | Object::Index(table, _)
            | Object::Constraint(table, _)
            | Object::Policy(table, _) => (Some(Object::Whole(ObjectId::Table(*table))), None),
            Object::Trigger(number, _) => (
                Some(Object::Whole(ObjectId::Table(*number))),
                Some(Object::Whole(ObjectId::View(*number))),
            ),
            Object::Default(table, column) => (
                Some(Object::Whole(ObjectId::Table(*table))),
                Some(Object::Column(*table, *column)),
            ),
            Object::Attribute(number, _) => (Some(Object::Whole(ObjectId::Type(*number))), None),
            _ => (None, None),
        };
        whole.into_iter().chain(other)
    }

    /// Returns whether it is a part of another object.
    pub fn is_part_of(&self, other: &Object) -> bool {
        self.wholes().any(|whole| whole == *other)
    }

    /// Returns its description in messages: `table t`.
    pub fn describe(&self, catalog: &Catalog, path: &SearchPath) -> String {
        let table = |number: &u32| Object::Whole(ObjectId::Table(*number)).describe(catalog, path);
        let column = |number: &u32, at: &usize| {
            let column = catalog.table(*number).and_then(|table| table.columns.get(*at));
            column.map(|column| column.name.clone()).unwrap_or_default()
        };
        let without_kind = |number: &u32| {
            let name = catalog.table(*number).map(|table| table.full_name());
            name.map(|name| catalog.display_name(&name.schema, &name.name, path))
                .unwrap_or_default()
        };
        match self {
            Object::Column(number, at) => {
                format!("column {} of {}", column(number, at), table(number))
            }
            Object::Default(number, at) => {
                let column = column(number, at);
                format!("default value for column {column} of table {}", without_kind(number))
            }
            Object::Constraint(number, name) => {
                format!("constraint {name} on table {}", without_kind(number))
            }
            Object::Trigger(number, name) => {
                let known = match catalog.table(*number) {
                    Some(_) => ObjectId::Table(*number),
                    None => ObjectId::View(*number),
                };
                let on = Object::Whole(known).describe(catalog, path);
                format!("trigger {name} on {on}")
            }
            Object::Policy(number, name) => {
                format!("policy {name} on table {}", without_kind(number))
            }
            Object::Attribute(number, at) => {
                let known = catalog.user_type(*number);
                let shown = known.map(|known| catalog.display_type(known, path));
                let attribute = attribute(catalog, *number, *at).map(|one| one.name.clone());
                let attribute = attribute.unwrap_or_default();
                format!("column {attribute} of composite type {}", shown.unwrap_or_default())
            }
            whole => {
                let noun = whole.kind(catalog).map_or("", ObjectKind::noun);
                format!("{noun} {}", whole.display_name(catalog, path).unwrap_or_default())
            }
        }
    }

    /// Returns the name of an object as messages show it, with its schema if the search path does
    /// not find it.
    fn display_name(&self, catalog: &Catalog, path: &SearchPath) -> Option<String> {
        match self {
            Object::Whole(ObjectId::Type(number)) => {
                Some(catalog.display_type(catalog.user_type(*number)?, path))
            }
            Object::Whole(ObjectId::Function(number)) => {
                Some(catalog.display_function(catalog.function(*number)?, path))
            }
            _ => {
                let ObjectName { schema, name } = self.name(catalog)?;
                let is_in_schema = !schema.is_empty();
                Some(if is_in_schema { catalog.display_name(&schema, &name, path) } else { name })
            }
        }
    }
}

/// Returns an attribute of a composite type, by its position.
fn attribute(catalog: &Catalog, number: u32, at: usize) -> Option<&AttributeRecord> {
    match catalog.user_type(number)?.as_ref() {
        UserType::Composite(Composite { record: Some(record), .. }) => record.attributes.get(at),
        _ => None,
    }
}
