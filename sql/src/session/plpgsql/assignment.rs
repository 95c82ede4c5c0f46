//! PL/pgSQL assignment to variables, record fields and array elements, with conversion.

use std::sync::Arc;

use types::datatype::composite::{CompositeType, Fields};
use types::datum::{Nested, Record};
use types::expr::EvalContext;
use types::{DataType, Datum, SqlType};

use crate::ast::TargetStep;
use crate::binder::{BodyTarget, bind_conversion};
use crate::error::{Error, Result};
use crate::logical::OutputColumn;
use crate::plpgsql::body_tree::{AssignmentTarget, IntoClause, SqlFragment};
use crate::session::plpgsql::BodyExecution;
use crate::session::plpgsql::evaluation::no_transaction;

impl BodyExecution<'_> {
    /// Assigns the value of an expression.
    pub(super) fn assign_fragment(
        &mut self,
        target: &AssignmentTarget,
        value: &SqlFragment,
    ) -> Result<()> {
        let shape = &self.shapes[target.variable];
        let (is_row, is_record) = (shape.is_row(), shape.is_record());
        match target.path.as_slice() {
            [] if is_row => {
                let (value, from) = self.value(value, BodyTarget::Any)?;
                self.assign(target, value, &from)
            }
            [] => {
                let to = shape.sql_type.clone();
                let to = BodyTarget::Type(&to);
                let value = self.value_in_place(value, to, target.variable)?;
                self.store(target.variable, value)
            }
            path => {
                let part = BodyTarget::Part(target.variable, path);
                let whole = self.value_in_place(value, part, target.variable)?;
                match (is_record, path.first()) {
                    (true, Some(TargetStep::Field(name))) => {
                        self.store_field(target.variable, &name.value, whole)
                    }
                    _ => self.store(target.variable, whole),
                }
            }
        }
    }

    /// Stores a value of the variable's type.
    pub(super) fn store(&mut self, variable: usize, value: Datum) -> Result<()> {
        let declared = &self.compiled.body.variables[variable];
        if declared.not_null && value.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED: "null value cannot be assigned to variable \"{}\" declared NOT NULL", declared.name);
        }
        self.values[variable] = value;
        Ok(())
    }

    fn store_field(&mut self, variable: usize, name: &str, value: Datum) -> Result<()> {
        let Some(fields) = self.fields_of(variable) else {
            bail!(INTERNAL_ERROR: "a record has no fields");
        };
        let at = fields.iter().position(|(field, _)| **field == *name);
        let at = at.ok_or_else(|| self.no_field(variable, name))?;
        let (of, mut values) = match &self.values[variable] {
            Datum::Nested(Nested::Record(record)) => (record.of.clone(), record.values.clone()),
            _ => (self.composite_of(variable), Vec::new()),
        };
        values.resize(fields.len(), Datum::Null);
        values[at] = value;
        self.values[variable] = row(of, fields, values);
        Ok(())
    }

    fn no_field(&self, variable: usize, name: &str) -> Error {
        let record = &self.shapes[variable].name;
        err!(UNDEFINED_COLUMN: "record \"{record}\" has no field \"{name}\"")
    }

    fn composite_of(&self, variable: usize) -> Option<Arc<CompositeType>> {
        match &self.shapes[variable].sql_type.base {
            DataType::Composite(of) => Some(Arc::clone(of)),
            _ => None,
        }
    }

    /// Returns the present fields of a variable, if it has any.
    fn fields_of(&self, variable: usize) -> Option<Fields> {
        match self.composite_of(variable) {
            Some(of) => Some(Arc::clone(of.fields())),
            None => self.shapes[variable].fields.clone(),
        }
    }

    /// Assigns a value of type `from`.
    pub(super) fn assign(
        &mut self,
        target: &AssignmentTarget,
        value: Datum,
        from: &SqlType,
    ) -> Result<()> {
        let variable = target.variable;
        if let [TargetStep::Field(name)] = target.path.as_slice() {
            return self.assign_field(variable, &name.value, value, from);
        }
        if !target.path.is_empty() {
            let hint = "Assign it to a variable first.";
            return Err(Error::not_supported("a component of a variable as this target", hint));
        }
        let shape = &self.shapes[variable];
        if !shape.is_row() {
            let to = shape.sql_type.clone();
            let value = self.convert(value, from, &to)?;
            return self.store(variable, value);
        }
        match value {
            Datum::Null => {
                if shape.is_record() {
                    self.set_fields(variable, None);
                }
                self.store(variable, Datum::Null)
            }
            Datum::Nested(Nested::Record(record)) => self.assign_record(variable, &record),
            _ => {
                let what = if shape.is_record() { "record" } else { "row" };
                bail!(DATATYPE_MISMATCH: "cannot assign non-composite value to a {what} variable")
            }
        }
    }

    fn assign_field(
        &mut self,
        variable: usize,
        name: &str,
        value: Datum,
        from: &SqlType,
    ) -> Result<()> {
        let Some(fields) = self.fields_of(variable) else {
            let record = &self.shapes[variable].name;
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "record \"{record}\" is not assigned yet";
                detail "The tuple structure of a not-yet-assigned record is indeterminate.");
        };
        let at = fields.iter().position(|(field, _)| **field == *name);
        let at = at.ok_or_else(|| self.no_field(variable, name))?;
        let to = match self.composite_of(variable) {
            Some(of) => of.attributes()[at].sql_type.clone(),
            None => SqlType::from(&fields[at].1),
        };
        let value = self.convert(value, from, &to)?;
        self.store_field(variable, name, value)
    }

    fn assign_record(&mut self, variable: usize, record: &Arc<Record>) -> Result<()> {
        let Some(of) = self.composite_of(variable) else {
            self.set_fields(variable, Some(Arc::clone(&record.fields)));
            return self.store(variable, Datum::Nested(Nested::Record(Arc::clone(record))));
        };
        if record.of.as_ref().is_some_and(|from| Arc::ptr_eq(from, &of)) {
            return self.store(variable, Datum::Nested(Nested::Record(Arc::clone(record))));
        }
        let types = record.fields.iter().map(|(_, base)| SqlType::from(base));
        let types: Vec<SqlType> = types.collect();
        self.move_row(variable, &of, &types, record.values.clone())
    }

    /// Assigns values to the fields of a composite variable, by position.
    fn move_row(
        &mut self,
        variable: usize,
        of: &Arc<CompositeType>,
        types: &[SqlType],
        row_values: Vec<Datum>,
    ) -> Result<()> {
        let mut given = row_values.into_iter().zip(types);
        let mut values = Vec::with_capacity(of.attributes().len());
        for attribute in of.attributes() {
            let value = match given.next() {
                Some((value, from)) => self.convert(value, from, &attribute.sql_type)?,
                None => Datum::Null,
            };
            values.push(value);
        }
        self.store(variable, row(Some(Arc::clone(of)), Arc::clone(of.fields()), values))
    }

    /// Records the present fields of a record variable.
    pub(super) fn set_fields(&mut self, variable: usize, fields: Option<Fields>) {
        let fields = fields.map(with_known_types);
        let known = &self.shapes[variable].fields;
        let is_same = match (known, &fields) {
            (Some(known), Some(fields)) => Arc::ptr_eq(known, fields) || known == fields,
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            Arc::make_mut(&mut self.shapes)[variable].fields = fields;
        }
    }

    /// Sets the type of a variable: the operand of CASE has that of its value.
    pub(super) fn set_type(&mut self, variable: usize, sql_type: &SqlType) {
        if self.shapes[variable].sql_type != *sql_type {
            Arc::make_mut(&mut self.shapes)[variable].sql_type = sql_type.clone();
        }
    }

    /// Assigns a row to the targets of INTO: NULLs if there is none.
    pub(super) fn assign_row(
        &mut self,
        into: &IntoClause,
        columns: &[OutputColumn],
        values: Option<Vec<Datum>>,
    ) -> Result<()> {
        if let [target] = into.targets.as_slice()
            && target.path.is_empty()
            && self.shapes[target.variable].is_row()
        {
            return self.assign_whole_row(target.variable, columns, values);
        }
        let mut values = values.unwrap_or_default().into_iter();
        let mut columns = columns.iter();
        for target in &into.targets {
            let of = columns.next().map_or(DataType::Text.into(), |column| column.sql_type.clone());
            self.assign(target, values.next().unwrap_or(Datum::Null), &of)?;
        }
        Ok(())
    }

    pub(super) fn assign_whole_row(
        &mut self,
        variable: usize,
        columns: &[OutputColumn],
        values: Option<Vec<Datum>>,
    ) -> Result<()> {
        if let Some(of) = self.composite_of(variable) {
            let Some(values) = values else { return self.store(variable, Datum::Null) };
            let types: Vec<SqlType> = columns.iter().map(|one| one.sql_type.clone()).collect();
            return self.move_row(variable, &of, &types, values);
        }
        let is_same = |fields: &Fields| {
            let mut pairs = fields.iter().zip(columns);
            fields.len() == columns.len()
                && pairs.all(|((name, base), column)| {
                    **name == *column.name && *base == column.sql_type.base
                })
        };
        let known = self.shapes[variable].fields.clone().filter(|fields| is_same(fields));
        let fields = known.unwrap_or_else(|| {
            let field = |column: &OutputColumn| {
                (Arc::from(column.name.as_str()), column.sql_type.base.clone())
            };
            columns.iter().map(field).collect()
        });
        self.set_fields(variable, Some(Arc::clone(&fields)));
        let value = values.map_or(Datum::Null, |values| row(None, fields, values));
        self.store(variable, value)
    }

    /// Converts a value by an assignment cast.
    pub(super) fn convert(&mut self, value: Datum, from: &SqlType, to: &SqlType) -> Result<Datum> {
        // A literal in a row has type text.
        let text = DataType::Text.into();
        let from = match from.base {
            DataType::Unknown if !value.is_null() => &text,
            _ => from,
        };
        if from == to || (from.base == to.base && to.modifier == -1 && to.domain.is_none()) {
            return Ok(value);
        }
        if value.is_null() && to.domain.is_none() {
            return Ok(value);
        }
        let compiled = Arc::clone(&self.compiled);
        let known = compiled.conversions.lock().get(&(from.clone(), to.clone())).cloned();
        let conversion = match known {
            Some(known) => known,
            None => {
                let bound = self.session.with_planning(|planning| {
                    bind_conversion(from, to, planning.binding_environment())
                })?;
                let bound = bound.map(Arc::new);
                compiled.conversions.lock().insert((from.clone(), to.clone()), bound.clone());
                bound
            }
        };
        let Some(conversion) = conversion else {
            let (from, to) = (from.base.sql_name(), to.base.sql_name());
            bail!(CANNOT_COERCE: "cannot cast type {from} to {to}");
        };
        let eval = &self.expression_context()?.eval;
        let eval = EvalContext { parameters: vec![value], ..eval.clone() };
        Ok(conversion.eval_row(&[], &eval)?)
    }

    /// Returns the text form of a value.
    pub(super) fn written(&mut self, value: &Datum, of: &SqlType) -> Result<String> {
        let open = self.session.open.as_ref().ok_or_else(no_transaction)?;
        let _ = open;
        let mut text = Vec::new();
        types::text::write(value, &of.base, &self.expression_context()?.eval.style, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Replaces the type unknown of literal fields by text.
fn with_known_types(fields: Fields) -> Fields {
    let is_unknown = |of: &DataType| *of == DataType::Unknown;
    if !fields.iter().any(|(_, of)| is_unknown(of)) {
        return fields;
    }
    let known = |of: &DataType| if is_unknown(of) { DataType::Text } else { of.clone() };
    fields.iter().map(|(name, of)| (Arc::clone(name), known(of))).collect()
}

/// Returns a composite value.
pub(super) fn row(of: Option<Arc<CompositeType>>, fields: Fields, values: Vec<Datum>) -> Datum {
    Datum::Nested(Nested::Record(Arc::new(Record { of, fields, values })))
}
