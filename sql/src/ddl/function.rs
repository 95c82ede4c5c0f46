//! CREATE, ALTER and DROP FUNCTION.
//!
//! Texts of the catalog qualify the functions that they call ([`stored_text`]). A function that is
//! called in one of them cannot be renamed or moved.

use std::collections::BTreeSet;
use std::sync::Arc;

use store::transaction::TableLockMode;
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{
    self, BodyPosition, FunctionAttributes, FunctionBody, FunctionStatement, Language, ObjectKind,
    ObjectReference, ParameterMode, Returns, Volatility,
};
use crate::binder::{
    TableClause, bind_table_expression, body_with_fixed_literals, check_function_body,
};
use crate::catalog::function::{
    DeclaredMode, DeclaredParameter, Function, FunctionRecord, ParameterExtension, ParameterRecord,
    ReturnRecord, RoutineKind,
};
use crate::catalog::object::references::texts_of;
use crate::catalog::record::TableRecord;
use crate::catalog::trigger::{ROW_VARIABLES, body_variables};
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, ObjectId, standard_function};
use crate::ddl::user_type::{stored_text, text_calls};
use crate::ddl::{Ddl, no_schema};
use crate::error::{Error, Result, sqlstate};
use crate::parser;
use crate::plpgsql::body_tree::Body;
use crate::plpgsql::{self, BodyError, BodyParameter, ReturnKind};

/// Applies the attributes of a statement to a record.
fn set_attributes(record: &mut FunctionRecord, attributes: &FunctionAttributes) -> Result<()> {
    if let Some(position) = attributes.of_functions.filter(|_| record.is_procedure()) {
        bail!(INVALID_FUNCTION_DEFINITION: "invalid attribute in procedure definition"; at position);
    }
    if attributes.rows.is_some() && matches!(record.returns, ReturnRecord::Value(_)) {
        bail!(INVALID_PARAMETER_VALUE: "ROWS is not applicable when function does not return a set");
    }
    record.volatility = attributes.volatility.unwrap_or(record.volatility);
    record.strict = attributes.strict.unwrap_or(record.strict);
    record.security_definer = attributes.security_definer.unwrap_or(record.security_definer);
    let hints = &mut record.hints;
    hints.cost = attributes.cost.or(hints.cost);
    hints.rows = attributes.rows.or(hints.rows);
    hints.parallel = attributes.parallel.unwrap_or(hints.parallel);
    hints.is_leakproof = attributes.leakproof.unwrap_or(hints.is_leakproof);
    Ok(())
}

/// Checks that a function is not one of the system.
pub(super) fn check_changeable(record: &FunctionRecord) -> Result<()> {
    match record.is_standard() {
        true => {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied: \"{}\" is a system function", record.name)
        }
        false => Ok(()),
    }
}

impl Ddl<'_> {
    /// Creates, alters or drops functions.
    pub fn change_functions(&mut self, statement: &FunctionStatement) -> Result<()> {
        match statement {
            FunctionStatement::Create(create) => self.create_function(create),
            FunctionStatement::Alter(alter) => self.alter_function(alter),
        }
    }

    /// Adds notices for types written as `column%TYPE`.
    pub(super) fn tell_column_types<'t>(
        &mut self,
        catalog: &Catalog,
        types: impl Iterator<Item = &'t ast::TypeName>,
    ) -> Result<()> {
        for one in types {
            let Some(named) = &one.named else { continue };
            let Some(column) = &named.of_column else { continue };
            let found = catalog.type_named(one, &self.path)?;
            self.notices.push(
                err!(SUCCESSFUL_COMPLETION: "type reference {}.{column}%TYPE converted to {}",
                    named.display_name(), catalog.shown_type_of(&SqlType::from(found.base), &self.path)),
            );
        }
        Ok(())
    }

    /// Checks that the current role may set the attributes of a function.
    fn check_attributes(&self, attributes: &FunctionAttributes) -> Result<()> {
        let role = self.roles.current.number;
        if attributes.leakproof == Some(true)
            && !self.changes.catalog(self.engine).is_superuser(role)
        {
            bail!(INSUFFICIENT_PRIVILEGE: "only superuser can define a leakproof function");
        }
        Ok(())
    }

    fn create_function(&mut self, statement: &ast::CreateFunction) -> Result<()> {
        let catalog = self.catalog();
        self.tell_column_types(&catalog, statement.types())?;
        let schema = self.creation_schema(&catalog, &statement.name)?;
        let mut record = self.function_record(&catalog, &schema, statement)?;
        let placed = |error: Error| {
            let (text, place) = statement.body.text();
            let position = error.position.zip(place);
            let position = position.map(|(position, place)| place.position(text, position));
            Error { position, ..error }
        };
        if record.search_path.is_some() {
            // Its body is resolved before the function exists, so it does not find itself.
            let function = Arc::new(Function::of_record(record.clone(), &catalog)?);
            let checked =
                check_function_body(&function, &catalog, self.system.as_ref(), &self.path);
            checked.map_err(placed)?;
            let session = (&self.path, self.literal_style());
            record.body =
                body_with_fixed_literals(&function, &catalog, self.system.as_ref(), session)?;
        }
        let types: Vec<u32> = record.parameters.iter().map(|one| one.type_oid).collect();
        let same = |one: &&Arc<Function>| {
            let mut own = one.record.parameters.iter().map(|one| one.type_oid);
            own.len() == types.len() && types.iter().all(|oid| own.next() == Some(*oid))
        };
        let old = catalog.functions_in(&schema, &record.name).find(same).cloned();
        match &old {
            Some(_) if !statement.or_replace => {
                bail!(DUPLICATE_FUNCTION: "function \"{}\" already exists with same argument types", record.name);
            }
            Some(old) => {
                check_replacement(&catalog, &self.path, old, &record)?;
                record.number = old.record.number;
            }
            None => {
                record.number = self.take_ids(1)?;
            }
        }
        let function = Arc::new(Function::of_record(record, &catalog)?);
        self.store_object(CatalogObject::Function(Arc::clone(&function)))?;
        if !self.checks_bodies() && matches!(statement.body, FunctionBody::Text { .. }) {
            return if old.is_some() { self.rebuild_users(&function) } else { Ok(()) };
        }
        if statement.language == Language::PlPgSql {
            let FunctionBody::Text { text, place } = &statement.body else { return Ok(()) };
            parse_body(&function, (text, *place), &[])?;
            return if old.is_some() { self.rebuild_users(&function) } else { Ok(()) };
        }
        // Now its body can call the function itself.
        let catalog = self.changes.catalog(self.engine);
        let path = self.path_within(&function.record)?;
        let checked = check_function_body(&function, &catalog, self.system.as_ref(), &path);
        checked.map_err(placed)?;
        if old.is_some() { self.rebuild_users(&function) } else { Ok(()) }
    }

    /// Returns the record of a function, without its number.
    fn function_record(
        &self,
        catalog: &Catalog,
        schema: &str,
        statement: &ast::CreateFunction,
    ) -> Result<FunctionRecord> {
        let kind = match statement.kind {
            ObjectKind::Procedure => RoutineKind::Procedure,
            _ => RoutineKind::Function,
        };
        let (parameters, more) = self.parameter_records(catalog, statement, kind)?;
        let returns = self.return_record(catalog, statement, kind, &parameters, &more)?;
        let (body, place) = statement.body.text();
        let is_text = matches!(statement.body, FunctionBody::Text { .. });
        let parsed = match statement.language {
            Language::Sql => parser::parse_statements(body).map(drop),
            // It is parsed after the function was created.
            Language::PlPgSql => Ok(()),
        };
        let unchecked = is_text && !self.checks_bodies();
        parsed.or_else(|error| if unchecked { Ok(()) } else { Err(error) }).map_err(|error| {
            let error = Error::from(error);
            let position = error.position.zip(place);
            let position = position.map(|(position, place)| place.position(body, position));
            Error { position, ..error }
        })?;
        let search_path = (!is_text).then(|| self.path.schemas().to_vec());
        let mut record = FunctionRecord {
            number: 0,
            schema: schema.to_owned(),
            name: statement.name.name.value.clone(),
            parameters,
            returns,
            volatility: Volatility::Volatile,
            strict: false,
            body: body.to_owned(),
            search_path,
            kind,
            more,
            is_expression: matches!(statement.body, FunctionBody::Expression(..)),
            hints: Default::default(),
            language: statement.language,
            settings: Default::default(),
            security_definer: false,
            unknown: Default::default(),
        };
        self.check_attributes(&statement.attributes)?;
        set_attributes(&mut record, &statement.attributes)?;
        self.change_settings(&mut record.settings, &statement.attributes.settings)?;
        Ok(record)
    }

    /// Returns the input parameters, and the modes other than IN.
    fn parameter_records(
        &self,
        catalog: &Catalog,
        statement: &ast::CreateFunction,
        kind: RoutineKind,
    ) -> Result<(Vec<ParameterRecord>, Vec<ParameterExtension>)> {
        check_parameters(statement)?;
        let names = self.names(catalog);
        let (mut parameters, mut more) = (Vec::<ParameterRecord>::new(), Vec::new());
        for (at, parameter) in statement.arguments.iter().enumerate() {
            let name = parameter.name.as_ref().map_or(String::new(), |name| name.value.clone());
            let sql_type = catalog.type_named(&parameter.type_name, &self.path);
            let sql_type = sql_type.map_err(|error| unknown_parameter_type(error, parameter))?;
            let type_oid = sql_type.oid();
            if parameter.mode == ParameterMode::Out {
                let defaulted = parameters.iter().any(|one| one.default.is_some());
                if kind == RoutineKind::Procedure && defaulted {
                    bail!(INVALID_FUNCTION_DEFINITION: "procedure OUT parameters cannot appear after one with a default value");
                }
                more.push(ParameterExtension::Out(at as u32, name, type_oid));
                continue;
            }
            check_taken(&sql_type, statement.language)?;
            match parameter.mode {
                ParameterMode::InOut => {
                    more.push(ParameterExtension::InOut(parameters.len() as u32))
                }
                ParameterMode::Variadic => {
                    let base = &sql_type.base;
                    let array = [DataType::AnyArray, DataType::CompatibleArray].contains(base);
                    if base.element().is_none() && !array {
                        bail!(INVALID_FUNCTION_DEFINITION: "VARIADIC parameter must be an array");
                    }
                    more.push(ParameterExtension::Variadic);
                }
                _ => {}
            }
            let default = match &parameter.default {
                Some(default) => {
                    let target = Some(sql_type).filter(|one| !one.base.is_polymorphic());
                    bind_table_expression(
                        TableClause::Parameter,
                        &default.expr,
                        &[],
                        target.clone(),
                        names,
                    )?;
                    Some(stored_text(names, &default.text, &[], target)?)
                }
                None if parameters.iter().any(|one| one.default.is_some()) => {
                    bail!(INVALID_FUNCTION_DEFINITION: "input parameters after one with a default value must also have defaults");
                }
                None => None,
            };
            // As in PostgreSQL, the modifier of a parameter's type is not stored.
            parameters.push(ParameterRecord {
                name,
                type_oid,
                default,
                unknown: Default::default(),
            });
        }
        Ok((parameters, more))
    }

    /// Returns the result of a function.
    fn return_record(
        &self,
        catalog: &Catalog,
        statement: &ast::CreateFunction,
        kind: RoutineKind,
        parameters: &[ParameterRecord],
        more: &[ParameterExtension],
    ) -> Result<ReturnRecord> {
        let inputs = parameters.iter().map(|one| catalog.stored_type(one.type_oid, -1));
        let inputs = inputs.collect::<Result<Vec<SqlType>>>()?;
        let named = |type_name: &ast::TypeName| {
            let sql_type = catalog.type_named(type_name, &self.path);
            let sql_type = sql_type.map_err(|error| Error { position: None, ..error })?;
            if statement.language == Language::PlPgSql && sql_type.base == DataType::Unknown {
                bail!(FEATURE_NOT_SUPPORTED: "PL/pgSQL functions cannot return type unknown");
            }
            check_given(&sql_type, &inputs, statement.language)?;
            if sql_type.base == DataType::Trigger && !statement.arguments.is_empty() {
                let name = &statement.name.name.value;
                let context = format!("compilation of PL/pgSQL function \"{name}\" near line 1");
                let error = err!(INVALID_FUNCTION_DEFINITION: "trigger functions cannot have declared arguments";
                    hint "The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.");
                return Err(Error { context: Some(context), ..error });
            }
            Ok::<u32, Error>(sql_type.oid())
        };
        let outs: Vec<u32> = more
            .iter()
            .filter_map(|one| match one {
                ParameterExtension::Out(_, _, oid) => Some(*oid),
                ParameterExtension::InOut(at) => Some(parameters[*at as usize].type_oid),
                ParameterExtension::Variadic => None,
            })
            .collect();
        for oid in &outs {
            check_given(&catalog.stored_type(*oid, -1)?, &inputs, statement.language)?;
        }
        let required = match outs.as_slice() {
            [] => None,
            [one] if kind == RoutineKind::Function => Some(*one),
            _ => Some(DataType::Record.oid()),
        };
        let fits = |oid: u32| match required {
            Some(required) if required != oid => {
                let shown = catalog.shown_type_with(required, -1, &self.path).unwrap_or_default();
                Err(
                    err!(INVALID_FUNCTION_DEFINITION: "function result type must be {shown} because of OUT parameters"),
                )
            }
            _ => Ok(oid),
        };
        match &statement.returns {
            Some(Returns::Value(type_name)) => Ok(ReturnRecord::Value(fits(named(type_name)?)?)),
            Some(Returns::Set(type_name)) => Ok(ReturnRecord::Set(fits(named(type_name)?)?)),
            Some(Returns::Table(columns)) => {
                let columns = columns
                    .iter()
                    .map(|(name, type_name)| Ok((name.value.clone(), named(type_name)?)));
                Ok(ReturnRecord::Table(columns.collect::<Result<_>>()?))
            }
            None => match (required, kind) {
                (Some(oid), _) => Ok(ReturnRecord::Value(oid)),
                (None, RoutineKind::Procedure) => Ok(ReturnRecord::Value(DataType::Void.oid())),
                (None, RoutineKind::Function) => {
                    bail!(INVALID_FUNCTION_DEFINITION: "function result type must be specified")
                }
            },
        }
    }

    fn alter_function(&mut self, statement: &ast::AlterFunction) -> Result<()> {
        let catalog = self.catalog();
        self.tell_column_types(&catalog, statement.function.types())?;
        let known = self.known_function(&catalog, &statement.function)?;
        check_changeable(&known.record)?;
        let mut record = known.record.clone();
        self.check_attributes(&statement.attributes)?;
        set_attributes(&mut record, &statement.attributes)?;
        self.change_settings(&mut record.settings, &statement.attributes.settings)?;
        let function = Arc::new(Function::of_record(record, &catalog)?);
        self.store_object(CatalogObject::Function(Arc::clone(&function)))?;
        self.rebuild_users(&function)
    }

    /// Returns the function that a statement references.
    pub(super) fn known_function(
        &self,
        catalog: &Catalog,
        reference: &ObjectReference,
    ) -> Result<Arc<Function>> {
        let schema = reference.name.schema.as_ref().map(|schema| schema.value.as_str());
        if let Some(schema) = schema
            && !standard_function::SCHEMAS.contains(&schema)
            && self.path.schema(schema).is_none_or(|name| catalog.schema(name).is_none())
        {
            return Err(no_schema(schema));
        }
        let (kind, noun) = (reference.kind, reference.kind.noun());
        let missing = if kind == ObjectKind::Procedure { noun } else { "function" };
        let fits = |one: &Arc<Function>| match kind {
            ObjectKind::Function => !one.record.is_procedure(),
            ObjectKind::Procedure => one.record.is_procedure(),
            _ => true,
        };
        let name = &reference.name.name.value;
        let mut found = catalog.functions_named(schema, name, &self.path);
        let written = super::name_as_written(&reference.name);
        let Some(arguments) = &reference.arguments else {
            found.retain(fits);
            return match found.len() {
                1 => Ok(found.remove(0)),
                0 => {
                    Err(err!(UNDEFINED_FUNCTION: "could not find a {missing} named \"{written}\""))
                }
                _ => Err(err!(AMBIGUOUS_FUNCTION: "{noun} name \"{written}\" is not unique";
                    hint "Specify the argument list to select the {noun} unambiguously.")),
            };
        };
        let taken = arguments.iter().filter(|one| one.mode != ParameterMode::Out);
        let types = taken.map(|one| catalog.type_named(&one.type_name, &self.path));
        let types = types.collect::<Result<Vec<SqlType>>>()?;
        let oids: Vec<u32> = types.iter().map(|one| one.oid()).collect();
        // As in the SQL standard, a list without modes may be that of all parameters of a
        // procedure.
        let plain = arguments.iter().all(|one| !one.has_mode);
        let whole = |one: &Function| {
            let of_all = one.record.declared().into_iter().map(|one| one.type_oid);
            plain
                && kind != ObjectKind::Function
                && one.record.is_procedure()
                && of_all.eq(oids.clone())
        };
        found.retain(|one| {
            one.parameters.iter().map(|one| one.oid()).eq(oids.iter().copied()) || whole(one)
        });
        if found.len() > 1 {
            bail!(AMBIGUOUS_FUNCTION: "{noun} name \"{written}\" is not unique");
        }
        let shown = || catalog.display_signature(&written, &types, &self.path);
        match found.pop() {
            Some(found) if !fits(&found) => {
                bail!(WRONG_OBJECT_TYPE: "{} is not a {noun}", shown())
            }
            Some(found) => Ok(found),
            None => bail!(UNDEFINED_FUNCTION: "{missing} {} does not exist", shown()),
        }
    }

    /// Rebuilds tables whose expressions call a replaced function. Indexes that call it contain
    /// values of the old definition and become stale, to be rebuilt. So do indexes that call any
    /// user-defined function, because nested calls are not known.
    fn rebuild_users(&mut self, function: &Function) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let callers: BTreeSet<_> = catalog.possible_callers(&function.record.name).collect();
        for table in catalog.tables() {
            let Some(record) = catalog.record(table.oid) else { continue };
            let entry = CatalogEntry::Object(ObjectId::Table(table.oid));
            let may_call = callers.contains(&entry);
            let calls =
                |text: &str| may_call && text_calls(&catalog, &Default::default(), text, function);
            for (index, kept) in table.indexes.iter().zip(&record.indexes) {
                let mut parts = index.spec.keys.iter().chain(&index.spec.predicate);
                if parts.any(Expr::calls_routines) || kept.texts().any(|text| calls(text)) {
                    self.stale_indexes.push((table.oid, index.oid));
                }
            }
            let texts = texts_of(&catalog, &entry);
            if !texts.iter().any(|one| calls(one.text)) {
                continue;
            }
            self.lock_table(table.id, TableLockMode::AccessExclusive)?;
            self.with_others(|ddl| ddl.store_changed(table, TableRecord::clone(record)))?;
        }
        Ok(())
    }
}

/// Parses a PL/pgSQL body; `place` is its position in the statement, and `more` are the names of
/// further variables that a call has.
///
/// # Errors
///
/// 42601 and others, at positions in the statement if the position of the body is known.
pub fn parse_body(
    function: &Function,
    (text, place): (&str, Option<BodyPosition>),
    more: &[String],
) -> Result<Body> {
    let record = &function.record;
    let declared = record.declared();
    let rows = function.columns.iter().map(|(_, of)| of.base.is_row());
    let mut outs = rows.chain(std::iter::repeat(false));
    let mut takes = function.parameters.iter().map(|of| of.base.is_row());
    let parameter = |one: &DeclaredParameter<'_>| {
        let taken = match one.mode {
            DeclaredMode::Out | DeclaredMode::Table => false,
            _ => takes.next().unwrap_or(false),
        };
        let given = match one.mode {
            DeclaredMode::In | DeclaredMode::Variadic => false,
            _ => outs.next().unwrap_or(false),
        };
        BodyParameter { name: one.name.to_owned(), is_row: taken || given }
    };
    let mut parameters: Vec<BodyParameter> = declared.iter().map(parameter).collect();
    if function.is_trigger() {
        parameters.extend(trigger_parameters());
    }
    parameters.extend(more.iter().map(|name| BodyParameter { name: name.clone(), is_row: false }));
    let has_outs = !record.output_parameters().is_empty();
    let is_void =
        matches!(function.columns.as_slice(), [(_, of)] if of.base == DataType::Void) && !has_outs;
    let returning = match (function.is_set(), has_outs) {
        (true, true) => ReturnKind::SetOfParameters,
        (true, false) => ReturnKind::Set,
        (false, true) => ReturnKind::Parameters,
        (false, false) if is_void => ReturnKind::Nothing,
        (false, false) => ReturnKind::Value,
    };
    let kind = (returning, record.is_procedure());
    let read = plpgsql::parse_body(text, &record.name, &parameters, kind);
    read.map_err(|error| body_error(error, &record.name, text, place))
}

/// Returns the variables of the body of a trigger function.
fn trigger_parameters() -> impl Iterator<Item = BodyParameter> {
    let rows = ROW_VARIABLES.into_iter().map(|name| (name, true));
    let others = body_variables().into_iter().map(|(name, _)| (name, false));
    rows.chain(others).map(|(name, is_row)| BodyParameter { name: name.to_owned(), is_row })
}

/// Returns the error of a body with its position in the statement, or with its line if that is
/// unknown.
pub fn body_error(
    BodyError { error, line }: BodyError,
    name: &str,
    text: &str,
    place: Option<BodyPosition>,
) -> Error {
    let error = Error::from(error);
    match (error.position, place) {
        (Some(position), Some(place)) => {
            Error { position: Some(place.position(text, position)), ..error }
        }
        (Some(position), None) => {
            let internal = Some(Box::new((position, text.to_owned())));
            Error { position: None, internal, ..error }
        }
        (None, _) => {
            let context = format!("compilation of PL/pgSQL function \"{name}\" near line {line}");
            Error { context: Some(context), ..error }
        }
    }
}

/// Checks names, modes and defaults of parameters.
fn check_parameters(statement: &ast::CreateFunction) -> Result<()> {
    let invalid = |message: String| Err(err!(INVALID_FUNCTION_DEFINITION: message));
    let table = match &statement.returns {
        Some(Returns::Table(columns)) => columns.as_slice(),
        _ => &[],
    };
    let gives = |mode: ParameterMode| matches!(mode, ParameterMode::Out | ParameterMode::InOut);
    if !table.is_empty() && statement.arguments.iter().any(|one| gives(one.mode)) {
        bail!(SYNTAX_ERROR: "OUT and INOUT arguments aren't allowed in TABLE functions");
    }
    let own = statement.arguments.iter().map(|one| (one.name.as_ref(), one.mode));
    let columns = table.iter().map(|(name, _)| (Some(name), ParameterMode::Out));
    let all: Vec<_> = own.chain(columns).collect();
    for (at, (name, mode)) in all.iter().enumerate() {
        let Some(name) = name else { continue };
        let takes_only =
            |mode: &ParameterMode| matches!(mode, ParameterMode::In | ParameterMode::Variadic);
        // An input parameter and an output parameter may have the same name.
        let meets = |other: &ParameterMode| {
            !(takes_only(mode) && *other == ParameterMode::Out
                || *mode == ParameterMode::Out && takes_only(other))
        };
        let mut before = all[..at].iter();
        if before.any(|(other, of)| other.is_some_and(|one| one.value == name.value) && meets(of)) {
            return invalid(format!("parameter name \"{}\" used more than once", name.value));
        }
    }
    let mut variadic = false;
    for parameter in &statement.arguments {
        let takes = parameter.mode != ParameterMode::Out;
        let procedure = statement.kind == ObjectKind::Procedure;
        if variadic && (takes || procedure) {
            return invalid(match procedure {
                true => "VARIADIC parameter must be the last parameter".to_owned(),
                false => "VARIADIC parameter must be the last input parameter".to_owned(),
            });
        }
        variadic |= parameter.mode == ParameterMode::Variadic;
        if parameter.default.is_some() && !takes {
            return invalid("only input parameters can have default values".to_owned());
        }
    }
    Ok(())
}

/// Words the error of an unknown parameter type as PostgreSQL does, without a position.
fn unknown_parameter_type(error: Error, parameter: &ast::FunctionParameter) -> Error {
    match &parameter.type_name.named {
        Some(name) if error.sqlstate == sqlstate::UNDEFINED_OBJECT => {
            let message = format!("type {} does not exist", name.display_name());
            Error { message, position: None, ..error }
        }
        _ => Error { position: None, ..error },
    }
}

/// Checks that a type can be the type of a parameter.
fn check_taken(sql_type: &SqlType, language: Language) -> Result<()> {
    let is_procedural = language == Language::PlPgSql;
    match sql_type.base {
        DataType::Record if is_procedural => Ok(()),
        DataType::CString | DataType::Void | DataType::Trigger | DataType::Unknown
            if is_procedural =>
        {
            let name = sql_type.base.sql_name();
            bail!(FEATURE_NOT_SUPPORTED: "PL/pgSQL functions cannot accept type {name}")
        }
        DataType::Record
        | DataType::CString
        | DataType::Void
        | DataType::Trigger
        | DataType::Unknown => {
            let name = sql_type.base.sql_name();
            bail!(INVALID_FUNCTION_DEFINITION: "SQL functions cannot have arguments of type {name}")
        }
        _ => Ok(()),
    }
}

/// Checks that a type can be the result of a function with these parameters.
fn check_given(sql_type: &SqlType, inputs: &[SqlType], language: Language) -> Result<()> {
    let base = &sql_type.base;
    if *base == DataType::CString {
        let whose = if language == Language::Sql { "SQL" } else { "PL/pgSQL" };
        bail!(INVALID_FUNCTION_DEFINITION: "{whose} functions cannot return type {}", base.sql_name());
    }
    if *base == DataType::Unknown || *base == DataType::Trigger && language == Language::Sql {
        bail!(INVALID_FUNCTION_DEFINITION: "SQL functions cannot return type {}", base.sql_name());
    }
    if !base.is_polymorphic() {
        return Ok(());
    }
    let compatible = |base: &DataType| {
        use DataType::{Compatible, CompatibleArray, CompatibleNonArray};
        matches!(base, Compatible | CompatibleArray | CompatibleNonArray)
    };
    let mut known = inputs.iter().map(|one| &one.base).filter(|one| one.is_polymorphic());
    if known.any(|one| compatible(one) == compatible(base)) {
        return Ok(());
    }
    let kinds = match compatible(base) {
        true => {
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or \
             anycompatiblemultirange"
        }
        false => "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
    };
    bail!(INVALID_FUNCTION_DEFINITION: "cannot determine result data type";
        detail "A result of type {} requires at least one input of type {kinds}.", base.sql_name())
}

/// Checks that CREATE OR REPLACE does not change what callers rely on.
fn check_replacement(
    catalog: &Catalog,
    path: &crate::catalog::name::SearchPath,
    old: &Function,
    new: &FunctionRecord,
) -> Result<()> {
    let invalid = |message: String| {
        let shown = catalog.display_function(old, path);
        bail!(INVALID_FUNCTION_DEFINITION: message; hint "Use DROP FUNCTION {shown} first.")
    };
    if old.record.kind != new.kind {
        let detail = format!("\"{}\" is a {}.", new.name, old.record.noun());
        bail!(WRONG_OBJECT_TYPE: "cannot change routine kind"; detail detail);
    }
    let (was, is) = (old.record.result(), new.result());
    let is_row = is.1 == DataType::Record.oid();
    if was != is || is_row && old.record.output_parameters() != new.output_parameters() {
        let message = format!("cannot change return type of existing {}", new.noun());
        return invalid(message).map_err(|error| match was == is {
            true => error.with_detail("Row type defined by OUT parameters is different."),
            false => error,
        });
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
