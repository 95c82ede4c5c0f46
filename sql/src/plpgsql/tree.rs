//! The tree of a body.

use std::sync::Arc;

use crate::ast::{FetchDirection, TargetStep, TypeName};
use crate::parser::ParsedStatement;
use crate::plpgsql::names::{Names, Place};

/// A body.
#[derive(Debug)]
pub struct Body {
    /// All its variables, by number.
    pub variables: Vec<Variable>,
    /// Their names.
    pub names: Names,
    /// How many pieces of SQL there are.
    pub fragment_count: usize,
    /// `#variable_conflict`
    pub conflict: Option<Conflict>,
    /// The number of `found`.
    pub found: usize,
    /// It has COMMIT or ROLLBACK.
    pub ends_transactions: bool,
    /// The statements.
    pub block: Step,
}

/// What a name means that is both a variable's and a column's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// That is an error.
    Error,
    /// The variable.
    Variable,
    /// The column.
    Column,
}

/// A variable.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What it is of.
    pub of: VariableType,
    /// `CONSTANT`
    pub is_constant: bool,
    /// `NOT NULL`
    pub not_null: bool,
    /// What it is at first.
    pub default: Option<Fragment>,
    /// The query that it is bound to, if it is a cursor's.
    pub cursor: Option<BoundCursor>,
    /// It is a parameter with fields.
    pub is_row_parameter: bool,
    /// Where it is declared.
    pub line: u32,
}

/// What a variable is of.
#[derive(Debug, Clone)]
pub enum VariableType {
    /// The n-th parameter of the body.
    Parameter(usize),
    /// A type, by its name; with the name as it was written.
    Named(TypeName, String),
    /// `t.c%TYPE` or `variable%TYPE`; an array of it
    Like(Vec<String>, bool),
    /// `t%ROWTYPE`
    RowOf(Vec<String>),
    /// The type of another variable.
    OfVariable(usize),
    /// `record`
    Record,
    /// `refcursor`
    Cursor,
    /// The type of what it was last given: the operand of CASE.
    Operand,
}

/// The query of a bound cursor.
#[derive(Debug, Clone)]
pub struct BoundCursor {
    /// Its arguments: variables.
    pub arguments: Vec<usize>,
    /// The query.
    pub query: Fragment,
    /// `SCROLL`, `NO SCROLL`
    pub scroll: Option<bool>,
}

/// A piece of SQL.
#[derive(Debug, Clone)]
pub struct Fragment {
    /// Its number in the body.
    pub number: usize,
    /// Its text.
    pub text: String,
    /// The character of the body that it begins with, from 1.
    pub position: usize,
    /// What it sees.
    pub place: Place,
    /// What it is.
    pub kind: FragmentKind,
    /// What is to be added to a position in the parsed text for one in `text`.
    pub shift: isize,
    /// It, parsed.
    pub statement: Arc<ParsedStatement>,
}

/// What a piece of SQL is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FragmentKind {
    /// A statement.
    Statement,
    /// An expression: the query that returns it.
    Expression,
    /// The same, with the variable that it is assigned to in its text.
    Assignment,
}

/// A statement, and the line that it stands in.
#[derive(Debug)]
pub struct Step {
    /// From 1.
    pub line: u32,
    /// What it does.
    pub action: Action,
}

/// A variable that is assigned, or a part of one.
#[derive(Debug, Clone)]
pub struct Target {
    /// The variable.
    pub variable: usize,
    /// What of it.
    pub path: Vec<TargetStep>,
}

/// `INTO`
#[derive(Debug, Clone)]
pub struct IntoClause {
    /// Where the columns go. Whether the only target is a row, its type tells.
    pub targets: Vec<Target>,
    /// `STRICT`: exactly one row.
    pub strict: bool,
}

/// What a statement does.
#[derive(Debug)]
pub enum Action {
    /// `BEGIN … END`
    Block(Block),
    /// `target := value`
    Assign {
        /// What is assigned.
        target: Target,
        /// The value.
        value: Fragment,
    },
    /// `IF`
    If {
        /// The conditions.
        branches: Vec<(Fragment, Vec<Step>)>,
        /// `ELSE`
        otherwise: Vec<Step>,
    },
    /// `CASE`
    Case {
        /// The variable with the operand, and the operand.
        operand: Option<(usize, Fragment)>,
        /// The conditions.
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
        /// Of which loop or block.
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
    /// A statement of SQL.
    Sql(Fragment, Option<IntoClause>),
    /// `PERFORM`
    Perform(Fragment),
    /// `CALL`: the places of its arguments that are variables.
    Call(Fragment, CallTargets),
    /// `EXECUTE`
    Execute(Dynamic, Option<IntoClause>),
    /// `GET DIAGNOSTICS`
    Diagnostics {
        /// `STACKED`
        stacked: bool,
        /// What goes where.
        items: Vec<(Target, Diagnostic)>,
    },
    /// `OPEN`
    Open(Open),
    /// `FETCH`
    Fetch {
        /// The variable with the cursor.
        cursor: usize,
        /// Which rows.
        direction: Direction,
        /// Where they go; nowhere for MOVE.
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

/// By argument of CALL: the variable that it is, if it is one.
pub type CallTargets = Vec<Option<Target>>;

/// `BEGIN … END`
#[derive(Debug)]
pub struct Block {
    /// `<<label>>`
    pub label: Option<String>,
    /// The variables that get their first values.
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

/// What an exception handler is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Everything but cancellation and failed assertions.
    Others,
    /// A code; of one that ends in three zeros the whole class.
    Code(String),
}

/// A loop.
#[derive(Debug)]
pub struct Loop {
    /// `<<label>>`
    pub label: Option<String>,
    /// What it goes over.
    pub over: Over,
    /// The statements.
    pub body: Vec<Step>,
}

/// What a loop goes over.
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
        /// The row.
        row: usize,
        /// The cursor.
        cursor: usize,
        /// Its arguments, by number of the argument.
        arguments: Vec<(usize, Fragment)>,
    },
    /// `FOREACH x IN ARRAY`
    Elements {
        /// What is assigned.
        targets: IntoClause,
        /// `SLICE`
        slice: u32,
        /// The array.
        array: Fragment,
    },
}

/// A query whose rows are wanted.
#[derive(Debug)]
pub enum Query {
    /// One of the body.
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
    /// A condition that is raised: name or SQLSTATE, and its code.
    pub condition: Option<(String, String)>,
    /// The text, with `%` for arguments.
    pub format: Option<String>,
    /// The arguments.
    pub arguments: Vec<Fragment>,
    /// `USING`
    pub options: Vec<(RaiseOption, Fragment)>,
}

impl Raise {
    /// Returns whether it says nothing but RAISE: the error at hand is raised again.
    pub fn is_bare(&self) -> bool {
        self.condition.is_none() && self.format.is_none() && self.options.is_empty()
    }
}

/// How much RAISE means.
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

/// What USING of RAISE gives.
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
    /// Returns its word.
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

/// What GET DIAGNOSTICS asks for.
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
    /// What it is of.
    pub query: OpenQuery,
    /// `SCROLL`, `NO SCROLL`
    pub scroll: Option<bool>,
}

/// What a cursor is of.
#[derive(Debug)]
pub enum OpenQuery {
    /// The arguments of a bound cursor, by number of the argument.
    Bound(Vec<(usize, Fragment)>),
    /// `FOR query`
    Query(Query),
}

/// Which rows FETCH takes.
#[derive(Debug)]
pub enum Direction {
    /// Known when the body is read.
    Fixed(FetchDirection),
    /// `FORWARD`, `BACKWARD`, `ABSOLUTE` and `RELATIVE` with an expression.
    Counted(CountedDirection, Fragment),
}

/// A direction with a number behind it.
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
    /// Returns what CONTEXT calls the statement.
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
