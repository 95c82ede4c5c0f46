//! CREATE, ALTER and DROP FUNCTION.
//!
//! Texts of the catalog name functions with their schemas ([`kept_text`]). A function that one of
//! them names keeps its name and its schema.

use std::sync::Arc;

use store::Mutation;
use store::transaction::LockMode;
use types::SqlType;

use crate::ast::{
    self, AlterFunctionAction, FunctionBody, FunctionReference, FunctionStatement, Returns,
};
use crate::binder::{TableClause, bind_function_body, bind_table_expression};
use crate::catalog::Catalog;
use crate::catalog::function::{
    Function, FunctionRecord, ParameterRecord, ReturnRecord, function_key,
};
use crate::catalog::record::{CATALOG_TABLE, IndexRecord, TableRecord, encode};
use crate::ddl::dependency::Object;
use crate::ddl::user_type::{kept_text, text_calls};
use crate::ddl::{Ddl, lock_table, no_schema};
use crate::error::{Error, Result, sqlstate};
use crate::parser;

/// `invalid_function_definition`
const INVALID_DEFINITION: &str = "42P13";
/// `duplicate_function`
const DUPLICATE_FUNCTION: &str = "42723";

impl Ddl<'_> {
    /// Creates, changes or drops functions.
    pub fn change_functions(&mut self, statement: &FunctionStatement) -> Result<()> {
        match statement {
            FunctionStatement::Create(create) => self.create_function(create),
            FunctionStatement::Alter(alter) => self.alter_function(alter),
            FunctionStatement::Drop(drop) => self.drop_functions(drop),
        }
    }

    fn create_function(&mut self, statement: &ast::CreateFunction) -> Result<()> {
        let catalog = self.lock_catalog()?;
        let schema = self.creation_schema(&catalog, &statement.name)?;
        let mut record = self.function_record(&catalog, &schema, statement)?;
        let types: Vec<u32> = record.parameters.iter().map(|one| one.type_oid).collect();
        let same = |one: &&Arc<Function>| {
            let mut own = one.record.parameters.iter().map(|one| one.type_oid);
            one.record.schema == schema
                && one.record.name == record.name
                && own.len() == types.len()
                && types.iter().all(|oid| own.next() == Some(*oid))
        };
        let old = catalog.functions().find(same).cloned();
        match &old {
            Some(_) if !statement.or_replace => {
                let message =
                    format!("function \"{}\" already exists with same argument types", record.name);
                return Err(Error::new(DUPLICATE_FUNCTION, message));
            }
            Some(old) => {
                check_replacement(&catalog, &self.path, old, &record)?;
                record.number = old.record.number;
            }
            None => {
                record.number = self.next_id()?;
                self.write_next_id(record.number + 1)?;
            }
        }
        let function = Arc::new(Function::of_record(record, &catalog)?);
        let checked = bind_function_body(&function, &catalog, self.system.as_ref(), &self.path);
        checked.map_err(|error| Error { position: None, ..error })?;
        self.store_function(&function)?;
        if old.is_some() { self.use_anew(&function) } else { Ok(()) }
    }

    /// Returns the record of a function, without its number.
    fn function_record(
        &self,
        catalog: &Catalog,
        schema: &str,
        statement: &ast::CreateFunction,
    ) -> Result<FunctionRecord> {
        let invalid = |message: String| Error::new(INVALID_DEFINITION, message);
        let names = self.names(catalog);
        let mut parameters: Vec<ParameterRecord> = Vec::new();
        for parameter in &statement.arguments {
            let name = parameter.name.as_ref().map_or(String::new(), |name| name.value.clone());
            if !name.is_empty() && parameters.iter().any(|one| one.name == name) {
                return Err(invalid(format!("parameter name \"{name}\" used more than once")));
            }
            let sql_type = catalog.type_named(&parameter.type_name, &self.path)?;
            check_type(sql_type, "take")?;
            let default = match &parameter.default {
                Some(default) => {
                    let target = Some(sql_type);
                    bind_table_expression(TableClause::Default, &default.expr, &[], target, names)?;
                    Some(kept_text(catalog, &self.path, &default.text)?)
                }
                None if parameters.iter().any(|one| one.default.is_some()) => {
                    let message =
                        "input parameters after one with a default value must also have defaults";
                    return Err(invalid(message.to_owned()));
                }
                None => None,
            };
            // As in PostgreSQL the modifier of a parameter's type is not kept.
            parameters.push(ParameterRecord { name, type_oid: sql_type.oid(), default });
        }
        let named = |type_name: &ast::TypeName| {
            let sql_type = catalog.type_named(type_name, &self.path)?;
            check_type(sql_type, "return")?;
            Ok::<u32, Error>(sql_type.oid())
        };
        let returns = match &statement.returns {
            Some(Returns::Value(type_name)) => ReturnRecord::Value(named(type_name)?),
            Some(Returns::Set(type_name)) => ReturnRecord::Set(named(type_name)?),
            Some(Returns::Table(columns)) => {
                let mut listed: Vec<(String, u32)> = Vec::with_capacity(columns.len());
                for (name, type_name) in columns {
                    let taken = listed.iter().any(|(known, _)| *known == name.value)
                        || parameters.iter().any(|one| one.name == name.value);
                    if taken {
                        let message =
                            format!("parameter name \"{}\" used more than once", name.value);
                        return Err(invalid(message));
                    }
                    listed.push((name.value.clone(), named(type_name)?));
                }
                ReturnRecord::Table(listed)
            }
            None => return Err(invalid("function result type must be specified".to_owned())),
        };
        let (body, search_path) = match &statement.body {
            FunctionBody::Text { text, .. } => (one_query(text)?, None),
            FunctionBody::Query(text) => (text.clone(), Some(self.path.schemas().to_vec())),
        };
        Ok(FunctionRecord {
            number: 0,
            schema: schema.to_owned(),
            name: statement.name.name.value.clone(),
            parameters,
            returns,
            volatility: statement.volatility,
            strict: statement.strict,
            body,
            search_path,
        })
    }

    fn alter_function(&mut self, statement: &ast::AlterFunction) -> Result<()> {
        let catalog = self.lock_catalog()?;
        let known = self.known_function(&catalog, &statement.function)?;
        match &statement.action {
            AlterFunctionAction::Attributes { volatility, strict } => {
                let mut record = known.record.clone();
                record.volatility = volatility.unwrap_or(record.volatility);
                record.strict = strict.unwrap_or(record.strict);
                let function = Arc::new(Function::of_record(record, &catalog)?);
                self.store_function(&function)?;
                self.use_anew(&function)
            }
            AlterFunctionAction::Rename(to) => {
                self.rename_function(&known, &known.record.schema, &to.value)
            }
            AlterFunctionAction::SetSchema(schema) if catalog.schema(&schema.value).is_none() => {
                Err(no_schema(&schema.value))
            }
            AlterFunctionAction::SetSchema(schema) => {
                self.rename_function(&known, &schema.value, &known.record.name)
            }
        }
    }

    /// Gives a function that nothing uses another name.
    pub(super) fn rename_function(
        &mut self,
        known: &Function,
        schema: &str,
        name: &str,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let record = FunctionRecord {
            schema: schema.to_owned(),
            name: name.to_owned(),
            ..known.record.clone()
        };
        if (&record.schema, &record.name) == (&known.record.schema, &known.record.name) {
            return Ok(());
        }
        let taken = catalog.functions().any(|one| {
            one.record.schema == schema
                && one.record.name == name
                && one.parameters == known.parameters
        });
        if taken {
            let message = format!(
                "function {} already exists in schema \"{schema}\"",
                signature(&catalog, &self.path, name, &known.parameters),
            );
            return Err(Error::new(DUPLICATE_FUNCTION, message));
        }
        let object = Object::Function(known.record.number);
        if super::dependency::going(&catalog, &[object]).len() > 1 {
            let what = "renaming or moving a function that is in use";
            let hint = "Drop what uses it, and create it anew.";
            return Err(Error::not_supported(what, hint));
        }
        self.store_function(&Arc::new(Function::of_record(record, &catalog)?))
    }

    fn drop_functions(&mut self, statement: &ast::DropFunction) -> Result<()> {
        let catalog = self.lock_catalog()?;
        let mut named = Vec::new();
        for reference in &statement.functions {
            match self.known_function(&catalog, reference) {
                Ok(function) => named.push(Object::Function(function.record.number)),
                Err(error)
                    if statement.if_exists
                        && [sqlstate::UNDEFINED_FUNCTION, sqlstate::INVALID_SCHEMA_NAME]
                            .contains(&error.sqlstate.as_ref()) =>
                {
                    let message = format!("{}, skipping", error.message);
                    self.note(sqlstate::SUCCESSFUL_COMPLETION, message);
                }
                Err(error) => return Err(error),
            }
        }
        self.drop_objects(&named, statement.cascade)
    }

    /// Returns the function that a statement names.
    fn known_function(
        &self,
        catalog: &Catalog,
        reference: &FunctionReference,
    ) -> Result<Arc<Function>> {
        let schema = reference.name.schema.as_ref().map(|schema| schema.value.as_str());
        if let Some(schema) = schema
            && catalog.schema(schema).is_none()
        {
            return Err(no_schema(schema));
        }
        let name = &reference.name.name.value;
        let mut found = catalog.functions_named(schema, name, &self.path);
        let written = super::written(&reference.name);
        let Some(arguments) = &reference.arguments else {
            return match found.len() {
                1 => Ok(found.remove(0)),
                0 => {
                    let message = format!("could not find a function named \"{written}\"");
                    Err(Error::new(sqlstate::UNDEFINED_FUNCTION, message))
                }
                _ => {
                    let message = format!("function name \"{written}\" is not unique");
                    Err(Error::new(sqlstate::AMBIGUOUS_FUNCTION, message).with_hint(
                        "Specify the argument list to select the function unambiguously.",
                    ))
                }
            };
        };
        let types = arguments.iter().map(|one| catalog.type_named(one, &self.path));
        let types = types.collect::<Result<Vec<SqlType>>>()?;
        let oids: Vec<u32> = types.iter().map(|one| one.oid()).collect();
        found.retain(|one| one.parameters.iter().map(|one| one.oid()).eq(oids.iter().copied()));
        found.pop().ok_or_else(|| {
            let shown = signature(catalog, &self.path, &written, &types);
            Error::new(sqlstate::UNDEFINED_FUNCTION, format!("function {shown} does not exist"))
        })
    }

    pub(super) fn remove_function(&mut self, number: u32) -> Result<()> {
        let row = Mutation::new(function_key(number)).delete_row();
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        let catalog = self.changes.catalog(self.engine);
        self.changes.set_catalog(catalog.without_function(number));
        Ok(())
    }

    pub(super) fn store_function(&mut self, function: &Arc<Function>) -> Result<()> {
        let key = function_key(function.record.number);
        let row = Mutation::new(key).put(0, Vec::new(), encode(&function.record));
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        let catalog = self.changes.catalog(self.engine);
        self.changes.set_catalog(catalog.with_function(Arc::clone(function)));
        Ok(())
    }

    /// Puts tables together anew that call a changed function.
    fn use_anew(&mut self, function: &Function) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        for table in catalog.tables() {
            let Some(record) = catalog.record(table.oid) else { continue };
            let calls = |text: &String| text_calls(&catalog, &Default::default(), text, function);
            if !texts_of(record).any(calls) {
                continue;
            }
            lock_table(self.transaction, table.id, LockMode::Exclusive)?;
            self.store_changed(table, TableRecord::clone(record))?;
        }
        Ok(())
    }
}

/// Returns the SQL texts of a table.
pub(super) fn texts_of(record: &TableRecord) -> impl Iterator<Item = &String> {
    let columns = record.columns.iter();
    let of_columns = columns.flat_map(|one| one.default.iter().chain(one.generated.iter()));
    let checks = record.checks.iter().map(|check| &check.predicate);
    of_columns.chain(checks).chain(record.indexes.iter().flat_map(IndexRecord::texts))
}

/// Returns the query of a body.
fn one_query(text: &str) -> Result<String> {
    let text = text.trim().trim_end_matches(';').trim_end();
    let statements = parser::parse_statements(text).map_err(|error| {
        let error = Error::from(error);
        Error { position: None, ..error }
    })?;
    match statements.as_slice() {
        [one] if matches!(one.statement, ast::Statement::Query(_)) => Ok(text.to_owned()),
        [] => {
            let message = "a function without a statement";
            Err(Error::not_supported(message, "Write one query."))
        }
        _ => {
            let what = "a function of anything but one query";
            let hint = "Write one SELECT, with WITH for its parts; run changes as statements.";
            Err(Error::not_supported(what, hint))
        }
    }
}

fn check_type(sql_type: SqlType, does: &str) -> Result<()> {
    let pseudo = sql_type.base.is_polymorphic()
        || matches!(
            sql_type.base,
            types::DataType::Record | types::DataType::Void | types::DataType::Unknown
        );
    if !pseudo {
        return Ok(());
    }
    let what = format!("a function that can {does} {}", sql_type.base.sql_name());
    Err(Error::not_supported(what, "Name the type itself; return rows as a TABLE."))
}

/// Returns `f(integer,text)`.
pub(super) fn signature(
    catalog: &Catalog,
    path: &crate::catalog::name::SearchPath,
    name: &str,
    types: &[SqlType],
) -> String {
    let shown = |one: &SqlType| {
        let shown = catalog.shown_type_with(one.oid(), -1, path);
        shown.unwrap_or_else(|| one.base.sql_name().to_owned())
    };
    let types: Vec<String> = types.iter().map(shown).collect();
    format!("{name}({})", types.join(","))
}

/// A function keeps what callers know of it.
fn check_replacement(
    catalog: &Catalog,
    path: &crate::catalog::name::SearchPath,
    old: &Function,
    new: &FunctionRecord,
) -> Result<()> {
    let invalid = |message: String| {
        let shown = signature(catalog, path, &new.name, &old.parameters);
        let hint = format!("Use DROP FUNCTION {shown} first.");
        Err(Error::new(INVALID_DEFINITION, message).with_hint(hint))
    };
    if old.record.returns != new.returns {
        return invalid("cannot change return type of existing function".to_owned());
    }
    for (was, is) in old.record.parameters.iter().zip(&new.parameters) {
        if !was.name.is_empty() && was.name != is.name {
            return invalid(format!("cannot change name of input parameter \"{}\"", was.name));
        }
        if was.default.is_some() && is.default.is_none() {
            return invalid("cannot remove parameter defaults from existing function".to_owned());
        }
    }
    Ok(())
}
