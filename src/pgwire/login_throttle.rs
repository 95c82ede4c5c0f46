//! Login throttle: startup slots of connecting clients, and the delay after failed logins.
//!
//! Two limits, one for connections that say nothing and one for guessed passwords:
//!
//! * A client that has not yet logged in holds a [`StartupSlot`]. There are [`SLOTS_MAX`] slots, or
//!   as many as the process has file descriptors for. An address has half of them at most, and at
//!   most [`SLOTS_AFTER_FAILURE_MAX`] once a login from it has failed. A client that finds no free
//!   slot takes over the oldest one, of its own address if that is at its limit, so that
//!   connections that send nothing do not lock others out.
//! * After the nth failure in a row a password is checked 250 ms · 2^(n-1) after that failure at
//!   the earliest. Failures count for the pair of address and user name, with a delay of at most
//!   [`USER_DELAY_MAX`], and for the address, with at most [`ADDRESS_DELAY_MAX`], because a guesser
//!   may vary the name. Attempts wait in parallel: a right password is accepted after
//!   [`USER_DELAY_MAX`] however many other guesses fail, and other users of the address wait
//!   [`ADDRESS_DELAY_MAX`] at most. A waiting client holds no thread.
//!
//! So an address can try at most `SLOTS_AFTER_FAILURE_MAX / ADDRESS_DELAY_MAX` passwords a second.
//! A right password resets the failures of its user and address, and so does a quarter of an hour
//! without a failure.
//!
//! An IPv6 address counts by its first 64 bits, which belong to one site.
//!
//! # Invariants
//!
//! 1. No more than [`ORIGINS_MAX`] origins of failures are remembered; the one whose last failure
//!    is the oldest is dropped for another.
//! 2. `slots_by_address` counts the slots of each address and has no entry of zero.
//!
//! `Logins::check` asserts both in debug builds.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use ahash::{AHashMap, RandomState};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Startup slots of the server.
const SLOTS_MAX: usize = 1_024;
/// Startup slots of an address from which a login has failed.
const SLOTS_AFTER_FAILURE_MAX: usize = 128;
/// Origins of failed logins that are remembered.
const ORIGINS_MAX: usize = 8_192;
/// Delay after the first failure.
const DELAY_MIN: Duration = Duration::from_millis(250);
/// Longest delay of a user at an address: short of the connection timeout of common clients (10 s).
const USER_DELAY_MAX: Duration = Duration::from_secs(4);
/// Longest delay of an address, for all users together.
const ADDRESS_DELAY_MAX: Duration = Duration::from_secs(1);
/// Age at which a failure no longer counts.
const FAILURE_AGE_MAX: Duration = Duration::from_secs(15 * 60);

/// Startup slots and failed logins of all clients.
pub(crate) struct LoginThrottle {
    slots_max: usize,
    logins: Mutex<Logins>,
    user_hasher: RandomState,
}

/// State of a [`LoginThrottle`].
#[derive(Default)]
struct Logins {
    /// Clients that have not logged in, oldest first.
    slots: BTreeMap<u64, SlotHolder>,
    slots_by_address: AHashMap<IpAddr, usize>,
    next_slot: u64,
    failures: AHashMap<LoginOrigin, LoginFailures>,
}

/// Holder of a startup slot.
struct SlotHolder {
    address: IpAddr,
    /// Notified when another client takes over the slot.
    preempted: Arc<Notify>,
}

/// Key of failures: an address with the hash of a user name, or an address alone. The hash bounds
/// the memory of names that a client chooses.
type LoginOrigin = (IpAddr, Option<u64>);

/// Consecutive failed logins of one origin.
#[derive(Debug, Clone, Copy)]
struct LoginFailures {
    count: u32,
    last: Instant,
}

/// Startup slot of a client, until it is dropped.
pub(crate) struct StartupSlot {
    throttle: Arc<LoginThrottle>,
    address: IpAddr,
    number: u64,
    preempted: Arc<Notify>,
}

impl LoginThrottle {
    /// Returns a throttle with as many slots as there are descriptors for, [`SLOTS_MAX`] at most.
    pub(crate) fn new(descriptors: usize) -> LoginThrottle {
        LoginThrottle {
            slots_max: descriptors.min(SLOTS_MAX),
            logins: Mutex::default(),
            user_hasher: RandomState::new(),
        }
    }

    /// Returns a slot for a client, which is that of an older client if none is free.
    pub(crate) fn acquire(self: &Arc<LoginThrottle>, address: IpAddr) -> StartupSlot {
        let address = site(address);
        let mut logins = self.logins.lock();
        let has_failed = logins.failures.contains_key(&(address, None));
        let address_max = if has_failed { SLOTS_AFTER_FAILURE_MAX } else { usize::MAX };
        let address_max = address_max.min(self.slots_max / 2);
        if logins.slots_by_address.get(&address).is_some_and(|count| *count >= address_max) {
            logins.preempt(Some(address));
        } else if logins.slots.len() >= self.slots_max {
            logins.preempt(None);
        }
        let (number, preempted) = (logins.next_slot, Arc::new(Notify::new()));
        logins.next_slot += 1;
        *logins.slots_by_address.entry(address).or_default() += 1;
        logins.slots.insert(number, SlotHolder { address, preempted: Arc::clone(&preempted) });
        logins.check();
        drop(logins);
        StartupSlot { throttle: Arc::clone(self), address, number, preempted }
    }
}

impl StartupSlot {
    /// Waits until a password of `user` may be checked: [`USER_DELAY_MAX`] at most.
    pub(crate) async fn wait_for_check(&self, user: &str) {
        let now = Instant::now();
        let time = self.throttle.logins.lock().check_time(self.origins(user), now);
        if time > now {
            tokio::time::sleep_until(time).await;
        }
    }

    /// Waits until another client has taken over the slot.
    pub(crate) async fn preempted(&self) {
        self.preempted.notified().await;
    }

    /// Records a failed login.
    pub(crate) fn record_failure(&self, user: &str) {
        self.throttle.logins.lock().fail(self.origins(user), Instant::now());
    }

    /// Records a successful login.
    pub(crate) fn record_success(&self, user: &str) {
        let mut logins = self.throttle.logins.lock();
        for origin in self.origins(user) {
            logins.failures.remove(&origin);
        }
    }

    fn origins(&self, user: &str) -> [LoginOrigin; 2] {
        let user = self.throttle.user_hasher.hash_one(user);
        [(self.address, Some(user)), (self.address, None)]
    }
}

impl Drop for StartupSlot {
    fn drop(&mut self) {
        self.throttle.logins.lock().release(self.number);
    }
}

impl Logins {
    /// Takes the oldest slot, of an address or of all, from its holder.
    fn preempt(&mut self, address: Option<IpAddr>) {
        let is_candidate =
            |holder: &SlotHolder| address.is_none_or(|address| holder.address == address);
        let oldest = self.slots.iter().find(|(_, holder)| is_candidate(holder));
        if let Some(number) = oldest.map(|(number, _)| *number)
            && let Some(holder) = self.release(number)
        {
            holder.preempted.notify_one();
        }
    }

    /// Frees a slot and returns its holder, if it still has one.
    fn release(&mut self, number: u64) -> Option<SlotHolder> {
        let holder = self.slots.remove(&number)?;
        if let Some(count) = self.slots_by_address.get_mut(&holder.address) {
            *count -= 1;
            if *count == 0 {
                self.slots_by_address.remove(&holder.address);
            }
        }
        self.check();
        Some(holder)
    }

    /// Returns the time from which on a password of one of the origins may be checked.
    fn check_time(&mut self, origins: [LoginOrigin; 2], now: Instant) -> Instant {
        let mut time = now;
        for origin in origins {
            match self.failures.get(&origin) {
                Some(failures) if failures.is_expired(now) => {
                    self.failures.remove(&origin);
                }
                Some(failures) => time = time.max(failures.last + failures.delay(origin)),
                None => {}
            }
        }
        time
    }

    fn fail(&mut self, origins: [LoginOrigin; 2], now: Instant) {
        for origin in origins {
            if !self.failures.contains_key(&origin) && self.failures.len() >= ORIGINS_MAX {
                self.drop_oldest_failures(now);
            }
            let failures =
                self.failures.entry(origin).or_insert(LoginFailures { count: 0, last: now });
            failures.count = failures.count.saturating_add(1);
            failures.last = now;
        }
        self.check();
    }

    fn drop_oldest_failures(&mut self, now: Instant) {
        self.failures.retain(|_, failures| !failures.is_expired(now));
        if self.failures.len() < ORIGINS_MAX {
            return;
        }
        let oldest = self.failures.iter().min_by_key(|(_, failures)| failures.last);
        if let Some(origin) = oldest.map(|(origin, _)| *origin) {
            self.failures.remove(&origin);
        }
    }

    /// Asserts the invariants of the module header.
    fn check(&self) {
        debug_assert!(self.failures.len() <= ORIGINS_MAX, "origins of failures are bounded");
        debug_assert_eq!(
            self.slots_by_address.values().sum::<usize>(),
            self.slots.len(),
            "each slot counts for its address"
        );
        debug_assert!(self.slots_by_address.values().all(|count| *count > 0));
    }
}

impl LoginFailures {
    fn delay(&self, (_, user): LoginOrigin) -> Duration {
        let max = if user.is_some() { USER_DELAY_MAX } else { ADDRESS_DELAY_MAX };
        let doubled = 2_u32.saturating_pow(self.count.saturating_sub(1));
        DELAY_MIN.saturating_mul(doubled).min(max)
    }

    fn is_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= FAILURE_AGE_MAX
    }
}

/// Returns the address under which the throttle counts a client.
fn site(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => IpAddr::V4(mapped),
            None if address.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            None => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn address(last: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + last))
    }

    fn origins(last: u32, user: u64) -> [LoginOrigin; 2] {
        [(address(last), Some(user)), (address(last), None)]
    }

    #[test]
    fn login_delay_doubles_up_to_maximum() {
        let mut logins = Logins::default();
        let mut now = Instant::now();
        assert_eq!(logins.check_time(origins(1, 1), now), now);
        let mut delays = Vec::new();
        for _ in 0..7 {
            logins.fail(origins(1, 1), now);
            let time = logins.check_time(origins(1, 1), now);
            delays.push(time.duration_since(now).as_millis());
            let other = logins.check_time(origins(1, 2), now).duration_since(now);
            assert_eq!(other, time.duration_since(now).min(ADDRESS_DELAY_MAX));
            now = time;
        }
        assert_eq!(delays, [250, 500, 1_000, 2_000, 4_000, 4_000, 4_000]);
        assert_eq!(logins.check_time(origins(2, 1), now), now, "other addresses do not wait");
        let expired = now + FAILURE_AGE_MAX;
        assert_eq!(logins.check_time(origins(1, 1), expired), expired);
        assert!(logins.failures.is_empty());
    }

    #[test]
    fn user_can_log_in_during_password_guessing() {
        let mut logins = Logins::default();
        let start = Instant::now();
        for tenth in 0..600 {
            let now = start + Duration::from_millis(100 * tenth);
            for guesser in 0..40 {
                // Half of them guess the password of user 0, the others vary the name.
                let user = if guesser % 2 == 0 { 0 } else { tenth * 40 + guesser };
                logins.fail(origins(1, user), now);
            }
            let wait = |logins: &mut Logins, user| {
                logins.check_time(origins(1, user), now).duration_since(now)
            };
            assert!(wait(&mut logins, 0) <= USER_DELAY_MAX);
            assert!(wait(&mut logins, u64::MAX) <= ADDRESS_DELAY_MAX);
        }
    }

    #[test]
    fn tracked_login_origins_are_bounded() {
        let mut logins = Logins::default();
        let now = Instant::now();
        for other in 0..ORIGINS_MAX as u32 {
            logins.fail(origins(other, 0), now + Duration::from_secs(1));
        }
        assert_eq!(logins.failures.len(), ORIGINS_MAX);
        let address = ORIGINS_MAX as u32;
        logins.fail(origins(address, 0), now + FAILURE_AGE_MAX + Duration::from_secs(1));
        assert_eq!(logins.failures.len(), 2, "expired failures are dropped first");
    }

    #[test]
    fn startup_slots_per_address_are_limited() {
        let throttle = Arc::new(LoginThrottle::new(SLOTS_MAX));
        let of_address = |last| -> usize {
            throttle.logins.lock().slots_by_address.get(&address(last)).copied().unwrap_or(0)
        };
        let is_preempted = |slot: &StartupSlot| slot.preempted.notified().now_or_never().is_some();
        let many: Vec<_> = (0..SLOTS_MAX).map(|_| throttle.acquire(address(1))).collect();
        assert_eq!(of_address(1), SLOTS_MAX / 2);
        let preempted = many.iter().map(is_preempted).collect::<Vec<_>>();
        let (first, last) = preempted.split_at(SLOTS_MAX / 2);
        assert!(first.iter().all(|preempted| *preempted));
        assert!(!last.iter().any(|preempted| *preempted));
        throttle.acquire(address(2)).record_failure("ann");
        let few: Vec<_> = (0..SLOTS_MAX).map(|_| throttle.acquire(address(2))).collect();
        assert_eq!(of_address(2), SLOTS_AFTER_FAILURE_MAX);
        few[SLOTS_MAX - 1].record_success("ann");
        let _more = throttle.acquire(address(2));
        assert_eq!(of_address(2), SLOTS_AFTER_FAILURE_MAX + 1, "a right password resets");
        drop((many, few));
        assert_eq!(throttle.logins.lock().slots.len(), 1);
    }

    #[test]
    fn new_client_preempts_oldest_startup_slot() {
        let throttle = Arc::new(LoginThrottle::new(SLOTS_MAX));
        let many: Vec<_> =
            (0..SLOTS_MAX as u32 + 3).map(|n| throttle.acquire(address(n))).collect();
        assert_eq!(throttle.logins.lock().slots.len(), SLOTS_MAX);
        for (number, slot) in many.iter().enumerate() {
            assert_eq!(slot.preempted.notified().now_or_never().is_some(), number < 3);
        }
        drop(many);
        assert_eq!(throttle.logins.lock().slots.len(), 0);
    }

    #[test]
    fn ipv6_addresses_of_one_site_are_grouped() {
        let parsed = |text: &str| site(text.parse().unwrap());
        assert_eq!(parsed("2001:db8:1:2:3::4"), parsed("2001:db8:1:2:ffff::9"));
        assert_ne!(parsed("2001:db8:1:2::"), parsed("2001:db8:1:3::"));
        assert_eq!(parsed("::ffff:10.0.0.1"), parsed("10.0.0.1"));
        assert_ne!(parsed("10.0.0.1"), parsed("10.0.0.2"));
    }
}
