//! Objects that statements name: look-up for all kinds of objects, and checks of new names.

mod rename;

use crate::ast::{NameSpace, ObjectKind, ObjectReference, TableName};
use crate::catalog::extension::{Extension, PLPGSQL};
use crate::catalog::name::ObjectName;
use crate::catalog::object::Object;
use crate::catalog::schema::SYSTEM_SCHEMAS;
use crate::catalog::user_type::UserType;
use crate::catalog::{Catalog, CatalogRelation, ObjectId};
use crate::ddl::access::role::no_role;
use crate::ddl::function::check_changeable;
use crate::ddl::{Ddl, name_as_written, no_schema, undefined_table};
use crate::error::{Error, Result, sqlstate};

/// The statement that names an object, on which errors depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ddl) enum NameUse {
    /// ALTER
    Alter,
    /// COMMENT ON
    Comment,
    /// DROP
    Drop,
    /// GRANT and REVOKE
    Grant,
}

impl Ddl<'_> {
    /// Returns the object that a statement names. With IF EXISTS, a missing one is only a notice.
    ///
    /// # Errors
    ///
    /// The SQLSTATE of the kind or 3F000 if it does not exist, 42809 if it is of another kind.
    pub(in crate::ddl) fn named_object(
        &mut self,
        catalog: &Catalog,
        reference: &ObjectReference,
        (usage, if_exists): (NameUse, bool),
    ) -> Result<Option<Object>> {
        self.tell_column_types(catalog, reference.types())?;
        let descriptor = reference.kind.descriptor();
        let name = &reference.name.name.value;
        let found = match descriptor.name_space {
            NameSpace::Relation => self.named_relation(catalog, reference, usage),
            NameSpace::Type => self.named_type(catalog, reference, usage),
            NameSpace::Routine => match self.known_function(catalog, reference) {
                Ok(known) if known.record.is_standard() && usage == NameUse::Drop => {
                    let function = Object::Whole(ObjectId::Function(known.record.number));
                    return Err(required_by_system(&function.describe(catalog, &self.path)));
                }
                Ok(known) => {
                    if usage == NameUse::Alter {
                        check_changeable(&known.record)?;
                    }
                    Ok(Object::Whole(ObjectId::Function(known.record.number)))
                }
                Err(error) => Err(error),
            },
            NameSpace::Schema if usage == NameUse::Drop && SYSTEM_SCHEMAS.contains(&&**name) => {
                return Err(required_by_system(&format!("schema {name}")));
            }
            NameSpace::Schema => match catalog.schema(name) {
                Some(schema) => Ok(Object::Whole(ObjectId::Schema(schema.oid))),
                None => Err(no_schema(name)),
            },
            NameSpace::Role => match catalog.role_named(name) {
                Some(role) => Ok(Object::Whole(ObjectId::Role(role.number))),
                None => Err(no_role(name)),
            },
            NameSpace::Extension => match Extension::named(name) {
                Some(known) if usage == NameUse::Drop && known.number == PLPGSQL.number => {
                    return Err(required_by_system("extension plpgsql"));
                }
                Some(known) if known.schema(catalog).is_some() => {
                    Ok(Object::Extension(known.number))
                }
                _ => Err(err!(UNDEFINED_OBJECT: "extension \"{name}\" does not exist")),
            },
        };
        let missing =
            [descriptor.undefined, sqlstate::INVALID_SCHEMA_NAME, sqlstate::UNDEFINED_TABLE];
        match found {
            Err(error) if missing.contains(&&*error.sqlstate) => {
                self.missing_object(error, if_exists).map(|()| None)
            }
            Ok(object) => {
                match usage {
                    NameUse::Alter | NameUse::Comment => self.check_owns(catalog, &object)?,
                    NameUse::Drop => self.check_may_drop(catalog, &object)?,
                    NameUse::Grant => {}
                }
                Ok(Some(object))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the table, view, sequence or index that a statement names. `ALTER TABLE` and `ALTER
    /// INDEX` name relations of any kind.
    fn named_relation(
        &self,
        catalog: &Catalog,
        reference: &ObjectReference,
        usage: NameUse,
    ) -> Result<Object> {
        let ObjectReference { kind, name, table, .. } = reference;
        let written = &name.name.value;
        if usage == NameUse::Drop
            && let Some(schema) = &name.schema
            && self.path.schema(&schema.value).is_none_or(|name| catalog.schema(name).is_none())
        {
            return Err(match self.system.view(Some(&schema.value), written) {
                Some(_) => required_by_system(&format!(
                    "{} {}",
                    kind.noun(),
                    catalog.display_name(&schema.value, written, &self.path)
                )),
                None => no_schema(&schema.value),
            });
        }
        let of_table = |relation: &CatalogRelation<'_>| match (table, relation) {
            (Some(owner), CatalogRelation::Index(table, _)) => {
                catalog.find_table(owner, &self.path).is_some_and(|owner| owner.oid == table.oid)
            }
            _ => true,
        };
        let Some(relation) = self.find(catalog, name).filter(of_table) else {
            return Err(match usage {
                NameUse::Drop => {
                    let message = format!("{} \"{written}\" does not exist", kind.noun());
                    Error::new(kind.descriptor().undefined, message)
                }
                _ => undefined_table(name),
            });
        };
        let is_any = matches!(kind, ObjectKind::Table | ObjectKind::Index);
        let other = relation.kind();
        if other == *kind || is_any && usage == NameUse::Alter {
            return Ok(Object::of(relation));
        }
        let (article, noun) = (kind.article(), kind.noun());
        let error = err!(WRONG_OBJECT_TYPE: "\"{written}\" is not {article} {noun}");
        let (an, other) = (other.article(), other.noun());
        Err(match usage {
            NameUse::Drop => error
                .with_hint(format!("Use DROP {} to remove {an} {other}.", other.to_uppercase())),
            _ => error,
        })
    }

    /// Returns the type that a statement names.
    fn named_type(
        &self,
        catalog: &Catalog,
        reference: &ObjectReference,
        usage: NameUse,
    ) -> Result<Object> {
        let name = &reference.name;
        let (schema, written) = (schema_of(name), name_as_written(name));
        let is_domain = reference.kind == ObjectKind::Domain;
        let found = catalog.find_type(schema, &name.name.value, &self.path);
        let built_in = built_in(schema, &name.name.value);
        let shown = match found {
            Some(found) => Some(catalog.display_type(found, &self.path)),
            None => built_in.map(|data_type| data_type.sql_name().to_owned()),
        };
        match (found.map(AsRef::as_ref), shown) {
            (Some(UserType::Domain(domain)), _) => {
                Ok(Object::Whole(ObjectId::Type(domain.record.number)))
            }
            (_, Some(_)) if is_domain && usage != NameUse::Alter => {
                bail!(WRONG_OBJECT_TYPE: "\"{written}\" is not a domain")
            }
            (_, Some(shown)) if is_domain => {
                bail!(WRONG_OBJECT_TYPE: "{shown} is not a domain")
            }
            (Some(found), _) if usage == NameUse::Comment || !found.is_of_rows() => {
                Ok(Object::Whole(ObjectId::Type(found.number())))
            }
            (Some(_), Some(shown)) if usage == NameUse::Alter => {
                bail!(WRONG_OBJECT_TYPE: "{shown} is a table's row type"; hint "Use ALTER TABLE instead.")
            }
            (None, Some(shown)) if usage == NameUse::Drop => {
                Err(required_by_system(&format!("type {shown}")))
            }
            (None, Some(shown)) => bail!(WRONG_OBJECT_TYPE: "{shown} is not an enum"),
            _ => Err(self.undroppable_type(catalog, name)),
        }
    }

    /// Returns the error for a type that does not exist, or is dropped with another object.
    fn undroppable_type(&self, catalog: &Catalog, name: &TableName) -> Error {
        let (schema, text) = (schema_of(name), name.name.value.as_str());
        let (shown, owner) = match catalog.find_array_type(schema, text, &self.path) {
            Some(of) => {
                let shown = catalog.display_type(of, &self.path);
                (format!("{shown}[]"), format!("type {shown}"))
            }
            None => match self.find(catalog, name) {
                Some(relation @ (CatalogRelation::Table(_) | CatalogRelation::View(_))) => {
                    let full = relation.name();
                    let shown = catalog.display_name(&full.schema, &full.name, &self.path);
                    let owner = Object::of(relation).describe(catalog, &self.path);
                    (shown, owner)
                }
                _ => return catalog.no_type(schema, &name_as_written(name)),
            },
        };
        err!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop type {shown} because {owner} requires it";
            hint "You can drop {owner} instead.")
    }

    // ---- new names ----

    /// Returns whether the name of a new object is in use. With IF NOT EXISTS, that is only a
    /// notice.
    ///
    /// # Errors
    ///
    /// 42P07, 42710, 42P06 if it is in use.
    pub(in crate::ddl) fn name_exists(
        &mut self,
        catalog: &Catalog,
        (kind, schema, name): (ObjectKind, &str, &str),
        if_not_exists: bool,
    ) -> Result<bool> {
        let name = ObjectName::new(schema, name);
        match taken(catalog, kind.descriptor().name_space, &name) {
            None => Ok(false),
            Some(error) if if_not_exists => {
                let message = format!("{}, skipping", error.message);
                self.notices.push(Error { message, ..error });
                Ok(true)
            }
            Some(error) => Err(error),
        }
    }

    /// Checks that no type has the name of a new table or view, which is also the name of its row
    /// type.
    pub(in crate::ddl) fn check_row_type_name(
        &self,
        catalog: &Catalog,
        schema: &str,
        name: &str,
    ) -> Result<()> {
        let taken = taken(catalog, NameSpace::Type, &ObjectName::new(schema, name));
        let hint = "A relation has an associated type of the same name, so you must use a name that \
            doesn't conflict with any existing type.";
        taken.map_or(Ok(()), |error| Err(error.with_hint(hint)))
    }
}

/// Returns the error for a name in use; functions, which other objects may share a name with, are
/// not looked up.
fn taken(catalog: &Catalog, space: NameSpace, full: &ObjectName) -> Option<Error> {
    let ObjectName { schema, name } = full;
    let (is_taken, noun, code) = match space {
        NameSpace::Relation => {
            let is_taken = catalog.relation(schema, name).is_some()
                || catalog.composite(schema, name).is_some();
            (is_taken, "relation", sqlstate::DUPLICATE_TABLE)
        }
        NameSpace::Type => {
            (catalog.type_in(schema, name).is_some(), "type", sqlstate::DUPLICATE_OBJECT)
        }
        NameSpace::Routine => return None,
        NameSpace::Schema => {
            let is_taken = catalog.schema(name).is_some() || SYSTEM_SCHEMAS.contains(&&**name);
            (is_taken, "schema", sqlstate::DUPLICATE_SCHEMA)
        }
        NameSpace::Role => (catalog.role_named(name).is_some(), "role", sqlstate::DUPLICATE_OBJECT),
        NameSpace::Extension => {
            let created = Extension::named(name).and_then(|known| known.schema(catalog));
            (created.is_some(), "extension", sqlstate::DUPLICATE_OBJECT)
        }
    };
    is_taken.then(|| Error::new(code, format!("{noun} \"{name}\" already exists")))
}

fn schema_of(name: &TableName) -> Option<&str> {
    name.schema.as_ref().map(|schema| schema.value.as_str())
}

/// Returns the built-in type of a name.
pub(in crate::ddl) fn built_in(schema: Option<&str>, name: &str) -> Option<types::DataType> {
    let here = matches!(schema, None | Some("pg_catalog"));
    types::DataType::from_name(name).filter(|_| here)
}

fn required_by_system(what: &str) -> Error {
    err!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop {what} because it is required by the database system")
}
