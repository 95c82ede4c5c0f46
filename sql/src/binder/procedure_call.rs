//! CALL: resolution of a procedure and its arguments. The executor runs the body once.
//!
//! Source: PostgreSQL's `ExecuteCallStmt` (functioncmds.c).

use std::sync::Arc;

use types::{DataType, SqlType, aggregate};

use crate::ast::FunctionCall;
use crate::binder::function::{ResolvedCall, takes_call};
use crate::binder::level::{Binder, Clause};
use crate::binder::overload_resolution::{Match, resolve_function, resolve_set};
use crate::binder::rows::Rows;
use crate::binder::scope::Scope;
use crate::binder::typed::{Typed, can_coerce};
use crate::catalog::function::{DeclaredMode, Function};
use crate::error::{Error, Result};
use crate::logical::{BoundPlan, OutputColumn, Query};

impl Binder<'_> {
    /// Binds a call of a procedure; the columns of the result are its OUT and INOUT parameters.
    pub(super) fn bind_procedure(&mut self, call: &FunctionCall) -> Result<BoundPlan> {
        let position = call.name.position();
        let bind = |binder: &mut Self| {
            let values = binder.arguments_of(call)?;
            let named = binder.functions_named(call)?;
            let procedures: Vec<_> =
                named.iter().filter(|one| one.record.is_procedure()).cloned().collect();
            if procedures.is_empty() {
                return Err(binder.no_procedure(call, &values));
            }
            binder.resolve_procedure(call, procedures, values)
        };
        let (resolved, level) = self.in_new_level(Scope::default(), Clause::Call, bind)?;
        if !level.subqueries.is_empty() {
            bail!(FEATURE_NOT_SUPPORTED: "cannot use subquery in CALL argument"; at position);
        }
        let columns: Vec<OutputColumn> = match resolved.function.is_row() {
            true => resolved.columns.iter().map(output).collect(),
            false => Vec::new(),
        };
        let made = self.set_routine(call, resolved, None);
        let mut rows = Rows::unit();
        rows.project_set(vec![made], false);
        Ok(BoundPlan::Query(Query { plan: rows.plan, columns }))
    }

    fn no_procedure(&self, call: &FunctionCall, values: &[Typed]) -> Error {
        let types: Vec<_> = values.iter().map(|value| value.sql_type.clone()).collect();
        let shown = self.shown_user(call, &types);
        let position = call.name.position();
        if self.is_function(call, values) {
            return err!(WRONG_OBJECT_TYPE: "{shown} is not a procedure"; hint "To call a function, use SELECT."; at position);
        }
        err!(UNDEFINED_FUNCTION: "procedure {shown} does not exist";
            hint "No procedure matches the given name and argument types. You might need to add explicit type casts.";
            at position)
    }
}

impl Binder<'_> {
    /// Returns whether a function, user-defined or built-in, accepts the arguments of a call.
    fn is_function(&self, call: &FunctionCall, values: &[Typed]) -> bool {
        let types: Vec<DataType> = values.iter().map(Typed::base).cloned().collect();
        let name = call.name.name.value.as_str();
        let named = self.functions_named(call).unwrap_or_default();
        // CALL has arguments for OUT parameters, too; functions that have some do not count.
        let has_out =
            |one: &Function| one.record.declared().iter().any(|p| p.mode == DeclaredMode::Out);
        let mut functions =
            named.iter().filter(|one| !one.record.is_procedure() && !has_out(one.as_ref()));
        let own = functions.any(|one| takes_call(one, call, &types));
        let standard = call.name.schema.as_ref().is_none_or(|one| one.value == "pg_catalog")
            && (matches!(resolve_function(name, &types), Match::One(_))
                || matches!(resolve_set(name, &types), Match::One(_))
                || aggregate::resolve(name, &types).is_some()
                || types.is_empty() && self.constants.value(name).is_some());
        own || standard
    }
}

/// A call without the arguments for OUT parameters.
struct CallWithoutOuts {
    function: Arc<Function>,
    call: FunctionCall,
    values: Vec<Typed>,
}

/// Returns the call without the arguments for OUT parameters; `None` if their number or types do
/// not fit.
fn reduced(
    function: &Arc<Function>,
    call: &FunctionCall,
    values: &[Typed],
) -> Option<CallWithoutOuts> {
    let declared = function.record.declared();
    let mut outs = declared.iter().filter(|one| one.mode == DeclaredMode::Out).count();
    let mut taken = FunctionCall { arguments: Vec::new(), ..call.clone() };
    let mut given = Vec::new();
    for (at, (argument, value)) in call.arguments.iter().zip(values).enumerate() {
        let parameter = match &argument.name {
            None => declared.get(at),
            Some(name) => declared.iter().find(|one| one.name == name.value),
        };
        if let Some(out) = parameter.filter(|one| one.mode == DeclaredMode::Out) {
            outs = outs.checked_sub(1)?;
            let to = function.columns.iter().map(|(_, of)| of).find(|of| of.oid() == out.type_oid);
            if to.is_some_and(|to| !can_coerce(value.base(), &to.base)) {
                return None;
            }
            continue;
        }
        taken.arguments.push(argument.clone());
        given.push(value.clone());
    }
    let function = Arc::clone(function);
    (outs == 0).then_some(CallWithoutOuts { function, call: taken, values: given })
}

impl Binder<'_> {
    fn resolve_procedure(
        &mut self,
        call: &FunctionCall,
        procedures: Vec<Arc<Function>>,
        values: Vec<Typed>,
    ) -> Result<ResolvedCall> {
        let calls = procedures.iter().filter_map(|one| reduced(one, call, &values));
        let mut calls: Vec<CallWithoutOuts> = calls.filter(CallWithoutOuts::is_taken).collect();
        let best = calls.iter().map(CallWithoutOuts::exact).max().unwrap_or_default();
        calls.retain(|one| one.exact() == best);
        let types: Vec<SqlType> = values.iter().map(|value| value.sql_type.clone()).collect();
        match calls.len() {
            0 => Err(self.no_procedure(call, &values)),
            1 => {
                let CallWithoutOuts { function, call, values } = calls.remove(0);
                self.resolve_user_call(&call, vec![function], values)
            }
            _ => {
                bail!(AMBIGUOUS_FUNCTION: "procedure {} is not unique", self.shown_user(call, &types);
                    hint "Could not choose a best candidate procedure. You might need to add explicit type casts.";
                    at call.name.position())
            }
        }
    }
}

impl CallWithoutOuts {
    fn types(&self) -> Vec<DataType> {
        self.values.iter().map(Typed::base).cloned().collect()
    }

    fn is_taken(&self) -> bool {
        takes_call(&self.function, &self.call, &self.types())
    }

    /// Returns the number of arguments whose type is exactly the parameter's.
    fn exact(&self) -> usize {
        let pairs = self.types().into_iter().zip(&self.function.parameters);
        pairs.filter(|(from, to)| *from == to.base).count()
    }
}

fn output((name, sql_type): &(String, SqlType)) -> OutputColumn {
    OutputColumn { name: name.clone(), sql_type: sql_type.clone(), origin: None }
}
