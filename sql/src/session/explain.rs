//! EXPLAIN: of statements that are planned, and of those that plan a query of theirs.

use std::sync::Arc;
use std::time::Instant;

use store::admission::Work;
use store::{RegionReads, read_by_region};
use types::Datum;

use crate::ast;
use crate::ast::Statement;
use crate::binder;
use crate::error::{Error, Result, sqlstate};
use crate::exec;
use crate::plan::Shown;
use crate::plan::profile::Profile;
use crate::rows::{Rows, Tag};
use crate::session::prepared::{PlannedQuery, PlannedStatement, is_planned};
use crate::session::{Execution, Session};

/// What is said of a statement that plans nothing.
const NO_PLAN: &str = "Utility statements have no plan structure";

/// The settings that SETTINGS shows.
const EXPLAINED: [&str; 4] = ["consistency", "search_path", "temp_file_limit", "work_mem"];

impl Session {
    pub(super) fn run_explain(&mut self, explain: &ast::Explain) -> Result<Execution> {
        let Some(PlannedQuery { statement, types, values }) = self.explained(explain)? else {
            return Ok(self.explanation(vec![NO_PLAN.to_owned()]));
        };
        let began = Instant::now();
        let (PlannedStatement { planned, parameter_types, .. }, estimates) =
            self.with_planning(|planning| planning.estimated(&statement, &types))?;
        let estimates = explain.costs.then_some(&estimates);
        let settings = if explain.settings { self.explained_settings() } else { Vec::new() };
        let verbose = explain.verbose;
        let mut shown = Shown { estimates, verbose, settings: &settings, ..Shown::default() };
        let (mut lines, mut summary, profile) = (Vec::new(), Vec::new(), Arc::default());
        let mut region_reads = RegionReads::default();
        if explain.analyze {
            if parameter_types.len() > values.len() {
                return Err(Error::new(sqlstate::UNDEFINED_PARAMETER, "there is no parameter $1"));
            }
            let planning = began.elapsed();
            let began = Instant::now();
            let mut parameters = values;
            parameters.resize(planned.parameter_count, Datum::Null);
            self.place_current_row(&planned, &mut parameters)?;
            let buffers = explain.buffers == Some(true);
            let tag = statement.tag();
            let run = || self.run_for_count(&planned, parameters, tag, &profile);
            let outcome = match buffers {
                true => {
                    let (outcome, reads) = read_by_region(run);
                    region_reads = reads;
                    outcome
                }
                false => run(),
            };
            let (row_count, spilled) = outcome?;
            shown = Shown {
                profile: Some(&profile),
                timing: explain.timing != Some(false),
                buffers,
                regions: Some(&region_reads),
                ..shown
            };
            lines.push(format!("Rows: {row_count}"));
            if spilled > 0 {
                lines.push(format!("Temp Written: {} kB", spilled.div_ceil(1024)));
                summary.push(("Temp Written", spilled.div_ceil(1024) as f64));
            }
            if explain.timing != Some(false) && explain.summary != Some(false) {
                let execution = began.elapsed();
                for (name, time) in [("Planning Time", planning), ("Execution Time", execution)] {
                    lines.push(format!("{name}: {:.3} ms", time.as_secs_f64() * 1e3));
                    summary.push((name, time.as_secs_f64() * 1e3));
                }
            }
        }
        let store = self.engine.store();
        let regions = |table| store.regions(table).ok().map(|regions| regions.len());
        let lines = match explain.format {
            ast::ExplainFormat::Text => {
                let mut plan = planned.plan.explain_run(&regions, shown);
                plan.append(&mut lines);
                plan
            }
            ast::ExplainFormat::Json => vec![planned.plan.explain_json(&regions, shown, &summary)],
        };
        Ok(self.explanation(lines))
    }

    /// Returns the settings that change how statements run, where they are not the default.
    fn explained_settings(&self) -> Vec<(&'static str, String)> {
        let settings = self.settings.describe();
        let changed = settings.filter(|one| EXPLAINED.contains(&one.name) && !one.is_default);
        changed.map(|one| (one.name, one.value.to_owned())).collect()
    }

    fn explanation(&self, lines: Vec<String>) -> Execution {
        let rows: Vec<Vec<String>> = lines.into_iter().map(|line| vec![line]).collect();
        let tag = Tag::Fixed("EXPLAIN".to_owned());
        Execution::Rows(Rows::of_text(&["QUERY PLAN"], &rows, tag, Arc::clone(&self.stop)))
    }

    /// Returns what a statement plans; `None` for one that plans nothing.
    fn explained(&mut self, explain: &ast::Explain) -> Result<Option<PlannedQuery>> {
        Ok(Some(match &explain.statement {
            Statement::CreateTableAs(create) => {
                if explain.analyze {
                    let what = format!("EXPLAIN ANALYZE of {}", explain.statement.tag());
                    return Err(Error::not_supported(what, "EXPLAIN ANALYZE takes its query."));
                }
                self.query_of(&create.query)?
            }
            Statement::DeclareCursor(cursor) => {
                binder::check_cursor(cursor)?;
                self.query_of(&Statement::Query(Box::new(cursor.query.clone())))?
            }
            Statement::Refresh(_) => return Ok(None),
            other => {
                let query = self.query_of(other)?;
                if !is_planned(&query.statement) {
                    return Ok(None);
                }
                query
            }
        }))
    }

    /// Runs a plan to its end; returns the rows it returned or changed, and the bytes it set aside.
    fn run_for_count(
        &mut self,
        planned: &super::Planned,
        parameters: Vec<Datum>,
        tag: &str,
        profile: &Arc<Profile>,
    ) -> Result<(u64, u64)> {
        let profiled = |context| exec::Context { profile: Some(Arc::clone(profile)), ..context };
        self.begin_request();
        self.check_permitted(planned, tag)?;
        let open = self.open.as_ref().expect("a statement was begun");
        if !planned.writes.is_empty() {
            let _turn = open.transaction.turn(Work::Write)?;
            for &table in &planned.writes {
                self.lock_for_write(table)?;
            }
            let open = self.open.as_ref().expect("a statement was begun");
            let context = profiled(self.context(open, parameters));
            let spill = Arc::clone(&context.spill);
            planned.check_populated()?;
            let outcome = self.modify(planned, context)?;
            return Ok((outcome.row_count, spill.written_bytes()));
        }
        let open = self.open.as_ref().expect("a statement was begun");
        let _turn = open.transaction.turn(Work::Read)?;
        let context = profiled(self.context(open, parameters));
        let spill = Arc::clone(&context.spill);
        planned.check_populated()?;
        let mut operator = exec::open(&planned.plan, context)?;
        let mut row_count = 0;
        while let Some(batch) = operator.next()? {
            row_count += batch.row_count as u64;
        }
        Ok((row_count, spill.written_bytes()))
    }
}
