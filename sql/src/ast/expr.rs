//! Expressions and type names, as written.
//!
//! Where PostgreSQL's grammar itself turns special syntax into a function call, so does the
//! parser, with the same argument order: `extract(f from x)` is `extract('f', x)`,
//! `substring(x from a for b)` is `substring(x, a, b)`, `trim(leading c from x)` is `ltrim(x, c)`
//! (`btrim`, `rtrim`), `position(a in b)` is `position(b, a)`, `overlay(x placing y from a for b)`
//! is `overlay(x, y, a, b)` and `x at time zone z` is `timezone(z, x)`.

use types::datatype::SqlType;

use super::constant_run::ConstantRun;
use super::query::{OrderItem, Query};
use super::window::Over;
use super::{Collation, Ident};

/// The name of a field that stands for all of them, as in `(row).*`: no client can write it.
pub const ALL_FIELDS: &str = "\0*";

/// Stands in front of the symbol of an operator that bennu does not have, in the name of a function
/// of its operands.
pub const UNKNOWN_OPERATOR: &str = "\0operator ";

/// An expression together with its SQL text, for what is stored in the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceExpr {
    /// The tree.
    pub expr: Expr,
    /// The text it was parsed from, without surrounding blanks.
    pub text: String,
}

/// A type as SQL text names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeName {
    /// The type and its modifier; of no meaning for a type of users.
    pub sql_type: SqlType,
    /// The name of a type of users, which the catalog is asked for.
    pub named: Option<NamedType>,
    /// `COLLATE …` behind the type of a column, with its place.
    pub collation: Option<(Collation, usize)>,
    /// Where the name stands.
    pub position: usize,
}

/// The name of a type that is not built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedType {
    /// The schema, if one is given.
    pub schema: Option<String>,
    /// The name.
    pub name: String,
    /// `%TYPE`: the type of this column of the relation that has the name is meant.
    pub of_column: Option<String>,
    /// An array of it is meant.
    pub is_array: bool,
}

impl NamedType {
    /// Returns the name as messages show it.
    pub fn shown(&self) -> String {
        let array = if self.is_array { "[]" } else { "" };
        match &self.schema {
            Some(schema) => format!("{schema}.{}{array}", self.name),
            None => format!("{}{array}", self.name),
        }
    }
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// `NULL`
    Null {
        /// Where it stands.
        position: usize,
    },
    /// `TRUE`, `FALSE`
    Boolean {
        /// The value.
        value: bool,
        /// Where it stands.
        position: usize,
    },
    /// A number, unsigned, as PostgreSQL would read it: an integer of decimal digits that fits
    /// `int4` or `int8` is one, anything else is `numeric`.
    Number {
        /// Its text.
        text: String,
        /// Where it stands.
        position: usize,
    },
    /// A quoted string of any form, escapes resolved. Its type is unknown until bound.
    String {
        /// The value.
        value: String,
        /// Where it stands.
        position: usize,
    },
    /// All constants of IN, or all rows of VALUES, where they are many.
    Constants(ConstantRun),
    /// `DATE '…'` and its kin: a constant of a type.
    TypedString {
        /// The type.
        type_name: TypeName,
        /// The text of the value.
        value: String,
        /// Where the string stands.
        position: usize,
    },
    /// `$n`
    Parameter {
        /// n, from 1.
        number: u32,
        /// Where it stands.
        position: usize,
    },
    /// A column, possibly qualified by table, family or both: the parts as written, at least one.
    Column(Vec<Ident>),
    /// `(a, b, …)` or `ROW(…)`
    Row {
        /// The fields.
        fields: Vec<Expr>,
        /// Where it stands.
        position: usize,
    },
    /// A prefix operator.
    Unary {
        /// The operator.
        operator: UnaryOperator,
        /// Its operand. `-5` is Minus of the number 5.
        operand: Box<Expr>,
        /// Where the operator stands.
        position: usize,
    },
    /// An infix operator.
    Binary {
        /// The operator.
        operator: BinaryOperator,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
        /// Where the operator stands.
        position: usize,
    },
    /// `a AND b AND …`, at least two.
    And(Vec<Expr>),
    /// `a OR b OR …`, at least two.
    Or(Vec<Expr>),
    /// `NOT a`
    Not(Box<Expr>),
    /// `IS [NOT] NULL`
    IsNull {
        /// What is tested.
        operand: Box<Expr>,
        /// `NOT`
        negated: bool,
    },
    /// `IS [NOT] TRUE`, `FALSE`, `UNKNOWN`
    IsTruth {
        /// What is tested.
        operand: Box<Expr>,
        /// For what.
        test: TruthTest,
        /// `NOT`
        negated: bool,
    },
    /// `IS [NOT] DISTINCT FROM`
    IsDistinct {
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
        /// `NOT`
        negated: bool,
        /// Where its first word stands.
        position: usize,
    },
    /// `[NOT] BETWEEN low AND high`
    Between {
        /// What is tested.
        operand: Box<Expr>,
        /// Lower bound, inclusive.
        low: Box<Expr>,
        /// Upper bound, inclusive.
        high: Box<Expr>,
        /// `NOT`
        negated: bool,
        /// Where its first word stands.
        position: usize,
    },
    /// `[NOT] IN (list)`
    InList {
        /// What is looked for; may be a row.
        operand: Box<Expr>,
        /// Where; at least one.
        list: Vec<Expr>,
        /// `NOT`
        negated: bool,
        /// Where its first word stands.
        position: usize,
    },
    /// `[NOT] IN (query)`
    InSubquery {
        /// What is looked for; may be a row.
        operand: Box<Expr>,
        /// Where.
        query: Box<Query>,
        /// `NOT`
        negated: bool,
        /// Where its first word stands.
        position: usize,
    },
    /// `ARRAY (SELECT …)`
    ArraySubquery {
        /// The query, of one column.
        query: Box<Query>,
        /// Where it stands.
        position: usize,
    },
    /// `ARRAY[…]`
    Array {
        /// The elements; those of `ARRAY[[1, 2], [3, 4]]` are arrays.
        elements: Vec<Expr>,
        /// Where it stands.
        position: usize,
    },
    /// `operand[1][2:3]`
    Subscript {
        /// An array.
        operand: Box<Expr>,
        /// One for each dimension, the outermost first.
        subscripts: Vec<Subscript>,
    },
    /// `(operand).name`
    Field {
        /// A record.
        operand: Box<Expr>,
        /// The field.
        name: Ident,
    },
    /// `t.*` as a value, in a row or a call: all columns of a relation.
    WholeRow(Vec<Ident>),
    /// `EXISTS (query)`; `NOT EXISTS` is [`Expr::Not`] of it.
    Exists(Box<Query>),
    /// `(query)` as a value
    Subquery(Box<Query>),
    /// `left operator ANY|ALL (…)`
    Quantified {
        /// Left operand; may be a row.
        left: Box<Expr>,
        /// The comparison.
        operator: BinaryOperator,
        /// `ANY` (also written `SOME`) or `ALL`.
        quantifier: Quantifier,
        /// The values compared with.
        right: ArraySource,
        /// Where the operator stands.
        position: usize,
    },
    /// `[NOT] LIKE`, `ILIKE`, `SIMILAR TO`
    Like {
        /// Which of them.
        kind: LikeKind,
        /// What is matched.
        operand: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// The escape; the default is a backslash.
        escape: Option<Box<Expr>>,
        /// `NOT`
        negated: bool,
        /// Where its first word stands.
        position: usize,
    },
    /// `CASE`
    Case {
        /// The operand of the simple form.
        operand: Option<Box<Expr>>,
        /// `WHEN … THEN …`
        branches: Vec<(Expr, Expr)>,
        /// `ELSE …`
        otherwise: Option<Box<Expr>>,
        /// Where it stands.
        position: usize,
    },
    /// `CAST(… AS …)`, `…::…`
    Cast {
        /// What is cast.
        operand: Box<Expr>,
        /// To what.
        type_name: TypeName,
        /// Where it stands: the `::` or the word CAST.
        position: usize,
    },
    /// `… COLLATE …`
    Collate {
        /// What is ordered by it.
        operand: Box<Expr>,
        /// The collation.
        collation: Collation,
        /// Where the word COLLATE stands.
        position: usize,
    },
    /// `COALESCE(…)`
    Coalesce {
        /// The operands, at least one.
        operands: Vec<Expr>,
        /// Where it stands.
        position: usize,
    },
    /// `NULLIF(left, right)`
    NullIf {
        /// First operand.
        left: Box<Expr>,
        /// Second operand.
        right: Box<Expr>,
        /// Where it stands.
        position: usize,
    },
    /// `GREATEST(…)`, `LEAST(…)`
    MinMax {
        /// Which of them.
        kind: MinMax,
        /// The operands, at least one.
        operands: Vec<Expr>,
        /// Where it stands.
        position: usize,
    },
    /// `CURRENT_DATE` and its kin, which are called without parentheses.
    SqlValue {
        /// Which of them.
        function: SqlValueFunction,
        /// Digits of the second, if written.
        precision: Option<u8>,
        /// Where it stands.
        position: usize,
    },
    /// A function or aggregate.
    Call(Box<FunctionCall>),
}

impl Expr {
    /// Returns whether it stands for several values in a list: `t.*`, `(row).*`.
    pub fn is_expanded(&self) -> bool {
        match self {
            Expr::WholeRow(_) => true,
            Expr::Field { name, .. } => name.value == ALL_FIELDS,
            _ => false,
        }
    }

    /// Returns where an error about this expression points, as PostgreSQL's `exprLocation` does.
    pub fn position(&self) -> usize {
        match self {
            Expr::Null { position }
            | Expr::Boolean { position, .. }
            | Expr::Number { position, .. }
            | Expr::String { position, .. }
            | Expr::Parameter { position, .. }
            | Expr::Row { position, .. }
            | Expr::Unary { position, .. }
            | Expr::Case { position, .. }
            | Expr::Coalesce { position, .. }
            | Expr::NullIf { position, .. }
            | Expr::MinMax { position, .. }
            | Expr::Array { position, .. }
            | Expr::ArraySubquery { position, .. }
            | Expr::SqlValue { position, .. } => *position,
            Expr::Constants(run) => run.position,
            Expr::TypedString { type_name, .. } => type_name.position,
            Expr::Column(parts) | Expr::WholeRow(parts) => {
                parts.first().map_or(1, |part| part.position)
            }
            Expr::Binary { left, .. }
            | Expr::Quantified { left, .. }
            | Expr::IsDistinct { left, .. } => left.position(),
            Expr::Subscript { operand, .. }
            | Expr::Field { operand, .. }
            | Expr::Collate { operand, .. }
            | Expr::Between { operand, .. }
            | Expr::InList { operand, .. }
            | Expr::InSubquery { operand, .. }
            | Expr::Like { operand, .. } => operand.position(),
            Expr::Cast { operand, position, .. } => operand.position().min(*position),
            Expr::And(operands) | Expr::Or(operands) => operands.first().map_or(1, Expr::position),
            Expr::Not(operand) | Expr::IsNull { operand, .. } | Expr::IsTruth { operand, .. } => {
                operand.position()
            }
            Expr::Exists(query) | Expr::Subquery(query) => query.position,
            Expr::Call(call) => call.name.position(),
        }
    }
}

/// What stands in brackets behind an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Subscript {
    /// `[index]`
    Index(Expr),
    /// `[lower:upper]`
    Slice {
        /// The first element, unless it is left out.
        lower: Option<Expr>,
        /// The last element, unless it is left out.
        upper: Option<Expr>,
    },
}

/// The array of `ANY` and `ALL`.
#[derive(Debug, Clone, PartialEq)]
pub enum ArraySource {
    /// The rows of a query.
    Subquery(Box<Query>),
    /// `ARRAY[…]`
    Elements(Vec<Expr>),
    /// An array as a value: a parameter or a string such as `'{1,2}'`.
    Value(Box<Expr>),
}

/// A function's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionName {
    /// The schema, if it was written.
    pub schema: Option<Ident>,
    /// The name.
    pub name: Ident,
}

impl FunctionName {
    /// Returns where the name starts.
    pub fn position(&self) -> usize {
        self.schema.as_ref().map_or(self.name.position, |schema| schema.position)
    }
}

/// A call of a function or aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    /// What is called.
    pub name: FunctionName,
    /// The arguments, empty if `star`.
    pub arguments: Vec<FunctionArgument>,
    /// `f(…, VARIADIC array)`
    pub variadic: bool,
    /// `f(*)`
    pub star: bool,
    /// `f(DISTINCT …)`
    pub distinct: bool,
    /// It is written in a syntax of its own, as `extract(year from x)`.
    pub own_syntax: bool,
    /// `f(… ORDER BY …)`, or WITHIN GROUP
    pub order_by: Vec<OrderItem>,
    /// Whether that order is `WITHIN GROUP (ORDER BY …)`.
    pub within_group: bool,
    /// `FILTER (WHERE …)`
    pub filter: Option<Expr>,
    /// `OVER …`
    pub over: Option<Over>,
}

impl FunctionCall {
    /// Returns a call without anything but arguments.
    pub fn plain(name: FunctionName, arguments: Vec<FunctionArgument>) -> FunctionCall {
        FunctionCall {
            name,
            arguments,
            variadic: false,
            star: false,
            distinct: false,
            own_syntax: false,
            order_by: Vec::new(),
            within_group: false,
            filter: None,
            over: None,
        }
    }
}

/// One argument.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionArgument {
    /// Its name, if written `name => value`.
    pub name: Option<Ident>,
    /// Its value.
    pub value: Expr,
}

/// Prefix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `~`
    BitNot,
    /// `@`
    Abs,
    /// `|/`
    SquareRoot,
    /// `||/`
    CubeRoot,
    /// Any other that a function has, by its symbol
    Other(&'static str),
}

impl UnaryOperator {
    const ALL: [UnaryOperator; 6] = [
        UnaryOperator::Plus,
        UnaryOperator::Minus,
        UnaryOperator::BitNot,
        UnaryOperator::Abs,
        UnaryOperator::SquareRoot,
        UnaryOperator::CubeRoot,
    ];

    /// Returns the operator that is written so; `None` if bennu does not have it.
    pub fn named(symbol: &str) -> Option<UnaryOperator> {
        let known = UnaryOperator::ALL.into_iter().find(|operator| operator.symbol() == symbol);
        known.or_else(|| types::function::operator(symbol, 1).map(UnaryOperator::Other))
    }

    /// Returns the operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => "-",
            UnaryOperator::BitNot => "~",
            UnaryOperator::Abs => "@",
            UnaryOperator::SquareRoot => "|/",
            UnaryOperator::CubeRoot => "||/",
            UnaryOperator::Other(symbol) => symbol,
        }
    }
}

/// Infix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `^`
    Power,
    /// `||`
    Concat,
    /// `=`
    Equal,
    /// `<>`, `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `#`
    BitXor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `~`
    RegexMatch,
    /// `~*`
    RegexMatchNoCase,
    /// `!~`
    RegexNotMatch,
    /// `!~*`
    RegexNotMatchNoCase,
    /// `~~` and, as ANY's operator, `LIKE`
    Like,
    /// `!~~`
    NotLike,
    /// `~~*` and, as ANY's operator, `ILIKE`
    ILike,
    /// `!~~*`
    NotILike,
    /// `^@`
    StartsWith,
    /// `@>`
    Contains,
    /// `<@`
    ContainedBy,
    /// `&&`
    Overlap,
    /// `->`
    Arrow,
    /// `->>`
    LongArrow,
    /// `#>`
    HashArrow,
    /// `#>>`
    HashLongArrow,
    /// `#-`
    HashMinus,
    /// `@?`
    PathExists,
    /// `@@`
    PathMatches,
    /// `?`
    HasKey,
    /// `?|`
    HasAnyKey,
    /// `?&`
    HasAllKeys,
    /// `~<~`
    PatternLess,
    /// `~<=~`
    PatternLessOrEqual,
    /// `~>~`
    PatternGreater,
    /// `~>=~`
    PatternGreaterOrEqual,
    /// `*=`
    ImageEqual,
    /// `*<>`
    ImageNotEqual,
    /// `*<`
    ImageLess,
    /// `*<=`
    ImageLessOrEqual,
    /// `*>`
    ImageGreater,
    /// `*>=`
    ImageGreaterOrEqual,
    /// Any other that a function has, by its symbol
    Other(&'static str),
}

impl BinaryOperator {
    const ALL: [BinaryOperator; 50] = [
        BinaryOperator::Add,
        BinaryOperator::Subtract,
        BinaryOperator::Multiply,
        BinaryOperator::Divide,
        BinaryOperator::Modulo,
        BinaryOperator::Power,
        BinaryOperator::Concat,
        BinaryOperator::Equal,
        BinaryOperator::NotEqual,
        BinaryOperator::Less,
        BinaryOperator::LessOrEqual,
        BinaryOperator::Greater,
        BinaryOperator::GreaterOrEqual,
        BinaryOperator::BitAnd,
        BinaryOperator::BitOr,
        BinaryOperator::BitXor,
        BinaryOperator::ShiftLeft,
        BinaryOperator::ShiftRight,
        BinaryOperator::RegexMatch,
        BinaryOperator::RegexMatchNoCase,
        BinaryOperator::RegexNotMatch,
        BinaryOperator::RegexNotMatchNoCase,
        BinaryOperator::Like,
        BinaryOperator::NotLike,
        BinaryOperator::ILike,
        BinaryOperator::NotILike,
        BinaryOperator::StartsWith,
        BinaryOperator::Contains,
        BinaryOperator::ContainedBy,
        BinaryOperator::Overlap,
        BinaryOperator::Arrow,
        BinaryOperator::LongArrow,
        BinaryOperator::HashArrow,
        BinaryOperator::HashLongArrow,
        BinaryOperator::HashMinus,
        BinaryOperator::PathExists,
        BinaryOperator::PathMatches,
        BinaryOperator::HasKey,
        BinaryOperator::HasAnyKey,
        BinaryOperator::HasAllKeys,
        BinaryOperator::PatternLess,
        BinaryOperator::PatternLessOrEqual,
        BinaryOperator::PatternGreater,
        BinaryOperator::PatternGreaterOrEqual,
        BinaryOperator::ImageEqual,
        BinaryOperator::ImageNotEqual,
        BinaryOperator::ImageLess,
        BinaryOperator::ImageLessOrEqual,
        BinaryOperator::ImageGreater,
        BinaryOperator::ImageGreaterOrEqual,
    ];

    /// Returns the operator that is written so; `None` if bennu does not have it.
    pub fn named(symbol: &str) -> Option<BinaryOperator> {
        let other = || types::function::operator(symbol, 2).map(BinaryOperator::Other);
        BinaryOperator::of_grammar(symbol).or_else(other)
    }

    /// Returns the operator that is written so, if it is one of those that have variants.
    pub fn of_grammar(symbol: &str) -> Option<BinaryOperator> {
        BinaryOperator::ALL.into_iter().find(|operator| operator.symbol() == symbol)
    }

    /// Returns the operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::Power => "^",
            BinaryOperator::Concat => "||",
            BinaryOperator::Equal => "=",
            BinaryOperator::NotEqual => "<>",
            BinaryOperator::Less => "<",
            BinaryOperator::LessOrEqual => "<=",
            BinaryOperator::Greater => ">",
            BinaryOperator::GreaterOrEqual => ">=",
            BinaryOperator::BitAnd => "&",
            BinaryOperator::BitOr => "|",
            BinaryOperator::BitXor => "#",
            BinaryOperator::ShiftLeft => "<<",
            BinaryOperator::ShiftRight => ">>",
            BinaryOperator::RegexMatch => "~",
            BinaryOperator::RegexMatchNoCase => "~*",
            BinaryOperator::RegexNotMatch => "!~",
            BinaryOperator::RegexNotMatchNoCase => "!~*",
            BinaryOperator::Like => "~~",
            BinaryOperator::NotLike => "!~~",
            BinaryOperator::ILike => "~~*",
            BinaryOperator::NotILike => "!~~*",
            BinaryOperator::StartsWith => "^@",
            BinaryOperator::Contains => "@>",
            BinaryOperator::ContainedBy => "<@",
            BinaryOperator::Overlap => "&&",
            BinaryOperator::Arrow => "->",
            BinaryOperator::LongArrow => "->>",
            BinaryOperator::HashArrow => "#>",
            BinaryOperator::HashLongArrow => "#>>",
            BinaryOperator::HashMinus => "#-",
            BinaryOperator::PathExists => "@?",
            BinaryOperator::PathMatches => "@@",
            BinaryOperator::HasKey => "?",
            BinaryOperator::HasAnyKey => "?|",
            BinaryOperator::HasAllKeys => "?&",
            BinaryOperator::PatternLess => "~<~",
            BinaryOperator::PatternLessOrEqual => "~<=~",
            BinaryOperator::PatternGreater => "~>~",
            BinaryOperator::PatternGreaterOrEqual => "~>=~",
            BinaryOperator::ImageEqual => "*=",
            BinaryOperator::ImageNotEqual => "*<>",
            BinaryOperator::ImageLess => "*<",
            BinaryOperator::ImageLessOrEqual => "*<=",
            BinaryOperator::ImageGreater => "*>",
            BinaryOperator::ImageGreaterOrEqual => "*>=",
            BinaryOperator::Other(symbol) => symbol,
        }
    }

    /// Returns whether this is one of `= <> < <= > >=`.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOperator::Equal
                | BinaryOperator::NotEqual
                | BinaryOperator::Less
                | BinaryOperator::LessOrEqual
                | BinaryOperator::Greater
                | BinaryOperator::GreaterOrEqual
        )
    }
}

/// Which pattern language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikeKind {
    /// `LIKE`
    Like,
    /// `ILIKE`
    ILike,
    /// `SIMILAR TO`
    SimilarTo,
}

/// `ANY` or `ALL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// `ANY`, `SOME`
    Any,
    /// `ALL`
    All,
}

/// What `IS` tests for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TruthTest {
    /// `TRUE`
    True,
    /// `FALSE`
    False,
    /// `UNKNOWN`
    Unknown,
}

/// `GREATEST` or `LEAST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinMax {
    /// `GREATEST`
    Greatest,
    /// `LEAST`
    Least,
}

/// The functions that are called without parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlValueFunction {
    /// `CURRENT_DATE`
    CurrentDate,
    /// `CURRENT_TIME`
    CurrentTime,
    /// `CURRENT_TIMESTAMP`
    CurrentTimestamp,
    /// `LOCALTIME`
    LocalTime,
    /// `LOCALTIMESTAMP`
    LocalTimestamp,
    /// `CURRENT_USER`
    CurrentUser,
    /// `CURRENT_ROLE`
    CurrentRole,
    /// `user`, which is `current_user` by another name.
    User,
    /// `SESSION_USER`
    SessionUser,
    /// `CURRENT_CATALOG`
    CurrentCatalog,
    /// `CURRENT_SCHEMA`
    CurrentSchema,
}
