//! `ALTER TABLE t SET (…)`, `ALTER ROLE r SET …` and RESET: quotas, and for a table also the
//! options of [`split_options`](crate::ddl::split_options) and storage parameters.

use store::quota::{QuotaKind, QuotaLimits};
use store::transaction::TableLockMode;

use crate::ast;
use crate::ast::{AlterQuota, OptionValue, QuotaChange, QuotaOwner, TableOption};
use crate::catalog::quota::QuotaSubject;
use crate::catalog::table::Table;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject};
use crate::ddl::Ddl;
use crate::ddl::split_options::{SplitChange, is_split_option};
use crate::ddl::storage_parameters::{is_of_toast, is_parameter};
use crate::error::{Error, Result};
use crate::settings::parse_bytes;

impl Ddl<'_> {
    /// Changes the quota of a table or a role.
    pub fn alter_quota(&mut self, statement: &AlterQuota) -> Result<()> {
        let catalog = self.catalog();
        let subject = match &statement.of {
            QuotaOwner::Role(name) => QuotaSubject::Role(name.value.clone()),
            QuotaOwner::Index(name) => return self.alter_index_parameters(name, &statement.change),
            QuotaOwner::Table(name) => {
                let table = self.table(&catalog, name)?;
                // This mode does not block writers, but excludes a concurrent drop.
                self.lock_table(table.id, TableLockMode::ShareUpdateExclusive)?;
                return self.alter_options(&table, &statement.change);
            }
        };
        self.change_quota(&catalog, subject, &statement.change)
    }

    /// Changes options of a table: quotas, split policy and storage parameters.
    fn alter_options(&mut self, table: &Table, change: &QuotaChange) -> Result<()> {
        let (parameters, change) = split_parameters(change);
        if let Some(parameters) = parameters {
            self.change_parameters(table, &parameters)?;
        }
        let Some(change) = &change else { return Ok(()) };
        let (splits, quotas) = match change {
            QuotaChange::Set(options) => {
                let (splits, quotas): (Vec<_>, Vec<_>) =
                    options.iter().partition(|option| is_split_option(&option.name));
                let quotas: Vec<TableOption> = quotas.into_iter().cloned().collect();
                let splits: Vec<_> = splits.into_iter().map(SplitChange::Set).collect();
                (splits, (!quotas.is_empty()).then_some(QuotaChange::Set(quotas)))
            }
            QuotaChange::Reset(names) => {
                let (splits, quotas): (Vec<_>, Vec<_>) =
                    names.iter().partition(|name| is_split_option(name));
                let quotas: Vec<ast::Ident> = quotas.into_iter().cloned().collect();
                let splits: Vec<_> = splits.into_iter().map(SplitChange::Reset).collect();
                (splits, (!quotas.is_empty()).then_some(QuotaChange::Reset(quotas)))
            }
            QuotaChange::ResetAll => (Vec::new(), Some(QuotaChange::ResetAll)),
        };
        if !splits.is_empty() {
            self.change_split_options(table, &splits)?;
        }
        let catalog = self.changes.catalog(self.engine);
        let subject = QuotaSubject::Table(table.id);
        quotas.map_or(Ok(()), |quotas| self.change_quota(&catalog, subject, &quotas))
    }

    fn change_quota(
        &mut self,
        catalog: &Catalog,
        subject: QuotaSubject,
        change: &QuotaChange,
    ) -> Result<()> {
        let mut limits = catalog.quota(&subject).unwrap_or_default();
        match change {
            QuotaChange::Set(options) => {
                for option in options {
                    let kind = kind(&option.name, option.family.is_some())?;
                    limits.set(kind, Some(per_second(option, kind)?));
                }
            }
            QuotaChange::Reset(names) => {
                for name in names {
                    limits.set(kind(name, false)?, None);
                }
            }
            QuotaChange::ResetAll => limits = QuotaLimits::default(),
        }
        match limits == QuotaLimits::default() {
            true => self.remove_object(&CatalogEntry::Quota(subject)),
            false => self.store_object(CatalogObject::Quota(subject, limits)),
        }
    }
}

/// Separates changes of storage parameters from those of other options.
fn split_parameters(change: &QuotaChange) -> (Option<QuotaChange>, Option<QuotaChange>) {
    match change {
        QuotaChange::Set(options) => {
            let (parameters, others): (Vec<_>, Vec<_>) = options
                .iter()
                .cloned()
                .partition(|option| is_parameter(&option.name.value) || is_of_toast(option));
            let some = |options: Vec<TableOption>| {
                (!options.is_empty()).then_some(QuotaChange::Set(options))
            };
            (some(parameters), some(others))
        }
        QuotaChange::Reset(names) => {
            let (parameters, others): (Vec<_>, Vec<_>) =
                names.iter().cloned().partition(|name| is_parameter(&name.value));
            let some =
                |names: Vec<ast::Ident>| (!names.is_empty()).then_some(QuotaChange::Reset(names));
            (some(parameters), some(others))
        }
        QuotaChange::ResetAll => (None, Some(QuotaChange::ResetAll)),
    }
}

/// Returns the limit with a name.
fn kind(name: &ast::Ident, of_family: bool) -> Result<QuotaKind> {
    let found = QuotaKind::ALL.into_iter().find(|kind| kind.name() == name.value);
    match found {
        Some(_) if of_family => {
            bail!(INVALID_PARAMETER_VALUE: "\"{}\" is a quota of the table, not of a column family", name.value;
                at name.position)
        }
        Some(kind) => Ok(kind),
        None => {
            let names = QuotaKind::ALL.map(QuotaKind::name).join(", ");
            let error = Error::not_supported(
                format!("changing \"{}\"", name.value),
                format!(
                    "Only quotas ({names}) and, for tables, split_policy and max_filesize can be \
                     changed."
                ),
            );
            Err(error.at(name.position))
        }
    }
}

/// Parses the value of a limit: a positive number; a number of bytes may have a unit.
fn per_second(option: &TableOption, kind: QuotaKind) -> Result<u64> {
    let number = match &option.value {
        OptionValue::Number(text) => text.parse().ok(),
        OptionValue::String(text) if kind != QuotaKind::Requests => parse_bytes(text),
        OptionValue::String(text) => text.parse().ok(),
        OptionValue::Boolean(_) | OptionValue::Word(_) => None,
    };
    // The limit per second is converted to millionths, which must not overflow.
    let number = number.filter(|number| (1..=i64::MAX as u64).contains(number));
    number.ok_or_else(|| {
        let name = &option.name.value;
        let error = err!(INVALID_PARAMETER_VALUE: "invalid value for parameter \"{name}\"");
        error
            .with_hint(match kind {
                QuotaKind::Requests => {
                    "The value must be a positive integer. Use RESET to remove the quota."
                }
                _ => {
                    "The value must be a positive number of bytes, such as 1000000 or '10MB'. Use \
                     RESET to remove the quota."
                }
            })
            .at(option.name.position)
    })
}
