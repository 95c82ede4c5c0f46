//! Text form of logical plans: one line per node, with its input below; `#n` is column n of the
//! input.

use std::fmt::Write as _;

use sql::Error;
use sql::binder::BoundStatement;
use sql::logical::{
    Apply, ApplyKind, Assignment, BoundPlan, Insert, LockedTable, LockedTables, Logical,
    MergeAction, OnConflict, OutputColumn, Returning, SetCall, SetFunction, SortKey,
    TIMESTAMP_COLUMN, TableScan, WindowFunction, WindowKind,
};
use types::SqlType;
use types::aggregate::Aggregate;
use types::expr::Expr;
use types::function::sets;

/// Returns a statement as text.
pub(super) fn print(statement: &BoundStatement) -> String {
    let mut out = String::new();
    print_bound(&statement.bound, &mut out);
    if statement.parameter_count > 0 {
        let types: Vec<&str> =
            statement.parameter_types.iter().map(|one| one.base.sql_name()).collect();
        let _ = writeln!(
            out,
            "parameters: {} of {}",
            if types.is_empty() { "none".to_owned() } else { types.join(", ") },
            statement.parameter_count
        );
    }
    out
}

fn print_bound(bound: &BoundPlan, out: &mut String) {
    match bound {
        BoundPlan::Steps(steps) => {
            for step in &steps.before {
                let _ = writeln!(out, "step {} {}:", step.id, step.name);
                print_bound(&step.bound, out);
            }
            print_bound(&steps.last, out);
        }
        BoundPlan::Merge(merge) => {
            let _ = writeln!(out, "merge {}", merge.table.name);
            for clause in &merge.clauses {
                let condition = clause.condition.as_ref().map_or("-".to_owned(), text);
                let _ = writeln!(
                    out,
                    "matched {}: {condition} {}",
                    clause.matched,
                    action(&clause.action)
                );
            }
            node(&merge.source, 1, out);
        }
        BoundPlan::Query(query) => {
            let _ = writeln!(out, "columns: {}", columns(&query.columns));
            node(&query.plan, 0, out);
        }
        BoundPlan::Insert(insert) => print_insert(insert, out),
        BoundPlan::Update(update) => {
            let _ =
                writeln!(out, "update {}: {}", update.table.name, assigned(&update.assignments));
            print_recheck(update.recheck.as_ref(), out);
            print_returning(update.returning.as_ref(), out);
            node(&update.source, 1, out);
        }
        BoundPlan::Delete(delete) => {
            let _ = writeln!(out, "delete {}", delete.table.name);
            print_recheck(delete.recheck.as_ref(), out);
            print_returning(delete.returning.as_ref(), out);
            node(&delete.source, 1, out);
        }
    }
}

fn action(action: &MergeAction) -> String {
    match action {
        MergeAction::Nothing => "nothing".to_owned(),
        MergeAction::Delete => "delete".to_owned(),
        MergeAction::Update(assignments) => format!("set {}", assigned(assignments)),
        MergeAction::Insert(values) => format!("insert ({})", texts(values)),
    }
}

/// Returns an error as text.
pub(super) fn error(error: &Error) -> String {
    let mut out = format!("error {}", error.sqlstate);
    if let Some(position) = error.position {
        let _ = write!(out, " @{position}");
    }
    let _ = write!(out, ": {}", error.message);
    if let Some(detail) = &error.detail {
        let _ = write!(out, "\ndetail: {detail}");
    }
    if let Some(hint) = &error.hint {
        let _ = write!(out, "\nhint: {hint}");
    }
    out + "\n"
}

fn print_insert(insert: &Insert, out: &mut String) {
    let _ = writeln!(out, "insert {} {:?}", insert.table.name, insert.named_columns);
    match &insert.on_conflict {
        OnConflict::Update { target, assignments, predicate, inserts } => {
            let only = if *inserts { "" } else { ", without insert" };
            let _ = write!(out, "on conflict {target:?}{only}: {}", assigned(assignments));
            if let Some(predicate) = predicate {
                let _ = write!(out, " where {}", text(predicate));
            }
            out.push('\n');
        }
        OnConflict::Error => {}
        other => {
            let _ = writeln!(out, "on conflict {other:?}");
        }
    }
    print_returning(insert.returning.as_ref(), out);
    node(&insert.source, 1, out);
}

fn print_recheck(recheck: Option<&Expr>, out: &mut String) {
    if let Some(recheck) = recheck {
        let _ = writeln!(out, "recheck: {}", text(recheck));
    }
}

fn print_returning(returning: Option<&Returning>, out: &mut String) {
    if let Some(returning) = returning {
        let list = texts(&returning.expressions);
        let _ = writeln!(out, "returning: {list} as {}", columns(&returning.columns));
    }
}

fn assigned(assignments: &[Assignment]) -> String {
    let one = |one: &Assignment| format!("#{} = {}", one.column, text(&one.value));
    assignments.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn type_text(sql_type: &SqlType) -> String {
    let name = sql_type.base.sql_name();
    if sql_type.modifier == -1 { name.to_owned() } else { format!("{name}/{}", sql_type.modifier) }
}

fn columns(columns: &[OutputColumn]) -> String {
    let column = |column: &OutputColumn| {
        let origin = column.origin.map_or(String::new(), |(_, index)| format!(" <{index}>"));
        format!("{} {}{origin}", column.name, type_text(&column.sql_type))
    };
    columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

fn text(expr: &Expr) -> String {
    expr.describe(&|index| format!("#{index}"))
}

fn texts(list: &[Expr]) -> String {
    list.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[expect(clippy::too_many_lines, reason = "a flat match over the kinds of steps")]
fn node(plan: &Logical, depth: usize, out: &mut String) {
    out.push_str(&"  ".repeat(depth));
    let line = match plan {
        Logical::Scan(scan) => scan_text(scan),
        Logical::SystemRows(rows) => format!("system {}({})", rows.name, texts(&rows.arguments)),
        Logical::Constants(constants) => format!("{} constant rows", constants.rows.row_count),
        Logical::Values { rows, .. } => {
            let row = |row: &Vec<Expr>| format!("({})", texts(row));
            format!("values {}", rows.iter().map(row).collect::<Vec<_>>().join(", "))
        }
        Logical::Filter { predicate, .. } => format!("filter {}", text(predicate)),
        Logical::Barrier { .. } => "barrier".to_owned(),
        Logical::Project { expressions, .. } => format!("project {}", texts(expressions)),
        Logical::Join(join) => format!("join {:?} on {}", join.kind, text(&join.on)),
        Logical::Apply(apply) => apply_text(apply),
        Logical::Aggregate { group_by, aggregates, .. } => {
            let list: Vec<String> = aggregates.iter().map(aggregate_text).collect();
            format!("aggregate [{}] by [{}]", list.join(", "), texts(group_by))
        }
        Logical::ProjectSet(sets) => {
            let call = |function: &SetFunction| match &function.call {
                SetCall::Set { function, arguments } => {
                    format!("{}({})", sets::signature(*function).name, texts(arguments))
                }
                SetCall::Value(value) => text(value),
                SetCall::Routine { routine, arguments, .. } => {
                    let arguments: Vec<String> = arguments.iter().map(text).collect();
                    format!("{}({})", routine.name, arguments.join(", "))
                }
            };
            let calls: Vec<String> = sets.functions.iter().map(call).collect();
            let ordinality = if sets.ordinality { " with ordinality" } else { "" };
            format!("project set {}{ordinality}", calls.join(", "))
        }
        Logical::GroupingSets(grouping) => {
            let list: Vec<String> = grouping.aggregates.iter().map(aggregate_text).collect();
            let by = texts(&grouping.group_by);
            let (sets, groupings) = (&grouping.sets, &grouping.grouping_calls);
            format!("grouping sets [{}] by [{by}] {sets:?} {groupings:?}", list.join(", "))
        }
        Logical::Sort { keys, .. } => {
            format!("sort {}", keys.iter().map(key_text).collect::<Vec<_>>().join(", "))
        }
        Logical::LockRows(lock) => lock_text(&lock.locked_tables),
        Logical::Limit { limit, offset, .. } => {
            let part = |part: &Option<Expr>| part.as_ref().map_or("-".to_owned(), text);
            format!("limit {} offset {}", part(limit), part(offset))
        }
        Logical::Distinct { on, .. } if on.is_empty() => "distinct".to_owned(),
        Logical::Distinct { on, .. } => format!("distinct on {}", texts(on)),
        Logical::SetOperation(operation) => {
            let all = if operation.all { " all" } else { "" };
            format!("{:?}{all}", operation.kind).to_lowercase()
        }
        Logical::Window(window) => {
            let calls: Vec<String> = window.functions.iter().map(window_text).collect();
            let keys = window.order_by.iter().map(key_text).collect::<Vec<_>>().join(", ");
            let by = texts(&window.partition_by);
            format!("window [{}] partition [{by}] order [{keys}]", calls.join(", "))
        }
        Logical::With(with) => format!("with {}", with.name),
        Logical::CteScan(scan) if scan.is_work_table => format!("work table {}", scan.name),
        Logical::CteScan(scan) => format!("cte scan {}", scan.name),
        Logical::RecursiveUnion(union) => {
            let all = if union.all { " all" } else { "" };
            format!("recursive union{all} {}", union.name)
        }
        Logical::Append { .. } => "append".to_owned(),
    };
    out.push_str(line.trim_end());
    out.push('\n');
    for input in inputs(plan) {
        node(input, depth + 1, out);
    }
}

fn inputs(plan: &Logical) -> Vec<&Logical> {
    match plan {
        Logical::Scan(_)
        | Logical::SystemRows(_)
        | Logical::Values { .. }
        | Logical::Constants(_) => Vec::new(),
        Logical::Filter { input, .. }
        | Logical::Barrier { input }
        | Logical::Project { input, .. }
        | Logical::Aggregate { input, .. }
        | Logical::Sort { input, .. }
        | Logical::Limit { input, .. }
        | Logical::Distinct { input, .. } => vec![input],
        Logical::LockRows(lock) => vec![&lock.input, &lock.re_evaluation],
        Logical::SetOperation(operation) => vec![&operation.left, &operation.right],
        Logical::ProjectSet(sets) => vec![&sets.input],
        Logical::GroupingSets(grouping) => vec![&grouping.input],
        Logical::Window(window) => vec![&window.input],
        Logical::With(with) => vec![&with.query, &with.body],
        Logical::CteScan(_) => Vec::new(),
        Logical::RecursiveUnion(union) => vec![&union.start, &union.step],
        Logical::Join(join) => vec![&join.left, &join.right],
        Logical::Apply(apply) => vec![&apply.input, &apply.subquery],
        Logical::Append { inputs } => inputs.iter().collect(),
    }
}

fn scan_text(scan: &TableScan) -> String {
    let name = |index: &usize| match *index {
        TIMESTAMP_COLUMN => "_timestamp".to_owned(),
        index => scan.table.columns[index].name.clone(),
    };
    let names: Vec<String> = scan.columns.iter().map(name).collect();
    let mut line = format!("scan {} ({})", scan.alias, names.join(", "));
    if let Some(system_time) = &scan.system_time {
        let _ = write!(line, " for {}", system_time.text(text));
    }
    if let Some(hint) = &scan.index_hint {
        let _ = write!(line, " indexes {hint:?}");
    }
    line
}

fn lock_text(held: &LockedTables) -> String {
    let pair = |(parameter, column): &(usize, usize)| format!("${} = #{column}", parameter + 1);
    let pairs = |list: &[(usize, usize)]| list.iter().map(pair).collect::<Vec<_>>().join(", ");
    let table = |locked: &LockedTable| {
        let LockedTable { alias, lock, key, newest, .. } = locked;
        format!("{alias} {lock:?} key {key:?} newest [{}]", pairs(newest))
    };
    let tables: Vec<String> = held.tables.iter().map(table).collect();
    format!("lock rows {}, copies [{}]", tables.join(", "), pairs(&held.copies))
}

fn apply_text(apply: &Apply) -> String {
    let kind = match &apply.kind {
        ApplyKind::Scalar => "scalar".to_owned(),
        ApplyKind::Array { data_type } => format!("array {}", data_type.sql_name()),
        ApplyKind::Exists => "exists".to_owned(),
        ApplyKind::Any { comparison } => format!("any {}", text(comparison)),
        ApplyKind::All { comparison } => format!("all {}", text(comparison)),
        ApplyKind::Rows { on, outer } => {
            format!("rows on {}{}", text(on), if *outer { ", outer" } else { "" })
        }
    };
    let binding = |(parameter, column): &(usize, usize)| format!("${} = #{column}", parameter + 1);
    let bindings: Vec<String> = apply.bindings.iter().map(binding).collect();
    let guard = apply.guard.as_ref().map(|guard| format!(" if {}", text(guard)));
    format!("apply {kind} [{}]{}", bindings.join(", "), guard.unwrap_or_default())
}

fn window_text(function: &WindowFunction) -> String {
    match &function.kind {
        WindowKind::Aggregate(aggregate) => aggregate_text(aggregate),
        kind => format!("{kind:?}({})", texts(&function.arguments)),
    }
}

fn aggregate_text(aggregate: &Aggregate) -> String {
    let arguments: Vec<String> = aggregate.arguments.iter().map(text).collect();
    let argument = if arguments.is_empty() { "*".to_owned() } else { arguments.join(", ") };
    let distinct = if aggregate.distinct { "distinct " } else { "" };
    let filter = aggregate.filter.as_ref();
    let filter = filter.map_or(String::new(), |filter| format!(" filter {}", text(filter)));
    let name = aggregate.kind.name();
    format!("{name}({distinct}{argument}){filter} {}", aggregate.data_type.sql_name())
}

fn key_text(key: &SortKey) -> String {
    let direction = if key.descending { " desc" } else { "" };
    let nulls = if key.nulls_first == key.descending { "" } else { " nulls moved" };
    format!("{}{direction}{nulls}", text(&key.expression))
}
