//! EXPLAIN output: node descriptions as lines of text and as a [`document`](mod@document).
//!
//! The input is the tree of [`explain`](crate::plan::explain), with the estimates and the
//! execution statistics that the options of EXPLAIN request.

use std::time::Duration;

use store::descriptor::RegionId;
use store::{ReadStatistics, RegionReadStatistics, RegionReads};

use crate::plan::document::{
    self, DocumentGroup, DocumentValue, Format, SummaryValue, count, number,
};
use crate::plan::explain::NodeDescription;
use crate::plan::profile::ExecutionProfile;
use crate::plan::{Estimate, Estimates};

/// Options and statistics of EXPLAIN.
#[derive(Clone, Copy, Default)]
pub struct ExplainContent<'a> {
    /// COSTS: estimates of the nodes.
    pub estimates: Option<&'a Estimates>,
    /// ANALYZE: statistics of an execution.
    pub profile: Option<&'a ExecutionProfile>,
    /// TIMING.
    pub timing: bool,
    /// BUFFERS.
    pub buffers: bool,
    /// Reads by region.
    pub regions: Option<&'a RegionReads>,
    /// VERBOSE: output columns of each node.
    pub verbose: bool,
    /// Settings that the option SETTINGS shows.
    pub settings: &'a [(&'static str, String)],
}

/// Returns one line for each node, the topmost first, then one for each region that was read,
/// then one of settings.
pub(super) fn text(step: &NodeDescription, shown: ExplainContent<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    draw(step, "", "", shown, &mut lines);
    lines.extend(regions(shown));
    if !shown.settings.is_empty() {
        let setting = |(name, value): &(&str, String)| format!("{name} = '{value}'");
        let settings: Vec<String> = shown.settings.iter().map(setting).collect();
        lines.push(format!("Settings: {}", settings.join(", ")));
    }
    lines
}

fn draw(
    step: &NodeDescription,
    first: &str,
    rest: &str,
    shown: ExplainContent<'_>,
    lines: &mut Vec<String>,
) {
    lines.push(format!("{first}{}{}{}", step.line, estimated(step, shown), actual(step, shown)));
    let output = (shown.verbose && !step.names.is_empty())
        .then(|| format!("Output: {}", step.names.join(", ")));
    for detail in output.into_iter().chain(buffers(step, shown)) {
        let stem = if step.inputs.is_empty() { "   " } else { "│  " };
        lines.push(format!("{rest}{stem}{detail}"));
    }
    for (position, input) in step.inputs.iter().enumerate() {
        let last = position + 1 == step.inputs.len();
        let (branch, stem) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(input, &format!("{rest}{branch}"), &format!("{rest}{stem}"), shown, lines);
    }
}

/// Returns the text ` (cost=0.00..35.50 rows=2550 width=4)`, as in PostgreSQL.
fn estimated(step: &NodeDescription, shown: ExplainContent<'_>) -> String {
    let estimate = shown.estimates.zip(step.address).and_then(|(all, address)| all.of(address));
    estimate.map_or_else(String::new, |estimate| {
        let Estimate { startup, total, rows, width } = estimate;
        format!(" (cost={startup:.2}..{total:.2} rows={rows:.0} width={width})")
    })
}

/// Returns the text ` (actual time=0.120 rows=4 loops=1)`; rows and time per loop, as in
/// PostgreSQL.
fn actual(step: &NodeDescription, shown: ExplainContent<'_>) -> String {
    let (Some(profile), Some(address)) = (shown.profile, step.address) else {
        return String::new();
    };
    let figures = profile.of(address);
    if figures.loops == 0 {
        return " (never executed)".to_owned();
    }
    let loops = figures.loops;
    let time = match shown.timing {
        true => format!("time={:.3} ", milliseconds(figures.time) / loops as f64),
        false => String::new(),
    };
    format!(" (actual {time}rows={:.0} loops={loops})", figures.rows as f64 / loops as f64)
}

/// Returns the text `Buffers: shared hit=3 read=1, Cells: 40, Files skipped: filter=2 time=1`;
/// zeros are omitted.
fn buffers(step: &NodeDescription, shown: ExplainContent<'_>) -> Option<String> {
    let (Some(profile), Some(address), true) = (shown.profile, step.address, shown.buffers) else {
        return None;
    };
    let parts = reads_text(profile.of(address).reads);
    (!parts.is_empty()).then_some(parts)
}

fn reads_text(reads: ReadStatistics) -> String {
    let listed = |title: &str, counts: [(&str, u64); 2]| {
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts.map(|(name, count)| format!("{name}={count}")).collect();
        (!counts.is_empty()).then(|| format!("{title}{}", counts.join(" ")))
    };
    let blocks = [("hit", reads.blocks_cached), ("read", reads.blocks_read)];
    let files = [("filter", reads.files_without_row), ("time", reads.files_of_other_times)];
    let cells = (reads.cells > 0).then(|| format!("Cells: {}", reads.cells));
    let parts = [listed("Buffers: shared ", blocks), cells, listed("Files skipped: ", files)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// Returns a line for each region:
/// `Region 5: requests=1 rows=20 bytes=4096 time=0.120, Buffers: shared hit=1, Cells: 20`.
fn regions(shown: ExplainContent<'_>) -> Vec<String> {
    let regions = shown.regions.iter().flat_map(|regions| &regions.0);
    let line = |(region, figures): (&RegionId, &RegionReadStatistics)| {
        let RegionReadStatistics { requests, rows, bytes, reads, time } = *figures;
        let time = match shown.timing {
            true => format!(" time={:.3}", milliseconds(time)),
            false => String::new(),
        };
        let reads = reads_text(reads);
        let separator = if reads.is_empty() { "" } else { ", " };
        let number = region.0;
        format!(
            "Region {number}: requests={requests} rows={rows} bytes={bytes}{time}{separator}{reads}"
        )
    };
    regions.map(line).collect()
}

fn region_groups(shown: ExplainContent<'_>, regions: &RegionReads) -> DocumentValue {
    let group = |(region, figures): (&RegionId, &RegionReadStatistics)| {
        let RegionReadStatistics { requests, rows, bytes, reads, time } = *figures;
        let figures =
            [("Region", region.0), ("Requests", requests), ("Rows", rows), ("Bytes", bytes)];
        let mut group: DocumentGroup =
            figures.into_iter().map(|(name, figure)| member(name, count(figure))).collect();
        if shown.timing {
            group.push(member("Time", number(milliseconds(time), 3)));
        }
        group.extend(named(reads).into_iter().map(|(name, of)| member(name, count(of))));
        group
    };
    DocumentValue::List("Region", regions.0.iter().map(group).collect())
}

fn member(name: &str, value: DocumentValue) -> (String, DocumentValue) {
    (name.to_owned(), value)
}

/// Returns read statistics with their member names in documents.
fn named(reads: ReadStatistics) -> [(&'static str, u64); 5] {
    [
        ("Shared Hit Blocks", reads.blocks_cached),
        ("Shared Read Blocks", reads.blocks_read),
        ("Cells", reads.cells),
        ("Files Skipped by Filter", reads.files_without_row),
        ("Files Skipped by Time", reads.files_of_other_times),
    ]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns the plan as a document, in PostgreSQL's layout. `summary`: additional members.
pub(super) fn document(
    step: &NodeDescription,
    shown: ExplainContent<'_>,
    summary: &[(&str, SummaryValue)],
    format: Format,
) -> String {
    let mut query = vec![member("Plan", DocumentValue::Group(step_group(step, shown)))];
    if let Some(regions) = shown.regions.filter(|regions| !regions.0.is_empty()) {
        query.push(member("Regions", region_groups(shown, regions)));
    }
    if !shown.settings.is_empty() {
        let setting =
            |(name, value): &(&str, String)| member(name, DocumentValue::Text(value.clone()));
        let settings = shown.settings.iter().map(setting).collect();
        query.push(member("Settings", DocumentValue::Group(settings)));
    }
    query.extend(summary.iter().map(|(name, figure)| member(name, figure.value())));
    document::written(&query, format)
}

/// Returns the scan below a filter, and the filter's condition: documents show them as one node,
/// as PostgreSQL does.
fn filtered_read(step: &NodeDescription) -> Option<(&NodeDescription, &str)> {
    let condition = step.line.strip_prefix("Filter: ")?;
    let condition = condition.strip_suffix(", in the session").unwrap_or(condition);
    match step.inputs.as_slice() {
        [read] if read.relation.is_some() && read.inputs.is_empty() => Some((read, condition)),
        _ => None,
    }
}

/// Returns the input of a projection over a scan: documents show them as one node, too.
fn projected(step: &NodeDescription) -> Option<&NodeDescription> {
    match step.inputs.as_slice() {
        [input] if step.line.starts_with("Project: ") => {
            let is_read = input.relation.is_some() && input.inputs.is_empty();
            (is_read || filtered_read(input).is_some()).then_some(input)
        }
        _ => None,
    }
}

fn step_group(step: &NodeDescription, shown: ExplainContent<'_>) -> DocumentGroup {
    let below = projected(step).unwrap_or(step);
    let filtered = filtered_read(below);
    let (read, inputs) = filtered.map_or((below, below.inputs.as_slice()), |(read, _)| (read, &[]));
    let (kind, rest) = read.line.split_once(": ").unwrap_or((&read.line, ""));
    let mut group = vec![member("Node Type", DocumentValue::Text(kind.to_owned()))];
    if let Some(relation) = &read.relation {
        let named = [
            ("Operation", relation.operation),
            ("Index Name", relation.index.as_deref()),
            ("Relation Name", Some(relation.name.as_str())),
            ("Schema", relation.schema.as_deref().filter(|_| shown.verbose)),
            ("Alias", Some(relation.alias.as_str())),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
        group
            .extend(named.map(|(name, value)| member(name, DocumentValue::Text(value.to_owned()))));
    }
    if !rest.is_empty() {
        group.push(member("Description", DocumentValue::Text(rest.to_owned())));
    }
    if let Some((_, condition)) = filtered {
        group.push(member("Filter", DocumentValue::Text(condition.to_owned())));
    }
    let estimate = shown.estimates.zip(step.address).and_then(|(all, address)| all.of(address));
    if let Some(Estimate { startup, total, rows, width }) = estimate {
        group.push(member("Startup Cost", number(startup, 2)));
        group.push(member("Total Cost", number(total, 2)));
        group.push(member("Plan Rows", number(rows.round(), 0)));
        group.push(member("Plan Width", DocumentValue::Number(width.to_string())));
    }
    let ran = shown.profile.zip(step.address).map(|(profile, address)| profile.of(address));
    if let Some(figures) = ran {
        let loops = figures.loops.max(1) as f64;
        if shown.timing {
            let time = milliseconds(figures.time) / loops;
            group.push(member("Actual Total Time", number(time, 3)));
        }
        let rows = (figures.rows as f64 / loops).round();
        group.push(member("Actual Rows", number(rows, 0)));
        group.push(member("Actual Loops", DocumentValue::Number(figures.loops.to_string())));
    }
    if shown.verbose {
        group.push(member("Output", DocumentValue::Items(step.names.clone())));
    }
    if let Some(figures) = ran.filter(|_| shown.buffers) {
        let reads = named(figures.reads).into_iter();
        group.extend(reads.map(|(name, of)| member(name, count(of))));
    }
    if !inputs.is_empty() {
        let inputs = inputs.iter().map(|input| step_group(input, shown)).collect();
        group.push(member("Plans", DocumentValue::List("Plan", inputs)));
    }
    group
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::explain::NodeRelation;
    use crate::plan::{Node, ValuesNode};

    fn step(line: &str, address: Option<usize>, inputs: Vec<NodeDescription>) -> NodeDescription {
        NodeDescription {
            line: line.to_owned(),
            names: Vec::new(),
            inputs,
            address,
            relation: None,
        }
    }

    #[test]
    fn plan_nodes_are_shown_with_execution_statistics() {
        let scan = step("Scan: t, filter: a = 'x\"y'", Some(2), Vec::new());
        let other = step("Scan: u", Some(3), Vec::new());
        let plan = step("Loop join: all pairs", Some(1), vec![scan, other]);
        let profile = ExecutionProfile::default();
        profile.open(1);
        let reads = ReadStatistics {
            cells: 40,
            blocks_cached: 3,
            files_without_row: 2,
            ..ReadStatistics::default()
        };
        profile.add(1, 4, Duration::from_micros(1_500), reads);
        (0..2).for_each(|_| profile.open(2));
        profile.add(2, 6, Duration::from_micros(1_000), ReadStatistics::default());
        let shown =
            ExplainContent { profile: Some(&profile), timing: true, ..ExplainContent::default() };
        assert_eq!(
            text(&plan, shown),
            [
                "Loop join: all pairs (actual time=1.500 rows=4 loops=1)",
                "├─ Scan: t, filter: a = 'x\"y' (actual time=0.500 rows=3 loops=2)",
                "└─ Scan: u (never executed)",
            ]
        );
        let read = text(&plan, ExplainContent { timing: false, buffers: true, ..shown });
        assert_eq!(read[1], "│  Buffers: shared hit=3, Cells: 40, Files skipped: filter=2");
        assert_eq!(read.len(), 4);
        let wanted = r#"[
  {
    "Plan": {
      "Node Type": "Loop join",
      "Description": "all pairs",
      "Plans": [
        {
          "Node Type": "Scan",
          "Description": "t, filter: a = 'x\"y'"
        },
        {
          "Node Type": "Scan",
          "Description": "u"
        }
      ]
    },
    "Planning Time": 0.250
  }
]"#;
        let summary = [("Planning Time", SummaryValue::Time(Duration::from_micros(250)))];
        assert_eq!(document(&plan, ExplainContent::default(), &summary, Format::Json), wanted);
        let node = Node::Values(Arc::new(ValuesNode {
            types: Vec::new(),
            rows: Vec::new(),
            constants: None,
        }));
        let mut estimates = Estimates::default();
        estimates.set(&node, Estimate { startup: 0.5, total: 12.3456, rows: 99.6, width: 8 });
        let shown = ExplainContent { estimates: Some(&estimates), ..ExplainContent::default() };
        let values = step("Values", Some(node.address()), Vec::new());
        assert_eq!(text(&values, shown), ["Values (cost=0.50..12.35 rows=100 width=8)"]);
        let found = document(&values, shown, &[], Format::Json);
        let wanted = r#""Startup Cost": 0.50,
      "Total Cost": 12.35,
      "Plan Rows": 100,
      "Plan Width": 8"#;
        assert!(found.contains(wanted), "{found}");
    }

    #[test]
    fn filter_above_scan_is_shown_as_its_property() {
        let relation = NodeRelation { name: "pg_type".into(), ..NodeRelation::default() };
        let mut read = step("System rows: pg_type, in the session", Some(2), Vec::new());
        read.relation = Some(relation);
        let filter = step("Filter: a = 1, in the session", Some(1), vec![read]);
        let plan = step("Project: a", Some(3), vec![filter]);
        let document = document(&plan, ExplainContent::default(), &[], Format::Json);
        assert!(document.contains("\"Filter\": \"a = 1\""), "{document}");
        assert!(document.contains("\"Relation Name\": \"pg_type\""), "{document}");
        assert!(!document.contains("Plans"), "{document}");
    }

    #[test]
    fn plan_documents_name_relations_like_postgresql() {
        let relation = NodeRelation {
            operation: None,
            index: Some("t_b".to_owned()),
            name: "t".to_owned(),
            schema: Some("public".to_owned()),
            alias: "u".to_owned(),
        };
        let scan =
            NodeDescription { relation: Some(relation), ..step("Scan: t u", None, Vec::new()) };
        let wanted = r#""Node Type": "Scan",
      "Index Name": "t_b",
      "Relation Name": "t",
      "Alias": "u",
      "Description": "t u""#;
        let found = document(&scan, ExplainContent::default(), &[], Format::Json);
        assert!(found.contains(wanted), "{found}");
        let shown = ExplainContent { verbose: true, ..ExplainContent::default() };
        let found = document(&scan, shown, &[], Format::Json);
        assert!(found.contains(r#""Schema": "public""#), "{found}");
    }

    #[test]
    fn explain_options_show_regions_columns_and_settings() {
        let plan = NodeDescription {
            names: vec!["a".to_owned(), "b".to_owned()],
            ..step("Scan: t", None, Vec::new())
        };
        let reads = ReadStatistics { cells: 40, files_without_row: 2, ..ReadStatistics::default() };
        let time = Duration::from_micros(250);
        let given = RegionReadStatistics { requests: 1, rows: 20, bytes: 4_096, reads, time };
        let given = RegionReads([(RegionId(5), given)].into());
        let settings = [("work_mem", "1MB".to_owned())];
        let shown = ExplainContent {
            timing: true,
            regions: Some(&given),
            verbose: true,
            settings: &settings,
            ..ExplainContent::default()
        };
        let region = "Region 5: requests=1 rows=20 bytes=4096 time=0.250, \
                      Cells: 40, Files skipped: filter=2";
        let wanted = ["Scan: t", "   Output: a, b", region, "Settings: work_mem = '1MB'"];
        assert_eq!(text(&plan, shown), wanted);
        let without = text(&plan, ExplainContent { timing: false, ..shown });
        assert_eq!(without[2], region.replace(" time=0.250", ""));
        let found = document(&plan, shown, &[], Format::Json);
        for wanted in [
            r#""Output": ["a", "b"]"#,
            "\"Region\": 5,\n        \"Requests\": 1,\n        \"Rows\": 20,",
            "\"Time\": 0.250,",
            "\"Files Skipped by Filter\": 2,",
            "\"Settings\": {\n      \"work_mem\": \"1MB\"\n    }",
        ] {
            assert!(found.contains(wanted), "{found}");
        }
    }
}
