//! Generator of aggregate and window function calls.

use crate::random_queries::expression::Names;
use crate::random_queries::query::Generator;
use crate::random_queries::schema::Type;
use crate::random_queries::shrinkable_sql::SqlNode;

impl Generator<'_> {
    pub(super) fn aggregate(&mut self, data_type: Type, names: &Names) -> SqlNode {
        let Some(arguments) = names.of_arguments() else { return self.constant(data_type) };
        let depth = self.chance.below(2);
        if self.chance.percent(20) || !has_extremes(data_type) {
            return self.gathering(data_type, &arguments);
        }
        let distinct = if self.chance.percent(15) { "DISTINCT " } else { "" };
        let (name, of) = match (data_type, self.chance.below(4)) {
            (Type::Bigint, 0) => ("count", None),
            (Type::Bigint, 1) => ("count", Some(*self.chance.one_of(&Type::ALL))),
            (Type::Bigint, 2) => ("sum", Some(Type::Integer)),
            (Type::Numeric, 0) => ("sum", Some(Type::Numeric)),
            (Type::Numeric, 1) => ("avg", Some(Type::Integer)),
            (Type::Numeric, 2) => ("sum", Some(Type::Bigint)),
            (Type::Numeric, _) => ("stddev", Some(Type::Integer)),
            (Type::Boolean, 0 | 1) => ("bool_and", Some(Type::Boolean)),
            (Type::Boolean, _) => ("bool_or", Some(Type::Boolean)),
            (of, 0 | 1) => ("min", Some(of)),
            (of, _) => ("max", Some(of)),
        };
        let piece = match of {
            None => SqlNode::text("count(*)"),
            Some(of) => {
                let argument = self.expression(of, &arguments, depth);
                SqlNode::text(format!("{name}({distinct}")).with(argument).then(")")
            }
        };
        self.filtered(piece, &arguments)
    }

    fn filtered(&mut self, aggregate: SqlNode, arguments: &Names) -> SqlNode {
        if self.chance.percent(80) {
            return aggregate;
        }
        let condition = self.condition(arguments, 1);
        aggregate.maybe(SqlNode::text(" FILTER (WHERE ").with(condition).then(")"))
    }

    /// Returns an aggregate that collects all values, in a total order.
    fn gathering(&mut self, data_type: Type, arguments: &Names) -> SqlNode {
        let distinct = *self.chance.one_of(&["", "", "DISTINCT "]);
        let direction = *self.chance.one_of(&["", " DESC", " NULLS FIRST"]);
        let (name, of, rest) = match data_type {
            Type::Integers => ("array_agg", Type::Integer, ""),
            Type::Texts => ("array_agg", Type::Text, ""),
            Type::Text => ("string_agg", Type::Text, ", '/'"),
            Type::Json => {
                let of = [Type::Integer, Type::Text, Type::Date, Type::Boolean, Type::Texts];
                ("jsonb_agg", *self.chance.one_of(&of), "")
            }
            Type::Boolean => return self.call(data_type, arguments, 0),
            Type::Uuid => return self.constant(data_type),
            of => {
                let value = self.expression(of, arguments, 1);
                let piece = SqlNode::text("percentile_disc(0.4) WITHIN GROUP (ORDER BY ");
                let piece = piece.with(value).then(direction.replace(" NULLS FIRST", "")).then(")");
                return self.filtered(piece, arguments);
            }
        };
        let value = match of {
            Type::Text => self.call(of, arguments, 0),
            _ => self.expression(of, arguments, 1),
        };
        // A repeated subquery is not recognized as equal.
        let distinct = if value.to_string().contains("SELECT") { "" } else { distinct };
        let order = format!(" ORDER BY {value}{direction})");
        let piece = SqlNode::text(format!("{name}({distinct}{value}{rest}{order}"));
        self.filtered(piece, arguments)
    }

    /// Returns a window function whose result does not depend on the order of ties.
    pub(super) fn window_call(&mut self, data_type: Type, names: &Names) -> SqlNode {
        let Some(order) = names.windowed.clone() else { return self.constant(data_type) };
        let plain = names.plain();
        let function = match data_type {
            Type::Bigint => match self.chance.below(4) {
                0 => SqlNode::text("row_number()"),
                1 => SqlNode::text("rank()"),
                2 => SqlNode::text("dense_rank()"),
                _ => SqlNode::text("count(").with(self.expression(Type::Text, &plain, 1)).then(")"),
            },
            Type::Numeric if self.chance.percent(50) => {
                SqlNode::text("sum(").with(self.expression(Type::Numeric, &plain, 1)).then(")")
            }
            Type::Boolean => {
                SqlNode::text("bool_or(").with(self.expression(Type::Boolean, &plain, 1)).then(")")
            }
            of if self.chance.percent(30) => {
                let value = self.expression(of, &plain, 1);
                let offset = self.chance.between(-1, 3);
                let default = self.expression(of, &plain, 0);
                let name = *self.chance.one_of(&["lag", "lead", "nth_value"]);
                let piece = SqlNode::text(format!("{name}(")).with(value);
                match name {
                    "nth_value" => piece.then(format!(", {})", offset.max(1))),
                    _ => piece.then(format!(", {offset}, ")).with(default).then(")"),
                }
            }
            of if !has_extremes(of) => {
                let name = *self.chance.one_of(&["first_value", "last_value"]);
                SqlNode::text(format!("{name}(")).with(self.expression(of, &plain, 1)).then(")")
            }
            of => {
                let functions = ["first_value", "last_value", "lag", "lead", "min", "max"];
                let name = *self.chance.one_of(&functions);
                SqlNode::text(format!("{name}(")).with(self.expression(of, &plain, 1)).then(")")
            }
        };
        let function = match function.to_string().split('(').next() {
            Some("count" | "sum" | "bool_or" | "min" | "max") => self.filtered(function, &plain),
            _ => function,
        };
        let mut over = SqlNode::text(" OVER (");
        if self.chance.percent(60) {
            let of = *self.chance.one_of(&Type::ALL);
            let key = self.expression(of, &plain, 0);
            over = over.maybe(SqlNode::text("PARTITION BY ").with(key).then(" "));
        }
        // Peers are in the frame together: these functions do not depend on their order.
        let same = ["count(", "sum(", "bool_or(", "min(", "max(", "rank(", "dense_rank("];
        if same.iter().any(|name| function.to_string().starts_with(name)) && self.chance.percent(50)
        {
            let range = self.range(&plain);
            return SqlNode::text("").with(function).with(over.with(range).then(")"));
        }
        let mut keys: Vec<SqlNode> = Vec::new();
        if self.chance.percent(50) {
            let of = *self.chance.one_of(&Type::ALL);
            let direction = *self.chance.one_of(&["", " DESC", " NULLS FIRST"]);
            keys.push(self.expression(of, &plain, 1).then(direction));
        }
        // All columns follow, so that peers are equal rows.
        keys.extend(order.iter().map(|column| SqlNode::text(column.name.clone())));
        let mut all = String::new();
        for (at, key) in keys.iter().enumerate() {
            all.push_str(if at > 0 { ", " } else { "ORDER BY " });
            all.push_str(&key.to_string());
        }
        if keys.is_empty() {
            all.push_str("ORDER BY 1::text");
        }
        let frame = self.frame();
        SqlNode::text("").with(function).with(over.then(all).then(frame).then(")"))
    }

    /// Returns a frame in ROWS or GROUPS mode, or none.
    fn frame(&mut self) -> String {
        if self.chance.percent(35) {
            return String::new();
        }
        let unit = *self.chance.one_of(&["ROWS", "ROWS", "GROUPS"]);
        let start = *self.chance.one_of(&[
            "UNBOUNDED PRECEDING",
            "2 PRECEDING",
            "1 PRECEDING",
            "CURRENT ROW",
            "1 FOLLOWING",
        ]);
        let end = *self.chance.one_of(&[
            "UNBOUNDED FOLLOWING",
            "2 FOLLOWING",
            "1 FOLLOWING",
            "CURRENT ROW",
            "1 PRECEDING",
        ]);
        format!(" {unit} BETWEEN {start} AND {end}{}", self.exclusion())
    }

    fn exclusion(&mut self) -> &'static str {
        const EXCLUSIONS: &[&str] = &[
            "",
            "",
            " EXCLUDE CURRENT ROW",
            " EXCLUDE GROUP",
            " EXCLUDE TIES",
            " EXCLUDE NO OTHERS",
        ];
        EXCLUSIONS[self.chance.below(EXCLUSIONS.len())]
    }

    /// Returns ORDER BY with one key, and a frame in RANGE mode.
    fn range(&mut self, names: &Names) -> SqlNode {
        let of = *self.chance.one_of(&[
            Type::Integer,
            Type::Bigint,
            Type::Numeric,
            Type::Double,
            Type::Date,
            Type::Timestamp,
            Type::Time,
        ]);
        let offset = match of {
            Type::Date | Type::Timestamp => "interval '2 days'",
            Type::Time => "interval '3 hours'",
            Type::Numeric | Type::Double => "1.5",
            _ => "2",
        };
        let key = self.expression(of, names, 1);
        let direction = *self.chance.one_of(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        let start = match self.chance.below(3) {
            0 => "UNBOUNDED PRECEDING".to_owned(),
            1 => format!("{offset} PRECEDING"),
            _ => "CURRENT ROW".to_owned(),
        };
        let end = match self.chance.below(3) {
            0 => "UNBOUNDED FOLLOWING".to_owned(),
            1 => format!("{offset} FOLLOWING"),
            _ => "CURRENT ROW".to_owned(),
        };
        let piece = SqlNode::text("ORDER BY ").with(key).then(direction);
        let exclusion = self.exclusion();
        piece.maybe(SqlNode::text(format!(" RANGE BETWEEN {start} AND {end}{exclusion}")))
    }
}

/// Returns whether a type has `min` and `max`.
fn has_extremes(data_type: Type) -> bool {
    !matches!(data_type, Type::Json | Type::Uuid)
}
