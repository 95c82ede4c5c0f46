//! Deadlock detection: cycles in the waits-for graph, and reordering of queues that resolves
//! them.
//!
//! A waiter waits for the holders that it conflicts with (a hard edge) and for those before it in
//! the queue that it conflicts with (a soft edge). A cycle with a soft edge can be resolved by
//! moving the waiter ahead. If no order of the queues resolves all cycles there is a deadlock,
//! and the transaction that checks is its victim.
//!
//! Only a new waiter can close a cycle, so each waiter checks once, after a time in which most
//! waits end. All shards are locked meanwhile.
//!
//! A transaction and its session, which may hold session-level locks, are one node
//! ([`Processes`]).
//!
//! Source: PostgreSQL's `DeadLockCheck` (deadlock.c).

use std::collections::{HashMap, HashSet, VecDeque};

use parking_lot::MutexGuard;

use crate::descriptor::TableId;
use crate::lock::entry::{LockEntry, LockWaiter};
use crate::lock::{ADVISORY_LOCKS, LockKey, Owner, Shard, TRANSACTION_ENDS};
use crate::lock_mode::LockMode;

/// Maximal number of queue orders tried to resolve cycles.
const ORDERS_MAX: usize = 64;

/// The lock that each owner waits for.
pub(super) type Waits = HashMap<Owner, LockKey>;

/// The sessions of transactions, for sessions that have ever held locks.
#[derive(Default)]
pub(super) struct Processes {
    session_of: HashMap<Owner, Owner>,
    transactions_of: HashMap<Owner, Vec<Owner>>,
}

impl Processes {
    /// Registers the session of a transaction.
    pub(super) fn join(&mut self, transaction: Owner, session: Owner) {
        let before = self.session_of.insert(transaction, session);
        debug_assert!(before.is_none_or(|before| before == session), "of two sessions");
        if before.is_none() {
            self.transactions_of.entry(session).or_default().push(transaction);
        }
    }

    /// Removes a transaction.
    pub(super) fn leave(&mut self, transaction: Owner) {
        let Some(session) = self.session_of.remove(&transaction) else { return };
        if let Some(known) = self.transactions_of.get_mut(&session) {
            known.retain(|one| *one != transaction);
            if known.is_empty() {
                self.transactions_of.remove(&session);
            }
        }
    }

    /// Returns the node of a transaction or session.
    fn node(&self, owner: Owner) -> Owner {
        self.session_of.get(&owner).copied().unwrap_or(owner)
    }

    /// Returns the owners that form a node.
    fn members(&self, node: Owner) -> impl Iterator<Item = Owner> + '_ {
        let transactions = self.transactions_of.get(&node).into_iter().flatten().copied();
        std::iter::once(node).chain(transactions)
    }
}

/// Outcome of a deadlock check.
pub(super) enum DeadlockOutcome {
    /// There is no cycle.
    Free,
    /// There is no cycle if these queues have this order.
    Reorder(Vec<(LockKey, Vec<Owner>)>),
    /// A deadlock, with the detail message.
    Deadlock(String),
}

/// Constraint that one waiter precedes another in the queue of a lock.
#[derive(Clone, Copy)]
struct Constraint {
    key: LockKey,
    first: Owner,
    second: Owner,
}

/// Edge of the waits-for graph.
#[derive(Clone, Copy)]
struct Edge {
    waiter: Owner,
    blocker: Owner,
    table: TableId,
    mode: LockMode,
    /// Constraint that would remove the edge, for a soft edge.
    soft: Option<Constraint>,
}

/// Waits-for graph of all locks at one moment.
pub(super) struct Graph<'a> {
    /// All shards, in their order.
    pub(super) shards: &'a [MutexGuard<'a, Shard>],
    /// The lock that each owner waits for.
    pub(super) waits: &'a Waits,
    /// Transactions and sessions that are one node.
    pub(super) processes: &'a Processes,
}

type Orders = HashMap<LockKey, Vec<Owner>>;

impl Graph<'_> {
    /// Checks for cycles through a waiting owner.
    pub(super) fn check(&self, owner: Owner) -> DeadlockOutcome {
        let start = self.processes.node(owner);
        let Some(circle) = self.circle(start, &Orders::new()) else { return DeadlockOutcome::Free };
        let mut tries = ORDERS_MAX;
        match self.open_circles(start, &circle, &mut Vec::new(), &mut tries) {
            Some(orders) => DeadlockOutcome::Reorder(orders.into_iter().collect()),
            None => DeadlockOutcome::Deadlock(told(&circle)),
        }
    }

    /// Returns orders of queues that resolve a cycle, and leave none.
    fn open_circles(
        &self,
        start: Owner,
        circle: &[Edge],
        constraints: &mut Vec<Constraint>,
        tries: &mut usize,
    ) -> Option<Orders> {
        // Earlier waiters are moved ahead first, the checking one last, as in PostgreSQL.
        for constraint in circle.iter().rev().filter_map(|edge| edge.soft) {
            if *tries == 0 {
                return None;
            }
            *tries -= 1;
            constraints.push(constraint);
            if let Some(orders) = self.orders(constraints) {
                let nodes = constraints.iter().flat_map(|one| [one.first, one.second]);
                let nodes = std::iter::once(start).chain(nodes.map(|one| self.processes.node(one)));
                let mut nodes: Vec<Owner> = nodes.collect();
                nodes.dedup();
                let found = nodes.into_iter().find_map(|node| self.circle(node, &orders));
                let opened = match found {
                    None => Some(orders),
                    Some(other) => self.open_circles(start, &other, constraints, tries),
                };
                if opened.is_some() {
                    return opened;
                }
            }
            constraints.pop();
        }
        None
    }

    /// Returns the queues of the constraints in an order that satisfies them, with minimal
    /// changes; `None` if there is none.
    fn orders(&self, constraints: &[Constraint]) -> Option<Orders> {
        let mut orders = Orders::new();
        for key in constraints.iter().map(|constraint| constraint.key) {
            if orders.contains_key(&key) {
                continue;
            }
            let mut rest: VecDeque<Owner> =
                self.entry(key)?.queue().map(|waiter| waiter.owner).collect();
            let mut order = Vec::with_capacity(rest.len());
            while !rest.is_empty() {
                let is_held_back = |owner: Owner| {
                    let of_key = constraints.iter().filter(|one| one.key == key);
                    of_key.into_iter().any(|one| one.second == owner && rest.contains(&one.first))
                };
                let next = (0..rest.len()).find(|&place| !is_held_back(rest[place]))?;
                order.extend(rest.remove(next));
            }
            orders.insert(key, order);
        }
        Some(orders)
    }

    fn entry(&self, key: LockKey) -> Option<&LockEntry> {
        self.shards[key.shard()].entries.get(&key)
    }

    /// Returns a cycle through a node, if there is one.
    fn circle(&self, start: Owner, orders: &Orders) -> Option<Vec<Edge>> {
        let mut came_by: HashMap<Owner, Edge> = HashMap::new();
        let mut seen = HashSet::from([start]);
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front() {
            for edge in self.edges(node, orders) {
                if edge.blocker == start {
                    let mut circle = vec![edge];
                    while let Some(before) = came_by.get(&circle[circle.len() - 1].waiter) {
                        circle.push(*before);
                    }
                    circle.reverse();
                    return Some(circle);
                }
                if seen.insert(edge.blocker) {
                    came_by.insert(edge.blocker, edge);
                    open.push_back(edge.blocker);
                }
            }
        }
        None
    }

    /// Returns the edges from a node to its blockers.
    fn edges(&self, node: Owner, orders: &Orders) -> Vec<Edge> {
        let mut edges = Vec::new();
        for owner in self.processes.members(node) {
            let Some(&key) = self.waits.get(&owner) else { continue };
            let Some(entry) = self.entry(key) else { continue };
            // A waiter that was granted the lock and has not woken up yet is no longer waiting.
            let Some(waiter) = entry.queue().find(|waiter| waiter.owner == owner) else { continue };
            let (table, mode) = (entry.table(), waiter.mode);
            let edge = |blocker: Owner, soft| {
                let blocker = self.processes.node(blocker);
                Edge { waiter: node, blocker, table, mode, soft }
            };
            let holders = entry.conflicting_holders(owner, waiter.mode);
            edges.extend(holders.map(|holder| edge(holder, None)));
            let ahead = self.ahead_of(waiter, (key, entry), orders);
            edges.extend(
                ahead.into_iter().map(|other| {
                    edge(other, Some(Constraint { key, first: owner, second: other }))
                }),
            );
        }
        edges.retain(|edge| edge.blocker != node);
        edges
    }

    /// Returns the earlier waiters that conflict with a waiter.
    fn ahead_of(
        &self,
        waiter: &LockWaiter,
        (key, entry): (LockKey, &LockEntry),
        orders: &Orders,
    ) -> Vec<Owner> {
        let conflicts = |other: &&LockWaiter| waiter.mode.conflicts_with(other.mode);
        let Some(order) = orders.get(&key) else {
            let ahead = entry.queue().take_while(|other| other.owner != waiter.owner);
            return ahead.filter(conflicts).map(|other| other.owner).collect();
        };
        let place = order.iter().position(|owner| *owner == waiter.owner).unwrap_or(0);
        let is_ahead = |other: &&LockWaiter| order[..place].contains(&other.owner);
        entry.queue().filter(is_ahead).filter(conflicts).map(|other| other.owner).collect()
    }
}

/// Describes a cycle in the form of PostgreSQL's detail of a deadlock.
fn told(circle: &[Edge]) -> String {
    let line = |edge: &Edge| {
        let what = match edge.table {
            ADVISORY_LOCKS => "an advisory lock".to_owned(),
            TRANSACTION_ENDS => "the end of a transaction".to_owned(),
            _ if matches!(edge.mode, LockMode::Table(_)) => "a table".to_owned(),
            table => format!("a row of table {}", table.0),
        };
        format!(
            "{} waits for the lock of {what}; blocked by {}.",
            edge.waiter,
            edge.blocker.to_string().to_lowercase()
        )
    };
    circle.iter().map(line).collect::<Vec<String>>().join("\n")
}
