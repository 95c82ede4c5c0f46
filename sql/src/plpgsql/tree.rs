//! Statement tree of a PL/pgSQL body.

use std::sync::Arc;

use crate::ast::{FetchDirection, TargetStep, TypeName};
use crate::parser::ParsedStatement;
use crate::plpgsql::names::{Names, Place};

/// A body.
#[derive(Debug)]
pub struct Body {
    /// The variables, by number.
    pub variables: Vec<Variable>,
    /// Their names.
    pub names: Names,
    /// The number of SQL fragments.
    pub fragment_count: usize,
    /// `#variable_conflict`
    pub conflict: Option<Conflict>,
    /// The number of the variable `found`.
    pub found: usize,
    /// True if it contains COMMIT or ROLLBACK.
    pub ends_transactions: bool,
    /// The statements.
    pub block: Step,
}

/// The resolution of a name that is both a variable and a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
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
    pub default: Option<Fragment>,
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
    pub query: Fragment,
    /// `SCROLL`, `NO SCROLL`
    pub scroll: Option<bool>,
}

/// An SQL fragment.
#[derive(Debug, Clone)]
pub struct Fragment {
    /// Its number in the body.
    pub number: usize,
    /// Its text.
    pub text: String,
    /// The position of its first character in the body, from 1.
    pub position: usize,
    /// The position that determines the visible variables.
    pub place: Place,
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
pub struct Step {
    /// The line, from 1.
    pub line: u32,
    /// The statement.
    pub action: Action,
}

/// A target of an assignment: a variable, or a part of one.
#[derive(Debug, Clone)]
pub struct Target {
    /// The variable.
    pub variable: usize,
    /// The path to the part.
    pub path: Vec<TargetStep>,
}

/// `INTO`
#[derive(Debug, Clone)]
pub struct IntoClause {
    /// The targets of the columns. The type of a single target determines whether it is a row.
    pub targets: Vec<Target>,
    /// `STRICT`: exactly one row.
    pub strict: bool,
}

/// A statement.
#[derive(Debug)]
pub enum Action {
    /// `BEGIN … END`
    Block(Block),
    /// `target := value`
    Assign {
        /// The target.
        target: Target,
        /// The value.
        value: Fragment,
    },
    /// `IF`
    If {
        /// The conditions, with their statements.
        branches: Vec<(Fragment, Vec<Step>)>,
        /// `ELSE`
        otherwise: Vec<Step>,
    },
    /// `CASE`
    Case {
        /// The variable of the operand, and the operand.
        operand: Option<(usize, Fragment)>,
        /// The conditions, with their statements.
        branches: Vec<(Fragment, Vec<Step>)>,
        /// `ELSE`
        otherwise: Option<Vec<Step>>,
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
        condition: Option<Fragment>,
    },
    /// `RETURN`
    Return(Option<Fragment>),
    /// `RETURN NEXT`
    ReturnNext(Option<Fragment>),
    /// `RETURN QUERY`
    ReturnQuery(Query),
    /// `RAISE`
    Raise(Raise),
    /// `ASSERT`
    Assert(Fragment, Option<Fragment>),
    /// An SQL statement.
    Sql(Fragment, Option<IntoClause>),
    /// `PERFORM`
    Perform(Fragment),
    /// `CALL`, with the targets of its output arguments.
    Call(Fragment, CallTargets),
    /// `EXECUTE`
    Execute(Dynamic, Option<IntoClause>),
    /// `GET DIAGNOSTICS`
    Diagnostics {
        /// `STACKED`
        stacked: bool,
        /// The targets with their items.
        items: Vec<(Target, Diagnostic)>,
    },
    /// `OPEN`
    Open(Open),
    /// `FETCH`
    Fetch {
        /// The variable with the cursor.
        cursor: usize,
        /// The direction and count.
        direction: Direction,
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
pub type CallTargets = Vec<Option<Target>>;

/// `BEGIN … END`
#[derive(Debug)]
pub struct Block {
    /// `<<label>>`
    pub label: Option<String>,
    /// The variables to initialise.
    pub declared: Vec<usize>,
    /// The statements.
    pub body: Vec<Step>,
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
    pub branches: Vec<(Vec<Condition>, Vec<Step>)>,
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
    pub over: Over,
    /// The statements.
    pub body: Vec<Step>,
}

/// The iteration of a loop.
#[derive(Debug)]
pub enum Over {
    /// `LOOP`
    Forever,
    /// `WHILE`
    While(Fragment),
    /// `FOR i IN low..high`
    Range {
        /// The variable.
        variable: usize,
        /// The first number.
        low: Fragment,
        /// The last one.
        high: Fragment,
        /// `BY`
        step: Option<Fragment>,
        /// `REVERSE`
        reverse: bool,
    },
    /// `FOR r IN query`
    Rows(IntoClause, Query),
    /// `FOR r IN cursor`
    Cursor {
        /// The variable of the row.
        row: usize,
        /// The cursor.
        cursor: usize,
        /// Its arguments, by number of the argument.
        arguments: Vec<(usize, Fragment)>,
    },
    /// `FOREACH x IN ARRAY`
    Elements {
        /// The targets.
        targets: IntoClause,
        /// `SLICE`
        slice: u32,
        /// The array.
        array: Fragment,
    },
}

/// A query that returns rows.
#[derive(Debug)]
pub enum Query {
    /// A static query.
    Fixed(Fragment),
    /// `EXECUTE`
    Dynamic(Dynamic),
}

/// `EXECUTE text USING values`
#[derive(Debug)]
pub struct Dynamic {
    /// The text.
    pub text: Fragment,
    /// The values.
    pub using: Vec<Fragment>,
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
    pub arguments: Vec<Fragment>,
    /// `USING`
    pub options: Vec<(RaiseOption, Fragment)>,
}

impl Raise {
    /// Returns whether it has no arguments: the current error is raised again.
    pub fn is_bare(&self) -> bool {
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
pub struct Open {
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
    Bound(Vec<(usize, Fragment)>),
    /// `FOR query`
    Query(Query),
}

/// The direction of FETCH.
#[derive(Debug)]
pub enum Direction {
    /// A direction with a constant count, or none.
    Fixed(FetchDirection),
    /// `FORWARD`, `BACKWARD`, `ABSOLUTE` and `RELATIVE` with an expression.
    Counted(CountedDirection, Fragment),
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

impl Step {
    /// Returns the name of the statement in CONTEXT.
    pub fn name(&self) -> &'static str {
        match &self.action {
            Action::Block(_) => "statement block",
            Action::Assign { .. } => "assignment",
            Action::If { .. } => "IF",
            Action::Case { .. } => "CASE",
            Action::Loop(of) => match &of.over {
                Over::Forever => "LOOP",
                Over::While(_) => "WHILE",
                Over::Range { .. } => "FOR with integer loop variable",
                Over::Rows(_, Query::Fixed(_)) => "FOR over SELECT rows",
                Over::Rows(_, Query::Dynamic(_)) => "FOR over EXECUTE statement",
                Over::Cursor { .. } => "FOR over cursor",
                Over::Elements { .. } => "FOREACH over array",
            },
            Action::Leave { continues, .. } => ["EXIT", "CONTINUE"][usize::from(*continues)],
            Action::Return(_) => "RETURN",
            Action::ReturnNext(_) => "RETURN NEXT",
            Action::ReturnQuery(_) => "RETURN QUERY",
            Action::Raise(_) => "RAISE",
            Action::Assert(..) => "ASSERT",
            Action::Sql(..) => "SQL statement",
            Action::Perform(_) => "PERFORM",
            Action::Call(..) => "CALL",
            Action::Execute(..) => "EXECUTE",
            Action::Diagnostics { stacked: false, .. } => "GET DIAGNOSTICS",
            Action::Diagnostics { .. } => "GET STACKED DIAGNOSTICS",
            Action::Open(_) => "OPEN",
            Action::Fetch { into, .. } => {
                if into.is_some() {
                    "FETCH"
                } else {
                    "MOVE"
                }
            }
            Action::Close(_) => "CLOSE",
            Action::End { commits, .. } => {
                if *commits {
                    "COMMIT"
                } else {
                    "ROLLBACK"
                }
            }
            Action::Nothing => "NULL",
        }
    }
}
