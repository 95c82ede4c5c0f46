//! PL/pgSQL cursors: OPEN, FETCH, MOVE, CLOSE and loops over the session's cursors by variable.

use std::sync::Arc;

use types::{DataType, Datum};

use crate::ast::{DeclareCursor, FetchDirection, Ident, Statement};
use crate::binder::VariableScope;
use crate::error::{Error, Result};
use crate::parser::{self, ParsedStatement};
use crate::plpgsql::body_tree::{
    AssignmentTarget, BodyQuery, CountedDirection, IntoClause, Loop, OpenQuery, OpenStatement,
    ScrollDirection, SqlFragment,
};
use crate::session::plpgsql::BodyExecution;
use crate::session::plpgsql::control::ControlFlow;
use crate::session::plpgsql::loops::IterationOutcome;

impl BodyExecution<'_> {
    pub(super) fn open_cursor(&mut self, open: &OpenStatement) -> Result<()> {
        match &open.query {
            OpenQuery::Bound(arguments) => self.open_bound(open.cursor, arguments).map(drop),
            OpenQuery::Query(BodyQuery::Fixed(fragment)) => {
                let name = self.new_cursor_name(open.cursor)?;
                let opened = self.open_fragment(&name, fragment, open.scroll);
                opened.map_err(|error| self.of_fragment(error, fragment))
            }
            OpenQuery::Query(BodyQuery::Dynamic(dynamic)) => {
                let name = self.new_cursor_name(open.cursor)?;
                let (text, parameters) = self.dynamic(dynamic)?;
                let mut statements = parser::parse_statements(&text)?;
                let (Some(parsed), true) = (statements.pop(), statements.is_empty()) else {
                    bail!(INVALID_CURSOR_DEFINITION: "cannot open multi-query plan as cursor");
                };
                let cursor = cursor_of(&name, &parsed, open.scroll)?;
                let types: Vec<_> = parameters.iter().map(|(_, of)| Some(of.clone())).collect();
                let planned = loop {
                    self.renew();
                    let planned = self
                        .session
                        .with_planning(|planning| planning.plan_cursor(&cursor, &types, None))?;
                    if self.session.begin_embedded(&planned.planned)? {
                        break planned;
                    }
                };
                let values: Vec<Datum> = parameters.into_iter().map(|(value, _)| value).collect();
                planned.planned.constants.check(&values)?;
                self.session.add_cursor(&Arc::new(parsed), &cursor, planned, values)?;
                self.renew();
                Ok(())
            }
        }
    }

    /// Opens a bound cursor; returns its name.
    fn open_bound(&mut self, cursor: usize, arguments: &[(usize, SqlFragment)]) -> Result<String> {
        let compiled = Arc::clone(&self.compiled);
        let Some(bound) = &compiled.body.variables[cursor].cursor else {
            bail!(INTERNAL_ERROR: "a cursor is not bound");
        };
        for (at, value) in arguments {
            let target = AssignmentTarget { variable: bound.arguments[*at], path: Vec::new() };
            self.assign_fragment(&target, value)?;
        }
        let name = self.new_cursor_name(cursor)?;
        let opened = self.open_fragment(&name, &bound.query, bound.scroll);
        opened.map_err(|error| self.of_fragment(error, &bound.query))?;
        Ok(name)
    }

    fn open_fragment(
        &mut self,
        name: &str,
        fragment: &SqlFragment,
        scroll: Option<bool>,
    ) -> Result<()> {
        let cursor = cursor_of(name, &fragment.statement, scroll)?;
        let planned = loop {
            self.renew();
            let scope = VariableScope {
                names: &self.compiled.body.names,
                place: fragment.place,
                shapes: &self.shapes,
                conflict: self.compiled.conflict,
            };
            let planned = self
                .session
                .with_planning(|planning| planning.plan_cursor(&cursor, &[], Some(&scope)))?;
            if self.session.begin_embedded(&planned.planned)? {
                break planned;
            }
        };
        let mut parameters = Vec::new();
        self.parameters(&planned.variables, planned.planned.parameter_count, &mut parameters);
        planned.planned.constants.check(&parameters)?;
        self.session.add_cursor(&fragment.statement, &cursor, planned, parameters)?;
        self.renew();
        Ok(())
    }

    /// Returns the cursor name for a variable: its value, or a generated name.
    fn new_cursor_name(&mut self, variable: usize) -> Result<String> {
        if let Datum::Text(name) = &self.values[variable] {
            let name = name.to_string();
            if self.session.cursors.has(&name) {
                bail!(DUPLICATE_CURSOR: "cursor \"{name}\" already in use");
            }
            return Ok(name);
        }
        let declared = &self.compiled.body.variables[variable];
        if declared.is_constant {
            bail!(ERROR_IN_ASSIGNMENT: "variable \"{}\" is declared CONSTANT", declared.name);
        }
        let name = self.session.cursors.unnamed();
        self.store(variable, Datum::text(name.as_str()))?;
        Ok(name)
    }

    /// Returns the name of the open cursor of a variable.
    fn cursor_name(&self, variable: usize) -> Result<String> {
        match &self.values[variable] {
            Datum::Text(name) => Ok(name.to_string()),
            _ => {
                let name = &self.shapes[variable].name;
                bail!(NULL_VALUE_NOT_ALLOWED: "cursor variable \"{name}\" is null")
            }
        }
    }

    pub(super) fn fetch(
        &mut self,
        cursor: usize,
        direction: &ScrollDirection,
        into: Option<&IntoClause>,
    ) -> Result<()> {
        let name = self.cursor_name(cursor)?;
        let direction = self.direction(direction)?;
        let columns = self.session.cursors.columns(&name)?;
        let mut batches = self.session.fetch_batches(direction, &name)?;
        self.renew();
        let count = batches.row_count();
        if let Some(into) = into {
            let row = batches.last()?.map(|batch| batch.row(batch.row_count - 1));
            self.assign_row(into, &columns, row)?;
        }
        self.row_count = count as u64;
        self.set_found(count > 0);
        Ok(())
    }

    fn direction(&mut self, direction: &ScrollDirection) -> Result<FetchDirection> {
        let (of, count) = match direction {
            ScrollDirection::Fixed(direction) => return Ok(*direction),
            ScrollDirection::Counted(of, count) => (of, self.value_as(count, &DataType::Int8)?),
        };
        let Some(count) = count.as_i64() else {
            bail!(NULL_VALUE_NOT_ALLOWED: "relative or absolute cursor position is null");
        };
        Ok(match of {
            CountedDirection::Forward => FetchDirection::Forward(count),
            CountedDirection::Backward => FetchDirection::Forward(count.saturating_neg()),
            CountedDirection::Absolute => FetchDirection::Absolute(count),
            CountedDirection::Relative => FetchDirection::Relative(count),
        })
    }

    pub(super) fn close_cursor(&mut self, cursor: usize) -> Result<()> {
        let name = self.cursor_name(cursor)?;
        match self.session.cursors.close(&name) {
            true => Ok(()),
            false => bail!(INVALID_CURSOR_NAME: "cursor \"{name}\" does not exist"),
        }
    }

    /// Executes a loop over a bound cursor, which is open during the loop.
    pub(super) fn for_cursor(
        &mut self,
        of: &Loop,
        row: usize,
        cursor: usize,
        arguments: &[(usize, SqlFragment)],
    ) -> Result<ControlFlow> {
        if self.compiled.body.ends_transactions {
            let hint = "Loop over the query itself.";
            let what = "a cursor FOR loop in a body with COMMIT or ROLLBACK";
            return Err(Error::not_supported(what, hint));
        }
        let was_null = self.values[cursor].is_null();
        let name = self.open_bound(cursor, arguments)?;
        let flow = self.over_cursor(of, &name, row);
        self.session.cursors.close(&name);
        if was_null {
            self.values[cursor] = Datum::Null;
        }
        flow
    }

    fn over_cursor(&mut self, of: &Loop, name: &str, row: usize) -> Result<ControlFlow> {
        let columns = self.session.cursors.columns(name)?;
        let mut found = false;
        loop {
            let mut batches = self.session.fetch_batches(FetchDirection::Forward(1), name)?;
            self.renew();
            let Some(batch) = batches.pop_front()? else { break };
            found = true;
            self.assign_whole_row(row, &columns, Some(batch.row(0)))?;
            if let IterationOutcome::End(flow) = self.round(of)? {
                self.set_found(true);
                return Ok(flow);
            }
        }
        if !found {
            self.assign_whole_row(row, &columns, None)?;
        }
        self.set_found(found);
        Ok(ControlFlow::Next)
    }
}

/// Returns the cursor declaration of a query.
fn cursor_of(name: &str, parsed: &ParsedStatement, scroll: Option<bool>) -> Result<DeclareCursor> {
    let Statement::Query(query) = &parsed.statement else {
        bail!(INVALID_CURSOR_DEFINITION: "cannot open {} query as cursor", parsed.statement.tag());
    };
    Ok(DeclareCursor {
        name: Ident { value: name.to_owned(), position: 1 },
        binary: false,
        insensitive: false,
        scroll,
        hold: None,
        query: (**query).clone(),
    })
}
