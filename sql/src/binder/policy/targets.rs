//! Policies of the table that a statement writes.

use types::expr::Expr;

use crate::ast::PolicyCommand;
use crate::binder::level::Binder;
use crate::binder::modify::changed_scan;
use crate::binder::policy::RowVersion::{self, Existing, New};
use crate::binder::update_target::UpdateTarget;
use crate::catalog::access::privilege::SELECT;
use crate::error::{Error, Result};
use crate::logical::{CheckTime, Logical, MergeAction, MergeClause, RowCheck};

impl Binder<'_> {
    /// Returns whether a statement needs SELECT on its target, besides RETURNING.
    fn reads_target(&self, written: &UpdateTarget) -> bool {
        let relations =
            [(written.table.oid, written.check_as), (written.named(), self.checked_role())];
        let requests = |(relation, role): (u32, Option<u32>)| {
            self.permissions.has_requested(relation, role, SELECT)
        };
        relations.into_iter().any(requests)
    }

    /// Attaches the policies of UPDATE or DELETE to the scan of its target, and those of SELECT if
    /// the statement reads the rows. Returns their conjunction.
    pub(in crate::binder) fn secure_target(
        &mut self,
        written: &UpdateTarget,
        plan: &mut Logical,
        (command, returns): (PolicyCommand, bool),
    ) -> Result<Option<Expr>> {
        if written.table.is_view {
            return Ok(None);
        }
        let reads = returns || self.reads_target(written);
        let commands = [command, PolicyCommand::Select];
        let commands = if reads { &commands[..] } else { &commands[..1] };
        let table = written.table.id;
        let mut leaf = changed_scan(plan).filter(|scan| scan.table.id == table).cloned();
        let Some(scan) = leaf.take() else { bail!(INTERNAL_ERROR: "a target without a scan") };
        let mut secured = Logical::Scan(scan);
        let predicate = self.secure_scan(&mut secured, written.secured(), commands)?;
        if let (Some(scan), Logical::Scan(secured)) = (changed_scan(plan), secured) {
            scan.policies = secured.policies;
        }
        Ok(predicate)
    }

    /// Returns the checks of new versions of rows.
    pub(in crate::binder) fn update_checks(
        &mut self,
        written: &UpdateTarget,
        returns: bool,
    ) -> Result<Vec<RowCheck>> {
        let reads = returns || self.reads_target(written);
        self.row_checks(written, CheckTime::Update, (PolicyCommand::Update, New), reads)
    }

    /// Returns the checks of rows by the policies of a command, and if the statement reads them, of
    /// SELECT.
    fn row_checks(
        &mut self,
        written: &UpdateTarget,
        time: CheckTime,
        command: (PolicyCommand, RowVersion),
        reads: bool,
    ) -> Result<Vec<RowCheck>> {
        let commands = [command, (PolicyCommand::Select, Existing)];
        let commands = if reads { &commands[..] } else { &commands[..1] };
        self.policy_checks(written.secured(), time, commands)
    }

    /// Returns the checks of inserted rows and, if the statement may update existing rows, of
    /// these before and after.
    pub(in crate::binder) fn insert_checks(
        &mut self,
        written: &UpdateTarget,
        (updates, returns): (bool, bool),
    ) -> Result<Vec<RowCheck>> {
        let reads = returns || self.reads_target(written);
        let insert = (PolicyCommand::Insert, New);
        let mut checks = self.row_checks(written, CheckTime::Insert, insert, reads)?;
        if updates {
            let conflict = (PolicyCommand::Update, Existing);
            checks.extend(self.row_checks(written, CheckTime::Conflict, conflict, reads)?);
            checks.extend(self.update_checks(written, returns)?);
        }
        Ok(checks)
    }

    /// Returns the checks of the rows that the actions of MERGE write. It needs SELECT, whose
    /// policies filter the existing rows.
    pub(in crate::binder) fn merge_checks(
        &mut self,
        written: &UpdateTarget,
        clauses: &[MergeClause],
    ) -> Result<Vec<RowCheck>> {
        let has = |wanted: fn(&MergeAction) -> bool| clauses.iter().any(|one| wanted(&one.action));
        let mut checks = Vec::new();
        if has(|action| matches!(action, MergeAction::Update(_))) {
            let before = (PolicyCommand::Update, Existing);
            checks.extend(self.row_checks(written, CheckTime::MergeUpdate, before, false)?);
            checks.extend(self.update_checks(written, true)?);
        }
        if has(|action| matches!(action, MergeAction::Delete)) {
            let before = (PolicyCommand::Delete, Existing);
            checks.extend(self.row_checks(written, CheckTime::MergeDelete, before, false)?);
        }
        if has(|action| matches!(action, MergeAction::Insert(_))) {
            checks.extend(self.insert_checks(written, (false, true))?);
        }
        Ok(checks)
    }
}
