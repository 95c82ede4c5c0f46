//! Domains in the catalog: one row each.
//!
//! The key is `d` and the type's number; the only cell holds a [`DomainRecord`]. Stored texts
//! qualify type names, and refer only to older types. The constraints are bound when the domain
//! enters the catalog snapshot, including those of its base domains.

use std::num::NonZeroU32;
use std::sync::Arc;

use store::codec::tagged::UnknownFields;
use types::datum::Nested;
use types::expr::{DomainChecks, EvalContext, Expr};
use types::function::quote_ident;
use types::{DataType, Datum, SqlType};

use crate::ast::Collation;
use crate::catalog::Catalog;
use crate::catalog::name::{PG_CATALOG, PUBLIC};
use crate::catalog::record::CheckRecord;

/// The key prefix of domains.
pub const DOMAINS_PREFIX: &[u8] = b"d";

/// The name of the value in CHECK constraints.
pub const VALUE: &str = "value";

/// A domain as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainRecord {
    /// Its number; the next number is that of its array type.
    pub number: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// OID of its base type, which may be a domain.
    pub type_oid: u32,
    /// Modifier of that type.
    pub modifier: i32,
    /// NULL is rejected.
    pub not_null: bool,
    /// SQL text of DEFAULT.
    pub default: Option<String>,
    /// CHECK constraints, in the order of their creation.
    pub checks: Vec<CheckRecord>,
    /// Its collation, if it differs from that of the base type.
    pub collation: Option<Collation>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A domain.
#[derive(Debug, Clone)]
pub struct Domain {
    /// The stored record.
    pub record: DomainRecord,
    /// The base type.
    pub base_type: SqlType,
    /// The type of its values.
    pub sql_type: SqlType,
    /// The collation of its values, if they are collatable.
    pub collation: Option<Collation>,
    /// The bound DEFAULT, of the base type.
    pub default: Option<Expr>,
    /// The constraints on its values.
    pub checks: Arc<DomainChecks>,
    /// Its array type, which checks each element against the domain; none if the base type is an
    /// array.
    pub array: Option<Arc<Domain>>,
}

impl Domain {
    /// Returns the domain with another name.
    #[must_use]
    pub fn renamed(&self, schema: String, name: String) -> Domain {
        let checks = DomainChecks {
            shown: display_name(&schema, &name),
            schema: schema.clone(),
            name: name.clone(),
            ..self.checks.as_ref().clone()
        };
        let record = DomainRecord { schema, name, ..self.record.clone() };
        Domain { record, checks: checks.into(), ..self.clone() }.with_array()
    }

    /// Returns the domain with its array type rebuilt.
    #[must_use]
    pub fn with_array(self) -> Domain {
        let array = self.sql_type.base.array().filter(|_| self.sql_type.base.element().is_none());
        let array = array.map(|base| Arc::new(self.arrays_over(&base)));
        Domain { array, ..self }
    }

    /// Returns the array type of the domain, over the array type of its base type.
    fn arrays_over(&self, base: &DataType) -> Domain {
        let oid = self.sql_type.oid() + 1;
        let over = SqlType::new(base.clone(), self.sql_type.modifier);
        let record = DomainRecord {
            number: self.record.number + 1,
            name: format!("_{}", self.record.name),
            type_oid: over.stored_oid_and_modifier().0,
            modifier: over.stored_oid_and_modifier().1,
            not_null: false,
            default: None,
            checks: Vec::new(),
            ..self.record.clone()
        };
        let checks = DomainChecks {
            oid,
            shown: format!("{}[]", self.checks.shown),
            name: record.name.clone(),
            not_null: false,
            checks: Vec::new(),
            elements: Some(Arc::clone(&self.checks)),
            ..self.checks.as_ref().clone()
        };
        let domain_array = NonZeroU32::new(oid);
        let sql_type = SqlType { domain: Some(oid), domain_array, ..over.clone() };
        let (checks, collation) = (checks.into(), self.collation);
        Domain { record, base_type: over, sql_type, collation, default: None, checks, array: None }
    }

    /// Returns a value converted to the domain, with its checks.
    pub fn checked(&self, value: Expr, explicit: bool) -> Expr {
        if self.checks.is_empty() && !explicit {
            return value;
        }
        let checks = Arc::clone(&self.checks);
        Expr::Domain { operand: Box::new(value), checks, explicit }
    }

    /// Returns the default of a column of the domain.
    pub fn default_expression(&self) -> Expr {
        let null = || Expr::constant(Datum::Null, &self.sql_type.base);
        self.checked(self.default.clone().unwrap_or_else(null), false)
    }
}

impl Catalog {
    /// Returns the present domain constraints on values of a type and on their elements and
    /// fields; `None` if there are none.
    pub fn value_checks(&self, sql_type: &SqlType) -> Option<Arc<DomainChecks>> {
        let Some(domain) = sql_type.domain.and_then(|oid| self.domain(oid)) else {
            return self.element_checks(&sql_type.base);
        };
        let mut checks = domain.checks.as_ref().clone();
        if sql_type.is_domain_array() {
            checks.elements = self.value_checks(&self.element_of(sql_type)?);
        } else if let Some(below) = match domain.base_type.domain {
            Some(_) => self.value_checks(&domain.base_type),
            None => self.element_checks(&domain.base_type.base),
        } {
            checks.elements.clone_from(&below.elements);
            checks.fields.clone_from(&below.fields);
        }
        (!checks.is_empty()).then(|| checks.into())
    }

    /// Returns the domain constraints on the elements or fields of values of a type that is not a
    /// domain; `None` if there are none.
    pub fn element_checks(&self, data_type: &DataType) -> Option<Arc<DomainChecks>> {
        let checks = match data_type {
            DataType::Array(element) => {
                DomainChecks::of_parts(Some(self.element_checks(element)?), Vec::new())
            }
            DataType::Composite(of) if of.has_domains() => {
                let fields = of.attributes().iter().enumerate();
                let fields = fields
                    .filter_map(|(at, field)| Some((at, self.value_checks(&field.sql_type)?)));
                DomainChecks::of_parts(None, fields.collect())
            }
            _ => return None,
        };
        (!checks.is_empty()).then(|| checks.into())
    }

    /// Checks fields of domain types in a row, and in rows nested in it or in an array.
    ///
    /// # Errors
    ///
    /// 23502 and 23514, and errors of the check expressions.
    pub fn check_fields(&self, value: &Datum, context: &EvalContext) -> Result<(), types::Error> {
        match value {
            Datum::Nested(Nested::Array(array)) => {
                array.elements.iter().try_for_each(|one| self.check_fields(one, context))
            }
            Datum::Nested(Nested::Record(record)) => {
                let of = record.of.as_ref().filter(|of| of.has_domains());
                let Some(of) = of else { return Ok(()) };
                for (value, attribute) in record.values.iter().zip(of.attributes()) {
                    self.check_fields(value, context)?;
                    let domain = attribute.sql_type.domain.and_then(|oid| self.domain(oid));
                    domain.map_or(Ok(()), |domain| domain.checks.check(value, context))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Returns the name as it is in messages: unqualified for schema `public` and standard domains.
pub fn display_name(schema: &str, name: &str) -> String {
    match schema {
        PUBLIC | PG_CATALOG => quote_ident(name),
        schema => format!("{}.{}", quote_ident(schema), quote_ident(name)),
    }
}
