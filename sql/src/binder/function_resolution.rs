//! Overload resolution across built-in and user-defined functions of the same name.
//!
//! A function whose parameter types match exactly takes precedence; of two exact matches, the one
//! whose schema comes first on the search path, which implicitly begins with `pg_catalog`.
//! Otherwise all of them are candidates of one overload resolution. Aggregates and window
//! functions are candidates like any other; DISTINCT and OVER are checked only after the function
//! is resolved.
//!
//! Source: PostgreSQL's `FuncnameGetCandidates` (namespace.c) and `ParseFuncOrColumn`
//! (parse_func.c).

use std::sync::Arc;

use types::DataType;
use types::aggregate;
use types::function::Signature;

use crate::ast::FunctionCall;
use crate::binder::aggregates::is_polymorphic;
use crate::binder::calls::{check_plain, is_built_in};
use crate::binder::function::{FunctionCandidate, takers};
use crate::binder::level::Binder;
use crate::binder::overload_resolution::{Candidate, Match, resolve_function, resolve_set, select};
use crate::binder::set_functions::is_set_function;
use crate::binder::typed::Typed;
use crate::binder::window::window_function_takes;
use crate::catalog::function::Function;
use crate::error::{Error, Result};

/// The schema of built-in functions.
const SYSTEM: &str = "pg_catalog";

impl Binder<'_> {
    /// Binds a call of a user-defined function; `None` if the call is of a built-in function, or
    /// if that can be decided only after the arguments of the built-in function are bound.
    pub(super) fn bind_user_call(&mut self, call: &FunctionCall) -> Result<Option<Typed>> {
        let named = self.functions_named(call)?;
        if named.is_empty() {
            return Ok(None);
        }
        let name = call.name.name.value.as_str();
        let is_plain = !types::function::overloads(name).is_empty() && !is_set_function(name);
        if call.name.schema.is_none() && (is_plain || self.is_special(name)) {
            return Ok(None);
        }
        let Some(values) = self.values_for(call, &named)? else { return Ok(None) };
        self.bind_user_function(call, named, values).map(Some)
    }

    /// Returns the arguments of a call, those of WITHIN GROUP last, if the call resolves to one of
    /// these user-defined functions.
    pub(super) fn values_for(
        &mut self,
        call: &FunctionCall,
        named: &[Arc<Function>],
    ) -> Result<Option<Vec<Typed>>> {
        if call.name.schema.is_some() || !is_built_in(&call.name.name.value) {
            return self.all_arguments_of(call).map(Some);
        }
        let before = self.marks();
        // Errors are reported when the call of the built-in function is bound.
        let values = self.all_arguments_of(call).ok().filter(|values| {
            let types: Vec<DataType> = values.iter().map(Typed::base).cloned().collect();
            self.means_user(call, named, &types)
        });
        if values.is_none() {
            self.restore_marks(&before);
        }
        Ok(values)
    }

    fn all_arguments_of(&mut self, call: &FunctionCall) -> Result<Vec<Typed>> {
        let mut values = self.arguments_of(call)?;
        for item in call.order_by.iter().filter(|_| call.within_group) {
            values.push(self.bind_expr(&item.expr)?);
        }
        Ok(values)
    }

    /// Binds a call with bound arguments as one of a user-defined function, if the call resolves
    /// to one although a built-in function has the name.
    pub(super) fn bind_user_instead(
        &mut self,
        call: &FunctionCall,
        arguments: &[Typed],
    ) -> Result<Option<Typed>> {
        let named = self.functions_named(call)?;
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        match !named.is_empty() && self.means_user(call, &named, &types) {
            true => self.bind_user_function(call, named, arguments.to_vec()).map(Some),
            false => Ok(None),
        }
    }

    /// Rejects the syntax of aggregate and window function calls.
    pub(super) fn check_user_call(&self, call: &FunctionCall) -> Result<()> {
        let schema = call.name.schema.as_ref().map(|schema| format!("{}.", schema.value));
        let name = format!("{}{}", schema.unwrap_or_default(), call.name.name.value);
        check_plain(call, &name)?;
        if call.over.is_some() {
            bail!(WRONG_OBJECT_TYPE: "OVER specified, but {name} is not a window function nor an aggregate function";
                at call.name.position());
        }
        Ok(())
    }

    fn means_user(&self, call: &FunctionCall, named: &[Arc<Function>], types: &[DataType]) -> bool {
        let takers = takers(named, call, types);
        let name = call.name.name.value.as_str();
        let own = match self.is_special(name) {
            true => Some(vec![DataType::AnyElement; types.len()]),
            false => wanted_by_system(call, types),
        };
        let (false, Some(own)) = (takers.is_empty(), own) else { return !takers.is_empty() };
        let count = |wanted: &[DataType]| {
            let known = types.iter().zip(wanted).filter(|(from, _)| **from != DataType::Unknown);
            known.filter(|(from, to)| from == to).count()
        };
        let is_exact = |wanted: &[DataType]| wanted == types;
        if is_exact(&own) || !takers.iter().any(|one| is_exact(&one.wanted)) {
            return match takers.iter().find(|one| one.wanted == own) {
                Some(same) => self.comes_before_system(&same.function),
                None if is_exact(&own) => false,
                None => match select(self.pooled(name, &takers, own.clone(), types), types) {
                    Match::One(best) => best.is_of_user,
                    _ => takers.iter().any(|one| count(&one.wanted) > count(&own)),
                },
            };
        }
        true
    }

    /// Returns the candidates, built-in and user-defined; of two with the same parameter types,
    /// the one whose schema comes first. `own` are the parameter types of the built-in function
    /// that would be called without user-defined ones.
    fn pooled(
        &self,
        name: &str,
        takers: &[FunctionCandidate],
        own: Vec<DataType>,
        types: &[DataType],
    ) -> Vec<CandidateEntry> {
        let of_user = |one: &FunctionCandidate| CandidateEntry {
            wanted: one.wanted.clone(),
            is_of_user: true,
        };
        let mut pool: Vec<CandidateEntry> = takers.iter().map(of_user).collect();
        let signatures = types::function::overloads(name).iter();
        let fitting = signatures.filter(|signature| signature.accepts(types));
        let wanted = |one| parameters_of(one, types.len());
        let of_system = fitting.map(wanted).chain([own]);
        for wanted in of_system.collect::<Vec<Vec<DataType>>>() {
            let same = pool.iter().position(|one| one.wanted == wanted);
            let first = same.and_then(|at| takers.get(at));
            if first.is_some_and(|one| self.comes_before_system(&one.function)) {
                continue;
            }
            match same {
                Some(at) => pool[at].is_of_user = false,
                None => pool.push(CandidateEntry { wanted, is_of_user: false }),
            }
        }
        pool
    }

    fn comes_before_system(&self, function: &Function) -> bool {
        let schemas = self.search_path().schemas();
        let place = |name: &str| schemas.iter().position(|schema| schema == name);
        match (place(&function.record.schema), place(SYSTEM)) {
            (Some(own), Some(system)) => own < system,
            _ => false,
        }
    }

    /// Returns whether the built-in function of this name accepts any type, or is a session
    /// constant.
    fn is_special(&self, name: &str) -> bool {
        matches!(
            name,
            "pg_typeof" | "num_nulls" | "num_nonnulls" | "enum_first" | "enum_last" | "enum_range"
        ) || self.constants.value(name).is_some()
    }
}

/// A candidate, built-in or user-defined.
#[derive(Clone)]
struct CandidateEntry {
    wanted: Vec<DataType>,
    is_of_user: bool,
}

impl Candidate for CandidateEntry {
    fn takes(&self, index: usize) -> &DataType {
        self.wanted.get(index).unwrap_or(&DataType::Unknown)
    }

    fn accepts(&self, _: &[DataType]) -> bool {
        true
    }
}

/// Returns the declared types of the first parameters of a built-in function.
fn parameters_of(signature: &'static Signature, count: usize) -> Vec<DataType> {
    (0..count).map(|at| signature.takes(at).clone()).collect()
}

/// Returns the parameter types of the built-in function that a call resolves to; `None` if none
/// accepts the arguments.
fn wanted_by_system(call: &FunctionCall, types: &[DataType]) -> Option<Vec<DataType>> {
    let name = call.name.name.value.as_str();
    let of_signature = |found: Match| match found {
        Match::One(signature) => Some(parameters_of(signature, types.len())),
        _ => None,
    };
    let any = || vec![DataType::AnyElement; types.len()];
    let of_aggregate = |found: aggregate::ResolvedAggregate| match is_polymorphic(found.kind, types)
    {
        true => any(),
        false => found.arguments,
    };
    if call.within_group {
        let (direct, sorted) = types.split_at(call.arguments.len());
        if aggregate::HypotheticalSetFunction::from_name(name).is_some() {
            return Some(any());
        }
        return aggregate::resolve_ordered(name, direct, sorted).map(of_aggregate);
    }
    window_function_takes(name, types)
        .or_else(|| aggregate::resolve(name, types).map(of_aggregate))
        .or_else(|| of_signature(resolve_set(name, types)))
        .or_else(|| of_signature(resolve_function(name, types)))
}
