//! ALTER INDEX: restriction, rebuild and regions of an index.

use crate::ast::{AlterIndex, AlterIndexAction};
use crate::ddl::{IndexOf, index_named};
use crate::error::{Error, Result};
use crate::session::Session;

impl Session {
    /// Executes ALTER INDEX, without names and options.
    ///
    /// # Errors
    ///
    /// 42704, 42P01; 55000 and 0A000 for a state that the index cannot have; 55006 if it is being
    /// built; 25001 for REBUILD in a transaction block; errors of regions.
    pub(in crate::session) fn alter_index(&mut self, alter: &AlterIndex) -> Result<()> {
        let path = self.constants.search_path();
        let named = (&alter.name, alter.table.as_ref());
        let (table, index) = self
            .with_planning(|planning| index_named(planning.catalog, path, named, "ALTER INDEX"))?;
        let of = (table.oid, index.oid);
        match &alter.action {
            AlterIndexAction::Regions(action) => self.alter_index_regions(&index, action),
            AlterIndexAction::Restrict(restriction) => {
                self.in_ddl("ALTER INDEX", |ddl| ddl.restrict_index(of, *restriction))
            }
            AlterIndexAction::SetConsistency { eventual } => {
                self.set_index_consistency(of, *eventual)
            }
            AlterIndexAction::Rebuild { is_async: true } => {
                self.reject_second_build(of, &index.name)?;
                self.in_ddl("ALTER INDEX", |ddl| ddl.begin_new_form(of, None)).map(drop)
            }
            AlterIndexAction::Rebuild { is_async: false } => {
                self.check_may_define("ALTER INDEX")?;
                self.reject_in_block("ALTER INDEX … REBUILD")?;
                self.reject_second_build(of, &index.name)?;
                self.rebuild_online(of, None)?;
                self.commit()?;
                Ok(())
            }
        }
    }

    fn reject_second_build(&self, (_, index): IndexOf, name: &str) -> Result<()> {
        let builds = self.engine.stored_builds()?;
        let is_built = builds.iter().any(|build| {
            (build.index == index && build.error.is_none()) || build.replaces == Some(index)
        });
        if is_built {
            bail!(OBJECT_IN_USE: "index \"{name}\" is being built";
                hint "bennu.indexes shows its progress.");
        }
        Ok(())
    }
}
