//! What the server knows of the addresses of its clients: who is on the way in, and whose logins
//! have failed.
//!
//! After a failed login the next attempts from its address are checked later and later: the nth
//! failure in a row puts them off by 250 ms · 2^(n-1), at most 16 s, and attempts that come at the
//! same time wait one behind the other. A right password ends that, and so does a quarter of an
//! hour without an attempt. Other addresses notice nothing: a client that waits holds no thread,
//! and of the places for clients on their way in one address has half at most, or
//! [`STARTING_OF_FAILED_MAX`] once a login of it has failed.
//!
//! A client that finds no place takes that of the one that has been on its way in for longest, of
//! its address if that has as many as it may: so connections that send nothing keep nobody out.
//! After a failed login it is turned away instead, for attempts are slow by intent there.
//!
//! An address of IPv6 counts by its first 64 bits, which one site has for itself.
//!
//! # Invariants
//!
//! 1. No more than [`ADDRESSES_MAX`] addresses are remembered; the one that would be let in again
//!    first is forgotten for another.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many clients may be on their way in at once.
const STARTING_MAX: usize = 1_024;
/// How many of them may come from an address whose last login has failed.
const STARTING_OF_FAILED_MAX: usize = 16;
/// How many addresses with failed logins are remembered.
const ADDRESSES_MAX: usize = 4_096;
/// By how much the first failure puts the next attempt off.
const DELAY_MIN: Duration = Duration::from_millis(250);
/// The longest time from one attempt to the next.
const DELAY_MAX: Duration = Duration::from_secs(16);
/// When a failure is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15 * 60);

/// The addresses of clients.
#[derive(Default)]
pub(crate) struct Addresses {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The clients on their way in, by number, and how many they are by address.
    starting: BTreeMap<u64, Place>,
    starting_by_address: AHashMap<IpAddr, usize>,
    /// The number of the next one.
    next_number: u64,
    failed: AHashMap<IpAddr, Failures>,
}

/// The place of a client on its way in.
struct Place {
    address: IpAddr,
    /// Told when another client takes the place.
    lost: Arc<Notify>,
}

/// The failed logins of an address since the last one that succeeded.
#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    /// When the next attempt is checked.
    next: Instant,
}

/// A client on its way in, until it is dropped.
pub(crate) struct Starting {
    addresses: Arc<Addresses>,
    address: IpAddr,
    number: u64,
    lost: Arc<Notify>,
}

impl Addresses {
    /// Lets a client begin its start, in the place of another one if there is none left; `None` if
    /// it is turned away.
    pub(crate) fn begin(self: &Arc<Addresses>, address: IpAddr) -> Option<Starting> {
        let address = site(address);
        let mut known = self.known.lock();
        let has_failed = known.failed.contains_key(&address);
        let most = if has_failed { STARTING_OF_FAILED_MAX } else { STARTING_MAX / 2 };
        let is_address_full =
            known.starting_by_address.get(&address).is_some_and(|count| *count >= most);
        if is_address_full && has_failed {
            return None;
        }
        if is_address_full {
            known.take_place(Some(address));
        } else if known.starting.len() >= STARTING_MAX {
            known.take_place(None);
        }
        let (number, lost) = (known.next_number, Arc::new(Notify::new()));
        known.next_number += 1;
        *known.starting_by_address.entry(address).or_default() += 1;
        known.starting.insert(number, Place { address, lost: Arc::clone(&lost) });
        drop(known);
        Some(Starting { addresses: Arc::clone(self), address, number, lost })
    }
}

impl Starting {
    /// Waits until an attempt to log in may be checked.
    pub(crate) async fn wait_for_turn(&self) {
        let turn = self.addresses.known.lock().turn(self.address, Instant::now());
        if let Some(turn) = turn {
            tokio::time::sleep_until(turn).await;
        }
    }

    /// Ready when another client has taken the place.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Notes that the login has failed.
    pub(crate) fn failed(&self) {
        self.addresses.known.lock().fail(self.address, Instant::now());
    }

    /// Notes that the login has succeeded.
    pub(crate) fn succeeded(&self) {
        self.addresses.known.lock().failed.remove(&self.address);
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.addresses.known.lock().leave(self.number);
    }
}

impl Known {
    /// Has the client that has been on its way in for longest, of an address or of all, lose its
    /// place.
    fn take_place(&mut self, address: Option<IpAddr>) {
        let is_meant = |place: &Place| address.is_none_or(|address| place.address == address);
        let oldest = self.starting.iter().find(|(_, place)| is_meant(place));
        if let Some(number) = oldest.map(|(number, _)| *number)
            && let Some(lost) = self.leave(number)
        {
            lost.notify_one();
        }
    }

    /// Frees a place, unless it is lost; returns who is to be told if it is not the client itself
    /// that leaves.
    fn leave(&mut self, number: u64) -> Option<Arc<Notify>> {
        let Place { address, lost } = self.starting.remove(&number)?;
        if let Some(count) = self.starting_by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.starting_by_address.remove(&address);
            }
        }
        Some(lost)
    }

    /// Returns when an attempt may be checked that comes now; `None` if at once.
    fn turn(&mut self, address: IpAddr, now: Instant) -> Option<Instant> {
        let failures = self.failed.get_mut(&address)?;
        if failures.is_forgotten(now) {
            self.failed.remove(&address);
            return None;
        }
        let turn = failures.next.max(now);
        failures.next = turn + failures.delay();
        Some(turn)
    }

    fn fail(&mut self, address: IpAddr, now: Instant) {
        if !self.failed.contains_key(&address) && self.failed.len() >= ADDRESSES_MAX {
            self.make_room(now);
        }
        let failures = self.failed.entry(address).or_insert(Failures { count: 0, next: now });
        failures.count = failures.count.saturating_add(1);
        failures.next = failures.next.max(now + failures.delay());
    }

    fn make_room(&mut self, now: Instant) {
        self.failed.retain(|_, failures| !failures.is_forgotten(now));
        if self.failed.len() < ADDRESSES_MAX {
            return;
        }
        let first = self.failed.iter().min_by_key(|(_, failures)| failures.next);
        if let Some(address) = first.map(|(address, _)| *address) {
            self.failed.remove(&address);
        }
    }
}

impl Failures {
    fn delay(&self) -> Duration {
        let doubled = 2_u32.saturating_pow(self.count.saturating_sub(1));
        DELAY_MIN.saturating_mul(doubled).min(DELAY_MAX)
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.next) >= FORGOTTEN_AFTER
    }
}

/// Returns what an address counts as.
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

    #[test]
    fn each_failure_puts_the_next_attempt_further_off() {
        let mut known = Known::default();
        let mut now = Instant::now();
        assert_eq!(known.turn(address(1), now), None);
        let mut waits = Vec::new();
        for _ in 0..9 {
            known.fail(address(1), now);
            let turn = known.turn(address(1), now).unwrap();
            waits.push(turn.duration_since(now).as_millis());
            now = turn;
        }
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000]);
        assert_eq!(known.turn(address(2), now), None, "other addresses notice nothing");
        // Attempts that come together wait one behind the other.
        known.fail(address(3), now);
        let turns = [0; 3].map(|_| known.turn(address(3), now).unwrap().duration_since(now));
        assert_eq!(turns.map(|turn| turn.as_millis()), [250, 500, 750]);
        let later = now + FORGOTTEN_AFTER + DELAY_MAX;
        assert_eq!(known.turn(address(3), later), None);
    }

    #[test]
    fn as_many_addresses_are_remembered_as_there_is_room_for() {
        let mut known = Known::default();
        let now = Instant::now();
        (0..4).for_each(|_| known.fail(address(0), now));
        for other in 1..2 * ADDRESSES_MAX as u32 {
            known.fail(address(other), now);
        }
        assert_eq!(known.failed.len(), ADDRESSES_MAX);
        assert!(known.failed.contains_key(&address(0)), "it would wait longest");
        known.fail(address(0), now + FORGOTTEN_AFTER + DELAY_MAX);
        known.fail(address(u32::from(u16::MAX)), now + FORGOTTEN_AFTER + DELAY_MAX);
        assert_eq!(known.failed.len(), 2, "who came long ago is forgotten first");
    }

    #[test]
    fn an_address_leaves_places_for_others() {
        let addresses = Arc::new(Addresses::default());
        let of_address = |last| -> usize {
            addresses.known.lock().starting_by_address.get(&address(last)).copied().unwrap_or(0)
        };
        let many: Vec<_> =
            (0..STARTING_MAX).map(|_| addresses.begin(address(1)).unwrap()).collect();
        assert_eq!(of_address(1), STARTING_MAX / 2);
        let is_lost = |starting: &Starting| starting.lost.notified().now_or_never().is_some();
        let lost = many.iter().map(is_lost).collect::<Vec<_>>();
        let (first, last) = lost.split_at(STARTING_MAX / 2);
        assert!(first.iter().all(|lost| *lost) && !last.iter().any(|lost| *lost));
        let other = addresses.begin(address(2)).unwrap();
        other.failed();
        drop(other);
        let few: Vec<_> = (0..STARTING_MAX).map_while(|_| addresses.begin(address(2))).collect();
        assert_eq!(few.len(), STARTING_OF_FAILED_MAX);
        few[0].succeeded();
        assert!(addresses.begin(address(2)).is_some());
        drop((many, few));
        let known = addresses.known.lock();
        assert_eq!((known.starting.len(), known.starting_by_address.len()), (0, 0));
    }

    #[test]
    fn there_is_a_place_for_who_comes_last() {
        let addresses = Arc::new(Addresses::default());
        let many: Vec<_> =
            (0..STARTING_MAX as u32 + 3).map(|n| addresses.begin(address(n)).unwrap()).collect();
        assert_eq!(addresses.known.lock().starting.len(), STARTING_MAX);
        for (number, starting) in many.iter().enumerate() {
            assert_eq!(starting.lost.notified().now_or_never().is_some(), number < 3);
        }
        drop(many);
        assert_eq!(addresses.known.lock().starting.len(), 0);
    }

    #[test]
    fn addresses_of_one_site_count_as_one() {
        let parsed = |text: &str| site(text.parse().unwrap());
        assert_eq!(parsed("2001:db8:1:2:3::4"), parsed("2001:db8:1:2:ffff::9"));
        assert_ne!(parsed("2001:db8:1:2::"), parsed("2001:db8:1:3::"));
        assert_eq!(parsed("::ffff:10.0.0.1"), parsed("10.0.0.1"));
        assert_ne!(parsed("10.0.0.1"), parsed("10.0.0.2"));
    }
}
