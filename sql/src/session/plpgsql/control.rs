//! PL/pgSQL control structures: blocks, exception handlers, conditions and control flow.
//!
//! Each statement returns a [`ControlFlow`], by which EXIT, CONTINUE and RETURN leave the enclosing
//! statements.

use types::Datum;

use crate::error::{Error, Result, sqlstate};
use crate::plpgsql::body_tree::{
    Block, Condition, Handlers, PlpgsqlStatement, SqlFragment, StatementAction, VariableType,
};
use crate::session::plpgsql::{BodyExecution, BodyPosition};

/// Control flow after a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ControlFlow {
    /// Continue with the next statement.
    Next,
    /// EXIT of the loop or block with this label, or of the innermost loop.
    Exit(Option<String>),
    /// CONTINUE of the loop with this label, or of the innermost loop.
    Continue(Option<String>),
    /// RETURN.
    Return,
}

impl BodyExecution<'_> {
    /// Executes statements in order.
    pub(super) fn steps(&mut self, steps: &[PlpgsqlStatement]) -> Result<ControlFlow> {
        for step in steps {
            let flow = self.step(step)?;
            if flow != ControlFlow::Next {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Next)
    }

    /// Fails if the calling statement is cancelled.
    pub(super) fn check_stop(&self) -> Result<()> {
        Ok(self.session.stop.interrupt().check()?)
    }

    /// Executes a statement.
    pub(super) fn step(&mut self, step: &PlpgsqlStatement) -> Result<ControlFlow> {
        self.enter(step);
        self.check_stop()?;
        match &step.action {
            StatementAction::Block(block) => return self.block(block, step),
            StatementAction::Assign { target, value } => self.assign_fragment(target, value)?,
            StatementAction::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.enter(step);
                    if self.is_true(condition)? {
                        return self.steps(body);
                    }
                }
                return self.steps(otherwise);
            }
            StatementAction::Case { operand, branches, otherwise } => {
                return self.case(operand.as_ref(), branches, otherwise.as_deref());
            }
            StatementAction::Loop(of) => return self.run_loop(of, step),
            StatementAction::Leave { continues, label, condition } => {
                if let Some(condition) = condition
                    && !self.is_true(condition)?
                {
                    return Ok(ControlFlow::Next);
                }
                return Ok(match continues {
                    true => ControlFlow::Continue(label.clone()),
                    false => ControlFlow::Exit(label.clone()),
                });
            }
            StatementAction::Return(value) => {
                self.set_returned(value.as_ref())?;
                return Ok(ControlFlow::Return);
            }
            StatementAction::ReturnNext(value) => self.return_next(value.as_ref())?,
            StatementAction::ReturnQuery(query) => self.return_query(query)?,
            StatementAction::Raise(raise) => self.raise(raise)?,
            StatementAction::Assert(condition, message) => {
                self.assert(condition, message.as_ref())?
            }
            StatementAction::Sql(fragment, into) => self.sql(fragment, into.as_ref())?,
            StatementAction::Perform(fragment) => self.perform(fragment)?,
            StatementAction::Call(fragment, targets) => self.call_procedure(fragment, targets)?,
            StatementAction::Execute(dynamic, into) => self.execute_text(dynamic, into.as_ref())?,
            StatementAction::Diagnostics { stacked, items } => self.diagnostics(*stacked, items)?,
            StatementAction::Open(open) => self.open_cursor(open)?,
            StatementAction::Fetch { cursor, direction, into } => {
                self.fetch(*cursor, direction, into.as_ref())?;
            }
            StatementAction::Close(cursor) => self.close_cursor(*cursor)?,
            StatementAction::End { commits, chain } => self.end_transaction(*commits, *chain)?,
            StatementAction::Nothing => {}
        }
        Ok(ControlFlow::Next)
    }

    fn block(&mut self, block: &Block, step: &PlpgsqlStatement) -> Result<ControlFlow> {
        for &variable in &block.declared {
            let what = "during statement block local variable initialization";
            self.at = BodyPosition {
                line: self.compiled.body.variables[variable].line,
                what,
                is_during: true,
            };
            self.initialise(variable)?;
        }
        self.enter(step);
        let flow = match &block.handlers {
            None => self.steps(&block.body)?,
            Some(handlers) => self.guarded(block, handlers)?,
        };
        match flow {
            ControlFlow::Exit(Some(label)) if block.label.as_ref() == Some(&label) => {
                Ok(ControlFlow::Next)
            }
            flow => Ok(flow),
        }
    }

    /// Initialises a variable.
    fn initialise(&mut self, variable: usize) -> Result<()> {
        let compiled = std::sync::Arc::clone(&self.compiled);
        let declared = &compiled.body.variables[variable];
        if matches!(declared.of, VariableType::Record) {
            self.set_fields(variable, None);
        }
        match &declared.default {
            None if self.shapes[variable].sql_type.domain.is_some() => {
                let to = self.shapes[variable].sql_type.clone();
                let from = types::DataType::Unknown.into();
                let checked = self.convert(Datum::Null, &from, &to);
                checked.map(|value| self.values[variable] = value)
            }
            None => {
                self.values[variable] = match &declared.cursor {
                    // A bound cursor variable has its own name as value.
                    Some(_) => Datum::text(declared.name.as_str()),
                    None => Datum::Null,
                };
                Ok(())
            }
            Some(value) => {
                let target =
                    crate::plpgsql::body_tree::AssignmentTarget { variable, path: Vec::new() };
                self.assign_fragment(&target, value)
            }
        }
    }

    /// Executes a block with EXCEPTION.
    fn guarded(&mut self, block: &Block, handlers: &Handlers) -> Result<ControlFlow> {
        let undo = self.session.begin_subtransaction()?;
        let body = self.steps(&block.body);
        let error = match body {
            Ok(flow) => {
                self.session.release_subtransaction()?;
                return Ok(flow);
            }
            Err(error) => self.placed(error),
        };
        self.session.undo_subtransaction(&undo)?;
        self.world = None;
        let handles = |(conditions, _): &&(Vec<Condition>, Vec<PlpgsqlStatement>)| {
            conditions.iter().any(|condition| is_handled(condition, &error.sqlstate))
        };
        let Some((_, body)) = handlers.branches.iter().find(handles) else { return Err(error) };
        if error.sqlstate == sqlstate::QUERY_CANCELED {
            // A handled cancellation does not stop the handler.
            self.session.stop.begin_statement();
        }
        self.is_placed = false;
        self.values[handlers.sqlstate] = Datum::text(&*error.sqlstate);
        self.values[handlers.sqlerrm] = Datum::text(error.message.as_str());
        self.caught.push(error);
        let flow = self.steps(body);
        self.caught.pop();
        flow
    }

    fn case(
        &mut self,
        operand: Option<&(usize, SqlFragment)>,
        branches: &[(SqlFragment, Vec<PlpgsqlStatement>)],
        otherwise: Option<&[PlpgsqlStatement]>,
    ) -> Result<ControlFlow> {
        if let Some((variable, value)) = operand {
            let (value, sql_type) = self.value(value, crate::binder::BodyTarget::Any)?;
            self.set_type(*variable, &sql_type);
            self.values[*variable] = value;
        }
        let at = self.at;
        for (condition, body) in branches {
            self.at = at;
            if self.is_true(condition)? {
                return self.steps(body);
            }
        }
        match otherwise {
            Some(body) => self.steps(body),
            None => Err(Error::new(sqlstate::CASE_NOT_FOUND, "case not found")
                .with_hint("CASE statement is missing ELSE part.")),
        }
    }
}

/// Returns whether a handler condition matches an SQLSTATE.
fn is_handled(condition: &Condition, code: &str) -> bool {
    match condition {
        Condition::Others => code != sqlstate::QUERY_CANCELED && code != sqlstate::ASSERT_FAILURE,
        Condition::Code(wanted) => {
            wanted == code || (wanted.ends_with("000") && wanted[..2] == code[..2])
        }
    }
}
