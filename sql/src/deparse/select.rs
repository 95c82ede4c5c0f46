//! Output of SELECT and VALUES as SQL text.
//!
//! Source: PostgreSQL's `get_basic_select_query`, `get_target_list`, `get_rule_sortgroupclause`,
//! `get_rule_groupingset`, `get_rule_windowspec` (ruleutils.c).

use types::function::quote_ident;
use types::{DataType, SqlType};

use crate::ast::{
    Distinct, Exclusion, Expr, FrameBoundClause, FrameClause, FrameUnits, GroupItem, Over, Select,
    SelectItem, WindowClause,
};
use crate::binder::output_name;
use crate::deparse::expressions::TypeLabel;
use crate::deparse::node::{DeparseNode, offset_of};
use crate::deparse::{ColumnNaming, STEP, SelectTarget, SqlWriter};

/// Returns the entries of a select list; `fields` returns the fields of a row that is expanded.
pub(super) fn targets_of<'a>(
    items: &'a [SelectItem],
    fields: &dyn Fn(&Expr) -> Vec<String>,
) -> Vec<SelectTarget<'a>> {
    let mut targets = Vec::with_capacity(items.len());
    for item in items {
        match item {
            SelectItem::Expr { expr, alias } => {
                let name =
                    alias.as_ref().map_or_else(|| output_name(expr), |one| one.value.clone());
                targets.push(SelectTarget { item, field: None, name });
            }
            SelectItem::Fields { row, .. } => {
                let field = |name: String| SelectTarget { item, field: Some(name.clone()), name };
                targets.extend(fields(row).into_iter().map(field));
            }
            SelectItem::Wildcard { .. } => {}
        }
    }
    targets
}

impl<'a> SqlWriter<'a> {
    /// Writes a SELECT up to its windows; its select list remains available for ORDER BY.
    pub(super) fn select(&mut self, select: &'a Select, naming: ColumnNaming<'_>) {
        if self.layout.wrap.is_some() {
            self.indent += STEP;
            self.push(" ");
        }
        self.targets = targets_of(&select.items, &|row| self.fields_of(row));
        let targets = self.targets.clone();
        self.push("SELECT");
        for hint in &select.hints {
            self.push(&format!(
                " /*+ {}({}) */",
                hint.name.to_uppercase(),
                hint.arguments.join(" ")
            ));
        }
        match &select.distinct {
            None => {}
            Some(Distinct::All) => self.push(" DISTINCT"),
            Some(Distinct::On(keys)) => {
                self.push(" DISTINCT ON (");
                self.list(keys, |writer, key| writer.sort_key(key, &targets, true));
                self.push(")");
            }
        }
        self.target_list(&targets, naming);
        if !select.from.is_empty() {
            self.write_from(&select.from);
        }
        if let Some(selection) = &select.selection {
            self.keyword(" WHERE ", -STEP, STEP, 1);
            let node = self.value(selection, None);
            self.write(&node, false);
        }
        if !select.group_by.is_empty() {
            self.keyword(" GROUP BY ", -STEP, STEP, 1);
            self.push(if select.distinct_groups { "DISTINCT " } else { "" });
            self.group_by(&select.group_by, &targets);
        }
        if let Some(having) = &select.having {
            self.keyword(" HAVING ", -STEP, STEP, 0);
            let node = self.value(having, None);
            self.write(&node, false);
        }
        for (at, named) in select.windows.iter().enumerate() {
            match at {
                0 => self.keyword(" WINDOW ", -STEP, STEP, 1),
                _ => self.push(", "),
            }
            self.name(&named.name.value);
            self.push(" AS ");
            self.window(&named.window);
        }
        self.targets = targets;
    }

    fn fields_of(&self, row: &Expr) -> Vec<String> {
        match self.type_of(row).base {
            DataType::Composite(of) => {
                of.attributes().iter().map(|one| one.name.to_string()).collect()
            }
            _ => {
                let Expr::Call(call) = row else { return Vec::new() };
                let note = self.notes.calls.get(&call.name.position());
                let columns = note.map(|note| &note.function.columns);
                columns.into_iter().flatten().map(|(name, _)| name.clone()).collect()
            }
        }
    }

    /// Returns the value of an entry of the select list.
    fn target(&mut self, target: &SelectTarget<'a>) -> DeparseNode<'a> {
        match (target.item, &target.field) {
            (SelectItem::Expr { expr, .. }, _) => self.value(expr, None),
            (SelectItem::Fields { row, .. }, Some(name)) => {
                let operand = Box::new(self.value(row, None));
                DeparseNode::Field { operand, name: name.clone() }
            }
            _ => DeparseNode::Word { text: String::new(), row_type: None },
        }
    }

    fn target_list(&mut self, targets: &[SelectTarget<'a>], naming: ColumnNaming<'_>) {
        let mut apart = false;
        for (at, target) in targets.iter().enumerate() {
            self.push(if at > 0 { ", " } else { " " });
            let name = naming.names.and_then(|names| names.get(at)).unwrap_or(&target.name);
            let text = self.aside(|writer| writer.target_text(target, name, naming.is_seen));
            self.wrapped(&text, apart, at == 0);
            apart = text.trim_start_matches('\n').contains('\n');
        }
    }

    fn target_text(&mut self, target: &SelectTarget<'a>, name: &str, is_seen: bool) {
        let node = self.target(target);
        self.write_top(&node, true);
        let own = match &node {
            DeparseNode::Word { row_type: Some(_), .. } => None,
            DeparseNode::Word { text, .. } => {
                let last = text.rfind('.').map_or(text.as_str(), |at| &text[at + 1..]);
                Some(last.to_owned())
            }
            _ => Some("\"?column?\"".to_owned()).filter(|_| !is_seen),
        };
        let name = quote_ident(name);
        if own.as_ref() != Some(&name) {
            self.push(&format!(" AS {name}"));
        }
    }

    /// Writes VALUES.
    pub(super) fn values_query(&mut self, rows: &'a [Vec<Expr>], naming: ColumnNaming<'_>) {
        if self.layout.wrap.is_some() {
            self.indent += STEP;
            self.push(" ");
        }
        let plain = |(at, name): (usize, &String)| *name == format!("column{}", at + 1);
        let renamed = naming.names.filter(|names| !names.iter().enumerate().all(plain));
        let Some(names) = renamed else { return self.rows(rows) };
        self.push("SELECT ");
        let mut first = true;
        for (at, name) in names.iter().enumerate() {
            self.push(if first { "" } else { ", " });
            let own = format!("column{}", at + 1);
            let alias =
                if *name == own { String::new() } else { format!(" AS {}", quote_ident(name)) };
            self.wrapped(&format!("\"*VALUES*\".{own}{alias}"), false, first);
            first = false;
        }
        self.keyword(" FROM ", -STEP, STEP, 2);
        self.push("(");
        self.rows(rows);
        self.push(") \"*VALUES*\"");
        let columns: Vec<String> = (1..=names.len()).map(|at| format!("column{at}")).collect();
        self.push(&format!("({})", columns.join(", ")));
    }

    fn rows(&mut self, rows: &'a [Vec<Expr>]) {
        self.push("VALUES ");
        self.list(rows, |writer, row| {
            writer.push("(");
            let row = writer.values(row, None);
            for (at, value) in row.iter().enumerate() {
                writer.push(if at > 0 { "," } else { "" });
                writer.write_top(value, false);
            }
            writer.push(")");
        });
    }

    // ---- keys ----

    /// Writes a sort or grouping key: an entry of the select list, which the number or name may
    /// refer to, or any other expression. `outputs_first`: a name refers to an entry rather than
    /// to a column.
    pub(super) fn sort_key(
        &mut self,
        expr: &'a Expr,
        targets: &[SelectTarget<'a>],
        outputs_first: bool,
    ) {
        let found = match expr {
            Expr::Number { text, .. } if !targets.is_empty() => {
                text.parse::<usize>().ok().and_then(|number| targets.get(number.wrapping_sub(1)))
            }
            Expr::Column(parts) if parts.len() == 1 => {
                let position = parts[0].position;
                let is_column = self.notes.columns.contains_key(&position);
                let by_name = targets.iter().find(|target| target.name == parts[0].value);
                by_name.filter(|_| outputs_first || !is_column)
            }
            _ => None,
        };
        let node = match found {
            Some(target) => self.target(target),
            None => self.value(expr, None),
        };
        match &node {
            // A bare number would refer to an entry.
            DeparseNode::Constant { value, sql_type } => {
                self.constant(value.as_deref(), sql_type, TypeLabel::Always);
            }
            DeparseNode::Word { .. } => self.write(&node, true),
            _ => {
                let is_call = matches!(node, DeparseNode::Call(_) | DeparseNode::Syntax { .. })
                    || matches!(node, DeparseNode::Cast { by_function: true, .. });
                let enclosed = self.layout.pretty || is_call;
                self.push(if enclosed { "(" } else { "" });
                self.write(&node, true);
                self.push(if enclosed { ")" } else { "" });
            }
        }
    }

    fn group_by(&mut self, items: &'a [GroupItem], targets: &[SelectTarget<'a>]) {
        let has_sets = items.iter().any(|item| {
            !matches!(item, GroupItem::Expr(_))
                && !matches!(item, GroupItem::List(list) if !list.is_empty())
        });
        if !has_sets {
            let keys: Vec<&'a Expr> = items.iter().flat_map(keys_of).collect();
            return self.list(keys, |writer, key| writer.sort_key(key, targets, false));
        }
        self.list(items, |writer, item| writer.grouping_set(item, targets, true));
    }

    fn grouping_set(&mut self, item: &'a GroupItem, targets: &[SelectTarget<'a>], bare: bool) {
        match item {
            GroupItem::Expr(_) | GroupItem::List(_) => {
                let keys = keys_of(item);
                self.key_list(keys, targets, bare);
            }
            GroupItem::Rollup(units) | GroupItem::Cube { units, .. } => {
                let is_cube = matches!(item, GroupItem::Cube { .. });
                self.push(if is_cube { "CUBE(" } else { "ROLLUP(" });
                self.list(units, |writer, unit| {
                    writer.key_list(unit.iter().collect(), targets, true);
                });
                self.push(")");
            }
            GroupItem::Sets(items) => {
                self.push("GROUPING SETS (");
                self.list(items, |writer, item| writer.grouping_set(item, targets, false));
                self.push(")");
            }
        }
    }

    fn key_list(&mut self, keys: Vec<&'a Expr>, targets: &[SelectTarget<'a>], bare: bool) {
        let enclosed = !bare || keys.len() != 1;
        self.push(if enclosed { "(" } else { "" });
        self.list(keys, |writer, key| writer.sort_key(key, targets, false));
        self.push(if enclosed { ")" } else { "" });
    }

    // ---- windows ----

    /// Writes the window of OVER.
    pub(super) fn over(&mut self, over: &'a Over) {
        match over {
            Over::Name(name) => self.name(&name.value),
            Over::Window(window) => self.window(window),
        }
    }

    fn window(&mut self, window: &'a WindowClause) {
        self.push("(");
        let mut space = "";
        if let Some(base) = &window.base {
            self.name(&base.value);
            space = " ";
        }
        if !window.partition_by.is_empty() {
            self.push(&format!("{space}PARTITION BY "));
            self.list(&window.partition_by, |writer, key| writer.sort_key(key, &[], false));
            space = " ";
        }
        if !window.order_by.is_empty() {
            self.push(&format!("{space}ORDER BY "));
            self.order_by(&window.order_by, &[]);
            space = " ";
        }
        if let Some(frame) = &window.frame {
            self.push(space);
            self.frame(frame);
        }
        self.push(")");
    }

    fn frame(&mut self, frame: &'a FrameClause) {
        self.push(match frame.units {
            FrameUnits::Rows => "ROWS ",
            FrameUnits::Range => "RANGE ",
            FrameUnits::Groups => "GROUPS ",
        });
        let wanted = match frame.units {
            FrameUnits::Range => None,
            _ => Some(SqlType::from(DataType::Int8)),
        };
        if frame.is_between {
            self.push("BETWEEN ");
        }
        self.bound(&frame.start, wanted.clone());
        if frame.is_between {
            self.push(" AND ");
            self.bound(&frame.end, wanted);
        }
        self.push(match frame.exclusion {
            Exclusion::NoOthers => "",
            Exclusion::CurrentRow => " EXCLUDE CURRENT ROW",
            Exclusion::Group => " EXCLUDE GROUP",
            Exclusion::Ties => " EXCLUDE TIES",
        });
    }

    fn bound(&mut self, bound: &'a FrameBoundClause, wanted: Option<SqlType>) {
        if let Some(offset) = offset_of(bound) {
            let node = self.value(offset, wanted);
            self.write(&node, false);
        }
        self.push(match bound {
            FrameBoundClause::UnboundedPreceding => "UNBOUNDED PRECEDING",
            FrameBoundClause::Preceding(_) => " PRECEDING",
            FrameBoundClause::CurrentRow => "CURRENT ROW",
            FrameBoundClause::Following(_) => " FOLLOWING",
            FrameBoundClause::UnboundedFollowing => "UNBOUNDED FOLLOWING",
        });
    }
}

fn keys_of(item: &GroupItem) -> Vec<&Expr> {
    match item {
        GroupItem::Expr(expr) => vec![expr],
        GroupItem::List(list) => list.iter().collect(),
        _ => Vec::new(),
    }
}
