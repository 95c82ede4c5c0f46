//! Row-level security: the policies of tables, and the roles that they apply to.
//!
//! A policy is stored in the record of its table. Its expressions may have subqueries and are
//! stored like the queries of views: as the text of a query over the table with the expression as
//! its only column, with the relations that the text names. They are parsed when the table enters
//! the catalog snapshot and bound at each use.
//!
//! Source: PostgreSQL's `check_enable_rls` (rls.c) and `get_policies_for_relation` (rowsecurity.c).

use std::sync::Arc;

use crate::ast::{self, PolicyCommand, QueryBody, RoleAttribute, SelectItem};
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::policy::RowSecurityMode;
use crate::catalog::record::{PolicyExpressionRecord, TableRecord, ViewRecord};
use crate::catalog::table::{Policy, RowSecurity, Table};
use crate::catalog::view::View;
use crate::catalog::{Catalog, CatalogEntry, ObjectId};
use crate::error::{Error, Result};

/// Returns the row-level security of a stored table.
///
/// # Errors
///
/// XX001 if a type is unknown.
pub fn row_security_of(record: &TableRecord, catalog: &Catalog) -> Result<RowSecurity> {
    let mut policies = Vec::with_capacity(record.policies.len());
    for policy in &record.policies {
        let view = |expression: &PolicyExpressionRecord| {
            view_of(expression, record, catalog).map(Arc::new)
        };
        policies.push(Arc::new(Policy {
            record: policy.clone(),
            using: policy.using.as_ref().map(view).transpose()?,
            check: policy.check.as_ref().map(view).transpose()?,
        }));
    }
    policies.sort_by(|a, b| a.record.name.cmp(&b.record.name));
    let (is_enabled, is_forced) = (record.row_security, record.forces_row_security);
    Ok(RowSecurity { is_enabled, is_forced, policies })
}

/// Returns the query as a view over the table.
fn view_of(
    expression: &PolicyExpressionRecord,
    table: &TableRecord,
    catalog: &Catalog,
) -> Result<View> {
    let record = ViewRecord {
        oid: table.oid,
        schema: table.schema.clone(),
        name: table.name.clone(),
        text: expression.text.clone(),
        relations: expression.relations.clone(),
        search_path: expression.search_path.clone(),
        ..ViewRecord::default()
    };
    View::of_record(record, catalog)
}

impl Policy {
    /// Returns whether it applies to a command of a role.
    pub fn applies_to(&self, catalog: &Catalog, command: PolicyCommand, role: u32) -> bool {
        let record = &self.record;
        let is_for_command = [PolicyCommand::All, command].contains(&record.command);
        let is_for_role = |one: &u32| catalog.has_privileges_of(role, *one);
        is_for_command && (record.is_for_all() || record.roles.iter().any(is_for_role))
    }
}

/// Returns the expression of a policy in its query.
///
/// # Errors
///
/// XX001 if the text cannot be parsed.
pub fn expression_of(query: &View) -> Result<&ast::Expr> {
    let damaged = || err!(DATA_CORRUPTED: "a policy of table \"{}\" cannot be read", query.name);
    let QueryBody::Select(select) = &query.query()?.body else { return Err(damaged()) };
    match select.items.as_slice() {
        [SelectItem::Expr { expr, .. }] => Ok(expr),
        _ => Err(damaged()),
    }
}

impl Catalog {
    /// Returns whether the policies of a table apply to a role.
    pub fn has_row_security(&self, table: &Table, role: u32, mode: RowSecurityMode) -> bool {
        let security = &table.row_security;
        if !security.is_enabled || self.role_has(role, RoleAttribute::BypassRowSecurity) {
            return false;
        }
        let is_forced = security.is_forced && mode != RowSecurityMode::Integrity;
        is_forced || !self.is_owner(role, AccessSubject::Relation(table.oid))
    }

    /// Returns the error of a statement that policies apply to but that cannot apply them.
    pub fn affected_by_policies(&self, table: &Table, role: u32) -> Error {
        let name = &table.name;
        let error = err!(INSUFFICIENT_PRIVILEGE:
            "query would be affected by row-level security policy for table \"{name}\"");
        match self.is_owner(role, AccessSubject::Relation(table.oid)) {
            true => error.with_hint(
                "To disable the policy for the table's owner, use ALTER TABLE NO FORCE ROW LEVEL \
                 SECURITY.",
            ),
            false => error,
        }
    }

    /// Returns the tables with a policy whose expression references a relation.
    pub fn tables_with_policy_on(&self, relation: u32) -> impl Iterator<Item = &Arc<Table>> {
        self.referrers(relation).filter_map(|entry| match entry {
            CatalogEntry::Object(ObjectId::Table(table)) => self.table(*table),
            _ => None,
        })
    }

    /// Returns the policies for a role, oldest first, with their tables.
    pub fn policies_for(&self, role: u32) -> Vec<(&Arc<Table>, &Arc<Policy>)> {
        let tables = self.tables_by_age();
        let policies = tables.flat_map(|table| {
            table.row_security.policies.iter().map(move |policy| (table, policy))
        });
        let mut found: Vec<_> =
            policies.filter(|(_, policy)| policy.record.roles.contains(&role)).collect();
        found.sort_by_key(|(_, policy)| policy.record.number);
        found
    }
}

/// Returns the error for a table without a policy of a name.
pub fn no_policy(name: &str, table: &str) -> Error {
    err!(UNDEFINED_OBJECT: "policy \"{name}\" for table \"{table}\" does not exist")
}
