//! `ALTER … RENAME TO`, `ALTER … SET SCHEMA`, and the move of a schema's content when the schema
//! is renamed.
//!
//! Dependent objects reference a relation by its number. Only defaults name sequences, in their
//! text.

use store::transaction::TableLockMode;

use crate::ast;
use crate::ast::{ObjectKind, ObjectReference, RenameTarget, TableName};
use crate::catalog::name::{ObjectName, is_temporary};
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;
use crate::catalog::{Catalog, CatalogObject, CatalogRelation};
use crate::ddl::dependency::{self, Object, takes_from};
use crate::ddl::sequence::replace_name;
use crate::ddl::{Ddl, no_schema, undefined_table};
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Renames an object, moves it to another schema or changes its owner.
    pub fn rename(&mut self, statement: &ast::Rename) -> Result<()> {
        let (catalog, to) = (self.catalog(), &statement.to);
        match &statement.object {
            ObjectReference::Object(ObjectKind::Schema, name) => {
                self.alter_schema(&name.name.value, to)
            }
            ObjectReference::Object(kind, name) => self.rename_relation(statement, *kind, name),
            ObjectReference::Type(name) => {
                let known = self.altered_type(&catalog, name)?;
                self.alter_type_name(&catalog, &known, to)
            }
            ObjectReference::Domain(name) => {
                let known = UserType::Domain(self.known_domain(&catalog, name)?);
                self.alter_type_name(&catalog, &known, to)
            }
            ObjectReference::Routine(word, reference) => {
                self.tell_column_types(&catalog, reference.types())?;
                let known = self.known_function(&catalog, reference, *word)?;
                let old = (known.record.schema.as_str(), known.record.name.as_str());
                match self.new_name(&catalog, old, to)? {
                    Some(new) => self.rename_function(&known, &new.schema, &new.name),
                    None => Ok(()),
                }
            }
            ObjectReference::Extension(_) => Ok(()),
        }
    }

    /// Returns the new name of an object; `None` if only its owner changes.
    ///
    /// # Errors
    ///
    /// 3F000 for a schema that does not exist; those of [`Ddl::check_owner`].
    pub(super) fn new_name(
        &self,
        catalog: &Catalog,
        (schema, name): (&str, &str),
        to: &RenameTarget,
    ) -> Result<Option<ObjectName>> {
        Ok(match to {
            RenameTarget::Owner(role) => self.check_owner(role).map(|()| None)?,
            RenameTarget::Schema(to) if catalog.schema(&to.value).is_none() => {
                return Err(no_schema(&to.value));
            }
            RenameTarget::Schema(to) => Some(ObjectName::new(&to.value, name)),
            RenameTarget::Name(to) => Some(ObjectName::new(schema, &to.value)),
        })
    }

    /// Renames or moves a table, view, sequence or index.
    fn rename_relation(
        &mut self,
        statement: &ast::Rename,
        kind: ObjectKind,
        name: &TableName,
    ) -> Result<()> {
        let catalog = self.catalog();
        let Some(relation) = self.find(&catalog, name) else {
            let missing = Error { position: None, ..undefined_table(name) };
            return self.missing_object(missing, statement.if_exists);
        };
        check_kind(relation, (kind, &name.name.value), &statement.to)?;
        let old = relation.name();
        let of = (old.schema.as_str(), old.name.as_str());
        let Some(new) = self.new_name(&catalog, of, &statement.to)? else { return Ok(()) };
        if new.schema != old.schema && [&new, &old].iter().any(|name| is_temporary(&name.schema)) {
            bail!(FEATURE_NOT_SUPPORTED: "cannot move objects into or out of temporary schemas");
        }
        if new == old && matches!(statement.to, RenameTarget::Schema(_)) {
            return Ok(());
        }
        if catalog.relation(&new.schema, &new.name).is_some() {
            let message = match &statement.to {
                RenameTarget::Name(_) | RenameTarget::Owner(_) => {
                    format!("relation \"{}\" already exists", new.name)
                }
                RenameTarget::Schema(schema) => {
                    format!(
                        "relation \"{}\" already exists in schema \"{}\"",
                        new.name, schema.value
                    )
                }
            };
            bail!(DUPLICATE_TABLE: message);
        }
        if let CatalogRelation::Table(table) = relation {
            self.refuse_named_by_coprocessor(table)?;
        }
        let object = match relation {
            CatalogRelation::Table(table) => Some(Object::Table(table.oid)),
            CatalogRelation::View(view) => Some(Object::View(view.oid)),
            _ => None,
        };
        if let Some(object) = object {
            dependency::refuse_named_in_body(&catalog, self.system.as_ref(), &object)?;
        }
        if matches!(relation, CatalogRelation::Table(_) | CatalogRelation::View(_)) {
            self.check_type_name(&catalog, &new.schema, &new.name)?;
        }
        if let (CatalogRelation::Sequence(sequence), RenameTarget::Schema(_)) =
            (relation, &statement.to)
            && sequence.owned_by.is_some()
        {
            bail!(FEATURE_NOT_SUPPORTED: "cannot move an owned sequence into another schema");
        }
        self.put_name(&catalog, relation, &new)
    }

    /// Moves all relations of a schema to another one, which is empty.
    pub(super) fn move_relations(&mut self, from: &str, to: &str) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(schema) = catalog.schema(from) else { return Ok(()) };
        for name in schema.relations.keys() {
            let Some(relation) = catalog.relation(from, name) else { continue };
            match relation {
                CatalogRelation::Index(..) | CatalogRelation::PrimaryKey(_) => continue,
                CatalogRelation::Table(table) => self.refuse_named_by_coprocessor(table)?,
                CatalogRelation::View(_) | CatalogRelation::Sequence(_) => {}
            }
            self.put_name(&catalog, relation, &ObjectName::new(to, name))?;
        }
        for function in catalog.functions().filter(|one| one.record.schema == from) {
            self.rename_function(function, to, &function.record.name)?;
        }
        for known in catalog.types().filter(|known| known.schema() == from && !known.is_of_rows()) {
            self.rename_type(known, to, known.name())?;
        }
        Ok(())
    }

    fn put_name(
        &mut self,
        catalog: &Catalog,
        relation: CatalogRelation<'_>,
        new: &ObjectName,
    ) -> Result<()> {
        match relation {
            CatalogRelation::Table(table) => {
                self.change_record(table.oid, |_, record| {
                    record.schema.clone_from(&new.schema);
                    record.name.clone_from(&new.name);
                    record.descriptor.name.clone_from(&new.name);
                })?;
                if let Some(view) = catalog.view(table.oid) {
                    self.rename_view(view, new)?;
                }
                if table.schema == new.schema {
                    return Ok(());
                }
                // Sequences owned by the table move with it.
                let owned = catalog.sequences();
                let owned = owned.filter(|one| one.owned_by.is_some_and(|by| by.0 == table.oid));
                for sequence in owned.filter(|one| one.schema != new.schema) {
                    let new = ObjectName::new(&new.schema, &sequence.name);
                    self.put_name(catalog, CatalogRelation::Sequence(sequence), &new)?;
                }
                Ok(())
            }
            CatalogRelation::PrimaryKey(table) => self.change_record(table.oid, |_, record| {
                record.primary_key_name.clone_from(&new.name);
            }),
            CatalogRelation::Index(table, index) => self.change_record(table.oid, |_, record| {
                let mut indexes = record.indexes.iter_mut();
                if let Some(one) = indexes.find(|one| one.name == index.name) {
                    one.name.clone_from(&new.name);
                    one.descriptor.name.clone_from(&new.name);
                }
            }),
            CatalogRelation::View(view) => self.rename_view(view, new),
            CatalogRelation::Sequence(sequence) => {
                let mut renamed = sequence.as_ref().clone();
                renamed.schema.clone_from(&new.schema);
                renamed.name.clone_from(&new.name);
                let old = ObjectName::new(&sequence.schema, &sequence.name);
                let catalog = self.changes.catalog(self.engine);
                let oid = sequence.oid;
                self.store_object(CatalogObject::Sequence(renamed.into()))?;
                for table in catalog.tables() {
                    let defaults = table.columns.iter().filter_map(|one| one.default.as_ref());
                    if !defaults.into_iter().any(|one| takes_from(&catalog, one, oid)) {
                        continue;
                    }
                    self.lock_table(table.id, TableLockMode::AccessExclusive)?;
                    self.change_record(table.oid, |_, record| {
                        for default in
                            record.columns.iter_mut().filter_map(|one| one.default.as_mut())
                        {
                            *default = replace_name(default, &old.to_string(), new);
                        }
                    })?;
                }
                Ok(())
            }
        }
    }

    fn rename_view(&mut self, view: &View, new: &ObjectName) -> Result<()> {
        let mut view = view.clone();
        view.schema.clone_from(&new.schema);
        view.name.clone_from(&new.name);
        self.store_view(view)
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

/// Checks that the relation is of the statement's kind. `ALTER TABLE` and `ALTER INDEX` rename any
/// kind.
fn check_kind(
    relation: CatalogRelation<'_>,
    (kind, name): (ObjectKind, &str),
    to: &RenameTarget,
) -> Result<()> {
    if relation.kind() == "index" && matches!(to, RenameTarget::Schema(_)) {
        bail!(WRONG_OBJECT_TYPE: "cannot change schema of index \"{name}\""; hint "Change the schema of the table instead.");
    }
    if relation.kind() == kind.name() || matches!(kind, ObjectKind::Table | ObjectKind::Index) {
        return Ok(());
    }
    bail!(WRONG_OBJECT_TYPE: "\"{name}\" is not a {}", kind.name())
}
