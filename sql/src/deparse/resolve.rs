//! Conversion of the syntax tree to nodes, with resolved names and types.

use types::{DataType, SqlType};

use crate::ast::{self, Expr, Quantifier, Subscript, TruthTest};
use crate::deparse::SqlWriter;
use crate::deparse::convert::{explicit_conversion, implicit_conversion, number, type_of_number};
use crate::deparse::node::{Bounds, DeparseNode, SubqueryKind};

impl<'a> SqlWriter<'a> {
    /// Returns the type of an expression before any conversion.
    pub(super) fn type_of(&self, expr: &Expr) -> SqlType {
        match expr {
            Expr::String { .. } | Expr::Null { .. } => DataType::Unknown.into(),
            Expr::Number { text, .. } => type_of_number(text).into(),
            Expr::And(_) | Expr::Or(_) | Expr::Not(_) | Expr::IsNull { .. } => {
                DataType::Bool.into()
            }
            Expr::Collate { operand, .. } => match self.type_of(operand) {
                SqlType { base: DataType::Unknown, .. } => DataType::Text.into(),
                known => known,
            },
            other => self.notes.type_of(other).unwrap_or_else(|| DataType::Unknown.into()),
        }
    }

    /// Returns an expression, implicitly converted to a type if given.
    pub(super) fn value(&mut self, expr: &'a Expr, wanted: Option<SqlType>) -> DeparseNode<'a> {
        let settled = |position: usize, writer: &Self| {
            let is_known =
                |one: &&SqlType| one.base != DataType::Unknown && !one.base.is_polymorphic();
            let wanted = wanted.as_ref().filter(is_known);
            let wanted = wanted.map(|one| SqlType { modifier: -1, ..one.clone() });
            wanted
                .or_else(|| writer.notes.literal(position))
                .unwrap_or_else(|| DataType::Text.into())
        };
        match expr {
            Expr::String { value, position } => self.literal(value, &settled(*position, self)),
            Expr::Null { position } => {
                DeparseNode::Constant { value: None, sql_type: settled(*position, self) }
            }
            _ => {
                let node = self.node(expr);
                match &wanted {
                    Some(to) => implicit_conversion(node, &self.type_of(expr), to),
                    None => node,
                }
            }
        }
    }

    /// Returns expressions, each converted to the type if given.
    pub(super) fn values(
        &mut self,
        list: &'a [Expr],
        wanted: Option<SqlType>,
    ) -> Vec<DeparseNode<'a>> {
        let mut nodes = Vec::with_capacity(list.len());
        for expr in list {
            match expr {
                Expr::WholeRow(name) => nodes.extend(self.columns_of(name)),
                expr => nodes.push(self.value(expr, wanted.clone())),
            }
        }
        nodes
    }

    pub(super) fn boxed(&mut self, expr: &'a Expr) -> Box<DeparseNode<'a>> {
        Box::new(self.value(expr, None))
    }

    /// Returns an expression.
    #[expect(clippy::too_many_lines, reason = "one arm for each form of expression")]
    fn node(&mut self, expr: &'a Expr) -> DeparseNode<'a> {
        match expr {
            Expr::String { .. } | Expr::Null { .. } => self.value(expr, None),
            Expr::Boolean { value, .. } => DeparseNode::Constant {
                value: Some(value.to_string()),
                sql_type: DataType::Bool.into(),
            },
            Expr::Number { text, .. } => number(text),
            // Texts of definitions contain no runs.
            Expr::Constants(run) => number(&run.text),
            Expr::TypedString { value, .. } => self.literal(value, &self.type_of(expr)),
            Expr::Parameter { number, .. } => {
                DeparseNode::Word { text: format!("${number}"), row_type: None }
            }
            Expr::Column(parts) => self.column(parts),
            Expr::WholeRow(parts) => self.column(parts),
            Expr::Row { fields, .. } => {
                DeparseNode::Row { fields: self.values(fields, None), to: None }
            }
            Expr::Unary { operator, operand, position } => {
                if let (ast::UnaryOperator::Minus, Some(text)) = (operator, signed(operand)) {
                    return number(&negated(&text));
                }
                let symbol = operator.symbol();
                let wanted = self.notes.operands(*position, symbol, 0);
                let wanted = wanted.and_then(|wanted| wanted.first().cloned());
                let operands = vec![self.value(operand, wanted)];
                DeparseNode::Operator { symbol: symbol.to_owned(), operands }
            }
            Expr::Binary { operator, left, right, position } => {
                self.binary(operator.symbol(), (left, right), *position)
            }
            Expr::And(operands) => DeparseNode::And(self.values(operands, None)),
            Expr::Or(operands) => DeparseNode::Or(self.values(operands, None)),
            Expr::Not(operand) => DeparseNode::Not(self.boxed(operand)),
            Expr::IsNull { operand, negated } => {
                let words = if *negated { "IS NOT NULL" } else { "IS NULL" };
                DeparseNode::Test { operand: self.boxed(operand), words, of_null: true }
            }
            Expr::IsTruth { operand, test, negated } => DeparseNode::Test {
                operand: self.boxed(operand),
                words: truth_words(*test, *negated),
                of_null: false,
            },
            Expr::IsDistinct { left, right, negated, position } => {
                let test = self.distinct((left, right), *position);
                not(test, *negated)
            }
            Expr::Between { operand, low, high, negated, position } => {
                let symbols = if *negated { ["<", ">"] } else { [">=", "<="] };
                let above = self.operation(symbols[0], (operand, low), (*position, 0));
                let below = self.operation(symbols[1], (operand, high), (*position, 0));
                let both = vec![above, below];
                if *negated { DeparseNode::Or(both) } else { DeparseNode::And(both) }
            }
            Expr::InList { operand, list, negated, position } => {
                self.in_list(operand, list, *negated, *position)
            }
            Expr::InSubquery { operand, query, negated, position } => {
                let compared = self.compared(operand, ("=", "IN"), query, *position);
                not(compared, *negated)
            }
            Expr::ArraySubquery { query, .. } => subquery(SubqueryKind::Array, query),
            Expr::Exists(query) => subquery(SubqueryKind::Exists, query),
            Expr::Subquery(query) => subquery(SubqueryKind::Scalar, query),
            Expr::Array { elements, .. } => self.array(elements, &self.type_of(expr), false),
            Expr::Subscript { operand, subscripts } => self.subscript(operand, subscripts),
            Expr::Field { operand, name } => {
                if let Some(column) = self.column_of_row(operand, &name.value) {
                    return column;
                }
                let operand = self.boxed(operand);
                match name.value == ast::ALL_FIELDS {
                    true => *operand,
                    false => DeparseNode::Field { operand, name: name.value.clone() },
                }
            }
            Expr::Quantified { left, operator, quantifier, right, position } => {
                let word = if *quantifier == Quantifier::Any { "ANY" } else { "ALL" };
                self.quantified(left, (operator.symbol(), word), right, *position)
            }
            Expr::Like { kind, operand, pattern, escape, negated, position } => {
                self.like((*kind, *negated), (operand, pattern, escape.as_deref()), *position)
            }
            Expr::Case { operand, branches, otherwise, .. } => {
                self.case(operand.as_deref(), branches, otherwise.as_deref(), &self.type_of(expr))
            }
            Expr::Cast { operand, .. } => self.cast(operand, &self.type_of(expr)),
            Expr::Collate { operand, collation, .. } => {
                let text = Some(DataType::Text.into());
                let wanted = text.filter(|_| self.type_of(operand).base == DataType::Unknown);
                let operand = Box::new(self.value(operand, wanted));
                DeparseNode::Collate { operand, name: collation.name().to_owned() }
            }
            Expr::Coalesce { operands, .. } => {
                let wanted = Some(self.type_of(expr));
                DeparseNode::Listed { word: "COALESCE", operands: self.values(operands, wanted) }
            }
            Expr::NullIf { left, right, position } => {
                let (left, right) = self.sides("=", (left, right), (*position, 0));
                DeparseNode::NullIf(Box::new(left), Box::new(right))
            }
            Expr::MinMax { kind, operands, .. } => {
                let word = match kind {
                    ast::MinMax::Greatest => "GREATEST",
                    ast::MinMax::Least => "LEAST",
                };
                let wanted = Some(self.type_of(expr));
                DeparseNode::Listed { word, operands: self.values(operands, wanted) }
            }
            Expr::SqlValue { function, precision, .. } => {
                DeparseNode::SqlValue(sql_value(*function, *precision))
            }
            Expr::Call(call) => self.call(call),
        }
    }

    fn cast(&mut self, operand: &'a Expr, to: &SqlType) -> DeparseNode<'a> {
        // A value of unknown type becomes text.
        let text = DataType::Text.into();
        let to = if to.base == DataType::Unknown { &text } else { to };
        match operand {
            Expr::String { value, .. } => self.literal(value, to),
            Expr::Null { .. } if to.domain.is_none() => {
                DeparseNode::Constant { value: None, sql_type: to.clone() }
            }
            Expr::Array { elements, .. } if to.base.element().is_some() => {
                let array = self.array(elements, &SqlType { modifier: -1, ..to.clone() }, true);
                match to.domain {
                    Some(_) => explicit_conversion(array, &to.base_type(), to),
                    None => array,
                }
            }
            Expr::Row { fields, .. } if matches!(to.base, DataType::Composite(_)) => {
                DeparseNode::Row { fields: self.values(fields, None), to: Some(to.clone()) }
            }
            _ => {
                let node = self.value(operand, None);
                explicit_conversion(node, &self.type_of(operand), to)
            }
        }
    }

    fn array(&mut self, elements: &'a [Expr], sql_type: &SqlType, cast: bool) -> DeparseNode<'a> {
        let element = self.reader.catalog.element_of(sql_type);
        let mut nodes = Vec::with_capacity(elements.len());
        for one in elements {
            nodes.push(match one {
                Expr::Array { elements, .. } => self.array(elements, sql_type, cast),
                one if cast && element.is_some() => match element {
                    Some(ref to) => self.cast(one, to),
                    None => self.value(one, None),
                },
                one if self.type_of(one).base.element().is_some() => self.value(one, None),
                one => self.value(one, element.clone()),
            });
        }
        DeparseNode::Array { elements: nodes, sql_type: sql_type.clone() }
    }

    fn subscript(&mut self, operand: &'a Expr, subscripts: &'a [Subscript]) -> DeparseNode<'a> {
        let wanted = match self.type_of(operand).base {
            DataType::Jsonb => None,
            _ => Some(SqlType::from(DataType::Int4)),
        };
        let operand = self.boxed(operand);
        let mut bounds = Vec::with_capacity(subscripts.len());
        for one in subscripts {
            bounds.push(match one {
                Subscript::Index(index) => Bounds::Index(self.value(index, wanted.clone())),
                Subscript::Slice { lower, upper } => {
                    let lower = lower.as_ref().map(|one| self.value(one, wanted.clone()));
                    Bounds::Slice(lower, upper.as_ref().map(|one| self.value(one, wanted.clone())))
                }
            });
        }
        DeparseNode::Subscript { operand, bounds }
    }

    fn case(
        &mut self,
        operand: Option<&'a Expr>,
        branches: &'a [(Expr, Expr)],
        otherwise: Option<&'a Expr>,
        sql_type: &SqlType,
    ) -> DeparseNode<'a> {
        let mut written = Vec::with_capacity(branches.len());
        for (condition, result) in branches {
            let condition = match operand {
                Some(operand) => self.sides("=", (operand, condition), (condition.position(), 0)).1,
                None => self.value(condition, None),
            };
            written.push((condition, self.value(result, Some(sql_type.clone()))));
        }
        let otherwise = match otherwise {
            Some(otherwise) => self.value(otherwise, Some(sql_type.clone())),
            None => DeparseNode::Constant {
                value: None,
                sql_type: SqlType { modifier: -1, ..sql_type.clone() },
            },
        };
        let operand = operand.map(|operand| self.boxed(operand));
        DeparseNode::Case { operand, branches: written, otherwise: Box::new(otherwise) }
    }
}

fn subquery(kind: SubqueryKind, query: &ast::QueryExpr) -> DeparseNode<'_> {
    DeparseNode::Subquery { kind, query }
}

fn not(node: DeparseNode<'_>, negated: bool) -> DeparseNode<'_> {
    match (negated, node) {
        (false, node) => node,
        (true, DeparseNode::Test { operand, words: "IS NOT NULL", of_null }) => {
            DeparseNode::Test { operand, words: "IS NULL", of_null }
        }
        (true, node) => DeparseNode::Not(Box::new(node)),
    }
}

fn truth_words(test: TruthTest, negated: bool) -> &'static str {
    match (test, negated) {
        (TruthTest::True, false) => "IS TRUE",
        (TruthTest::True, true) => "IS NOT TRUE",
        (TruthTest::False, false) => "IS FALSE",
        (TruthTest::False, true) => "IS NOT FALSE",
        (TruthTest::Unknown, false) => "IS UNKNOWN",
        (TruthTest::Unknown, true) => "IS NOT UNKNOWN",
    }
}

/// Returns the text of a number with the signs before it.
fn signed(operand: &Expr) -> Option<String> {
    match operand {
        Expr::Number { text, .. } => Some(text.clone()),
        Expr::Unary { operator: ast::UnaryOperator::Minus, operand, .. } => {
            signed(operand).map(|text| negated(&text))
        }
        _ => None,
    }
}

fn negated(text: &str) -> String {
    text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_owned)
}

fn sql_value(function: ast::SqlValueFunction, precision: Option<u8>) -> String {
    use ast::SqlValueFunction as Value;
    let word = match function {
        Value::CurrentDate => "CURRENT_DATE",
        Value::CurrentTime => "CURRENT_TIME",
        Value::CurrentTimestamp => "CURRENT_TIMESTAMP",
        Value::LocalTime => "LOCALTIME",
        Value::LocalTimestamp => "LOCALTIMESTAMP",
        Value::CurrentUser => "CURRENT_USER",
        Value::CurrentRole => "CURRENT_ROLE",
        Value::User => "USER",
        Value::SessionUser => "SESSION_USER",
        Value::CurrentCatalog => "CURRENT_CATALOG",
        Value::CurrentSchema => "CURRENT_SCHEMA",
    };
    precision.map_or_else(|| word.to_owned(), |digits| format!("{word}({digits})"))
}
