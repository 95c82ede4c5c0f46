//! The coprocessors of this crate that ATTACH COPROCESSOR can attach.

mod append_only;

use std::sync::Arc;

use crate::audit::AuditFactory;
use crate::registry::Registry;
use crate::summary::SummaryFactory;
use crate::ttl_by_column::TtlByColumnFactory;
use append_only::AppendOnlyFactory;

/// Returns a registry of them, to which a program may add others.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add(Arc::new(AppendOnlyFactory));
    registry.add(Arc::new(AuditFactory));
    registry.add(Arc::new(SummaryFactory));
    registry.add(Arc::new(TtlByColumnFactory));
    registry
}
