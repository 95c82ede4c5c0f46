//! COMMENT ON, and the comments of dropped and renamed objects.

use std::collections::BTreeSet;

use crate::ast::{self, ColumnName, CommentSubject, Ident, ObjectKind, RoleAttribute, TableName};
use crate::catalog::access::row_security::no_policy;
use crate::catalog::comment::{CommentRecord, CommentSubjectKey};
use crate::catalog::object::Object;
use crate::catalog::trigger::no_trigger;
use crate::catalog::user_type::UserType;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, CatalogRelation, ObjectId};
use crate::ddl::objects::NameUse;
use crate::ddl::{Ddl, no_table, undefined_table};
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Sets or removes the comment of an object.
    pub fn comment_on(&mut self, statement: &ast::CommentOn) -> Result<()> {
        let catalog = self.catalog();
        let subject = self.subject(&catalog, &statement.subject)?;
        self.check_may_comment(&catalog, &subject)?;
        let text = statement.text.as_deref();
        // The row of an extension also records that it was created.
        let text = match subject {
            CommentSubjectKey::Extension(..) => Some(text.unwrap_or_default()),
            _ => text,
        };
        self.set_comment(subject, text)
    }

    /// Checks that the current role owns the subject of a comment, or the object that it is a part
    /// of.
    fn check_may_comment(&self, catalog: &Catalog, subject: &CommentSubjectKey) -> Result<()> {
        let id = match subject {
            CommentSubjectKey::Policy(number, name) => {
                return self.check_owns(catalog, &Object::Policy(*number, name.clone()));
            }
            CommentSubjectKey::Relation(number)
            | CommentSubjectKey::PrimaryKey(number)
            | CommentSubjectKey::Column(number, _)
            | CommentSubjectKey::Constraint(number, _)
            | CommentSubjectKey::Trigger(number, _) => {
                match (catalog.table(*number), catalog.view(*number), catalog.sequence(*number)) {
                    (Some(_), ..) => ObjectId::Table(*number),
                    (_, Some(_), _) => ObjectId::View(*number),
                    (.., Some(_)) => ObjectId::Sequence(*number),
                    _ if catalog.user_type(*number).is_some() => ObjectId::Type(*number),
                    // An index, which was checked when it was looked up.
                    _ => return Ok(()),
                }
            }
            CommentSubjectKey::Database(number) => {
                let role = self.roles.current.number;
                let Some(database) = catalog.database(*number) else { return Ok(()) };
                if !catalog.has_privileges_of(role, database.owner()) {
                    bail!(INSUFFICIENT_PRIVILEGE: "must be owner of database {}", database.name);
                }
                return Ok(());
            }
            // They were checked when they were looked up.
            _ => return Ok(()),
        };
        self.check_owns(catalog, &Object::Whole(id))
    }

    pub(super) fn set_comment(
        &mut self,
        subject: CommentSubjectKey,
        text: Option<&str>,
    ) -> Result<()> {
        match text {
            None => self.remove_object(&CatalogEntry::Comment(subject)),
            Some(text) => {
                let comment = CommentRecord { text: text.to_owned(), unknown: Default::default() };
                self.store_object(CatalogObject::Comment(subject, comment.into()))
            }
        }
    }

    /// Removes the comments of a dropped object and of its parts.
    pub(super) fn forget_comments(&mut self, object: &Object) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let own = object.comment_key(&catalog);
        let mut wholes = Vec::new();
        match object {
            Object::Whole(ObjectId::Table(number)) => {
                let indexes = catalog.table(*number).into_iter().flat_map(|table| &table.indexes);
                wholes.extend(indexes.map(|index| index.oid));
                wholes.push(*number);
            }
            Object::Whole(ObjectId::View(number))
            | Object::Whole(ObjectId::Sequence(number))
            | Object::Whole(ObjectId::Type(number)) => {
                wholes.push(*number);
            }
            _ => {}
        }
        let of_wholes = wholes.into_iter().flat_map(|number| catalog.comments_of(number));
        let gone: BTreeSet<_> = own.into_iter().chain(of_wholes.cloned()).collect();
        let mut gone = gone.into_iter().filter(|subject| catalog.comment(subject).is_some());
        gone.try_for_each(|subject| self.set_comment(subject, None))
    }

    /// Moves the comment of a constraint or trigger to its new name.
    pub(super) fn move_comment(
        &mut self,
        old: CommentSubjectKey,
        new: CommentSubjectKey,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(text) = catalog.comment(&old) else { return Ok(()) };
        self.set_comment(old, None)?;
        self.set_comment(new, Some(text))
    }

    fn subject(
        &mut self,
        catalog: &Catalog,
        written: &CommentSubject,
    ) -> Result<CommentSubjectKey> {
        match written {
            CommentSubject::Object(reference) => {
                let found = self.named_object(catalog, reference, (NameUse::Comment, false))?;
                if matches!(found, Some(Object::Whole(ObjectId::Role(_))))
                    && !self.has_attribute(catalog, RoleAttribute::CreateRole)
                {
                    bail!(INSUFFICIENT_PRIVILEGE: "must have CREATEROLE privilege");
                }
                let key = found.and_then(|object| object.comment_key(catalog));
                key.ok_or_else(|| undefined_table(&reference.name))
            }
            CommentSubject::Database(name) => {
                Ok(CommentSubjectKey::Database(self.database(&name.value)?.oid))
            }
            CommentSubject::DomainConstraint(constraint, name) => {
                let domain = self.known_domain(catalog, name)?;
                let constraint = &constraint.value;
                if !domain.record.checks.iter().any(|one| one.name == *constraint) {
                    let shown = catalog.display_type(&UserType::Domain(domain), &self.path);
                    bail!(UNDEFINED_OBJECT: "constraint \"{constraint}\" for domain {shown} does not exist");
                }
                Ok(CommentSubjectKey::Constraint(domain.record.number, constraint.clone()))
            }
            CommentSubject::Trigger(trigger, name) => {
                let table = match self.commented(catalog, name)? {
                    CatalogRelation::Table(table) => table,
                    CatalogRelation::View(view) => view.as_table(),
                    other => return Err(no_trigger(&trigger.value, &other.name().name)),
                };
                if table.trigger(&trigger.value).is_none() {
                    return Err(no_trigger(&trigger.value, &table.name));
                }
                Ok(CommentSubjectKey::Trigger(table.oid, trigger.value.clone()))
            }
            CommentSubject::Policy(policy, name) => {
                let table = match self.commented(catalog, name)? {
                    CatalogRelation::Table(table) => table,
                    other => return Err(no_policy(&policy.value, &other.name().name)),
                };
                match table.row_security.policy(&policy.value) {
                    None => Err(no_policy(&policy.value, &table.name)),
                    Some(_) => Ok(CommentSubjectKey::Policy(table.oid, policy.value.clone())),
                }
            }
            CommentSubject::Column(parts) => self.commented_column(catalog, parts),
            CommentSubject::Constraint(constraint, name) => {
                let table = match self.commented(catalog, name)? {
                    CatalogRelation::Table(table) => table,
                    _ => return Err(no_table(catalog, name, &self.path)),
                };
                let constraint = &constraint.value;
                let known = table.constraints.checks.iter().any(|one| one.name == *constraint)
                    || table.foreign_keys.iter().any(|one| one.name == *constraint)
                    || table.indexes.iter().any(|one| one.constraint && one.name == *constraint)
                    || table.primary_key_name == *constraint;
                if !known {
                    bail!(UNDEFINED_OBJECT: "constraint \"{constraint}\" for table \"{}\" does not exist", table.name);
                }
                Ok(CommentSubjectKey::Constraint(table.oid, constraint.clone()))
            }
        }
    }

    fn commented<'c>(&self, catalog: &'c Catalog, name: &TableName) -> Result<CatalogRelation<'c>> {
        let found = self.find(catalog, name);
        found.ok_or_else(|| undefined_table(name))
    }

    /// Returns the column of `t.c`, `s.t.c`, `t.f.c` or `s.t.f.c`; schemas have precedence over
    /// families.
    fn commented_column(&self, catalog: &Catalog, parts: &[Ident]) -> Result<CommentSubjectKey> {
        let [owner @ .., column] = parts else {
            bail!(SYNTAX_ERROR: "column name must be qualified")
        };
        let relation = |parts: &[Ident]| match parts {
            [name] => Some(TableName { schema: None, name: name.clone() }),
            [schema, name] => Some(TableName { schema: Some(schema.clone()), name: name.clone() }),
            _ => None,
        };
        let of_family = owner.split_last().and_then(|(family, owner)| {
            let name = relation(owner)?;
            matches!(self.find(catalog, &name), Some(CatalogRelation::Table(_)))
                .then(|| (name, Some(family.clone())))
        });
        let plain = relation(owner).map(|name| (name, None));
        let is_known = |(name, _): &(TableName, _)| self.find(catalog, name).is_some();
        let found = plain.clone().filter(is_known).or(of_family).or(plain);
        let Some((name, family)) = found else {
            bail!(UNDEFINED_TABLE: "relation \"{}\" does not exist", parts[1].value)
        };
        let name = &name;
        let wanted = ColumnName { family, name: column.clone() };
        let (number, position) = match self.commented(catalog, name)? {
            CatalogRelation::Table(table) => (table.oid, table.find_column(&wanted)?),
            CatalogRelation::View(view) => {
                let position = view.columns.iter().position(|one| one.name == column.value);
                (view.oid, position)
            }
            other => {
                let kinds = if other.kind() == ObjectKind::Index { "indexes" } else { "sequences" };
                bail!(WRONG_OBJECT_TYPE: "cannot set comment on relation \"{}\"", name.name.value;
                    detail "This operation is not supported for {kinds}.");
            }
        };
        let position = position.ok_or_else(|| {
            let (column, relation) = (&column.value, &name.name.value);
            err!(UNDEFINED_COLUMN: "column \"{column}\" of relation \"{relation}\" does not exist")
        })?;
        Ok(CommentSubjectKey::Column(number, position as u32))
    }
}
