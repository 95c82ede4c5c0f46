//! Text of SHOW CREATE TABLE: the statements that create a relation as it is.
//!
//! ```text
//!   sequences that defaults use, CREATE TABLE with constraints and options,
//!   OWNED BY, constraints NOT VALID, indexes, coprocessors
//! ```
//!
//! They restore the definition and its options; rows, comments and split points are not part of
//! it. Unlike `pg_dump`, which writes the portable part, the text has the order of key columns and
//! names columns with their families.

use ahash::AHashMap;

use crate::ast::{Deferral, OnCommit};
use crate::catalog::collation;
use crate::catalog::name::is_temporary;
use crate::catalog::record::{CoprocessorKind, CoprocessorRecord, IdentityRecord, TableRecord};
use crate::catalog::sequence::Sequence;
use crate::catalog::table::Table;
use crate::deparse::Layout;
use crate::relation_assembly::DEFAULT_FAMILY;
use crate::storage_options;
use crate::system::catalog_objects::{
    Attribute, CatalogConstraint, CatalogObjects, ConstraintRowKind, SystemRelation,
    SystemRelationKind,
};
use crate::system::definition::{self, IndexDefinitionStyle, identifier, qualified};
use crate::system::reg_names;
use crate::system::views::DefinitionContext;
use crate::table_coprocessors::TABLE_PRIORITY;

/// The option that names families by their columns.
const COLUMN_FAMILIES: &str = "column_families";

/// Returns the statements that create a table.
pub(super) fn statements(
    objects: &CatalogObjects,
    (relation, table): (&SystemRelation, &Table),
    viewer: &DefinitionContext<'_>,
) -> Option<String> {
    let record = viewer.catalog.record(table.oid)?;
    let path = viewer.search_path();
    let shown = IndexDefinitionStyle {
        reader: viewer.reader(&path),
        layout: Layout::QUERY,
        hides_schema: reg_names::is_visible(viewer, objects, relation),
        is_portable: false,
    };
    let name = match shown.hides_schema {
        true => identifier(&relation.name),
        false => qualified(objects.namespace(relation.schema), &relation.name),
    };
    let names_families = is_restored_by_names(table, record);
    let definition =
        TableDefinition { objects, relation, table, record, viewer, shown, name, names_families };
    Some(definition.statements().join("\n"))
}

/// A table with what its definition is written from.
struct TableDefinition<'a> {
    objects: &'a CatalogObjects,
    relation: &'a SystemRelation,
    table: &'a Table,
    record: &'a TableRecord,
    viewer: &'a DefinitionContext<'a>,
    shown: IndexDefinitionStyle<'a>,
    /// Its name, with the schema if the search path does not find it.
    name: String,
    /// True if columns are written with their families; otherwise an option has them.
    names_families: bool,
}

/// Returns whether names of columns with their families restore a table: each family has a column,
/// and exactly the columns that share a name are known by `family.name`.
fn is_restored_by_names(table: &Table, record: &TableRecord) -> bool {
    let mut counts: AHashMap<&str, usize> = AHashMap::new();
    for column in table.visible_columns() {
        *counts.entry(table.qualifier_name(column)).or_default() += 1;
    }
    let is_restored = |column: usize| {
        let name = table.qualifier_name(column);
        (table.columns[column].name != name) == (counts[name] > 1)
    };
    let living = record.descriptor.families.iter().filter(|family| !family.is_dropped());
    let mut named = living.filter(|family| family.name != DEFAULT_FAMILY);
    table.visible_columns().all(is_restored)
        && named.all(|family| {
            table.visible_columns().any(|column| table.family_name(column) == family.name)
        })
}

impl TableDefinition<'_> {
    fn statements(&self) -> Vec<String> {
        let owned = self.relation.columns.iter().filter(|column| column.identity.is_none());
        let owned: Vec<_> = owned
            .filter_map(|column| {
                Some((column, self.objects.sequence_of(self.relation.oid, column)?))
            })
            .collect();
        let sequences = owned.iter().map(|(_, sequence)| {
            let name = self.sequence_name(sequence);
            format!("CREATE SEQUENCE {name}{};", sequence_options(sequence, true))
        });
        let owners = owned.iter().map(|(column, sequence)| {
            let name = self.sequence_name(sequence);
            let column = identifier(&column.name);
            format!("ALTER SEQUENCE {name} OWNED BY {}.{column};", self.name)
        });
        let invalid = self.constraints(false).into_iter();
        let invalid = invalid.map(|text| format!("ALTER TABLE {} ADD {text};", self.name));
        let relations = self.objects.relations.iter();
        let indexes = relations.filter_map(|relation| match &relation.kind {
            SystemRelationKind::Index(table, index)
                if table.oid == self.table.oid && !index.constraint =>
            {
                definition::index(self.objects, relation, 0, self.shown)
            }
            _ => None,
        });
        let mut statements: Vec<String> = sequences.collect();
        statements.push(self.create_table());
        statements.extend(owners.chain(invalid));
        statements.extend(indexes.map(|text| format!("{text};")));
        statements.extend(self.table.coprocessors.attached.iter().map(|one| self.attach(one)));
        statements
    }

    /// Returns the name of a sequence, with its schema unless the table is without one too.
    fn sequence_name(&self, sequence: &Sequence) -> String {
        match self.shown.hides_schema && sequence.schema == self.record.schema {
            true => identifier(&sequence.name),
            false => qualified(&sequence.schema, &sequence.name),
        }
    }

    fn create_table(&self) -> String {
        let persistence = match () {
            () if is_temporary(&self.record.schema) => "TEMPORARY ",
            () if self.record.retained.unlogged => "UNLOGGED ",
            () => "",
        };
        // The columns of the relation are the visible ones of the table.
        let columns = self.relation.columns.iter().zip(self.table.visible_columns());
        let columns = columns.map(|(column, at)| self.column(column, at));
        let parts: Vec<String> = columns.chain(self.constraints(true)).collect();
        let mut options = storage_options::of_table(self.record, false);
        if self.names_families {
            options.retain(|(name, _)| name != COLUMN_FAMILIES);
        }
        let on_commit = match self.record.on_commit {
            OnCommit::PreserveRows => "",
            OnCommit::DeleteRows => " ON COMMIT DELETE ROWS",
            OnCommit::Drop => " ON COMMIT DROP",
        };
        format!(
            "CREATE {persistence}TABLE {} (\n    {}\n){}{on_commit};",
            self.name,
            parts.join(",\n    "),
            storage_options::with_clause(&options)
        )
    }

    fn column(&self, column: &Attribute, at: usize) -> String {
        let mut text = match self.table.family_name(at) {
            "" | DEFAULT_FAMILY => identifier(&column.name),
            family if self.names_families => qualified(family, self.table.qualifier_name(at)),
            _ => identifier(&column.name),
        };
        let (oid, modifier) = column.sql_type.stored_oid_and_modifier();
        let path = self.viewer.search_path();
        let type_name = self.viewer.catalog.shown_type_with(oid, modifier, &path);
        text.push_str(&format!(" {}", type_name.unwrap_or_else(|| column.sql_type.name())));
        let collated = column.collation != collation::of_type(&column.sql_type.base);
        if let Some(collation) = column.collation.filter(|_| collated) {
            text.push_str(&format!(" COLLATE {}", identifier(collation.name())));
        }
        if let Some(default) = &column.default {
            let (reader, layout) = (self.shown.reader, self.shown.layout);
            let value = definition::shown_expression(default, Some(self.relation), reader, layout);
            text.push_str(&match column.is_generated {
                true => format!(" GENERATED ALWAYS AS ({value}) STORED"),
                false => format!(" DEFAULT {value}"),
            });
        }
        if let Some(identity) = column.identity {
            let sequence = self.objects.sequence_of(self.relation.oid, column);
            let options = sequence.map_or_else(String::new, |one| sequence_options(one, false));
            text.push_str(match identity {
                IdentityRecord::Always => " GENERATED ALWAYS AS IDENTITY",
                IdentityRecord::ByDefault => " GENERATED BY DEFAULT AS IDENTITY",
            });
            if !options.is_empty() {
                text.push_str(&format!(" ({})", options.trim_start()));
            }
        }
        if column.not_null {
            text.push_str(" NOT NULL");
        }
        text
    }

    /// Returns the constraints that are valid, or those that are not: keys first, references last.
    fn constraints(&self, valid: bool) -> Vec<String> {
        let all = self.objects.constraints.iter();
        let own = all.filter(|one| one.table == self.relation.oid && one.domain == 0);
        let mut own: Vec<_> = own.filter(|one| one.valid == valid).collect();
        own.sort_by_key(|one| match &one.kind {
            ConstraintRowKind::PrimaryKey(_) => 0,
            ConstraintRowKind::Unique(_) => 1,
            ConstraintRowKind::Check { .. } => 2,
            ConstraintRowKind::ForeignKey(_) => 3,
        });
        let text = |one: &CatalogConstraint| {
            format!("CONSTRAINT {} {}", identifier(&one.name), self.constraint(one))
        };
        own.into_iter().map(text).collect()
    }

    fn constraint(&self, constraint: &CatalogConstraint) -> String {
        let is_visible =
            |one: &SystemRelation| reg_names::is_visible(self.viewer, self.objects, one);
        let written = (self.shown.reader, self.shown.layout);
        let text = || definition::constraint(self.objects, constraint, written, &is_visible);
        let ConstraintRowKind::PrimaryKey(index) = constraint.kind else { return text() };
        // `pg_get_constraintdef` leaves out the order of the key columns.
        let index = self.objects.relation(index);
        let index = index.and_then(|index| definition::index(self.objects, index, 0, self.shown));
        let key = index.as_deref().and_then(|index| index.split_once(" USING btree "));
        let deferral = definition::constraint_deferral(self.objects, constraint);
        match key {
            Some((_, key)) if deferral == Deferral::Never => format!("PRIMARY KEY {key}"),
            _ => text(),
        }
    }

    fn attach(&self, record: &CoprocessorRecord) -> String {
        let (table, coprocessor) = (&self.name, identifier(&record.coprocessor));
        let mut text = format!("ALTER TABLE {table} ATTACH COPROCESSOR {coprocessor}");
        if record.name != record.coprocessor {
            text.push_str(&format!(" AS {}", identifier(&record.name)));
        }
        if record.kind == CoprocessorKind::Observer && record.priority != TABLE_PRIORITY {
            text.push_str(&format!(" PRIORITY {}", record.priority));
        }
        text.push_str(&storage_options::with_clause(&record.arguments));
        text.push(';');
        text
    }
}

/// Returns the options of a sequence that differ from the defaults, each after a space; the type
/// only if it is asked for.
fn sequence_options(sequence: &Sequence, with_type: bool) -> String {
    let (type_name, low, high) = match sequence.type_oid {
        21 => ("smallint", i64::from(i16::MIN), i64::from(i16::MAX)),
        23 => ("integer", i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => ("bigint", i64::MIN, i64::MAX),
    };
    let ascends = sequence.increment > 0;
    let (min, max) = if ascends { (1, high) } else { (low, -1) };
    let start = if ascends { sequence.min } else { sequence.max };
    let mut text = String::new();
    if with_type && type_name != "bigint" {
        text.push_str(&format!(" AS {type_name}"));
    }
    for (word, value, default) in [
        ("INCREMENT BY", sequence.increment, 1),
        ("MINVALUE", sequence.min, min),
        ("MAXVALUE", sequence.max, max),
        ("START WITH", sequence.start, start),
        ("CACHE", sequence.cache, 1),
    ] {
        if value != default {
            text.push_str(&format!(" {word} {value}"));
        }
    }
    if sequence.cycle {
        text.push_str(" CYCLE");
    }
    text
}
