//! Evaluation of a relation's expressions with the privileges of its owner.

use types::expr::EvalContext;
use types::system::CatalogHandle;

use crate::catalog::Catalog;
use crate::catalog::access::object_access::AccessSubject;

/// Returns a context in which functions are executed as the owner of a relation. The server
/// evaluates the expressions of an index in it when it builds, checks, follows or analyses the
/// index: a function of the owner must not act with the privileges of a superuser, or of the
/// server, that maintains the table.
pub fn as_owner(context: &EvalContext, catalog: &Catalog, relation: u32) -> EvalContext {
    let owner = catalog.access(AccessSubject::Relation(relation)).owner;
    let mut context = context.clone();
    let system = context.style.system.0.take();
    // Without a role, functions are not executed: not with the privileges of another one.
    context.style.system = CatalogHandle(system.and_then(|system| system.as_role(owner)));
    context
}
