//! Statement tree of a PL/pgSQL body.

use std::sync::Arc;

use crate::ast::{FetchDirection, TargetStep, TypeName};
use crate::parser::ParsedStatement;
use crate::plpgsql::scopes::{BodyScopes, ScopePosition};

/// A body.
#[derive(Debug)]
pub struct Body {
    /// The variables, by number.
    pub variables: Vec<Variable>,
    /// Their names.
    pub names: BodyScopes,
    /// The number of SQL fragments.
    pub fragment_count: usize,
    /// `#variable_conflict`
    pub conflict: Option<VariableConflict>,
    /// The number of the variable `found`.
    pub found: usize,
    /// True if it contains COMMIT or ROLLBACK.
    pub ends_transactions: bool,
    /// The statements.
    pub block: PlpgsqlStatement,
}

/// The resolution of a name that is both a variable and a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableConflict {
    /// `error`
    Error,
    /// `use_variable`
    Variable,
    /// `use_column`
    Column,
}

/// A variable.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub of: VariableType,
    /// `CONSTANT`
    pub is_constant: bool,
    /// `NOT NULL`
    pub not_null: bool,
    /// Its initial value.
    pub default: Option<SqlFragment>,
    /// The query of a bound cursor.
    pub cursor: Option<BoundCursor>,
    /// True for a parameter with fields.
    pub is_row_parameter: bool,
    /// The line of its declaration.
    pub line: u32,
}

/// The type of a variable.
#[derive(Debug, Clone)]
pub enum VariableType {
    /// The n-th parameter of the body.
    Parameter(usize),
    /// A named type, with the name as written.
    Named(TypeName, String),
    /// `t.c%TYPE` or `variable%TYPE`; true for an array of it
    Like(Vec<String>, bool),
    /// `t%ROWTYPE`
    RowOf(Vec<String>),
    /// The type of another variable.
    OfVariable(usize),
    /// `record`
    Record,
    /// `refcursor`
    Cursor,
    /// The type of the last assigned value: for the operand of CASE.
    Operand,
}

/// The query of a bound cursor.
#[derive(Debug, Clone)]
pub struct BoundCursor {
    /// The variables of its arguments.
    pub arguments: Vec<usize>,
    /// The query.
    pub query: SqlFragment,
    /// `SCROLL`, `NO SCROLL`
    pub scroll: Option<bool>,
}

/// An SQL fragment.
#[derive(Debug, Clone)]
pub struct SqlFragment {
    /// Its number in the body.
    pub number: usize,
    /// Its text.
    pub text: String,
    /// The position of its first character in the body, from 1.
    pub position: usize,
    /// The position that determines the visible variables.
    pub place: ScopePosition,
    /// Its kind.
    pub kind: FragmentKind,
    /// The offset from a position in the parsed text to one in `text`.
    pub shift: isize,
    /// The parsed statement.
    pub statement: Arc<ParsedStatement>,
}

/// The kind of an SQL fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FragmentKind {
    /// A statement.
    Statement,
    /// An expression, parsed as the query that returns it.
    Expression,
    /// An expression whose text includes the assigned variable.
    Assignment,
}

/// A statement with its line.
#[derive(Debug)]
pub struct PlpgsqlStatement {
    /// The line, from 1.
    pub line: u32,
    /// The statement.
    pub action: StatementAction,
}

/// A target of an assignment: a variable, or a part of one.
#[derive(Debug, Clone)]
pub struct AssignmentTarget {
    /// The variable.
    pub variable: usize,
    /// The path to the part.
    pub path: Vec<TargetStep>,
}

/// `INTO`
#[derive(Debug, Clone)]
pub struct IntoClause {
    /// The targets of the columns. The type of a single target determines whether it is a row.
    pub targets: Vec<AssignmentTarget>,
    /// `STRICT`: exactly one row.
    pub strict: bool,
}

/// A statement.
#[derive(Debug)]
pub enum StatementAction {
    /// `BEGIN … END`
    Block(Block),
    /// `target := value`
    Assign {
        /// The target.
        target: AssignmentTarget,
        /// The value.
        value: SqlFragment,
    },
    /// `IF`
    If {
        /// The conditions, with their statements.
        branches: Vec<(SqlFragment, Vec<PlpgsqlStatement>)>,
        /// `ELSE`
        otherwise: Vec<PlpgsqlStatement>,
    },
    /// `CASE`
    Case {
        /// The variable of the operand, and the operand.
        operand: Option<(usize, SqlFragment)>,
        /// The conditions, with their statements.
        branches: Vec<(SqlFragment, Vec<PlpgsqlStatement>)>,
        /// `ELSE`
        otherwise: Option<Vec<PlpgsqlStatement>>,
    },
    /// A loop.
    Loop(Loop),
    /// `EXIT`, `CONTINUE`
    Leave {
        /// `CONTINUE`
        continues: bool,
        /// The label of the loop or block.
        label: Option<String>,
        /// `WHEN`
        condition: Option<SqlFragment>,
    },
    /// `RETURN`
    Return(Option<SqlFragment>),
    /// `RETURN NEXT`
    ReturnNext(Option<SqlFragment>),
    /// `RETURN QUERY`
    ReturnQuery(BodyQuery),
    /// `RAISE`
    Raise(Raise),
    /// `ASSERT`
    Assert(SqlFragment, Option<SqlFragment>),
    /// An SQL statement.
    Sql(SqlFragment, Option<IntoClause>),
    /// `PERFORM`
    Perform(SqlFragment),
    /// `CALL`, with the targets of its output arguments.
    Call(SqlFragment, CallTargets),
    /// `EXECUTE`
    Execute(DynamicQuery, Option<IntoClause>),
    /// `GET DIAGNOSTICS`
    Diagnostics {
        /// `STACKED`
        stacked: bool,
        /// The targets with their items.
        items: Vec<(AssignmentTarget, Diagnostic)>,
    },
    /// `OPEN`
    Open(OpenStatement),
    /// `FETCH`
    Fetch {
        /// The variable with the cursor.
        cursor: usize,
        /// The direction and count.
        direction: ScrollDirection,
        /// The targets; none for MOVE.
        into: Option<IntoClause>,
    },
    /// `CLOSE`
    Close(usize),
    /// `COMMIT`, `ROLLBACK`
    End {
        /// `COMMIT`
        commits: bool,
        /// `AND CHAIN`
        chain: bool,
    },
    /// `NULL`
    Nothing,
}

/// The variable of each argument of CALL, if the argument is one.
pub type CallTargets = Vec<Option<AssignmentTarget>>;

/// `BEGIN … END`
#[derive(Debug)]
pub struct Block {
    /// `<<label>>`
    pub label: Option<String>,
    /// The variables to initialise.
    pub declared: Vec<usize>,
    /// The statements.
    pub body: Vec<PlpgsqlStatement>,
    /// `EXCEPTION`
    pub handlers: Option<Handlers>,
}

/// `EXCEPTION`
#[derive(Debug)]
pub struct Handlers {
    /// The variable `sqlstate`.
    pub sqlstate: usize,
    /// The variable `sqlerrm`.
    pub sqlerrm: usize,
    /// `WHEN … THEN …`
    pub branches: Vec<(Vec<Condition>, Vec<PlpgsqlStatement>)>,
}

/// A condition of an exception handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// `OTHERS`: all errors except cancellation and failed assertions.
    Others,
    /// A SQLSTATE; one that ends in three zeros stands for its class.
    Code(String),
}

/// A loop.
#[derive(Debug)]
pub struct Loop {
    /// `<<label>>`
    pub label: Option<String>,
    /// The iteration.
    pub over: LoopIteration,
    /// The statements.
    pub body: Vec<PlpgsqlStatement>,
}

/// The iteration of a loop.
#[derive(Debug)]
pub enum LoopIteration {
    /// `LOOP`
    Forever,
    /// `WHILE`
    While(SqlFragment),
    /// `FOR i IN low..high`
    Range {
        /// The variable.
        variable: usize,
        /// The first number.
        low: SqlFragment,
        /// The last one.
        high: SqlFragment,
        /// `BY`
        step: Option<SqlFragment>,
        /// `REVERSE`
        reverse: bool,
    },
    /// `FOR r IN query`
    Rows(IntoClause, BodyQuery),
    /// `FOR r IN cursor`
    Cursor {
        /// The variable of the row.
        row: usize,
        /// The cursor.
        cursor: usize,
        /// Its arguments, by number of the argument.
        arguments: Vec<(usize, SqlFragment)>,
    },
    /// `FOREACH x IN ARRAY`
    Elements {
        /// The targets.
        targets: IntoClause,
        /// `SLICE`
        slice: u32,
        /// The array.
        array: SqlFragment,
    },
}

/// A query that returns rows.
#[derive(Debug)]
pub enum BodyQuery {
    /// A static query.
    Fixed(SqlFragment),
    /// `EXECUTE`
    Dynamic(DynamicQuery),
}

/// `EXECUTE text USING values`
#[derive(Debug)]
pub struct DynamicQuery {
    /// The text.
    pub text: SqlFragment,
    /// The values.
    pub using: Vec<SqlFragment>,
}

/// `RAISE`
#[derive(Debug)]
pub struct Raise {
    /// `NOTICE` and the others; an error is `EXCEPTION`.
    pub level: RaiseLevel,
    /// The condition: name or SQLSTATE, and its code.
    pub condition: Option<(String, String)>,
    /// The format, with `%` as placeholder of arguments.
    pub format: Option<String>,
    /// The arguments.
    pub arguments: Vec<SqlFragment>,
    /// `USING`
    pub options: Vec<(RaiseOption, SqlFragment)>,
}

impl Raise {
    /// Returns whether it has no arguments: the current error is raised again.
    pub fn is_reraise(&self) -> bool {
        self.condition.is_none() && self.format.is_none() && self.options.is_empty()
    }
}

/// The level of RAISE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaiseLevel {
    /// `DEBUG`
    Debug,
    /// `LOG`
    Log,
    /// `INFO`
    Info,
    /// `NOTICE`
    Notice,
    /// `WARNING`
    Warning,
    /// `EXCEPTION`
    Exception,
}

/// An option of RAISE … USING.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaiseOption {
    /// `ERRCODE`
    Code,
    /// `MESSAGE`
    Message,
    /// `DETAIL`
    Detail,
    /// `HINT`
    Hint,
    /// `COLUMN`
    Column,
    /// `CONSTRAINT`
    Constraint,
    /// `DATATYPE`
    DataType,
    /// `TABLE`
    Table,
    /// `SCHEMA`
    Schema,
}

impl RaiseOption {
    /// Returns its keyword.
    pub fn word(self) -> &'static str {
        match self {
            RaiseOption::Code => "ERRCODE",
            RaiseOption::Message => "MESSAGE",
            RaiseOption::Detail => "DETAIL",
            RaiseOption::Hint => "HINT",
            RaiseOption::Column => "COLUMN",
            RaiseOption::Constraint => "CONSTRAINT",
            RaiseOption::DataType => "DATATYPE",
            RaiseOption::Table => "TABLE",
            RaiseOption::Schema => "SCHEMA",
        }
    }
}

/// An item of GET DIAGNOSTICS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diagnostic {
    /// `ROW_COUNT`
    RowCount,
    /// `PG_CONTEXT`
    Context,
    /// `RETURNED_SQLSTATE`
    Code,
    /// `MESSAGE_TEXT`
    Message,
    /// `PG_EXCEPTION_DETAIL`
    Detail,
    /// `PG_EXCEPTION_HINT`
    Hint,
    /// `PG_EXCEPTION_CONTEXT`
    ErrorContext,
    /// `COLUMN_NAME`
    Column,
    /// `CONSTRAINT_NAME`
    Constraint,
    /// `PG_DATATYPE_NAME`
    DataType,
    /// `TABLE_NAME`
    Table,
    /// `SCHEMA_NAME`
    Schema,
}

/// `OPEN`
#[derive(Debug)]
pub struct OpenStatement {
    /// The variable with the cursor.
    pub cursor: usize,
    /// Its query.
    pub query: OpenQuery,
    /// `SCROLL`, `NO SCROLL`
    pub scroll: Option<bool>,
}

/// The query of OPEN.
#[derive(Debug)]
pub enum OpenQuery {
    /// The arguments of a bound cursor, by number of the argument.
    Bound(Vec<(usize, SqlFragment)>),
    /// `FOR query`
    Query(BodyQuery),
}

/// The direction of FETCH.
#[derive(Debug)]
pub enum ScrollDirection {
    /// A direction with a constant count, or none.
    Fixed(FetchDirection),
    /// `FORWARD`, `BACKWARD`, `ABSOLUTE` and `RELATIVE` with an expression.
    Counted(CountedDirection, SqlFragment),
}

/// A direction with a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedDirection {
    /// `FORWARD`
    Forward,
    /// `BACKWARD`
    Backward,
    /// `ABSOLUTE`
    Absolute,
    /// `RELATIVE`
    Relative,
}

impl PlpgsqlStatement {
    /// Returns the name of the statement in CONTEXT.
    pub fn name(&self) -> &'static str {
        match &self.action {
            StatementAction::Block(_) => "statement block",
            StatementAction::Assign { .. } => "assignment",
            StatementAction::If { .. } => "IF",
            StatementAction::Case { .. } => "CASE",
            StatementAction::Loop(of) => match &of.over {
                LoopIteration::Forever => "LOOP",
                LoopIteration::While(_) => "WHILE",
                LoopIteration::Range { .. } => "FOR with integer loop variable",
                LoopIteration::Rows(_, BodyQuery::Fixed(_)) => "FOR over SELECT rows",
                LoopIteration::Rows(_, BodyQuery::Dynamic(_)) => "FOR over EXECUTE statement",
                LoopIteration::Cursor { .. } => "FOR over cursor",
                LoopIteration::Elements { .. } => "FOREACH over array",
            },
            StatementAction::Leave { continues, .. } => {
                ["EXIT", "CONTINUE"][usize::from(*continues)]
            }
            StatementAction::Return(_) => "RETURN",
            StatementAction::ReturnNext(_) => "RETURN NEXT",
            StatementAction::ReturnQuery(_) => "RETURN QUERY",
            StatementAction::Raise(_) => "RAISE",
            StatementAction::Assert(..) => "ASSERT",
            StatementAction::Sql(..) => "SQL statement",
            StatementAction::Perform(_) => "PERFORM",
            StatementAction::Call(..) => "CALL",
            StatementAction::Execute(..) => "EXECUTE",
            StatementAction::Diagnostics { stacked: false, .. } => "GET DIAGNOSTICS",
            StatementAction::Diagnostics { .. } => "GET STACKED DIAGNOSTICS",
            StatementAction::Open(_) => "OPEN",
            StatementAction::Fetch { into, .. } => {
                if into.is_some() {
                    "FETCH"
                } else {
                    "MOVE"
                }
            }
            StatementAction::Close(_) => "CLOSE",
            StatementAction::End { commits, .. } => {
                if *commits {
                    "COMMIT"
                } else {
                    "ROLLBACK"
                }
            }
            StatementAction::Nothing => "NULL",
        }
    }
}
