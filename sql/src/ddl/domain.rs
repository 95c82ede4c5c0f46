//! CREATE, ALTER and DROP DOMAIN.
//!
//! A new constraint is checked against the stored values of the domain's columns, with the tables
//! locked.

use std::sync::Arc;

use store::transaction::TableLockMode;
use types::expr::DomainChecks;
use types::{DataType, SqlType};

use crate::ast::{self, AlterDomainAction, DomainCheck, ObjectKind, ObjectReference};
use crate::binder::{TableClause, bind_table_expression};
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::domain::{Domain, DomainRecord, VALUE};
use crate::catalog::name::SearchPath;
use crate::catalog::record::CheckRecord;
use crate::catalog::table::Table;
use crate::catalog::user_type::{OID_OFFSET, UserType};
use crate::catalog::{Catalog, CatalogObject, collation};
use crate::ddl::objects::NameUse;
use crate::ddl::sequence::stored_default;
use crate::ddl::user_type::{stored_text, text_uses};
use crate::ddl::{Ddl, name};
use crate::error::{Error, Result, sqlstate};
use crate::relation_assembly;

impl Ddl<'_> {
    pub(super) fn create_domain(&mut self, statement: &ast::CreateDomain) -> Result<()> {
        let catalog = self.catalog();
        let schema = self.creation_schema(&catalog, &statement.name)?;
        let name = statement.name.name.value.clone();
        self.name_exists(&catalog, (ObjectKind::Domain, &schema, &name), false)?;
        let over = catalog.type_named(&statement.type_name, &self.path);
        let over = over.map_err(|error| Error { position: None, ..error })?;
        check_over(&over, &statement.type_name)?;
        let number = self.take_ids(2)?;
        let mut record = DomainRecord {
            number,
            schema,
            name,
            type_oid: over.stored_oid_and_modifier().0,
            modifier: over.stored_oid_and_modifier().1,
            not_null: statement.not_null,
            default: None,
            checks: Vec::new(),
            collation: collation::written(&statement.type_name, &over)?,
            unknown: Default::default(),
        };
        record.default = match (&statement.default, over.domain.and_then(|oid| catalog.domain(oid)))
        {
            (Some(default), _) => Some(self.domain_default(&catalog, &record, &over, default)?),
            // The default of the base domain is copied, so later changes of it have no effect.
            (None, Some(below)) => below.record.default.clone(),
            (None, None) => None,
        };
        for check in &statement.checks {
            let check = self.domain_check(&catalog, &record, &over, check)?;
            record.checks.push(check);
        }
        self.store_object(CatalogObject::of_type(UserType::Domain(
            relation_assembly::domain(&catalog, record)?.into(),
        )))
    }

    pub(super) fn alter_domain(&mut self, statement: &ast::AlterDomain) -> Result<()> {
        let catalog = self.catalog();
        let known = self.known_domain(&catalog, &statement.name)?;
        let over = known.base_type.clone();
        let mut record = known.record.clone();
        match &statement.action {
            AlterDomainAction::Default(None) => record.default = None,
            AlterDomainAction::Default(Some(default)) => {
                let default = self.domain_default(&catalog, &record, &over, default)?;
                record.default = Some(default);
            }
            AlterDomainAction::SetNotNull if record.not_null => return Ok(()),
            AlterDomainAction::SetNotNull => {
                record.not_null = true;
                let demand = DomainChecks {
                    checks: Vec::new(),
                    not_null: true,
                    ..known.checks.as_ref().clone()
                };
                self.check_values(&catalog, record.number, &demand)?;
            }
            AlterDomainAction::DropNotNull => record.not_null = false,
            AlterDomainAction::Add { check, not_valid } => {
                let mut check = self.domain_check(&catalog, &record, &over, check)?;
                check.valid = !not_valid;
                if check.valid {
                    self.check_values_pass(&catalog, &known, &check)?;
                }
                record.checks.push(check);
            }
            AlterDomainAction::Drop { if_exists, constraint } => {
                if !self.drop_check(&mut record, &constraint.value)? {
                    let missing = no_constraint(&statement.name, &constraint.value);
                    return self.missing_object(missing, *if_exists);
                }
            }
            AlterDomainAction::RenameConstraint { constraint, to } => {
                let domain = UserType::Domain(Arc::clone(&known));
                let shown = catalog.display_type(&domain, &self.path);
                rename_check(&mut record, &shown, &constraint.value, &to.value)?;
                let key = |name: &ast::Ident| {
                    CommentSubjectKey::Constraint(record.number, name.value.clone())
                };
                self.move_comment(key(constraint), key(to))?;
            }
            AlterDomainAction::Validate(constraint) => {
                let mut checks = record.checks.iter_mut();
                let Some(check) = checks.find(|check| check.name == constraint.value) else {
                    return Err(no_constraint(&statement.name, &constraint.value));
                };
                if check.valid {
                    return Ok(());
                }
                check.valid = true;
                let check = check.clone();
                self.check_values_pass(&catalog, &known, &check)?;
            }
        }
        let changed = relation_assembly::domain(&catalog, record)?;
        self.replace_type(UserType::Domain(changed.into()))
    }

    /// Removes a constraint of a domain; returns whether it existed.
    fn drop_check(&mut self, record: &mut DomainRecord, constraint: &str) -> Result<bool> {
        let before = record.checks.len();
        record.checks.retain(|check| check.name != constraint);
        if record.checks.len() < before {
            let subject = CommentSubjectKey::Constraint(record.number, constraint.to_owned());
            self.set_comment(subject, None)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns the domain that a statement names.
    pub(super) fn known_domain(
        &mut self,
        catalog: &Catalog,
        name: &ast::TableName,
    ) -> Result<Arc<Domain>> {
        let reference = ObjectReference::new(ObjectKind::Domain, name.clone());
        let found = self.named_object(catalog, &reference, (NameUse::Alter, false))?;
        let known = found.and_then(|object| catalog.user_type(object.number()));
        match known.map(AsRef::as_ref) {
            Some(UserType::Domain(domain)) => Ok(Arc::clone(domain)),
            _ => Err(catalog.no_type(None, &name.name.value)),
        }
    }

    /// Returns the stored text of a DEFAULT.
    fn domain_default(
        &self,
        catalog: &Catalog,
        record: &DomainRecord,
        over: &SqlType,
        default: &ast::SourceExpr,
    ) -> Result<String> {
        let names = self.names(catalog);
        let bound = bind_table_expression(
            TableClause::Default,
            &default.expr,
            &[],
            Some(over.base_type()),
            names,
        );
        bound.map_err(|error| match error.sqlstate.as_ref() {
            // PostgreSQL words this error for columns, too.
            sqlstate::DATATYPE_MISMATCH => Error {
                message: error.message.replacen(
                    "column is",
                    &format!("column \"{}\" is", record.name),
                    1,
                ),
                position: None,
                ..error
            },
            _ => Error { position: None, ..error },
        })?;
        let text = stored_default(names, default, &over.base_type())?;
        check_age(catalog, record.number, &text)?;
        Ok(text)
    }

    /// Returns the record of a CHECK, with an unused name.
    fn domain_check(
        &self,
        catalog: &Catalog,
        record: &DomainRecord,
        over: &SqlType,
        check: &DomainCheck,
    ) -> Result<CheckRecord> {
        let columns = [(VALUE.to_owned(), over.clone())];
        let target = Some(DataType::Bool.into());
        let names = self.names(catalog);
        let bound = bind_table_expression(
            TableClause::Check,
            &check.predicate.expr,
            &columns,
            target.clone(),
            names,
        );
        bound.map_err(|error| Error { position: None, ..error })?;
        let taken = |name: &str| record.checks.iter().any(|check| check.name == name);
        let name = match &check.name {
            Some(name) if taken(&name.value) => return Err(duplicate(&record.name, &name.value)),
            Some(name) => name.value.clone(),
            None => name::check(&record.name, &[])
                .free(|name| taken(name) || name::is_constraint(catalog, &record.schema, name)),
        };
        let predicate = stored_text(names, &check.predicate.text, &columns, target)?;
        check_age(catalog, record.number, &predicate)?;
        Ok(CheckRecord { name, predicate, valid: true, unknown: Default::default() })
    }

    /// Checks a constraint of a domain against the values of columns of the domain.
    fn check_values_pass(
        &mut self,
        catalog: &Catalog,
        domain: &Domain,
        check: &CheckRecord,
    ) -> Result<()> {
        let columns = [(VALUE.to_owned(), domain.base_type.clone())];
        let target = Some(DataType::Bool.into());
        let bound = relation_assembly::expression(catalog, &check.predicate, &columns, target)?;
        let checks = vec![(check.name.clone(), bound)];
        let demand = DomainChecks { checks, not_null: false, ..domain.checks.as_ref().clone() };
        self.check_values(catalog, domain.record.number, &demand)
    }

    /// Checks the values of columns of a domain, and of domains over it.
    fn check_values(
        &mut self,
        catalog: &Catalog,
        number: u32,
        demand: &DomainChecks,
    ) -> Result<()> {
        // Its own columns come first, then those of domains over it.
        let mut domains = vec![number + OID_OFFSET];
        for known in catalog.types() {
            if let UserType::Domain(domain) = known.as_ref()
                && domain.base_type.domain.is_some_and(|oid| domains.contains(&oid))
            {
                domains.push(known.oid());
            }
        }
        for domain in domains {
            check_no_container(catalog, domain, &self.path)?;
            self.check_columns(catalog, domain, demand)?;
        }
        Ok(())
    }

    /// Checks the values of the columns of exactly this domain.
    fn check_columns(
        &mut self,
        catalog: &Catalog,
        domain: u32,
        demand: &DomainChecks,
    ) -> Result<()> {
        let of_it = |sql_type: &SqlType| sql_type.domain == Some(domain);
        let tables: Vec<Arc<Table>> = catalog.tables().into_iter().cloned().collect();
        for table in tables {
            let columns = table.columns.iter().enumerate();
            let columns = columns.filter(|(_, one)| !one.dropped && of_it(&one.sql_type));
            let columns: Vec<usize> = columns.map(|(position, _)| position).collect();
            if columns.is_empty() {
                continue;
            }
            self.lock_table(table.id, TableLockMode::AccessExclusive)?;
            let eval = self.eval.clone();
            self.each_row(&table, &mut |row| {
                columns.iter().try_for_each(|&at| {
                    demand.check(&row[at], &eval).map_err(|error| {
                        let violates = error.subject.is_some();
                        let error = Error::from(error);
                        if violates { violated(&table, at, demand, error) } else { error }
                    })
                })
            })?;
        }
        Ok(())
    }
}

/// Rejects references to newer types, because domains are read from the catalog oldest first.
fn check_age(catalog: &Catalog, number: u32, text: &str) -> Result<()> {
    let is_younger = |one: &UserType| one.number() >= number;
    match text_uses(catalog, &SearchPath::default(), text, is_younger) {
        false => Ok(()),
        true => {
            let hint = "Drop the domain and create it again.";
            Err(Error::not_supported(
                "a domain constraint that references a type created after the domain",
                hint,
            ))
        }
    }
}

/// Checks that no column contains values of a domain within arrays or rows, because these are not
/// checked.
fn check_no_container(catalog: &Catalog, domain: u32, path: &SearchPath) -> Result<()> {
    let mut tables = catalog.tables();
    tables.sort_by_key(|table| table.oid);
    for table in tables {
        let mut columns = table.columns.iter().filter(|column| !column.dropped);
        if let Some(column) = columns.find(|one| contains(catalog, &one.sql_type, domain)) {
            let shown = catalog.shown_type_with(domain, -1, path).unwrap_or_default();
            bail!(FEATURE_NOT_SUPPORTED: "cannot alter type \"{shown}\" because column \"{}.{}\" uses it",
                table.name, column.name);
        }
    }
    Ok(())
}

/// Returns whether values of a type are arrays or rows that contain values of a domain.
fn contains(catalog: &Catalog, sql_type: &SqlType, domain: u32) -> bool {
    let in_it = |of: &SqlType| of.domain == Some(domain) || contains(catalog, of, domain);
    match sql_type.domain.and_then(|oid| catalog.domain(oid)) {
        Some(_) if sql_type.is_domain_array() => {
            catalog.element_of(sql_type).as_ref().is_some_and(in_it)
        }
        Some(of) => contains(catalog, &of.base_type, domain),
        None => match sql_type.base.element().unwrap_or(&sql_type.base) {
            DataType::Composite(of) => of.attributes().iter().any(|one| in_it(&one.sql_type)),
            _ => false,
        },
    }
}

fn violated(table: &Table, column: usize, demand: &DomainChecks, error: Error) -> Error {
    let (column, name) = (&table.columns[column].name, &table.name);
    let what = match demand.not_null {
        true => "contains null values",
        false => "contains values that violate the new constraint",
    };
    Error {
        sqlstate: error.sqlstate,
        schema: Some(table.schema.clone()),
        table: Some(name.clone()),
        column: Some(column.clone()),
        ..Error::new("", format!("column \"{column}\" of table \"{name}\" {what}"))
    }
}

/// Checks that a type can be the base type of a domain.
fn check_over(over: &SqlType, written: &ast::TypeName) -> Result<()> {
    let pseudo = over.base.is_polymorphic()
        || matches!(
            over.base,
            DataType::Record
                | DataType::CString
                | DataType::Void
                | DataType::Trigger
                | DataType::Unknown
        );
    if !pseudo {
        return Ok(());
    }
    bail!(DATATYPE_MISMATCH: "\"{}\" is not a valid base type for a domain", over.base.sql_name(); at written.position)
}

fn rename_check(record: &mut DomainRecord, shown: &str, old: &str, new: &str) -> Result<()> {
    let taken = record.checks.iter().any(|check| check.name == new);
    let Some(found) = record.checks.iter_mut().find(|check| check.name == old) else {
        bail!(UNDEFINED_OBJECT: "constraint \"{old}\" for domain {shown} does not exist");
    };
    if taken {
        return Err(duplicate(&record.name, new));
    }
    new.clone_into(&mut found.name);
    Ok(())
}

fn no_constraint(domain: &ast::TableName, constraint: &str) -> Error {
    let domain = super::name_as_written(domain);
    err!(UNDEFINED_OBJECT: "constraint \"{constraint}\" of domain \"{domain}\" does not exist")
}

fn duplicate(domain: &str, constraint: &str) -> Error {
    err!(DUPLICATE_OBJECT: "constraint \"{constraint}\" for domain \"{domain}\" already exists")
}
