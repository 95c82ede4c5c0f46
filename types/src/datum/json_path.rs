//! `jsonpath`: a query of a `jsonb`, as a tree.
//!
//! Items form chains: each item is applied to the results of the previous one. Text output is in
//! `text/json_path.rs`, evaluation in `function/json_path.rs`.
//!
//! Source: PostgreSQL's `jsonpath.h`.

use std::sync::Arc;

use crate::numeric::Numeric;

/// Maximum nesting depth of a path, which bounds the stack of recursive functions.
pub const MAX_PATH_DEPTH: usize = 200;

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    /// Lax mode: structural errors are suppressed, and arrays are unwrapped and wrapped as
    /// needed.
    pub lax: bool,
    /// The expression.
    pub root: Item,
}

/// One item of a chain, or an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The operation.
    pub kind: Kind,
    /// The next item of the chain.
    pub next: Option<Box<Item>>,
}

/// The operation of an item.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(Numeric),
    /// A string.
    String(Arc<str>),
    /// `$name`
    Variable(Arc<str>),
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `.key`
    Key(Arc<str>),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyArray,
    /// `[a, b to c]`
    Subscripts(Vec<(Item, Option<Item>)>),
    /// `.**{first to last}`; `u32::MAX` is `last`
    AnyLevel {
        /// The first level.
        first: u32,
        /// The last level.
        last: u32,
    },
    /// `? (…)`
    Filter(Box<Item>),
    /// `.name()`
    Method(Method),
    /// `.datetime(template)`
    Datetime(Option<Arc<str>>),
    /// `+ a`, `- a`
    Sign {
        /// `-`
        negative: bool,
        /// The operand.
        operand: Box<Item>,
    },
    /// `a + b` and the other arithmetic operators
    Arithmetic(Arithmetic, Box<Item>, Box<Item>),
    /// `a == b` and the other comparisons
    Compare(Comparison, Box<Item>, Box<Item>),
    /// `a && b`
    And(Box<Item>, Box<Item>),
    /// `a || b`
    Or(Box<Item>, Box<Item>),
    /// `! a`
    Not(Box<Item>),
    /// `(a) is unknown`
    IsUnknown(Box<Item>),
    /// `exists (a)`
    Exists(Box<Item>),
    /// `a starts with b`
    StartsWith(Box<Item>, Box<Item>),
    /// `a like_regex "…" flag "…"`
    LikeRegex {
        /// The matched expression.
        operand: Box<Item>,
        /// The pattern.
        pattern: Arc<str>,
        /// Flags, each at most once, of `i`, `s`, `m`, `x` and `q`.
        flags: Arc<str>,
    },
}

/// A method without arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `.type()`
    Type,
    /// `.size()`
    Size,
    /// `.abs()`
    Abs,
    /// `.floor()`
    Floor,
    /// `.ceiling()`
    Ceiling,
    /// `.double()`
    Double,
    /// `.keyvalue()`
    KeyValue,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 7] = [
        Method::Type,
        Method::Size,
        Method::Abs,
        Method::Floor,
        Method::Ceiling,
        Method::Double,
        Method::KeyValue,
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Type => "type",
            Method::Size => "size",
            Method::Abs => "abs",
            Method::Floor => "floor",
            Method::Ceiling => "ceiling",
            Method::Double => "double",
            Method::KeyValue => "keyvalue",
        }
    }
}

/// An operator on numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
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
}

impl Arithmetic {
    /// Returns the operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Modulo => "%",
        }
    }
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`, `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Returns the operator as PostgreSQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl Kind {
    /// Returns whether this is a predicate, as opposed to a sequence of values.
    pub fn is_predicate(&self) -> bool {
        matches!(
            self,
            Kind::Compare(..)
                | Kind::And(..)
                | Kind::Or(..)
                | Kind::Not(_)
                | Kind::IsUnknown(_)
                | Kind::Exists(_)
                | Kind::StartsWith(..)
                | Kind::LikeRegex { .. }
        )
    }

    /// Calls `visit` for each nested item.
    pub fn for_each_item<'a>(&'a self, visit: &mut dyn FnMut(&'a Item)) {
        match self {
            Kind::Subscripts(list) => {
                for (from, to) in list {
                    visit(from);
                    to.iter().for_each(&mut *visit);
                }
            }
            Kind::Filter(one)
            | Kind::Sign { operand: one, .. }
            | Kind::Not(one)
            | Kind::IsUnknown(one)
            | Kind::Exists(one)
            | Kind::LikeRegex { operand: one, .. } => visit(one),
            Kind::Arithmetic(_, left, right)
            | Kind::Compare(_, left, right)
            | Kind::And(left, right)
            | Kind::Or(left, right)
            | Kind::StartsWith(left, right) => {
                visit(left);
                visit(right);
            }
            _ => {}
        }
    }
}

impl Item {
    /// Returns the last item of a chain.
    pub fn last_mut(&mut self) -> &mut Item {
        let mut item = self;
        while item.next.is_some() {
            item = item.next.as_deref_mut().expect("it is there");
        }
        item
    }

    fn heap_bytes(&self) -> usize {
        let own = match &self.kind {
            Kind::String(text) | Kind::Variable(text) | Kind::Key(text) => text.len(),
            Kind::LikeRegex { pattern, .. } => pattern.len(),
            _ => 0,
        };
        let mut bytes = own + size_of::<Item>();
        self.kind.for_each_item(&mut |item| bytes += item.heap_bytes());
        bytes + self.next.as_ref().map_or(0, |next| next.heap_bytes())
    }
}

impl JsonPath {
    pub(super) fn heap_bytes(&self) -> usize {
        self.root.heap_bytes()
    }
}
