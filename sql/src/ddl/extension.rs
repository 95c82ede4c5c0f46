//! CREATE EXTENSION and ALTER EXTENSION … UPDATE.
//!
//! A created extension is a row of the catalog ([`CommentSubjectKey::Extension`]); its functions
//! are built in, and available with and without it. The order of checks is that of PostgreSQL's
//! `CreateExtension`.

use crate::ast::{ExtensionStatement, Ident, ObjectKind, ObjectReference, TableName};
use crate::catalog::Catalog;
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::extension::{EXTENSIONS, Extension};
use crate::catalog::name::is_temporary;
use crate::catalog::schema::SYSTEM_SCHEMAS;
use crate::ddl::objects::NameUse;
use crate::ddl::{Ddl, no_schema};
use crate::error::{Error, Result, sqlstate};

impl Ddl<'_> {
    /// Creates or updates extensions.
    pub fn change_extensions(&mut self, statement: &ExtensionStatement) -> Result<()> {
        match statement {
            ExtensionStatement::Create { if_not_exists, name, schema, version } => {
                let place = (schema.as_ref(), version.as_deref());
                self.create_extension(name, *if_not_exists, place)
            }
            ExtensionStatement::Update { name, version } => {
                self.update_extension(name, version.as_deref())
            }
        }
    }

    fn create_extension(
        &mut self,
        name: &Ident,
        if_not_exists: bool,
        (schema, version): (Option<&Ident>, Option<&str>),
    ) -> Result<()> {
        let catalog = self.catalog();
        check_name(&name.value)?;
        let known = Extension::named(&name.value).ok_or_else(|| not_available(&name.value))?;
        if self.name_exists(&catalog, (ObjectKind::Extension, "", known.name), if_not_exists)? {
            return Ok(());
        }
        if let Some(other) = version.filter(|version| *version != known.version) {
            let name = known.name;
            bail!(INVALID_PARAMETER_VALUE: "extension \"{name}\" has no installation script nor update path for version \
                \"{other}\"");
        }
        if !catalog.is_superuser(self.roles.current.number) {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied to create extension \"{}\"", known.name;
                hint "Must be superuser to create this extension.");
        }
        let schema = self.extension_schema(&catalog, name, schema)?;
        self.set_comment(CommentSubjectKey::Extension(known.number, schema), Some(known.comment))?;
        if let Some((message, hint)) = known.notice {
            let notice = err!(SUCCESSFUL_COMPLETION: message);
            self.notices.push(notice.with_hint(hint));
        }
        Ok(())
    }

    /// Returns the number of the schema for a new extension.
    fn extension_schema(
        &mut self,
        catalog: &Catalog,
        name: &Ident,
        schema: Option<&Ident>,
    ) -> Result<u32> {
        let schema = match schema {
            Some(schema) if SYSTEM_SCHEMAS.contains(&schema.value.as_str()) => {
                bail!(INSUFFICIENT_PRIVILEGE: "permission denied for schema {}", schema.value);
            }
            Some(schema) => schema.value.clone(),
            None => {
                let name = TableName { schema: None, name: name.clone() };
                let created = self.creation_schema(catalog, &name);
                created.map_err(|error| Error { position: None, ..error })?
            }
        };
        let found = catalog.schema(&schema).filter(|_| !is_temporary(&schema));
        Ok(found.ok_or_else(|| no_schema(&schema))?.oid)
    }

    fn update_extension(&mut self, name: &Ident, version: Option<&str>) -> Result<()> {
        let catalog = self.catalog();
        let named = TableName { schema: None, name: name.clone() };
        let reference = ObjectReference::new(ObjectKind::Extension, named);
        self.named_object(&catalog, &reference, (NameUse::Alter, false))?;
        let Some(Extension { name, version: own, .. }) = Extension::named(&name.value) else {
            return Ok(());
        };
        if let Some(other) = version.filter(|version| version != own) {
            bail!(INVALID_PARAMETER_VALUE: "extension \"{name}\" has no update path from version \"{own}\" to version \
                \"{other}\"");
        }
        let message = format!("version \"{own}\" of extension \"{name}\" is already installed");
        self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
        Ok(())
    }
}

fn check_name(name: &str) -> Result<()> {
    let detail = if name.contains("--") {
        "Extension names must not contain \"--\"."
    } else if name.starts_with('-') || name.ends_with('-') {
        "Extension names must not begin or end with \"-\"."
    } else if name.contains('/') {
        "Extension names must not contain directory separator characters."
    } else {
        return Ok(());
    };
    bail!(INVALID_PARAMETER_VALUE: "invalid extension name: \"{name}\""; detail detail)
}

fn not_available(name: &str) -> Error {
    let names: Vec<&str> = EXTENSIONS.iter().map(|one| one.name).collect();
    let hint = match name {
        "uuid-ossp" => "Function gen_random_uuid() generates random UUIDs without an extension.",
        "pg_trgm" => "Operator class gin_trgm_ops is there without an extension.",
        _ => "Omit the statement if the extension is not used.",
    };
    err!(FEATURE_NOT_SUPPORTED: "extension \"{name}\" is not available"; detail "Available extensions: {}.", names.join(", ");
        hint hint)
}
