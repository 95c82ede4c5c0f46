//! SQL text of what the catalog keeps, as PostgreSQL writes it: queries of views, expressions.
//!
//! ```text
//!  stored text ─► parser ─► tree ┐
//!                 binder ─► Notes ┴► Node ─► text
//! ```
//!
//! The tree says how something was written, [`Notes`] what its names and values mean by now. Both
//! make a [`Node`](node::Node), which is what PostgreSQL's analysis would have made, and that is
//! written by the rules of its ruleutils.c, which the functions here follow: where lines break,
//! what stands in parentheses, which conversions are shown, what columns are qualified by.
//!
//! Renamed tables and columns go by their new names, because the binder finds what they were.

mod node;
mod convert;
mod operators;
mod resolve;
mod calls;
mod expressions;
mod range_table;
mod select;
mod query;
mod from;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use types::SqlType;
use types::text::TextStyle;

use crate::ast::{self, SelectItem};
use crate::binder::notes::Notes;
use crate::binder::{SystemCatalog, note_expression, note_view};
use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::catalog::view::View;
use crate::deparse::range_table::Entry;
use crate::error::Result;
use crate::parser;

/// Spaces that clauses of a query are moved in by.
const STEP: i32 = 8;

/// How a text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Parentheses that nobody needs are left out.
    pub pretty: bool,
    /// Clauses stand in lines of their own; entries of lists, too, where a line would be longer
    /// than this; `None`: everything is one line.
    pub wrap: Option<usize>,
}

impl Layout {
    /// An expression, in one line.
    pub const EXPRESSION: Layout = Layout { pretty: false, wrap: None };
    /// A query, each entry of a list in a line.
    pub const QUERY: Layout = Layout { pretty: false, wrap: Some(0) };
}

/// Whose names a text is for.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// What there is.
    pub catalog: &'a Catalog,
    /// Names that are found along it stand without their schema.
    pub path: &'a SearchPath,
    /// How literals are shown.
    pub style: &'a TextStyle,
}

impl<'a> Reader<'a> {
    /// Returns one whose path is that of every new session.
    pub fn new(catalog: &'a Catalog) -> Reader<'a> {
        static PATH: LazyLock<SearchPath> = LazyLock::new(SearchPath::default);
        Reader::by(catalog, &PATH)
    }

    /// Returns one with a path that shows literals as every new session does.
    pub fn by(catalog: &'a Catalog, path: &'a SearchPath) -> Reader<'a> {
        static STYLE: LazyLock<TextStyle> = LazyLock::new(TextStyle::default);
        Reader { catalog, path, style: &STYLE }
    }
}

/// Returns the query of a view as `pg_get_viewdef` shows it, without a semicolon.
///
/// # Errors
///
/// What is wrong with the query by now.
pub fn view(
    view: &Arc<View>,
    reader: Reader<'_>,
    system: &dyn SystemCatalog,
    layout: Layout,
) -> Result<String> {
    let notes = note_view(view, reader.catalog, system)?;
    let names: Vec<String> = view.columns.iter().map(|column| column.name.clone()).collect();
    let mut writer = Writer::new(&notes, reader, layout);
    // What rules of views know the rows of before and after by.
    writer.taken = vec!["old".to_owned(), "new".to_owned()];
    writer.query(view.query()?, Naming { names: Some(&names), is_seen: true });
    Ok(writer.out)
}

/// What an expression is over.
pub struct Over<'a> {
    /// The names and types of the columns.
    pub columns: &'a [(String, SqlType)],
    /// What it is converted to.
    pub target: Option<SqlType>,
    /// The column is the value of a domain.
    pub is_domain: bool,
}

/// Returns an expression that the catalog keeps the text of.
///
/// # Errors
///
/// What is wrong with it by now.
pub fn expression(
    text: &str,
    over: &Over<'_>,
    reader: Reader<'_>,
    layout: Layout,
) -> Result<String> {
    let tree = parser::parse_expression(text)?;
    written(&tree, over, reader, layout).map(|(text, _)| text)
}

/// Returns a key of an index, without a collation of its own, and whether it is a call.
///
/// # Errors
///
/// What is wrong with it by now.
pub fn index_key(
    text: &str,
    over: &Over<'_>,
    reader: Reader<'_>,
    layout: Layout,
) -> Result<(String, bool)> {
    match parser::parse_expression(text)? {
        ast::Expr::Collate { operand, .. } => written(&operand, over, reader, layout),
        tree => written(&tree, over, reader, layout),
    }
}

fn written(
    tree: &ast::Expr,
    over: &Over<'_>,
    reader: Reader<'_>,
    layout: Layout,
) -> Result<(String, bool)> {
    let notes = note_expression(tree, over.columns, over.target, reader.catalog)?;
    let mut writer = Writer::new(&notes, reader, layout);
    writer.value_word = over.is_domain;
    let node = convert::cut(writer.value(tree, over.target), over.target);
    writer.write(&node, false);
    let is_call = node.is_call();
    Ok((writer.out, is_call))
}

/// What the columns of a query are called by those who read it.
#[derive(Clone, Copy)]
struct Naming<'n> {
    /// Their names, if they are not the query's own.
    names: Option<&'n [String]>,
    /// Whether somebody can see names at all.
    is_seen: bool,
}

impl Naming<'_> {
    const OWN: Naming<'static> = Naming { names: None, is_seen: true };
    const UNSEEN: Naming<'static> = Naming { names: None, is_seen: false };
}

/// A text in the making.
struct Writer<'a> {
    out: String,
    notes: &'a Notes,
    reader: Reader<'a>,
    layout: Layout,
    /// How far clauses are moved in.
    indent: i32,
    /// The entries of FROM of the queries around, by place.
    entries: HashMap<usize, Entry>,
    /// The entries of FROM of the query at hand.
    level: Vec<usize>,
    /// The entries whose columns were written, in order.
    used: Vec<usize>,
    /// The names of the entries of FROM of the queries around.
    taken: Vec<String>,
    /// The select list at hand, and the names of its columns.
    targets: Vec<Target<'a>>,
    /// Whether the column that an expression is over is the value of a domain.
    value_word: bool,
}

/// An entry of a select list.
#[derive(Clone)]
struct Target<'a> {
    item: &'a SelectItem,
    /// Which field of a row, if the entry is all of them.
    field: Option<String>,
    /// Its name, as the query itself knows it.
    name: String,
}

impl<'a> Writer<'a> {
    fn new(notes: &'a Notes, reader: Reader<'a>, layout: Layout) -> Writer<'a> {
        Writer {
            out: String::new(),
            notes,
            reader,
            layout,
            indent: 0,
            entries: HashMap::new(),
            level: Vec::new(),
            used: Vec::new(),
            taken: Vec::new(),
            targets: Vec::new(),
            value_word: false,
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writes a name.
    fn name(&mut self, name: &str) {
        self.out.push_str(&types::function::quote_ident(name));
    }

    /// Writes what there is of a list, with commas between.
    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        for (at, item) in items.into_iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" });
            write(self, item);
        }
    }

    /// Writes a word that begins a line: moved in by `before` more, and by `plus` for itself; what
    /// follows is moved in by `after` more.
    ///
    /// Source: PostgreSQL's `appendContextKeyword`.
    fn keyword(&mut self, word: &str, before: i32, after: i32, plus: i32) {
        const LIMIT: i32 = 40;
        if self.layout.wrap.is_none() {
            self.push(word);
            return;
        }
        self.indent += before;
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        self.push("\n");
        // Deep queries are moved in less, and from the start again at last.
        let width = match self.indent < LIMIT {
            true => self.indent.max(0),
            false => (LIMIT + (self.indent - LIMIT) / (STEP / 2)) % LIMIT,
        };
        let width = usize::try_from(width + plus).unwrap_or(0);
        self.out.extend(std::iter::repeat_n(' ', width));
        self.push(word);
        self.indent = (self.indent + after).max(0);
    }

    /// Writes something to be looked at before it is put where it belongs.
    fn aside(&mut self, write: impl FnOnce(&mut Self)) -> String {
        let before = std::mem::take(&mut self.out);
        write(self);
        std::mem::replace(&mut self.out, before)
    }

    /// Puts an entry of a list behind those before it, in a line of its own if this one would be
    /// too long, or if `apart`.
    fn wrapped(&mut self, text: &str, apart: bool, is_first: bool) {
        let Some(width) = self.layout.wrap else { return self.push(text) };
        if text.starts_with('\n') {
            let kept = self.out.trim_end_matches(' ').len();
            self.out.truncate(kept);
        } else if !is_first {
            let line = self.out.rfind('\n').map_or(0, |at| at + 1);
            if apart || self.out.len() - line + text.len() > width {
                self.keyword("", -STEP, STEP, 4);
            }
        }
        self.push(text);
    }

    /// Returns the type as it is written here.
    fn type_name(&self, sql_type: SqlType) -> String {
        let oid = sql_type.oid();
        if sql_type.domain.is_none() && sql_type.modifier < 0 {
            match sql_type.base {
                types::DataType::Char => return "bpchar".to_owned(),
                types::DataType::Array(types::DataType::Char) => return "bpchar[]".to_owned(),
                types::DataType::Bit => return "\"bit\"".to_owned(),
                _ => {}
            }
        }
        let modifier = if sql_type.domain.is_some() { -1 } else { sql_type.modifier };
        let shown = self.reader.catalog.shown_type_with(oid, modifier, self.reader.path);
        shown.unwrap_or_else(|| sql_type.name())
    }

    /// Returns the name of a table or view, with its schema unless the path finds it.
    fn relation_name(&self, schema: &str, name: &str, oid: u32) -> String {
        use types::function::quote_ident;
        let bare = ast::TableName {
            schema: None,
            name: ast::Ident { value: name.to_owned(), position: 1 },
        };
        use crate::catalog::Relation;
        let found = match self.reader.catalog.find(&bare, self.reader.path) {
            Some(Relation::Table(table)) => Some(table.oid),
            Some(Relation::View(view)) => Some(view.oid),
            Some(Relation::Sequence(sequence)) => Some(sequence.oid),
            _ => None,
        };
        match found == Some(oid) {
            true => quote_ident(name),
            false => format!("{}.{}", quote_ident(schema), quote_ident(name)),
        }
    }
}
