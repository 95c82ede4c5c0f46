//! CREATE and ALTER SEQUENCE, the sequences of serial and identity columns, and the stored text of
//! defaults.

use store::transaction::TableLockMode;
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{self, ObjectKind, SequenceOptions};
use crate::binder::{self, NameContext, TableClause};
use crate::catalog::name::ObjectName;
use crate::catalog::record::TableRecord;
use crate::catalog::sequence::{Sequence, sequence_name};
use crate::catalog::{Catalog, CatalogObject, CatalogRelation};
use crate::ddl::drop::identity_of;
use crate::ddl::user_type::stored_text;
use crate::ddl::{Ddl, name, undefined_table};
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Creates a sequence. With IF NOT EXISTS, an existing relation is only a notice.
    pub fn create_sequence(&mut self, statement: &ast::CreateSequence) -> Result<()> {
        let catalog = self.catalog();
        let schema = self.creation_schema(&catalog, &statement.name)?;
        let name = ObjectName::new(&schema, &statement.name.name.value);
        let new = (ObjectKind::Sequence, schema.as_str(), name.name.as_str());
        if self.name_exists(&catalog, new, statement.if_not_exists)? {
            return Ok(());
        }
        self.check_type(&catalog, &statement.options)?;
        let mut sequence = new_sequence(&name, &statement.options, &DataType::Int8)?;
        if let Some(Some(owner)) = &statement.options.owned_by {
            sequence.owned_by = Some(self.owner_of(&catalog, &schema, owner)?);
        }
        self.add_sequence(sequence).map(drop)
    }

    /// Changes a sequence. With IF EXISTS, a missing one is only a notice.
    pub fn alter_sequence(&mut self, statement: &ast::AlterSequence) -> Result<()> {
        let catalog = self.catalog();
        let old = match self.find(&catalog, &statement.name) {
            Some(CatalogRelation::Sequence(old)) => old,
            Some(_) => {
                let name = &statement.name.name.value;
                bail!(WRONG_OBJECT_TYPE: "\"{name}\" is not a sequence");
            }
            None => {
                let missing = Error { position: None, ..undefined_table(&statement.name) };
                return self.missing_object(missing, statement.if_exists);
            }
        };
        // `nextval` is blocked, as in PostgreSQL.
        let mode = TableLockMode::ShareRowExclusive;
        self.lock_relation(old.id, mode)?;
        let options = &statement.options;
        self.check_type(&catalog, options)?;
        if options.owned_by.is_some() && identity_of(&catalog, old.oid).is_some() {
            let table = old.owned_by.and_then(|(table, _)| catalog.table(table));
            let table = table.map_or("", |table| table.name.as_str());
            bail!(FEATURE_NOT_SUPPORTED: "cannot change ownership of identity sequence";
                detail "Sequence \"{}\" is linked to table \"{table}\".", old.name);
        }
        let owned_by = match &options.owned_by {
            Some(Some(owner)) => Some(self.owner_of(&catalog, &old.schema, owner)?),
            Some(None) => None,
            None => old.owned_by,
        };
        self.change_sequence(&Sequence { owned_by, ..old.as_ref().clone() }, options)
    }

    /// Checks that the type in the options exists.
    fn check_type(&self, catalog: &Catalog, options: &SequenceOptions) -> Result<()> {
        let written = options.data_type.as_ref();
        written.map_or(Ok(()), |written| catalog.type_named(written, &self.path).map(drop))
    }

    /// Changes a sequence, except its owner.
    pub(super) fn change_sequence(
        &mut self,
        old: &Sequence,
        options: &SequenceOptions,
    ) -> Result<()> {
        let sequence = changed(old, options)?;
        let Some(restart) = options.restart else {
            let (value, _) = self.engine.sequences.state_of(old)?;
            check_value("RESTART", value, &sequence)?;
            return self.store_object(CatalogObject::Sequence(sequence.into()));
        };
        let first = restart.unwrap_or(sequence.start);
        check_value("RESTART", first, &sequence)?;
        self.restart_sequence(sequence, first)
    }

    /// Restarts a sequence with the value `first`.
    pub(super) fn restart_sequence(&mut self, mut sequence: Sequence, first: i64) -> Result<()> {
        // The new id has no state yet; a rollback restores the old one.
        sequence.first = first;
        self.changes.dropped_sequences.push(sequence.id);
        sequence.id = self.take_ids(1)?;
        self.store_object(CatalogObject::Sequence(sequence.into()))
    }

    /// Creates the sequences of a new table's serial and identity columns, and the defaults that
    /// read them.
    pub(super) fn create_own_sequences(
        &mut self,
        statement: &ast::CreateTable,
        record: &mut TableRecord,
    ) -> Result<()> {
        for (position, column) in statement.columns.iter().enumerate() {
            if !column.serial && column.identity.is_none() {
                continue;
            }
            let none = SequenceOptions::default();
            let options = column.identity.as_ref().map_or(&none, |identity| &identity.options);
            let data_type = &column.type_name.sql_type.base;
            let is_identity = column.identity.is_some();
            self.create_own_sequence(record, position, (options, data_type.clone(), is_identity))?;
        }
        Ok(())
    }

    /// Creates the sequence of a serial or identity column, and the default that reads it; returns
    /// its number.
    pub(super) fn create_own_sequence(
        &mut self,
        record: &mut TableRecord,
        position: usize,
        (options, data_type, is_identity): (&SequenceOptions, DataType, bool),
    ) -> Result<u32> {
        if is_identity && Sequence::range_of(&data_type).is_err() {
            bail!(INVALID_PARAMETER_VALUE: "identity column type must be smallint, integer, or bigint");
        }
        let catalog = self.changes.catalog(self.engine);
        let mut taken = name::NamesInUse::of(&catalog, &record.schema);
        taken.add(&record.name);
        record.indexes.iter().for_each(|index| taken.add(&index.name));
        taken.add(&record.primary_key_name);
        let sequence_name = match &options.name {
            Some(written) => {
                let schema = match &written.schema {
                    Some(_) => self.creation_schema(&catalog, written)?,
                    None => record.schema.clone(),
                };
                if schema != record.schema {
                    bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "sequence must be in same schema as table it is linked to");
                }
                let new = (ObjectKind::Sequence, schema.as_str(), written.name.value.as_str());
                self.name_exists(&catalog, new, false)?;
                ObjectName::new(&schema, &written.name.value)
            }
            None => {
                let stem = name::sequence(&record.name, &record.columns[position].name);
                let numbered = stem.free(|candidate| taken.contains(candidate));
                ObjectName::new(&record.schema, &numbered)
            }
        };
        let mut sequence = new_sequence(&sequence_name, options, &data_type)?;
        sequence.owned_by = Some((record.oid, position as u32));
        let oid = self.add_sequence(sequence)?;
        let named = sequence_name.to_string().replace('\'', "''");
        record.columns[position].default = Some(format!("nextval('{named}')"));
        Ok(oid)
    }

    /// Assigns the numbers of a sequence and stores it; returns its number.
    pub(super) fn add_sequence(&mut self, mut sequence: Sequence) -> Result<u32> {
        let oid = self.take_ids(1)?;
        (sequence.oid, sequence.id) = (oid, oid);
        self.store_object(CatalogObject::Sequence(sequence.into()))?;
        Ok(oid)
    }
}

/// Returns the text of a column's default for the catalog, and its value.
///
/// # Errors
///
/// The errors of binding it as a value of the type; those of [`stored_default`].
pub(super) fn bound_default(
    names: NameContext<'_>,
    default: &ast::SourceExpr,
    (column, sql_type): (&str, SqlType),
) -> Result<(String, Expr)> {
    let target = Some(sql_type.clone());
    let bound =
        binder::bind_table_expression(TableClause::Default, &default.expr, &[], target, names);
    let bound = bound.map_err(|error| match error.message.strip_prefix("column is of type") {
        Some(types) => {
            let message = format!("column \"{column}\" is of type{types}");
            Error { message, position: None, ..error }
        }
        None => error,
    })?;
    Ok((stored_default(names, default, &sql_type)?, bound))
}

/// Returns the text of a default for the catalog: names of sequences are qualified.
///
/// # Errors
///
/// `42P01` for a sequence that does not exist, `42809` for another object.
pub(super) fn stored_default(
    names: NameContext<'_>,
    default: &ast::SourceExpr,
    sql_type: &SqlType,
) -> Result<String> {
    let NameContext { catalog, path, .. } = names;
    let mut text = stored_text(names, &default.text, &[], Some(sql_type.clone()))?;
    let mut named: Vec<String> = Vec::new();
    // Errors are reported when it is bound for its column.
    let Ok(bound) =
        binder::bind_table_expression(TableClause::Default, &default.expr, &[], None, names)
    else {
        return Ok(text);
    };
    bound.walk(&mut |part| {
        let Expr::Call { function, arguments, .. } = part else { return };
        let takes = ["nextval", "currval", "setval"];
        if takes.contains(&types::function::signature(*function).name)
            && let Some(name) = arguments.first().and_then(sequence_name)
        {
            named.push(name.to_owned());
        }
    });
    for name in named {
        match catalog.find_text(&name, path)? {
            Some(CatalogRelation::Sequence(sequence)) => {
                let full = ObjectName::new(&sequence.schema, &sequence.name);
                text = replace_name(&text, &name, &full);
            }
            Some(_) => bail!(WRONG_OBJECT_TYPE: "\"{name}\" is not a sequence"),
            None => bail!(UNDEFINED_TABLE: "relation \"{name}\" does not exist"),
        }
    }
    Ok(text)
}

/// Returns SQL text with one string literal that names a sequence replaced by another.
pub(super) fn replace_name(text: &str, old: &str, new: &ObjectName) -> String {
    let literal = |name: &str| format!("'{}'", name.replace('\'', "''"));
    text.replace(&literal(old), &literal(&new.to_string()))
}

impl Ddl<'_> {
    /// Returns the table and column of OWNED BY, which must be in the sequence's schema.
    fn owner_of(
        &self,
        catalog: &Catalog,
        schema: &str,
        (name, column): &(ast::TableName, ast::Ident),
    ) -> Result<(u32, u32)> {
        let table = self.table(catalog, name)?;
        if table.schema != schema {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "sequence must be in same schema as table it is linked to");
        }
        let position = table.column_index(&column.value).ok_or_else(|| {
            let (column, table) = (&column.value, &table.name);
            err!(UNDEFINED_COLUMN: "column \"{column}\" of relation \"{table}\" does not exist")
        })?;
        Ok((table.oid, position as u32))
    }
}

/// Returns a sequence without an id.
///
/// # Errors
///
/// 22023 for inconsistent options.
pub(super) fn new_sequence(
    name: &ObjectName,
    options: &SequenceOptions,
    data_type: &DataType,
) -> Result<Sequence> {
    let written = options.data_type.as_ref().map(|written| &written.sql_type.base);
    let data_type = written.unwrap_or(data_type);
    Sequence::range_of(data_type)?;
    let blank = Sequence {
        oid: 0,
        schema: name.schema.clone(),
        name: name.name.clone(),
        id: 0,
        type_oid: data_type.oid(),
        start: 0,
        first: 0,
        increment: 1,
        min: 0,
        max: 0,
        cache: 1,
        cycle: false,
        owned_by: None,
        unknown: Default::default(),
    };
    let options = SequenceOptions {
        min: options.min.or(Some(None)),
        max: options.max.or(Some(None)),
        ..options.clone()
    };
    let mut sequence = changed(&blank, &options)?;
    if options.start.is_none() {
        sequence.start = if sequence.increment > 0 { sequence.min } else { sequence.max };
    }
    check_value("START", sequence.start, &sequence)?;
    sequence.first = sequence.start;
    Ok(sequence)
}

/// Returns a sequence with some of its options changed.
fn changed(old: &Sequence, options: &SequenceOptions) -> Result<Sequence> {
    let invalid = |message: String| err!(INVALID_PARAMETER_VALUE: message);
    let old_type = DataType::from_oid(old.type_oid).unwrap_or(DataType::Int8);
    let old_range = Sequence::range_of(&old_type)?;
    let data_type =
        options.data_type.as_ref().map_or(old_type, |written| written.sql_type.base.clone());
    let range = Sequence::range_of(&data_type)?;
    let mut new = Sequence { type_oid: data_type.oid(), ..old.clone() };
    if let Some(increment) = options.increment {
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero".to_owned()));
        }
        new.increment = increment;
    }
    new.cycle = options.cycle.unwrap_or(old.cycle);
    // A bound at the limit of the old type moves to the limit of the new one.
    let widened = |bound: i64, end: i64| options.data_type.is_some() && bound == end;
    let ascends = new.increment > 0;
    new.max = match options.max {
        Some(Some(max)) => max,
        Some(None) => {
            if ascends {
                range.1
            } else {
                -1
            }
        }
        None if widened(old.max, old_range.1) => range.1,
        None => old.max,
    };
    new.min = match options.min {
        Some(Some(min)) => min,
        Some(None) => {
            if ascends {
                1
            } else {
                range.0
            }
        }
        None if widened(old.min, old_range.0) => range.0,
        None => old.min,
    };
    for (word, bound) in [("MAXVALUE", new.max), ("MINVALUE", new.min)] {
        if !(range.0..=range.1).contains(&bound) {
            let type_name = data_type.sql_name();
            let message =
                format!("{word} ({bound}) is out of range for sequence data type {type_name}");
            return Err(invalid(message));
        }
    }
    if new.min >= new.max {
        let message = format!("MINVALUE ({}) must be less than MAXVALUE ({})", new.min, new.max);
        return Err(invalid(message));
    }
    if let Some(start) = options.start {
        check_value("START", start, &new)?;
        new.start = start;
    }
    if let Some(cache) = options.cache {
        if cache <= 0 {
            return Err(invalid(format!("CACHE ({cache}) must be greater than zero")));
        }
        new.cache = cache;
    }
    Ok(new)
}

fn check_value(word: &str, value: i64, sequence: &Sequence) -> Result<()> {
    let message = if value < sequence.min {
        format!("{word} value ({value}) cannot be less than MINVALUE ({})", sequence.min)
    } else if value > sequence.max {
        format!("{word} value ({value}) cannot be greater than MAXVALUE ({})", sequence.max)
    } else {
        return Ok(());
    };
    bail!(INVALID_PARAMETER_VALUE: message)
}
