//! Row-level security policies of the tables that a statement reads and writes.
//!
//! ```text
//!   FROM t        scan of t, with a reference to its conditions (TableScan::policies)
//!   UPDATE t      likewise, and checks of the new rows
//!   INSERT INTO t checks of the new rows
//!                   |
//!   finish          v
//!   Barrier: the scan, filtered by the conditions
//! ```
//!
//! Until the statement is finished, the rest of the binder sees a scan of the table. The planner
//! moves conditions of the statement below a [`Logical::Barrier`] only if they are leakproof.
//!
//! The policies that apply are those of the role that reads the relation: the current role, or the
//! owner of the view. An expression of a policy is bound like the query of a view, but its
//! relations are checked with the privileges of that role.
//!
//! Source: PostgreSQL's `get_row_security_policies` (rowsecurity.c).

mod targets;

use std::sync::Arc;

use types::DataType;
use types::expr::Expr;

use crate::ast::{self, PolicyCommand};
use crate::binder::conflict::{column_types, given_row};
use crate::binder::level::{Binder, Clause, ScanPolicies, SecuredTable, SubqueryUse};
use crate::binder::parameters::Parameters;
use crate::binder::rows::{Rows, has_subquery};
use crate::binder::scope::{Scope, ScopeRelation};
use crate::binder::system::{SessionConstants, SystemCatalog};
use crate::binder::tree::{conjunction, conjuncts, for_each_source, identity, walk_plan};
use crate::binder::typed::boolean;
use crate::binder::view::RED_ZONE_BYTES;
use crate::binder::view::STACK_BYTES;
use crate::catalog::Catalog;
use crate::catalog::access::row_security::expression_of;
use crate::catalog::policy::RowSecurityMode;
use crate::catalog::table::{Policy, Table};
use crate::catalog::view::View;
use crate::error::{Error, Result};
use crate::logical::{BoundPlan, CheckSubject, CheckTime, Logical, RowAtHand, RowCheck};

/// The maximum depth of policies within policies, which bounds the stack.
const DEPTH_MAX: usize = 32;

/// The expressions of the policies that apply to a command.
#[derive(Default)]
struct ApplicablePolicies {
    /// Of the permissive policies.
    permissive: Vec<Arc<View>>,
    /// Of the restrictive policies, with their names.
    restrictive: Vec<(String, Arc<View>)>,
}

impl ApplicablePolicies {
    fn has_same(&self, other: &ApplicablePolicies) -> bool {
        let queries = |one: &ApplicablePolicies| {
            let restrictive = one.restrictive.iter().map(|(_, query)| Arc::as_ptr(query));
            one.permissive.iter().map(Arc::as_ptr).chain(restrictive).collect::<Vec<_>>()
        };
        self.permissive.len() == other.permissive.len() && queries(self) == queries(other)
    }
}

/// The version of a row that a policy decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowVersion {
    /// A row of the table.
    Existing,
    /// A row that the statement writes.
    New,
}

impl RowVersion {
    /// Returns the expression of a policy: WITH CHECK for new rows, if it has one.
    fn expression(self, policy: &Policy) -> Option<&Arc<View>> {
        let check = policy.check.as_ref().filter(|_| self == RowVersion::New);
        check.or(policy.using.as_ref())
    }
}

/// Checks an expression of a policy that is created or changed.
///
/// # Errors
///
/// PostgreSQL's, with positions in the statement.
pub fn check_policy_expression(
    expression: &ast::Expr,
    table: &Arc<Table>,
    (catalog, system, constants): (&Catalog, &dyn SystemCatalog, &SessionConstants),
) -> Result<()> {
    let mut binder = Binder::new(catalog, system, constants, Parameters::none());
    binder.policies.is_definition = true;
    let scope = Scope::of(ScopeRelation::of_table(&table.name, table, 0));
    let bind = |binder: &mut Binder<'_>| binder.bind_policy_condition(expression);
    binder.in_new_level(scope, Clause::Policy, bind)?;
    binder.parameters.check_determined()
}

impl Binder<'_> {
    fn bind_policy_condition(&mut self, expression: &ast::Expr) -> Result<Expr> {
        let value = self.bind_expr(expression)?;
        self.condition(value, "POLICY")
    }

    /// Returns whether the policies of a table apply.
    ///
    /// # Errors
    ///
    /// 42501 if they do and `row_security` is off.
    fn is_secured(&self, SecuredTable { table, check_as }: SecuredTable<'_>) -> Result<bool> {
        let is_definition = self.policies.is_definition || self.is_defining();
        if is_definition || !table.row_security.is_enabled {
            return Ok(false);
        }
        let path = self.constants.search_path();
        let (role, mode) = (check_as.unwrap_or(path.role()), path.row_security());
        if !self.catalog.has_row_security(table, role, mode) {
            return Ok(false);
        }
        match mode {
            RowSecurityMode::Off => Err(self.catalog.affected_by_policies(table, role)),
            RowSecurityMode::On | RowSecurityMode::Integrity => Ok(true),
        }
    }

    /// Returns whether the text that is bound is a definition, whose policies do not matter.
    pub(super) fn is_defining(&self) -> bool {
        self.trace.is_some() || self.notes.is_some() || self.settler.is_some()
    }

    /// Rejects a read of a table that cannot be filtered by policies.
    ///
    /// # Errors
    ///
    /// 42501 if policies apply.
    pub(super) fn refuse_secured(&self, table: &Arc<Table>) -> Result<()> {
        let check_as = self.checked_role();
        match self.is_secured(SecuredTable { table, check_as })? {
            true => {
                let role = check_as.unwrap_or(self.constants.search_path().role());
                let hint = "Use SELECT, or a role with BYPASSRLS.";
                Err(self.catalog.affected_by_policies(table, role).with_hint(hint))
            }
            false => Ok(()),
        }
    }

    /// Attaches the policies of SELECT to the scan of a table in FROM, and of UPDATE if its rows
    /// are locked.
    pub(super) fn secure_read(
        &mut self,
        plan: &mut Logical,
        table: &Arc<Table>,
        is_locked: bool,
    ) -> Result<()> {
        let commands = [PolicyCommand::Update, PolicyCommand::Select];
        let commands = if is_locked { &commands[..] } else { &commands[1..] };
        let of = SecuredTable { table, check_as: self.checked_role() };
        self.secure_scan(plan, of, commands).map(|_| ())
    }

    /// Attaches the policies of commands to the scan of a table. Returns their conjunction, where
    /// the table has any.
    pub(super) fn secure_scan(
        &mut self,
        plan: &mut Logical,
        of: SecuredTable<'_>,
        commands: &[PolicyCommand],
    ) -> Result<Option<Expr>> {
        if !self.is_secured(of)? {
            return Ok(None);
        }
        let existing = commands.iter().map(|command| (*command, RowVersion::Existing));
        let parts = self.applicable_to(of, existing);
        let bind = |binder: &mut Self| {
            let mut conditions = Vec::new();
            for part in &parts {
                for (_, query) in &part.restrictive {
                    conditions.push(binder.bind_policy_query(of.table, query)?);
                }
                conditions.push(binder.bind_permissive(of.table, &part.permissive)?);
            }
            Ok(conditions)
        };
        let (conditions, subqueries) = self.in_policies_of(of, bind)?;
        let conditions = conditions.into_iter().flat_map(conjuncts).collect();
        let predicate = conjunction(conditions).unwrap_or_else(|| boolean(true));
        let Logical::Scan(scan) = plan else {
            bail!(INTERNAL_ERROR: "policies of a plan that is not a scan")
        };
        scan.policies = Some(self.policies.scans.len());
        self.policies.scans.push(ScanPolicies { predicate: predicate.clone(), subqueries });
        Ok(Some(predicate))
    }

    /// Returns the checks of rows at a time by the policies of commands.
    pub(super) fn policy_checks(
        &mut self,
        of: SecuredTable<'_>,
        time: CheckTime,
        commands: &[(PolicyCommand, RowVersion)],
    ) -> Result<Vec<RowCheck>> {
        if !self.is_secured(of)? {
            return Ok(Vec::new());
        }
        let parts = self.applicable_to(of, commands.iter().copied());
        let bind = |binder: &mut Self| {
            let mut conditions = Vec::new();
            for part in &parts {
                let all = binder.bind_permissive(of.table, &part.permissive)?;
                conditions.push((None, all));
                for (name, query) in &part.restrictive {
                    let condition = binder.bind_policy_query(of.table, query)?;
                    conditions.push((Some(name.clone()), condition));
                }
            }
            Ok(conditions)
        };
        let (conditions, subqueries) = self.in_policies_of(of, bind)?;
        let check = |(policy, predicate): (Option<String>, Expr)| {
            let table = of.table.name.clone();
            let subject = CheckSubject::Policy { table, policy, time };
            if !has_subquery(&predicate) {
                return RowCheck { subject, predicate, row: None };
            }
            let types = column_types(of.table);
            let (parameters, mut rows) = given_row(types, &mut self.parameters);
            let predicate = rows.place(predicate, &subqueries);
            rows.project(vec![predicate]);
            let row = Some(Box::new(RowAtHand { parameters, plan: rows.plan }));
            RowCheck { subject, predicate: Expr::column(0, DataType::Bool), row }
        };
        Ok(conditions.into_iter().map(check).collect())
    }

    /// Returns the expressions of the policies for commands, the same ones once.
    fn applicable_to(
        &self,
        of: SecuredTable<'_>,
        commands: impl Iterator<Item = (PolicyCommand, RowVersion)>,
    ) -> Vec<ApplicablePolicies> {
        let mut parts: Vec<ApplicablePolicies> = Vec::new();
        for (command, version) in commands {
            let part = self.applicable(of, command, version);
            if !parts.iter().any(|other| other.has_same(&part)) {
                parts.push(part);
            }
        }
        parts
    }

    /// Returns the expressions of the policies for a command; a policy without one is left out.
    fn applicable(
        &self,
        SecuredTable { table, check_as }: SecuredTable<'_>,
        command: PolicyCommand,
        version: RowVersion,
    ) -> ApplicablePolicies {
        let role = check_as.unwrap_or(self.constants.search_path().role());
        let mut found = ApplicablePolicies::default();
        for policy in &table.row_security.policies {
            if !policy.applies_to(self.catalog, command, role) {
                continue;
            }
            let Some(query) = version.expression(policy) else { continue };
            match policy.record.is_restrictive {
                true => found.restrictive.push((policy.record.name.clone(), Arc::clone(query))),
                false => found.permissive.push(Arc::clone(query)),
            }
        }
        if found.permissive.is_empty() {
            // No row is visible; restrictive policies do not matter.
            found.restrictive.clear();
        }
        found
    }

    /// Returns the disjunction of permissive policies; false without any.
    fn bind_permissive(&mut self, table: &Arc<Table>, queries: &[Arc<View>]) -> Result<Expr> {
        let bound = queries.iter().map(|query| self.bind_policy_query(table, query));
        let mut bound: Vec<Expr> = bound.collect::<Result<_>>()?;
        Ok(match bound.len() {
            0 => boolean(false),
            1 => bound.remove(0),
            _ => Expr::Or(bound),
        })
    }

    /// Binds the expression of a policy over the columns of its table.
    fn bind_policy_query(&mut self, table: &Arc<Table>, query: &Arc<View>) -> Result<Expr> {
        let mut relation = ScopeRelation::of_table(&table.name, table, 0);
        if let Some(known) = query.relations.iter().find(|one| one.oid == table.oid) {
            relation.name_as(&known.columns);
            relation.alias.clone_from(&known.name);
            relation.schema.clone_from(&known.schema);
        }
        // The role need not have privileges on the columns in policies.
        let columns = relation.columns.iter_mut().chain(&mut relation.hidden);
        columns.for_each(|column| column.origin = None);
        self.level().scope = Scope::of(relation);
        self.view = Some(Arc::clone(query));
        self.bind_policy_condition(expression_of(query)?)
    }

    /// Binds expressions of the policies of a table in a level of their own, which sees nothing of
    /// the statement. Returns them with their subqueries.
    fn in_policies_of<T>(
        &mut self,
        SecuredTable { table, check_as }: SecuredTable<'_>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<SubqueryUse>)> {
        if self.policies.open.len() >= DEPTH_MAX {
            bail!(STATEMENT_TOO_COMPLEX: "policies are nested more than {DEPTH_MAX} deep");
        }
        let was_recursive = self.policies.recursive.clone();
        if self.policies.open.contains(&table.oid) {
            self.policies.recursive.get_or_insert_with(|| table.name.clone());
        }
        self.policies.open.push(table.oid);
        let levels = std::mem::take(&mut self.levels);
        let named = std::mem::take(&mut self.named);
        let (view, frame) = (self.view.take(), self.frame.take());
        let outer = self.policies.check_as.replace(check_as);
        let bound = stacker::maybe_grow(RED_ZONE_BYTES, STACK_BYTES, || {
            self.in_new_level(Scope::default(), Clause::Policy, bind)
        });
        self.policies.check_as = outer;
        (self.view, self.frame) = (view, frame);
        (self.levels, self.named) = (levels, named);
        self.policies.open.pop();
        self.policies.recursive = was_recursive;
        // A position in the text of a policy must not be reported as one in the statement.
        let (value, level) = bound.map_err(|error| Error { position: None, ..error })?;
        Ok((value, level.subqueries))
    }

    /// Rejects a subquery in a policy whose table is read by another policy of the same table.
    ///
    /// # Errors
    ///
    /// 42P17.
    pub(super) fn refuse_policy_recursion(&self) -> Result<()> {
        match &self.policies.recursive {
            Some(table) => {
                bail!(INVALID_OBJECT_DEFINITION: "infinite recursion detected in policy for relation \"{table}\"")
            }
            None => Ok(()),
        }
    }

    /// Returns a leaf with the columns of a scan, filtered by the scan's policies.
    pub(super) fn secured(&self, leaf: Logical, policies: Option<usize>) -> Logical {
        let found = policies.and_then(|at| self.policies.scans.get(at));
        match found {
            Some(policies) => policies.applied_to(leaf),
            None => leaf,
        }
    }

    /// Applies the policies of scans in the plans of a statement.
    pub(super) fn apply_policies(&mut self, bound: &mut BoundPlan) {
        if self.policies.scans.is_empty() {
            return;
        }
        for_each_source(bound, &mut |plan| {
            walk_plan(plan, &mut |node| {
                let Logical::Scan(scan) = node else { return };
                let Some(at) = scan.policies.take() else { return };
                let leaf = std::mem::replace(node, Logical::Append { inputs: Vec::new() });
                *node = self.secured(leaf, Some(at));
            });
        });
    }
}

impl ScanPolicies {
    /// Returns the rows of a leaf that satisfy the conditions.
    fn applied_to(&self, leaf: Logical) -> Logical {
        let types = leaf.column_types();
        let mut rows = Rows::new(leaf, types.clone());
        rows.filter(self.predicate.clone(), &self.subqueries);
        if rows.types.len() > types.len() {
            rows.project(identity(&types));
        }
        Logical::Barrier { input: Box::new(rows.plan) }
    }
}
