//! Quotas: rate limits of a table or a role, for requests and bytes per second.
//!
//! # Token buckets
//!
//! Each limit is a bucket that fills at its rate and holds one second's worth: the burst. It
//! starts full.
//!
//! * A request takes a token when it begins; without one it is rejected.
//! * Bytes are known only afterwards. A request may begin while the bucket holds any tokens, runs
//!   to its end, and is charged for all bytes that it reads or writes; the bucket may go into
//!   debt. The debt is at most [`DEBT_SECONDS`] seconds' worth, so that one large statement does
//!   not block others for longer.
//!
//! A rejection states the time at which the bucket will have enough tokens, if there are no other
//! requests.
//!
//! # Requests
//!
//! A statement is one request of each table that it reads or writes, and of its role, regardless
//! of the number of gets and scans; it is rejected before it accesses that table. Only statements
//! for which [`begin_request`](crate::Transaction::begin_request) was called are subject to
//! quotas: internal statements of the server are not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::env::Env;
use crate::error::{Error, Result};

/// Maximal debt of a bucket, in seconds of its limit.
pub const DEBT_SECONDS: u64 = 10;
/// Units per token, so that a microsecond of any limit is a whole number of them.
const TOKEN: i128 = 1_000_000;

/// The limits of a quota; `None`: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Requests per second.
    pub requests: Option<u64>,
    /// Bytes read per second.
    pub read_bytes: Option<u64>,
    /// Bytes written per second.
    pub write_bytes: Option<u64>,
}

crate::tagged_fields!(QuotaLimits { 1 requests, 2 read_bytes, 3 write_bytes });

/// Kind of limit of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaKind {
    /// Requests per second.
    Requests = 0,
    /// Bytes read per second.
    ReadBytes = 1,
    /// Bytes written per second.
    WriteBytes = 2,
}

impl QuotaKind {
    /// All of them.
    pub const ALL: [QuotaKind; 3] =
        [QuotaKind::Requests, QuotaKind::ReadBytes, QuotaKind::WriteBytes];

    /// Returns the name of the setting.
    pub const fn name(self) -> &'static str {
        match self {
            QuotaKind::Requests => "max_requests_per_second",
            QuotaKind::ReadBytes => "max_read_bytes_per_second",
            QuotaKind::WriteBytes => "max_write_bytes_per_second",
        }
    }
}

impl QuotaLimits {
    /// Returns a limit.
    pub fn get(&self, kind: QuotaKind) -> Option<u64> {
        match kind {
            QuotaKind::Requests => self.requests,
            QuotaKind::ReadBytes => self.read_bytes,
            QuotaKind::WriteBytes => self.write_bytes,
        }
    }

    /// Sets a limit.
    pub fn set(&mut self, kind: QuotaKind, per_second: Option<u64>) {
        *match kind {
            QuotaKind::Requests => &mut self.requests,
            QuotaKind::ReadBytes => &mut self.read_bytes,
            QuotaKind::WriteBytes => &mut self.write_bytes,
        } = per_second;
    }
}

/// A quota with its buckets, shared by all requests that it counts.
pub struct Quota {
    subject: String,
    limits: QuotaLimits,
    buckets: [Option<Mutex<Bucket>>; 3],
    refused: [AtomicU64; 3],
}

/// State of one limit, for system views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaStatus {
    /// The kind of limit.
    pub kind: QuotaKind,
    /// The limit per second, which is also the burst.
    pub per_second: u64,
    /// Available tokens; negative: debt.
    pub available: i64,
    /// Number of requests rejected by it since the quota was set or the server was started.
    pub refused: u64,
}

/// Kind of access of a request to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// The quotas that a request is charged to.
pub(crate) type Charged = SmallVec<[Arc<Quota>; 3]>;

/// Charges quotas for bytes that were read or written.
pub(crate) fn charge(charged: &Charged, access: Access, bytes: u64, env: &dyn Env) {
    if !charged.is_empty() {
        let now = env.now_micros();
        charged.iter().for_each(|quota| quota.charge(access, bytes, now));
    }
}

impl Quota {
    /// Returns a quota with full buckets. `subject` names its table or role in messages.
    pub fn new(subject: impl Into<String>, limits: QuotaLimits) -> Quota {
        let bucket = |kind| limits.get(kind).map(|limit| Mutex::new(Bucket::new(limit)));
        Quota {
            subject: subject.into(),
            limits,
            buckets: QuotaKind::ALL.map(bucket),
            refused: Default::default(),
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> QuotaLimits {
        self.limits
    }

    /// Returns the state of its limits.
    pub fn status(&self, now_micros: i64) -> Vec<QuotaStatus> {
        let status = |kind: QuotaKind| {
            let mut bucket = self.buckets[kind as usize].as_ref()?.lock();
            bucket.fill(now_micros);
            Some(QuotaStatus {
                kind,
                per_second: bucket.per_second,
                available: i64::try_from(bucket.level.div_euclid(TOKEN)).unwrap_or(i64::MAX),
                refused: self.refused[kind as usize].load(Ordering::Relaxed),
            })
        };
        QuotaKind::ALL.into_iter().filter_map(status).collect()
    }

    /// Admits a request for an access. Only its first one counts as a request.
    ///
    /// # Errors
    ///
    /// [`Error::QuotaExceeded`].
    pub(crate) fn admit(&self, access: Access, is_first: bool, now_micros: i64) -> Result<()> {
        let bytes = match access {
            Access::Read => QuotaKind::ReadBytes,
            Access::Write => QuotaKind::WriteBytes,
        };
        // Bytes first: a rejected request takes no token.
        self.check(bytes, now_micros, |bucket| bucket.look())?;
        if is_first {
            self.check(QuotaKind::Requests, now_micros, Bucket::take)?;
        }
        Ok(())
    }

    fn check(
        &self,
        kind: QuotaKind,
        now_micros: i64,
        check: impl FnOnce(&mut Bucket) -> std::result::Result<(), Duration>,
    ) -> Result<()> {
        let Some(bucket) = &self.buckets[kind as usize] else { return Ok(()) };
        let mut bucket = bucket.lock();
        bucket.fill(now_micros);
        check(&mut bucket).map_err(|retry_after| {
            self.refused[kind as usize].fetch_add(1, Ordering::Relaxed);
            Error::QuotaExceeded {
                subject: self.subject.clone(),
                quota: kind.name(),
                per_second: bucket.per_second,
                retry_after,
            }
        })
    }

    /// Charges bytes that were read or written.
    pub(crate) fn charge(&self, access: Access, bytes: u64, now_micros: i64) {
        let kind = match access {
            Access::Read => QuotaKind::ReadBytes,
            Access::Write => QuotaKind::WriteBytes,
        };
        if let Some(bucket) = &self.buckets[kind as usize] {
            let mut bucket = bucket.lock();
            bucket.fill(now_micros);
            bucket.charge(bytes);
        }
    }
}

/// A bucket of tokens.
#[derive(Debug)]
struct Bucket {
    per_second: u64,
    /// In units of a token; below zero: debt.
    level: i128,
    at_micros: Option<i64>,
}

impl Bucket {
    fn new(per_second: u64) -> Bucket {
        let mut bucket = Bucket { per_second, level: 0, at_micros: None };
        bucket.level = bucket.capacity();
        bucket
    }

    fn capacity(&self) -> i128 {
        i128::from(self.per_second) * TOKEN
    }

    /// Adds the tokens since the last call. A clock that was set back adds none.
    fn fill(&mut self, now_micros: i64) {
        let passed = now_micros.saturating_sub(self.at_micros.unwrap_or(now_micros)).max(0);
        self.at_micros = Some(now_micros);
        let new = i128::from(self.per_second) * i128::from(passed);
        self.level = (self.level + new).min(self.capacity());
        self.check();
    }

    /// Asserts, in debug builds, that burst and debt are bounded.
    fn check(&self) {
        let most = i128::from(DEBT_SECONDS) * self.capacity();
        debug_assert!(self.level <= self.capacity(), "more than one second's worth");
        debug_assert!(self.level >= -most, "more debt than {DEBT_SECONDS} seconds' worth");
    }

    /// Takes a token; otherwise returns the time until there is one.
    fn take(&mut self) -> std::result::Result<(), Duration> {
        self.wait_for(TOKEN)?;
        self.level -= TOKEN;
        self.check();
        Ok(())
    }

    /// Returns the time until there are any tokens, if there are none.
    fn look(&self) -> std::result::Result<(), Duration> {
        self.wait_for(1)
    }

    fn wait_for(&self, level: i128) -> std::result::Result<(), Duration> {
        let lacking = level - self.level;
        if lacking <= 0 {
            return Ok(());
        }
        let rate = i128::from(self.per_second.max(1));
        let micros = (lacking + rate - 1) / rate;
        Err(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
    }

    fn charge(&mut self, tokens: u64) {
        let most = -i128::from(DEBT_SECONDS) * self.capacity();
        self.level = (self.level - i128::from(tokens) * TOKEN).max(most);
        self.check();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(requests: u64, bytes: u64) -> QuotaLimits {
        QuotaLimits { requests: Some(requests), read_bytes: Some(bytes), write_bytes: None }
    }

    fn refusal(result: Result<()>) -> (&'static str, Duration) {
        match result {
            Err(Error::QuotaExceeded { quota, retry_after, .. }) => (quota, retry_after),
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn request_quota_allows_one_second_burst() {
        let quota = Quota::new("t", limits(10, 100));
        let request = |now| quota.admit(Access::Read, true, now);
        (0..10).for_each(|_| request(5).unwrap());
        let (name, after) = refusal(request(5));
        assert_eq!((name, after), ("max_requests_per_second", Duration::from_millis(100)));
        assert_eq!(refusal(request(60_005)).1, Duration::from_millis(40));
        request(100_005).unwrap();
        assert!(request(100_005).is_err());
        quota.admit(Access::Read, false, 100_005).unwrap();
        let refused: Vec<u64> = quota.status(100_005).iter().map(|s| s.refused).collect();
        assert_eq!(refused, [3, 0]);
    }

    #[test]
    fn byte_quota_debt_delays_later_requests() {
        let quota = Quota::new("t", limits(1_000, 100));
        let read = |now| quota.admit(Access::Read, true, now);
        read(0).unwrap();
        quota.charge(Access::Read, 350, 0);
        let (name, after) = refusal(read(0));
        assert_eq!(name, "max_read_bytes_per_second");
        assert_eq!(after, Duration::from_micros(2_500_001), "two and a half seconds' worth");
        quota.admit(Access::Write, true, 0).unwrap();
        read(2_500_001).unwrap();
        quota.charge(Access::Read, u64::MAX, 2_500_001);
        let most = Duration::from_secs(DEBT_SECONDS) + Duration::from_micros(1);
        assert_eq!(refusal(read(2_500_001)).1, most);
        assert_eq!(quota.status(2_500_001)[1].available, -1_000);
        assert!(read(0).is_err(), "a clock that was set back gives nothing");
    }

    proptest! {
        /// Between any two moments at most the burst and the accrued tokens are granted; and a
        /// single requester that waits for the returned time is granted its tokens.
        #[test]
        fn bucket_grants_at_most_rate_and_honours_retry_time(
            per_second in 1u64..1_000_000,
            steps in prop::collection::vec((0i64..3_000_000, any::<bool>()), 1..100),
        ) {
            let mut bucket = Bucket::new(per_second);
            let mut now = 0;
            let mut given: Vec<i64> = Vec::new();
            bucket.fill(now);
            for (passed, obeys) in steps {
                now += passed;
                bucket.fill(now);
                match bucket.take() {
                    Ok(()) => given.push(now),
                    Err(after) if obeys => {
                        let micros = after.as_micros() as i64;
                        prop_assert!(micros > 0 && micros <= 1_000_000);
                        bucket.fill(now + micros - 1);
                        prop_assert!(bucket.take().is_err(), "it was to be had earlier");
                        now += micros;
                        bucket.fill(now);
                        prop_assert!(bucket.take().is_ok(), "it was not to be had when told");
                        given.push(now);
                    }
                    Err(_) => {}
                }
                prop_assert!(bucket.level >= 0 && bucket.level <= bucket.capacity());
            }
            for (first, from) in given.iter().enumerate() {
                for (last, to) in given.iter().enumerate().skip(first) {
                    let count = (last - first + 1) as i128 * TOKEN;
                    let come = i128::from(per_second) * i128::from(to - from);
                    prop_assert!(count <= bucket.capacity() + come);
                }
            }
        }

        /// The debt is bounded regardless of the charges, and is paid off at the returned time.
        #[test]
        fn quota_debt_is_bounded(
            per_second in 1u64..1 << 40,
            charges in prop::collection::vec((any::<u64>(), 0i64..2_000_000), 1..50),
        ) {
            let mut bucket = Bucket::new(per_second);
            let mut now = 0;
            bucket.fill(now);
            for (bytes, passed) in charges {
                bucket.charge(bytes);
                let most = Duration::from_secs(DEBT_SECONDS) + Duration::from_micros(1);
                if let Err(after) = bucket.look() {
                    prop_assert!(after <= most);
                    now += after.as_micros() as i64;
                    bucket.fill(now);
                    prop_assert!(bucket.look().is_ok());
                }
                now += passed;
                bucket.fill(now);
            }
        }
    }
}
