//! The state of binding: one level for each query around the expression at hand.
//!
//! Expressions of a level are bound over its base row. What is not there yet, because a plan node
//! below must first compute it, is a column with an index beyond every real one:
//!
//! * [`AGGREGATE`] + n: the nth aggregate of the level;
//! * [`GROUPING`] + n: the nth call of GROUPING of the level;
//! * [`WINDOW`] + n: the nth call of a window function of the level;
//! * [`SET`] + n: the value of the nth call of a function that returns a set;
//! * [`SUBQUERY`] + n: the value of the nth subquery of the level;
//! * [`SUBQUERY_COLUMN`] + n, in a comparison of IN, ANY or ALL: column n of the subquery.
//!
//! [`Rows::place`](crate::binder::rows) replaces them by real ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use ahash::AHashMap;
use types::DataType;
use types::aggregate::Aggregate;
use types::expr::Expr;

use crate::ast::{FrameUnits, NamedWindow};
use crate::binder::function_body::Frame;
use crate::binder::named::NamedRows;
use crate::binder::notes::Notes;
use crate::binder::parameters::Parameters;
use crate::binder::scope::Scope;
use crate::binder::stored_literals::LiteralSettler;
use crate::binder::system::{SessionConstants, SystemCatalog};
use crate::binder::variables::{VariableScope, VariableUse};
use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::catalog::record::ViewRelation;
use crate::catalog::view::View;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{
    ApplyKind, CurrentRow, CursorTable, Logical, Origin, SetFunction, SortKey, WindowFunction,
};

/// See the module's header.
pub(super) const AGGREGATE: usize = 1 << 40;
/// See the module's header.
pub(super) const GROUPING: usize = AGGREGATE + (1 << 38);
/// See the module's header.
pub(super) const WINDOW: usize = AGGREGATE + (1 << 39);
/// See the module's header.
pub(super) const SET: usize = WINDOW + (1 << 38);
/// See the module's header.
pub(super) const SUBQUERY: usize = 1 << 41;
/// See the module's header.
pub(super) const SUBQUERY_COLUMN: usize = 1 << 42;

/// Where an expression stands, for what it may hold and for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    Select,
    Where,
    Having,
    OrderBy,
    GroupBy,
    DistinctOn,
    JoinOn,
    Limit,
    Offset,
    Values,
    MergeWhen,
    /// The only row of INSERT … VALUES.
    ValuesRow,
    Set,
    Returning,
    FunctionInFrom,
    /// A query in FROM that names what is beside it.
    QueryInFrom,
    Call,
    SystemTime,
    Filter,
    /// An offset of a window's frame.
    Frame(FrameUnits),
    /// An expression without a query around it.
    Table(TableClause),
}

/// What an expression is for that is part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableClause {
    /// A CHECK, of a table or a domain.
    Check,
    /// A DEFAULT, of a column, a domain or a parameter.
    Default,
    /// What makes the value of a generated column.
    Generation,
    /// A key of an index.
    IndexExpression,
    /// The condition of a partial index.
    IndexPredicate,
    /// USING of ALTER COLUMN … TYPE.
    Transform,
    /// A value of EXECUTE.
    ExecuteParameter,
    /// A value of SPLIT ON.
    SplitValue,
    /// The value that CYCLE puts into its column.
    CycleMark,
    /// The default of a function's parameter.
    Parameter,
    /// WHERE of COPY FROM.
    CopyWhere,
    /// Something that the catalog has; it was checked when it was made.
    Stored,
}

impl TableClause {
    /// Returns what PostgreSQL calls one in messages.
    fn singular(self) -> &'static str {
        match self {
            TableClause::Check => "check constraint",
            TableClause::Default | TableClause::Parameter => "DEFAULT expression",
            TableClause::Generation => "column generation expression",
            TableClause::IndexExpression => "index expression",
            TableClause::IndexPredicate => "index predicate",
            TableClause::Transform => "transform expression",
            TableClause::ExecuteParameter => "EXECUTE parameter",
            TableClause::SplitValue => "SPLIT ON value",
            TableClause::CycleMark => "CYCLE mark value",
            TableClause::CopyWhere => "COPY FROM WHERE condition",
            TableClause::Stored => "stored expression",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            TableClause::Check => "check constraints",
            TableClause::Default | TableClause::Parameter => "DEFAULT expressions",
            TableClause::Generation => "column generation expressions",
            TableClause::IndexExpression => "index expressions",
            TableClause::IndexPredicate => "index predicates",
            TableClause::Transform => "transform expressions",
            TableClause::ExecuteParameter => "EXECUTE parameters",
            TableClause::SplitValue => "SPLIT ON values",
            TableClause::CycleMark => "CYCLE mark values",
            TableClause::CopyWhere => "COPY FROM WHERE conditions",
            TableClause::Stored => "stored expressions",
        }
    }

    /// Returns the words for the condition in messages about its type.
    pub(super) fn condition(self) -> &'static str {
        match self {
            TableClause::IndexPredicate | TableClause::CopyWhere => "WHERE",
            _ => "CHECK",
        }
    }

    /// Returns an error in the words of the clause: names of columns have no place in a DEFAULT.
    pub(super) fn wording(self, error: Error) -> Error {
        let is_name = [sqlstate::UNDEFINED_COLUMN, sqlstate::UNDEFINED_TABLE];
        if self == TableClause::Default && is_name.contains(&error.sqlstate.as_ref()) {
            let message = "cannot use column reference in DEFAULT expression";
            let position = error.position;
            return Error { position, ..Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message) };
        }
        error
    }
}

impl Clause {
    /// Returns the name that PostgreSQL gives it in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Clause::Select => "SELECT",
            Clause::Where => "WHERE",
            Clause::Having => "HAVING",
            Clause::OrderBy => "ORDER BY",
            Clause::GroupBy => "GROUP BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::JoinOn => "JOIN conditions",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::Values | Clause::ValuesRow => "VALUES",
            Clause::MergeWhen => "MERGE WHEN conditions",
            Clause::Set => "UPDATE",
            Clause::Returning => "RETURNING",
            Clause::FunctionInFrom => "functions in FROM",
            Clause::QueryInFrom => "FROM clause of their own query level",
            Clause::Call => "CALL arguments",
            Clause::SystemTime => "FOR SYSTEM_TIME",
            Clause::Filter => "FILTER",
            Clause::Frame(FrameUnits::Rows) => "window ROWS",
            Clause::Frame(FrameUnits::Range) => "window RANGE",
            Clause::Frame(FrameUnits::Groups) => "window GROUPS",
            Clause::Table(clause) => clause.plural(),
        }
    }

    /// Returns whether window functions may stand here.
    pub(super) fn allows_windows(self) -> bool {
        matches!(self, Clause::Select | Clause::OrderBy | Clause::DistinctOn)
    }

    /// Returns whether functions that return sets may stand here.
    pub(super) fn allows_sets(self) -> bool {
        matches!(
            self,
            Clause::Select
                | Clause::OrderBy
                | Clause::GroupBy
                | Clause::DistinctOn
                | Clause::ValuesRow
        )
    }

    /// Returns whether aggregates of the level itself may stand here.
    pub(super) fn allows_aggregates(self) -> bool {
        matches!(self, Clause::Select | Clause::Having | Clause::OrderBy | Clause::DistinctOn)
    }

    /// Returns whether it matters which columns of the level itself are named here.
    pub(super) fn minds_columns(self) -> bool {
        self.allows_aggregates()
            || matches!(self, Clause::Limit | Clause::Offset | Clause::Frame(_))
    }
}

/// A subquery in an expression.
#[derive(Debug, Clone)]
pub(super) struct SubqueryUse {
    /// The subquery.
    pub(super) plan: Logical,
    /// Parameter and the value it takes, over the level's row.
    pub(super) bindings: Vec<(usize, Expr)>,
    /// What it adds.
    pub(super) kind: ApplyKind,
    /// Where it stands.
    pub(super) position: usize,
}

impl SubqueryUse {
    /// Calls `visit` on each expression that it takes from the row of its level.
    pub(super) fn for_each_taken(&self, visit: &mut dyn FnMut(&Expr)) {
        self.bindings.iter().for_each(|(_, value)| visit(value));
        if let ApplyKind::Any { comparison } | ApplyKind::All { comparison } = &self.kind {
            visit(comparison);
        }
    }
}

/// Partitions and order that calls of a level are over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundWindow {
    /// The partitions.
    pub(super) partition_by: Vec<Expr>,
    /// The order.
    pub(super) order_by: Vec<SortKey>,
}

impl BoundWindow {
    /// Returns the expressions of partitions and order.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.partition_by.iter().chain(self.order_by.iter().map(|key| &key.expression))
    }

    /// Returns the expressions of partitions and order.
    pub(super) fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let order_by = self.order_by.iter_mut().map(|key| &mut key.expression);
        self.partition_by.iter_mut().chain(order_by)
    }
}

/// A call and its window, by position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WindowCall {
    /// The window.
    pub(super) window: usize,
    /// The call.
    pub(super) function: WindowFunction,
}

/// A call of a function that returns a set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SetUse {
    /// The call.
    pub(super) function: SetFunction,
    /// How many such calls stand in its arguments, one in the other.
    pub(super) depth: usize,
}

/// How the columns of a level can be named from what stands in FROM behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The level is a query: its columns can be named from inside of it.
    Query,
    /// They are of FROM, and what is being bound is not LATERAL.
    Hidden,
    /// They are of FROM, and what is being bound is LATERAL.
    Lateral,
}

/// Why what is LATERAL cannot name columns of what is beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Barred {
    /// They are of the side of an outer join that keeps all rows of the other.
    Optional,
    /// They are of the table that the statement changes.
    Changed,
}

/// A call of GROUPING.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GroupingCall {
    /// What is asked of, over the base row, and where it stands.
    pub(super) arguments: Vec<(Expr, usize)>,
}

/// A column of the level's own base row that an expression named outside of aggregates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    /// The column of the base row.
    pub(super) index: usize,
    /// Where the name stands.
    pub(super) position: usize,
    /// Whether it stands in a subquery of the level.
    pub(super) from_subquery: bool,
}

/// One query that is being bound.
#[derive(Debug)]
pub(super) struct Level {
    /// What names mean.
    pub(super) scope: Scope,
    /// The clause at hand.
    pub(super) clause: Clause,
    /// Whether the expression at hand is inside an aggregate's argument.
    pub(super) in_aggregate: bool,
    /// The aggregates met.
    pub(super) aggregates: Vec<Aggregate>,
    /// The calls of GROUPING met.
    pub(super) groupings: Vec<GroupingCall>,
    /// What stands against a window function in the expression at hand, if it is inside of one.
    pub(super) in_window: Option<&'static str>,
    /// What stands against a function that returns a set in the expression at hand.
    pub(super) refuses_sets: Option<&'static str>,
    /// The calls of functions that return sets met.
    pub(super) set_uses: Vec<SetUse>,
    /// Who can name the columns.
    pub(super) reach: Reach,
    /// Why what is LATERAL cannot name the columns, if it cannot.
    pub(super) barred: Option<Barred>,
    /// The WINDOW clause.
    pub(super) named_windows: Vec<NamedWindow>,
    /// The windows met.
    pub(super) windows: Vec<BoundWindow>,
    /// The calls of window functions met.
    pub(super) window_calls: Vec<WindowCall>,
    /// The subqueries met.
    pub(super) subqueries: Vec<SubqueryUse>,
    /// Their positions by their [likeness](SubqueryUse::likeness).
    pub(super) subqueries_like: AHashMap<u64, Vec<usize>>,
    /// Columns that the subquery at hand takes from this level.
    pub(super) open_bindings: Vec<(usize, Expr)>,
    /// Columns named in a clause that [minds](Clause::minds_columns).
    pub(super) references: Vec<Reference>,
}

impl Level {
    fn new(scope: Scope, clause: Clause) -> Level {
        Level {
            scope,
            clause,
            in_aggregate: false,
            aggregates: Vec::new(),
            groupings: Vec::new(),
            in_window: None,
            refuses_sets: None,
            set_uses: Vec::new(),
            reach: Reach::Query,
            barred: None,
            named_windows: Vec::new(),
            windows: Vec::new(),
            window_calls: Vec::new(),
            subqueries: Vec::new(),
            subqueries_like: AHashMap::new(),
            open_bindings: Vec::new(),
            references: Vec::new(),
        }
    }

    /// Notes a call of GROUPING and returns what stands for it.
    pub(super) fn add_grouping(&mut self, call: GroupingCall) -> Expr {
        self.groupings.push(call);
        let data_type = DataType::Int4;
        Expr::Column { index: GROUPING + self.groupings.len() - 1, data_type }
    }

    /// Returns an error if a subquery was met in what is part of a definition.
    pub(super) fn refuse_subqueries_of(&self, clause: TableClause) -> Result<()> {
        let Some(subquery) = self.subqueries.first() else { return Ok(()) };
        let message = format!("cannot use subquery in {}", clause.singular());
        Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message).at(subquery.position))
    }

    /// Returns an error if a subquery was met, where there is no place for one.
    pub(super) fn refuse_subqueries(&self, place: &str) -> Result<()> {
        match self.subqueries.first() {
            None => Ok(()),
            Some(subquery) => Err(Error::not_supported(
                format!("a subquery in {place}"),
                "Compute the value in a statement of its own and pass it.",
            )
            .at(subquery.position)),
        }
    }
}

/// What is noted while the definition of a view is bound.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Tables and views named; what they use is not filled in yet.
    pub(super) relations: Vec<ViewRelation>,
    /// Columns of tables that were named.
    pub(super) used: BTreeSet<(Origin, usize)>,
    /// Each `*`: where it or its qualifier stands, and the columns it means.
    pub(super) stars: Vec<(usize, String)>,
    /// Tables, by number, whose primary key determines columns that are not grouped by.
    pub(super) determining: BTreeSet<u32>,
}

/// The binder of one statement.
pub(super) struct Binder<'a> {
    /// The tables.
    pub(super) catalog: &'a Catalog,
    /// System views and table functions.
    pub(super) system: &'a dyn SystemCatalog,
    /// Values of `current_user` and its kin.
    pub(super) constants: &'a SessionConstants,
    /// The parameters.
    pub(super) parameters: Parameters,
    /// The queries around the expression at hand, outermost first.
    pub(super) levels: Vec<Level>,
    /// What the definition of a view names, while one is bound.
    pub(super) trace: Option<Trace>,
    /// What names and values of the text at hand mean, if somebody wants to know.
    pub(super) notes: Option<Notes>,
    /// What settles literals, where the text at hand is a definition.
    pub(super) settler: Option<LiteralSettler>,
    /// The view whose query is at hand, if it is one's.
    pub(super) view: Option<Arc<View>>,
    /// The first materialized view without rows that the statement reads.
    pub(super) unpopulated: Option<String>,
    /// How many views the query at hand is inside of.
    pub(super) view_depth: usize,
    /// The queries of WITH that were declared around it, and below the level at hand.
    pub(super) named: Vec<NamedRows>,
    /// How many were declared in all.
    pub(super) named_count: usize,
    /// The function whose body is at hand, if it is one's.
    pub(super) frame: Option<Frame>,
    /// The first level of the FROM clause at hand.
    pub(super) from_base: usize,
    /// The query at hand is a cursor's, and its rows are to have keys.
    pub(super) wants_keys: bool,
    /// The tables of which the rows of the cursor have keys.
    pub(super) cursor_tables: Vec<CursorTable>,
    /// The row that the statement changes, if it is a cursor's.
    pub(super) current_row: Option<CurrentRow>,
    /// The variables that the statement sees, if it is one of a procedural body.
    pub(super) variables: Option<&'a VariableScope<'a>>,
    /// The parameters that stand for them.
    pub(super) variable_uses: Vec<VariableUse>,
}

impl<'a> Binder<'a> {
    /// Returns a binder of a statement.
    pub(super) fn new(
        catalog: &'a Catalog,
        system: &'a dyn SystemCatalog,
        constants: &'a SessionConstants,
        parameters: Parameters,
    ) -> Binder<'a> {
        Binder {
            catalog,
            system,
            constants,
            parameters,
            levels: Vec::new(),
            trace: None,
            notes: None,
            settler: None,
            view: None,
            unpopulated: None,
            view_depth: 0,
            named: Vec::new(),
            named_count: 0,
            frame: None,
            from_base: 0,
            wants_keys: false,
            cursor_tables: Vec::new(),
            current_row: None,
            variables: None,
            variable_uses: Vec::new(),
        }
    }

    /// Returns where names without a schema are looked for.
    pub(super) fn search_path(&self) -> &SearchPath {
        match (&self.view, &self.frame) {
            (Some(view), _) => &view.search_path,
            (None, Some(frame)) => {
                frame.search_path().unwrap_or_else(|| self.constants.search_path())
            }
            (None, None) => self.constants.search_path(),
        }
    }

    /// Enters a query.
    pub(super) fn push_level(&mut self, scope: Scope, clause: Clause) {
        self.levels.push(Level::new(scope, clause));
    }

    /// Leaves a query.
    pub(super) fn pop_level(&mut self) -> Level {
        self.levels.pop().expect("every pop follows a push")
    }

    /// Returns the query at hand.
    pub(super) fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("expressions are bound inside a level")
    }

    /// Binds something that may name the columns of what is before it in FROM.
    pub(super) fn lateral<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let from = self.from_base.min(self.levels.len());
        self.levels[from..].iter_mut().for_each(|level| level.reach = Reach::Lateral);
        let result = bind(self);
        self.levels[from..].iter_mut().for_each(|level| level.reach = Reach::Hidden);
        result
    }

    /// Binds something inside a level of its own and returns it with the level.
    pub(super) fn within<T>(
        &mut self,
        scope: Scope,
        clause: Clause,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Level)> {
        self.push_level(scope, clause);
        let result = bind(self);
        let level = self.pop_level();
        Ok((result?, level))
    }
}

/// Returns the error of an aggregate in a clause that takes none.
pub(super) fn aggregate_not_allowed(clause: Clause) -> Error {
    let message = format!("aggregate functions are not allowed in {}", clause.name());
    Error::new(sqlstate::GROUPING_ERROR, message)
}
