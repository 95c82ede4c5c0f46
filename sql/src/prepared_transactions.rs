//! Prepared transactions by identifier: PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.
//!
//! The encoded transaction ([`store::transaction::PreparedTransaction::encode`]) is stored in
//! catalog rows under [`PREPARED_PREFIX`], durable before the client gets its reply; COMMIT
//! PREPARED deletes them in the same commit. When an engine is opened, prepared transactions are
//! recovered with their locks before any client connects. Format:
//! `docs/formats/prepared-transaction.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use store::codec::tagged::UnknownFields;
use store::transaction::{PreparedTransaction, TransactionOptions};
use store::wal::DurableTicket;
use store::{CellBatch, Mutation, Scan, Store, Transaction};

use crate::catalog::database::DEFAULT_DATABASE;
use crate::catalog::name::BOOTSTRAP_ROLE;
use crate::catalog::record::{CATALOG_TABLE, PREPARED_PREFIX, decode, encode};
use crate::error::{Error, Result};

/// `max_prepared_transactions`: maximum number of prepared transactions.
pub const PREPARED_MAX: usize = 64;
/// Maximum length of an identifier in bytes.
const IDENTIFIER_BYTES_MAX: usize = 200;
/// Bytes of the record in one catalog row.
const CHUNK_BYTES: usize = 256 << 10;

/// Stored form of a prepared transaction.
#[derive(Debug)]
struct PreparedRecord {
    gid: String,
    prepared_micros: i64,
    transaction: Vec<u8>,
    /// Number of the database; `None`: the default one.
    database: Option<u32>,
    /// Number of the role that prepared it; `None`: the bootstrap superuser.
    owner: Option<u32>,
    unknown: UnknownFields,
}

// Field 2 was the name of the role; an unknown field now.
store::tagged_fields!(PreparedRecord {
    1 gid, 3 prepared_micros, 4 transaction, 5 database, 6 owner,
} unknown);

/// Catalog rows of a stored record, and their concatenated values.
#[derive(Default)]
struct StoredChunks {
    rows: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

/// A prepared transaction.
struct PreparedEntry {
    owner: u32,
    database: u32,
    /// Time of PREPARE TRANSACTION, in microseconds of the Unix epoch.
    prepared_micros: i64,
    transaction: PreparedTransaction,
    /// Keys of its catalog rows.
    rows: Vec<Vec<u8>>,
}

/// A row of `pg_prepared_xacts`.
pub struct PreparedTransactionRow {
    /// Number of the transaction.
    pub transaction: u64,
    /// Identifier.
    pub gid: String,
    /// Time of PREPARE TRANSACTION, in microseconds of the Unix epoch.
    pub prepared_micros: i64,
    /// Number of the role that prepared it.
    pub owner: u32,
    /// Number of its database.
    pub database: u32,
}

/// Prepared transactions of all databases.
pub struct PreparedTransactions {
    store: Arc<Store>,
    /// Entries by identifier; `None` while a session prepares or ends the transaction.
    by_gid: Mutex<BTreeMap<String, Option<Arc<PreparedEntry>>>>,
}

/// Returns whether the transactions that a role has prepared may be ended.
type MayEnd<'a> = &'a dyn Fn(u32) -> bool;

/// Exclusive right to prepare or end the transaction of an identifier. Dropping it restores the
/// previous entry.
struct GidClaim<'a> {
    all: &'a PreparedTransactions,
    gid: &'a str,
    before: Option<Arc<PreparedEntry>>,
}

impl Drop for GidClaim<'_> {
    fn drop(&mut self) {
        let mut by_gid = self.all.by_gid.lock();
        match self.before.take() {
            Some(prepared) => drop(by_gid.insert(self.gid.to_owned(), Some(prepared))),
            None => drop(by_gid.remove(self.gid)),
        }
    }
}

impl PreparedTransactions {
    /// Recovers the prepared transactions of a store, with their locks.
    ///
    /// # Errors
    ///
    /// XX001 if one cannot be read; errors of the store.
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
                err!(DATA_CORRUPTED: "could not restore prepared transaction \"{gid}\": {error}")
            })?;
            let PreparedRecord { gid, owner, prepared_micros, database, .. } = record;
            tracing::info!(%gid, "restored a prepared transaction");
            let database = database.unwrap_or(DEFAULT_DATABASE);
            let owner = owner.unwrap_or(BOOTSTRAP_ROLE);
            let prepared = PreparedEntry { owner, database, prepared_micros, transaction, rows };
            by_gid.insert(gid, Some(Arc::new(prepared)));
        }
        let by_gid = Mutex::new(by_gid);
        Ok(PreparedTransactions { store: Arc::clone(store), by_gid })
    }

    /// Prepares a transaction. The client gets its reply when the ticket is ready.
    ///
    /// # Errors
    ///
    /// 22023, 42710, 53200; errors of the store. The caller must then roll the transaction back.
    pub(crate) fn prepare(
        &self,
        gid: &str,
        (owner, database): (u32, u32),
        transaction: &Transaction,
    ) -> Result<DurableTicket> {
        let mut claim = self.claim_new(gid)?;
        let prepared_micros = self.store.now_micros();
        let transaction = transaction.prepare()?;
        let kept = transaction.encode().map_err(Error::from).and_then(|bytes| {
            self.keep(&PreparedRecord {
                gid: gid.to_owned(),
                owner: Some(owner),
                prepared_micros,
                transaction: bytes,
                database: (database != DEFAULT_DATABASE).then_some(database),
                unknown: Default::default(),
            })
        });
        let (rows, ticket) = kept.inspect_err(|_| transaction.rollback())?;
        let prepared = PreparedEntry { owner, database, prepared_micros, transaction, rows };
        claim.before = Some(Arc::new(prepared));
        Ok(ticket)
    }

    fn claim_new<'a>(&'a self, gid: &'a str) -> Result<GidClaim<'a>> {
        if gid.len() >= IDENTIFIER_BYTES_MAX {
            bail!(INVALID_PARAMETER_VALUE: "transaction identifier \"{gid}\" is too long");
        }
        let mut by_gid = self.by_gid.lock();
        if by_gid.contains_key(gid) {
            bail!(DUPLICATE_OBJECT: "transaction identifier \"{gid}\" is already in use");
        }
        if by_gid.len() >= PREPARED_MAX {
            bail!(OUT_OF_MEMORY: "maximum number of prepared transactions reached";
                hint "Commit or roll back transactions in pg_prepared_xacts. The maximum is {PREPARED_MAX}.");
        }
        by_gid.insert(gid.to_owned(), None);
        Ok(GidClaim { all: self, gid, before: None })
    }

    /// Writes the catalog rows of a prepared transaction; returns their keys.
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

    /// Claims a prepared transaction of a database in order to end it; `may_end` returns whether
    /// the transactions of a role may be ended.
    fn claim<'a>(
        &'a self,
        gid: &'a str,
        (database, may_end): (u32, MayEnd<'_>),
    ) -> Result<GidClaim<'a>> {
        match self.by_gid.lock().get_mut(gid) {
            Some(Some(prepared)) if !may_end(prepared.owner) => {
                bail!(INSUFFICIENT_PRIVILEGE: "permission denied to finish prepared transaction";
                    hint "Must be superuser or the user that prepared the transaction.")
            }
            Some(Some(prepared)) if prepared.database != database => {
                bail!(FEATURE_NOT_SUPPORTED: "prepared transaction belongs to another database";
                    hint "Connect to the database where the transaction was prepared to finish it.")
            }
            None => {
                bail!(UNDEFINED_OBJECT: "prepared transaction with identifier \"{gid}\" does not exist")
            }
            Some(slot) => match slot.take() {
                Some(prepared) => Ok(GidClaim { all: self, gid, before: Some(prepared) }),
                None => {
                    bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "prepared transaction with identifier \"{gid}\" is busy")
                }
            },
        }
    }

    /// Commits a prepared transaction. The client gets its reply when the ticket is ready.
    ///
    /// # Errors
    ///
    /// 42704, 55000, 42501, 0A000; errors of the store: the transaction then remains prepared.
    pub(crate) fn commit(&self, gid: &str, by: (u32, MayEnd<'_>)) -> Result<Option<DurableTicket>> {
        let mut claim = self.claim(gid, by)?;
        let Some(prepared) = &claim.before else { return Ok(None) };
        let commit = prepared.transaction.commit((CATALOG_TABLE, prepared.rows.clone()))?;
        claim.before = None;
        Ok(Some(commit.durable))
    }

    /// Rolls a prepared transaction back.
    ///
    /// # Errors
    ///
    /// 42704, 55000, 42501, 0A000; errors of the store: the transaction then remains prepared, or
    /// is again after a restart.
    pub(crate) fn rollback(&self, gid: &str, by: (u32, MayEnd<'_>)) -> Result<()> {
        let mut claim = self.claim(gid, by)?;
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

    /// Returns all prepared transactions, by identifier.
    pub fn all(&self) -> Vec<PreparedTransactionRow> {
        let by_gid = self.by_gid.lock();
        let all = by_gid.iter().filter_map(|(gid, prepared)| Some((gid, prepared.as_ref()?)));
        let shown = |(gid, prepared): (&String, &Arc<PreparedEntry>)| PreparedTransactionRow {
            transaction: prepared.transaction.id(),
            gid: gid.clone(),
            prepared_micros: prepared.prepared_micros,
            owner: prepared.owner,
            database: prepared.database,
        };
        all.map(shown).collect()
    }
}
