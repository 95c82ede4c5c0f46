//! CREATE, ALTER and DROP TRIGGER, and ALTER TABLE … ENABLE and DISABLE TRIGGER.
//!
//! The checks and their order are those of PostgreSQL's `CreateTriggerFiringOn` (trigger.c).

use std::sync::Arc;

use store::transaction::TableLockMode;
use types::DataType;
use types::expr::Expr;

use crate::ast::{
    CreateTrigger, DropTrigger, RenameTrigger, TableName, TriggerEvent, TriggerFiring,
    TriggerStatement, TriggerTiming,
};
use crate::binder::{TableClause, bind_trigger_condition};
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::{EXECUTE, TRIGGER};
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::function::Function;
use crate::catalog::object::Object;
use crate::catalog::table::Table;
use crate::catalog::trigger::{TriggerRecord, no_trigger};
use crate::catalog::view::View;
use crate::catalog::{Catalog, CatalogRelation};
use crate::ddl::alter_column::column_of;
use crate::ddl::user_type::stored_text;
use crate::ddl::{Ddl, no_schema, no_table, undefined_table};
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Creates, renames or drops a trigger.
    pub fn change_triggers(&mut self, statement: &TriggerStatement) -> Result<()> {
        match statement {
            TriggerStatement::Create(create) => self.create_trigger(create),
            TriggerStatement::Drop(drop) => self.drop_trigger(drop),
            TriggerStatement::Rename(rename) => self.rename_trigger(rename),
        }
    }

    fn create_trigger(&mut self, create: &CreateTrigger) -> Result<()> {
        let catalog = self.catalog();
        let table = self.table_with_triggers(&catalog, &create.table)?;
        self.check_held(&catalog, AccessSubject::Relation(table.oid), TRIGGER)?;
        self.lock_table(table.id, TableLockMode::ShareRowExclusive)?;
        match table.is_view {
            true => check_form_of_view(&table.name, create)?,
            false => check_form(&table.name, create)?,
        }
        check_transitions(create)?;
        let referenced = match &create.referenced {
            Some(name) => Some(self.table(&catalog, name)?.oid),
            None => None,
        };
        let condition = self.trigger_condition(&catalog, &table, create)?;
        let function = self.trigger_function(&catalog, &create.function)?;
        self.check_held(&catalog, AccessSubject::Function(function.record.number), EXECUTE)?;
        let name = &create.name.value;
        let known = table.trigger(name).map(|trigger| &trigger.record);
        if let Some(known) = known {
            let is_constraint = known.is_constraint;
            if !create.or_replace || is_constraint {
                let what =
                    if create.or_replace { "is a constraint trigger" } else { "already exists" };
                bail!(DUPLICATE_OBJECT: "trigger \"{name}\" for relation \"{}\" {what}", table.name);
            }
        }
        let number = match known {
            Some(known) => known.number,
            None => self.take_ids(1)?,
        };
        let transition = |is_new: bool| {
            let found = create.transitions.iter().find(|one| one.is_new == is_new);
            found.map(|one| one.name.value.clone())
        };
        let trigger = TriggerRecord {
            number,
            name: name.clone(),
            function: function.record.number,
            timing: create.timing,
            events: create.events.clone(),
            is_row: create.is_row,
            columns: update_columns(&table, create)?,
            condition,
            arguments: create.arguments.clone(),
            firing: TriggerFiring::Origin,
            old_table: transition(false),
            new_table: transition(true),
            is_constraint: create.is_constraint,
            deferral: create.deferral,
            referenced,
            unknown: Default::default(),
        };
        let put = |triggers: &mut Vec<TriggerRecord>| match triggers
            .iter_mut()
            .find(|one| one.number == number)
        {
            Some(known) => *known = trigger,
            None => triggers.push(trigger),
        };
        // The privilege TRIGGER suffices.
        let mode = TableLockMode::ShareRowExclusive;
        self.with_others(|ddl| ddl.change_trigger_records(table.oid, (mode, false), put))
    }

    /// Checks that the current role has a privilege on an object.
    fn check_held(&self, catalog: &Catalog, subject: AccessSubject, privilege: u32) -> Result<()> {
        match catalog.privileges_on(self.roles.current.number, subject).0 & privilege {
            0 => Err(catalog.denied(subject)),
            _ => Ok(()),
        }
    }

    /// Returns the table that a statement creates a trigger on.
    fn table_with_triggers(&self, catalog: &Catalog, name: &TableName) -> Result<Arc<Table>> {
        let of_kind = |kinds: &str| {
            err!(WRONG_OBJECT_TYPE: "relation \"{}\" cannot have triggers", name.name.value;
                detail format!("This operation is not supported for {kinds}."))
        };
        match self.find(catalog, name) {
            Some(CatalogRelation::Table(table)) if table.is_materialized() => {
                Err(of_kind("materialized views"))
            }
            Some(CatalogRelation::Table(table)) => Ok(Arc::clone(table)),
            Some(CatalogRelation::Sequence(_)) => Err(of_kind("sequences")),
            Some(CatalogRelation::Index(..) | CatalogRelation::PrimaryKey(_)) => {
                Err(of_kind("indexes"))
            }
            Some(CatalogRelation::View(view)) => Ok(Arc::clone(view.as_table())),
            None => Err(no_table(catalog, name, &self.path)),
        }
    }

    /// Returns the function of a trigger.
    fn trigger_function(&self, catalog: &Catalog, name: &TableName) -> Result<Arc<Function>> {
        let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
        let shown = super::name_as_written(name);
        let found = catalog.functions_named(schema, &name.name.value, &self.path);
        let found = found.into_iter().find(|one| one.record.parameters.is_empty());
        let Some(found) = found else {
            let built_in = types::function::overloads(&name.name.value);
            if built_in.iter().any(|one| one.arguments.is_empty()) {
                bail!(INVALID_OBJECT_DEFINITION: "function {shown} must return type trigger")
            }
            bail!(UNDEFINED_FUNCTION: "function {shown}() does not exist")
        };
        match found.is_trigger() {
            true => Ok(found),
            false => bail!(INVALID_OBJECT_DEFINITION: "function {shown} must return type trigger"),
        }
    }

    /// Checks WHEN, and returns its text.
    fn trigger_condition(
        &self,
        catalog: &Catalog,
        table: &Arc<Table>,
        create: &CreateTrigger,
    ) -> Result<Option<String>> {
        let Some(condition) = &create.condition else { return Ok(None) };
        let names = self.names(catalog);
        let clause = TableClause::TriggerCondition;
        let bound = bind_trigger_condition(clause, &condition.expr, table, names)?;
        check_condition(table, create, &bound)?;
        let target = Some(DataType::Bool.into());
        stored_text(names, &condition.text, &[], target).map(Some)
    }

    fn drop_trigger(&mut self, drop: &DropTrigger) -> Result<()> {
        let catalog = self.catalog();
        let name = &drop.name.value;
        let Some(relation) = self.find(&catalog, &drop.table) else {
            let schema = drop.table.schema.as_ref().filter(|_| drop.if_exists);
            if let Some(schema) = schema.filter(|one| catalog.schema(&one.value).is_none()) {
                return self.missing_object(no_schema(&schema.value), true);
            }
            let missing = Error { position: None, ..undefined_table(&drop.table) };
            return self.missing_object(missing, drop.if_exists);
        };
        let table = match relation {
            CatalogRelation::Table(table) => Some(Arc::clone(table)),
            CatalogRelation::View(view) => Some(Arc::clone(view.as_table())),
            _ => None,
        };
        let found = table.filter(|table| table.trigger(name).is_some());
        let Some(table) = found else {
            // The noun is PostgreSQL's, which depends on the statement.
            let (noun, shown) = match drop.if_exists {
                true => ("relation", super::name_as_written(&drop.table)),
                false => ("table", drop.table.name.value.clone()),
            };
            let missing =
                err!(UNDEFINED_OBJECT: "trigger \"{name}\" for {noun} \"{shown}\" does not exist");
            return self.missing_object(missing, drop.if_exists);
        };
        let trigger = Object::Trigger(table.oid, name.clone());
        self.check_owns(&catalog, &trigger)?;
        self.drop_objects(&[trigger], drop.cascade)
    }

    fn rename_trigger(&mut self, rename: &RenameTrigger) -> Result<()> {
        let catalog = self.catalog();
        let table = self.table_with_triggers(&catalog, &rename.table)?;
        self.check_owns(&catalog, &Object::Trigger(table.oid, rename.name.value.clone()))?;
        let (from, to) = (&rename.name.value, &rename.to.value);
        if table.trigger(from).is_none() {
            return Err(no_trigger(from, &table.name));
        }
        if table.trigger(to).is_some() {
            bail!(DUPLICATE_OBJECT: "trigger \"{to}\" for relation \"{}\" already exists", table.name);
        }
        let key = |name: &String| CommentSubjectKey::Trigger(table.oid, name.clone());
        self.move_comment(key(from), key(to))?;
        let mode = TableLockMode::AccessExclusive;
        self.change_trigger_records(table.oid, (mode, false), |triggers| {
            for one in triggers.iter_mut().filter(|one| one.name == *from) {
                one.name.clone_from(to);
            }
        })
    }

    /// Changes the triggers of a table or view, as [`Ddl::change_left`] does.
    pub(super) fn change_trigger_records(
        &mut self,
        oid: u32,
        (mode, fail_late): (TableLockMode, bool),
        change: impl FnOnce(&mut Vec<TriggerRecord>),
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        if catalog.table(oid).is_some() {
            return self.change_left((oid, mode), fail_late, |_, record| {
                change(&mut record.triggers);
            });
        }
        let Some(view) = catalog.view(oid) else { return Ok(()) };
        self.lock_table(view.as_table().id, mode)?;
        let mut records = view.trigger_records();
        change(&mut records);
        let triggers = View::sorted_triggers(records);
        self.store_view(View { triggers, ..View::clone(view) })
    }
}

/// Checks that the table can have a trigger of this form.
fn check_form(table: &str, create: &CreateTrigger) -> Result<()> {
    if create.timing == TriggerTiming::InsteadOf {
        bail!(WRONG_OBJECT_TYPE: "\"{table}\" is a table";
            detail "Tables cannot have INSTEAD OF triggers.");
    }
    if create.is_row && create.events.contains(&TriggerEvent::Truncate) {
        bail!(FEATURE_NOT_SUPPORTED: "TRUNCATE FOR EACH ROW triggers are not supported");
    }
    Ok(())
}

/// Checks that a view can have a trigger of this form.
fn check_form_of_view(view: &str, create: &CreateTrigger) -> Result<()> {
    let refused = |detail: &str| err!(WRONG_OBJECT_TYPE: "\"{view}\" is a view"; detail detail);
    let is_instead = create.timing == TriggerTiming::InsteadOf;
    if create.is_row && !is_instead {
        return Err(refused("Views cannot have row-level BEFORE or AFTER triggers."));
    }
    if create.events.contains(&TriggerEvent::Truncate) {
        return Err(refused("Views cannot have TRUNCATE triggers."));
    }
    let lacks = [
        (!create.is_row, "must be FOR EACH ROW"),
        (create.condition.is_some(), "cannot have WHEN conditions"),
        (!create.columns.is_empty(), "cannot have column lists"),
    ];
    if let Some((_, what)) = lacks.into_iter().find(|(lacks, _)| is_instead && *lacks) {
        bail!(FEATURE_NOT_SUPPORTED: "INSTEAD OF triggers {what}");
    }
    if !create.transitions.is_empty() {
        return Err(refused("Triggers on views cannot have transition tables."));
    }
    match create.condition {
        Some(_) => Err(Error::not_supported(
            "WHEN of a trigger on a view",
            "Test the condition in the function of the trigger.",
        )),
        None => Ok(()),
    }
}

/// Checks REFERENCING.
fn check_transitions(create: &CreateTrigger) -> Result<()> {
    for (at, one) in create.transitions.iter().enumerate() {
        if create.timing != TriggerTiming::After {
            bail!(INVALID_OBJECT_DEFINITION: "transition table name can only be specified for an AFTER trigger");
        }
        if create.events.contains(&TriggerEvent::Truncate) {
            bail!(FEATURE_NOT_SUPPORTED: "TRUNCATE triggers with transition tables are not supported");
        }
        if create.events.len() > 1 {
            bail!(FEATURE_NOT_SUPPORTED: "transition tables cannot be specified for triggers with more than one event");
        }
        if !create.columns.is_empty() {
            bail!(FEATURE_NOT_SUPPORTED: "transition tables cannot be specified for triggers with column lists");
        }
        let (which, without, events) = match one.is_new {
            true => ("NEW", TriggerEvent::Delete, "an INSERT or UPDATE"),
            false => ("OLD", TriggerEvent::Insert, "a DELETE or UPDATE"),
        };
        if create.events.contains(&without) {
            bail!(INVALID_OBJECT_DEFINITION: "{which} TABLE can only be specified for {events} trigger");
        }
        let mut before = create.transitions[..at].iter();
        if before.any(|other| other.is_new == one.is_new) {
            bail!(INVALID_OBJECT_DEFINITION: "{which} TABLE cannot be specified multiple times");
        }
        let mut others = create.transitions[..at].iter();
        if others.any(|other| other.name.value == one.name.value) {
            bail!(INVALID_OBJECT_DEFINITION: "OLD TABLE name and NEW TABLE name cannot be the same");
        }
    }
    Ok(())
}

/// Returns the positions of the columns of UPDATE OF.
fn update_columns(table: &Table, create: &CreateTrigger) -> Result<Vec<u32>> {
    let mut columns: Vec<u32> = Vec::new();
    for name in &create.columns {
        let position = column_of(table, name)? as u32;
        if columns.contains(&position) {
            bail!(DUPLICATE_COLUMN: "column \"{}\" specified more than once", name.value);
        }
        columns.push(position);
    }
    columns.sort_unstable();
    Ok(columns)
}

/// Checks that a condition only reads rows that the events have.
fn check_condition(table: &Table, create: &CreateTrigger, bound: &Expr) -> Result<()> {
    let width = table.columns.len();
    let used = bound.columns();
    let (reads_old, reads_new) =
        (used.iter().any(|at| *at < width), used.iter().any(|at| *at >= width));
    if !create.is_row && !used.is_empty() {
        bail!(INVALID_OBJECT_DEFINITION: "statement trigger's WHEN condition cannot reference column values");
    }
    if reads_old && create.events.contains(&TriggerEvent::Insert) {
        bail!(INVALID_OBJECT_DEFINITION: "INSERT trigger's WHEN condition cannot reference OLD values");
    }
    if reads_new && create.events.contains(&TriggerEvent::Delete) {
        bail!(INVALID_OBJECT_DEFINITION: "DELETE trigger's WHEN condition cannot reference NEW values");
    }
    let mut generated = table.generated.iter().filter(|at| used.contains(&(**at + width)));
    if let Some(at) = generated.next().filter(|_| create.timing == TriggerTiming::Before) {
        bail!(INVALID_OBJECT_DEFINITION: "BEFORE trigger's WHEN condition cannot reference NEW generated columns";
            detail format!("Column \"{}\" is a generated column.", table.columns[*at].name));
    }
    Ok(())
}
