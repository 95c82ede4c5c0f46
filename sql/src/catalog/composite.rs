//! Composite types in the catalog: those of CREATE TYPE, one row each, and the row types of tables
//! and views, which exist with their relations.
//!
//! The key of a row is `y` and the type's number; the only cell holds a [`CompositeRecord`]. The
//! row type of a relation has the relation's number.

use std::sync::Arc;

use store::codec::tagged::UnknownFields;
use types::SqlType;
use types::datatype::composite::{Attribute, CompositeType};
use types::datatype::identity::TypeIdentity;

use crate::ast::Collation;
use crate::catalog::Catalog;
use crate::catalog::domain::display_name;
use crate::catalog::table::Table;
use crate::catalog::user_type::OID_OFFSET;
use crate::catalog::view::View;
use crate::error::Result;

/// The key prefix of composite types.
pub const COMPOSITES_PREFIX: &[u8] = b"y";

/// The bit that is set in the OIDs of array types of row types; the next number, which other types
/// use for their arrays, may belong to another object.
pub const ROW_ARRAY: u32 = 0x2000_0000;

/// A composite type as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositeRecord {
    /// Its number. The next number is that of its array type, the one after that of the relation
    /// that system views show for it.
    pub number: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its attributes, including dropped ones, in order.
    pub attributes: Vec<AttributeRecord>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// An attribute as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeRecord {
    /// Its name.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
    /// Modifier of its type.
    pub modifier: i32,
    /// True if it was dropped: stored values retain its position, and it is hidden.
    pub dropped: bool,
    /// Its collation, if it differs from that of its type.
    pub collation: Option<Collation>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A composite type.
#[derive(Debug, Clone)]
pub struct Composite {
    /// The stored record; `None` for the row type of a relation.
    pub record: Option<CompositeRecord>,
    /// Its number.
    pub number: u32,
    /// The type.
    pub composite_type: Arc<CompositeType>,
}

impl CompositeRecord {
    /// Returns the position of an attribute by name.
    pub fn attribute_index(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|one| !one.dropped && one.name == name)
    }
}

impl Composite {
    /// Returns the type that a record describes.
    ///
    /// # Errors
    ///
    /// XX001 for an attribute of an unknown type.
    pub fn of_record(record: CompositeRecord, catalog: &Catalog) -> Result<Composite> {
        let mut attributes = Vec::with_capacity(record.attributes.len());
        for (number, one) in record.attributes.iter().enumerate().filter(|(_, one)| !one.dropped) {
            let sql_type = catalog.stored_type(one.type_oid, one.modifier)?;
            attributes.push(Attribute { name: one.name.as_str().into(), sql_type, number });
        }
        let oid = record.number + OID_OFFSET;
        let name = (record.schema.as_str(), record.name.as_str());
        let composite_type = composite_type((oid, oid + 1), name, attributes);
        Ok(Composite { number: record.number, record: Some(record), composite_type })
    }

    /// Returns the row type of a table.
    pub fn of_table(table: &Table) -> Composite {
        let attribute = |number: usize| {
            let column = &table.columns[number];
            Attribute {
                name: column.name.as_str().into(),
                sql_type: column.sql_type.clone(),
                number,
            }
        };
        let attributes = table.visible_columns().map(attribute).collect();
        Composite::of_rows(table.oid, (&table.schema, &table.name), attributes)
    }

    /// Returns the row type of a view.
    pub fn of_view(view: &View) -> Composite {
        let columns = view.columns.iter().enumerate();
        let attributes = columns.map(|(number, column)| Attribute {
            name: column.name.as_str().into(),
            sql_type: column.sql_type.clone(),
            number,
        });
        Composite::of_rows(view.oid, (&view.schema, &view.name), attributes.collect())
    }

    fn of_rows(number: u32, name: (&str, &str), attributes: Vec<Attribute>) -> Composite {
        let oid = number + OID_OFFSET;
        let composite_type = composite_type((oid, oid | ROW_ARRAY), name, attributes);
        Composite { record: None, number, composite_type }
    }

    /// Returns whether it is the row type of a relation.
    pub fn is_of_rows(&self) -> bool {
        self.record.is_none()
    }

    /// Returns whether the type of an attribute has one of these OIDs.
    pub fn has_attribute_of(&self, oids: [u32; 2]) -> bool {
        let mut attributes = self.composite_type.attributes().iter();
        attributes.any(|one| oids.contains(&one.sql_type.oid()))
    }

    /// Returns the type with another name.
    #[must_use]
    pub fn renamed(&self, schema: String, name: String) -> Composite {
        let TypeIdentity { oid, array_oid, .. } = *self.composite_type.identity();
        let attributes = self.composite_type.attributes().to_vec();
        let composite_type = composite_type((oid, array_oid), (&schema, &name), attributes);
        let record = self.record.clone().map(|one| CompositeRecord { schema, name, ..one });
        Composite { record, number: self.number, composite_type }
    }

    /// Returns the type of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&SqlType> {
        let mut attributes = self.composite_type.attributes().iter();
        attributes.find(|one| *one.name == *name).map(|one| &one.sql_type)
    }
}

fn composite_type(
    oids: (u32, u32),
    (schema, name): (&str, &str),
    attributes: Vec<Attribute>,
) -> Arc<CompositeType> {
    let identity = TypeIdentity::new(oids, (schema, name), display_name(schema, name));
    Arc::new(CompositeType::new(identity, attributes))
}
