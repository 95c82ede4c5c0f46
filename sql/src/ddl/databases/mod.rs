//! CREATE, ALTER and DROP DATABASE.
//!
//! A new database is a record of the shared catalog; the rest is created when it is first opened,
//! or copied from the template ([`template`]). The claims of a statement keep
//! other sessions out of a database until the end of the transaction
//! ([`database_slots`](crate::database_slots)).
//!
//! Source: PostgreSQL's dbcommands.c.

mod template;

use std::fmt::Display;
use std::sync::Arc;

use store::quota::QuotaKind;

use crate::ast::{
    AlterDatabaseAction, DatabaseOption, DatabaseStatement, Ident, OptionName, OptionValue,
    OptionsChange, Role, RoleAttribute, SettingClause, TableOption,
};
use crate::catalog::access::privilege::Acl;
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::database::{DEFAULT_DATABASE, DatabaseRecord};
use crate::catalog::name::BOOTSTRAP_ROLE;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, ObjectId};
use crate::catalog_reader::store_tables_of;
use crate::ddl::Ddl;
use crate::error::{Error, Result, sqlstate};

/// The template of a database without TEMPLATE.
const DEFAULT_TEMPLATE: &str = "template1";
/// Names of the only locale, as PostgreSQL and the C library write them.
const LOCALES: [&str; 5] = ["c", "posix", "c.utf-8", "c.utf8", "ucs_basic"];

impl Ddl<'_> {
    /// Executes a statement on a database.
    pub fn change_databases(&mut self, statement: &DatabaseStatement) -> Result<()> {
        match statement {
            DatabaseStatement::Create { name, options } => self.create_database(name, options),
            DatabaseStatement::Alter { name, action } => self.alter_database(name, action),
            DatabaseStatement::Drop { name, if_exists, force } => {
                self.drop_database(name, *if_exists, *force)
            }
        }
    }

    fn create_database(&mut self, name: &Ident, options: &[DatabaseOption]) -> Result<()> {
        let read = DatabaseOptions::of_create(options)?;
        let catalog = self.catalog();
        let owner = self.new_owner(&catalog, read.owner.as_ref())?;
        if !self.has_attribute(&catalog, RoleAttribute::CreateDatabase) {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied to create database");
        }
        let template = read.template.as_deref().unwrap_or(DEFAULT_TEMPLATE);
        let Some(template) = catalog.database_named(template) else {
            bail!(INVALID_CATALOG_NAME: "template database \"{template}\" does not exist");
        };
        if !template.is_template && !self.owns(&catalog, template) {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied to copy database \"{}\"", template.name);
        }
        let name = &name.value;
        if catalog.database_named(name).is_some() {
            bail!(DUPLICATE_DATABASE: "database \"{name}\" already exists");
        }
        self.claim_database(template, "source database")?;
        let oid = self.take_ids(1)?;
        let record = DatabaseRecord {
            oid,
            name: name.clone(),
            catalog_table: oid,
            owner: (owner != BOOTSTRAP_ROLE).then_some(owner),
            is_template: read.is_template.unwrap_or(false),
            rejects_connections: !read.allows_connections.unwrap_or(true),
            connection_limit: read.connection_limit.flatten(),
            ..DatabaseRecord::default()
        };
        self.copy_template(template, &record)?;
        self.store_object(CatalogObject::Database(Arc::new(record)))
    }

    fn alter_database(&mut self, name: &Ident, action: &AlterDatabaseAction) -> Result<()> {
        let record = self.database(&name.value)?;
        self.check_owner_of(&record)?;
        let mut changed = DatabaseRecord::clone(&record);
        match action {
            AlterDatabaseAction::Rename(to) => {
                if !self.has_attribute(&self.catalog(), RoleAttribute::CreateDatabase) {
                    bail!(INSUFFICIENT_PRIVILEGE: "permission denied to rename database");
                }
                if record.oid == self.engine.database {
                    bail!(FEATURE_NOT_SUPPORTED: "current database cannot be renamed");
                }
                if record.oid == DEFAULT_DATABASE {
                    let what = format!("ALTER DATABASE {} RENAME", record.name);
                    let hint = "Clients without a database connect to it by this name.";
                    return Err(Error::not_supported(what, hint));
                }
                if self.catalog().database_named(&to.value).is_some() {
                    bail!(DUPLICATE_DATABASE: "database \"{}\" already exists", to.value);
                }
                self.claim_database(&record, "database")?;
                changed.name.clone_from(&to.value);
            }
            AlterDatabaseAction::Owner(owner) => {
                let owner = self.new_owner(&self.catalog(), Some(owner))?;
                if !self.has_attribute(&self.catalog(), RoleAttribute::CreateDatabase) {
                    bail!(INSUFFICIENT_PRIVILEGE: "permission denied to change owner of database");
                }
                changed.owner = (owner != BOOTSTRAP_ROLE).then_some(owner);
                if let Some(items) = changed.acl.take() {
                    let mut acl = Acl(items);
                    acl.change_owner(record.owner(), owner);
                    changed.acl = Some(acl.0);
                }
            }
            AlterDatabaseAction::Options(options) => {
                let read = DatabaseOptions::of_alter(options)?;
                if read.allows_connections == Some(false) && record.oid == self.engine.database {
                    bail!(INVALID_PARAMETER_VALUE: "cannot disallow connections for current database");
                }
                changed.is_template = read.is_template.unwrap_or(changed.is_template);
                if let Some(allows) = read.allows_connections {
                    changed.rejects_connections = !allows;
                }
                changed.connection_limit =
                    read.connection_limit.unwrap_or(changed.connection_limit);
            }
            AlterDatabaseAction::Setting(clause) => {
                return self.alter_database_setting(&record.name, clause);
            }
            AlterDatabaseAction::RefreshCollation => {
                let message = "version has not changed".to_owned();
                self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
                return Ok(());
            }
        }
        if changed == *record {
            return Ok(());
        }
        self.store_object(CatalogObject::Database(Arc::new(changed)))
    }

    /// ALTER DATABASE … SET and RESET
    pub(in crate::ddl) fn alter_database_setting(
        &mut self,
        name: &str,
        clause: &SettingClause,
    ) -> Result<()> {
        let record = self.database(name)?;
        self.check_owner_of(&record)?;
        if let Some(change) = quota_change(clause) {
            self.change_quota(QuotaSubject::Database(record.oid), &change)?;
            if change != OptionsChange::ResetAll {
                return Ok(());
            }
        }
        let mut changed = DatabaseRecord::clone(&record);
        self.change_settings(&mut changed.settings, std::slice::from_ref(clause))?;
        if changed == *record {
            return Ok(());
        }
        self.store_object(CatalogObject::Database(Arc::new(changed)))
    }

    fn drop_database(&mut self, name: &Ident, if_exists: bool, force: bool) -> Result<()> {
        let record = match self.database(&name.value) {
            Ok(record) => record,
            Err(missing) => return self.missing_object(missing, if_exists),
        };
        self.check_owner_of(&record)?;
        if record.oid == self.engine.database {
            bail!(OBJECT_IN_USE: "cannot drop the currently open database");
        }
        if record.is_template {
            bail!(WRONG_OBJECT_TYPE: "cannot drop a template database");
        }
        if record.oid == DEFAULT_DATABASE {
            let what = format!("DROP DATABASE {}", record.name);
            let hint = "It has the shared catalog. Drop its schemas instead.";
            return Err(Error::not_supported(what, hint));
        }
        if force {
            self.terminate_sessions(&record)?;
        }
        self.claim_database(&record, "database")?;
        // What its sessions have committed must be visible.
        self.engine.store().wait_for_commits()?;
        self.transaction.begin_statement();
        let mut tables = store_tables_of(self.engine.store(), &record)?;
        if let Some(engine) = self.engine.databases.get(record.oid) {
            tables.extend(engine.take_unseen());
        }
        self.changes.dropped.extend(tables);
        self.remove_role_settings(record.oid)?;
        self.remove_object(&CatalogEntry::Quota(QuotaSubject::Database(record.oid)))?;
        self.remove_object(&CatalogEntry::Comment(CommentSubjectKey::Database(record.oid)))?;
        self.remove_object(&CatalogEntry::Object(ObjectId::Database(record.oid)))
    }

    /// Returns the number of the role that becomes the owner of a database.
    fn new_owner(&self, catalog: &Catalog, owner: Option<&Role>) -> Result<u32> {
        let current = self.roles.current.number;
        let Some(owner) = owner else { return Ok(current) };
        let owner = self.named_role(catalog, owner)?;
        if !catalog.is_superuser(current) && !catalog.is_member_of(current, owner.number) {
            bail!(INSUFFICIENT_PRIVILEGE: "must be member of role \"{}\"", owner.name);
        }
        Ok(owner.number)
    }

    /// Returns whether the current role has the rights of the owner of a database.
    fn owns(&self, catalog: &Catalog, database: &DatabaseRecord) -> bool {
        let current = self.roles.current.number;
        catalog.is_superuser(current) || catalog.has_privileges_of(current, database.owner())
    }

    fn check_owner_of(&self, database: &DatabaseRecord) -> Result<()> {
        if self.owns(&self.catalog(), database) {
            return Ok(());
        }
        bail!(INSUFFICIENT_PRIVILEGE: "must be owner of database {}", database.name)
    }

    /// Returns a database by name.
    pub(in crate::ddl) fn database(&self, name: &str) -> Result<Arc<DatabaseRecord>> {
        let found = self.catalog().database_named(name).cloned();
        found.ok_or_else(|| err!(INVALID_CATALOG_NAME: "database \"{name}\" does not exist"))
    }

    /// Terminates the other sessions of a database.
    fn terminate_sessions(&self, record: &DatabaseRecord) -> Result<()> {
        let prepared = self.prepared_in(record);
        if prepared > 0 {
            let (verb, count) = counted(prepared, "prepared transaction");
            bail!(OBJECT_IN_USE: "database \"{}\" is being used by prepared transactions", record.name;
                detail "There {verb} {count} using the database.");
        }
        let sessions = self.engine.sessions.all();
        for session in sessions.iter().filter(|session| session.database == record.oid) {
            self.engine.sessions.terminate(session.session);
        }
        Ok(())
    }

    fn prepared_in(&self, record: &DatabaseRecord) -> usize {
        self.engine.prepared.all().iter().filter(|one| one.database == record.oid).count()
    }

    /// Keeps other sessions out of a database until the end of the transaction.
    ///
    /// # Errors
    ///
    /// 55006 if other sessions or prepared transactions use it.
    fn claim_database(&mut self, record: &DatabaseRecord, noun: &str) -> Result<()> {
        if self.changes.has_claim(record.oid) {
            return Ok(());
        }
        let prepared = self.prepared_in(record);
        let who = (&self.engine.sessions, self.process_id);
        let interrupt = &self.eval.style.interrupt;
        let claim = match prepared {
            0 => self.engine.databases.claim(record.oid, who, interrupt)?,
            _ => None,
        };
        let Some(claim) = claim else {
            let others = self.engine.sessions.others_in(record.oid, self.process_id);
            let detail = match (others, prepared) {
                (0, prepared) => {
                    let (verb, count) = counted(prepared, "prepared transaction");
                    format!("There {verb} {count} using the database.")
                }
                (others, 0) => {
                    let (verb, count) = counted(others, "other session");
                    format!("There {verb} {count} using the database.")
                }
                (others, prepared) => format!(
                    "There are {others} other session(s) and {prepared} prepared transaction(s) \
                     using the database."
                ),
            };
            bail!(OBJECT_IN_USE: "{noun} \"{}\" is being accessed by other users", record.name;
                detail "{detail}");
        };
        self.changes.claims.push(claim);
        Ok(())
    }
}

/// Returns the change of quotas that a SET or RESET clause makes, if it names one or all.
pub(in crate::ddl) fn quota_change(clause: &SettingClause) -> Option<OptionsChange> {
    let is_quota = |name: &Ident| QuotaKind::ALL.iter().any(|kind| kind.name() == name.value);
    let option = |name: &Ident| is_quota(name).then(|| name.clone());
    match clause {
        SettingClause::Set(set) => {
            let name = option(&set.name)?;
            match set.value.as_deref() {
                Some([value]) => {
                    let value = value.clone();
                    Some(OptionsChange::Set(vec![TableOption { family: None, name, value }]))
                }
                _ => Some(OptionsChange::Reset(vec![OptionName { family: None, name }])),
            }
        }
        SettingClause::Reset(Some(name)) => {
            Some(OptionsChange::Reset(vec![OptionName { family: None, name: option(name)? }]))
        }
        SettingClause::Reset(None) => Some(OptionsChange::ResetAll),
        SettingClause::Current(_) => None,
    }
}

/// Returns the verb and the count of a noun.
fn counted(count: usize, noun: &str) -> (&'static str, String) {
    match count {
        1 => ("is", format!("1 {noun}")),
        _ => ("are", format!("{count} {noun}s")),
    }
}

/// The options of a statement that have an effect.
#[derive(Default)]
struct DatabaseOptions {
    owner: Option<Role>,
    template: Option<String>,
    is_template: Option<bool>,
    allows_connections: Option<bool>,
    /// `Some(None)`: no limit.
    connection_limit: Option<Option<u32>>,
}

impl DatabaseOptions {
    /// Reads the options of CREATE DATABASE.
    fn of_create(options: &[DatabaseOption]) -> Result<DatabaseOptions> {
        check_names(options, |name| {
            let here = [
                "owner",
                "template",
                "encoding",
                "strategy",
                "locale",
                "lc_collate",
                "lc_ctype",
                "icu_locale",
                "locale_provider",
                "collation_version",
                "tablespace",
                "oid",
            ];
            here.contains(&name) || is_of_alter(name)
        })?;
        let mut read = DatabaseOptions::default();
        for option in options {
            let text = option.value.as_ref().map(OptionValue::text);
            match (option.name.value.as_str(), text) {
                ("owner", Some(name)) => {
                    let position = option.value_position;
                    read.owner = Some(Role::Named(Ident { value: name, position }));
                }
                ("template", name) => read.template = name,
                ("encoding", Some(name)) => check_encoding(&name)?,
                ("strategy", Some(name)) => check_strategy(&name)?,
                ("locale" | "lc_collate" | "lc_ctype", Some(name)) => {
                    if !LOCALES.contains(&name.to_lowercase().as_str()) {
                        return Err(only("locale", &name, "Use LOCALE 'C.UTF-8'."));
                    }
                }
                ("locale_provider", Some(name)) => match name.to_lowercase().as_str() {
                    "libc" => {}
                    "icu" => {
                        let hint = "Use LOCALE_PROVIDER libc.";
                        return Err(only("locale provider", &name, hint));
                    }
                    _ => {
                        bail!(INVALID_OBJECT_DEFINITION: "unrecognized locale provider: {name}")
                    }
                },
                ("icu_locale", Some(name)) => {
                    return Err(only("ICU locale", &name, "Use LOCALE 'C.UTF-8'."));
                }
                ("oid", Some(number)) => {
                    return Err(only("OID", &number, "Leave the option out."));
                }
                _ => read.read_of_alter(option)?,
            }
        }
        Ok(read)
    }

    /// Reads the options of ALTER DATABASE.
    fn of_alter(options: &[DatabaseOption]) -> Result<DatabaseOptions> {
        check_names(options, is_of_alter)?;
        let mut read = DatabaseOptions::default();
        options.iter().try_for_each(|option| read.read_of_alter(option))?;
        Ok(read)
    }

    /// Reads an option that both statements have.
    fn read_of_alter(&mut self, option: &DatabaseOption) -> Result<()> {
        match (option.name.value.as_str(), &option.value) {
            ("is_template", value) => {
                let value = value.as_ref().map(|value| boolean(option, value)).transpose()?;
                self.is_template = Some(value.unwrap_or(false));
            }
            ("allow_connections", value) => {
                let value = value.as_ref().map(|value| boolean(option, value)).transpose()?;
                self.allows_connections = Some(value.unwrap_or(true));
            }
            ("connection_limit", Some(value)) => {
                let number = match value {
                    OptionValue::Number(text) => text.parse::<i32>().ok(),
                    _ => None,
                };
                let Some(number) = number else {
                    bail!(SYNTAX_ERROR: "connection_limit requires an integer value");
                };
                if number < -1 {
                    bail!(INVALID_PARAMETER_VALUE: "invalid connection limit: {number}");
                }
                self.connection_limit = Some(u32::try_from(number).ok());
            }
            ("connection_limit", None) => self.connection_limit = Some(None),
            ("tablespace", Some(value)) if value.text() != "pg_default" => {
                bail!(UNDEFINED_OBJECT: "tablespace \"{}\" does not exist", value.text());
            }
            _ => {}
        }
        Ok(())
    }
}

fn is_of_alter(name: &str) -> bool {
    ["is_template", "allow_connections", "connection_limit", "tablespace"].contains(&name)
}

/// Checks that options are known, and written once.
fn check_names(options: &[DatabaseOption], is_known: impl Fn(&str) -> bool) -> Result<()> {
    for (at, option) in options.iter().enumerate() {
        let name = &option.name.value;
        if !is_known(name) {
            bail!(SYNTAX_ERROR: "option \"{name}\" not recognized"; at option.name.position);
        }
        if options[..at].iter().any(|other| other.name.value == *name) {
            bail!(SYNTAX_ERROR: "conflicting or redundant options"; at option.name.position);
        }
    }
    Ok(())
}

/// Returns the value of a boolean option, as PostgreSQL's `defGetBoolean` reads it.
fn boolean(option: &DatabaseOption, value: &OptionValue) -> Result<bool> {
    match value.text().to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => bail!(SYNTAX_ERROR: "{} requires a Boolean value", option.name.value),
    }
}

fn check_encoding(name: &str) -> Result<()> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    if ["utf8", "unicode", "6"].contains(&plain.to_lowercase().as_str()) {
        return Ok(());
    }
    if name.chars().all(|c| c.is_ascii_digit()) {
        bail!(UNDEFINED_OBJECT: "{name} is not a valid encoding code");
    }
    if types::encoding::Encoding::by_name(name).is_none() {
        bail!(UNDEFINED_OBJECT: "{name} is not a valid encoding name");
    }
    Err(only("encoding", name, "Use ENCODING 'UTF8'."))
}

fn check_strategy(name: &str) -> Result<()> {
    if ["wal_log", "file_copy"].contains(&name.to_lowercase().as_str()) {
        return Ok(());
    }
    bail!(INVALID_PARAMETER_VALUE: "invalid create database strategy \"{name}\"";
        hint "Valid strategies are \"wal_log\", and \"file_copy\".")
}

/// Returns the error for a value that only PostgreSQL has.
fn only(noun: &str, value: &str, hint: impl Display) -> Error {
    Error::not_supported(format!("{noun} \"{value}\" of a database"), hint.to_string())
}
