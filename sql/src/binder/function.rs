//! Calls of user-defined functions: overload resolution, arguments, and the form of the call in
//! the plan.
//!
//! A function whose body is only `SELECT expression` is inlined into the expression. A
//! set-returning function that is one query and not VOLATILE is inlined into FROM, as a view is:
//! [`function_body`](super::function_body). All other functions are called by the executor
//! ([`Expr::Routine`], [`SetCall::Routine`]); their statements are bound and planned at the first
//! call, once for the calling statement.
//!
//! Source: PostgreSQL's `FuncnameGetCandidates` (namespace.c), `func_get_detail` (parse_func.c).

use std::sync::Arc;

use types::cast::CastContext;
use types::expr::{Expr, Routine};
use types::{DataType, SqlType};

use crate::ast::{self, FunctionCall, Ident};
use crate::binder::arrays::internal;
use crate::binder::calls::undefined_function;
use crate::binder::level::{Binder, Clause, TableClause};
use crate::binder::overload_resolution::{Candidate, Match, select};
use crate::binder::polymorphic::{PolymorphicDomains, settle, undetermined};
use crate::binder::resolution_notes::CallNote;
use crate::binder::scope::Scope;
use crate::binder::typed::{Typed, can_coerce, null};
use crate::catalog::function::{Function, ReturnRecord};
use crate::catalog::standard_function;
use crate::error::{Error, Result};
use crate::logical::{OutputColumn, SetCall, SetFunction};
use crate::parser;

/// Overload candidate: the mapping of the arguments of a call to the parameters of a function.
#[derive(Clone)]
pub(super) struct FunctionCandidate {
    pub(super) function: Arc<Function>,
    /// By parameter: the position of the argument in the call; `None` for a default.
    places: Vec<Option<usize>>,
    /// The position of the first argument that becomes an element of the VARIADIC array.
    gathered: Option<usize>,
    /// By argument: the declared type of its parameter, which may be polymorphic.
    pub(super) wanted: Vec<DataType>,
    /// True if another function of the schema fits equally well.
    pub(super) is_ambiguous: bool,
}

impl Candidate for FunctionCandidate {
    fn takes(&self, index: usize) -> &DataType {
        self.wanted.get(index).unwrap_or(&DataType::Unknown)
    }

    fn accepts(&self, arguments: &[DataType]) -> bool {
        let Some(settled) = settle(&self.wanted, arguments) else { return false };
        let mut pairs = arguments.iter().zip(&self.wanted);
        pairs.all(|(from, to)| settled.of(to).is_some_and(|to| can_coerce(from, &to)))
    }
}

/// A call after overload resolution.
pub(super) struct ResolvedCall {
    /// The function.
    pub(super) function: Arc<Function>,
    /// The values of its parameters.
    pub(super) values: Vec<Typed>,
    /// The columns of its result in this call.
    pub(super) columns: Vec<(String, SqlType)>,
}

impl ResolvedCall {
    /// Returns whether the result is a record and not a scalar value.
    pub(super) fn is_row(&self) -> bool {
        self.function.is_row()
    }

    /// Returns the type of the result as a value.
    pub(super) fn value_type(&self) -> SqlType {
        match self.columns.as_slice() {
            [(_, sql_type)] if !self.is_row() => sql_type.clone(),
            [] => DataType::Void.into(),
            _ => DataType::Record.into(),
        }
    }

    /// Returns the executor's description of the function, and its arguments; `defined` are the
    /// columns of a column definition list.
    pub(super) fn routine(self, defined: Option<&[OutputColumn]>) -> (Arc<Routine>, Vec<Expr>) {
        let field = |(name, sql_type): &(String, SqlType)| {
            (Arc::from(name.as_str()), sql_type.base.clone())
        };
        let fields = match defined {
            Some(defined) => {
                let field =
                    |one: &OutputColumn| (Arc::from(one.name.as_str()), one.sql_type.base.clone());
                Some(defined.iter().map(field).collect())
            }
            None => self.is_row().then(|| self.columns.iter().map(field).collect()),
        };
        let record = &self.function.record;
        let routine = Routine {
            number: record.number,
            name: record.name.clone(),
            parameters: self.values.iter().map(Typed::base).cloned().collect(),
            result: self.value_type().base,
            fields,
            strict: record.strict,
            is_volatile: record.volatility == ast::Volatility::Volatile,
            is_immutable: record.volatility == ast::Volatility::Immutable,
            is_leakproof: record.hints.is_leakproof,
        };
        (Arc::new(routine), self.values.into_iter().map(|value| value.expr).collect())
    }
}

impl Binder<'_> {
    /// Binds a call of a user-defined function in an expression, given the functions of that name.
    pub(super) fn bind_user_function(
        &mut self,
        call: &FunctionCall,
        named: Vec<Arc<Function>>,
        values: Vec<Typed>,
    ) -> Result<Typed> {
        let position = call.name.position();
        let resolved = self.resolve_user_call(call, named, values)?;
        self.check_user_call(call)?;
        self.refuse_procedure(call, &resolved)?;
        if resolved.function.is_set() {
            let function = self.set_routine(call, resolved, None);
            return self.use_set(function, position);
        }
        let sql_type = resolved.value_type();
        let expr = match self.inlined(&resolved)? {
            Some(value) => strictly(&resolved, value),
            None => match self.run_once(&resolved, position)? {
                Some(value) => strictly(&resolved, value),
                None => {
                    let (routine, arguments) = resolved.routine(None);
                    Expr::Routine { routine, arguments }
                }
            },
        };
        Ok(Typed { expr, sql_type, position })
    }

    /// Returns a set-returning call of a user-defined function.
    pub(super) fn set_routine(
        &mut self,
        call: &FunctionCall,
        resolved: ResolvedCall,
        defined: Option<&[OutputColumn]>,
    ) -> SetFunction {
        let name = &call.name.name.value;
        let column = |(own, sql_type): &(String, SqlType)| OutputColumn {
            name: if own.is_empty() { name.clone() } else { own.clone() },
            sql_type: sql_type.clone(),
            origin: None,
        };
        let columns = match defined {
            Some(defined) => defined.to_vec(),
            None => resolved.columns.iter().map(column).collect(),
        };
        let is_set = resolved.function.is_set();
        let (routine, arguments) = resolved.routine(defined);
        SetFunction { call: SetCall::Routine { routine, arguments, is_set }, columns }
    }

    /// Calls a user-defined function with one argument.
    pub(super) fn function_of(&mut self, name: &Ident, value: Typed) -> Result<Typed> {
        let position = name.position;
        let argument = ast::FunctionArgument { name: None, value: ast::Expr::Null { position } };
        let call = FunctionCall::plain(
            ast::FunctionName { schema: None, name: name.clone() },
            vec![argument],
        );
        let named = self.catalog.functions_named(None, &name.value, self.search_path());
        self.bind_user_function(&call, named, vec![value])
    }

    /// Binds the arguments of a call.
    pub(super) fn arguments_of(&mut self, call: &FunctionCall) -> Result<Vec<Typed>> {
        let values = call.arguments.iter().map(|argument| self.bind_expr(&argument.value));
        let values = values.collect::<Result<Vec<Typed>>>()?;
        check_argument_names(call, &values)?;
        Ok(values)
    }

    /// Rejects a procedure in a function call.
    pub(super) fn refuse_procedure(
        &self,
        call: &FunctionCall,
        resolved: &ResolvedCall,
    ) -> Result<()> {
        if !resolved.function.record.is_procedure() {
            return Ok(());
        }
        let types: Vec<String> =
            resolved.values.iter().map(|value| self.type_name(&value.sql_type)).collect();
        bail!(WRONG_OBJECT_TYPE: "{}({}) is a procedure", call.name.name.value, types.join(", ");
            hint "To call a procedure, use CALL."; at call.name.position())
    }

    // ---- overload resolution ----

    /// Returns the user-defined functions with the name of a call.
    pub(super) fn functions_named(&self, call: &FunctionCall) -> Result<Vec<Arc<Function>>> {
        let name = call.name.name.value.as_str();
        let schema = call.name.schema.as_ref().map(|schema| schema.value.as_str());
        let schema = schema.map(|name| self.search_path().schema(name).unwrap_or(name));
        if let (Some(schema), Some(named)) = (schema, &call.name.schema)
            && !standard_function::SCHEMAS.contains(&schema)
            && self.catalog.schema(schema).is_none()
        {
            bail!(INVALID_SCHEMA_NAME: "schema \"{}\" does not exist", named.value; at call.name.position());
        }
        Ok(self.catalog.functions_named(schema, name, self.search_path()))
    }

    /// Resolves the function of a call, and converts its arguments.
    pub(super) fn resolve_user_call(
        &mut self,
        call: &FunctionCall,
        named: Vec<Arc<Function>>,
        values: Vec<Typed>,
    ) -> Result<ResolvedCall> {
        let position = call.name.position();
        let types: Vec<DataType> = values.iter().map(Typed::base).cloned().collect();
        let mut takers = takers(&named, call, &types);
        let exact = |one: &FunctionCandidate| one.wanted == types;
        if takers.iter().filter(|one| exact(one)).count() == 1 {
            takers.retain(exact);
        }
        let shown: Vec<SqlType> = values.iter().map(|value| value.sql_type.clone()).collect();
        let taker = match select(takers, &types) {
            Match::One(taker) if !taker.is_ambiguous => taker,
            Match::None => return Err(self.no_function(call, &named, &shown)),
            Match::One(_) | Match::Ambiguous => {
                let noun = noun_of(&named);
                bail!(AMBIGUOUS_FUNCTION: "{noun} {} is not unique", self.shown_user(call, &shown);
                    hint "Could not choose a best candidate {noun}. You might need to add explicit type casts."; at position);
            }
        };
        if let Some(reason) = &taker.function.unreadable {
            let name = &taker.function.record.name;
            bail!(DATA_CORRUPTED: "the body of function \"{name}\" cannot be read: {reason}";
                hint "Re-create it with CREATE OR REPLACE FUNCTION."; at position);
        }
        self.request_call(taker.function.record.number);
        self.given(taker, values, position)
    }

    /// Returns the error for a call that fits no function.
    fn no_function(
        &self,
        call: &FunctionCall,
        named: &[Arc<Function>],
        types: &[SqlType],
    ) -> Error {
        let position = call.name.position();
        let unknown = types.iter().all(|one| one.base == DataType::Unknown) && !types.is_empty();
        let polymorphic =
            |one: &&Arc<Function>| one.is_polymorphic() && one.parameters.len() == types.len();
        if unknown && named.iter().any(|one| polymorphic(&one)) {
            return undetermined();
        }
        let error = undefined_function(&self.shown_user(call, types), position);
        if noun_of(named) == "function" {
            return error;
        }
        let message = format!("procedure {} does not exist", self.shown_user(call, types));
        let hint = "No procedure matches the given name and argument types. \
                    You might need to add explicit type casts.";
        Error { message, ..error }.with_hint(hint)
    }

    /// Returns a call of a user-defined function as it is in messages.
    pub(super) fn shown_user(&self, call: &FunctionCall, types: &[SqlType]) -> String {
        let shown = argument_names(call).into_iter().zip(types).map(|(name, sql_type)| {
            let shown = self.type_name(sql_type);
            match name {
                Some(name) => format!("{} => {shown}", name.value),
                None => shown,
            }
        });
        let schema = call.name.schema.as_ref().map(|one| format!("{}.", one.value));
        let (schema, name) = (schema.unwrap_or_default(), &call.name.name.value);
        format!("{schema}{name}({})", shown.collect::<Vec<_>>().join(", "))
    }

    /// Converts the arguments to the types of the parameters.
    fn given(
        &mut self,
        taker: FunctionCandidate,
        values: Vec<Typed>,
        position: usize,
    ) -> Result<ResolvedCall> {
        let types: Vec<DataType> = values.iter().map(Typed::base).cloned().collect();
        let unsettled = || undetermined();
        let FunctionCandidate { function, places, gathered, wanted, .. } = taker;
        let settled = settle(&wanted, &types).ok_or_else(unsettled)?;
        let catalog = self.catalog;
        let of_values: Vec<SqlType> = values.iter().map(|value| value.sql_type.clone()).collect();
        let domains = PolymorphicDomains::of(catalog, &wanted, &of_values);
        let in_call = |declared: &SqlType| match declared.base.is_polymorphic() {
            true => {
                let found = settled.of(&declared.base)?;
                Some(domains.put(catalog, &declared.base, found))
            }
            false => Some(declared.clone()),
        };
        self.note_user_call(position, || CallNote {
            function: Arc::clone(&function),
            wanted: wanted
                .iter()
                .map(|to| settled.of(to).unwrap_or_else(|| to.clone()).into())
                .collect(),
            gathered,
        });
        let mut given: Vec<Option<Typed>> = values.into_iter().map(Some).collect();
        let mut converted = Vec::with_capacity(function.parameters.len());
        let last = function.parameters.len().saturating_sub(1);
        for (at, (place, to)) in places.iter().zip(&function.parameters).enumerate() {
            let to = in_call(to).ok_or_else(unsettled)?;
            if let Some(first) = gathered.filter(|_| at == last) {
                let elements: Vec<Typed> = given.drain(first..).flatten().collect();
                converted.push(self.gather(elements, &to, position)?);
                continue;
            }
            let expr = match place.and_then(|place| given[place].take()) {
                Some(value) => self.as_argument(value, &to, CastContext::Implicit, position)?,
                None => {
                    let value = self.default_argument(&function, at, position)?;
                    self.as_argument(value, &to, CastContext::Assignment, position)?
                }
            };
            converted.push(Typed { expr, sql_type: to, position });
        }
        let columns = function.columns.iter();
        let columns = columns.map(|(name, sql_type)| Some((name.clone(), in_call(sql_type)?)));
        let columns = columns.collect::<Option<Vec<_>>>().ok_or_else(unsettled)?;
        Ok(ResolvedCall { function, values: converted, columns })
    }

    /// Returns the array of the arguments of a VARIADIC parameter.
    fn gather(&mut self, elements: Vec<Typed>, to: &SqlType, position: usize) -> Result<Typed> {
        let element = self.catalog.element_of(to).unwrap_or_else(|| to.clone());
        let implicit = CastContext::Implicit;
        let values =
            elements.into_iter().map(|one| self.as_argument(one, &element, implicit, position));
        let values = values.collect::<Result<Vec<Expr>>>()?;
        Ok(Typed { expr: internal("array of", values, &to.base), sql_type: to.clone(), position })
    }

    fn as_argument(
        &mut self,
        value: Typed,
        to: &SqlType,
        context: CastContext,
        position: usize,
    ) -> Result<Expr> {
        let from = value.sql_type.clone();
        let expr = self.coerce(value, to, context)?;
        expr.ok_or_else(|| {
            let (from, to) = (self.type_name(&from), self.type_name(to));
            err!(CANNOT_COERCE: "cannot cast type {from} to {to}"; at position)
        })
    }

    /// Returns the default of a parameter that a call omits.
    fn default_argument(
        &mut self,
        function: &Arc<Function>,
        at: usize,
        position: usize,
    ) -> Result<Typed> {
        let text = function.record.parameters[at].default.as_deref().unwrap_or("NULL");
        let parsed = parser::parse_expression(text)?;
        let value = self.in_body(function, Vec::new(), |binder| {
            let bind = |binder: &mut Self| binder.bind_expr(&parsed);
            Ok(binder.in_new_level(Scope::default(), Clause::Table(TableClause::Catalog), bind)?.0)
        })?;
        Ok(Typed { position, ..value })
    }
}

/// Checks that named arguments follow the positional ones, and that no name is repeated.
pub(super) fn check_argument_names(call: &FunctionCall, values: &[Typed]) -> Result<()> {
    let mut names: Vec<&str> = Vec::new();
    for (argument, value) in call.arguments.iter().zip(values) {
        match &argument.name {
            None if names.is_empty() => {}
            None => {
                bail!(SYNTAX_ERROR: "positional argument cannot follow named argument"; at value.position);
            }
            Some(name) if names.contains(&name.value.as_str()) => {
                bail!(SYNTAX_ERROR: "argument name \"{}\" used more than once", name.value; at name.position);
            }
            Some(name) => names.push(&name.value),
        }
    }
    Ok(())
}

/// Returns the noun for these routines in messages.
fn noun_of(named: &[Arc<Function>]) -> &'static str {
    match named.iter().all(|one| one.record.is_procedure()) && !named.is_empty() {
        true => "procedure",
        false => "function",
    }
}

/// Returns the value, or NULL if the function is STRICT and an argument is NULL.
fn strictly(resolved: &ResolvedCall, value: Expr) -> Expr {
    if !resolved.function.record.strict || resolved.values.is_empty() {
        return value;
    }
    let values = resolved.values.iter().map(|value| value.expr.clone());
    let is_null = values.map(|one| Expr::IsNull(Box::new(one))).collect();
    let data_type = &resolved.value_type().base;
    Expr::Case {
        branches: vec![(Expr::Or(is_null), null(data_type))],
        otherwise: Box::new(value),
        data_type: data_type.clone(),
    }
}

/// Returns whether a function accepts the arguments of a call.
pub(super) fn takes_call(
    function: &Arc<Function>,
    call: &FunctionCall,
    types: &[DataType],
) -> bool {
    takers_of(function, call).iter().any(|one| one.accepts(types))
}

/// Returns the candidates that accept the arguments of a call. Among candidates with the same
/// parameter types, the schema earlier in the search path wins, then the one that is not VARIADIC.
pub(super) fn takers(
    named: &[Arc<Function>],
    call: &FunctionCall,
    types: &[DataType],
) -> Vec<FunctionCandidate> {
    let mut found: Vec<FunctionCandidate> = Vec::new();
    for taker in named.iter().flat_map(|one| takers_of(one, call)) {
        if !taker.accepts(types) {
            continue;
        }
        let gathers = |one: &FunctionCandidate| one.gathered.is_some();
        match found.iter_mut().find(|known| known.wanted == taker.wanted) {
            Some(known) if known.function.record.schema != taker.function.record.schema => {}
            Some(known) if gathers(known) && !gathers(&taker) => *known = taker,
            Some(known) if !gathers(known) && gathers(&taker) => {}
            Some(known) => known.is_ambiguous = true,
            None => found.push(taker),
        }
    }
    found
}

/// Returns the candidates of a function for the number and names of the arguments of a call.
fn takers_of(function: &Arc<Function>, call: &FunctionCall) -> Vec<FunctionCandidate> {
    let variadic = function.record.is_variadic();
    let as_it_is = match call.variadic == variadic || !call.variadic {
        true => places_of(function, call).map(|places| taker_of(function, places, call)),
        false => None,
    };
    let given = argument_names(call);
    let count = given.len();
    let fixed = function.parameters.len().saturating_sub(1);
    let positional = given.iter().all(Option::is_none);
    let gathers = variadic && !call.variadic && positional && count > fixed;
    let gathered = gathers.then(|| {
        let element = match &function.parameters[fixed].base {
            DataType::AnyArray => DataType::AnyElement,
            DataType::CompatibleArray => DataType::Compatible,
            array => array.element().unwrap_or(array).clone(),
        };
        let wanted = function.parameters[..fixed].iter().map(|one| one.base.clone());
        FunctionCandidate {
            function: Arc::clone(function),
            places: (0..=fixed).map(Some).collect(),
            gathered: Some(fixed),
            wanted: wanted.chain(std::iter::repeat_n(element, count - fixed)).collect(),
            is_ambiguous: false,
        }
    });
    // Without the keyword VARIADIC, an argument of a VARIADIC parameter is an element, never the
    // array.
    let as_it_is = as_it_is
        .filter(|one| !variadic || call.variadic || one.places.last().is_none_or(Option::is_none));
    as_it_is.into_iter().chain(gathered).collect()
}

fn taker_of(
    function: &Arc<Function>,
    places: Vec<Option<usize>>,
    call: &FunctionCall,
) -> FunctionCandidate {
    let mut wanted = vec![DataType::Unknown; argument_names(call).len()];
    for (place, to) in places.iter().zip(&function.parameters) {
        if let Some(at) = place {
            wanted[*at] = to.base.clone();
        }
    }
    let is_ambiguous = false;
    FunctionCandidate {
        function: Arc::clone(function),
        places,
        gathered: None,
        wanted,
        is_ambiguous,
    }
}

/// Returns the names of the arguments of a call; the arguments of WITHIN GROUP come last.
fn argument_names(call: &FunctionCall) -> Vec<Option<&Ident>> {
    let sorted = call.order_by.iter().filter(|_| call.within_group).map(|_| None);
    call.arguments.iter().map(|argument| argument.name.as_ref()).chain(sorted).collect()
}

/// Returns the argument of each parameter; `None` if a required one is missing or there are too
/// many.
fn places_of(function: &Function, call: &FunctionCall) -> Option<Vec<Option<usize>>> {
    let parameters = &function.record.parameters;
    let mut places: Vec<Option<usize>> = vec![None; parameters.len()];
    for (at, name) in argument_names(call).into_iter().enumerate() {
        let place = match name {
            None => at,
            Some(name) => parameters.iter().position(|one| one.name == name.value)?,
        };
        if places.get_mut(place)?.replace(at).is_some() {
            return None;
        }
    }
    let mut missing = places.iter().zip(parameters).filter(|(place, _)| place.is_none());
    missing.all(|(_, parameter)| parameter.default.is_some()).then_some(places)
}

/// Returns whether a function returns records whose columns need a column definition list.
pub(super) fn is_undefined_record(function: &Function) -> bool {
    const RECORD: u32 = 2_249;
    let oid = match &function.record.returns {
        ReturnRecord::Value(oid) | ReturnRecord::Set(oid) => *oid,
        ReturnRecord::Table(_) => return false,
    };
    oid == RECORD && function.record.output_parameters().is_empty()
}
