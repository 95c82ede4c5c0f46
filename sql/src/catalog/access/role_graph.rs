//! Look-up of roles, and of the roles whose privileges a role has.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ast::RoleAttribute;
use crate::catalog::access::role::{
    BOOTSTRAP_ROLE, DATABASE_OWNER_ROLE, MembershipRecord, RoleRecord, standard_roles,
};
use crate::catalog::{Catalog, CatalogObject};

impl Catalog {
    /// Returns the role of a name.
    pub fn role_named(&self, name: &str) -> Option<&Arc<RoleRecord>> {
        self.roles().find(|role| role.name == name)
    }

    /// Returns whether a role has an attribute; a superuser has all but those that restrict it.
    pub fn role_has(&self, number: u32, attribute: RoleAttribute) -> bool {
        let is_implied = !matches!(attribute, RoleAttribute::Inherit | RoleAttribute::Login);
        self.role(number).is_some_and(|role| {
            role.has(attribute) || is_implied && role.has(RoleAttribute::Superuser)
        })
    }

    /// Returns whether a role is a superuser.
    pub fn is_superuser(&self, number: u32) -> bool {
        self.role_has(number, RoleAttribute::Superuser)
    }

    /// Returns the roles that a role is, itself included: those that it is directly or indirectly
    /// a member of. `inherits`: only those whose privileges it has without SET ROLE.
    pub fn roles_of(&self, number: u32, inherits: bool) -> BTreeSet<u32> {
        let (mut found, mut open) = (BTreeSet::from([number]), vec![number]);
        while let Some(next) = open.pop() {
            let Some(role) = self.role(next) else { continue };
            if inherits && !role.has(RoleAttribute::Inherit) {
                continue;
            }
            // The bootstrap superuser owns the database.
            let of_owner = (next == BOOTSTRAP_ROLE).then_some(DATABASE_OWNER_ROLE);
            let member_of = role.member_of.iter().map(|one| one.role).chain(of_owner);
            open.extend(member_of.filter(|role| found.insert(*role)));
        }
        found
    }

    /// Returns whether a role has the privileges of another one: a superuser has those of all.
    pub fn has_privileges_of(&self, number: u32, other: u32) -> bool {
        number == other || self.is_superuser(number) || self.roles_of(number, true).contains(&other)
    }

    /// Returns whether a role may become another one with SET ROLE.
    pub fn is_member_of(&self, number: u32, other: u32) -> bool {
        number == other
            || self.is_superuser(number)
            || self.roles_of(number, false).contains(&other)
    }

    /// Returns whether a role may grant another one: a superuser, or a member with ADMIN OPTION.
    pub fn is_administrator_of(&self, number: u32, other: u32) -> bool {
        self.is_superuser(number)
            || self.roles_of(number, false).into_iter().any(|one| {
                let member = self.role(one).and_then(|role| role.membership(other));
                member.is_some_and(|member| member.admin_option)
            })
    }

    /// Returns the members of a role, with their memberships.
    pub fn members_of(
        &self,
        number: u32,
    ) -> impl Iterator<Item = (&Arc<RoleRecord>, &MembershipRecord)> {
        self.roles().filter_map(move |role| Some((role, role.membership(number)?)))
    }

    /// Adds the roles that every catalog has.
    pub fn add_standard_roles(&mut self) {
        for role in standard_roles() {
            self.add(CatalogObject::Role(Arc::new(role)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::access::role::READ_ALL_STATS_ROLE;

    /// Returns a catalog of roles with numbers from 1000, each with the roles that it is a member
    /// of, and whether it inherits.
    fn catalog(roles: &[(&[u32], bool)]) -> Catalog {
        let mut catalog = Catalog::default();
        catalog.add_standard_roles();
        for (number, (member_of, inherits)) in (1_000..).zip(roles) {
            let mut role = RoleRecord::new(number, &format!("r{number}"));
            role.set(RoleAttribute::Inherit, *inherits);
            let one = |role: &u32| MembershipRecord { role: *role, ..Default::default() };
            role.member_of = member_of.iter().map(one).collect();
            catalog.add(CatalogObject::Role(Arc::new(role)));
        }
        catalog
    }

    #[test]
    fn privileges_end_at_roles_that_do_not_inherit() {
        let catalog = catalog(&[(&[1_001], true), (&[1_002], false), (&[], true)]);
        assert!(catalog.has_privileges_of(1_000, 1_001));
        assert!(!catalog.has_privileges_of(1_000, 1_002));
        assert!(!catalog.has_privileges_of(1_001, 1_002));
        assert!(catalog.is_member_of(1_000, 1_002));
        assert!(!catalog.is_member_of(1_002, 1_000));
        assert!(catalog.is_member_of(BOOTSTRAP_ROLE, 1_000));
        assert!(!catalog.has_privileges_of(9_999, 1_000));
    }

    #[test]
    fn roles_of_every_catalog_have_distinct_names_and_numbers() {
        let roles = standard_roles();
        let numbers: BTreeSet<u32> = roles.iter().map(|role| role.number).collect();
        let names: BTreeSet<&str> = roles.iter().map(|role| role.name.as_str()).collect();
        assert_eq!((numbers.len(), names.len()), (roles.len(), roles.len()));
        let catalog = catalog(&[]);
        assert!(catalog.is_superuser(BOOTSTRAP_ROLE));
        assert!(catalog.has_privileges_of(BOOTSTRAP_ROLE, DATABASE_OWNER_ROLE));
        assert!(catalog.is_member_of(103, READ_ALL_STATS_ROLE));
    }
}
