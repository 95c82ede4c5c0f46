//! Look-up of types: user-defined types and row types by name, number and OID, and column types.

use std::collections::BTreeSet;
use std::sync::Arc;

use types::{DataType, SqlType};

use crate::ast::{Ident, TableName, TypeName};
use crate::catalog::Catalog;
use crate::catalog::composite::{Composite, ROW_ARRAY};
use crate::catalog::domain::Domain;
use crate::catalog::name::{PG_CATALOG, SearchPath, TEMP};
use crate::catalog::record::ColumnRecord;
use crate::catalog::standard_domain;
use crate::catalog::user_type::{OID_OFFSET, UserType};
use crate::error::{Error, Result};

impl Catalog {
    /// Returns the domain with an OID, or the array type of a domain.
    pub fn domain(&self, oid: u32) -> Option<&Arc<Domain>> {
        let UserType::Domain(domain) = self.type_of_oid(oid)?.as_ref() else { return None };
        if domain.sql_type.oid() == oid { Some(domain) } else { domain.array.as_ref() }
    }

    /// Returns the array type of a type; `None` for arrays, and for domains over them.
    pub fn array_of(&self, element: &SqlType) -> Option<SqlType> {
        match element.domain {
            None => element.base.array().map(|base| SqlType::new(base, element.modifier)),
            Some(oid) => self.domain(oid)?.array.as_ref().map(|array| array.sql_type.clone()),
        }
    }

    /// Returns the element type of an array type; `None` for other types.
    pub fn element_of(&self, array: &SqlType) -> Option<SqlType> {
        let element = array.base.element()?;
        let Some(oid) = array.domain else {
            return Some(SqlType::new(element.clone(), array.modifier));
        };
        match array.is_domain_array() {
            true => Some(self.type_of_oid(oid)?.sql_type()),
            false => self.element_of(&array.domain_array_type()),
        }
    }

    /// Returns the user-defined composite type of a name in a schema.
    pub fn composite(&self, schema: &str, name: &str) -> Option<&Composite> {
        match self.type_in(schema, name)?.as_ref() {
            UserType::Composite(composite) if !composite.is_of_rows() => Some(composite),
            _ => None,
        }
    }

    /// Returns a user-defined type or the row type of a table or view, by its number.
    pub fn user_type(&self, number: u32) -> Option<&Arc<UserType>> {
        self.created_type(number).or_else(|| self.row_type_of(number))
    }

    /// Returns the row type of a table or view, which is made at its first use.
    fn row_type_of(&self, relation: u32) -> Option<&Arc<UserType>> {
        let of_view = || self.view(relation).map(|view| view.row_type());
        self.table(relation).map(|table| table.row_type()).or_else(of_view)
    }

    /// Returns all user-defined types and row types, oldest first.
    pub fn types_and_row_types(&self) -> Vec<&Arc<UserType>> {
        let views = self.views().map(|view| view.oid);
        let relations: BTreeSet<u32> =
            self.tables_by_age().map(|one| one.oid).chain(views).collect();
        let rows = relations.into_iter().filter_map(|number| self.row_type_of(number));
        let mut types: Vec<_> = self.types().chain(rows).collect();
        types.sort_by_key(|one| one.number());
        types
    }

    /// Returns the type of the rows of a table or view, or a composite type, by its number.
    pub fn row_type(&self, number: u32) -> Option<SqlType> {
        self.user_type(number).map(|one| one.sql_type())
    }

    /// Returns the user-defined type or row type of a name in a schema.
    pub fn type_in(&self, schema: &str, name: &str) -> Option<&Arc<UserType>> {
        if schema == PG_CATALOG {
            return self.created_type(standard_domain::number_of(name)?);
        }
        let schema = self.schemas.get(schema)?;
        let of_relation = || schema.relations.get(name)?.with_row_type();
        self.user_type(schema.types.get(name).copied().or_else(of_relation)?)
    }

    /// Returns the user-defined type of a name in a statement; if unqualified, the first one on
    /// the search path.
    pub fn find_type(
        &self,
        schema: Option<&str>,
        name: &str,
        path: &SearchPath,
    ) -> Option<&Arc<UserType>> {
        match schema {
            Some(schema) => self.type_in(path.schema(schema)?, name),
            None => {
                let mut found = path.of_relations().map(|schema| self.type_in(schema, name));
                let standard = || self.type_in(PG_CATALOG, name);
                found.find_map(|found| found).or_else(standard)
            }
        }
    }

    /// Returns the user-defined type whose array type has the name `_type`.
    pub fn find_array_type(
        &self,
        schema: Option<&str>,
        name: &str,
        path: &SearchPath,
    ) -> Option<&Arc<UserType>> {
        let found = self.find_type(schema, name.strip_prefix('_')?, path);
        found.filter(|found| found.array().is_some())
    }

    /// Returns the user-defined type that has an OID, or whose array type has it.
    pub fn type_of_oid(&self, oid: u32) -> Option<&Arc<UserType>> {
        let number = (oid & !ROW_ARRAY).checked_sub(OID_OFFSET)?;
        let mut numbers = [Some(number), number.checked_sub(1)].into_iter().flatten();
        numbers.find_map(|number| {
            self.user_type(number).filter(|one| one.oid() == oid || one.array_oid() == oid)
        })
    }

    /// Returns the type with an OID, built in or user-defined.
    pub fn type_with_oid(&self, oid: u32) -> Option<SqlType> {
        let of_users = || self.type_of_oid(oid)?.type_with(oid);
        DataType::from_oid(oid).map(SqlType::from).or_else(of_users)
    }

    /// Returns the type that is stored as an OID and a modifier.
    ///
    /// # Errors
    ///
    /// XX001 if there is no such type.
    pub fn stored_type(&self, oid: u32, modifier: i32) -> Result<SqlType> {
        let known = self.type_with_oid(oid).ok_or_else(
            || err!(DATA_CORRUPTED: "the catalog names an unknown type with OID {oid}"),
        )?;
        Ok(if modifier < 0 { known } else { SqlType { modifier, ..known } })
    }

    /// Returns the type of a column.
    ///
    /// # Errors
    ///
    /// XX001 if the type does not exist.
    pub fn column_type(&self, column: &ColumnRecord) -> Result<SqlType> {
        self.stored_type(column.type_oid, column.modifier)
    }

    /// Returns names and types of the columns of a table for its expressions; dropped columns have
    /// a name that no statement can contain.
    ///
    /// # Errors
    ///
    /// Those of [`Catalog::column_type`].
    pub fn columns_of(&self, columns: &[ColumnRecord]) -> Result<Vec<(String, SqlType)>> {
        let name = |column: &ColumnRecord| match column.dropped {
            // No statement can contain this name.
            true => "\0".to_owned(),
            false => column.name.clone(),
        };
        columns.iter().map(|column| Ok((name(column), self.column_type(column)?))).collect()
    }

    /// Returns the type of a type name in a statement.
    ///
    /// # Errors
    ///
    /// 42704 and 3F000 if there is no such type.
    pub fn type_named(&self, name: &TypeName, path: &SearchPath) -> Result<SqlType> {
        let Some(named) = &name.named else { return Ok(name.sql_type.clone()) };
        let schema = named.schema.as_deref();
        if let Some(column) = &named.of_column {
            return self.type_of_column((schema, &named.name), column, path);
        }
        let found = self.find_type(schema, &named.name, path);
        let Some(found) = found else {
            let array = self.find_array_type(schema, &named.name, path).and_then(|of| of.array());
            let no_type = || self.no_type(schema, &named.display_name()).at(name.position);
            return array.ok_or_else(no_type);
        };
        if !named.is_array {
            return Ok(found.sql_type());
        }
        found.array().ok_or_else(|| {
            let hint = "Use an array of the elements' type.";
            Error::not_supported("an array of a domain over arrays", hint).at(name.position)
        })
    }

    /// Returns the type of a column of a relation.
    ///
    /// # Errors
    ///
    /// 42P01 and 42703 if the relation or column does not exist.
    pub fn type_of_column(
        &self,
        (schema, relation): (Option<&str>, &str),
        column: &str,
        path: &SearchPath,
    ) -> Result<SqlType> {
        let shown = match schema {
            Some(schema) => format!("{schema}.{relation}"),
            None => relation.to_owned(),
        };
        let ident = |value: &str| Ident { value: value.to_owned(), position: 1 };
        let name = TableName { schema: schema.map(ident), name: ident(relation) };
        let missing = || err!(UNDEFINED_COLUMN: "column \"{column}\" of relation \"{relation}\" does not exist");
        if let Some(table) = self.find_table(&name, path) {
            let at = table.column_index(column).ok_or_else(missing)?;
            return Ok(table.columns[at].sql_type.clone());
        }
        let found = self.find_type(schema, relation, path).map(|found| found.sql_type());
        let Some(DataType::Composite(of)) = found.map(|found| found.base.clone()) else {
            bail!(UNDEFINED_TABLE: "relation \"{shown}\" does not exist");
        };
        let mut attributes = of.attributes().iter();
        let found = attributes.find(|one| *one.name == *column).map(|one| one.sql_type.clone());
        found.ok_or_else(missing)
    }

    /// Returns the error for a type that does not exist, by its name in the statement.
    pub fn no_type(&self, schema: Option<&str>, shown: &str) -> Error {
        // The schema of temporary objects is created on first use.
        let is_missing = |schema: &&str| {
            ![TEMP, PG_CATALOG].contains(schema) && !self.schemas.contains_key(*schema)
        };
        if let Some(schema) = schema.filter(is_missing) {
            return err!(INVALID_SCHEMA_NAME: "schema \"{schema}\" does not exist");
        }
        let missing = err!(UNDEFINED_OBJECT: "type \"{shown}\" does not exist");
        // Of Phoenix.
        if shown.eq_ignore_ascii_case("bson") { missing.with_hint("Use jsonb.") } else { missing }
    }
}
