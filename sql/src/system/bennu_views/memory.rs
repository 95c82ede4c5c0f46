//! View `bennu.memory`: bytes and limits in the memory account of the server, its components and
//! sessions.

use store::memory;
use store::memory::AccountId;
use types::DataType;

use crate::error::Result;
use crate::system::SystemContext;
use crate::system::bennu_views::{SystemView, SystemViewColumn, ViewValue, system_view};

system_view! {
    MEMORY: "memory", "Memory account of the server, its components and sessions", memory => |holder| {
        component Text = holder.component, "Component: `total`, `server`, `session` and so on";
        session Int8 = holder.session, "Process id of a session";
        bytes Int8 = holder.bytes, "Bytes in use";
        limit_bytes Int8 = holder.limit, "Limit; NULL: none of its own";
        statement Text = holder.statement, "Running statement of a session";
    }
}

/// Holder of memory.
struct MemoryHolder {
    component: &'static str,
    session: Option<i32>,
    bytes: u64,
    limit: Option<u64>,
    statement: Option<String>,
}

/// Returns the total, the components of the server, and the sessions.
fn memory(source: &SystemContext) -> Result<Vec<MemoryHolder>> {
    let store = source.engine.store();
    let (status, cache) = (store.status(), store.cache());
    let row = |component, bytes, limit| MemoryHolder {
        component,
        session: None,
        bytes,
        limit,
        statement: None,
    };
    let mut rows = vec![
        row("total", memory::total_bytes() as u64, memory::limit().map(|limit| limit as u64)),
        row("server", AccountId::SERVER.byte_count() as u64, None),
        row("block cache", cache.byte_count, Some(cache.capacity_bytes)),
        row("memstores", status.memstore_bytes, Some(status.memstore_limit_bytes)),
        row("transactions", status.transaction_bytes, None),
        row("read-ahead", status.read_ahead_bytes, None),
    ];
    for session in source.engine.sessions.all() {
        let statement = session.now().statement.filter(|_| session.is_active());
        rows.push(MemoryHolder {
            session: Some(session.session),
            statement: statement.map(|(statement, _)| statement.as_str().to_owned()),
            ..row("session", session.account().byte_count() as u64, None)
        });
    }
    Ok(rows)
}
