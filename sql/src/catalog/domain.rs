//! Domains in the catalog: a row for each.
//!
//! The key is `d` and the type's number; the one cell holds a [`DomainRecord`]. Texts name types
//! with their schemas, and only types that are older. What values are checked for is bound when the
//! domain enters the catalog snapshot, with that of the domains below.

use std::num::NonZeroU32;
use std::sync::Arc;

use types::datum::Nested;
use types::expr::{DomainChecks, EvalContext, Expr};
use types::function::quote_ident;
use types::{DataType, Datum, SqlType};

use crate::ast::Collation;
use crate::catalog::Catalog;
use crate::catalog::later::Later;
use crate::catalog::name::PUBLIC;
use crate::catalog::record::CheckRecord;

/// What the keys of domains begin with.
pub const DOMAINS_PREFIX: &[u8] = b"d";

/// The name that stands for the value in checks.
pub const VALUE: &str = "value";

/// Returns the key of a domain's row.
pub fn domain_key(number: u32) -> Vec<u8> {
    [DOMAINS_PREFIX, number.to_be_bytes().as_slice()].concat()
}

/// A domain on disk.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct DomainRecord {
    /// Its number; the next one is kept for its arrays.
    pub number: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// OID of the type that it is over, which may be a domain.
    pub type_oid: u32,
    /// Modifier of that type.
    pub modifier: i32,
    /// NULL is refused.
    pub not_null: bool,
    /// SQL text of DEFAULT.
    pub default: Option<String>,
    /// CHECK constraints, in the order in which they were added.
    pub checks: Vec<CheckRecord>,
    /// Its collation, if it is not that of the type that it is over.
    pub collation: Later<Option<Collation>>,
}

/// A domain.
#[derive(Debug, Clone)]
pub struct Domain {
    /// What is stored of it.
    pub record: DomainRecord,
    /// The type that it is over.
    pub over: SqlType,
    /// The type of its values.
    pub sql_type: SqlType,
    /// The collation of its values, if they can have one.
    pub collation: Option<Collation>,
    /// The bound DEFAULT, of the type that the domain is over.
    pub default: Option<Expr>,
    /// What is demanded of values.
    pub checks: Arc<DomainChecks>,
    /// The type of its arrays, which demands of each element what the domain does; none if it is
    /// over arrays.
    pub array: Option<Arc<Domain>>,
}

impl Domain {
    /// Returns the domain under another name.
    #[must_use]
    pub fn renamed(&self, schema: String, name: String) -> Domain {
        let checks = DomainChecks {
            shown: shown_name(&schema, &name),
            schema: schema.clone(),
            name: name.clone(),
            ..self.checks.as_ref().clone()
        };
        let record = DomainRecord { schema, name, ..self.record.clone() };
        Domain { record, checks: checks.into(), ..self.clone() }.with_array()
    }

    /// Returns the domain with the type of its arrays as it is now.
    #[must_use]
    pub fn with_array(self) -> Domain {
        let array = self.sql_type.base.array().filter(|_| self.sql_type.base.element().is_none());
        let array = array.map(|base| Arc::new(self.arrays_over(base)));
        Domain { array, ..self }
    }

    /// Returns the type of arrays of the domain, over arrays of the type that it is over.
    fn arrays_over(&self, base: DataType) -> Domain {
        let oid = self.sql_type.oid() + 1;
        let over = SqlType::new(base, self.sql_type.modifier);
        let record = DomainRecord {
            number: self.record.number + 1,
            name: format!("_{}", self.record.name),
            type_oid: over.stored().0,
            modifier: over.stored().1,
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
        let sql_type = SqlType { domain: Some(oid), domain_array: NonZeroU32::new(oid), ..over };
        let (checks, collation) = (checks.into(), self.collation);
        Domain { record, over, sql_type, collation, default: None, checks, array: None }
    }

    /// Returns a value as one of the domain.
    pub fn checked(&self, value: Expr, explicit: bool) -> Expr {
        if self.checks.is_empty() && !explicit {
            return value;
        }
        let checks = Arc::clone(&self.checks);
        Expr::Domain { operand: Box::new(value), checks, explicit }
    }

    /// Returns what a column of the domain is where nothing is said.
    pub fn absent(&self) -> Expr {
        let null = || Expr::constant(Datum::Null, self.sql_type.base);
        self.checked(self.default.clone().unwrap_or_else(null), false)
    }
}

impl Catalog {
    /// Returns what domains demand of values of a type and of all that is in them, as it is now;
    /// `None` if they demand nothing.
    pub fn value_checks(&self, sql_type: SqlType) -> Option<Arc<DomainChecks>> {
        let Some(domain) = sql_type.domain.and_then(|oid| self.domain(oid)) else {
            return self.parts_checks(sql_type.base);
        };
        let mut checks = domain.checks.as_ref().clone();
        if sql_type.is_domain_array() {
            checks.elements = self.value_checks(self.element_of(sql_type)?);
        } else if let Some(below) = match domain.over.domain {
            Some(_) => self.value_checks(domain.over),
            None => self.parts_checks(domain.over.base),
        } {
            checks.elements.clone_from(&below.elements);
            checks.fields.clone_from(&below.fields);
        }
        (!checks.is_empty()).then(|| checks.into())
    }

    /// Returns what domains demand of the elements or fields of values of a type that is no domain;
    /// `None` if they demand nothing.
    pub fn parts_checks(&self, data_type: DataType) -> Option<Arc<DomainChecks>> {
        let checks = match data_type {
            DataType::Array(element) => {
                DomainChecks::of_parts(Some(self.parts_checks(*element)?), Vec::new())
            }
            DataType::Composite(of) if of.has_domains() => {
                let fields = of.attributes().iter().enumerate();
                let fields =
                    fields.filter_map(|(at, field)| Some((at, self.value_checks(field.sql_type)?)));
                DomainChecks::of_parts(None, fields.collect())
            }
            _ => return None,
        };
        (!checks.is_empty()).then(|| checks.into())
    }

    /// Checks the fields of a row, and of rows in it or in an array, that are of domains.
    ///
    /// # Errors
    ///
    /// 23502 and 23514, and what the checks raise.
    pub fn check_fields(&self, value: &Datum, context: &EvalContext) -> Result<(), types::Error> {
        match value {
            Datum::Nested(Nested::Array(array)) => {
                array.elements.iter().try_for_each(|one| self.check_fields(one, context))
            }
            Datum::Nested(Nested::Record(record)) => {
                let Some(of) = record.of.filter(|of| of.has_domains()) else { return Ok(()) };
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

/// Returns the name as messages show it: without schema `public`.
pub fn shown_name(schema: &str, name: &str) -> String {
    match schema {
        PUBLIC => quote_ident(name),
        schema => format!("{}.{}", quote_ident(schema), quote_ident(name)),
    }
}
