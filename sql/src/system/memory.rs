//! View `bennu.memory`: bytes and limits in the memory account of the server, its components and
//! sessions.

use store::memory;
use store::memory::AccountId;
use types::{DataType, Datum};

use crate::error::Result;
use crate::system::{Row, SystemContext, SystemView, int8, text};

pub(super) const VIEW: SystemView = SystemView {
    name: "memory",
    columns: &[
        ("component", DataType::Text),
        ("session", DataType::Int8),
        ("bytes", DataType::Int8),
        ("limit_bytes", DataType::Int8),
        ("statement", DataType::Text),
    ],
    rows,
};

/// Returns a row for the total, one for each component of the server, and one for each session.
fn rows(source: &SystemContext) -> Result<Vec<Row>> {
    let store = source.engine.store();
    let (status, cache) = (store.status(), store.cache());
    let row = |holder: &str, bytes: u64, limit: Option<u64>| {
        vec![text(holder), Datum::Null, int8(bytes), limit.map_or(Datum::Null, int8), Datum::Null]
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
        let statement = statement.map_or(Datum::Null, |(statement, _)| text(statement.as_str()));
        let bytes = session.account().byte_count();
        let number = Datum::Int8(session.session.into());
        rows.push(vec![text("session"), number, int8(bytes), Datum::Null, statement]);
    }
    Ok(rows)
}
