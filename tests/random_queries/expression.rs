//! Generator of expressions.

use crate::random_queries::query::Generator;
use crate::random_queries::schema::{Column, Type, literal};
use crate::random_queries::shrinkable_sql::SqlNode;

/// Names that an expression may use.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// Columns of the enclosing query; the grouping expressions if rows are grouped.
    pub(super) own: Vec<Column>,
    /// Columns of the outer queries.
    pub(super) outer: Vec<Column>,
    /// Arguments of aggregates, where these are allowed.
    pub(super) aggregated: Option<Vec<Column>>,
    /// A total order for window functions, where these are allowed.
    pub(super) windowed: Option<Vec<Column>>,
}

impl Names {
    /// Returns the columns for a subquery, without aggregates and window functions.
    pub(super) fn as_outer(&self) -> Vec<Column> {
        let grouped: Vec<Column> = self.own.iter().chain(&self.outer).cloned().collect();
        grouped.into_iter().filter(|column| !column.name.contains('(')).collect()
    }

    /// Returns the names that the arguments of an aggregate may use; `None` if aggregates are not
    /// allowed.
    pub(super) fn of_arguments(&self) -> Option<Names> {
        let own = self.aggregated.clone()?;
        Some(Names { own, outer: self.outer.clone(), ..Names::default() })
    }

    pub(super) fn plain(&self) -> Names {
        Names { aggregated: None, windowed: None, ..self.clone() }
    }
}

/// Returns `left operator right` in parentheses; either operand is a shrunk form.
fn infix(left: SqlNode, operator: &str, right: SqlNode) -> SqlNode {
    SqlNode::text("(")
        .with_or_replaced_by(left)
        .then(format!(" {operator} "))
        .with_or_replaced_by(right)
        .then(")")
}

fn call(name: &str, arguments: Vec<SqlNode>) -> SqlNode {
    let mut piece = SqlNode::text(format!("{name}("));
    for (at, argument) in arguments.into_iter().enumerate() {
        piece = if at > 0 { piece.then(", ") } else { piece };
        piece = piece.with_or_replaced_by(argument);
    }
    piece.then(")")
}

/// As above, with arguments of other types than the result.
fn converting(name: &str, arguments: Vec<SqlNode>) -> SqlNode {
    SqlNode::text(format!("{name}(")).list(arguments, ", ").then(")")
}

impl Generator<'_> {
    /// Returns an expression of a type.
    pub(super) fn expression(&mut self, data_type: Type, names: &Names, depth: usize) -> SqlNode {
        let piece = self.any_expression(data_type, names, depth);
        piece.or_text(format!("NULL::{}", data_type.name()))
    }

    fn any_expression(&mut self, data_type: Type, names: &Names, depth: usize) -> SqlNode {
        if depth == 0 || self.chance.percent(25) {
            return self.leaf(data_type, names);
        }
        let below = depth - 1;
        match self.chance.below(20) {
            0 | 1 => self.case(data_type, names, below),
            2 => {
                let first = self.expression(data_type, names, below);
                let second = self.expression(data_type, names, below);
                let name = *self.chance.one_of(&["coalesce", "nullif", "greatest", "least"]);
                call(name, vec![first, second])
            }
            3 if self.may_nest() => {
                let outer = names.as_outer();
                let query = self.scalar_subquery(data_type, &outer);
                SqlNode::text("(").with(query).then(")")
            }
            4 | 5 if names.windowed.is_some() => self.window_call(data_type, names),
            4..=9 if names.aggregated.is_some() => self.aggregate(data_type, names),
            10..=13 => self.call(data_type, names, below),
            _ => match data_type {
                Type::Text => self.text(names, below),
                Type::Boolean => self.condition(names, below),
                Type::Date | Type::Timestamp => self.time(data_type, names, below),
                of if of.is_number() => self.number(data_type, names, below),
                _ => self.call(data_type, names, below),
            },
        }
    }

    pub(super) fn constant(&mut self, data_type: Type) -> SqlNode {
        let value = literal(self.chance, data_type);
        let name = data_type.name();
        SqlNode::text(match data_type {
            _ if self.chance.percent(8) => format!("NULL::{name}"),
            Type::Integer | Type::Boolean | Type::Numeric => value,
            Type::Text if self.chance.percent(50) => value,
            _ => format!("{value}::{name}"),
        })
    }

    fn leaf(&mut self, data_type: Type, names: &Names) -> SqlNode {
        if names.aggregated.is_some() && self.chance.percent(40) {
            return self.aggregate(data_type, names);
        }
        let from_outer = self.chance.percent(25) || names.own.is_empty();
        let columns = if from_outer { &names.outer } else { &names.own };
        let fitting: Vec<&Column> =
            columns.iter().filter(|column| column.data_type == data_type).collect();
        if !fitting.is_empty() && self.chance.percent(88) {
            let name = self.chance.one_of(&fitting).name.clone();
            return SqlNode::text(name);
        }
        // A number of another type, cast.
        let numbers: Vec<&Column> = columns
            .iter()
            .filter(|column| {
                data_type.is_number() && column.data_type.is_number()
                    || data_type == Type::Text && column.data_type != Type::Double
            })
            .collect();
        if !numbers.is_empty() && self.chance.percent(60) {
            let name = &self.chance.one_of(&numbers).name;
            return SqlNode::text(format!("{name}::{}", data_type.name()));
        }
        self.constant(data_type)
    }

    fn case(&mut self, data_type: Type, names: &Names, depth: usize) -> SqlNode {
        let mut piece = SqlNode::text("CASE");
        let simple = self.chance.percent(30).then(|| *self.chance.one_of(&Type::ALL));
        if let Some(of) = simple {
            piece = piece.then(" ").with(self.expression(of, names, depth));
        }
        for _ in 0..=self.chance.below(2) {
            let when = match simple {
                Some(of) => self.expression(of, names, depth.min(1)),
                None => self.condition(names, depth),
            };
            let then = self.expression(data_type, names, depth);
            piece = piece.then(" WHEN ").with(when).then(" THEN ").with_or_replaced_by(then);
        }
        if self.chance.percent(60) {
            let otherwise = self.expression(data_type, names, depth);
            piece = piece.then(" ELSE ").with_or_replaced_by(otherwise);
        }
        piece.then(" END")
    }

    fn number(&mut self, data_type: Type, names: &Names, depth: usize) -> SqlNode {
        let cast = |piece: SqlNode| {
            SqlNode::text("CAST(").with(piece).then(format!(" AS {})", data_type.name()))
        };
        match self.chance.below(12) {
            0..=4 => {
                let left = self.expression(data_type, names, depth);
                let right = self.expression(data_type, names, depth);
                let operator = *self.chance.one_of(&["+", "-", "*"]);
                let sum = infix(left, operator, right);
                // smallint × smallint is smallint, but literals are integers.
                if data_type == Type::Smallint { cast(sum) } else { sum }
            }
            5 => {
                let left = self.expression(data_type, names, depth);
                let right = self.expression(data_type, names, depth);
                let operators: &[&str] =
                    if data_type == Type::Double { &["/"] } else { &["/", "%"] };
                let operator = *self.chance.one_of(operators);
                if self.chance.percent(10) {
                    return infix(left, operator, right);
                }
                let zero = SqlNode::text("nullif(").with_or_replaced_by(right).then(", 0)");
                infix(left, operator, zero)
            }
            6 => SqlNode::text("(- ")
                .with_or_replaced_by(self.expression(data_type, names, depth))
                .then(")"),
            7 => call("abs", vec![self.expression(data_type, names, depth)]),
            8 if data_type == Type::Integer => {
                converting("length", vec![self.expression(Type::Text, names, depth)])
            }
            8 if data_type == Type::Numeric => {
                let value = self.expression(Type::Numeric, names, depth);
                SqlNode::text("round(").with_or_replaced_by(value).then(", 1)")
            }
            9 if data_type == Type::Integer => {
                let left = self.expression(Type::Date, names, depth);
                let right = self.expression(Type::Date, names, depth);
                SqlNode::text("(").with(left).then(" - ").with(right).then(")")
            }
            9 if data_type == Type::Numeric => {
                let field = *self.chance.one_of(&["year", "month", "day", "dow", "doy"]);
                let value = self.expression(Type::Date, names, depth);
                SqlNode::text(format!("extract({field} FROM ")).with(value).then(")")
            }
            10 if data_type == Type::Integer => cast(self.condition(names, depth)),
            _ => {
                let numbers =
                    [Type::Smallint, Type::Integer, Type::Bigint, Type::Numeric, Type::Double];
                let from = *self.chance.one_of(&numbers);
                cast(self.expression(from, names, depth))
            }
        }
    }

    fn text(&mut self, names: &Names, depth: usize) -> SqlNode {
        let value = self.expression(Type::Text, names, depth);
        match self.chance.below(9) {
            0 | 1 => infix(value, "||", self.expression(Type::Text, names, depth)),
            2 => {
                let name = *self.chance.one_of(&["upper", "lower", "reverse", "trim", "md5"]);
                call(name, vec![value])
            }
            3 => {
                let (from, count) = (self.chance.between(0, 2), self.chance.between(0, 2));
                SqlNode::text("substr(")
                    .with_or_replaced_by(value)
                    .then(format!(", {from}, {count})"))
            }
            4 => {
                let with = self.expression(Type::Text, names, depth);
                SqlNode::text("replace(")
                    .with_or_replaced_by(value)
                    .then(", 'a', ")
                    .with_or_replaced_by(with)
                    .then(")")
            }
            5 => {
                let of = *self.chance.one_of(&[Type::Integer, Type::Boolean, Type::Date]);
                let of = self.expression(of, names, depth);
                SqlNode::text("CAST(").with(of).then(" AS text)")
            }
            6 => {
                let second = self.expression(Type::Text, names, depth);
                let number = self.expression(Type::Integer, names, depth);
                converting("concat", vec![value, second, number])
            }
            7 => {
                let count = self.chance.between(-2, 3);
                let name = *self.chance.one_of(&["left", "right", "lpad", "rpad"]);
                SqlNode::text(format!("{name}("))
                    .with_or_replaced_by(value)
                    .then(format!(", {count})"))
            }
            _ => value,
        }
    }

    fn time(&mut self, data_type: Type, names: &Names, depth: usize) -> SqlNode {
        let value = self.expression(data_type, names, depth);
        match (data_type, self.chance.below(3)) {
            (Type::Date, 0) => {
                let days = self.chance.between(-3, 3);
                SqlNode::text("(").with_or_replaced_by(value).then(format!(" + ({days}))"))
            }
            (Type::Date, _) => {
                let moment = self.expression(Type::Timestamp, names, depth);
                SqlNode::text("CAST(").with(moment).then(" AS date)")
            }
            (_, 0) => {
                let unit = *self.chance.one_of(&["hour", "day", "month"]);
                SqlNode::text(format!("date_trunc('{unit}', ")).with_or_replaced_by(value).then(")")
            }
            (_, 1) => {
                let count = self.chance.between(-3, 3);
                let interval = format!(" + interval '{count} hours')");
                SqlNode::text("(").with_or_replaced_by(value).then(interval)
            }
            _ => {
                let day = self.expression(Type::Date, names, depth);
                SqlNode::text("CAST(").with(day).then(" AS timestamp)")
            }
        }
    }

    /// Returns a condition.
    pub(super) fn condition(&mut self, names: &Names, depth: usize) -> SqlNode {
        let piece = self.any_condition(names, depth);
        piece.or_text("true").or_text("NULL::boolean")
    }

    fn any_condition(&mut self, names: &Names, depth: usize) -> SqlNode {
        let below = depth.saturating_sub(1);
        let of = *self.chance.one_of(&Type::ALL);
        match self.chance.below(if depth == 0 { 6 } else { 21 }) {
            0..=4 => {
                let operator = *self.chance.one_of(&["=", "=", "=", "<>", "<", "<=", ">", ">="]);
                let left = self.expression(of, names, below.min(1));
                let right = self.expression(of, names, below.min(1));
                SqlNode::text("(").with(left).then(format!(" {operator} ")).with(right).then(")")
            }
            5 => {
                let test = *self.chance.one_of(&["IS NULL", "IS NOT NULL"]);
                SqlNode::text("(").with(self.expression(of, names, below)).then(format!(" {test})"))
            }
            6..=9 => {
                let left = self.condition(names, below);
                let right = self.condition(names, below);
                let operator = *self.chance.one_of(&["AND", "OR"]);
                infix(left, operator, right)
            }
            10 => {
                SqlNode::text("(NOT ").with_or_replaced_by(self.condition(names, below)).then(")")
            }
            11 => {
                let tests = ["IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN"];
                let test = *self.chance.one_of(&tests);
                SqlNode::text("(")
                    .with_or_replaced_by(self.condition(names, below))
                    .then(format!(" {test})"))
            }
            12 => {
                let not = *self.chance.one_of(&["", " NOT"]);
                let symmetric = *self.chance.one_of(&["", "", " SYMMETRIC"]);
                let value = self.expression(of, names, below);
                let low = self.expression(of, names, 0);
                let high = self.expression(of, names, 0);
                let piece = SqlNode::text("(").with(value);
                let piece = piece.then(format!("{not} BETWEEN{symmetric} ")).with(low);
                piece.then(" AND ").with(high).then(")")
            }
            13 => {
                let not = *self.chance.one_of(&["", " NOT"]);
                let value = self.expression(of, names, below);
                let items = (0..=self.chance.below(3)).map(|_| self.expression(of, names, 0));
                let items = items.collect();
                let piece = SqlNode::text("(").with(value).then(format!("{not} IN ("));
                piece.list(items, ", ").then("))")
            }
            14 => {
                let pattern = *self.chance.one_of(&["a%", "%b", "_", "%a%", "", "\\_b", "a\\%"]);
                let operators = ["LIKE", "NOT LIKE", "ILIKE"];
                let operator = *self.chance.one_of(&operators);
                let value = self.expression(Type::Text, names, below);
                SqlNode::text("(").with(value).then(format!(" {operator} '{pattern}')"))
            }
            15 => {
                let not = *self.chance.one_of(&["", " NOT"]);
                let left = self.expression(of, names, below);
                let right = self.expression(of, names, below);
                let test = format!(" IS{not} DISTINCT FROM ");
                SqlNode::text("(").with(left).then(test).with(right).then(")")
            }
            16 => self.rows_compared(names),
            _ if self.may_nest() => self.subquery_condition(names),
            _ => self.leaf(Type::Boolean, names),
        }
    }

    fn rows_compared(&mut self, names: &Names) -> SqlNode {
        let types = [*self.chance.one_of(&Type::ALL), *self.chance.one_of(&Type::ALL)];
        let mut side = || {
            let items = types.iter().map(|&of| self.expression(of, names, 0)).collect();
            SqlNode::text("(").list(items, ", ").then(")")
        };
        let (left, right) = (side(), side());
        let operator = *self.chance.one_of(&["=", "<>", "<", ">="]);
        SqlNode::text("(").with(left).then(format!(" {operator} ")).with(right).then(")")
    }

    fn subquery_condition(&mut self, names: &Names) -> SqlNode {
        let outer = names.as_outer();
        let not = *self.chance.one_of(&["", "", "NOT "]);
        let of = *self.chance.one_of(&Type::ALL);
        match self.chance.below(8) {
            0..=2 => {
                let types = self.some_types();
                let query = self.subquery(&types, &outer);
                SqlNode::text(format!("({not}EXISTS (")).with(query).then("))")
            }
            3..=5 => {
                let value = self.expression(of, &names.plain(), 1);
                let query = self.subquery(&[of], &outer);
                SqlNode::text("(").with(value).then(format!(" {not}IN (")).with(query).then("))")
            }
            6 => {
                let types = [of, *self.chance.one_of(&Type::ALL)];
                let items = types.iter().map(|&of| self.expression(of, names, 0)).collect();
                let query = self.subquery(&types, &outer);
                let row = SqlNode::text("((").list(items, ", ");
                row.then(format!(") {not}IN (")).with(query).then("))")
            }
            _ => {
                let operator = *self.chance.one_of(&["=", "<>", "<", ">="]);
                let which = *self.chance.one_of(&["ANY", "ALL"]);
                let value = self.expression(of, &names.plain(), 1);
                let query = self.subquery(&[of], &outer);
                let piece = SqlNode::text("(").with(value);
                piece.then(format!(" {operator} {which} (")).with(query).then("))")
            }
        }
    }
}
