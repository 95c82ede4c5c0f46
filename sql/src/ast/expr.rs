//! Syntax tree of expressions and type names.
//!
//! The parser turns special syntax into a function call where PostgreSQL's grammar does, with the
//! same argument order: `extract(f from x)` is `extract('f', x)`, `substring(x from a for b)` is
//! `substring(x, a, b)`, `trim(leading c from x)` is `ltrim(x, c)` (`btrim`, `rtrim`), `position(a
//! in b)` is `position(b, a)`, `overlay(x placing y from a for b)` is `overlay(x, y, a, b)` and `x
//! at time zone z` is `timezone(z, x)`.

use types::datatype::SqlType;

use super::constant_run::ConstantRun;
use super::query::{OrderItem, QueryExpr};
use super::window::Over;
use super::{Collation, Ident};

/// The field name for all fields, as in `(row).*`. No client can write it.
pub const ALL_FIELDS: &str = "\0*";

/// The prefix of the function name of an unknown operator. The symbol follows, and the operands
/// are the arguments.
pub const UNKNOWN_OPERATOR: &str = "\0operator ";

/// An expression with its SQL text, for the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceExpr {
    /// The tree.
    pub expr: Expr,
    /// The text that it was parsed from, without surrounding blanks.
    pub text: String,
}

/// A type name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeName {
    /// The type and its modifier; meaningless for a user-defined type.
    pub sql_type: SqlType,
    /// The name of a user-defined type, which the binder resolves in the catalog.
    pub named: Option<NamedType>,
    /// `COLLATE …` after the type of a column, with its position.
    pub collation: Option<(Collation, usize)>,
    /// The position of the name.
    pub position: usize,
}

/// The name of a type that is not built in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedType {
    /// The schema, if written.
    pub schema: Option<String>,
    /// The name.
    pub name: String,
    /// `%TYPE`: the name is a relation's, and the type is that of this column.
    pub of_column: Option<String>,
    /// True if the type is an array of it.
    pub is_array: bool,
}

impl NamedType {
    /// Returns the name as it is in messages.
    pub fn display_name(&self) -> String {
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
        /// Its position.
        position: usize,
    },
    /// `TRUE`, `FALSE`
    Boolean {
        /// The value.
        value: bool,
        /// Its position.
        position: usize,
    },
    /// An unsigned number. As in PostgreSQL, decimal digits that fit `int4` or `int8` are an
    /// integer, anything else is `numeric`.
    Number {
        /// Its text.
        text: String,
        /// Its position.
        position: usize,
    },
    /// A quoted string of any form, escapes resolved. Its type is unknown until bound.
    String {
        /// The value.
        value: String,
        /// Its position.
        position: usize,
    },
    /// All constants of IN, or all rows of VALUES, if there are many.
    Constants(ConstantRun),
    /// A constant with a type: `DATE '…'`.
    TypedString {
        /// The type.
        type_name: TypeName,
        /// The text of the value.
        value: String,
        /// The position of the string.
        position: usize,
    },
    /// `$n`
    Parameter {
        /// n, from 1.
        number: u32,
        /// Its position.
        position: usize,
    },
    /// A column, possibly qualified by table, family or both: the names in the order of the text,
    /// at least one.
    Column(Vec<Ident>),
    /// `(a, b, …)` or `ROW(…)`
    Row {
        /// The fields.
        fields: Vec<Expr>,
        /// Its position.
        position: usize,
    },
    /// A prefix operator.
    Unary {
        /// The operator.
        operator: UnaryOperator,
        /// Its operand. `-5` is Minus of the number 5.
        operand: Box<Expr>,
        /// The position of the operator.
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
        /// The position of the operator.
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
        /// The operand.
        operand: Box<Expr>,
        /// `NOT`
        negated: bool,
    },
    /// `IS [NOT] TRUE`, `FALSE`, `UNKNOWN`
    IsTruth {
        /// The operand.
        operand: Box<Expr>,
        /// The truth value.
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
        /// The position of its first word.
        position: usize,
    },
    /// `[NOT] BETWEEN low AND high`
    Between {
        /// The operand.
        operand: Box<Expr>,
        /// Lower bound, inclusive.
        low: Box<Expr>,
        /// Upper bound, inclusive.
        high: Box<Expr>,
        /// `NOT`
        negated: bool,
        /// The position of its first word.
        position: usize,
    },
    /// `[NOT] IN (list)`
    InList {
        /// The value; may be a row.
        operand: Box<Expr>,
        /// The list; at least one.
        list: Vec<Expr>,
        /// `NOT`
        negated: bool,
        /// The position of its first word.
        position: usize,
    },
    /// `[NOT] IN (query)`
    InSubquery {
        /// The value; may be a row.
        operand: Box<Expr>,
        /// The query.
        query: Box<QueryExpr>,
        /// `NOT`
        negated: bool,
        /// The position of its first word.
        position: usize,
    },
    /// `ARRAY (SELECT …)`
    ArraySubquery {
        /// The query, of one column.
        query: Box<QueryExpr>,
        /// Its position.
        position: usize,
    },
    /// `ARRAY[…]`
    Array {
        /// The elements; those of `ARRAY[[1, 2], [3, 4]]` are arrays.
        elements: Vec<Expr>,
        /// Its position.
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
    Exists(Box<QueryExpr>),
    /// `(query)` as a value
    Subquery(Box<QueryExpr>),
    /// `left operator ANY|ALL (…)`
    Quantified {
        /// Left operand; may be a row.
        left: Box<Expr>,
        /// The comparison.
        operator: BinaryOperator,
        /// `ANY` (also written `SOME`) or `ALL`.
        quantifier: Quantifier,
        /// The values that it is compared with.
        right: ArraySource,
        /// The position of the operator.
        position: usize,
    },
    /// `[NOT] LIKE`, `ILIKE`, `SIMILAR TO`
    Like {
        /// The operator.
        kind: LikeKind,
        /// The text.
        operand: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// The escape; the default is a backslash.
        escape: Option<Box<Expr>>,
        /// `NOT`
        negated: bool,
        /// The position of its first word.
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
        /// Its position.
        position: usize,
    },
    /// `CAST(… AS …)`, `…::…`
    Cast {
        /// The value.
        operand: Box<Expr>,
        /// The target type.
        type_name: TypeName,
        /// The position of the `::` or of the word CAST.
        position: usize,
    },
    /// `… COLLATE …`
    Collate {
        /// The value that the collation is for.
        operand: Box<Expr>,
        /// The collation.
        collation: Collation,
        /// The position of the word COLLATE.
        position: usize,
    },
    /// `COALESCE(…)`
    Coalesce {
        /// The operands, at least one.
        operands: Vec<Expr>,
        /// Its position.
        position: usize,
    },
    /// `NULLIF(left, right)`
    NullIf {
        /// First operand.
        left: Box<Expr>,
        /// Second operand.
        right: Box<Expr>,
        /// Its position.
        position: usize,
    },
    /// `GREATEST(…)`, `LEAST(…)`
    MinMax {
        /// The function.
        kind: MinMax,
        /// The operands, at least one.
        operands: Vec<Expr>,
        /// Its position.
        position: usize,
    },
    /// `CURRENT_DATE` and the other functions without parentheses.
    SqlValue {
        /// The function.
        function: SqlValueFunction,
        /// Digits of the second, if written.
        precision: Option<u8>,
        /// Its position.
        position: usize,
    },
    /// A function or aggregate.
    Call(Box<FunctionCall>),
}

impl Expr {
    /// Returns whether it expands to several values in a list: `t.*`, `(row).*`.
    pub fn is_expanded(&self) -> bool {
        match self {
            Expr::WholeRow(_) => true,
            Expr::Field { name, .. } => name.value == ALL_FIELDS,
            _ => false,
        }
    }

    /// Returns the position of errors about this expression, as PostgreSQL's `exprLocation` does.
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

/// A subscript or slice of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Subscript {
    /// `[index]`
    Index(Expr),
    /// `[lower:upper]`
    Slice {
        /// The first element, if written.
        lower: Option<Expr>,
        /// The last element, if written.
        upper: Option<Expr>,
    },
}

/// The array of `ANY` and `ALL`.
#[derive(Debug, Clone, PartialEq)]
pub enum ArraySource {
    /// The rows of a query.
    Subquery(Box<QueryExpr>),
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
    /// Returns the position of the name.
    pub fn position(&self) -> usize {
        self.schema.as_ref().map_or(self.name.position, |schema| schema.position)
    }
}

/// A call of a function or aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    /// The name of the function.
    pub name: FunctionName,
    /// The arguments, empty if `star`.
    pub arguments: Vec<FunctionArgument>,
    /// `f(…, VARIADIC array)`
    pub variadic: bool,
    /// `f(*)`
    pub star: bool,
    /// `f(DISTINCT …)`
    pub distinct: bool,
    /// True if it is written in special syntax, as `extract(year from x)`.
    pub own_syntax: bool,
    /// `f(… ORDER BY …)`, or WITHIN GROUP
    pub order_by: Vec<OrderItem>,
    /// True if the order is `WITHIN GROUP (ORDER BY …)`.
    pub within_group: bool,
    /// `FILTER (WHERE …)`
    pub filter: Option<Expr>,
    /// `OVER …`
    pub over: Option<Over>,
}

impl FunctionCall {
    /// Returns a call with only a name and arguments.
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
    /// Any other operator that is implemented by a function, by its symbol.
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

    /// Returns the operator with a symbol; `None` if bennu does not have it.
    pub fn named(symbol: &str) -> Option<UnaryOperator> {
        let known = UnaryOperator::ALL.into_iter().find(|operator| operator.symbol() == symbol);
        known.or_else(|| types::function::operator(symbol, 1).map(UnaryOperator::Other))
    }

    /// Returns the symbol of the operator.
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
    /// Any other operator that is implemented by a function, by its symbol.
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

    /// Returns the operator with a symbol; `None` if bennu does not have it.
    pub fn named(symbol: &str) -> Option<BinaryOperator> {
        let other = || types::function::operator(symbol, 2).map(BinaryOperator::Other);
        BinaryOperator::of_grammar(symbol).or_else(other)
    }

    /// Returns the operator with a symbol, if it has a variant.
    pub fn of_grammar(symbol: &str) -> Option<BinaryOperator> {
        BinaryOperator::ALL.into_iter().find(|operator| operator.symbol() == symbol)
    }

    /// Returns the symbol of the operator.
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

/// The operator of a pattern match.
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

/// The truth value that `IS` tests for.
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
    /// `user`, a synonym of `current_user`.
    User,
    /// `SESSION_USER`
    SessionUser,
    /// `CURRENT_CATALOG`
    CurrentCatalog,
    /// `CURRENT_SCHEMA`
    CurrentSchema,
}
