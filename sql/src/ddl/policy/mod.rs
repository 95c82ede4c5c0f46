//! CREATE, ALTER and DROP POLICY.
//!
//! The checks and their order are those of PostgreSQL's `CreatePolicy` and `AlterPolicy`
//! (policy.c).

use std::sync::Arc;

use store::transaction::TableLockMode;

use crate::ast::{
    AlterPolicy, CreatePolicy, Grantee, Ident, PolicyCommand, PolicyStatement, SourceExpr,
    SourceQuery, TableName,
};
use crate::binder::{
    SessionConstants, SystemCatalog, bind_view_definition, check_policy_expression,
};
use crate::catalog::access::privilege::PUBLIC_ROLE;
use crate::catalog::access::row_security::no_policy;
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::object::Object;
use crate::catalog::record::{PolicyExpressionRecord, PolicyRecord, TableRecord};
use crate::catalog::table::Table;
use crate::catalog::{Catalog, CatalogRelation};
use crate::ddl::{Ddl, no_schema, undefined_table};
use crate::error::{Error, Result, sqlstate};
use crate::parser;

/// The system views and the values of session functions, for the names in expressions.
type ExpressionNames<'a> = (&'a dyn SystemCatalog, &'a SessionConstants);

impl Ddl<'_> {
    /// Creates, changes or drops a policy.
    pub fn change_policies(
        &mut self,
        statement: &PolicyStatement,
        names: (&dyn SystemCatalog, &SessionConstants),
    ) -> Result<()> {
        match statement {
            PolicyStatement::Create(create) => self.create_policy(create, names),
            PolicyStatement::Alter(alter) => self.alter_policy(alter, names),
            PolicyStatement::Rename { name, table, to, .. } => self.rename_policy(name, table, to),
            PolicyStatement::Drop { name, if_exists, table } => {
                self.drop_policy(name, table, *if_exists)
            }
        }
    }

    fn create_policy(&mut self, create: &CreatePolicy, names: ExpressionNames<'_>) -> Result<()> {
        let catalog = self.catalog();
        if create.check.is_some()
            && matches!(create.command, PolicyCommand::Select | PolicyCommand::Delete)
        {
            bail!(SYNTAX_ERROR: "WITH CHECK cannot be applied to SELECT or DELETE");
        }
        if create.using.is_some() && create.command == PolicyCommand::Insert {
            bail!(SYNTAX_ERROR: "only WITH CHECK expression allowed for INSERT");
        }
        let roles = self.policy_roles(&catalog, &create.roles)?;
        let table = self.table_with_policies(&catalog, &create.table)?;
        let expression = |one: &Option<SourceExpr>| match one {
            Some(one) => self.policy_expression(&table, one, names).map(Some),
            None => Ok(None),
        };
        let (using, check) = (expression(&create.using)?, expression(&create.check)?);
        let name = &create.name.value;
        if table.row_security.policy(name).is_some() {
            return Err(taken(name, &table));
        }
        let policy = PolicyRecord {
            number: self.take_ids(1)?,
            name: name.clone(),
            is_restrictive: create.is_restrictive,
            command: create.command,
            roles,
            using,
            check,
            unknown: Default::default(),
        };
        self.change_policy_list(&table, |record| record.policies.push(policy))
    }

    fn alter_policy(&mut self, alter: &AlterPolicy, names: ExpressionNames<'_>) -> Result<()> {
        let catalog = self.catalog();
        let roles = match &alter.roles {
            Some(roles) => Some(self.policy_roles(&catalog, roles)?),
            None => None,
        };
        let table = self.table_with_policies(&catalog, &alter.table)?;
        let expression = |one: &Option<SourceExpr>| match one {
            Some(one) => self.policy_expression(&table, one, names).map(Some),
            None => Ok(None),
        };
        let (using, check) = (expression(&alter.using)?, expression(&alter.check)?);
        let name = &alter.name.value;
        let Some(policy) = table.row_security.policy(name) else {
            return Err(no_policy(name, &table.name));
        };
        match policy.record.command {
            PolicyCommand::Select | PolicyCommand::Delete if check.is_some() => {
                bail!(SYNTAX_ERROR: "only USING expression allowed for SELECT, DELETE")
            }
            PolicyCommand::Insert if using.is_some() => {
                bail!(SYNTAX_ERROR: "only WITH CHECK expression allowed for INSERT")
            }
            _ => {}
        }
        self.change_policy_list(&table, |record| {
            if let Some(policy) = record.policies.iter_mut().find(|one| one.name == *name) {
                policy.using = using.or(policy.using.take());
                policy.check = check.or(policy.check.take());
                policy.roles = roles.unwrap_or_else(|| std::mem::take(&mut policy.roles));
            }
        })
    }

    fn rename_policy(&mut self, name: &Ident, table: &TableName, to: &Ident) -> Result<()> {
        let catalog = self.catalog();
        let table = self.table_with_policies(&catalog, table)?;
        let (from, to) = (&name.value, &to.value);
        if table.row_security.policy(to).is_some() {
            return Err(taken(to, &table));
        }
        if table.row_security.policy(from).is_none() {
            return Err(no_policy(from, &table.name));
        }
        let key = |name: &String| CommentSubjectKey::Policy(table.oid, name.clone());
        self.move_comment(key(from), key(to))?;
        self.change_policy_list(&table, |record| {
            for one in record.policies.iter_mut().filter(|one| one.name == *from) {
                one.name.clone_from(to);
            }
        })
    }

    fn drop_policy(&mut self, name: &Ident, written: &TableName, if_exists: bool) -> Result<()> {
        let catalog = self.catalog();
        let name = &name.value;
        let Some(relation) = self.find(&catalog, written) else {
            let schema = written.schema.as_ref().filter(|_| if_exists);
            if let Some(schema) = schema.filter(|one| catalog.schema(&one.value).is_none()) {
                return self.missing_object(no_schema(&schema.value), true);
            }
            let missing = Error { position: None, ..undefined_table(written) };
            return self.missing_object(missing, if_exists);
        };
        let table = match relation {
            CatalogRelation::Table(table) => Some(Arc::clone(table)),
            _ => None,
        };
        let found = table.filter(|table| table.row_security.policy(name).is_some());
        let Some(table) = found else {
            // The noun is PostgreSQL's, which depends on the statement.
            let missing = match if_exists {
                true => {
                    let shown = super::name_as_written(written);
                    err!(UNDEFINED_OBJECT: "policy \"{name}\" for relation \"{shown}\" does not exist")
                }
                false => no_policy(name, &written.name.value),
            };
            return self.missing_object(missing, if_exists);
        };
        let policy = Object::Policy(table.oid, name.clone());
        self.check_owns(&catalog, &policy)?;
        self.drop_objects(&[policy], false)
    }

    /// Returns the numbers of the roles of a policy.
    fn policy_roles(&mut self, catalog: &Catalog, roles: &[Grantee]) -> Result<Vec<u32>> {
        if roles.contains(&Grantee::Public) {
            if roles.len() > 1 {
                let message = "ignoring specified roles other than PUBLIC";
                let hint = "All roles are members of the PUBLIC role.";
                let notice = Error::new(sqlstate::INVALID_PARAMETER_VALUE, message);
                self.notices.push(notice.with_hint(hint));
            }
            return Ok(vec![PUBLIC_ROLE]);
        }
        let number = |role: &Grantee| match role {
            Grantee::Public => Ok(PUBLIC_ROLE),
            Grantee::Role(role) => Ok(self.named_role(catalog, role)?.number),
        };
        roles.iter().map(number).collect()
    }

    /// Returns the table of a policy, which the current role owns.
    fn table_with_policies(&mut self, catalog: &Catalog, name: &TableName) -> Result<Arc<Table>> {
        let Some(found) = self.find(catalog, name) else { return Err(undefined_table(name)) };
        self.check_owns(catalog, &Object::of(found))?;
        match found {
            CatalogRelation::Table(table) if !table.is_materialized() => Ok(Arc::clone(table)),
            _ => bail!(WRONG_OBJECT_TYPE: "\"{}\" is not a table", name.name.value),
        }
    }

    /// Checks an expression of a policy, and returns the form that is stored.
    fn policy_expression(
        &self,
        table: &Arc<Table>,
        written: &SourceExpr,
        (system, constants): ExpressionNames<'_>,
    ) -> Result<PolicyExpressionRecord> {
        let catalog = self.changes.catalog(self.engine);
        // Errors have positions in the statement.
        check_policy_expression(&written.expr, table, (&catalog, system, constants))?;
        let (schema, name) = (parser::quoted(&table.schema), parser::quoted(&table.name));
        let text = format!("SELECT ({}) FROM {schema}.{name}", written.text);
        let query = parser::parse_query(&text)?;
        let source = SourceQuery { query, text, position: 1 };
        let session = (constants, self.literal_style());
        let definition = bind_view_definition(&source, &catalog, system, session)?;
        Ok(PolicyExpressionRecord {
            text: definition.text,
            relations: definition.relations,
            search_path: definition.search_path.schemas().to_vec(),
            unknown: Default::default(),
        })
    }

    fn change_policy_list(
        &mut self,
        table: &Arc<Table>,
        change: impl FnOnce(&mut TableRecord),
    ) -> Result<()> {
        self.lock_table(table.id, TableLockMode::AccessExclusive)?;
        self.change_record(table.oid, |_, record| change(record))
    }

    /// Removes a role from policies; a policy without another role is dropped.
    pub(in crate::ddl) fn forget_policies_of(&mut self, role: u32) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let policies = catalog.policies_for(role).into_iter();
        let policies: Vec<(Arc<Table>, String)> =
            policies.map(|(table, one)| (Arc::clone(table), one.record.name.clone())).collect();
        for (table, name) in policies {
            self.with_others(|ddl| {
                ddl.change_policy_list(&table, |record| {
                    for policy in record.policies.iter_mut().filter(|one| one.name == name) {
                        policy.roles.retain(|one| *one != role);
                    }
                })
            })?;
            let catalog = self.changes.catalog(self.engine);
            let now = catalog.table(table.oid).and_then(|now| now.row_security.policy(&name));
            if now.is_some_and(|policy| policy.record.roles.is_empty()) {
                let policy = Object::Policy(table.oid, name);
                self.with_others(|ddl| ddl.drop_objects(&[policy], false))?;
            }
        }
        Ok(())
    }
}

fn taken(name: &str, table: &Table) -> Error {
    err!(DUPLICATE_OBJECT: "policy \"{name}\" for table \"{}\" already exists", table.name)
}
