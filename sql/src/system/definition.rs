//! SQL text of catalog objects, as PostgreSQL's `pg_get_…def` functions (ruleutils.c) write it.
//!
//! Called by the `pg_get_…` functions and by system views that show definitions. Expressions and
//! queries are stored as SQL text; [`deparse`] parses and binds them again and writes them in the
//! requested [`Layout`].

use types::expr::Expr;
use types::inverted::InvertedClass;
use types::{DataType, SqlType};

use crate::ast::{self, Collation, Deferral, IndexMethod, ReferentialAction, TriggerEvent};
use crate::catalog::domain::{Domain, VALUE};
use crate::catalog::function::FunctionRecord;
use crate::catalog::record::IndexRecord;
use crate::catalog::table::{Index, Table};
use crate::catalog::trigger::TriggerRecord;
use crate::catalog::{Catalog, collation};
use crate::deparse::{self, DeparseContext, ExpressionInput, Layout};
use crate::parser;
use crate::storage_options;
use crate::system::catalog_objects::{
    CatalogConstraint, CatalogObjects, ConstraintRowKind, ForeignKeyTarget, SystemRelation,
    SystemRelationKind, attribute_number, user_oid,
};
use crate::system::pg_catalog::index_record;
use crate::system::views::DefinitionContext;
use crate::system::{SystemNames, reg_names};

pub(super) use types::function::quote_ident as identifier;

/// Returns `schema.name`.
pub(super) fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", identifier(schema), identifier(name))
}

/// Returns the text of an expression over the columns of a table, coerced to `target`.
pub(super) fn table_expression(
    text: &str,
    (table, target): (&Table, Option<SqlType>),
    reader: DeparseContext<'_>,
    layout: Layout,
) -> String {
    let columns = columns_by_name(table);
    let over = ExpressionInput { columns: &columns, target, is_domain: false };
    deparse::expression(text, &over, reader, layout).unwrap_or_else(|_| text.to_owned())
}

fn columns_by_name(table: &Table) -> Vec<(String, SqlType)> {
    let columns = table.columns.iter();
    columns.map(|column| (column.shown_name().to_owned(), column.sql_type.clone())).collect()
}

/// Returns the text of an expression over `VALUE` of a domain.
pub(super) fn domain_expression(
    text: &str,
    domain: &Domain,
    reader: DeparseContext<'_>,
    layout: Layout,
) -> String {
    let columns = [(VALUE.to_owned(), domain.base_type.clone())];
    let over =
        ExpressionInput { columns: &columns, target: Some(DataType::Bool.into()), is_domain: true };
    deparse::expression(text, &over, reader, layout).unwrap_or_else(|_| text.to_owned())
}

/// Returns the stored text of a column's default for `pg_attrdef`: a literal gets its type.
pub(super) fn stored_default(text: &str, sql_type: &SqlType, catalog: &Catalog) -> String {
    match parser::parse_expression(text) {
        Ok(ast::Expr::String { .. } | ast::Expr::Null { .. }) => constant_expression(
            text,
            Some(sql_type.clone()),
            DeparseContext::new(catalog),
            Layout::EXPRESSION,
        ),
        _ => text.to_owned(),
    }
}

/// Returns the text of the default of a domain.
pub(super) fn default(text: &str, domain: &Domain, reader: DeparseContext<'_>) -> String {
    constant_expression(text, Some(domain.base_type.base_type()), reader, Layout::QUERY)
}

/// Returns the text of an expression without columns, coerced to `target`.
pub(super) fn constant_expression(
    text: &str,
    target: Option<SqlType>,
    reader: DeparseContext<'_>,
    layout: Layout,
) -> String {
    let over = ExpressionInput { columns: &[], target, is_domain: false };
    deparse::expression(text, &over, reader, layout).unwrap_or_else(|_| text.to_owned())
}

/// Returns the positions of the columns that an expression reads, ascending and without
/// duplicates.
pub(super) fn columns_of(expr: &Expr) -> Vec<usize> {
    let mut columns = expr.columns();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// A key or included column of an index.
pub(super) struct IndexKeyDefinition {
    /// The name of the column of the index.
    pub(super) name: String,
    /// Attribute number of the key column, 0 for an expression.
    pub(super) number: i16,
    pub(super) sql_type: SqlType,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
    /// Its collation, if its type is collatable.
    pub(super) collation: Option<Collation>,
    /// True if the collation differs from that of the column or expression.
    pub(super) is_collated: bool,
}

/// Returns the key columns of an index, without included columns.
pub(super) fn index_keys(table: &Table, index: &Index) -> Vec<IndexKeyDefinition> {
    let keys = index.spec.keys.iter().zip(&index.spec.layout.key);
    let key = |((expr, order), written): ((&Expr, &types::rowcode::KeyColumn), _)| {
        let mut own = collation::of_type(expr.data_type());
        let (name, number, sql_type) = match expr {
            Expr::Column { index, .. } => {
                let column = &table.columns[*index];
                own = column.collation;
                (column.name.clone(), attribute_number(table, *index), column.sql_type.clone())
            }
            Expr::Call { function, .. } => {
                let name = types::function::signature(*function).name;
                let name = if types::function::is_operator(name) { "expr" } else { name };
                (name.to_owned(), 0, expr.data_type().into())
            }
            Expr::Routine { routine, .. } => (routine.name.clone(), 0, expr.data_type().into()),
            _ => ("expr".to_owned(), 0, expr.data_type().into()),
        };
        IndexKeyDefinition {
            name,
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

/// Returns the texts of the keys of an index. Columns and function calls have no parentheses, all
/// other expressions do.
pub(super) fn key_texts(
    (table, index): (&Table, &Index),
    reader: DeparseContext<'_>,
    layout: Layout,
) -> Vec<String> {
    let columns = columns_by_name(table);
    let over = ExpressionInput { columns: &columns, target: None, is_domain: false };
    let key = |(expr, text): (&Expr, &String)| {
        if let Expr::Column { index, .. } = expr {
            return identifier(&table.columns[*index].name);
        }
        match deparse::index_key(text, &over, reader, layout) {
            Ok((text, true)) => text,
            Ok((text, false)) => format!("({text})"),
            Err(_) => format!("({text})"),
        }
    };
    index.spec.keys.iter().zip(index.key_texts()).map(key).collect()
}

/// Returns the key columns of a primary key.
pub(super) fn primary_key(table: &Table) -> Vec<IndexKeyDefinition> {
    let key = |key: &types::rowcode::KeyColumn| {
        let column = &table.columns[key.column];
        IndexKeyDefinition {
            name: column.name.clone(),
            number: attribute_number(table, key.column),
            sql_type: column.sql_type.clone(),
            descending: key.descending,
            nulls_first: key.nulls_first,
            collation: column.collation,
            is_collated: false,
        }
    };
    table.layout.key.iter().map(key).collect()
}

/// Returns the attribute numbers of the included columns of a primary key.
pub(super) fn primary_key_included(table: &Table, catalog: &Catalog) -> Vec<i16> {
    let record = catalog.record(table.oid);
    let include = record.iter().flat_map(|record| &record.retained.key_include);
    include.map(|column| attribute_number(table, *column as usize)).collect()
}

/// Returns ` INCLUDE (…)` for the index of a constraint; empty without included columns.
fn constraint_include(objects: &CatalogObjects, index: u32, catalog: &Catalog) -> String {
    let names: Vec<String> = match objects.relation(index).map(|one| &one.kind) {
        Some(SystemRelationKind::PrimaryKey(table)) => {
            let record = catalog.record(table.oid);
            let include = record.iter().flat_map(|record| &record.retained.key_include);
            include.map(|column| identifier(&table.columns[*column as usize].name)).collect()
        }
        Some(SystemRelationKind::Index(table, index)) => {
            let include = index.spec.include.iter();
            include.map(|column| identifier(&table.columns[*column].name)).collect()
        }
        _ => Vec::new(),
    };
    if names.is_empty() { String::new() } else { format!(" INCLUDE ({})", names.join(", ")) }
}

/// Returns the attribute numbers of the included columns of an index.
pub(super) fn included(table: &Table, index: &Index) -> Vec<i16> {
    index.spec.include.iter().map(|column| attribute_number(table, *column)).collect()
}

fn ordered(
    key: &IndexKeyDefinition,
    mut text: String,
    (class, is_primary): (Option<&str>, bool),
) -> String {
    if let Some(collation) = key.collation.filter(|_| key.is_collated) {
        text.push_str(&format!(" COLLATE {}", identifier(collation.name())));
    }
    if let Some(class) = class {
        text.push_str(&format!(" {class}"));
    }
    if key.descending {
        text.push_str(" DESC");
    }
    if key.nulls_first != key.descending && !is_primary {
        text.push_str(if key.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
    }
    text
}

/// Context and format of an index definition.
#[derive(Clone, Copy)]
pub(super) struct IndexDefinitionStyle<'a> {
    pub(super) reader: DeparseContext<'a>,
    pub(super) layout: Layout,
    /// True if the table's name is written without its schema.
    pub(super) hides_schema: bool,
    /// True if options that PostgreSQL does not know are left out.
    pub(super) is_portable: bool,
}

/// `pg_get_indexdef`: the whole definition, or one column, counted from 1.
pub(super) fn index(
    objects: &CatalogObjects,
    relation: &SystemRelation,
    column: i32,
    shown: IndexDefinitionStyle<'_>,
) -> Option<String> {
    let (table, keys, texts, include, unique) = match &relation.kind {
        SystemRelationKind::PrimaryKey(table) => {
            let keys = primary_key(table);
            let texts = keys.iter().map(|key| identifier(&key.name)).collect();
            let record = shown.reader.catalog.record(table.oid);
            let include = record.iter().flat_map(|record| &record.retained.key_include);
            let name = |column: &u32| identifier(&table.columns[*column as usize].name);
            let include: Vec<String> = include.map(name).collect();
            (table, keys, texts, include, true)
        }
        SystemRelationKind::Index(table, index) => {
            let include = index.spec.include.iter();
            let include = include.map(|column| identifier(&table.columns[*column].name)).collect();
            let texts = key_texts((table, index), shown.reader, shown.layout);
            (table, index_keys(table, index), texts, include, index.is_unique())
        }
        _ => return None,
    };
    if column > 0 {
        let at = column as usize - 1;
        let key = texts.get(at).cloned();
        return Some(key.or_else(|| include.get(at - keys.len()).cloned()).unwrap_or_default());
    }
    let is_primary = is_primary(relation);
    let record = match &relation.kind {
        SystemRelationKind::Index(table, index) => index_record(shown.reader.catalog, table, index),
        _ => None,
    };
    let method = record.map(IndexRecord::method).unwrap_or_default();
    let listed = (0..).zip(keys.iter().zip(texts)).map(|(position, (key, text))| {
        let written = record.and_then(|record| record.operator_class(position));
        let is_default = |name: &&str| {
            let of_type = InvertedClass::default_of(&key.sql_type.base);
            method == IndexMethod::Gin && of_type.is_some_and(|class| class.name() == *name)
        };
        ordered(key, text, (written.filter(|name| !is_default(name)), is_primary))
    });
    let is_local = record.is_some_and(IndexRecord::is_local) && !shown.is_portable;
    let mut text = format!(
        "CREATE {}{}INDEX {} ON {} USING {} ({})",
        if unique { "UNIQUE " } else { "" },
        if is_local { "LOCAL " } else { "" },
        identifier(&relation.name),
        match shown.hides_schema {
            true => identifier(&table.name),
            false => qualified(objects.namespace(relation.schema), &table.name),
        },
        method.name(),
        listed.collect::<Vec<_>>().join(", ")
    );
    if !include.is_empty() {
        text.push_str(&format!(" INCLUDE ({})", include.join(", ")));
    }
    if nulls_not_distinct(relation) {
        text.push_str(" NULLS NOT DISTINCT");
    }
    let options = match (&relation.kind, record) {
        (_, Some(index)) => storage_options::of_index(index, shown.is_portable),
        (SystemRelationKind::PrimaryKey(table), _) => {
            let record = shown.reader.catalog.record(table.oid);
            record.map(|record| record.retained.key_parameters.clone()).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    text.push_str(&storage_options::with_clause(&options));
    if let Some(predicate) = index_predicate(relation, shown.reader, shown.layout) {
        text.push_str(&format!(" WHERE {predicate}"));
    }
    Some(text)
}

/// Returns the text of the predicate of a partial index.
pub(super) fn index_predicate(
    relation: &SystemRelation,
    reader: DeparseContext<'_>,
    layout: Layout,
) -> Option<String> {
    let SystemRelationKind::Index(table, index) = &relation.kind else { return None };
    let text = index.predicate_text()?;
    Some(table_expression(text, (table, Some(DataType::Bool.into())), reader, layout))
}

/// `pg_get_expr`: the text of an expression that a catalog column has shown, over the columns of a
/// relation.
pub(super) fn shown_expression(
    text: &str,
    relation: Option<&SystemRelation>,
    reader: DeparseContext<'_>,
    layout: Layout,
) -> String {
    match relation.map(|relation| &relation.kind) {
        Some(SystemRelationKind::Table(table) | SystemRelationKind::Materialized(table, _)) => {
            // A default is coerced to its column's type, with the type modifier.
            let mut columns = relation.iter().flat_map(|relation| &relation.columns);
            let of_column = columns.find(|column| column.default.as_deref() == Some(text));
            let target = of_column.map(|column| column.sql_type.clone());
            table_expression(text, (table, target), reader, layout)
        }
        _ => constant_expression(text, None, reader, layout),
    }
}

/// Returns the text of the expression of a policy, given its query; `None` for another text.
pub(super) fn policy(
    text: &str,
    relation: Option<&SystemRelation>,
    viewer: &DefinitionContext<'_>,
    layout: Layout,
) -> Option<String> {
    let SystemRelationKind::Table(table) = &relation?.kind else { return None };
    let mut queries = table.row_security.policies.iter().flat_map(|policy| policy.expressions());
    let query = queries.find(|query| query.text == text)?;
    let path = viewer.search_path();
    let names = SystemNames { coprocessors: viewer.coprocessors, settings: None };
    let shown = deparse::policy(query, viewer.reader(&path), &names, layout);
    Some(shown.unwrap_or_else(|_| text.to_owned()))
}

/// Returns the text of the condition of a CHECK constraint.
pub(super) fn check(
    text: &str,
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
    (reader, layout): (DeparseContext<'_>, Layout),
) -> String {
    match objects.domain(constraint.domain) {
        Some(domain) => domain_expression(text, domain, reader, layout),
        None => shown_expression(text, objects.relation(constraint.table), reader, layout),
    }
}

/// `pg_get_constraintdef`
pub(super) fn constraint(
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
    (reader, layout): (DeparseContext<'_>, Layout),
    is_visible: &dyn Fn(&SystemRelation) -> bool,
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
        ConstraintRowKind::Check { text } => {
            format!("CHECK ({})", check(text, objects, constraint, (reader, layout)))
        }
        ConstraintRowKind::PrimaryKey(index) => {
            let include = constraint_include(objects, *index, reader.catalog);
            format!("PRIMARY KEY ({}){include}", names())
        }
        ConstraintRowKind::Unique(index) => {
            let of = objects.relation(*index).is_some_and(nulls_not_distinct);
            let nulls = if of { "NULLS NOT DISTINCT " } else { "" };
            let include = constraint_include(objects, *index, reader.catalog);
            format!("UNIQUE {nulls}({}){include}", names())
        }
        ConstraintRowKind::ForeignKey(key) => {
            let Some(table) = objects.relation(key.table) else { return String::new() };
            let shown = match is_visible(table) {
                true => identifier(&table.name),
                false => qualified(objects.namespace(table.schema), &table.name),
            };
            let (referenced, set) =
                (references(table, key), delete_columns(objects, constraint, key));
            format!("FOREIGN KEY ({}) REFERENCES {shown}{referenced}{set}", names())
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

/// Returns true if an index is that of a primary key.
pub(super) fn is_primary(index: &SystemRelation) -> bool {
    match &index.kind {
        SystemRelationKind::PrimaryKey(_) => true,
        SystemRelationKind::Index(_, index) => index.primary,
        _ => false,
    }
}

/// Returns the DEFERRABLE mode of the constraint of an index.
pub(super) fn deferral(relation: &SystemRelation) -> Deferral {
    match &relation.kind {
        SystemRelationKind::Index(_, index) => index.deferral,
        _ => Deferral::Never,
    }
}

/// Returns the DEFERRABLE mode of a constraint.
pub(super) fn constraint_deferral(
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
) -> Deferral {
    match &constraint.kind {
        ConstraintRowKind::ForeignKey(reference) => reference.key.deferral,
        ConstraintRowKind::PrimaryKey(index) | ConstraintRowKind::Unique(index) => {
            objects.relation(*index).map_or(Deferral::Never, deferral)
        }
        _ => Deferral::Never,
    }
}

/// Returns true if an index is NULLS NOT DISTINCT.
pub(super) fn nulls_not_distinct(relation: &SystemRelation) -> bool {
    matches!(&relation.kind, SystemRelationKind::Index(_, index) if index.spec.nulls_not_distinct)
}

/// Returns the text behind the name of the referenced table of a foreign key: columns, MATCH FULL
/// and actions.
fn references(
    table: &SystemRelation,
    ForeignKeyTarget { columns, key, .. }: &ForeignKeyTarget,
) -> String {
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

/// Returns the column list of ON DELETE SET NULL or SET DEFAULT, which ends a foreign key.
fn delete_columns(
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
    key: &ForeignKeyTarget,
) -> String {
    let Some(table) = objects.relation(constraint.table) else { return String::new() };
    let name = |number: &i16| {
        let column = table.columns.iter().find(|column| column.number == *number)?;
        Some(identifier(&column.name))
    };
    match key.delete_columns.iter().filter_map(name).collect::<Vec<_>>() {
        names if names.is_empty() => String::new(),
        names => format!(" ({})", names.join(", ")),
    }
}

/// Returns a referential action in SQL.
pub(super) fn action_words(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}

/// `pg_get_viewdef`
pub(super) fn view(
    relation: &SystemRelation,
    viewer: &DefinitionContext<'_>,
    layout: Layout,
) -> Option<String> {
    let (SystemRelationKind::View(view) | SystemRelationKind::Materialized(_, view)) =
        &relation.kind
    else {
        return None;
    };
    let path = viewer.search_path();
    let reader = viewer.reader(&path);
    let names = SystemNames { coprocessors: viewer.coprocessors, settings: None };
    Some(match deparse::view(view, reader, &names, layout) {
        Ok(text) => format!("{text};"),
        // The query may no longer bind, for example if a coprocessor's endpoint has been detached.
        Err(_) => format!(" {};", view.text.trim().trim_end_matches(';')),
    })
}

/// `pg_get_ruledef`: the `_RETURN` rule of a view.
pub(super) fn rule(
    relation: &SystemRelation,
    viewer: &DefinitionContext<'_>,
    objects: &CatalogObjects,
    pretty: bool,
) -> Option<String> {
    let query = view(relation, viewer, Layout { pretty, ..Layout::QUERY })?;
    let name = match pretty && reg_names::is_visible(viewer, objects, relation) {
        true => identifier(&relation.name),
        false => qualified(objects.namespace(relation.schema), &relation.name),
    };
    Some(format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {query}"))
}

/// `pg_get_triggerdef` of a trigger by its OID.
pub(super) fn trigger(trigger: u32, reader: DeparseContext<'_>, layout: Layout) -> Option<String> {
    let catalog = reader.catalog;
    let tables = catalog.with_triggers();
    let of = |table: &Table| {
        table.triggers.iter().find(|one| user_oid(one.record.number) == trigger).cloned()
    };
    let (table, found) = tables.iter().find_map(|table| Some((table, of(table)?)))?;
    let record = &found.record;
    let shown = |table: &Table| {
        let is_found = catalog.display_name(&table.schema, &table.name, reader.path) == table.name;
        match layout.pretty && is_found {
            true => identifier(&table.name),
            false => qualified(&table.schema, &table.name),
        }
    };
    let mut out = format!(
        "CREATE {}TRIGGER {} {} {} ON {} ",
        if record.is_constraint { "CONSTRAINT " } else { "" },
        identifier(&record.name),
        record.timing.words(),
        trigger_events(table, record),
        shown(table)
    );
    if record.is_constraint {
        if let Some(referenced) = record.referenced.and_then(|number| catalog.table(number)) {
            out.push_str(&format!("FROM {} ", shown(referenced)));
        }
        out.push_str(match record.deferral {
            Deferral::Never => "NOT DEFERRABLE INITIALLY IMMEDIATE ",
            Deferral::Immediate => "DEFERRABLE INITIALLY IMMEDIATE ",
            Deferral::Deferred => "DEFERRABLE INITIALLY DEFERRED ",
        });
    }
    if record.has_transitions() {
        out.push_str("REFERENCING ");
    }
    for (which, name) in [("OLD", &record.old_table), ("NEW", &record.new_table)] {
        if let Some(name) = name {
            out.push_str(&format!("{which} TABLE AS {} ", identifier(name)));
        }
    }
    out.push_str(if record.is_row { "FOR EACH ROW " } else { "FOR EACH STATEMENT " });
    if let Some(condition) = &record.condition {
        let written = deparse::trigger_condition(condition, table, reader, layout);
        out.push_str(&format!("WHEN ({}) ", written.unwrap_or_else(|_| condition.clone())));
    }
    let function = catalog.function(record.function)?;
    let FunctionRecord { schema, name, .. } = &function.record;
    let visible = catalog.functions_named(None, name, reader.path);
    let name = match visible.iter().any(|one| one.oid() == function.oid()) {
        true => identifier(name),
        false => qualified(schema, name),
    };
    let arguments = record.arguments.iter().map(|one| format!("'{}'", one.replace('\'', "''")));
    let arguments: Vec<String> = arguments.collect();
    Some(format!("{out}EXECUTE FUNCTION {name}({})", arguments.join(", ")))
}

fn trigger_events(table: &Table, record: &TriggerRecord) -> String {
    let event = |event: TriggerEvent| {
        let columns = record.columns.iter();
        let columns = columns.map(|at| identifier(&table.columns[*at as usize].name));
        let columns = columns.collect::<Vec<_>>().join(", ");
        match event {
            TriggerEvent::Update if !columns.is_empty() => format!("UPDATE OF {columns}"),
            other => other.word().to_owned(),
        }
    };
    record.sorted_events().into_iter().map(event).collect::<Vec<_>>().join(" OR ")
}
