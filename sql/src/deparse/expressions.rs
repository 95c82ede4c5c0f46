//! Output of nodes as SQL text.
//!
//! Source: PostgreSQL's `get_rule_expr` and related functions (ruleutils.c).

use types::DataType;
use types::SqlType;
use types::function::quote_ident;

use crate::deparse::node::{Bounds, Call, DeparseNode, SubqueryKind, SyntaxPart};
use crate::deparse::{ColumnNaming, SqlWriter};

/// The rule for the type label of a constant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeLabel {
    Never,
    AsNeeded,
    Always,
}

impl<'a> SqlWriter<'a> {
    /// Writes a node; implicit casts only if `implicit`.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of node")]
    pub(super) fn write(&mut self, node: &DeparseNode<'a>, implicit: bool) {
        match node {
            DeparseNode::Constant { value, sql_type } => {
                self.constant(value.as_deref(), sql_type, TypeLabel::AsNeeded);
            }
            DeparseNode::Word { text, .. } => self.push(text),
            DeparseNode::Operator { symbol, operands } => {
                self.grouped(|writer| match &operands[..] {
                    [left, right] => {
                        writer.operand(left, true, node);
                        writer.push(&format!(" {symbol} "));
                        writer.operand(right, true, node);
                    }
                    operands => {
                        writer.push(&format!("{symbol} "));
                        operands.iter().for_each(|one| writer.operand(one, true, node));
                    }
                })
            }
            DeparseNode::Call(call) => self.write_call(call),
            DeparseNode::Syntax { parts } => {
                for part in parts {
                    match part {
                        SyntaxPart::Words(words) => self.push(words),
                        SyntaxPart::Keyword(word) => self.push(word),
                        SyntaxPart::Value(value) => self.write(value, false),
                        SyntaxPart::Operand(value) => self.in_syntax(value, node),
                    }
                }
            }
            DeparseNode::Cast { operand, implicit: true, .. } if !implicit => {
                self.operand(operand, false, node);
            }
            DeparseNode::Cast { operand, to, .. } => self.write_cast(operand, to, node),
            DeparseNode::And(operands) => self.joined(operands, " AND ", node),
            DeparseNode::Or(operands) => self.joined(operands, " OR ", node),
            DeparseNode::Not(operand) => self.grouped(|writer| {
                writer.push("NOT ");
                writer.operand(operand, false, node);
            }),
            DeparseNode::Test { operand, words, of_null } => self.grouped(|writer| {
                writer.operand(operand, *of_null, node);
                writer.push(&format!(" {words}"));
            }),
            DeparseNode::Distinct(left, right) => self.grouped(|writer| {
                writer.operand(left, true, node);
                writer.push(" IS DISTINCT FROM ");
                writer.operand(right, true, node);
            }),
            DeparseNode::NullIf(left, right) => {
                self.push("NULLIF(");
                self.write(left, true);
                self.push(", ");
                self.write(right, true);
                self.push(")");
            }
            DeparseNode::OfArray { left, symbol, word, right, array } => self.grouped(|writer| {
                writer.operand(left, true, node);
                writer.push(&format!(" {symbol} {word} ("));
                writer.operand(right, true, node);
                if let (Some(array), true) = (array, right.is_scalar_query()) {
                    // Without the cast, the rows of the query would be compared.
                    let shown = writer.type_name(array);
                    writer.push(&format!("::{shown}"));
                }
                writer.push(")");
            }),
            DeparseNode::CompareRows { symbol, left, right } => {
                self.push("(ROW(");
                self.list(left, |writer, one| writer.write_top(one, true));
                self.push(&format!(") {symbol} ROW("));
                self.list(right, |writer, one| writer.write_top(one, true));
                self.push("))");
            }
            DeparseNode::Row { fields, to } => {
                self.push("ROW(");
                self.list(fields, |writer, one| writer.write_top(one, true));
                self.push(")");
                if let Some(to) = to {
                    let shown = self.type_name(to);
                    self.push(&format!("::{shown}"));
                }
            }
            DeparseNode::Array { elements, sql_type } => {
                self.push("ARRAY[");
                self.list(elements, |writer, one| writer.write(one, true));
                self.push("]");
                if elements.is_empty() {
                    let shown = self.type_name(sql_type);
                    self.push(&format!("::{shown}"));
                }
            }
            DeparseNode::Subscript { operand, bounds } => {
                let bare =
                    matches!(**operand, DeparseNode::Word { .. } | DeparseNode::Field { .. });
                self.write_in(operand, !bare);
                bounds.iter().for_each(|one| self.bounds(one));
            }
            DeparseNode::Field { operand, name } => {
                let bare =
                    matches!(**operand, DeparseNode::Subscript { .. } | DeparseNode::Field { .. });
                self.write_in(operand, !bare);
                self.push(".");
                self.name(name);
            }
            DeparseNode::Case { operand, branches, otherwise } => {
                self.write_case(operand.as_deref(), branches, otherwise);
            }
            DeparseNode::Listed { word, operands } => {
                self.push(&format!("{word}("));
                self.list(operands, |writer, one| writer.write(one, true));
                self.push(")");
            }
            DeparseNode::SqlValue(word) => self.push(word),
            DeparseNode::Subquery { kind, query, .. } => {
                self.push(match kind {
                    SubqueryKind::Scalar => "(",
                    SubqueryKind::Exists => "(EXISTS (",
                    SubqueryKind::Array => "ARRAY(",
                });
                self.subquery(query, ColumnNaming::UNSEEN);
                self.push(if *kind == SubqueryKind::Exists { "))" } else { ")" });
            }
            DeparseNode::Compared { left, is_row, words, query } => {
                self.push(if *is_row { "((" } else { "(" });
                self.list(left, |writer, one| writer.write(one, true));
                self.push(if *is_row { ")" } else { "" });
                self.push(&format!(" {words} ("));
                self.subquery(query, ColumnNaming::UNSEEN);
                self.push("))");
            }
            DeparseNode::Collate { operand, name } => self.grouped(|writer| {
                writer.operand(operand, implicit, node);
                writer.push(&format!(" COLLATE {}", quote_ident(name)));
            }),
        }
    }

    /// Writes an expression, in parentheses unless the layout is pretty.
    fn grouped(&mut self, write: impl FnOnce(&mut Self)) {
        let pretty = self.layout.pretty;
        self.push(if pretty { "" } else { "(" });
        write(self);
        self.push(if pretty { "" } else { ")" });
    }

    /// Writes an operand; in pretty layout with parentheses only if necessary.
    fn operand(&mut self, node: &DeparseNode<'a>, implicit: bool, parent: &DeparseNode<'a>) {
        let needed = self.layout.pretty && !node.is_simple(parent);
        self.push(if needed { "(" } else { "" });
        self.write(node, implicit);
        self.push(if needed { ")" } else { "" });
    }

    fn in_syntax(&mut self, node: &DeparseNode<'a>, parent: &DeparseNode<'a>) {
        self.operand(node, false, parent);
    }

    fn write_in(&mut self, node: &DeparseNode<'a>, parentheses: bool) {
        self.push(if parentheses { "(" } else { "" });
        self.write(node, true);
        self.push(if parentheses { ")" } else { "" });
    }

    fn joined(&mut self, operands: &[DeparseNode<'a>], word: &str, node: &DeparseNode<'a>) {
        self.grouped(|writer| {
            for (at, operand) in operands.iter().enumerate() {
                writer.push(if at > 0 { word } else { "" });
                writer.operand(operand, false, node);
            }
        });
    }

    fn bounds(&mut self, bounds: &Bounds<'a>) {
        self.push("[");
        match bounds {
            Bounds::Index(index) => self.write(index, false),
            Bounds::Slice(lower, upper) => {
                lower.iter().for_each(|one| self.write(one, false));
                self.push(":");
                upper.iter().for_each(|one| self.write(one, false));
            }
        }
        self.push("]");
    }

    fn write_cast(&mut self, operand: &DeparseNode<'a>, to: &SqlType, node: &DeparseNode<'a>) {
        match operand {
            // The cast's modifier also labels the type of a constant.
            DeparseNode::Constant { value, sql_type }
                if sql_type.base == to.base
                    && sql_type.modifier < 0
                    && to.domain.is_none()
                    && value.is_some() =>
            {
                self.constant(value.as_deref(), sql_type, TypeLabel::Never);
            }
            operand => self.grouped(|writer| writer.operand(operand, false, node)),
        }
        let shown = self.type_name(to);
        self.push(&format!("::{shown}"));
    }

    /// Writes a constant.
    pub(super) fn constant(&mut self, value: Option<&str>, sql_type: &SqlType, label: TypeLabel) {
        let mut labelled = true;
        match value {
            None => self.push("NULL"),
            Some(value) => {
                let digits = value.starts_with(|c: char| c.is_ascii_digit());
                let bare = match sql_type.base {
                    DataType::Int4 => digits,
                    DataType::Numeric => digits && value.contains(['e', 'E', '.']),
                    DataType::Bool => true,
                    _ => false,
                };
                labelled = match sql_type.base {
                    DataType::Bool | DataType::Unknown => false,
                    DataType::Int4 => !bare,
                    DataType::Numeric => !bare || sql_type.modifier >= 0,
                    _ => true,
                };
                match (sql_type.base.clone(), bare) {
                    (DataType::Bool, _) => {
                        self.push(if value.starts_with('t') { "true" } else { "false" });
                    }
                    (_, true) => self.push(value),
                    (_, false) => self.push(&format!("'{}'", value.replace('\'', "''"))),
                }
            }
        }
        if label == TypeLabel::Always || (label == TypeLabel::AsNeeded && labelled) {
            let shown = self.type_name(sql_type);
            self.push(&format!("::{shown}"));
        }
    }

    fn write_case(
        &mut self,
        operand: Option<&DeparseNode<'a>>,
        branches: &[(DeparseNode<'a>, DeparseNode<'a>)],
        otherwise: &DeparseNode<'a>,
    ) {
        let one_line = self.layout.wrap.is_none();
        let space = if one_line { " " } else { "" };
        self.keyword("CASE", 0, 4, 0);
        if let Some(operand) = operand {
            self.push(" ");
            self.write(operand, true);
        }
        for (condition, result) in branches {
            self.push(space);
            self.keyword("WHEN ", 0, 0, 0);
            self.write(condition, false);
            self.push(" THEN ");
            self.write(result, true);
        }
        self.push(space);
        self.keyword("ELSE ", 0, 0, 0);
        self.write(otherwise, true);
        self.push(space);
        self.keyword("END", -4, 0, 0);
    }

    fn write_call(&mut self, call: &Call<'a>) {
        self.push(&call.name);
        self.push(if call.distinct { "(DISTINCT " } else { "(" });
        self.push(if call.star { "*" } else { "" });
        let last = call.arguments.len().wrapping_sub(1);
        self.list(call.arguments.iter().enumerate(), |writer, (at, (name, value))| {
            writer.push(if call.variadic && at == last { "VARIADIC " } else { "" });
            if let Some(name) = name {
                writer.name(name);
                writer.push(" => ");
            }
            writer.write(value, true);
        });
        if call.within_group {
            self.push(") WITHIN GROUP (ORDER BY ");
            self.order_by(call.order_by, &[]);
        } else if !call.order_by.is_empty() {
            self.push(" ORDER BY ");
            self.order_by(call.order_by, &[]);
        }
        if let Some(filter) = &call.filter {
            self.push(") FILTER (WHERE ");
            self.write(filter, false);
        }
        self.push(")");
        if let Some(over) = call.over {
            self.push(" OVER ");
            self.over(over);
        }
    }

    /// Writes a node as a column of a row, or as an element of ROW or VALUES.
    pub(super) fn write_top(&mut self, node: &DeparseNode<'a>, implicit: bool) {
        match node {
            // Without the cast, the row of a relation would be expanded to its columns.
            DeparseNode::Word { text, row_type: Some(row_type) } => {
                let shown = self.type_name(row_type);
                self.push(&format!("{text}::{shown}"));
            }
            node => self.write(node, implicit),
        }
    }
}
