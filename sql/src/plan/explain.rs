//! EXPLAIN: description of a plan, one line per node.
//!
//! Each line names the operator, the table or index, the access path, the filter, the number of
//! regions, and the place of execution: regions or session. [`render`](crate::plan::render) lays
//! the lines out.

use std::ops::Range;

use store::TableId;
use types::Datum;
use types::aggregate::Aggregate;
use types::expr::Expr;
use types::function::sets;

use crate::ast::{CellAttributes, SystemTime, SystemTimeForm};
use crate::catalog::table::Table;
use crate::logical::{
    ApplyKind, Assignment, JoinKind, LockedTable, MergeAction, OPERATION_COLUMN, OnConflict,
    RegionFunction, SetCall, SetFunction, SetKind, SortKey, TIMESTAMP_COLUMN,
};
use crate::plan::MergePlan;
use crate::plan::expression::text;
use crate::plan::scan::{
    AccessPath, Comparison, ComputedValues, IntegerRange, InvertedCondition, KeyCondition, KeyTerm,
    PathShape, ScanNode,
};
use crate::plan::window::window_call;
use crate::plan::{
    Node, Plan, PlanRoot, ProjectSetNode, RegionAggregateNode, RegionTopNNode, RowCheckPlan,
    SystemRowsNode,
};

/// Callback that returns the present number of regions of a store table, if it is known.
pub(super) type RegionCounts<'a> = &'a dyn Fn(TableId) -> Option<usize>;

/// Description of a node, with the names of its columns and the descriptions of its inputs.
pub(super) struct NodeDescription {
    pub line: String,
    pub names: Vec<String>,
    pub inputs: Vec<NodeDescription>,
    /// Address of its [`Node`], if it is one.
    pub address: Option<usize>,
    /// Relation that it reads or changes.
    pub relation: Option<NodeRelation>,
}

/// Relation that a node reads or changes, for document formats.
#[derive(Default)]
pub(super) struct NodeRelation {
    /// `Insert`, `Update`, `Delete` or `Merge`.
    pub operation: Option<&'static str>,
    /// Index that is read.
    pub index: Option<String>,
    pub name: String,
    /// Schema; `None` for a system relation.
    pub schema: Option<String>,
    pub alias: String,
}

impl NodeRelation {
    fn changed(operation: &'static str, table: &Table) -> Option<NodeRelation> {
        Some(NodeRelation {
            operation: Some(operation),
            index: None,
            name: table.name.clone(),
            schema: Some(table.schema.clone()),
            alias: table.name.clone(),
        })
    }

    fn read(table: &Table, alias: &str, path: &AccessPath) -> Option<NodeRelation> {
        Some(NodeRelation {
            operation: None,
            index: path.index.as_ref().map(|index| index.name.clone()),
            name: table.name.clone(),
            schema: Some(table.schema.clone()),
            alias: alias.to_owned(),
        })
    }

    /// Returns the relation of system rows; `None` for a function.
    fn of_system(rows: &SystemRowsNode) -> Option<NodeRelation> {
        let is_view = rows.arguments.is_empty() && rows.target.is_none();
        is_view.then(|| NodeRelation {
            operation: None,
            index: None,
            name: rows.name.clone(),
            schema: None,
            alias: rows.name.clone(),
        })
    }
}

/// Returns the descriptions of the plan's nodes, with the topmost node at the root.
pub(super) fn tree(plan: &Plan, regions: RegionCounts<'_>) -> NodeDescription {
    let last = match &plan.root {
        PlanRoot::Query(node) => named(node, plan, regions),
        root => root_step(root, regions),
    };
    // As WITH of a query: each part is a sibling of everything after it.
    plan.before.iter().rev().fold(last, |after, part| NodeDescription {
        line: format!("CTE: {}", part.name),
        names: after.names.clone(),
        inputs: vec![root_step(&part.root, regions), after],
        address: None,
        relation: None,
    })
}

fn root_step(root: &PlanRoot, regions: RegionCounts<'_>) -> NodeDescription {
    match root {
        PlanRoot::Query(node) => step(node, regions),
        PlanRoot::Insert(insert) => {
            let conflict = match &insert.on_conflict {
                OnConflict::Error => "",
                OnConflict::Overwrite => ", overwrite existing rows",
                OnConflict::Ignore { .. } => ", on conflict do nothing",
                OnConflict::Update { .. } => ", on conflict update",
            };
            let verb = if matches!(insert.on_conflict, OnConflict::Overwrite) {
                "Upsert"
            } else {
                "Insert"
            };
            let written = attributes_text(&insert.attributes);
            let (table, upkeep) = (&insert.table.name, upkeep(&insert.table));
            let line = format!("{verb}: {table}{conflict}{written}{upkeep}");
            NodeDescription {
                line,
                names: Vec::new(),
                inputs: [&insert.source]
                    .into_iter()
                    .chain(insert.conflict_row.iter().map(|row| &row.node))
                    .chain(checked(&insert.checks))
                    .map(|node| step(node, regions))
                    .collect(),
                address: None,
                relation: NodeRelation::changed("Insert", &insert.table),
            }
        }
        PlanRoot::Change(change) => {
            let table = &change.table;
            let set = change.assignments.as_ref().map(|set| assigned_names(table, set));
            let set = set.map_or(String::new(), |names| format!(", set {names}"));
            let verb = change.verb();
            NodeDescription {
                line: format!(
                    "{verb}: {}{set}{}{}",
                    table.name,
                    attributes_text(&change.attributes),
                    upkeep(table)
                ),
                names: Vec::new(),
                inputs: [&change.source.node]
                    .into_iter()
                    .chain(checked(&change.checks))
                    .map(|node| step(node, regions))
                    .collect(),
                address: None,
                relation: NodeRelation::changed(verb, table),
            }
        }
        PlanRoot::Merge(merge) => {
            let line = format!("Merge: {}{}", merge_text(merge), upkeep(&merge.table));
            let inputs = vec![step(&merge.source, regions)];
            NodeDescription {
                line,
                names: Vec::new(),
                inputs,
                address: None,
                relation: NodeRelation::changed("Merge", &merge.table),
            }
        }
    }
}

/// Returns a one-line summary of the plan.
pub(super) fn summary(plan: &Plan) -> String {
    let mut parts = Vec::new();
    let before = plan.before.iter().rev().map(|part| &part.root);
    [&plan.root].into_iter().chain(before).for_each(|root| collect_root(root, &mut parts));
    parts.join(" <- ")
}

fn collect_root(root: &PlanRoot, parts: &mut Vec<String>) {
    match root {
        PlanRoot::Query(node) => collect(node, parts),
        PlanRoot::Insert(insert) => parts.push(format!("Insert: {}", insert.table.name)),
        PlanRoot::Change(change) => {
            parts.push(format!("{}: {}", change.verb(), change.table.name));
            collect(&change.source.node, parts);
        }
        PlanRoot::Merge(merge) => {
            parts.push(format!("Merge: {}", merge.table.name));
            collect(&merge.source, parts);
        }
    }
}

/// Collects the most informative nodes: all but projections.
fn collect(node: &Node, parts: &mut Vec<String>) {
    let inputs = node.inputs();
    if !matches!(node, Node::Project(_)) || inputs.is_empty() {
        parts.push(step(node, &|_| None).line);
    }
    for input in inputs {
        collect(input, parts);
    }
}

/// Returns the text `t, matched: update v, not matched: insert`.
fn merge_text(merge: &MergePlan) -> String {
    let mut text = merge.table.name.clone();
    for clause in &merge.clauses {
        let matched = if clause.matched { "matched" } else { "not matched" };
        let condition = if clause.condition.is_some() { " and …" } else { "" };
        let action = match &clause.action {
            MergeAction::Nothing => "do nothing".to_owned(),
            MergeAction::Delete => "delete".to_owned(),
            MergeAction::Insert(_) => "insert".to_owned(),
            MergeAction::Update(set) => format!("set {}", assigned_names(&merge.table, set)),
        };
        text.push_str(&format!(", {matched}{condition}: {action}"));
    }
    text
}

fn assigned_names(table: &Table, assignments: &[Assignment]) -> String {
    let name = |one: &Assignment| table.columns[one.column].name.as_str();
    let names: Vec<&str> = assignments.iter().map(name).collect();
    names.join(", ")
}

/// Returns the plans of check options with subqueries.
fn checked(checks: &[RowCheckPlan]) -> impl Iterator<Item = &Node> {
    checks.iter().flat_map(|check| &check.row).map(|row| &row.node)
}

/// Returns the text about index maintenance of a data-changing statement, which runs in the
/// regions.
fn upkeep(table: &Table) -> String {
    let maintained = table.indexes.iter().filter(|index| !index.is_followed);
    let names: Vec<&str> = maintained.map(|index| index.name.as_str()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(", maintains {} in the regions", names.join(", "))
}

/// Returns the root description: a projection has the names of the result columns.
fn named(node: &Node, plan: &Plan, regions: RegionCounts<'_>) -> NodeDescription {
    let mut step = step(node, regions);
    if let Node::Project(_) = node {
        step.names = plan.columns.iter().map(|column| column.name.clone()).collect();
    }
    step
}

fn step(node: &Node, regions: RegionCounts<'_>) -> NodeDescription {
    NodeDescription { address: Some(node.address()), ..described(node, regions) }
}

#[expect(clippy::too_many_lines, reason = "a flat match over the kinds of steps")]
fn described(node: &Node, regions: RegionCounts<'_>) -> NodeDescription {
    let inputs: Vec<NodeDescription> =
        node.inputs().into_iter().map(|input| step(input, regions)).collect();
    let names: Vec<String> = inputs.iter().flat_map(|input| input.names.iter().cloned()).collect();
    match node {
        Node::Scan(scan) => scan_step(scan, regions),
        Node::RegionAggregate(aggregate) => region_aggregate_step(aggregate, regions),
        Node::RegionTopN(top) => region_top_n_step(top, regions),
        Node::SystemRows(rows) => NodeDescription {
            line: system_rows_line(rows, regions),
            names: rows.names.clone(),
            inputs,
            address: None,
            relation: NodeRelation::of_system(rows),
        },
        Node::Values(values) => {
            let constants = values.constants.as_ref();
            let count = constants.map_or(values.rows.len(), |rows| rows.row_count);
            let line = format!("Values: {count} row{}", plural(count));
            let names =
                (0..values.types.len()).map(|index| format!("column{}", index + 1)).collect();
            NodeDescription { line, names, inputs, address: None, relation: None }
        }
        Node::Filter(filter) => {
            let line = format!("Filter: {}, in the session", text(&filter.predicate, &names));
            NodeDescription { line, names, inputs, address: None, relation: None }
        }
        Node::Project(project) => {
            let names: Vec<String> =
                project.expressions.iter().map(|expression| text(expression, &names)).collect();
            NodeDescription {
                line: format!("Project: {}", names.join(", ")),
                names,
                inputs,
                address: None,
                relation: None,
            }
        }
        Node::ProjectSet(sets) => project_set_step(sets, inputs, names),
        Node::HashJoin(join) => {
            let keys = key_text(&join.left_keys, &join.right_keys, &inputs);
            join_step("Hash join", (join.kind, keys), &join.join_filter, inputs)
        }
        Node::MergeJoin(join) => {
            let keys = key_text(&join.left_keys, &join.right_keys, &inputs);
            join_step("Merge join", (join.kind, keys), &join.join_filter, inputs)
        }
        Node::LookupJoin(join) => {
            let keys = key_text(&join.left_keys, &join.right_keys, &inputs);
            join_step("Lookup join", (join.kind, keys), &join.residual, inputs)
        }
        Node::LoopJoin(join) => {
            let on = join.on.as_ref().map_or("all pairs".to_owned(), |on| text(on, &names));
            let line = format!("Loop join: {}{on}, in the session", kind_name(join.kind));
            let names = if is_half(join.kind) { inputs[0].names.clone() } else { names };
            NodeDescription { line, names, inputs, address: None, relation: None }
        }
        Node::Apply(apply) if let ApplyKind::Rows { on, outer } = &apply.kind => {
            let kind = if *outer { "left, " } else { "" };
            let on = match on {
                Expr::Constant { value: Datum::Bool(true), .. } => String::new(),
                on => format!("{}, ", text(on, &names)),
            };
            let line = format!("Lateral join: {kind}{on}for each row, in the session");
            NodeDescription { line, names, inputs, address: None, relation: None }
        }
        Node::Apply(apply) => {
            let (what, name) = match &apply.kind {
                ApplyKind::Scalar => ("value of a subquery", "(subquery)"),
                ApplyKind::Array { .. } => ("ARRAY (subquery)", "ARRAY (subquery)"),
                ApplyKind::Rows { .. } => ("rows of a subquery", "(subquery)"),
                ApplyKind::Exists => ("EXISTS (subquery)", "EXISTS (subquery)"),
                ApplyKind::Any { .. } => ("ANY (subquery)", "ANY (subquery)"),
                ApplyKind::All { .. } => ("ALL (subquery)", "ALL (subquery)"),
            };
            let mut names = inputs[0].names.clone();
            let how = if apply.bindings.is_empty() { "once" } else { "for each row" };
            let groups = apply.groups.as_ref().map(|groups| {
                let keys: Vec<String> = groups.keys.iter().map(|key| text(key, &names)).collect();
                format!(", grouped by {} first", keys.join(", "))
            });
            let groups = groups.unwrap_or_default();
            let guard = apply.guard.as_ref().map(|guard| format!(" if {}", text(guard, &names)));
            let guard = guard.unwrap_or_default();
            names.push(name.to_owned());
            NodeDescription {
                line: format!("Apply: {what}, {how}{guard}{groups}, in the session"),
                names,
                inputs,
                address: None,
                relation: None,
            }
        }
        Node::Aggregate(aggregate) => {
            let (line, names) = aggregate_text(&aggregate.group_by, &aggregate.aggregates, &names);
            NodeDescription {
                line: format!("Aggregate: {line}, in the session"),
                names,
                inputs,
                address: None,
                relation: None,
            }
        }
        Node::GroupingSets(grouping) => {
            let (line, names) = grouping.text(&names);
            NodeDescription { line, names, inputs, address: None, relation: None }
        }
        Node::Sort(sort) => {
            let top = match &sort.goal {
                Some(goal) => format!("first {} by ", text(&goal.limit, &[])),
                None => String::new(),
            };
            let line = format!("Sort: {top}{}, in the session", sort_text(&sort.keys, &names));
            NodeDescription { line, names, inputs, address: None, relation: None }
        }
        Node::LockRows(lock) => {
            let limit = match &lock.goal {
                Some(goal) => format!(", limit {}", text(&goal.limit, &[])),
                None => String::new(),
            };
            let tables: Vec<String> = lock.held.tables.iter().map(locked_text).collect();
            let line = format!("Lock rows: {}{limit}, in the session", tables.join(", "));
            NodeDescription { line, names, inputs, address: None, relation: None }
        }
        Node::Limit(limit) => {
            let mut parts = Vec::new();
            parts.extend(limit.limit.as_ref().map(|limit| text(limit, &[])));
            parts.extend(
                limit.offset.as_ref().map(|offset| format!("offset {}", text(offset, &[]))),
            );
            if !limit.ties.is_empty() {
                parts.push(format!("with ties of {}", texts(&limit.ties, &names)));
            }
            NodeDescription {
                line: format!("Limit: {}", parts.join(", ")),
                names,
                inputs,
                address: None,
                relation: None,
            }
        }
        Node::Distinct(distinct) => {
            let on = match distinct.on.len() == names.len() {
                true => String::new(),
                false => format!("on {}, ", texts(&distinct.on, &names)),
            };
            NodeDescription {
                line: format!("Distinct: {on}in the session"),
                names,
                inputs,
                address: None,
                relation: None,
            }
        }
        Node::WindowAgg(window) => {
            let calls: Vec<String> = window
                .functions
                .iter()
                .map(|function| window_call(function, window, &names))
                .collect();
            let line = format!("WindowAgg: {}, in the session", calls.join(", "));
            NodeDescription {
                line,
                names: names.into_iter().chain(calls).collect(),
                inputs,
                address: None,
                relation: None,
            }
        }
        Node::With(with) => NodeDescription {
            line: format!("CTE: {}", with.name),
            names: inputs[1].names.clone(),
            inputs,
            address: None,
            relation: None,
        },
        Node::CteScan(scan) => {
            let kind = if scan.is_work_table { "WorkTable Scan" } else { "CTE Scan" };
            let line = format!("{kind}: {}", scan.name);
            NodeDescription {
                line,
                names: scan.names.clone(),
                inputs,
                address: None,
                relation: None,
            }
        }
        Node::RecursiveUnion(union) => {
            let distinct = if union.all { "" } else { ", distinct" };
            let line = format!("Recursive Union: {}{distinct}, in the session", union.name);
            NodeDescription {
                line,
                names: inputs[0].names.clone(),
                inputs,
                address: None,
                relation: None,
            }
        }
        Node::SetOperation(operation) => {
            let kind = match operation.kind {
                SetKind::Intersect => "Intersect",
                SetKind::Except => "Except",
            };
            let all = if operation.all { " All" } else { "" };
            let line = format!("HashSetOp: {kind}{all}, in the session");
            NodeDescription {
                line,
                names: inputs[0].names.clone(),
                inputs,
                address: None,
                relation: None,
            }
        }
        Node::Append(_) => {
            let names = inputs.first().map(|input| input.names.clone()).unwrap_or_default();
            NodeDescription {
                line: format!("Append: {} inputs", inputs.len()),
                names,
                inputs,
                address: None,
                relation: None,
            }
        }
    }
}

/// Describes set-returning functions; those that are called once are a function scan.
fn project_set_step(
    sets: &ProjectSetNode,
    inputs: Vec<NodeDescription>,
    mut names: Vec<String>,
) -> NodeDescription {
    let call = |function: &SetFunction| match &function.call {
        SetCall::Set { function, arguments } => {
            format!("{}({})", sets::signature(*function).name, texts(arguments, &names))
        }
        SetCall::Value(value) => text(value, &names),
        SetCall::Routine { routine, arguments, .. } => {
            let arguments: Vec<String> = arguments.iter().map(|one| text(one, &names)).collect();
            format!("{}({})", routine.name, arguments.join(", "))
        }
    };
    let mut line: String = sets.functions.iter().map(call).collect::<Vec<String>>().join(", ");
    if sets.ordinality {
        line.push_str(" with ordinality");
    }
    let is_unit = matches!(&sets.input, Node::Values(values) if values.types.is_empty() && values.rows.len() == 1);
    let outer = if sets.outer { "left, " } else { "" };
    let columns = sets.functions.iter().flat_map(|function| &function.columns);
    names.extend(columns.map(|column| column.name.clone()));
    names.extend(sets.ordinality.then(|| "ordinality".to_owned()));
    match is_unit {
        true => {
            let line = format!("Function Scan: {line}, in the session");
            NodeDescription { line, names, inputs: Vec::new(), address: None, relation: None }
        }
        false => {
            let line = format!("Project Set: {outer}{line}, for each row, in the session");
            NodeDescription { line, names, inputs, address: None, relation: None }
        }
    }
}

/// Returns the text `id = user_id AND …`.
fn key_text(left_keys: &[Expr], right_keys: &[Expr], inputs: &[NodeDescription]) -> String {
    let (left, right) = (&inputs[0].names, &inputs[1].names);
    let key = |(a, b): (&Expr, &Expr)| format!("{} = {}", text(a, left), text(b, right));
    let keys: Vec<String> = left_keys.iter().zip(right_keys).map(key).collect();
    keys.join(" AND ")
}

fn join_step(
    operator: &str,
    (kind, keys): (JoinKind, String),
    residual: &Option<Expr>,
    inputs: Vec<NodeDescription>,
) -> NodeDescription {
    let left = inputs[0].names.clone();
    let names: Vec<String> = left.iter().chain(&inputs[1].names).cloned().collect();
    let filter = residual.as_ref().map(|residual| text(residual, &names));
    // A range look-up has no equality keys.
    let conditions = match filter {
        None => keys,
        Some(filter) if keys.is_empty() => filter,
        Some(filter) => format!("{keys}, filter: {filter}"),
    };
    let line = format!("{operator}: {}{conditions}", kind_name(kind));
    let names = if is_half(kind) { left } else { names };
    NodeDescription {
        line: line + ", in the session",
        names,
        inputs,
        address: None,
        relation: None,
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

pub(super) fn texts(expressions: &[Expr], names: &[String]) -> String {
    let texts: Vec<String> = expressions.iter().map(|expression| text(expression, names)).collect();
    texts.join(", ")
}

fn is_half(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Semi | JoinKind::Anti)
}

fn kind_name(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "",
        JoinKind::Left => "left, ",
        JoinKind::Right => "right, ",
        JoinKind::Full => "full, ",
        JoinKind::Semi => "semi, ",
        JoinKind::Anti => "anti, ",
    }
}

pub(super) fn sort_text(keys: &[SortKey], names: &[String]) -> String {
    let key = |key: &SortKey| {
        let nulls = match (key.descending, key.nulls_first) {
            (false, true) => " NULLS FIRST",
            (true, false) => " NULLS LAST",
            _ => "",
        };
        let direction = if key.descending { " DESC" } else { "" };
        format!("{}{direction}{nulls}", text(&key.expression, names))
    };
    keys.iter().map(key).collect::<Vec<String>>().join(", ")
}

fn aggregate_text(
    group_by: &[Expr],
    aggregates: &[Aggregate],
    names: &[String],
) -> (String, Vec<String>) {
    let keys: Vec<String> = group_by.iter().map(|key| text(key, names)).collect();
    let call = |call: &Aggregate| call.describe_with(&|part| text(part, names));
    let calls: Vec<String> = aggregates.iter().map(call).collect();
    let mut line = calls.join(", ");
    if !keys.is_empty() {
        let separator = if line.is_empty() { "" } else { " " };
        line.push_str(&format!("{separator}by {}", keys.join(", ")));
    }
    (line, keys.into_iter().chain(calls).collect())
}

/// Returns the column names of the table or index that a path reads, by position in its layout.
fn layout_names(table: &Table, path: &AccessPath) -> Vec<String> {
    match &path.index {
        None => table.columns.iter().map(|column| column.name.clone()).collect(),
        Some(index) => table.index_column_names(index),
    }
}

fn read_names(read: &[usize], layout_names: &[String]) -> Vec<String> {
    read.iter()
        .map(|&column| match column {
            TIMESTAMP_COLUMN => "_timestamp".to_owned(),
            OPERATION_COLUMN => "_operation".to_owned(),
            column => layout_names.get(column).cloned().unwrap_or_default(),
        })
        .collect()
}

/// Returns `, timestamp: …` and so on of the cells that a statement writes.
fn attributes_text(attributes: &CellAttributes<Expr>) -> String {
    let CellAttributes { timestamp, version, ttl } = attributes;
    let named = [("timestamp", timestamp), ("version", version), ("ttl", ttl)];
    let given = named.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    given.map(|(name, value)| format!(", {name}: {}", text(value, &[]))).collect()
}

fn system_rows_line(rows: &SystemRowsNode, regions: RegionCounts<'_>) -> String {
    let Some(target) = &rows.target else {
        return format!("System rows: {}, in the session", rows.name);
    };
    let (given, key) = rows.arguments.split_at(target.arguments.len());
    let (start, stop) = key.split_at(target.start_count);
    let table = &target.table.name;
    let mut line = match &target.function {
        RegionFunction::Endpoint(name) => format!("Endpoint: {name} of {table}"),
        RegionFunction::Cells(None) => format!("Cells: {table}"),
        RegionFunction::Cells(Some(index)) => format!("Cells: index {} of {table}", index.name),
    };
    for (name, value) in target.arguments.iter().zip(given) {
        line.push_str(&format!(", {name} => {}", text(value, &[])));
    }
    for (word, values) in [("from", start), ("before", stop)] {
        if !values.is_empty() {
            line.push_str(&format!(", {word} key ({})", texts(values, &[])));
        }
    }
    if let Some(count) = regions(target.store_table()) {
        line.push_str(&format!(", in up to {count} region{}", plural(count)));
    }
    line
}

fn scan_step(scan: &ScanNode, regions: RegionCounts<'_>) -> NodeDescription {
    let names = read_names(&scan.read, &layout_names(&scan.table, &scan.path));
    let mut line = format!("Scan: {}", scan.table.name);
    if scan.alias != scan.table.name {
        line.push_str(&format!(" {}", scan.alias));
    }
    line.push_str(&path_text(&scan.table, &scan.path, scan.lookup.is_some()));
    match &scan.system_time {
        None => {}
        Some(SystemTime { form: SystemTimeForm::AsOf, times }) => {
            line.push_str(&format!(", as of {}", texts(times, &[])));
        }
        Some(versions) => {
            let range = versions.text(|time| text(time, &[]));
            line.push_str(&format!(", versions {}", range));
        }
    }
    if let Some(filter) = &scan.filter {
        line.push_str(&format!(", filter: {}", text(filter, &names)));
    }
    let names = match &scan.lookup {
        None => names,
        Some(lookup) => {
            let table_names: Vec<String> =
                scan.table.columns.iter().map(|column| column.name.clone()).collect();
            let names = read_names(&lookup.read, &table_names);
            if let Some(filter) = &lookup.filter {
                line.push_str(&format!(", filter on rows: {}", text(filter, &names)));
            }
            names
        }
    };
    match &scan.goal {
        Some(goal) if goal.is_exact() => {
            line.push_str(&format!(", limit {}", text(&goal.limit, &[])));
        }
        Some(goal) => line.push_str(&format!(", row goal {:.0}", goal.estimate().ceil())),
        None => {}
    }
    if scan.lock.is_some() {
        line.push_str(", locks rows");
    }
    line.push_str(&region_text(scan, regions));
    let names = scan.output.iter().map(|&position| names[position].clone()).collect();
    NodeDescription {
        line,
        names,
        inputs: Vec::new(),
        address: None,
        relation: NodeRelation::read(&scan.table, &scan.alias, &scan.path),
    }
}

/// Returns the text `orders o`.
fn locked_text(locked: &LockedTable) -> String {
    let LockedTable { table, alias, .. } = locked;
    match table.name == *alias {
        true => alias.clone(),
        false => format!("{} {alias}", table.name),
    }
}

/// Returns the text `, index t_city, range scan, key: city = 'Oslo'`.
fn path_text(table: &Table, path: &AccessPath, lookup: bool) -> String {
    let mut line = String::new();
    if let Some(index) = &path.index {
        let how = match (&path.inverted, lookup) {
            (Some(_), _) => "inverted",
            (None, true) => "fetch rows",
            (None, false) => "covering",
        };
        let kind = if index.spec.local { "local index" } else { "index" };
        line.push_str(&format!(", {kind} {} ({how})", index.name));
    }
    if let Some(inverted) = &path.inverted {
        let names = table.columns.iter().map(|column| column.name.clone());
        line.push_str(&format!(", terms: {}", inverted_text(inverted, &names.collect::<Vec<_>>())));
        return line;
    }
    line.push_str(", ");
    let unknown = path.conditions.iter().chain(path.branches.iter().flatten());
    let unknown = unknown.clone().any(KeyCondition::has_array);
    let distinct = path.distinct.as_ref();
    let names = |count: usize| key_names(table, path, 0..count);
    line.push_str(&match path.shape {
        PathShape::Full | PathShape::Ranges(_) if distinct.is_some() => {
            format!("distinct prefix scan of {}", names(distinct.map_or(0, |one| one.columns)))
        }
        PathShape::Points(_) if unknown => "multi get".to_owned(),
        PathShape::Ranges(_) if unknown => "skip scan".to_owned(),
        PathShape::Points(1) => "point get".to_owned(),
        PathShape::Points(count) => format!("multi get ({count} keys)"),
        PathShape::Ranges(1) => "range scan".to_owned(),
        PathShape::Ranges(count) => format!("skip scan ({count} ranges)"),
        PathShape::Full => "full scan".to_owned(),
    });
    if path.reverse {
        line.push_str(", reverse");
    }
    if !path.conditions.is_empty() {
        line.push_str(&format!(", key: {}", conditions_text(&path.conditions)));
    }
    if !path.branches.is_empty() {
        let branch = |conditions: &Vec<KeyCondition>| format!("({})", conditions_text(conditions));
        let branches: Vec<String> = path.branches.iter().map(branch).collect();
        line.push_str(&format!(", key: {}", branches.join(" OR ")));
    }
    if let Some(distinct) = distinct.filter(|one| !one.conditions.is_empty()) {
        line.push_str(&format!(", then {}", conditions_text(&distinct.conditions)));
    }
    line
}

fn inverted_text(condition: &InvertedCondition, names: &[String]) -> String {
    let all = |conditions: &[InvertedCondition], separator: &str| {
        let parts = conditions.iter().map(|condition| inverted_text(condition, names));
        let joined = parts.collect::<Vec<String>>().join(separator);
        if conditions.len() > 1 { format!("({joined})") } else { joined }
    };
    match condition {
        InvertedCondition::Operator { condition, .. } => text(condition, names),
        InvertedCondition::All(conditions) => all(conditions, " AND "),
        InvertedCondition::Any(conditions) => all(conditions, " OR "),
    }
}

/// Returns the text `, 4 regions in parallel` about the regions of a path. A scan starts on the
/// session's thread alone; with a LIMIT it usually ends there, too.
fn region_text(scan: &ScanNode, regions: RegionCounts<'_>) -> String {
    let path = &scan.path;
    let count = regions(path.store_table).unwrap_or_else(|| path.region_count(&scan.table));
    let parallel = count > 1 && scan.lock.is_none() && scan.goal.is_none();
    let parallel = if parallel { " in parallel" } else { "" };
    let order = |words| if path.ordered { words } else { "" };
    if path.merged > 0 {
        let columns = path.merged..path.layout.key.len();
        return format!(", merged in the order of {}", key_names(&scan.table, path, columns));
    }
    if path.index.as_ref().is_some_and(|index| index.spec.local) {
        return match path.base_conditions.as_slice() {
            [] => format!(", {count} region{}", plural(count)),
            conditions => format!(", regions of {}", conditions_text(conditions)),
        };
    }
    match (path.shape, path.layout.salt_buckets) {
        (PathShape::Points(_), _) => String::new(),
        (PathShape::Full | PathShape::Ranges(_), buckets @ 1..) => {
            let merged = order(", merged in key order");
            format!(", {buckets} salt bucket{}{parallel}{merged}", plural(usize::from(buckets)))
        }
        (PathShape::Full, 0) => {
            let order = if parallel.is_empty() { "" } else { order(", in key order") };
            format!(", {count} region{}{parallel}{order}", plural(count))
        }
        // If the first column has a list of values, few regions are read.
        (PathShape::Ranges(_), 0) => {
            let wide = path.conditions.first().is_some_and(|first| first.point_count().is_none());
            if !wide || parallel.is_empty() {
                return String::new();
            }
            format!(", up to {count} regions{parallel}{}", order(", in key order"))
        }
    }
}

/// Returns the names of some key columns.
fn key_names(table: &Table, path: &AccessPath, columns: Range<usize>) -> String {
    let names = layout_names(table, path);
    let key = path.layout.key.iter().skip(columns.start).take(columns.len());
    let names = key.filter_map(|key| names.get(key.column).cloned());
    names.collect::<Vec<String>>().join(", ")
}

fn conditions_text(conditions: &[KeyCondition]) -> String {
    conditions.iter().map(condition_text).collect::<Vec<String>>().join(" AND ")
}

fn condition_text(condition: &KeyCondition) -> String {
    let terms: Vec<String> =
        condition.terms.iter().map(|term| term_text(&condition.name, term)).collect();
    terms.join(" AND ")
}

fn term_text(name: &str, term: &KeyTerm) -> String {
    match term {
        KeyTerm::Equal(value) => format!("{name} = {}", text(value, &[])),
        KeyTerm::In(values) => format!("{name} IN ({})", texts(values, &[])),
        KeyTerm::InArray(array) => format!("{name} = ANY ({})", text(array, &[])),
        KeyTerm::IsNull => format!("{name} IS NULL"),
        KeyTerm::IsNotNull => format!("{name} IS NOT NULL"),
        KeyTerm::Compare(comparison, value) => {
            format!("{name} {} {}", comparison.symbol(), text(value, &[]))
        }
        KeyTerm::Like(pattern) => format!("{name} LIKE {}", text(pattern, &[])),
        KeyTerm::Computed(values) => computed_text(name, values),
        KeyTerm::Any(terms) => {
            let terms: Vec<String> = terms.iter().map(|term| term_text(name, term)).collect();
            format!("({})", terms.join(" OR "))
        }
    }
}

/// Returns the values of a computed column, as far as the plan knows them.
fn computed_text(name: &str, computed: &ComputedValues) -> String {
    if computed.count.is_none() {
        let bound = |(comparison, value): &(Comparison, Expr)| {
            let symbol = if comparison.is_upper() { "<=" } else { ">=" };
            format!("{name} {symbol} {}", text(&computed.of(value), &[]))
        };
        return computed.bounds.iter().map(bound).collect::<Vec<String>>().join(" AND ");
    }
    let interval = |one: &IntegerRange| match one.last - one.first {
        0 => format!("{name} = {}", one.first),
        _ => format!("{name} BETWEEN {} AND {}", one.first, one.last),
    };
    match computed.planned.as_slice() {
        [] => format!("{name} = NULL"),
        [one] => interval(one),
        several => {
            let several: Vec<String> = several.iter().map(interval).collect();
            format!("({})", several.join(" OR "))
        }
    }
}

fn region_aggregate_step(node: &RegionAggregateNode, regions: RegionCounts<'_>) -> NodeDescription {
    let names = read_names(&node.read, &layout_names(&node.table, &node.path));
    let (line, output) = aggregate_text(&node.group_by, &node.aggregates, &names);
    let place = place_text(&node.table, &node.path, regions);
    let scan = scan_in_regions((&node.table, &node.alias), &node.path, &node.filter, names);
    NodeDescription {
        line: format!("Aggregate: {line}, {place}"),
        names: output,
        inputs: vec![scan],
        address: None,
        relation: None,
    }
}

fn region_top_n_step(node: &RegionTopNNode, regions: RegionCounts<'_>) -> NodeDescription {
    let names = read_names(&node.read, &layout_names(&node.table, &node.path));
    let (limit, keys) = (text(&node.goal.limit, &[]), sort_text(&node.keys, &names));
    let place = place_text(&node.table, &node.path, regions);
    let output = node.output.iter().map(|&position| names[position].clone()).collect();
    let scan = scan_in_regions((&node.table, &node.alias), &node.path, &node.filter, names);
    let line = format!("Sort: first {limit} by {keys}, {place}");
    NodeDescription { line, names: output, inputs: vec![scan], address: None, relation: None }
}

/// Returns the text about the regions of a path.
fn place_text(table: &Table, path: &AccessPath, regions: RegionCounts<'_>) -> String {
    let count = regions(path.store_table).unwrap_or_else(|| path.region_count(table));
    match path.shape {
        PathShape::Full => format!("in {count} region{}", plural(count)),
        PathShape::Points(_) | PathShape::Ranges(_) => "in the regions".to_owned(),
    }
}

/// Describes the rows that an endpoint reads.
fn scan_in_regions(
    (table, alias): (&Table, &str),
    path: &AccessPath,
    filter: &Option<Expr>,
    names: Vec<String>,
) -> NodeDescription {
    let mut line = format!("Scan: {}", table.name);
    if alias != table.name {
        line.push_str(&format!(" {alias}"));
    }
    line.push_str(&path_text(table, path, false));
    if let Some(filter) = filter {
        line.push_str(&format!(", filter: {}", text(filter, &names)));
    }
    line.push_str(", in the regions");
    NodeDescription {
        line,
        names,
        inputs: Vec::new(),
        address: None,
        relation: NodeRelation::read(table, alias, path),
    }
}
