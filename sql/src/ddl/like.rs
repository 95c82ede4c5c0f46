//! LIKE in CREATE TABLE: expands the columns of other tables into the statement.

use std::sync::Arc;

use crate::ast;
use crate::ast::{
    ColumnDefinition, ColumnName, ConstraintKind, CreateIndex, CreateTable, Deferral, Ident,
    IndexKey, IndexMethod, KeyColumn, LikeOptions, LikeTable, NullsOrder, OptionValue, SortOrder,
    SourceExpr, TableConstraint, TableOption, TypeName, UniqueKey,
};
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::ignored_attributes::Parameter;
use crate::catalog::record::{CheckRecord, IdentityRecord, IndexRecord, KeyRecord, TableRecord};
use crate::catalog::table::Table;
use crate::catalog::{Catalog, CatalogRelation};
use crate::ddl::key_constraint::DEFAULT_FAMILY;
use crate::ddl::{Ddl, undefined_table};
use crate::error::{Error, Result};
use crate::parser;

impl Ddl<'_> {
    /// Returns the statement with columns and constraints instead of LIKE, and the indexes to
    /// create after the table.
    pub(super) fn expanded(
        &self,
        catalog: &Catalog,
        statement: &CreateTable,
    ) -> Result<(CreateTable, Vec<CreateIndex>)> {
        let mut table = statement.clone();
        let mut indexes = Vec::new();
        for like in table.likes.drain(..).rev().collect::<Vec<_>>() {
            let columns = match self.find(catalog, &like.table) {
                Some(CatalogRelation::View(view)) => {
                    let columns = view.columns.iter();
                    columns.map(|c| definition(&like, &c.name, &c.sql_type)).collect()
                }
                Some(CatalogRelation::Table(source)) => {
                    let record = self.record_of(catalog, source)?;
                    let source =
                        LikeSource { like: &like, catalog, table: source, record: &record };
                    source.constraints(&mut table.constraints)?;
                    if like.including.indexes {
                        source.indexes(&statement.name, &mut indexes)?;
                    }
                    source.columns()?
                }
                Some(other) => return Err(wrong_kind(&like, other)),
                None => return Err(undefined_table(&like.table)),
            };
            // From the last LIKE to the first, so that positions remain valid.
            table.columns.splice(like.after..like.after, columns);
        }
        indexes.reverse();
        Ok((table, indexes))
    }
}

impl Ddl<'_> {
    /// Returns the relations whose comments a new table copies. It must be called before the table
    /// is created, because that may hide one of them on the search path.
    pub(super) fn comment_sources(
        &self,
        catalog: &Catalog,
        likes: &[LikeTable],
    ) -> Vec<(u32, LikeOptions)> {
        let likes = likes.iter().filter(|like| like.including.comments);
        let found = likes.filter_map(|like| Some((self.find(catalog, &like.table)?, like)));
        found.map(|(source, like)| (source.oid(), like.including)).collect()
    }

    /// Copies comments to a new table.
    pub(super) fn copy_comments(
        &mut self,
        table: &ast::TableName,
        sources: &[(u32, LikeOptions)],
    ) -> Result<()> {
        for &(source, including) in sources {
            let catalog = self.changes.catalog(self.engine);
            let Some(CatalogRelation::Table(table)) = self.find(&catalog, table) else { continue };
            let of_source = catalog.comments().filter(|(subject, _)| {
                let relation = catalog.table(source);
                let mut indexes = relation.iter().flat_map(|table| &table.indexes);
                subject.is_of(source) || indexes.any(|index| subject.is_of(index.oid))
            });
            let copied = of_source.filter_map(|(subject, text)| {
                Some((taken_over(&catalog, subject, table, including)?, text.to_owned()))
            });
            for (subject, text) in copied.collect::<Vec<_>>() {
                self.set_comment(subject, Some(&text))?;
            }
        }
        Ok(())
    }
}

/// Returns the subject in a new table that corresponds to a comment's subject in its source;
/// `None` if that was not copied.
fn taken_over(
    catalog: &Catalog,
    subject: &CommentSubjectKey,
    table: &Table,
    including: LikeOptions,
) -> Option<CommentSubjectKey> {
    match subject {
        CommentSubjectKey::Column(source, position) => {
            let position = *position as usize;
            let name = match (catalog.table(*source), catalog.view(*source)) {
                (Some(source), _) => &source.columns.get(position)?.name,
                (_, Some(view)) => &view.columns.get(position)?.name,
                _ => return None,
            };
            Some(CommentSubjectKey::Column(table.oid, table.column_index(name)? as u32))
        }
        CommentSubjectKey::Constraint(_, name) if including.constraints => {
            let mut checks = table.constraints.checks.iter();
            let check = checks.find(|check| check.name == *name)?;
            Some(CommentSubjectKey::Constraint(table.oid, check.name.clone()))
        }
        CommentSubjectKey::PrimaryKey(_) if including.indexes => {
            Some(CommentSubjectKey::PrimaryKey(table.oid))
        }
        CommentSubjectKey::Relation(index) if including.indexes => {
            let records = catalog.tables().into_iter().filter_map(|one| catalog.record(one.oid));
            let mut indexes = records.flat_map(|record| &record.indexes);
            let source = indexes.find(|one| one.oid == *index)?;
            let mut own = catalog.record(table.oid)?.indexes.iter();
            let copy = own.find(|one| {
                (&one.keys, one.unique, one.constraint, one.include.len())
                    == (&source.keys, source.unique, source.constraint, source.include.len())
            });
            copy.map(|index| CommentSubjectKey::Relation(index.oid))
        }
        _ => None,
    }
}

/// A source table of LIKE.
struct LikeSource<'a> {
    like: &'a LikeTable,
    catalog: &'a Catalog,
    table: &'a Arc<Table>,
    record: &'a TableRecord,
}

impl LikeSource<'_> {
    fn columns(&self) -> Result<Vec<ColumnDefinition>> {
        self.table.visible_columns().map(|position| self.column(position)).collect()
    }

    fn column(&self, position: usize) -> Result<ColumnDefinition> {
        let (column, record) = (&self.table.columns[position], &self.record.columns[position]);
        let including = self.like.including;
        let mut definition = definition(self.like, &column.name, &column.sql_type);
        definition.name.family = self.family(position);
        definition.not_null = column.not_null;
        let place = self.like.table.position();
        definition.type_name.collation = record.collation.map(|collation| (collation, place));
        definition.storage = record.retained.storage.filter(|_| including.storage);
        definition.compression = record.retained.compression.filter(|_| including.compression);
        if let Some(generated) = record.generated.as_ref().filter(|_| including.generated) {
            definition.generated = Some(source(generated)?);
        }
        match (column.identity, &record.default) {
            (Some(kind), _) if including.identity => {
                definition.identity = Some(self.identity(position, kind));
            }
            (None, Some(default)) if including.defaults => {
                definition.default = Some(source(default)?);
            }
            _ => {}
        }
        Ok(definition)
    }

    /// Returns the family of a column, if it is not the default family.
    fn family(&self, position: usize) -> Option<Ident> {
        if self.table.key_columns().any(|key| key == position) {
            return None;
        }
        let family = usize::from(self.record.columns[position].family);
        let name = &self.record.descriptor.families.get(family)?.name;
        (name != DEFAULT_FAMILY).then(|| self.named(name))
    }

    /// Returns an identity clause with the options of a column's sequence.
    fn identity(&self, position: usize, kind: IdentityRecord) -> ast::Identity {
        let kind = match kind {
            IdentityRecord::Always => ast::IdentityKind::Always,
            IdentityRecord::ByDefault => ast::IdentityKind::ByDefault,
        };
        let owner = Some((self.table.oid, position as u32));
        let sequence = self.catalog.sequences().find(|one| one.owned_by == owner);
        let options = sequence.map(|sequence| ast::SequenceOptions {
            increment: Some(sequence.increment),
            min: Some(Some(sequence.min)),
            max: Some(Some(sequence.max)),
            start: Some(sequence.start),
            cache: Some(sequence.cache),
            cycle: Some(sequence.cycle),
            ..ast::SequenceOptions::default()
        });
        ast::Identity { kind, options: options.unwrap_or_default() }
    }

    fn constraints(&self, into: &mut Vec<TableConstraint>) -> Result<()> {
        let including = self.like.including;
        if including.constraints {
            for CheckRecord { name, predicate, .. } in &self.record.checks {
                let kind = ConstraintKind::Check(source(predicate)?);
                into.push(self.constraint(Some(self.named(name)), kind));
            }
        }
        if !including.indexes {
            return Ok(());
        }
        if !self.record.primary_key_name.is_empty() {
            let key = self.record.primary_key.iter().map(|key| self.key_column(key)).collect();
            let constraint = self.constraint(None, ConstraintKind::PrimaryKey(key));
            let retained = &self.record.retained;
            let index = self.clauses(&retained.key_include, &retained.key_parameters);
            into.push(TableConstraint { index, ..constraint });
        }
        for index in self.record.indexes.iter().filter(|index| index.constraint) {
            let mut key = Vec::with_capacity(index.keys.len());
            for one in &index.keys {
                let column = parser::parse_relation_name(&one.expression)?.name;
                let name = ColumnName { family: None, name: self.named(&column.value) };
                let (order, nulls) = direction(one.descending, one.nulls_first);
                key.push(KeyColumn { name, order, nulls, row_timestamp: false });
            }
            let nulls_not_distinct = index.nulls_not_distinct;
            let kind = match index.primary {
                true => ConstraintKind::PrimaryKey(key),
                false => ConstraintKind::Unique(UniqueKey { columns: key, nulls_not_distinct }),
            };
            let constraint = self.constraint(None, kind);
            let clauses = self.clauses(&index.include, &index.retained.parameters);
            let deferral = index.deferral;
            into.push(TableConstraint { deferral, index: clauses, ..constraint });
        }
        Ok(())
    }

    /// Adds the indexes that belong to no constraint, newest first.
    fn indexes(&self, table: &ast::TableName, into: &mut Vec<CreateIndex>) -> Result<()> {
        for index in self.record.indexes.iter().rev().filter(|index| !index.constraint) {
            into.push(self.index(table, index)?);
        }
        Ok(())
    }

    fn index(&self, table: &ast::TableName, index: &IndexRecord) -> Result<CreateIndex> {
        let mut keys = Vec::with_capacity(index.keys.len());
        for key in &index.keys {
            let (order, nulls) = match index.method() {
                IndexMethod::Btree => {
                    let (order, nulls) = direction(key.descending, key.nulls_first);
                    (Some(order), nulls)
                }
                IndexMethod::Hash | IndexMethod::Gin => (None, None),
            };
            keys.push(IndexKey {
                source: source(&key.expression)?,
                operator_class: self.operator_class(index, keys.len()),
                order,
                nulls,
            });
        }
        let include = index.include.iter().map(|column| {
            let name = &self.record.columns[*column as usize].name;
            ColumnName { family: None, name: self.named(name) }
        });
        let salted = (index.salt_buckets > 0).then(|| TableOption {
            family: None,
            name: self.named("salt_buckets"),
            value: OptionValue::Number(index.salt_buckets.to_string()),
        });
        let eventual = index.eventual.then(|| TableOption {
            family: None,
            name: self.named("consistency"),
            value: OptionValue::String("eventual".to_owned()),
        });
        Ok(CreateIndex {
            unique: index.unique,
            concurrently: false,
            is_async: false,
            local: index.is_local(),
            if_not_exists: false,
            name: None,
            table: table.clone(),
            keys,
            include: include.collect(),
            nulls_not_distinct: index.nulls_not_distinct,
            predicate: index.predicate.as_deref().map(source).transpose()?,
            options: salted
                .into_iter()
                .chain(eventual)
                .chain(self.parameters(&index.retained.parameters))
                .collect(),
            splits: Vec::new(),
            method: index.method(),
        })
    }

    fn clauses(&self, include: &[u32], parameters: &[Parameter]) -> ast::IndexClauses {
        let name = |column: &u32| ColumnName {
            family: None,
            name: self.named(&self.record.columns[*column as usize].name),
        };
        let options = self.parameters(parameters).collect();
        ast::IndexClauses { include: include.iter().map(name).collect(), options }
    }

    /// Returns storage parameters as options of a statement.
    fn parameters(&self, parameters: &[Parameter]) -> impl Iterator<Item = TableOption> {
        parameters.iter().map(|(name, value)| TableOption {
            family: None,
            name: self.named(name),
            value: OptionValue::String(value.clone()),
        })
    }

    fn operator_class(&self, index: &IndexRecord, position: usize) -> Option<Ident> {
        index.operator_class(position as u32).map(|name| self.named(name))
    }

    fn key_column(&self, key: &KeyRecord) -> KeyColumn {
        let name = &self.record.columns[key.column as usize].name;
        let (order, nulls) = direction(key.descending, key.nulls_first);
        let name = ColumnName { family: None, name: self.named(name) };
        KeyColumn { name, order, nulls, row_timestamp: false }
    }

    fn constraint(&self, name: Option<Ident>, kind: ConstraintKind) -> TableConstraint {
        TableConstraint {
            name,
            kind,
            deferral: Deferral::Never,
            not_valid: false,
            index: ast::IndexClauses::default(),
            position: self.like.table.position(),
        }
    }

    /// Returns a name with the position of LIKE's table.
    fn named(&self, name: &str) -> Ident {
        Ident { value: name.to_owned(), position: self.like.table.position() }
    }
}

fn definition(like: &LikeTable, name: &str, sql_type: &types::SqlType) -> ColumnDefinition {
    let position = like.table.position();
    let name = ColumnName { family: None, name: Ident { value: name.to_owned(), position } };
    ColumnDefinition::new(
        name,
        TypeName { sql_type: sql_type.clone(), named: None, collation: None, position },
    )
}

fn direction(descending: bool, nulls_first: bool) -> (SortOrder, Option<NullsOrder>) {
    let order = if descending { SortOrder::Descending } else { SortOrder::Ascending };
    (order, Some(if nulls_first { NullsOrder::First } else { NullsOrder::Last }))
}

/// Returns an expression of the catalog as one of a statement.
fn source(text: &str) -> Result<SourceExpr> {
    Ok(SourceExpr { expr: parser::parse_expression(text)?, text: text.to_owned() })
}

fn wrong_kind(like: &LikeTable, relation: CatalogRelation<'_>) -> Error {
    let kind = match relation {
        CatalogRelation::Sequence(_) => "sequences",
        _ => "indexes",
    };
    err!(WRONG_OBJECT_TYPE: "relation \"{}\" is invalid in LIKE clause", like.table.name.value;
        detail "This operation is not supported for {kind}."; at like.table.position())
}
