//! `ALTER … RENAME TO`, `ALTER … SET SCHEMA` and `ALTER … OWNER TO`.
//!
//! Dependent objects reference others by number. Only texts name sequences and types, and function
//! calls.

use std::sync::Arc;

use store::transaction::TableLockMode;

use crate::ast::{self, NameSpace, RenameTarget};
use crate::catalog::access::privilege;
use crate::catalog::function::{Function, FunctionRecord};
use crate::catalog::name::{ObjectName, is_temporary};
use crate::catalog::object::Object;
use crate::catalog::schema::SchemaRecord;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, ObjectId};
use crate::ddl::dependency::{self, DroppedObject, takes_from};
use crate::ddl::objects::{NameUse, taken};
use crate::ddl::sequence::replace_name;
use crate::ddl::{Ddl, no_schema};
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Renames an object, moves it to another schema or changes its owner. With IF EXISTS, a
    /// missing object is only a notice.
    pub fn rename(&mut self, statement: &ast::Rename) -> Result<()> {
        let catalog = self.catalog();
        let usage = (NameUse::Alter, statement.if_exists);
        let Some(object) = self.named_object(&catalog, &statement.object, usage)? else {
            return Ok(());
        };
        let Some(old) = object.name(&catalog) else { return Ok(()) };
        let new = match &statement.to {
            RenameTarget::Owner(role) => return self.change_owner(&object, role),
            RenameTarget::Schema(_) if matches!(object, Object::Index(..)) => {
                bail!(WRONG_OBJECT_TYPE: "cannot change schema of index \"{}\"", old.name;
                    hint "Change the schema of the table instead.");
            }
            RenameTarget::Schema(to) if catalog.schema(&to.value).is_none() => {
                return Err(no_schema(&to.value));
            }
            RenameTarget::Schema(to) if to.value == old.schema => return Ok(()),
            RenameTarget::Schema(to) => ObjectName::new(&to.value, &old.name),
            RenameTarget::Name(to) => ObjectName::new(&old.schema, &to.value),
        };
        if new.schema != old.schema && [&new, &old].iter().any(|name| is_temporary(&name.schema)) {
            bail!(FEATURE_NOT_SUPPORTED: "cannot move objects into or out of temporary schemas");
        }
        self.check_new_name(&catalog, &object, (&old, &new))?;
        let role = self.roles.current.number;
        match object {
            Object::Whole(ObjectId::Schema(_)) => {
                self.check_database_privilege(&catalog, privilege::CREATE)?;
            }
            _ => self.check_may_create_in(&catalog, (role, &new.schema))?,
        }
        self.put_name(&object, &new)
    }

    /// Checks that an existing object can have another name.
    fn check_new_name(
        &self,
        catalog: &Catalog,
        object: &Object,
        (old, new): (&ObjectName, &ObjectName),
    ) -> Result<()> {
        let Some(kind) = object.kind(catalog) else { return Ok(()) };
        let space = kind.descriptor().name_space;
        let moves = old.schema != new.schema;
        if let Some(error) = taken(catalog, space, new) {
            let place =
                if moves { format!(" in schema \"{}\"", new.schema) } else { String::new() };
            return Err(Error { message: format!("{}{place}", error.message), ..error });
        }
        match object {
            Object::Whole(ObjectId::Schema(_)) => crate::ddl::schema::check_name(&new.name)?,
            Object::Whole(ObjectId::Table(_)) | Object::Whole(ObjectId::View(_)) => {
                dependency::refuse_named_in_body(catalog, self.system.as_ref(), object)?;
                taken(catalog, NameSpace::Type, new).map_or(Ok(()), Err)?;
            }
            Object::Whole(ObjectId::Sequence(number))
                if moves && catalog.sequence(*number).is_some_and(|one| one.owned_by.is_some()) =>
            {
                bail!(FEATURE_NOT_SUPPORTED: "cannot move an owned sequence into another schema");
            }
            Object::Whole(ObjectId::Function(number)) => {
                let Some(known) = catalog.function(*number) else { return Ok(()) };
                let mut named = catalog.functions_in(&new.schema, &new.name);
                if named.any(|one| one.parameters == known.parameters) {
                    bail!(DUPLICATE_FUNCTION: "function {} already exists in schema \"{}\"",
                        catalog.display_signature(&new.name, &known.parameters, &self.path), new.schema);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives an object its new name, also in the texts that contain it.
    fn put_name(&mut self, object: &Object, new: &ObjectName) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        match object {
            Object::Whole(ObjectId::Schema(number)) => {
                for content in dependency::content_of_schema(&catalog, *number) {
                    let Some(name) = content.name(&catalog) else { continue };
                    self.put_name(&content, &ObjectName::new(&new.name, &name.name))?;
                }
                let renamed = SchemaRecord {
                    oid: *number,
                    name: new.name.clone(),
                    unknown: Default::default(),
                };
                self.store_object(CatalogObject::Schema(Arc::new(renamed)))
            }
            Object::Whole(ObjectId::Table(number)) => self.rename_table(&catalog, *number, new),
            Object::Whole(ObjectId::View(number)) => self.rename_view(&catalog, *number, new),
            Object::Whole(ObjectId::Sequence(number)) => {
                self.rename_sequence(&catalog, *number, new)
            }
            Object::Whole(ObjectId::Type(number)) => match catalog.user_type(*number).cloned() {
                Some(known) => self.rename_type(&catalog, &known, new),
                None => Ok(()),
            },
            Object::Whole(ObjectId::Function(number)) => match catalog.function(*number).cloned() {
                Some(known) => self.rename_function(&catalog, &known, new),
                None => Ok(()),
            },
            Object::Index(table, name) => self.change_record(*table, |_, record| {
                if record.primary_key_name == *name {
                    record.primary_key_name.clone_from(&new.name);
                }
                for index in record.indexes.iter_mut().filter(|one| one.name == *name) {
                    index.name.clone_from(&new.name);
                    Arc::make_mut(&mut index.descriptor).name.clone_from(&new.name);
                }
            }),
            _ => Ok(()),
        }
    }

    fn rename_table(&mut self, catalog: &Catalog, number: u32, new: &ObjectName) -> Result<()> {
        let Some(table) = catalog.table(number) else { return Ok(()) };
        self.refuse_named_by_coprocessor(table)?;
        self.change_record(number, |_, record| {
            record.schema.clone_from(&new.schema);
            record.name.clone_from(&new.name);
            Arc::make_mut(&mut record.descriptor).name.clone_from(&new.name);
        })?;
        self.rename_view(catalog, number, new)?;
        if table.schema == new.schema {
            return Ok(());
        }
        // Sequences owned by the table move with it.
        let owned = catalog.sequences();
        let owned = owned.filter(|one| one.owned_by.is_some_and(|by| by.0 == number));
        for sequence in owned.filter(|one| one.schema != new.schema) {
            let new = ObjectName::new(&new.schema, &sequence.name);
            self.put_name(&Object::Whole(ObjectId::Sequence(sequence.oid)), &new)?;
        }
        Ok(())
    }

    /// Renames a view; does nothing if there is none with this number.
    fn rename_view(&mut self, catalog: &Catalog, number: u32, new: &ObjectName) -> Result<()> {
        let Some(view) = catalog.view(number) else { return Ok(()) };
        let mut view = view.as_ref().clone();
        view.schema.clone_from(&new.schema);
        view.name.clone_from(&new.name);
        self.store_view(view)
    }

    /// Renames a sequence, also in the defaults that read it.
    fn rename_sequence(&mut self, catalog: &Catalog, number: u32, new: &ObjectName) -> Result<()> {
        let Some(sequence) = catalog.sequence(number) else { return Ok(()) };
        let old = ObjectName::new(&sequence.schema, &sequence.name).to_string();
        let mut renamed = sequence.as_ref().clone();
        renamed.schema.clone_from(&new.schema);
        renamed.name.clone_from(&new.name);
        self.store_object(CatalogObject::Sequence(renamed.into()))?;
        for entry in catalog.possible_sequence_users(number) {
            let CatalogEntry::Object(ObjectId::Table(table)) = entry else { continue };
            let Some(table) = catalog.table(table) else { continue };
            let mut defaults = table.columns.iter().filter_map(|one| one.default.as_ref());
            if !defaults.any(|default| takes_from(catalog, default, number)) {
                continue;
            }
            self.lock_table(table.id, TableLockMode::AccessExclusive)?;
            // Defaults of tables of other owners name the sequence, too.
            self.with_others(|ddl| {
                ddl.change_record(table.oid, |_, record| {
                    let defaults = record.columns.iter_mut();
                    for default in defaults.filter_map(|one| one.default.as_mut()) {
                        *default = replace_name(default, &old, new);
                    }
                })
            })?;
        }
        Ok(())
    }

    /// Renames a function without dependents.
    fn rename_function(
        &mut self,
        catalog: &Catalog,
        known: &Function,
        new: &ObjectName,
    ) -> Result<()> {
        let object = Object::Whole(ObjectId::Function(known.record.number));
        let dependents = dependency::dropped_objects(catalog, self.system.as_ref(), &[object]);
        // Triggers know their function by its number.
        let is_named = |one: &&DroppedObject| !matches!(one.object, Object::Trigger(..));
        if dependents.iter().filter(is_named).count() > 1 {
            let what = "renaming or moving a function that is in use";
            let hint = "Drop the dependent objects and create them again.";
            return Err(Error::not_supported(what, hint));
        }
        let ObjectName { schema, name } = new.clone();
        let record = FunctionRecord { schema, name, ..known.record.clone() };
        self.store_object(CatalogObject::Function(Arc::new(Function::of_record(record, catalog)?)))
    }

    /// Rejects a rename of a table that coprocessors write to, because they know it by name.
    fn refuse_named_by_coprocessor(&self, table: &crate::catalog::table::Table) -> Result<()> {
        let writers = self.engine.writers_to(table.id);
        let Some((_, writer)) = writers.first() else { return Ok(()) };
        let what =
            format!("renaming a table that coprocessor \"{}\" writes to", writer.record.name);
        Err(Error::not_supported(what, "Detach the coprocessor first."))
    }
}
