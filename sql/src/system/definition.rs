//! SQL text of what is in the catalog, as PostgreSQL's `pg_get_…def` write it.

use types::expr::Expr;
use types::{DataType, Datum, SqlType};

use crate::ast::{CheckOption, Collation, Deferral, ReferentialAction};
use crate::catalog::collation;
use crate::catalog::table::{Index, Table};
use crate::deparse::{self, Layout, Reader};
use crate::system::SystemNames;
use crate::system::objects::{
    Constraint, ConstraintKind, ForeignKey, Kind, Objects, Relation, number_of_column,
};
use crate::system::views::Viewer;

pub(super) use types::function::quote_ident as identifier;

/// Returns `schema.name`.
pub(super) fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", identifier(schema), identifier(name))
}

/// Returns the text of an expression over the columns of a table.
pub(super) fn expression(expr: &Expr, table: &Table) -> String {
    let text = as_written(expr).describe(&|column| identifier(&table.columns[column].name));
    sequences_by_name(&text)
}

/// Returns an expression with numbers as they mostly were written: as whole or decimal numbers that
/// are cast to another type, which the binder has done by now.
fn as_written(expr: &Expr) -> Expr {
    expr.clone().transform(&mut |node| {
        let Expr::Constant { value, data_type } = &node else { return node };
        let whole = match (data_type, value) {
            (DataType::Int2 | DataType::Int8, value) => value.as_i64(),
            (DataType::Numeric, Datum::Numeric(number)) if number.scale() == 0 => number.to_i64(),
            (DataType::Float4, Datum::Float4(number)) => whole(f64::from(*number)),
            (DataType::Float8, Datum::Float8(number)) => whole(*number),
            _ => None,
        };
        let to = SqlType::from(*data_type);
        match whole.and_then(|whole| i32::try_from(whole).ok()) {
            Some(whole) => Expr::Cast {
                operand: Box::new(Expr::constant(Datum::Int4(whole), DataType::Int4)),
                from: DataType::Int4,
                to,
                explicit: false,
            },
            None => node,
        }
    })
}

fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < f64::from(i32::MAX)).then_some(number as i64)
}

/// Returns the text of an expression over the value of a domain.
pub(super) fn of_value(expr: &Expr) -> String {
    as_written(expr).describe(&|_| "VALUE".to_owned())
}

/// Returns the same with fewer parentheses.
pub(super) fn pretty_of_value(expr: &Expr) -> String {
    pretty_with(expr, &of_value)
}

/// Returns the text of a default, without the cast to the column's type that nobody wrote.
/// `written` is its SQL text.
pub(super) fn default(expr: &Expr, table: &Table, written: Option<&str>) -> String {
    if let Some(number) = written.and_then(number) {
        return number;
    }
    without_casts(expr, &|column| identifier(&table.columns[column].name))
}

/// Returns how a number is shown that a text is, of whatever type it is to be.
fn number(text: &str) -> Option<String> {
    let digits = text.strip_prefix('-').unwrap_or(text).trim_start();
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let is_int4 = |text: &str| text.parse::<i32>().is_ok();
    let data_type = match digits.contains('.') || digits.parse::<i64>().is_err() {
        true => DataType::Numeric,
        false if is_int4(digits) => DataType::Int4,
        false => DataType::Int8,
    };
    let bare = digits.len() == text.len() && (is_int4(digits) || digits.contains('.'));
    let sign = if digits.len() == text.len() { "" } else { "-" };
    Some(match bare {
        true => digits.to_owned(),
        false => format!("'{sign}{digits}'::{}", data_type.sql_name()),
    })
}

/// Returns the text of an expression without the outer casts that nobody wrote.
pub(super) fn without_casts(expr: &Expr, name: &dyn Fn(usize) -> String) -> String {
    let expr = as_written(expr);
    let mut expr = &expr;
    while let Expr::Cast { operand, explicit: false, .. }
    | Expr::Domain { operand, explicit: false, .. } = expr
    {
        expr = operand;
    }
    sequences_by_name(&expr.describe_operand(name))
}

/// Returns the text of an expression without the parentheses that AND and OR need not have.
pub(super) fn pretty(expr: &Expr, table: &Table) -> String {
    pretty_with(expr, &|expr| expression(expr, table))
}

fn pretty_with(expr: &Expr, text: &dyn Fn(&Expr) -> String) -> String {
    let joined = |operands: &[Expr], word: &str, within: fn(&Expr) -> bool| {
        let operand = |one: &Expr| match within(one) {
            true => format!("({})", pretty_with(one, text)),
            false => pretty_with(one, text),
        };
        operands.iter().map(operand).collect::<Vec<_>>().join(word)
    };
    match expr {
        Expr::And(operands) => joined(operands, " AND ", |one| matches!(one, Expr::Or(_))),
        Expr::Or(operands) => joined(operands, " OR ", |_| false),
        other => bare_casts(&text(other)),
    }
}

/// Leaves out the parentheses around a name that is cast: `(c)::text` is `c::text`.
fn bare_casts(text: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(")::") {
        let (before, after) = rest.split_at(at);
        let name =
            before.rfind(|c: char| !is_name(c)).filter(|open| before[*open..].starts_with('('));
        match name {
            // Of a call the parentheses are its own.
            Some(open) if !before[..open].ends_with(is_name) && open + 1 < at => {
                out.push_str(&before[..open]);
                out.push_str(&before[open + 1..]);
                out.push_str("::");
            }
            _ => {
                out.push_str(before);
                out.push_str(")::");
            }
        }
        rest = &after[")::".len()..];
    }
    out.push_str(rest);
    out
}

/// The argument of `nextval` is a `regclass` to clients, who look for it so.
fn sequences_by_name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("nextval('") {
        let (before, call) = rest.split_at(at);
        out.push_str(before);
        let argument = "nextval('".len();
        match call[argument..].find("'::text)") {
            Some(end) => {
                let name = &call[argument..argument + end];
                out.push_str(&call[..argument]);
                out.push_str(name.strip_prefix("public.").unwrap_or(name));
                out.push_str("'::regclass)");
                rest = &call[argument + end + "'::text)".len()..];
            }
            None => {
                out.push_str(&call[..argument]);
                rest = &call[argument..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns the positions of the columns that an expression reads, ascending.
pub(super) fn columns_of(expr: &Expr) -> Vec<usize> {
    let mut columns = expr.columns();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// A key or included column of an index.
pub(super) struct IndexKey {
    /// The name that the index's column has.
    pub(super) name: String,
    /// SQL text of what it holds.
    pub(super) text: String,
    /// Number of the column, 0 for an expression.
    pub(super) number: i16,
    pub(super) sql_type: SqlType,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
    /// Its collation, if its values can have one.
    pub(super) collation: Option<Collation>,
    /// It is not that of the column or expression.
    pub(super) is_collated: bool,
}

/// Returns the keys of an index, without included columns.
pub(super) fn index_keys(table: &Table, index: &Index) -> Vec<IndexKey> {
    let keys = index.spec.keys.iter().zip(&index.spec.layout.key);
    let key = |((expr, order), written): ((&Expr, &types::rowcode::KeyColumn), _)| {
        let mut own = collation::of_type(expr.data_type());
        let (name, number, sql_type) = match expr {
            Expr::Column { index, .. } => {
                let column = &table.columns[*index];
                own = column.collation;
                (column.name.clone(), number_of_column(table, *index), column.sql_type)
            }
            Expr::Call { function, .. } => {
                let name = types::function::signature(*function).name;
                let name = if types::function::is_operator(name) { "expr" } else { name };
                (name.to_owned(), 0, expr.data_type().into())
            }
            Expr::Routine { routine, .. } => (routine.name.clone(), 0, expr.data_type().into()),
            _ => ("expr".to_owned(), 0, expr.data_type().into()),
        };
        IndexKey {
            name,
            text: key_text(expr, table),
            number,
            sql_type,
            descending: order.descending,
            nulls_first: order.nulls_first,
            collation: Option::or(written, own),
            is_collated: written.is_some() && written != own,
        }
    };
    keys.zip(index.collations.iter().copied()).map(key).collect()
}

/// A column or a call stands bare in an index definition, all else in parentheses.
fn key_text(expr: &Expr, table: &Table) -> String {
    let text = expression(expr, table);
    let bare = match expr {
        Expr::Column { .. } | Expr::Routine { .. } => true,
        Expr::Call { function, .. } => {
            !types::function::is_operator(types::function::signature(*function).name)
        }
        _ => false,
    };
    if bare { text } else { format!("({text})") }
}

/// Returns the keys of a primary key.
pub(super) fn primary_key(table: &Table) -> Vec<IndexKey> {
    let key = |key: &types::rowcode::KeyColumn| {
        let column = &table.columns[key.column];
        IndexKey {
            name: column.name.clone(),
            text: identifier(&column.name),
            number: number_of_column(table, key.column),
            sql_type: column.sql_type,
            descending: key.descending,
            nulls_first: key.nulls_first,
            collation: column.collation,
            is_collated: false,
        }
    };
    table.layout.key.iter().map(key).collect()
}

/// Returns the numbers of the columns that an index includes.
pub(super) fn included(table: &Table, index: &Index) -> Vec<i16> {
    index.spec.include.iter().map(|column| number_of_column(table, *column)).collect()
}

fn ordered(key: &IndexKey, is_primary: bool) -> String {
    let mut text = key.text.clone();
    if let Some(collation) = key.collation.filter(|_| key.is_collated) {
        text.push_str(&format!(" COLLATE {}", identifier(collation.name())));
    }
    if key.descending {
        text.push_str(" DESC");
    }
    if key.nulls_first != key.descending && !is_primary {
        text.push_str(if key.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
    }
    text
}

/// How a definition is written for people.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pretty {
    /// The table is found without its schema.
    pub(super) is_visible: bool,
}

/// `pg_get_indexdef`: all of it, or one column counted from 1.
pub(super) fn index(
    objects: &Objects,
    relation: &Relation,
    column: i32,
    pretty: Option<Pretty>,
) -> Option<String> {
    let (pretty, is_visible) = (pretty.is_some(), pretty.is_some_and(|one| one.is_visible));
    let (table, keys, include, unique) = match &relation.kind {
        Kind::PrimaryKey(table) => (table, primary_key(table), Vec::new(), true),
        Kind::Index(table, index) => {
            let include = index.spec.include.iter();
            let include = include.map(|column| identifier(&table.columns[*column].name)).collect();
            (table, index_keys(table, index), include, index.is_unique())
        }
        _ => return None,
    };
    if column > 0 {
        let at = column as usize - 1;
        let shown = |text: &str| if pretty { bare_casts(text) } else { text.to_owned() };
        let key = keys.get(at).map(|key| shown(&key.text));
        return Some(key.or_else(|| include.get(at - keys.len()).cloned()).unwrap_or_default());
    }
    let is_primary = is_primary(relation);
    let listed: Vec<String> = keys.iter().map(|key| ordered(key, is_primary)).collect();
    let mut text = format!(
        "CREATE {}INDEX {} ON {} USING btree ({})",
        if unique { "UNIQUE " } else { "" },
        identifier(&relation.name),
        match is_visible {
            true => identifier(&table.name),
            false => qualified(objects.namespace(relation.schema), &table.name),
        },
        listed.join(", ")
    );
    if !include.is_empty() {
        text.push_str(&format!(" INCLUDE ({})", include.join(", ")));
    }
    if nulls_not_distinct(relation) {
        text.push_str(" NULLS NOT DISTINCT");
    }
    if let Some(predicate) = index_predicate(relation, pretty) {
        text.push_str(&format!(" WHERE {predicate}"));
    }
    Some(if pretty { bare_casts(&text) } else { text })
}

/// Returns the text of the condition of a partial index.
pub(super) fn index_predicate(relation: &Relation, is_pretty: bool) -> Option<String> {
    let Kind::Index(table, index) = &relation.kind else { return None };
    let predicate = index.spec.predicate.as_ref()?;
    Some(match is_pretty {
        true => pretty(predicate, table),
        false => as_written(predicate)
            .describe_operand(&|column| identifier(&table.columns[column].name)),
    })
}

/// `pg_get_expr`: the text of an expression, pretty without the parentheses around it.
pub(super) fn shown_expression(text: &str, pretty: bool) -> String {
    if pretty { bare_casts(&without_needless(text)) } else { text.to_owned() }
}

/// Takes off the parentheses that AND and OR need not have, as [`pretty_with`] does.
fn without_needless(text: &str) -> String {
    let inner = without_parentheses(text);
    let is_or = |part: &str| split_outside(without_parentheses(part), " OR ").len() > 1;
    for word in [" AND ", " OR "] {
        let parts = split_outside(inner, word);
        if parts.len() > 1 {
            let shown = parts.iter().map(|part| match word == " AND " && is_or(part) {
                true => format!("({})", without_needless(part)),
                false => without_needless(part),
            });
            return shown.collect::<Vec<_>>().join(word);
        }
    }
    inner.to_owned()
}

/// Splits a text at a word that stands outside of parentheses and quotes.
fn split_outside<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let (mut depth, mut quoted, mut from) = (0, false, 0);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            ' ' if !quoted && depth == 0 && at >= from && text[at..].starts_with(word) => {
                parts.push(&text[from..at]);
                from = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// Takes off parentheses that are around all of a text.
fn without_parentheses(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else {
        return text;
    };
    let (mut depth, mut quoted) = (0, false);
    for c in inner.chars() {
        match c {
            '\'' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted && depth == 0 => return text,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
    }
    inner
}

/// `pg_get_constraintdef`
pub(super) fn constraint(
    objects: &Objects,
    constraint: &Constraint,
    pretty: bool,
    is_visible: &dyn Fn(&Relation) -> bool,
) -> String {
    let names = || {
        let table = objects.relation(constraint.table);
        let name = |number: &i16| {
            let column = table?.columns.iter().find(|column| column.number == *number)?;
            Some(identifier(&column.name))
        };
        constraint.columns.iter().filter_map(name).collect::<Vec<_>>().join(", ")
    };
    let mut text = match &constraint.kind {
        ConstraintKind::Check { pretty: text, .. } if pretty => format!("CHECK ({text})"),
        ConstraintKind::Check { text, .. } => format!("CHECK (({text}))"),
        ConstraintKind::PrimaryKey(_) => format!("PRIMARY KEY ({})", names()),
        ConstraintKind::Unique(index) => {
            let of = objects.relation(*index).is_some_and(nulls_not_distinct);
            let nulls = if of { "NULLS NOT DISTINCT " } else { "" };
            format!("UNIQUE {nulls}({})", names())
        }
        ConstraintKind::ForeignKey(key) => {
            let Some(table) = objects.relation(key.table) else { return String::new() };
            let shown = match is_visible(table) {
                true => identifier(&table.name),
                false => qualified(objects.namespace(table.schema), &table.name),
            };
            let referenced = references(table, key);
            format!("FOREIGN KEY ({}) REFERENCES {shown}{referenced}", names())
        }
    };
    text.push_str(deferral_words(constraint_deferral(objects, constraint)));
    if !constraint.valid {
        text.push_str(" NOT VALID");
    }
    text
}

fn deferral_words(deferral: Deferral) -> &'static str {
    match deferral {
        Deferral::Never => "",
        Deferral::Immediate => " DEFERRABLE",
        Deferral::Deferred => " DEFERRABLE INITIALLY DEFERRED",
    }
}

/// Returns whether an index is that of a primary key.
pub(super) fn is_primary(index: &Relation) -> bool {
    match &index.kind {
        Kind::PrimaryKey(_) => true,
        Kind::Index(_, index) => index.primary,
        _ => false,
    }
}

/// Returns when the constraint of an index is checked.
pub(super) fn deferral(relation: &Relation) -> Deferral {
    match &relation.kind {
        Kind::Index(_, index) => index.deferral,
        _ => Deferral::Never,
    }
}

/// Returns when a constraint is checked.
pub(super) fn constraint_deferral(objects: &Objects, constraint: &Constraint) -> Deferral {
    match &constraint.kind {
        ConstraintKind::ForeignKey(reference) => *reference.key.deferral,
        ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) => {
            objects.relation(*index).map_or(Deferral::Never, deferral)
        }
        _ => Deferral::Never,
    }
}

/// Returns whether NULLs collide in an index.
pub(super) fn nulls_not_distinct(relation: &Relation) -> bool {
    matches!(&relation.kind, Kind::Index(_, index) if index.spec.nulls_not_distinct)
}

/// Returns what follows the name of the referenced table of a foreign key.
fn references(table: &Relation, ForeignKey { columns, key, .. }: &ForeignKey) -> String {
    let name = |number: &i16| {
        let column = table.columns.iter().find(|column| column.number == *number)?;
        Some(identifier(&column.name))
    };
    let names: Vec<String> = columns.iter().filter_map(name).collect();
    let mut out = format!("({})", names.join(", "));
    if key.match_full {
        out.push_str(" MATCH FULL");
    }
    for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if action != ReferentialAction::NoAction {
            out.push_str(&format!(" ON {event} {}", action_words(action)));
        }
    }
    out
}

/// Returns an action as SQL writes it.
pub(super) fn action_words(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}

/// Returns the check option of a view.
pub(super) fn check_option(relation: &Relation) -> Option<&'static str> {
    let Kind::View(view) = &relation.kind else { return None };
    Some(match view.check_option? {
        CheckOption::Local => "LOCAL",
        CheckOption::Cascaded => "CASCADED",
    })
}

/// `pg_get_viewdef`
pub(super) fn view(relation: &Relation, viewer: &Viewer<'_>, layout: Layout) -> Option<String> {
    let (Kind::View(view) | Kind::Materialized(_, view)) = &relation.kind else { return None };
    let path = viewer.search_path();
    let reader = Reader { catalog: viewer.catalog, path: &path };
    let names = SystemNames { coprocessors: viewer.coprocessors };
    Some(match deparse::view(view, reader, &names, layout) {
        Ok(text) => format!("{text};"),
        // What a definition means may be gone, as an endpoint of a coprocessor.
        Err(_) => format!(" {};", view.text.trim().trim_end_matches(';')),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_written_as_regclass() {
        assert_eq!(
            sequences_by_name("(nextval('t_a_seq'::text) + 1)"),
            "(nextval('t_a_seq'::regclass) + 1)"
        );
        assert_eq!(sequences_by_name("nextval('x"), "nextval('x");
    }

    #[test]
    fn casts_of_names_need_no_parentheses() {
        assert_eq!(bare_casts("lower((c)::text) > (f(x)::int)"), "lower(c::text) > (f(x)::int)");
        assert_eq!(bare_casts("((a + b))::int, (c)::text"), "((a + b))::int, c::text");
        assert_eq!(without_parentheses("(a = ')')"), "a = ')'");
        assert_eq!(without_parentheses("(a) = (b)"), "(a) = (b)");
        let text = "((a = ' AND (') AND ((b = 1) OR (c = 2)))";
        assert_eq!(without_needless(text), "a = ' AND (' AND (b = 1 OR c = 2)");
    }
}
