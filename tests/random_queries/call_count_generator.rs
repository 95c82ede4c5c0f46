//! Generator of statements with errors and side effects: what is computed, and how often,
//! matters.
//!
//! Expressions may fail (`10 / x`, `2147483647 + x`, `CAST(t AS integer)`, a subquery of several
//! rows) and call `nextval`, each on a different sequence, where SQL determines whether something
//! is computed: CASE, COALESCE, AND, OR, IN, FILTER, HAVING, ORDER BY, LIMIT, SET, VALUES,
//! arguments, ON. Both servers must fail with the same SQLSTATE or not at all, and a successful
//! statement must have called each `nextval` equally often.
//!
//! Cases that depend on the plan are not generated: several failing conditions in one WHERE. Some
//! differences remain: PostgreSQL computes constants at plan time, and therefore calls nothing
//! for `false AND nextval(…) = 1` or `NULL * nextval(…)`.

use crate::random_queries::seeded_random::SeededRandom;
use crate::random_queries::shrinkable_sql::SqlNode;

/// Number of sequences, each of which a statement calls in one place.
pub(super) const SEQUENCES: usize = 10;

/// Integer columns of the tables.
const COLUMNS: [&str; 3] = ["k", "x", "y"];

/// Returns the statements that create the tables.
pub(super) fn setup(chance: &mut SeededRandom) -> Vec<String> {
    let schema = ["DROP SCHEMA IF EXISTS computed CASCADE", "CREATE SCHEMA computed"];
    let mut steps: Vec<String> = schema.map(str::to_owned).into();
    steps.push("SET search_path = computed".to_owned());
    for number in 0..SEQUENCES {
        steps.push(format!("CREATE SEQUENCE s{number}"));
    }
    for number in 0..3 {
        let table = format!("e{number}");
        steps.push(format!("CREATE TABLE {table} (k int PRIMARY KEY, x int, y int, t text)"));
        // The last table is empty.
        for k in 0..if number == 2 { 0 } else { 3 + chance.below(4) } {
            let mut value =
                || *chance.one_of(&["0", "0", "1", "1", "2", "-3", "NULL", "2147483647"]);
            let (x, y) = (value(), value());
            let text = *chance.one_of(&["'1'", "'0'", "'a'", "NULL", "'7'"]);
            steps.push(format!("INSERT INTO {table} VALUES ({k}, {x}, {y}, {text})"));
        }
    }
    steps
}

/// Returns the statement that resets all sequences.
pub(super) fn restart() -> String {
    let calls = (0..SEQUENCES).map(|number| format!("setval('s{number}', 1, false)"));
    format!("SELECT {}", calls.collect::<Vec<_>>().join(", "))
}

/// Returns the query of the number of calls of each sequence.
pub(super) fn counts() -> String {
    let counted = (0..SEQUENCES).map(|number| {
        format!("SELECT {number}, CASE WHEN is_called THEN last_value ELSE 0 END FROM s{number}")
    });
    format!("{} ORDER BY 1", counted.collect::<Vec<_>>().join(" UNION ALL "))
}

/// A generated statement.
pub(super) struct GeneratedStatement {
    pub(super) piece: SqlNode,
    /// The order of its rows is total.
    pub(super) ordered: bool,
    /// The table that it changes.
    pub(super) changes: Option<String>,
}

/// Generator of statements.
pub(super) struct CallCountGenerator<'a> {
    chance: &'a mut SeededRandom,
    /// The next sequence.
    sequence: usize,
    subqueries_left: usize,
    names_given: usize,
    /// Nesting depth of expressions without failures and side effects.
    calm: usize,
}

/// Names of the row sources that an expression may use, the innermost last.
type Scope = Vec<String>;

fn infix(left: SqlNode, operator: &str, right: SqlNode) -> SqlNode {
    SqlNode::text("(")
        .with_or_replaced_by(left)
        .then(format!(" {operator} "))
        .with_or_replaced_by(right)
        .then(")")
}

impl CallCountGenerator<'_> {
    /// Creates a generator of statements.
    pub(super) fn new(chance: &mut SeededRandom) -> CallCountGenerator<'_> {
        let subqueries_left = 1 + chance.below(5);
        CallCountGenerator { chance, sequence: 0, subqueries_left, names_given: 0, calm: 0 }
    }

    /// Returns a statement.
    pub(super) fn statement(&mut self) -> GeneratedStatement {
        let drawn = |piece, ordered| GeneratedStatement { piece, ordered, changes: None };
        match self.chance.below(20) {
            0..=6 => {
                let (piece, ordered) = self.ordered_query();
                drawn(piece, ordered)
            }
            7 | 8 => drawn(self.joined(), false),
            9..=11 => drawn(self.grouped(), false),
            12 => drawn(self.of_values(), false),
            13 => drawn(self.subquery_in_from(), false),
            14 => drawn(self.set_operation(), false),
            _ => self.change(),
        }
    }

    fn table(&mut self) -> &'static str {
        self.chance.one_of::<&str>(&["e0", "e0", "e0", "e1", "e1", "e1", "e2"])
    }

    fn new_name(&mut self) -> String {
        self.names_given += 1;
        format!("q{}", self.names_given)
    }

    fn column(&mut self, scope: &Scope) -> String {
        let name = match scope.len() {
            0 => return self.chance.between(-1, 3).to_string(),
            1 => &scope[0],
            count if self.chance.percent(60) => &scope[count - 1],
            count => &scope[self.chance.below(count)],
        };
        format!("{name}.{}", self.chance.one_of(&COLUMNS))
    }

    /// Generates an expression without failures and side effects.
    fn without_failures<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> T {
        self.calm += 1;
        let drawn = draw(self);
        self.calm -= 1;
        drawn
    }

    /// Returns an integer expression that depends on a row.
    fn of_row(&mut self, scope: &Scope) -> String {
        match scope.is_empty() {
            true => "2".to_owned(),
            false => self.column(scope),
        }
    }

    fn leaf(&mut self, scope: &Scope) -> SqlNode {
        if self.calm > 0 {
            return SqlNode::text(self.column(scope)).or_text("1");
        }
        match self.chance.below(10) {
            0 | 1 if !scope.is_empty() => {
                SqlNode::text(format!("(10 / {})", self.column(scope))).or_text("1")
            }
            2 if !scope.is_empty() => {
                let operator = *self.chance.one_of(&["+", "-", "*"]);
                let text = format!("(2147483647 {operator} {})", self.column(scope));
                SqlNode::text(text).or_text("1")
            }
            3 if !scope.is_empty() => {
                let name = self.chance.one_of(scope);
                SqlNode::text(format!("CAST({name}.t AS integer)")).or_text("1")
            }
            4 | 5 if self.sequence < SEQUENCES => {
                self.sequence += 1;
                let value = self.of_row(scope);
                let number = self.sequence - 1;
                SqlNode::text(format!("(nextval('s{number}')::int * 0 + {value})")).or_text("1")
            }
            6 => SqlNode::text(self.chance.between(-1, 2).to_string()),
            7 if self.chance.percent(15) => {
                let constant = *self.chance.one_of(&["(1 / 0)", "(4 % 0)", "(2147483647 + 1)"]);
                SqlNode::text(constant).or_text("1")
            }
            _ => SqlNode::text(self.column(scope)).or_text("1"),
        }
    }

    /// Returns an integer expression.
    fn integer(&mut self, scope: &Scope, depth: usize) -> SqlNode {
        self.any_integer(scope, depth).or_text("1").or_text("0")
    }

    fn any_integer(&mut self, scope: &Scope, depth: usize) -> SqlNode {
        if depth == 0 {
            return self.leaf(scope);
        }
        let below = depth - 1;
        match self.chance.below(18) {
            0..=3 => self.case(scope, below),
            4 | 5 => {
                let operands = (0..2 + self.chance.below(2)).map(|_| self.integer(scope, below));
                let operands = operands.collect();
                SqlNode::text("coalesce(").list(operands, ", ").then(")")
            }
            6 => {
                let names = ["greatest", "least", "nullif", "nullif"];
                let name = *self.chance.one_of(&names);
                let (one, other) = (self.integer(scope, below), self.integer(scope, below));
                SqlNode::text(format!("{name}("))
                    .with_or_replaced_by(one)
                    .then(", ")
                    .with_or_replaced_by(other)
                    .then(")")
            }
            7 | 8 if self.calm == 0 => {
                let operator = *self.chance.one_of(&["+", "-", "*"]);
                infix(self.integer(scope, below), operator, self.integer(scope, below))
            }
            9..=14 if self.subqueries_left > 0 => self.scalar(scope, below),
            15 => SqlNode::text("CAST(").with(self.condition(scope, below)).then(" AS integer)"),
            _ => self.leaf(scope),
        }
    }

    fn case(&mut self, scope: &Scope, depth: usize) -> SqlNode {
        let mut piece = SqlNode::text("CASE");
        let simple = self.chance.percent(25);
        if simple {
            piece = piece.then(" ").with(self.integer(scope, depth));
        }
        for _ in 0..=self.chance.below(2) {
            let when = match simple {
                true => self.integer(scope, depth.min(1)),
                false => self.condition(scope, depth),
            };
            let then = self.integer(scope, depth);
            piece = piece.then(" WHEN ").with(when).then(" THEN ").with_or_replaced_by(then);
        }
        if self.chance.percent(75) {
            piece = piece.then(" ELSE ").with_or_replaced_by(self.integer(scope, depth));
        }
        piece.then(" END")
    }

    /// Returns a scalar subquery.
    fn scalar(&mut self, scope: &Scope, depth: usize) -> SqlNode {
        self.subqueries_left -= 1;
        let (table, name) = (self.table(), self.new_name());
        let mut inner = scope.clone();
        inner.push(name.clone());
        let from = format!(" FROM {table} AS {name}");
        match self.chance.below(12) {
            0 => SqlNode::text("(SELECT ").with(self.integer(scope, depth)).then(")"),
            1..=4 if self.calm == 0 => {
                let function = *self.chance.one_of(&["sum", "max", "count", "min"]);
                let argument = self.integer(&inner, depth);
                let piece = SqlNode::text(format!("(SELECT {function}(")).with(argument);
                let piece = match self.chance.percent(25) {
                    true => {
                        let filter = self.condition(&inner, depth.min(1));
                        piece
                            .then(")")
                            .maybe(SqlNode::text(" FILTER (WHERE ").with(filter).then(")"))
                    }
                    false => piece.then(")"),
                };
                let condition = self.correlated(scope, &inner, depth);
                piece.then("::int").then(from).maybe(condition).then(")")
            }
            1..=9 => {
                let value = self.integer(&inner, depth);
                let key = match scope.is_empty() || self.chance.percent(20) {
                    true => format!(" WHERE {name}.k = {}", self.chance.between(0, 4)),
                    false => {
                        let outer = self.column(scope);
                        format!(" WHERE {name}.k = {outer}")
                    }
                };
                SqlNode::text("(SELECT ").with(value).then(from + &key).then(")")
            }
            10 => {
                let value = self.without_failures(|this| this.integer(&inner, depth));
                let order = format!(" ORDER BY {name}.k LIMIT 1)");
                SqlNode::text("(SELECT ").with(value).then(from + &order)
            }
            _ if self.calm > 0 => SqlNode::text(self.column(scope)),
            _ => SqlNode::text("(SELECT ").with(self.integer(&inner, depth)).then(from).then(")"),
        }
    }

    /// Returns a WHERE clause for a subquery.
    fn correlated(&mut self, scope: &Scope, inner: &Scope, depth: usize) -> SqlNode {
        let name = inner.last().unwrap();
        match self.chance.below(4) {
            0 => SqlNode::default(),
            1 => {
                let condition = self.without_failures(|this| this.condition(inner, depth.min(1)));
                SqlNode::text(" WHERE ").with(condition)
            }
            _ if scope.is_empty() => SqlNode::default(),
            _ => {
                let column = *self.chance.one_of(&COLUMNS);
                let outer = self.column(scope);
                SqlNode::text(format!(" WHERE {name}.{column} = {outer}"))
            }
        }
    }

    fn condition(&mut self, scope: &Scope, depth: usize) -> SqlNode {
        self.any_condition(scope, depth).or_text("true").or_text("false")
    }

    fn any_condition(&mut self, scope: &Scope, depth: usize) -> SqlNode {
        let below = depth.saturating_sub(1);
        let operator = *self.chance.one_of(&["=", "<>", "<", ">="]);
        match self.chance.below(if depth == 0 { 3 } else { 16 }) {
            0..=2 => infix(self.integer(scope, below), operator, self.integer(scope, below)),
            3..=7 => {
                let word = *self.chance.one_of(&["AND", "OR"]);
                infix(self.condition(scope, below), word, self.condition(scope, below))
            }
            8 => SqlNode::text("(NOT ").with_or_replaced_by(self.condition(scope, below)).then(")"),
            9 => {
                let test = *self.chance.one_of(&["IS NULL", "IS NOT NULL"]);
                SqlNode::text("(").with(self.integer(scope, below)).then(format!(" {test})"))
            }
            10 if !scope.is_empty() => {
                let not = *self.chance.one_of(&["", " NOT"]);
                // PostgreSQL computes the operand again for each item, and constants first.
                let value = self.without_failures(|this| this.integer(scope, below));
                let items = (0..=self.chance.below(2)).map(|_| {
                    let item = self.without_failures(|this| this.integer(scope, below));
                    let of_row = self.of_row(scope);
                    infix(item, "+", SqlNode::text(format!("0 * {of_row}")))
                });
                let items = items.collect();
                let piece = SqlNode::text("(").with(value).then(format!("{not} IN ("));
                piece.list(items, ", ").then("))")
            }
            _ if self.subqueries_left > 0 => self.subquery_condition(scope, below),
            _ => {
                let column = self.column(scope);
                SqlNode::text(format!("({column} {operator} 1)"))
            }
        }
    }

    fn subquery_condition(&mut self, scope: &Scope, depth: usize) -> SqlNode {
        self.subqueries_left -= 1;
        let (table, name) = (self.table(), self.new_name());
        let mut inner = scope.clone();
        inner.push(name.clone());
        let from = format!(" FROM {table} AS {name}");
        let not = *self.chance.one_of(&["", "NOT "]);
        let condition = self.correlated(scope, &inner, depth);
        if self.chance.percent(40) {
            let query = SqlNode::text(format!("({not}EXISTS (SELECT 1")).then(from);
            return query.maybe(condition).then("))");
        }
        // One match is enough; the plan determines how many rows are read.
        let (value, own) =
            self.without_failures(|this| (this.integer(scope, depth), this.integer(&inner, depth)));
        let operator = *self.chance.one_of(&["= ANY", "= ANY", "<> ALL", "< ANY", ">= ALL"]);
        let piece = SqlNode::text("(").with(value).then(format!(" {operator} (SELECT "));
        piece.with(own).then(from).maybe(condition).then("))")
    }

    /// Returns a WHERE clause with one condition that may fail.
    fn filter(&mut self, scope: &Scope) -> SqlNode {
        match self.chance.below(3) {
            // IS TRUE prevents the reordering of conjuncts.
            0 => SqlNode::text(" WHERE (").with(self.condition(scope, 2)).then(") IS TRUE"),
            1 => SqlNode::text(format!(" WHERE {} > 0", self.of_row(scope))),
            _ => SqlNode::default(),
        }
    }

    fn items(&mut self, scope: &Scope, depth: usize) -> Vec<SqlNode> {
        (0..=self.chance.below(2)).map(|_| self.integer(scope, depth)).collect()
    }

    fn ordered_query(&mut self) -> (SqlNode, bool) {
        let (table, name) = (self.table(), self.new_name());
        let scope = vec![name.clone()];
        let mut items = vec![SqlNode::text(format!("{name}.k"))];
        items.extend(self.items(&scope, 3));
        let piece =
            SqlNode::text("SELECT ").list(items, ", ").then(format!(" FROM {table} AS {name}"));
        let piece = piece.maybe(self.filter(&scope));
        match self.chance.below(5) {
            0 | 1 => (piece, false),
            2 => {
                let key = self.integer(&scope, 2);
                let order = SqlNode::text(" ORDER BY (0 + ").with(key).then(format!("), {name}.k"));
                (piece.with(order), true)
            }
            _ => {
                let column = *self.chance.one_of(&COLUMNS);
                let count = self.chance.below(4);
                let order = format!(" ORDER BY {name}.{column}, {name}.k");
                let limit = SqlNode::text(format!(" LIMIT {count}"));
                (piece.with(SqlNode::text(order).maybe(limit)), true)
            }
        }
    }

    fn joined(&mut self) -> SqlNode {
        let (one, other) = (self.table(), self.table());
        let scope: Scope = vec![self.new_name(), self.new_name()];
        // PostgreSQL removes the join of an unused table.
        let mut items = vec![SqlNode::text(format!("{}.k + {}.k", scope[0], scope[1]))];
        items.extend(self.items(&scope, 2));
        let kind = *self.chance.one_of(&["JOIN", "LEFT JOIN", "LEFT JOIN"]);
        let from = format!(
            " FROM {one} AS {a} {kind} {other} AS {b} ON {a}.k = {b}.k",
            a = scope[0],
            b = scope[1]
        );
        let mut piece = SqlNode::text("SELECT ").list(items, ", ").then(from);
        if self.chance.percent(30) {
            // Over both sides, so that it cannot be computed for rows of one side.
            let both = format!("(CASE WHEN {}.k = {}.k THEN ", scope[0], scope[1]);
            let condition = self.condition(&scope, 2);
            piece = piece.maybe(SqlNode::text(" AND ").then(both).with(condition).then(" END)"));
        }
        piece
    }

    fn grouped(&mut self) -> SqlNode {
        let (table, name) = (self.table(), self.new_name());
        let scope = vec![name.clone()];
        let key = format!("{name}.{}", self.chance.one_of(&COLUMNS));
        let grouped = self.chance.percent(70);
        let mut items = Vec::new();
        for _ in 0..=self.chance.below(2) {
            let aggregate = self.aggregate(&scope);
            let item = match self.chance.below(3) {
                0 => aggregate,
                1 => {
                    let value = self.integer(&Vec::new(), 2);
                    let piece = SqlNode::text("CASE WHEN ").with(aggregate).then(" > 1 THEN ");
                    piece.with_or_replaced_by(value).then(" END")
                }
                _ => {
                    let value = self.integer(&Vec::new(), 2);
                    SqlNode::text("coalesce(")
                        .with(aggregate)
                        .then(", ")
                        .with_or_replaced_by(value)
                        .then(")")
                }
            };
            items.push(item);
        }
        let piece = SqlNode::text("SELECT ").list(items, ", ");
        let mut piece = piece.then(format!(" FROM {table} AS {name}")).maybe(self.filter(&scope));
        if grouped {
            piece = piece.then(format!(" GROUP BY {key}"));
        }
        if self.chance.percent(30) {
            let aggregate = self.aggregate(&scope);
            let having = SqlNode::text(" HAVING ").with(aggregate).then(" >= 1");
            piece = piece.maybe(having);
        }
        piece
    }

    fn aggregate(&mut self, scope: &Scope) -> SqlNode {
        let function = *self.chance.one_of(&["sum", "max", "count", "min"]);
        let piece = SqlNode::text(format!("{function}(")).with(self.integer(scope, 2)).then(")");
        let piece = match self.chance.percent(40) {
            true => {
                let filter = self.condition(scope, 2);
                piece.maybe(SqlNode::text(" FILTER (WHERE ").with(filter).then(")"))
            }
            false => piece,
        };
        piece.then("::int")
    }

    fn of_values(&mut self) -> SqlNode {
        let rows = (0..=self.chance.below(3))
            .map(|_| SqlNode::text("(").with(self.integer(&Vec::new(), 3)).then(", 1)"));
        let rows = rows.collect();
        SqlNode::text("VALUES ").list(rows, ", ")
    }

    fn subquery_in_from(&mut self) -> SqlNode {
        let (table, name, outer) = (self.table(), self.new_name(), self.new_name());
        let scope = vec![name.clone()];
        let value = self.integer(&scope, 2);
        let inner = SqlNode::text(format!("SELECT {name}.k, {name}.x, "))
            .with(value)
            .then(format!(" AS y, {name}.t FROM {table} AS {name}"));
        let reader = vec![outer.clone()];
        let items = self.items(&reader, 2);
        let query = SqlNode::text("SELECT ").list(items, ", ").then(" FROM (").with(inner);
        query.then(format!(") AS {outer}")).maybe(self.filter(&reader))
    }

    fn set_operation(&mut self) -> SqlNode {
        let mut side = || {
            let (table, name) = (self.table(), self.new_name());
            let item = self.integer(&vec![name.clone()], 2);
            SqlNode::text("SELECT ").with(item).then(format!(" FROM {table} AS {name}"))
        };
        let (left, right) = (side(), side());
        let word = *self.chance.one_of(&["UNION ALL", "UNION", "EXCEPT", "INTERSECT"]);
        SqlNode::default()
            .with_or_replaced_by(left)
            .then(format!(" {word} "))
            .with_or_replaced_by(right)
    }

    fn change(&mut self) -> GeneratedStatement {
        let table = *self.chance.one_of(&["e0", "e1"]);
        let name = "target".to_owned();
        let scope = vec![name];
        let piece = match self.chance.below(6) {
            0 | 1 => {
                let set = SqlNode::text("x = ").with(self.integer(&scope, 3));
                let more = SqlNode::text("y = ").with(self.integer(&scope, 2));
                let piece = SqlNode::text(format!("UPDATE {table} AS target SET "));
                piece.list(vec![set, more], ", ").maybe(self.filter(&scope))
            }
            2 => {
                let piece = SqlNode::text(format!("DELETE FROM {table} AS target"));
                piece.then(" WHERE (").with(self.condition(&scope, 3)).then(") IS TRUE")
            }
            3 => {
                let (source, name) = (self.table(), self.new_name());
                let inner = vec![name.clone()];
                let value = self.integer(&inner, 3);
                let piece = SqlNode::text(format!("INSERT INTO {table} SELECT {name}.k + 100, "));
                let piece = piece.with(value).then(format!(" FROM {source} AS {name}"));
                piece.maybe(self.filter(&inner))
            }
            4 => {
                let rows = (0..=self.chance.below(3)).map(|at| {
                    let value = self.integer(&Vec::new(), 3);
                    SqlNode::text(format!("({}, ", 100 + at)).with(value).then(")")
                });
                let rows = rows.collect();
                SqlNode::text(format!("INSERT INTO {table} (k, x) VALUES ")).list(rows, ", ")
            }
            _ => {
                let set = self.integer(&vec!["target".to_owned(), "excluded".to_owned()], 2);
                let piece = SqlNode::text(format!(
                    "INSERT INTO {table} AS target (k, x) VALUES (1, 5), (200, 6) \
                     ON CONFLICT (k) DO UPDATE SET x = "
                ));
                let condition = self.condition(&scope, 2);
                piece.with(set).maybe(SqlNode::text(" WHERE (").with(condition).then(") IS TRUE"))
            }
        };
        let piece = match self.chance.percent(25) {
            true => {
                let returned = self.integer(&scope, 2);
                piece.maybe(SqlNode::text(" RETURNING ").with(returned))
            }
            false => piece,
        };
        GeneratedStatement { piece, ordered: false, changes: Some(table.to_owned()) }
    }
}
