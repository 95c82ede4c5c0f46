//! CREATE TYPE of composite types, and changes of their attributes.
//!
//! Stored values identify attributes by number: adding or dropping one rewrites no row.

use types::{DataType, SqlType};

use crate::ast::{self, AttributeChange, ObjectKind};
use crate::binder::EmptySystemCatalog;
use crate::catalog::composite::{AttributeRecord, Composite, CompositeRecord};
use crate::catalog::object::Object;
use crate::catalog::table::Table;
use crate::catalog::user_type::{OID_OFFSET, UserType};
use crate::catalog::{Catalog, CatalogObject, ObjectId, collation};
use crate::ddl::Ddl;
use crate::ddl::dependency;
use crate::error::{Error, Result};
impl Ddl<'_> {
    pub(super) fn create_composite(&mut self, statement: &ast::CreateComposite) -> Result<()> {
        let catalog = self.catalog();
        let schema = self.creation_schema(&catalog, &statement.name)?;
        let name = statement.name.name.value.clone();
        self.name_exists(&catalog, (ObjectKind::Type, &schema, &name), false)?;
        self.name_exists(&catalog, (ObjectKind::Table, &schema, &name), false)?;
        let number = self.take_ids(3)?;
        let mut record = CompositeRecord {
            number,
            schema,
            name,
            attributes: Vec::new(),
            unknown: Default::default(),
        };
        for (name, type_name) in &statement.attributes {
            if record.attribute_index(&name.value).is_some() {
                bail!(DUPLICATE_COLUMN: "column \"{}\" specified more than once", name.value);
            }
            record.attributes.push(self.attribute(&catalog, name, type_name)?);
        }
        self.store_object(CatalogObject::of_type(UserType::Composite(Composite::of_record(
            record, &catalog,
        )?)))
    }

    fn attribute(
        &self,
        catalog: &Catalog,
        name: &ast::Ident,
        type_name: &ast::TypeName,
    ) -> Result<AttributeRecord> {
        let sql_type = catalog.type_named(type_name, &self.path);
        let sql_type = sql_type.map_err(|error| Error { position: None, ..error })?;
        check_attribute_type(&name.value, &sql_type)?;
        let (type_oid, modifier) = sql_type.stored_oid_and_modifier();
        Ok(AttributeRecord {
            name: name.value.clone(),
            type_oid,
            modifier,
            dropped: false,
            collation: collation::written(type_name, &sql_type)?,
            unknown: Default::default(),
        })
    }

    /// Changes attributes of a composite type.
    pub(super) fn alter_attributes(
        &mut self,
        statement: &ast::AlterType,
        changes: &[AttributeChange],
    ) -> Result<()> {
        let catalog = self.catalog();
        let schema = statement.name.schema.as_ref().map(|schema| schema.value.as_str());
        let written = super::name_as_written(&statement.name);
        let found = catalog.find_type(schema, &statement.name.name.value, &self.path);
        let known = match found.map(AsRef::as_ref) {
            Some(UserType::Composite(composite)) => composite.clone(),
            None if super::objects::built_in(schema, &statement.name.name.value).is_none() => {
                bail!(UNDEFINED_TABLE: "relation \"{written}\" does not exist");
            }
            _ => return Err(self.no_composite(&written)),
        };
        let Some(mut record) = known.record else { return Err(self.no_composite(&written)) };
        for change in changes {
            self.change_attribute(&catalog, &mut record, change)?;
        }
        self.replace_type(UserType::Composite(Composite::of_record(record, &catalog)?))
    }

    fn no_composite(&self, written: &str) -> Error {
        err!(WRONG_OBJECT_TYPE: "\"{written}\" is not a composite type")
    }

    fn change_attribute(
        &mut self,
        catalog: &Catalog,
        record: &mut CompositeRecord,
        change: &AttributeChange,
    ) -> Result<()> {
        let type_name = record.name.clone();
        let is_there = |name: &str| {
            Err(
                err!(DUPLICATE_COLUMN: "column \"{name}\" of relation \"{type_name}\" already exists"),
            )
        };
        let missing =
            |name: &str| format!("column \"{name}\" of relation \"{type_name}\" does not exist");
        let place = |record: &CompositeRecord, name: &str| {
            let found = record.attribute_index(name);
            found.ok_or_else(|| err!(UNDEFINED_COLUMN: missing(name)))
        };
        match change {
            AttributeChange::Add { name, .. } if record.attribute_index(&name.value).is_some() => {
                return is_there(&name.value);
            }
            AttributeChange::Add { name, type_name } => {
                let attribute = self.attribute(catalog, name, type_name)?;
                let sql_type = catalog.type_named(type_name, &self.path)?;
                refuse_own_rows(catalog, &sql_type, (record.number, &record.name))?;
                record.attributes.push(attribute);
            }
            AttributeChange::Drop { name, if_exists } => {
                let found = record.attribute_index(&name.value);
                match found {
                    Some(at) => record.attributes[at].dropped = true,
                    None => {
                        let missing = err!(UNDEFINED_COLUMN: missing(&name.value));
                        self.missing_object(missing, *if_exists)?;
                    }
                }
            }
            AttributeChange::Rename { name, to } => {
                let at = place(record, &name.value)?;
                if record.attribute_index(&to.value).is_some() {
                    return is_there(&to.value);
                }
                record.attributes[at].name.clone_from(&to.value);
            }
            AttributeChange::Type { name, type_name } => {
                let at = place(record, &name.value)?;
                self.refuse_stored(catalog, record)?;
                let attribute = self.attribute(catalog, name, type_name)?;
                let sql_type = catalog.type_named(type_name, &self.path)?;
                refuse_own_rows(catalog, &sql_type, (record.number, &record.name))?;
                record.attributes[at] = attribute;
            }
        }
        Ok(())
    }

    /// Rejects a change of an attribute's type if values of the composite type are stored.
    fn refuse_stored(&self, catalog: &Catalog, record: &CompositeRecord) -> Result<()> {
        let Some(column) = column_of_type(catalog, record.number) else { return Ok(()) };
        bail!(FEATURE_NOT_SUPPORTED: "cannot alter type \"{}\" because column \"{column}\" uses it", record.name)
    }

    /// Rejects a change of a table whose row type is the type of a stored column.
    pub(super) fn refuse_stored_rows(&self, catalog: &Catalog, table: &Table) -> Result<()> {
        let Some(column) = column_of_type(catalog, table.oid) else { return Ok(()) };
        bail!(FEATURE_NOT_SUPPORTED: "cannot alter table \"{}\" because column \"{column}\" uses its row type", table.name)
    }

    /// Removes an attribute whose type is dropped.
    pub(super) fn remove_attribute(&mut self, number: u32, at: usize) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(known) = catalog.user_type(number) else { return Ok(()) };
        let UserType::Composite(Composite { record: Some(record), .. }) = known.as_ref() else {
            return Ok(());
        };
        let mut record = record.clone();
        if let Some(attribute) = record.attributes.get_mut(at) {
            attribute.dropped = true;
        }
        self.replace_type(UserType::Composite(Composite::of_record(record, &catalog)?))
    }
}

/// Returns a column that stores values of a type: `table.column`.
fn column_of_type(catalog: &Catalog, number: u32) -> Option<String> {
    let going = dependency::dropped_objects(
        catalog,
        &EmptySystemCatalog,
        &[Object::Whole(ObjectId::Type(number))],
    );
    going.iter().find_map(|one| match &one.object {
        Object::Column(table, at) => {
            let table = catalog.table(*table)?;
            Some(format!("{}.{}", table.name, table.columns[*at].name))
        }
        _ => None,
    })
}

/// Rejects a composite type that would contain itself, also through arrays and domains.
pub(super) fn refuse_own_rows(
    catalog: &Catalog,
    sql_type: &SqlType,
    (number, name): (u32, &str),
) -> Result<()> {
    let mut within = Vec::new();
    contained(catalog, &sql_type.base, &mut within);
    if !within.contains(&(number + OID_OFFSET)) {
        return Ok(());
    }
    bail!(INVALID_TABLE_DEFINITION: "composite type {name} cannot be made a member of itself")
}

/// Adds the OIDs of the composite types that a type contains.
fn contained(catalog: &Catalog, data_type: &DataType, found: &mut Vec<u32>) {
    let oid = data_type.element().unwrap_or(data_type).oid();
    if found.contains(&oid) {
        return;
    }
    let Some(UserType::Composite(composite)) = catalog.type_of_oid(oid).map(AsRef::as_ref) else {
        return;
    };
    found.push(oid);
    for attribute in composite.composite_type.attributes() {
        contained(catalog, &attribute.sql_type.base, found);
    }
}

/// Checks that an attribute or a column can have a type.
pub(super) fn check_attribute_type(name: &str, sql_type: &SqlType) -> Result<()> {
    let base = sql_type.base.element().unwrap_or(&sql_type.base);
    let pseudo = base.is_polymorphic()
        || matches!(
            base,
            DataType::Record
                | DataType::CString
                | DataType::Void
                | DataType::Trigger
                | DataType::Unknown
        );
    if !pseudo {
        return Ok(());
    }
    bail!(INVALID_TABLE_DEFINITION: "column \"{name}\" has pseudo-type {}", sql_type.base.sql_name())
}
