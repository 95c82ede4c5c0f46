//! Attributes after a constraint: deferral mode, NOT VALID, NO INHERIT.
//!
//! After a column constraint each keyword is a clause of its own, so errors name clauses; after a
//! table constraint they are properties, in any order, and may be repeated.

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use crate::ast::{ConstraintKind, Deferral};

/// The attributes read so far.
#[derive(Debug, Default)]
struct Attributes {
    /// `[NOT] DEFERRABLE`
    deferrable: Option<bool>,
    /// `INITIALLY DEFERRED` or `IMMEDIATE`
    deferred: Option<bool>,
    not_valid: bool,
    no_inherit: bool,
}

impl Attributes {
    fn is_contradictory(&self) -> bool {
        (self.deferrable, self.deferred) == (Some(false), Some(true))
    }

    fn deferral(&self) -> Deferral {
        match (self.deferrable, self.deferred) {
            (_, Some(true)) => Deferral::Deferred,
            (Some(true), _) => Deferral::Immediate,
            _ => Deferral::Never,
        }
    }
}

/// A clause about the deferral mode of a constraint.
#[derive(Debug, Clone, Copy)]
enum DeferralClause {
    Deferrable(bool),
    Deferred(bool),
}

const CONTRADICTION: &str = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";

impl TokenCursor<'_> {
    /// Reads the attributes of a column constraint; `takes` if it can be deferrable.
    pub(super) fn column_attributes(&mut self, takes: bool) -> Result<Deferral> {
        if takes && self.is_words(&["using", "index"]) {
            let what = "an index clause of a constraint";
            return Err(ParseError::unsupported(what, self.position()));
        }
        let mut read = Attributes::default();
        loop {
            let position = self.position();
            let Some((when, words)) = self.when() else { break };
            if !takes {
                let message = format!("misplaced {words} clause");
                return Err(ParseError::syntax(message, position));
            }
            let (given, what, value) = match when {
                DeferralClause::Deferrable(value) => {
                    (&mut read.deferrable, "DEFERRABLE/NOT DEFERRABLE", value)
                }
                DeferralClause::Deferred(value) => {
                    (&mut read.deferred, "INITIALLY IMMEDIATE/DEFERRED", value)
                }
            };
            if given.replace(value).is_some() {
                let message = format!("multiple {what} clauses not allowed");
                return Err(ParseError::syntax(message, position));
            }
            if read.is_contradictory() {
                return Err(ParseError::syntax(CONTRADICTION, position));
            }
        }
        self.refuse_other_attributes()?;
        Ok(read.deferral())
    }

    /// Reads the attributes of a table constraint; returns the deferral mode, and true for NOT
    /// VALID. `of` is the name of the constraint kind in errors.
    pub(super) fn table_attributes(
        &mut self,
        of: &str,
        kind: Option<&ConstraintKind>,
    ) -> Result<(Deferral, bool)> {
        let start = self.position();
        let mut read = Attributes::default();
        loop {
            let position = self.position();
            let conflict = if self.take_words(&["not", "valid"]) {
                read.not_valid = true;
                false
            } else if self.take_words(&["no", "inherit"]) {
                read.no_inherit = true;
                false
            } else {
                let Some((when, _)) = self.when() else { break };
                let (given, value) = match when {
                    DeferralClause::Deferrable(value) => (&mut read.deferrable, value),
                    DeferralClause::Deferred(value) => (&mut read.deferred, value),
                };
                given.replace(value).is_some_and(|before| before != value)
            };
            if read.is_contradictory() {
                return Err(ParseError::syntax(CONTRADICTION, position));
            }
            if conflict {
                return Err(ParseError::syntax("conflicting constraint properties", position));
            }
        }
        let is_check = matches!(kind, Some(ConstraintKind::Check(_)));
        let is_reference = matches!(kind, Some(ConstraintKind::ForeignKey(_)));
        let refused = [
            (read.deferral() != Deferral::Never && is_check, "DEFERRABLE"),
            (read.not_valid && !is_check && !is_reference, "NOT VALID"),
            (read.no_inherit && !is_check, "NO INHERIT"),
        ];
        if let Some((_, words)) = refused.iter().find(|(is_refused, _)| *is_refused) {
            let message = format!("{of} constraints cannot be marked {words}");
            return Err(ParseError::new(sqlstate::FEATURE_NOT_SUPPORTED, message, start));
        }
        if read.no_inherit {
            return Err(ParseError::unsupported("NO INHERIT", start));
        }
        self.refuse_other_attributes()?;
        Ok((read.deferral(), read.not_valid))
    }

    /// Reads a clause about the deferral mode; returns it with its words.
    fn when(&mut self) -> Option<(DeferralClause, &'static str)> {
        Some(if self.take_word("deferrable") {
            (DeferralClause::Deferrable(true), "DEFERRABLE")
        } else if self.take_words(&["not", "deferrable"]) {
            (DeferralClause::Deferrable(false), "NOT DEFERRABLE")
        } else if self.take_words(&["initially", "deferred"]) {
            (DeferralClause::Deferred(true), "INITIALLY DEFERRED")
        } else if self.take_words(&["initially", "immediate"]) {
            (DeferralClause::Deferred(false), "INITIALLY IMMEDIATE")
        } else {
            return None;
        })
    }

    fn refuse_other_attributes(&mut self) -> Result<()> {
        let construct = match self.peek_word().as_str() {
            "no" if self.nth_word_is(1, "inherit") => "NO INHERIT",
            "row_timestamp" => "ROW_TIMESTAMP",
            _ => return Ok(()),
        };
        Err(ParseError::unsupported(construct, self.position()))
    }
}
