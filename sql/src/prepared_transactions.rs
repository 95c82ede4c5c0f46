//! Prepared transactions by their identifiers: what PREPARE TRANSACTION leaves for COMMIT PREPARED.
//!
//! The bytes of one ([`store::transaction::PreparedTransaction::encode`]) are rows of the catalog
//! under [`PREPARED_PREFIX`], written and durable before the client is told; the end deletes them
//! in its own commit. When an engine is opened they are made again, with their locks, before any
//! client. Byte by byte: `docs/formats/prepared-transaction.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use store::transaction::{PreparedTransaction, TransactionOptions};
use store::wal::DurableTicket;
use store::{CellBatch, Mutation, Scan, Store, Transaction};

use crate::catalog::record::{CATALOG_TABLE, decode, encode};
use crate::error::{Error, Result, sqlstate};

/// `max_prepared_transactions`: how many there may be at a time.
pub const PREPARED_MAX: usize = 64;
/// What the keys of prepared transactions in the catalog begin with.
pub const PREPARED_PREFIX: &[u8] = b"p";
/// Bytes of an identifier, less one.
const IDENTIFIER_BYTES_MAX: usize = 200;
/// Bytes of a row of the catalog.
const CHUNK_BYTES: usize = 256 << 10;

/// A prepared transaction, as it is stored.
#[derive(Debug, bincode::Encode, bincode::Decode)]
struct PreparedRecord {
    gid: String,
    owner: String,
    prepared_micros: i64,
    transaction: Vec<u8>,
}

/// The rows of a stored record, and what they hold together.
#[derive(Default)]
struct StoredChunks {
    rows: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

/// A prepared transaction.
struct Prepared {
    owner: String,
    /// Since 1970.
    prepared_micros: i64,
    transaction: PreparedTransaction,
    /// The rows that keep it.
    rows: Vec<Vec<u8>>,
}

/// What `pg_prepared_xacts` shows of one.
pub struct ShownPrepared {
    /// The number of the transaction.
    pub transaction: u64,
    /// Its identifier.
    pub gid: String,
    /// When it was prepared: microseconds since 1970.
    pub prepared_micros: i64,
    /// Who prepared it.
    pub owner: String,
}

/// All prepared transactions of a database.
pub struct PreparedTransactions {
    store: Arc<Store>,
    /// `None` while somebody prepares or ends it.
    by_gid: Mutex<BTreeMap<String, Option<Arc<Prepared>>>>,
}

/// The right to prepare or end a transaction with an identifier. Dropped, the identifier is as it
/// was before.
struct Claim<'a> {
    all: &'a PreparedTransactions,
    gid: &'a str,
    before: Option<Arc<Prepared>>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut by_gid = self.all.by_gid.lock();
        match self.before.take() {
            Some(prepared) => drop(by_gid.insert(self.gid.to_owned(), Some(prepared))),
            None => drop(by_gid.remove(self.gid)),
        }
    }
}

impl PreparedTransactions {
    /// Returns those of a store, with their locks.
    ///
    /// # Errors
    ///
    /// XX001 if one cannot be read; what the store reports.
    pub(crate) fn recover(store: &Arc<Store>) -> Result<PreparedTransactions> {
        let mut records: BTreeMap<Vec<u8>, StoredChunks> = BTreeMap::new();
        let reader = store.begin(TransactionOptions::default());
        reader.begin_statement();
        let end = types::keycode::prefix_end(PREPARED_PREFIX);
        let mut scanner = reader.scan(CATALOG_TABLE, Scan::range(PREPARED_PREFIX.to_vec(), end))?;
        let mut batch = CellBatch::new();
        while scanner.next_batch(16, &mut batch)? {
            for row in batch.rows() {
                let gid = row.key().get(..row.key().len() - 4).unwrap_or_default().to_vec();
                let stored = records.entry(gid).or_default();
                stored.rows.push(row.key().to_vec());
                stored.bytes.extend_from_slice(row.value(0, b"").unwrap_or_default());
            }
        }
        let mut by_gid = BTreeMap::new();
        for StoredChunks { rows, bytes } in records.into_values() {
            let record: PreparedRecord = decode(&bytes)?;
            let transaction = store.recover_prepared(&record.transaction).map_err(|error| {
                let gid = &record.gid;
                Error::new(
                    sqlstate::DATA_CORRUPTED,
                    format!("could not restore prepared transaction \"{gid}\": {error}"),
                )
            })?;
            let PreparedRecord { gid, owner, prepared_micros, .. } = record;
            tracing::info!(%gid, "restored a prepared transaction");
            let prepared = Prepared { owner, prepared_micros, transaction, rows };
            by_gid.insert(gid, Some(Arc::new(prepared)));
        }
        let by_gid = Mutex::new(by_gid);
        Ok(PreparedTransactions { store: Arc::clone(store), by_gid })
    }

    /// Prepares a transaction. The client is told when the ticket is ready.
    ///
    /// # Errors
    ///
    /// 22023, 42710, 53200; what the store reports. The transaction is to be rolled back then.
    pub(crate) fn prepare(
        &self,
        gid: &str,
        owner: &str,
        transaction: &Transaction,
    ) -> Result<DurableTicket> {
        let mut claim = self.claim_new(gid)?;
        let prepared_micros = self.store.now_micros();
        let transaction = transaction.prepare()?;
        let kept = transaction.encode().map_err(Error::from).and_then(|bytes| {
            let (gid, owner) = (gid.to_owned(), owner.to_owned());
            self.keep(&PreparedRecord { gid, owner, prepared_micros, transaction: bytes })
        });
        let (rows, ticket) = kept.inspect_err(|_| transaction.rollback())?;
        let owner = owner.to_owned();
        claim.before = Some(Arc::new(Prepared { owner, prepared_micros, transaction, rows }));
        Ok(ticket)
    }

    fn claim_new<'a>(&'a self, gid: &'a str) -> Result<Claim<'a>> {
        if gid.len() >= IDENTIFIER_BYTES_MAX {
            let message = format!("transaction identifier \"{gid}\" is too long");
            return Err(Error::new(sqlstate::INVALID_PARAMETER_VALUE, message));
        }
        let mut by_gid = self.by_gid.lock();
        if by_gid.contains_key(gid) {
            let message = format!("transaction identifier \"{gid}\" is already in use");
            return Err(Error::new(sqlstate::DUPLICATE_OBJECT, message));
        }
        if by_gid.len() >= PREPARED_MAX {
            let message = "maximum number of prepared transactions reached";
            return Err(Error::new(sqlstate::OUT_OF_MEMORY, message).with_hint(format!(
                "Commit or roll back those in pg_prepared_xacts: there may be {PREPARED_MAX}."
            )));
        }
        by_gid.insert(gid.to_owned(), None);
        Ok(Claim { all: self, gid, before: None })
    }

    /// Writes the rows of a prepared transaction; returns their keys.
    fn keep(&self, record: &PreparedRecord) -> Result<(Vec<Vec<u8>>, DurableTicket)> {
        let bytes = encode(record);
        let key = |chunk: u32| {
            let number = chunk.to_be_bytes();
            [PREPARED_PREFIX, record.gid.as_bytes(), b"\0", &number].concat()
        };
        let chunks = (0..).zip(bytes.chunks(CHUNK_BYTES));
        let rows: Vec<Mutation> = chunks
            .map(|(number, chunk)| Mutation::new(key(number)).put(0, Vec::new(), chunk.to_vec()))
            .collect();
        let keys = rows.iter().map(|row| row.row.clone()).collect();
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        transaction.mutate(CATALOG_TABLE, rows)?;
        Ok((keys, transaction.commit()?.durable))
    }

    /// Takes a prepared transaction to end it.
    fn claim<'a>(&'a self, gid: &'a str) -> Result<Claim<'a>> {
        match self.by_gid.lock().get_mut(gid) {
            None => {
                let message =
                    format!("prepared transaction with identifier \"{gid}\" does not exist");
                Err(Error::new(sqlstate::UNDEFINED_OBJECT, message))
            }
            Some(slot) => match slot.take() {
                Some(prepared) => Ok(Claim { all: self, gid, before: Some(prepared) }),
                None => {
                    let message = format!("prepared transaction with identifier \"{gid}\" is busy");
                    Err(Error::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
                }
            },
        }
    }

    /// Commits a prepared transaction. The client is told when the ticket is ready.
    ///
    /// # Errors
    ///
    /// 42704, 55000; what the store reports: it is still prepared then.
    pub(crate) fn commit(&self, gid: &str) -> Result<Option<DurableTicket>> {
        let mut claim = self.claim(gid)?;
        let Some(prepared) = &claim.before else { return Ok(None) };
        let commit = prepared.transaction.commit((CATALOG_TABLE, prepared.rows.clone()))?;
        claim.before = None;
        Ok(Some(commit.durable))
    }

    /// Rolls a prepared transaction back.
    ///
    /// # Errors
    ///
    /// 42704, 55000; what the store reports: it is still prepared then, or after a restart.
    pub(crate) fn rollback(&self, gid: &str) -> Result<()> {
        let mut claim = self.claim(gid)?;
        let Some(prepared) = &claim.before else { return Ok(()) };
        let rows = prepared.rows.iter().map(|row| Mutation::new(row.clone()).delete_row());
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        transaction.mutate(CATALOG_TABLE, rows.collect())?;
        transaction.commit()?.durable.wait()?;
        prepared.transaction.rollback();
        claim.before = None;
        Ok(())
    }

    /// Returns those that are prepared, by identifier.
    pub fn shown(&self) -> Vec<ShownPrepared> {
        let by_gid = self.by_gid.lock();
        let all = by_gid.iter().filter_map(|(gid, prepared)| Some((gid, prepared.as_ref()?)));
        let shown = |(gid, prepared): (&String, &Arc<Prepared>)| ShownPrepared {
            transaction: prepared.transaction.id(),
            gid: gid.clone(),
            prepared_micros: prepared.prepared_micros,
            owner: prepared.owner.clone(),
        };
        all.map(shown).collect()
    }
}
