//! SET clauses of functions, in CREATE and ALTER FUNCTION.
//!
//! Values are stored as written, and validated when they are set; each session interprets them
//! when it calls the function.
//!
//! Source: PostgreSQL's `update_proconfig_value` (functioncmds.c).

use std::sync::Arc;

use crate::ast::SettingClause;
use crate::catalog::function::FunctionRecord;
use crate::catalog::name::SearchPath;
use crate::ddl::Ddl;
use crate::error::{Error, Result};
use crate::settings::Settings;

impl Ddl<'_> {
    /// Returns whether the body of a new function is checked (`check_function_bodies`).
    pub(super) fn checks_bodies(&self) -> bool {
        self.settings.as_ref().is_none_or(|settings| settings.is_on("check_function_bodies"))
    }

    /// Applies the SET and RESET clauses of a statement to stored settings.
    pub(super) fn change_settings(
        &self,
        kept: &mut Vec<(String, String)>,
        clauses: &[SettingClause],
    ) -> Result<()> {
        let Some(settings) = &self.settings else { return Ok(()) };
        for clause in clauses {
            let (name, value) = match clause {
                SettingClause::Set(set) => (&set.name.value, Settings::given(set)),
                SettingClause::Current(name) => {
                    (&name.value, Some(settings.show(&name.value)?.1.to_owned()))
                }
                SettingClause::Reset(Some(name)) => (&name.value, None),
                SettingClause::Reset(None) => {
                    kept.clear();
                    continue;
                }
            };
            if Settings::is_transaction_mode(name) {
                let what = format!("{name} in a stored SET clause");
                return Err(Error::not_supported(what, "Set it for the transaction."));
            }
            let mut tried = settings.clone();
            tried.set_with(&self.changes.catalog(self.engine), name, value.as_deref())?;
            let name = tried.show(name)?.0;
            let old = kept.iter().position(|(known, _)| known == name);
            match (old, value) {
                (Some(at), Some(value)) => kept[at].1 = value,
                (Some(at), None) => drop(kept.remove(at)),
                (None, Some(value)) => kept.push((name.to_owned(), value)),
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Returns the search path for the body of a function.
    pub(super) fn path_within(&self, record: &FunctionRecord) -> Result<Arc<SearchPath>> {
        let Some(settings) = self.settings.as_ref().filter(|_| !record.settings.is_empty()) else {
            return Ok(Arc::clone(&self.path));
        };
        let mut settings = settings.clone();
        for (name, value) in record.settings.iter() {
            settings.set_with(&self.changes.catalog(self.engine), name, Some(value))?;
        }
        Ok(Arc::new(settings.search_path()))
    }
}
