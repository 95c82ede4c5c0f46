//! EXPLAIN of planned statements, and of CREATE TABLE AS, DECLARE and EXECUTE.
//!
//! It plans the statement, with ANALYZE also executes it with a [`ExecutionProfile`], and returns
//! the rendered plan as result rows.

use std::sync::Arc;

use store::env::process::monotonic_now;
use store::{RegionReads, TimelineRead, read_by_region};
use types::text::{self, TextStyle};
use types::{Batch, DataType, Datum, SqlType};

use crate::ast;
use crate::ast::Statement;
use crate::binder;
use crate::error::{Error, Result};
use crate::exec;
use crate::logical::OutputColumn;
use crate::plan::ExplainContent;
use crate::plan::document::{self, Format, SummaryValue};
use crate::plan::profile::ExecutionProfile;
use crate::rows::{CommandTag, ResultRows};
use crate::session::create_as::CreateAsQuery;
use crate::session::prepared::{PlannedQuery, PlannedStatement, is_planned};
use crate::session::{Execution, Session};

/// Output for a statement without a plan.
const NO_PLAN: &str = "Utility statements have no plan structure";

/// Returns the format of a document; `None` for text.
fn format_of(format: ast::ExplainFormat) -> Option<Format> {
    match format {
        ast::ExplainFormat::Text => None,
        ast::ExplainFormat::Json => Some(Format::Json),
        ast::ExplainFormat::Xml => Some(Format::Xml),
        ast::ExplainFormat::Yaml => Some(Format::Yaml),
    }
}

/// Returns the line `Timeline: replica=1 requests=2 staleness=35.120`; `Timeline: primary` if no
/// replica answered.
fn timeline_line(read: TimelineRead, timing: bool) -> String {
    let who = match read.replica_requests {
        0 => "primary".to_owned(),
        requests => format!("replica=1 requests={requests}"),
    };
    let staleness = match timing && read.is_stale() {
        true => format!(" staleness={:.3}", read.staleness.as_secs_f64() * 1e3),
        false => String::new(),
    };
    format!("Timeline: {who}{staleness}")
}

/// Adds the TIMELINE reads of a run, and the bytes that it spilled.
fn add_reads(
    (reads, spilled): (Option<TimelineRead>, u64),
    timing: bool,
    (lines, summary): (&mut Vec<String>, &mut Vec<(&'static str, SummaryValue)>),
) {
    if let Some(read) = reads {
        lines.push(timeline_line(read, timing));
        summary.push(("Replica Requests", SummaryValue::Count(read.replica_requests)));
        if timing {
            summary.push(("Staleness", SummaryValue::Time(read.staleness)));
        }
    }
    if spilled > 0 {
        let kilobytes = spilled.div_ceil(1024);
        lines.push(format!("Temp Written: {kilobytes} kB"));
        summary.push(("Temp Written", SummaryValue::Count(kilobytes)));
    }
}

/// Settings that the option SETTINGS shows.
const EXPLAINED: [&str; 5] =
    ["consistency", "max_staleness", "search_path", "temp_file_limit", "work_mem"];

impl Session {
    pub(super) fn run_explain(&mut self, explain: &ast::Explain) -> Result<Execution> {
        let format = format_of(explain.format);
        let without_plan = |text: &[&str], name: &str| match format {
            None => text.iter().copied().map(str::to_owned).collect(),
            Some(format) => vec![document::without_plan(name, format)],
        };
        if let Statement::CreateTableAs(create) = &explain.statement {
            if self.is_made(create)? {
                return self.explanation(explain, without_plan(&[], create.made.tag()));
            }
            if explain.analyze {
                self.check_may_define(create.made.tag())?;
            }
        }
        let Some(PlannedQuery { statement, types, values }) = self.explained(explain)? else {
            return self.explanation(explain, without_plan(&[NO_PLAN], "Utility Statement"));
        };
        let began = monotonic_now();
        let (of, estimates) =
            match explain.analyze && matches!(explain.statement, Statement::CreateTableAs(_)) {
                true => self.planned_and_locked(
                    |planning| planning.estimated(&statement, &types),
                    |(made, _)| &made.planned,
                )?,
                false => self.with_planning(|planning| planning.estimated(&statement, &types))?,
            };
        of.planned.constants.check(&values)?;
        of.planned.check_privileges()?;
        let planning = began.elapsed();
        let estimates = explain.costs.then_some(&estimates);
        let settings = if explain.settings { self.explained_settings() } else { Vec::new() };
        let (verbose, settings) = (explain.verbose, settings.as_slice());
        let mut shown = ExplainContent { estimates, verbose, settings, ..Default::default() };
        let (mut lines, mut summary, profile) = (Vec::new(), Vec::new(), Arc::default());
        let mut region_reads = RegionReads::default();
        if explain.analyze {
            let began = monotonic_now();
            let run = || self.run_explained(explain, (&statement, &of), values, &profile);
            let buffers = explain.buffers == Some(true);
            let outcome = match buffers {
                true => {
                    let (outcome, reads) = read_by_region(run);
                    region_reads = reads;
                    outcome
                }
                false => run(),
            };
            let (row_count, spilled) = outcome?;
            let timing = explain.timing != Some(false);
            let (profile, regions) = (Some(profile.as_ref()), Some(&region_reads));
            shown = ExplainContent { profile, timing, buffers, regions, ..shown };
            lines.push(format!("Rows: {row_count}"));
            let reads = self.end_reads();
            add_reads((reads, spilled), timing, (&mut lines, &mut summary));
            if timing && explain.summary != Some(false) {
                let execution = began.elapsed();
                for (name, time) in [("Planning Time", planning), ("Execution Time", execution)] {
                    lines.push(format!("{name}: {:.3} ms", time.as_secs_f64() * 1e3));
                    summary.push((name, SummaryValue::Time(time)));
                }
            }
        }
        let store = self.engine.store();
        let regions = |table| store.regions(table).ok().map(|regions| regions.len());
        let plan = &of.planned.plan;
        let lines = match format {
            None => plan.explain_run(&regions, shown).into_iter().chain(lines).collect(),
            Some(format) => vec![plan.explain_document(&regions, shown, &summary, format)],
        };
        self.explanation(explain, lines)
    }

    /// Executes the explained statement; returns the number of returned or changed rows and of
    /// spilled bytes.
    fn run_explained(
        &mut self,
        explain: &ast::Explain,
        (statement, of): (&Statement, &PlannedStatement),
        values: Vec<Datum>,
        profile: &Arc<ExecutionProfile>,
    ) -> Result<(u64, u64)> {
        if of.parameter_types.len() > values.len() {
            bail!(UNDEFINED_PARAMETER: "there is no parameter $1");
        }
        let mut values = values;
        values.resize(of.planned.parameter_count, Datum::Null);
        self.bind_current_row(&of.planned, &mut values)?;
        match &explain.statement {
            Statement::CreateTableAs(create) => {
                let columns = of.columns.as_deref().unwrap_or_default();
                let query = CreateAsQuery { planned: &of.planned, columns, values };
                self.make(create, query, Some(profile))
            }
            _ => self.run_for_count(&of.planned, values, statement.tag(), profile),
        }
    }

    /// Returns the settings that affect execution and differ from their defaults.
    fn explained_settings(&self) -> Vec<(&'static str, String)> {
        let settings = self.settings.describe();
        let changed = settings.filter(|one| EXPLAINED.contains(&one.name) && !one.is_default);
        changed.map(|one| (one.name, one.value.to_owned())).collect()
    }

    fn explanation(&self, explain: &ast::Explain, lines: Vec<String>) -> Result<Execution> {
        let tag = CommandTag::Fixed("EXPLAIN".to_owned());
        if explain.format == ast::ExplainFormat::Json {
            let sql_type = SqlType::from(DataType::Json);
            let name = "QUERY PLAN".to_owned();
            let columns = Arc::from([OutputColumn { name, sql_type, origin: None }]);
            let parse = |line: &String| text::parse(line, &DataType::Json, &TextStyle::default());
            let rows =
                lines.iter().map(|line| Ok(vec![parse(line)?])).collect::<Result<Vec<_>>>()?;
            let batch = Batch::from_rows(&[DataType::Json], &rows);
            return Ok(Execution::Rows(ResultRows::ready(
                columns,
                [batch],
                tag,
                Arc::clone(&self.stop),
            )));
        }
        let rows: Vec<Vec<String>> = lines.into_iter().map(|line| vec![line]).collect();
        Ok(Execution::Rows(ResultRows::of_text(
            &["QUERY PLAN"],
            &rows,
            tag,
            Arc::clone(&self.stop),
        )))
    }

    /// Returns the query that a statement plans; `None` for a statement without a plan.
    fn explained(&mut self, explain: &ast::Explain) -> Result<Option<PlannedQuery>> {
        Ok(Some(match &explain.statement {
            Statement::CreateTableAs(create) => self.planned_query(&create.query)?,
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

    /// Executes a plan to completion; returns the number of returned or changed rows and of
    /// spilled bytes.
    fn run_for_count(
        &mut self,
        planned: &super::StatementPlan,
        parameters: Vec<Datum>,
        tag: &str,
        profile: &Arc<ExecutionProfile>,
    ) -> Result<(u64, u64)> {
        let profiled = |context| exec::Context { profile: Some(Arc::clone(profile)), ..context };
        self.begin_request();
        self.check_permitted(planned, tag)?;
        let open = self.open.as_ref().expect("a statement was begun");
        if !planned.writes.is_empty() {
            let _turn = open.transaction.turn();
            for &table in &planned.writes {
                self.lock_for_write(table)?;
            }
            self.lock_to_read(planned)?;
            let open = self.open.as_ref().expect("a statement was begun");
            let context = profiled(self.context(open, parameters));
            let spill = Arc::clone(&context.spill);
            self.check_readiness(planned)?;
            let outcome = self.modify(planned, context)?;
            return Ok((outcome.row_count, spill.written_bytes()));
        }
        self.lock_tables_of(planned)?;
        let open = self.open.as_ref().expect("a statement was begun");
        let _turn = open.transaction.turn();
        let context = profiled(self.context(open, parameters));
        let spill = Arc::clone(&context.spill);
        self.check_readiness(planned)?;
        let mut operator = exec::open(&planned.plan, context)?;
        let mut row_count = 0;
        while let Some(batch) = operator.next()? {
            row_count += batch.row_count as u64;
        }
        Ok((row_count, spill.written_bytes()))
    }
}
