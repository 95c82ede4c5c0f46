//! Permissions that a statement needs: on each relation that it names, with the columns that it
//! reads and writes, and on the functions that it calls.
//!
//! They are collected while the statement is bound, and checked once for each plan: a plan depends
//! on the current role and on the version of the catalog. The relations in the query of a view are
//! checked with the privileges of its owner, unless it has the option `security_invoker`.
//!
//! Source: PostgreSQL's `RTEPermissionInfo` and `ExecCheckOneRelPerms` (execMain.c).

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::{EXECUTE, INSERT, SELECT, UPDATE, USAGE};
use crate::catalog::{Catalog, CatalogEntry};
use crate::error::{Error, Result};

/// The permissions that a statement needs.
#[derive(Debug, Clone, Default)]
pub struct PermissionRequests {
    /// By the number of the relation, and the role to check as; `None` for the current role.
    relations: RelationRequests,
    /// The views that the statement writes through, with the relations that they read.
    written: BTreeSet<u32>,
    /// The requests of the queries of these views on the relations in `written`, which count only
    /// if the statement reads one of them.
    written_reads: RelationRequests,
    /// The relations and functions that the statement itself names.
    named: BTreeSet<AccessSubject>,
    /// The functions that it calls.
    functions: BTreeSet<u32>,
    /// The system catalogs with secrets that it reads.
    secrets: BTreeSet<&'static str>,
}

/// The privileges that a statement needs on relations.
pub(super) type RelationRequests = BTreeMap<(u32, Option<u32>), RelationRequest>;

/// The privileges that a statement needs on a relation.
#[derive(Debug, Clone, Default)]
pub(super) struct RelationRequest {
    privileges: u32,
    selected: BTreeSet<usize>,
    inserted: BTreeSet<usize>,
    updated: BTreeSet<usize>,
}

/// A relation that a statement uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationUse {
    /// Its noun.
    pub noun: &'static str,
    /// Its name with the schema.
    pub name: String,
    /// Bits of the privileges that the statement needs.
    pub privileges: u32,
    /// True if the audit role has one of them, on the relation or on a column that is used.
    pub is_granted: bool,
}

/// System catalogs that only superusers may read.
const SECRETS: [&str; 4] = ["pg_authid", "pg_shadow", "pg_statistic", "pg_user_mapping"];

impl PermissionRequests {
    /// Requests privileges on a relation.
    pub fn request(&mut self, relation: u32, check_as: Option<u32>, privileges: u32) {
        self.relations.entry((relation, check_as)).or_default().privileges |= privileges;
    }

    /// Returns whether a privilege on a relation is requested.
    pub fn has_requested(&self, relation: u32, check_as: Option<u32>, privilege: u32) -> bool {
        let request = self.relations.get(&(relation, check_as));
        request.is_some_and(|request| request.privileges & privilege != 0)
    }

    /// Requests a privilege on a column of a relation.
    pub fn request_column(
        &mut self,
        (relation, at): (u32, usize),
        check_as: Option<u32>,
        privilege: u32,
    ) {
        let request = self.relations.entry((relation, check_as)).or_default();
        request.privileges |= privilege;
        match privilege {
            SELECT => request.selected.insert(at),
            INSERT => request.inserted.insert(at),
            _ => request.updated.insert(at),
        };
    }

    /// Records that the statement writes through a view to a relation.
    pub fn note_written(&mut self, relation: u32) {
        self.written.insert(relation);
    }

    /// Takes the requests on relations, before the query of a view that the statement writes
    /// through is bound.
    pub(super) fn take_relations(&mut self) -> RelationRequests {
        std::mem::take(&mut self.relations)
    }

    /// Restores the requests on relations; those of the query in between count as described.
    pub(super) fn restore_relations(&mut self, before: RelationRequests) {
        let reads = std::mem::replace(&mut self.relations, before);
        for (key, request) in reads {
            let to = match self.written.contains(&key.0) {
                true => &mut self.written_reads,
                false => &mut self.relations,
            };
            to.entry(key).or_default().add(request);
        }
    }

    /// Requests that a function may be called.
    pub fn request_call(&mut self, function: u32) {
        self.functions.insert(function);
    }

    /// Requests that a relation or function may be looked up by name.
    pub fn request_name(&mut self, subject: AccessSubject) {
        self.named.insert(subject);
    }

    /// Requests that a system catalog may be read.
    pub fn request_system(&mut self, name: &str) {
        self.secrets.extend(SECRETS.iter().find(|secret| **secret == name));
    }

    /// Requests that rows of the relations may be locked.
    pub fn request_locks(&mut self, locked: &[u32]) {
        let is_locked = |relation: u32| locked.contains(&relation);
        for ((relation, _), request) in &mut self.relations {
            if is_locked(*relation) {
                request.privileges |= UPDATE;
            }
        }
    }

    /// Returns the relations, with whether a role has a privilege that the statement needs.
    pub fn relations(&self, catalog: &Catalog, role: Option<u32>) -> Vec<RelationUse> {
        let relations = self.relations.iter().map(|((number, _), request)| {
            let subject = AccessSubject::Relation(*number);
            let schema = schema_of(catalog, subject);
            let (noun, name) = catalog.described(subject);
            RelationUse {
                noun,
                name: format!("{}.{name}", schema.unwrap_or_default()),
                privileges: request.privileges,
                is_granted: role.is_some_and(|role| request.is_granted(catalog, role, *number)),
            }
        });
        relations.collect()
    }

    /// Returns the noun and the name of each function of a user that is called.
    pub fn functions(&self, catalog: &Catalog) -> Vec<(&'static str, String)> {
        let functions = self.functions.iter();
        functions.map(|number| catalog.described(AccessSubject::Function(*number))).collect()
    }

    /// Checks the permissions of a role.
    ///
    /// # Errors
    ///
    /// 42501 for the first that is missing.
    pub fn check(&self, catalog: &Catalog, role: u32) -> Result<()> {
        let is_superuser = catalog.is_superuser(role);
        if let Some(name) = self.secrets.iter().next().filter(|_| !is_superuser) {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied for table {name}");
        }
        for named in self.named.iter().filter(|_| !is_superuser) {
            check_schema(catalog, role, *named)?;
        }
        let reads_written = self.relations.iter().any(|((number, _), request)| {
            request.privileges & SELECT != 0 && self.written.contains(number)
        });
        let written_reads = self.written_reads.iter().filter(|_| reads_written);
        for ((number, check_as), request) in self.relations.iter().chain(written_reads) {
            request.check(catalog, (check_as.unwrap_or(role), *number))?;
        }
        for number in &self.functions {
            let subject = AccessSubject::Function(*number);
            if catalog.privileges_on(role, subject).0 & EXECUTE == 0 {
                return Err(catalog.denied(subject));
            }
        }
        Ok(())
    }
}

impl RelationRequest {
    fn add(&mut self, other: RelationRequest) {
        self.privileges |= other.privileges;
        self.selected.extend(other.selected);
        self.inserted.extend(other.inserted);
        self.updated.extend(other.updated);
    }

    /// Returns whether a role has one of the privileges.
    fn is_granted(&self, catalog: &Catalog, role: u32, relation: u32) -> bool {
        let subject = AccessSubject::Relation(relation);
        let of_columns =
            [(SELECT, &self.selected), (INSERT, &self.inserted), (UPDATE, &self.updated)];
        let has = |privilege: u32, at: usize| {
            catalog.column_privileges(role, relation, at) & privilege != 0
        };
        self.privileges & catalog.privileges_on(role, subject).0 != 0
            || of_columns
                .into_iter()
                .any(|(privilege, columns)| columns.iter().any(|at| has(privilege, *at)))
    }

    fn check(&self, catalog: &Catalog, (role, relation): (u32, u32)) -> Result<()> {
        let subject = AccessSubject::Relation(relation);
        let missing = self.privileges & !catalog.privileges_on(role, subject).0;
        if missing == 0 {
            return Ok(());
        }
        let of_columns =
            [(SELECT, &self.selected), (INSERT, &self.inserted), (UPDATE, &self.updated)];
        let mut left = missing;
        for (privilege, columns) in of_columns.into_iter().filter(|(one, _)| missing & one != 0) {
            let has = |at: usize| catalog.column_privileges(role, relation, at) & privilege != 0;
            let is_held = match columns.is_empty() {
                // A query without columns may count rows if it may read any column.
                true => privilege == SELECT && (0..column_count(catalog, relation)).any(has),
                false => columns.iter().all(|at| has(*at)),
            };
            if is_held {
                left &= !privilege;
            }
        }
        if left == 0 { Ok(()) } else { Err(catalog.denied(subject)) }
    }
}

fn column_count(catalog: &Catalog, relation: u32) -> usize {
    let of_view = || catalog.view(relation).map_or(0, |view| view.columns.len());
    catalog.table(relation).map_or_else(of_view, |table| table.columns.len())
}

/// Checks that a role may look up names in the schema of a relation or function.
fn check_schema(catalog: &Catalog, role: u32, named: AccessSubject) -> Result<()> {
    let schema = schema_of(catalog, named).and_then(|name| catalog.schema(&name));
    let Some(schema) = schema else { return Ok(()) };
    let subject = AccessSubject::Schema(schema.oid);
    let is_own = crate::catalog::name::is_temporary(&schema.name);
    match is_own || catalog.privileges_on(role, subject).0 & USAGE != 0 {
        true => Ok(()),
        false => Err(catalog.denied(subject)),
    }
}

/// Returns the name of the schema of a relation or function.
fn schema_of(catalog: &Catalog, named: AccessSubject) -> Option<String> {
    let object = catalog.object_of(named).map(CatalogEntry::Object)?;
    Some(catalog.object(&object)?.name()?.schema.clone())
}
