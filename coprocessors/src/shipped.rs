//! The coprocessors of this crate that ATTACH COPROCESSOR knows.

use std::sync::Arc;

use crate::audit::AuditFactory;
use crate::registry::Registry;
use crate::summary::SummaryFactory;
use crate::ttl_by_column::TtlByColumnFactory;

/// Returns a registry of them, to which a program may add its own.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add(Arc::new(AuditFactory));
    registry.add(Arc::new(SummaryFactory));
    registry.add(Arc::new(TtlByColumnFactory));
    registry
}
