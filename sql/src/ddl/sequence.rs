//! CREATE, ALTER and DROP SEQUENCE, and the sequences of serial and identity columns.

use store::Mutation;
use types::DataType;
use types::expr::Expr;

use crate::ast;
use crate::ast::SequenceOptions;
use crate::catalog::Catalog;
use crate::catalog::record::{CATALOG_TABLE, TableRecord, encode};
use crate::catalog::sequence::{Sequence, sequence_key};
use crate::catalog::table::Table;
use crate::ddl::{Ddl, check_schema, name};
use crate::error::{Error, Result, sqlstate};
use crate::parser;

impl Ddl<'_> {
    /// Creates a sequence. Returns a notice instead if it exists and the statement allows that.
    pub fn create_sequence(&mut self, statement: &ast::CreateSequence) -> Result<Option<String>> {
        let catalog = self.lock_catalog()?;
        check_schema(&statement.name)?;
        let name = &statement.name.name.value;
        if name::Taken::of(&catalog).contains(name) {
            let message = format!("relation \"{name}\" already exists");
            if statement.if_not_exists {
                return Ok(Some(format!("{message}, skipping")));
            }
            return Err(Error::new(sqlstate::DUPLICATE_TABLE, message));
        }
        let mut sequence = new_sequence(name, &statement.options, DataType::Int8)?;
        if let Some(Some(owner)) = &statement.options.owned_by {
            sequence.owned_by = Some(owner_of(&catalog, owner)?);
        }
        self.add_sequence(sequence)?;
        Ok(None)
    }

    /// Changes a sequence. Returns a notice instead if there is none and the statement allows that.
    pub fn alter_sequence(&mut self, statement: &ast::AlterSequence) -> Result<Option<String>> {
        let catalog = self.lock_catalog()?;
        check_schema(&statement.name)?;
        let name = &statement.name.name.value;
        let Some(old) = catalog.sequence(name) else {
            let missing = no_sequence(&catalog, name, "relation");
            if statement.if_exists && missing.sqlstate == sqlstate::UNDEFINED_TABLE {
                return Ok(Some(format!("{}, skipping", missing.message)));
            }
            return Err(missing);
        };
        let options = &statement.options;
        let mut sequence = changed(old, options)?;
        match &options.owned_by {
            Some(Some(owner)) => sequence.owned_by = Some(owner_of(&catalog, owner)?),
            Some(None) => sequence.owned_by = None,
            None => {}
        }
        let Some(restart) = options.restart else {
            self.store_sequence(sequence)?;
            return Ok(None);
        };
        // Under a new id nothing is kept of where it stood; a rollback takes the old one back.
        sequence.first = restart.unwrap_or(sequence.start);
        check_value("RESTART", sequence.first, &sequence)?;
        self.changes.dropped_sequences.push(sequence.id);
        self.add_sequence(sequence)?;
        Ok(None)
    }

    /// Drops sequences. Returns notices for those that do not exist, if the statement allows that.
    pub fn drop_sequence(&mut self, statement: &ast::DropSequence) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        for name in &statement.names {
            let catalog = self.lock_catalog()?;
            check_schema(name)?;
            let name = &name.name.value;
            if catalog.sequence(name).is_none() {
                let missing = no_sequence(&catalog, name, "sequence");
                if statement.if_exists && missing.sqlstate == sqlstate::UNDEFINED_TABLE {
                    notices.push(format!("{}, skipping", missing.message));
                    continue;
                }
                return Err(missing);
            }
            let users = users_of(&catalog, name);
            if let Some((table, column)) = users.first() {
                let line = |(table, column): &(String, String)| {
                    format!(
                        "default value for column {column} of table {table} depends on sequence {name}"
                    )
                };
                if statement.cascade {
                    return Err(Error::not_supported(
                        "DROP SEQUENCE … CASCADE of a sequence that a default uses",
                        format!("Drop table {table}, or column {column} of it."),
                    ));
                }
                let detail: Vec<String> = users.iter().map(line).collect();
                let message =
                    format!("cannot drop sequence {name} because other objects depend on it");
                return Err(Error::new(sqlstate::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .with_detail(detail.join("\n"))
                    .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
            self.remove_sequence(name)?;
        }
        Ok(notices)
    }

    /// Creates the sequences of a new table's serial and identity columns, whose defaults take from
    /// them.
    pub(super) fn create_own_sequences(
        &mut self,
        statement: &ast::CreateTable,
        record: &mut TableRecord,
    ) -> Result<()> {
        for (position, column) in statement.columns.iter().enumerate() {
            if !column.serial && column.identity.is_none() {
                continue;
            }
            let table = &record.name;
            let column_name = &column.name.name.value;
            let mut taken = name::Taken::of(&self.changes.catalog(self.engine));
            taken.add(table);
            record.indexes.iter().for_each(|index| taken.add(&index.name));
            taken.add(&record.primary_key_name);
            let stem = name::sequence(table, column_name);
            let sequence_name = name::numbered(&stem, |candidate| taken.contains(candidate));
            let none = SequenceOptions::default();
            let options = column.identity.as_ref().map_or(&none, |identity| &identity.options);
            let data_type = column.type_name.sql_type.base;
            if column.identity.is_some() && Sequence::range_of(data_type).is_err() {
                let message = "identity column type must be smallint, integer, or bigint";
                return Err(Error::new(sqlstate::INVALID_PARAMETER_VALUE, message));
            }
            let mut sequence = new_sequence(&sequence_name, options, data_type)?;
            sequence.owned_by = Some((table.clone(), column_name.clone()));
            self.add_sequence(sequence)?;
            let named = parser::quoted(&sequence_name).replace('\'', "''");
            record.columns[position].default = Some(format!("nextval('{named}')"));
        }
        Ok(())
    }

    /// Drops the sequences that go with a table.
    pub(super) fn drop_owned_sequences(&mut self, table: &str) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let owned = |sequence: &&std::sync::Arc<Sequence>| {
            sequence.owned_by.as_ref().is_some_and(|(owner, _)| owner == table)
        };
        let names: Vec<String> =
            catalog.sequences().filter(owned).map(|sequence| sequence.name.clone()).collect();
        names.iter().try_for_each(|name| self.remove_sequence(name))
    }

    fn remove_sequence(&mut self, name: &str) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(sequence) = catalog.sequence(name) else { return Ok(()) };
        self.changes.dropped_sequences.push(sequence.id);
        let row = Mutation::new(sequence_key(name)).delete_row();
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        self.changes.set_catalog(catalog.without_sequence(name));
        Ok(())
    }

    /// Gives a sequence an id and stores it.
    pub(super) fn add_sequence(&mut self, mut sequence: Sequence) -> Result<()> {
        sequence.id = self.next_id()?;
        self.write_next_id(sequence.id + 1)?;
        self.store_sequence(sequence)
    }

    fn store_sequence(&mut self, sequence: Sequence) -> Result<()> {
        let row = Mutation::new(sequence_key(&sequence.name)).put(0, Vec::new(), encode(&sequence));
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        let catalog = self.changes.catalog(self.engine);
        self.changes.set_catalog(catalog.with_sequence(sequence));
        Ok(())
    }
}

/// Returns the columns whose default takes from a sequence that is not their own.
fn users_of(catalog: &Catalog, sequence: &str) -> Vec<(String, String)> {
    let mut users = Vec::new();
    for table in catalog.tables() {
        for column in &table.columns {
            if column.default.as_ref().is_some_and(|default| takes_from(default, sequence)) {
                users.push((table.name.clone(), column.name.clone()));
            }
        }
    }
    users
}

fn takes_from(default: &Expr, sequence: &str) -> bool {
    let mut found = false;
    default.walk(&mut |part| {
        let Expr::Call { function, arguments, .. } = part else { return };
        if types::function::signature(*function).name != "nextval" {
            return;
        }
        if let [Expr::Constant { value, .. }] = arguments.as_slice()
            && let types::Datum::Text(name) = value
            && let Ok(name) = parser::parse_relation_name(name)
        {
            found |= name.name.value == sequence;
        }
    });
    found
}

fn no_sequence(catalog: &Catalog, name: &str, kind: &str) -> Error {
    if catalog.table(name).is_some() || catalog.view(name).is_some() {
        return Error::new(sqlstate::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a sequence"));
    }
    Error::new(sqlstate::UNDEFINED_TABLE, format!("{kind} \"{name}\" does not exist"))
}

fn owner_of(
    catalog: &Catalog,
    (table, column): &(ast::TableName, ast::Ident),
) -> Result<(String, String)> {
    check_schema(table)?;
    let name = &table.name.value;
    let found: &Table =
        catalog.table(name).ok_or_else(|| super::no_table(catalog, table))?.as_ref();
    if found.column_index(&column.value).is_none() {
        let message = format!("column \"{}\" of relation \"{name}\" does not exist", column.value);
        return Err(Error::new(sqlstate::UNDEFINED_COLUMN, message));
    }
    Ok((name.clone(), column.value.clone()))
}

/// Returns a sequence without an id.
///
/// # Errors
///
/// 22023 for what does not fit together.
pub(super) fn new_sequence(
    name: &str,
    options: &SequenceOptions,
    data_type: DataType,
) -> Result<Sequence> {
    let data_type = options.data_type.as_ref().map_or(data_type, |written| written.sql_type.base);
    Sequence::range_of(data_type)?;
    let blank = Sequence {
        name: name.to_owned(),
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
    let invalid = |message: String| Error::new(sqlstate::INVALID_PARAMETER_VALUE, message);
    let old_type = DataType::from_oid(old.type_oid).unwrap_or(DataType::Int8);
    let old_range = Sequence::range_of(old_type)?;
    let data_type = options.data_type.as_ref().map_or(old_type, |written| written.sql_type.base);
    let range = Sequence::range_of(data_type)?;
    let mut new = Sequence { type_oid: data_type.oid(), ..old.clone() };
    if let Some(increment) = options.increment {
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero".to_owned()));
        }
        new.increment = increment;
    }
    new.cycle = options.cycle.unwrap_or(old.cycle);
    // What was the end of the old type becomes the end of the new one.
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
    Err(Error::new(sqlstate::INVALID_PARAMETER_VALUE, message))
}
