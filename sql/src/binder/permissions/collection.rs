//! Requests of permissions while a statement is bound.

use std::sync::Arc;

use crate::binder::level::Binder;
use crate::binder::rows::Rows;
use crate::binder::scope::Scope;
use crate::catalog::Catalog;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::SELECT;
use crate::catalog::view::View;
use crate::error::Result;
use crate::logical::Origin;

impl Binder<'_> {
    /// Returns the role that relations are checked as; `None` for the current role.
    pub(in crate::binder) fn checked_role(&self) -> Option<u32> {
        match self.policies.check_as {
            Some(check_as) => check_as,
            None => self.view.as_ref().and_then(|view| reader_of(self.catalog, view)),
        }
    }

    /// Requests privileges on a relation.
    pub(in crate::binder) fn request(&mut self, relation: u32, privileges: u32) {
        self.permissions.request(relation, self.checked_role(), privileges);
        // Views and policies reference relations by their numbers.
        if self.view.is_none() {
            self.permissions.request_name(AccessSubject::Relation(relation));
        }
    }

    /// Requests privileges on a view that a statement writes through, and as the owners of the
    /// views, on what they read. Returns the role that the table is checked as.
    pub(in crate::binder) fn request_through(&mut self, view: u32, privileges: u32) -> Option<u32> {
        let (mut next, mut check_as) = (view, self.checked_role());
        self.permissions.request_name(AccessSubject::Relation(view));
        loop {
            self.permissions.note_written(next);
            self.permissions.request(next, check_as, privileges);
            let Some(view) = self.catalog.view(next) else { return check_as };
            let [relation] = view.relations.as_slice() else { return check_as };
            check_as = reader_of(self.catalog, view);
            next = relation.oid;
        }
    }

    /// Returns the rows of a view that the statement writes through. What they need of the target
    /// is requested only if the statement reads it.
    pub(in crate::binder) fn bind_written_rows(
        &mut self,
        view: &Arc<View>,
    ) -> Result<(Rows, Scope)> {
        let before = self.permissions.take_relations();
        let bound = self.bind_view_rows(view, &view.name, &[]);
        self.permissions.restore_relations(before);
        bound
    }

    /// Requests that a column may be read.
    pub(in crate::binder) fn request_column(&mut self, origin: Option<(Origin, usize)>) {
        if let Some((Origin::Relation(relation), at)) = origin {
            self.permissions.request_column((relation, at), self.checked_role(), SELECT);
        }
    }

    /// Requests that a column of a target may be inserted or updated.
    pub(in crate::binder) fn request_written(&mut self, relation: u32, privilege: u32, at: usize) {
        self.permissions.request_column((relation, at), self.checked_role(), privilege);
    }

    /// Requests that a function may be called.
    pub(in crate::binder) fn request_call(&mut self, function: u32) {
        // As in PostgreSQL, the owner of a view does not lend the right to call functions.
        self.permissions.request_call(function);
        if self.view.is_none() {
            self.permissions.request_name(AccessSubject::Function(function));
        }
    }

    /// Requests that a system catalog may be read.
    pub(in crate::binder) fn request_system(&mut self, name: &str) {
        if self.checked_role().is_none() {
            self.permissions.request_system(name);
        }
    }
}

/// Returns the role that the relations of a view are checked as; `None` for the current role.
fn reader_of(catalog: &Catalog, view: &View) -> Option<u32> {
    let is_owner = view.security_invoker != Some(true);
    is_owner.then(|| catalog.access(AccessSubject::Relation(view.oid)).owner)
}
