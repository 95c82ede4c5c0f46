//! The deparser: SQL text of stored queries and expressions, as PostgreSQL writes it.
//!
//! ```text
//!  stored text ─► parser ─► tree ┐
//!                 binder ─► Notes ┴► Node ─► text
//! ```
//!
//! The tree has the syntactic form, [`ResolutionNotes`] the present resolution of names and
//! literals. Both are combined into a [`Node`](node::DeparseNode), the form that PostgreSQL's
//! analysis would produce, which is written by the rules of ruleutils.c: line breaks, parentheses,
//! visible casts, and qualification of columns. It serves `pg_get_viewdef`, `pg_get_expr` and
//! similar functions.
//!
//! Renamed tables and columns have their new names, because the binder resolves the old ones.

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

use types::text::TextStyle;
use types::{DataType, SqlType};

use crate::ast::QueryBody;
use crate::ast::{self, SelectItem};
use crate::binder::resolution_notes::ResolutionNotes;
use crate::binder::resolution_notes::entry_position;
use crate::binder::{SystemCatalog, resolve_expression, resolve_trigger_condition, resolve_view};
use crate::catalog::Catalog;
use crate::catalog::access::row_security::expression_of;
use crate::catalog::name::SearchPath;
use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::deparse::range_table::RangeTableEntry;
use crate::error::Result;
use crate::parser;

/// The number of spaces by which clauses of a query are indented.
const STEP: i32 = 8;

/// The layout of a text.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Redundant parentheses are omitted.
    pub pretty: bool,
    /// Clauses are on separate lines, and so are list entries if a line would be longer than this;
    /// `None`: everything is on one line.
    pub wrap: Option<usize>,
}

impl Layout {
    /// An expression, on one line.
    pub const EXPRESSION: Layout = Layout { pretty: false, wrap: None };
    /// A query, with each entry of a list on its own line.
    pub const QUERY: Layout = Layout { pretty: false, wrap: Some(0) };
}

/// The context of names in the text.
#[derive(Clone, Copy)]
pub struct DeparseContext<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The search path; objects that it finds are unqualified.
    pub path: &'a SearchPath,
    /// The output format of literals.
    pub style: &'a TextStyle,
}

impl<'a> DeparseContext<'a> {
    /// Returns a context with the default search path.
    pub fn new(catalog: &'a Catalog) -> DeparseContext<'a> {
        static PATH: LazyLock<SearchPath> = LazyLock::new(SearchPath::default);
        DeparseContext::with_search_path(catalog, &PATH)
    }

    /// Returns a context with a search path and the default output format of literals.
    pub fn with_search_path(catalog: &'a Catalog, path: &'a SearchPath) -> DeparseContext<'a> {
        static STYLE: LazyLock<TextStyle> = LazyLock::new(TextStyle::default);
        DeparseContext { catalog, path, style: &STYLE }
    }
}

/// Returns the query of a view as `pg_get_viewdef` shows it, without a semicolon.
///
/// # Errors
///
/// The error of the query, which a later change of an object can cause.
pub fn view(
    view: &Arc<View>,
    reader: DeparseContext<'_>,
    system: &dyn SystemCatalog,
    layout: Layout,
) -> Result<String> {
    let notes = resolve_view(view, reader.catalog, system)?;
    let names: Vec<String> = view.columns.iter().map(|column| column.name.clone()).collect();
    let mut writer = SqlWriter::new(&notes, reader, layout);
    // The names of the row before and after a change in rules of views.
    writer.taken = vec!["old".to_owned(), "new".to_owned()];
    writer.query(view.query()?, ColumnNaming { names: Some(&names), is_seen: true });
    Ok(writer.out)
}

/// The input of an expression.
pub struct ExpressionInput<'a> {
    /// The names and types of the columns.
    pub columns: &'a [(String, SqlType)],
    /// The type to which it is converted.
    pub target: Option<SqlType>,
    /// True if the column is the value of a domain.
    pub is_domain: bool,
}

/// Returns the text of a stored expression.
///
/// # Errors
///
/// The error of the expression, which a later change of an object can cause.
pub fn expression(
    text: &str,
    over: &ExpressionInput<'_>,
    reader: DeparseContext<'_>,
    layout: Layout,
) -> Result<String> {
    let tree = parser::parse_expression(text)?;
    written(&tree, over, reader, layout).map(|(text, _)| text)
}

/// Returns the text of WHEN of a trigger.
///
/// # Errors
///
/// The error of the condition, which a later change of an object can cause.
pub fn trigger_condition(
    text: &str,
    table: &Arc<Table>,
    reader: DeparseContext<'_>,
    layout: Layout,
) -> Result<String> {
    let tree = parser::parse_expression(text)?;
    let notes = resolve_trigger_condition(&tree, table, reader.catalog)?;
    let mut writer = SqlWriter::new(&notes, reader, layout);
    writer.is_of_trigger = true;
    let node = writer.value(&tree, Some(DataType::Bool.into()));
    writer.write(&node, false);
    Ok(writer.out)
}

/// Returns the text of an expression of a policy, given the query over its table.
///
/// # Errors
///
/// The error of the query, which a later change of an object can cause.
pub fn policy(
    query: &Arc<View>,
    reader: DeparseContext<'_>,
    system: &dyn SystemCatalog,
    layout: Layout,
) -> Result<String> {
    let notes = resolve_view(query, reader.catalog, system)?;
    let mut writer = SqlWriter::new(&notes, reader, layout);
    if let QueryBody::Select(select) = &query.query()?.body {
        writer.enter(&select.from);
        writer.policy_entry = select.from.first().map(entry_position);
    }
    let node = writer.value(expression_of(query)?, Some(DataType::Bool.into()));
    writer.write(&node, false);
    Ok(writer.out)
}

/// Returns the text of an index key without its collation, and whether it is a call.
///
/// # Errors
///
/// The error of the expression, which a later change of an object can cause.
pub fn index_key(
    text: &str,
    over: &ExpressionInput<'_>,
    reader: DeparseContext<'_>,
    layout: Layout,
) -> Result<(String, bool)> {
    match parser::parse_expression(text)? {
        ast::Expr::Collate { operand, .. } => written(&operand, over, reader, layout),
        tree => written(&tree, over, reader, layout),
    }
}

fn written(
    tree: &ast::Expr,
    over: &ExpressionInput<'_>,
    reader: DeparseContext<'_>,
    layout: Layout,
) -> Result<(String, bool)> {
    let notes = resolve_expression(tree, over.columns, over.target.clone(), reader.catalog)?;
    let mut writer = SqlWriter::new(&notes, reader, layout);
    writer.value_word = over.is_domain;
    let node =
        convert::with_length_coercion(writer.value(tree, over.target.clone()), over.target.clone());
    writer.write(&node, false);
    let is_call = node.is_call();
    Ok((writer.out, is_call))
}

/// The names of a query's columns for its reader.
#[derive(Clone, Copy)]
struct ColumnNaming<'n> {
    /// The names, if they differ from the query's own.
    names: Option<&'n [String]>,
    /// False if the names are invisible.
    is_seen: bool,
}

impl ColumnNaming<'_> {
    const OWN: ColumnNaming<'static> = ColumnNaming { names: None, is_seen: true };
    const UNSEEN: ColumnNaming<'static> = ColumnNaming { names: None, is_seen: false };
}

/// The state of the output.
struct SqlWriter<'a> {
    out: String,
    notes: &'a ResolutionNotes,
    reader: DeparseContext<'a>,
    layout: Layout,
    /// The indentation of clauses.
    indent: i32,
    /// The entries of FROM of the enclosing queries, by key.
    entries: HashMap<usize, RangeTableEntry>,
    /// The entries of FROM of the current query.
    level: Vec<usize>,
    /// The entries whose columns were written, in order.
    used: Vec<usize>,
    /// The names of the entries of FROM of the enclosing queries.
    taken: Vec<String>,
    /// The current select list, with the names of its columns.
    targets: Vec<SelectTarget<'a>>,
    /// True if the column of an expression is the value of a domain.
    value_word: bool,
    /// True in WHEN of a trigger, over the rows `old` and `new`.
    is_of_trigger: bool,
    /// The table of a policy, whose columns are not qualified outside of subqueries.
    policy_entry: Option<usize>,
}

/// An entry of a select list.
#[derive(Clone)]
struct SelectTarget<'a> {
    item: &'a SelectItem,
    /// The field, if the item is all fields of a row.
    field: Option<String>,
    /// Its name in the query itself.
    name: String,
}

impl<'a> SqlWriter<'a> {
    fn new(
        notes: &'a ResolutionNotes,
        reader: DeparseContext<'a>,
        layout: Layout,
    ) -> SqlWriter<'a> {
        SqlWriter {
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
            is_of_trigger: false,
            policy_entry: None,
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writes a name.
    fn name(&mut self, name: &str) {
        self.out.push_str(&types::function::quote_ident(name));
    }

    /// Writes a list, separated by commas.
    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        for (at, item) in items.into_iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" });
            write(self, item);
        }
    }

    /// Writes a keyword that begins a line: indented by `before` more, and by `plus` for itself;
    /// what follows is indented by `after` more.
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
        // Deep queries are indented by less, and beyond a limit from the start again.
        let width = match self.indent < LIMIT {
            true => self.indent.max(0),
            false => (LIMIT + (self.indent - LIMIT) / (STEP / 2)) % LIMIT,
        };
        let width = usize::try_from(width + plus).unwrap_or(0);
        self.out.extend(std::iter::repeat_n(' ', width));
        self.push(word);
        self.indent = (self.indent + after).max(0);
    }

    /// Returns the output of `write`, without appending it.
    fn aside(&mut self, write: impl FnOnce(&mut Self)) -> String {
        let before = std::mem::take(&mut self.out);
        write(self);
        std::mem::replace(&mut self.out, before)
    }

    /// Appends an entry of a list, on a new line if the line would be too long, or if `apart`.
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

    /// Returns the name of a type.
    fn type_name(&self, sql_type: &SqlType) -> String {
        let oid = sql_type.oid();
        if sql_type.domain.is_none() && sql_type.modifier < 0 {
            match &sql_type.base {
                DataType::Char => return "bpchar".to_owned(),
                DataType::Array(of) if **of == DataType::Char => {
                    return "bpchar[]".to_owned();
                }
                DataType::Bit => return "\"bit\"".to_owned(),
                _ => {}
            }
        }
        let modifier = if sql_type.domain.is_some() { -1 } else { sql_type.modifier };
        let shown = self.reader.catalog.shown_type_with(oid, modifier, self.reader.path);
        shown.unwrap_or_else(|| sql_type.name())
    }

    /// Returns the name of a table or view, qualified unless the search path finds it.
    fn relation_name(&self, schema: &str, name: &str, oid: u32) -> String {
        use types::function::quote_ident;
        let bare = ast::TableName {
            schema: None,
            name: ast::Ident { value: name.to_owned(), position: 1 },
        };
        use crate::catalog::CatalogRelation;
        let found = match self.reader.catalog.find(&bare, self.reader.path) {
            Some(CatalogRelation::Table(table)) => Some(table.oid),
            Some(CatalogRelation::View(view)) => Some(view.oid),
            Some(CatalogRelation::Sequence(sequence)) => Some(sequence.oid),
            _ => None,
        };
        match found == Some(oid) {
            true => quote_ident(name),
            false => format!("{}.{}", quote_ident(schema), quote_ident(name)),
        }
    }
}
