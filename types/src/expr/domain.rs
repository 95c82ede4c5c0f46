//! Domains: user-defined types with a base type and constraints.
//!
//! In expressions a value of a domain has the base type. An [`Expr::Domain`] marks the conversion
//! to the domain; it returns the value or raises the error of a constraint.

use std::sync::Arc;

use super::{EvalContext, Expr};
use crate::datum::{Datum, Nested};
use crate::error::{Error, ErrorFields, Result, sqlstate};

/// The constraints of a domain, including those of the domains that it is over.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainChecks {
    /// Its OID.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name in the schema.
    pub name: String,
    /// The name as shown in SQL text.
    pub shown: String,
    /// NULL is rejected.
    pub not_null: bool,
    /// CHECK constraints with their names, over a row with only the value, in the order of
    /// evaluation. A value is rejected if one is false.
    pub checks: Vec<(String, Expr)>,
    /// The constraints of elements: for arrays of a domain, and domains over these.
    pub elements: Option<Arc<DomainChecks>>,
    /// The constraints of fields, by position: for rows with attributes of domains, and domains
    /// over these.
    pub fields: Vec<(usize, Arc<DomainChecks>)>,
}

impl DomainChecks {
    /// Returns the constraints of elements and fields of values without a domain.
    pub fn of_parts(
        elements: Option<Arc<DomainChecks>>,
        fields: Vec<(usize, Arc<DomainChecks>)>,
    ) -> DomainChecks {
        DomainChecks {
            oid: 0,
            schema: String::new(),
            name: String::new(),
            shown: String::new(),
            not_null: false,
            checks: Vec::new(),
            elements,
            fields,
        }
    }

    /// Returns whether these are the constraints of a domain, not only of elements and fields.
    pub fn is_of_domain(&self) -> bool {
        self.oid != 0
    }

    fn parts(&self) -> impl Iterator<Item = &DomainChecks> {
        self.elements.iter().chain(self.fields.iter().map(|(_, field)| field)).map(AsRef::as_ref)
    }

    /// Returns whether there are no constraints.
    pub fn is_empty(&self) -> bool {
        !self.not_null && self.checks.is_empty() && self.parts().all(DomainChecks::is_empty)
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// 23502 and 23514, and errors of the conditions.
    pub fn check(&self, value: &Datum, context: &EvalContext) -> Result<()> {
        if self.not_null && value.is_null() {
            let message = format!("domain {} does not allow null values", self.shown);
            return Err(self.violated(sqlstate::NOT_NULL_VIOLATION, message, None));
        }
        self.check_parts(value, context)?;
        let row = std::slice::from_ref(value);
        for (name, check) in &self.checks {
            if check.eval_row(row, context)? == Datum::Bool(false) {
                let message =
                    format!("value for domain {} violates check constraint \"{name}\"", self.shown);
                return Err(self.violated(sqlstate::CHECK_VIOLATION, message, Some(name)));
            }
        }
        Ok(())
    }

    /// Checks only the elements and the fields of a value.
    ///
    /// # Errors
    ///
    /// Those of [`DomainChecks::check`].
    pub fn check_parts(&self, value: &Datum, context: &EvalContext) -> Result<()> {
        match (value, &self.elements) {
            (Datum::Nested(Nested::Array(array)), Some(elements)) => {
                array.elements.iter().try_for_each(|one| elements.check(one, context))
            }
            (Datum::Nested(Nested::Record(record)), _) => {
                self.fields.iter().try_for_each(|(at, field)| {
                    field.check(record.values.get(*at).unwrap_or(&Datum::Null), context)
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns whether all conditions are immutable.
    pub fn is_immutable(&self) -> bool {
        self.checks.iter().all(|(_, check)| check.is_immutable())
            && self.parts().all(DomainChecks::is_immutable)
    }

    /// Returns whether all conditions are foldable: their result does not depend on settings.
    pub fn is_foldable(&self) -> bool {
        self.checks.iter().all(|(_, check)| check.is_foldable())
            && self.parts().all(DomainChecks::is_foldable)
    }

    fn violated(&self, code: &'static str, message: String, constraint: Option<&str>) -> Error {
        let subject = ErrorFields {
            data_type: Some((self.schema.clone(), self.name.clone())),
            constraint: constraint.map(str::to_owned),
            ..ErrorFields::default()
        };
        let error = Error { subject: Some(Box::new(subject)), ..Error::new(code, message) };
        error.with_type_mention(self.oid, &self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::DataType;
    use crate::datum::Array;
    use crate::function::CompareOp;

    #[test]
    fn domain_check_reports_violated_constraint() {
        let value = Expr::Column { index: 0, data_type: DataType::Int4 };
        let zero = Expr::constant(Datum::Int4(0), DataType::Int4);
        let positive = Expr::compare(CompareOp::Gt, value, zero);
        let checks = DomainChecks {
            oid: 99_000,
            schema: "public".to_owned(),
            name: "posint".to_owned(),
            shown: "posint".to_owned(),
            not_null: false,
            checks: vec![("posint_check".to_owned(), positive)],
            elements: None,
            fields: Vec::new(),
        };
        let check = |value: Datum| checks.check(&value, &EvalContext::default());
        assert_eq!(check(Datum::Int4(1)), Ok(()));
        assert_eq!(check(Datum::Null), Ok(()));
        let error = check(Datum::Int4(0)).unwrap_err();
        assert_eq!(error.sqlstate, "23514");
        assert_eq!(
            error.message,
            "value for domain posint violates check constraint \"posint_check\""
        );
        let constraint = error.subject.and_then(|subject| subject.constraint);
        assert_eq!(constraint.as_deref(), Some("posint_check"));
        let strict = DomainChecks { not_null: true, ..checks.clone() };
        let error = strict.check(&Datum::Null, &EvalContext::default()).unwrap_err();
        assert_eq!(error.message, "domain posint does not allow null values");
        let strict = Some(Arc::new(strict));
        let of_each = DomainChecks { checks: Vec::new(), elements: strict, ..checks.clone() };
        let array = |elements: Vec<Datum>| {
            let array = Datum::Nested(Nested::Array(Arc::new(Array::from_elements(elements))));
            of_each.check(&array, &EvalContext::default()).map_err(|error| error.sqlstate)
        };
        assert_eq!(array(vec![Datum::Int4(1), Datum::Int4(2)]), Ok(()));
        assert_eq!(array(vec![Datum::Int4(1), Datum::Int4(0)]), Err("23514"));
        assert_eq!(array(vec![Datum::Int4(1), Datum::Null]), Err("23502"));
        assert_eq!(of_each.check(&Datum::Null, &EvalContext::default()), Ok(()));
    }
}
