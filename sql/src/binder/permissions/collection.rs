//! Requests of permissions while a statement is bound.

use crate::binder::level::Binder;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::SELECT;
use crate::logical::Origin;

impl Binder<'_> {
    /// Returns the role that relations are checked as; `None` for the current role.
    fn checked_role(&self) -> Option<u32> {
        let view = self.view.as_ref()?;
        Some(self.catalog.access(AccessSubject::Relation(view.oid)).owner)
    }

    /// Requests privileges on a relation.
    pub(in crate::binder) fn request(&mut self, relation: u32, privileges: u32) {
        self.permissions.request(relation, self.checked_role(), privileges);
    }

    /// Requests privileges on a view that a statement writes through, and as the owners of the
    /// views, on what they read.
    pub(in crate::binder) fn request_through(&mut self, view: u32, privileges: u32) {
        let (mut next, mut check_as) = (view, self.checked_role());
        loop {
            self.permissions.request(next, check_as, privileges);
            let Some(view) = self.catalog.view(next) else { return };
            let [relation] = view.relations.as_slice() else { return };
            check_as = Some(self.catalog.access(AccessSubject::Relation(next)).owner);
            next = relation.oid;
        }
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
        self.permissions.request_call(function, self.checked_role());
    }

    /// Requests that a system catalog may be read.
    pub(in crate::binder) fn request_system(&mut self, name: &str) {
        if self.view.is_none() {
            self.permissions.request_system(name);
        }
    }
}
