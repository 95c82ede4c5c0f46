//! Checker of list-append histories: aborted and intermediate reads, lost and torn transactions,
//! and cycles of dependencies.
//!
//! Every append adds a unique value to the list of a key, and lists only grow. So the last read
//! of a key gives the order of all its versions, and each read identifies the version it saw: its
//! writer (`wr`), the writer of the next version (`rw`), and the order of writers (`ww`).
//! Isolation levels exclude certain cycles of these dependencies:
//!
//! | level | no cycle of |
//! | --- | --- |
//! | read committed | ww, wr, real time |
//! | repeatable read | ww, wr, real time and rw, where no two rw follow each other |
//! | serializable | ww, wr, rw, the order within sessions |
//!
//! Real time is a dependency because a snapshot includes all transactions acknowledged before it
//! was taken.
//!
//! Source: Kingsbury and Alvaro, "Elle: inferring isolation anomalies from experimental
//! observations" (2020); for snapshots, Cerone and Gotsman, "Analysing snapshot isolation" (2016).

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Isolation level of the transactions of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// One operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A value, which no other append has, was added to the list of a key.
    Append { key: u64, value: u64 },
    /// The list of a key was read.
    Read { key: u64, list: Vec<u64> },
}

/// Outcome of a transaction, as known to its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    Aborted,
    /// The connection broke during COMMIT.
    Unknown,
}

/// One transaction.
#[derive(Debug, Clone)]
pub(crate) struct RecordedTransaction {
    /// Its session; the transactions of a session are sequential.
    pub(crate) session: u64,
    /// Times at which BEGIN was sent and the outcome was known, by a monotonic clock.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) operations: Vec<Operation>,
    pub(crate) outcome: Outcome,
}

/// Dependency of one transaction on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dependency {
    /// The other wrote the next version.
    WriteWrite,
    /// The other read its version.
    WriteRead,
    /// It read the version before the other's.
    ReadWrite,
    /// It ended before the other began, or precedes it in its session.
    Order,
}

struct Edge {
    to: usize,
    why: Dependency,
}

/// An appended value.
struct WrittenVersion {
    transaction: usize,
    /// The same transaction did not append to the key again.
    is_last: bool,
}

/// A history with the order of the versions of each key.
struct History<'a> {
    transactions: &'a [RecordedTransaction],
    /// The final lists.
    versions: &'a BTreeMap<u64, Vec<u64>>,
    writers: HashMap<u64, WrittenVersion>,
    level: Level,
    anomalies: Vec<String>,
}

/// Returns the anomalies of a history, one per line. `versions` are the lists of all keys, read
/// after all transactions have ended.
pub(crate) fn check(
    transactions: &[RecordedTransaction],
    versions: &BTreeMap<u64, Vec<u64>>,
    level: Level,
) -> Vec<String> {
    let mut history = History {
        transactions,
        versions,
        writers: writers(transactions),
        level,
        anomalies: Vec::new(),
    };
    history.check_outcomes();
    let edges = history.dependencies();
    history.check_cycles(&edges);
    history.anomalies
}

fn writers(transactions: &[RecordedTransaction]) -> HashMap<u64, WrittenVersion> {
    let mut writers = HashMap::new();
    for (transaction, recorded) in transactions.iter().enumerate() {
        let mut last: HashMap<u64, u64> = HashMap::new();
        for operation in &recorded.operations {
            let Operation::Append { key, value } = operation else { continue };
            if let Some(earlier) = last.insert(*key, *value) {
                writers
                    .entry(earlier)
                    .and_modify(|written: &mut WrittenVersion| written.is_last = false);
            }
            let before = writers.insert(*value, WrittenVersion { transaction, is_last: true });
            assert!(before.is_none(), "value {value} is appended twice: the workload is wrong");
        }
    }
    writers
}

impl History<'_> {
    fn report(&mut self, what: String) {
        self.anomalies.push(what);
    }

    /// Checks that acknowledged appends exist once, aborted ones do not exist, and transactions
    /// with an unknown outcome are atomic.
    fn check_outcomes(&mut self) {
        let mut found: HashMap<u64, u64> = HashMap::new();
        for (key, list) in self.versions {
            for value in list {
                if found.insert(*value, *key).is_some() {
                    self.anomalies.push(format!("key {key}: {value} is there twice: {list:?}"));
                }
            }
        }
        for (index, recorded) in self.transactions.iter().enumerate() {
            let appends = recorded.operations.iter().filter_map(|operation| match operation {
                Operation::Append { key, value } => Some((*key, *value)),
                Operation::Read { .. } => None,
            });
            let (there, missing): (Vec<_>, Vec<_>) =
                appends.partition(|(key, value)| found.get(value) == Some(key));
            match recorded.outcome {
                Outcome::Committed if !missing.is_empty() => {
                    self.anomalies.push(format!("T{index}: lost after COMMIT: {missing:?}"));
                }
                Outcome::Aborted if !there.is_empty() => {
                    self.anomalies.push(format!("T{index}: there after ROLLBACK: {there:?}"));
                }
                Outcome::Unknown if !there.is_empty() && !missing.is_empty() => {
                    self.anomalies
                        .push(format!("T{index}: there by halves: {there:?}, without {missing:?}"));
                }
                _ => {}
            }
        }
    }

    /// Checks the reads of all committed transactions; returns the dependencies.
    fn dependencies(&mut self) -> Vec<Vec<Edge>> {
        let mut edges: Vec<Vec<Edge>> = self.transactions.iter().map(|_| Vec::new()).collect();
        for list in self.versions.values() {
            for pair in list.windows(2) {
                self.add(&mut edges, (pair[0], Dependency::WriteWrite), pair[1]);
            }
        }
        for reader in 0..self.transactions.len() {
            if self.transactions[reader].outcome == Outcome::Committed {
                self.add_reads(reader, &mut edges);
            }
        }
        edges
    }

    /// Adds a dependency between the writers of two values.
    fn add(&self, edges: &mut [Vec<Edge>], (from, why): (u64, Dependency), to: u64) {
        if let (Some(from), Some(to)) = (self.writers.get(&from), self.writers.get(&to))
            && from.transaction != to.transaction
        {
            edges[from.transaction].push(Edge { to: to.transaction, why });
        }
    }

    fn add_reads(&mut self, reader: usize, edges: &mut [Vec<Edge>]) {
        let mut own: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
        let transactions = self.transactions;
        for operation in &transactions[reader].operations {
            let (key, list) = match operation {
                Operation::Append { key, value } => {
                    own.entry(*key).or_default().push(*value);
                    continue;
                }
                Operation::Read { key, list } => (*key, list),
            };
            let own = own.get(&key).map_or(&[][..], Vec::as_slice);
            let Some(before) = list.strip_suffix(own) else {
                self.report(format!("T{reader}: key {key}: its own {own:?} is not seen: {list:?}"));
                continue;
            };
            let versions = self.versions.get(&key).map_or(&[][..], Vec::as_slice);
            if !versions.starts_with(before) {
                self.report(format!("T{reader}: key {key}: never was {before:?}, is {versions:?}"));
                continue;
            }
            let first = *seen.entry(key).or_insert(before.len());
            if first != before.len() && self.level != Level::ReadCommitted {
                let message = format!("T{reader}: key {key}: {first} values, then {before:?}");
                self.report(message);
            }
            self.add_version(reader, (before, versions), edges);
        }
    }

    /// Adds the dependencies of a transaction that has read a version.
    fn add_version(
        &mut self,
        reader: usize,
        (seen, versions): (&[u64], &[u64]),
        edges: &mut [Vec<Edge>],
    ) {
        if let Some(last) = seen.last()
            && let Some(written) = self.writers.get(last)
            && written.transaction != reader
        {
            let (writer, is_last) = (written.transaction, written.is_last);
            edges[writer].push(Edge { to: reader, why: Dependency::WriteRead });
            if !is_last {
                self.report(format!("T{reader}: intermediate read of T{writer}: {seen:?}"));
            }
        }
        if let Some(next) = versions.get(seen.len())
            && let Some(written) = self.writers.get(next)
            && written.transaction != reader
        {
            edges[reader].push(Edge { to: written.transaction, why: Dependency::ReadWrite });
        }
    }

    fn check_cycles(&mut self, edges: &[Vec<Edge>]) {
        let mut graph = Graph::new(edges.len());
        let writes_and_reads = |edge: &&Edge| edge.why != Dependency::ReadWrite;
        for (from, edges) in edges.iter().enumerate() {
            for edge in edges.iter().filter(writes_and_reads) {
                graph.add(from, edge.to, format!("{:?}", edge.why));
            }
        }
        match self.level {
            Level::Serializable => {
                graph.add_sessions(self.transactions);
                for (from, edges) in edges.iter().enumerate() {
                    for edge in edges.iter().filter(|edge| edge.why == Dependency::ReadWrite) {
                        graph.add(from, edge.to, format!("{:?}", edge.why));
                    }
                }
            }
            Level::ReadCommitted => graph.add_real_time(self.transactions),
            Level::RepeatableRead => {
                graph.add_real_time(self.transactions);
                graph.follow_by_one(|at| {
                    let edges = edges.get(at).map_or(&[][..], Vec::as_slice);
                    let next = edges.iter().filter(|edge| edge.why == Dependency::ReadWrite);
                    next.map(|edge| edge.to).collect()
                });
            }
        }
        for cycle in graph.cycles() {
            let level = self.level;
            self.report(format!("{level:?}: {cycle}"));
        }
    }
}

/// Graph of transactions and points in time.
struct Graph {
    edges: Vec<Vec<(usize, String)>>,
    transaction_count: usize,
}

impl Graph {
    fn new(transaction_count: usize) -> Graph {
        Graph { edges: vec![Vec::new(); transaction_count], transaction_count }
    }

    fn add(&mut self, from: usize, to: usize, why: String) {
        self.edges[from].push((to, why));
    }

    /// Adds the dependencies of transactions on those that ended before they began. Nodes for
    /// points in time keep the number of edges linear.
    fn add_real_time(&mut self, transactions: &[RecordedTransaction]) {
        let ended = |recorded: &RecordedTransaction| recorded.outcome == Outcome::Committed;
        let mut ends: Vec<(u64, usize)> = transactions
            .iter()
            .enumerate()
            .filter(|(_, recorded)| ended(recorded))
            .map(|(index, recorded)| (recorded.end, index))
            .collect();
        ends.sort_unstable();
        let first_moment = self.edges.len();
        for (position, (_, transaction)) in ends.iter().enumerate() {
            self.edges.push(Vec::new());
            let moment = first_moment + position;
            self.add(*transaction, moment, "Order".to_owned());
            if position > 0 {
                self.add(moment - 1, moment, "Order".to_owned());
            }
        }
        for (index, recorded) in transactions.iter().enumerate() {
            let ended_before = ends.partition_point(|(end, _)| *end < recorded.begin);
            if let Some(last) = ended_before.checked_sub(1) {
                self.add(first_moment + last, index, "Order".to_owned());
            }
        }
    }

    fn add_sessions(&mut self, transactions: &[RecordedTransaction]) {
        let mut last: HashMap<u64, usize> = HashMap::new();
        let mut order: Vec<usize> = (0..transactions.len()).collect();
        order.sort_unstable_by_key(|index| transactions[*index].begin);
        for index in order {
            if transactions[index].outcome != Outcome::Aborted
                && let Some(before) = last.insert(transactions[index].session, index)
            {
                self.add(before, index, format!("{:?}", Dependency::Order));
            }
        }
    }

    /// Adds, for each edge, its compositions with one edge of `next`.
    fn follow_by_one(&mut self, next: impl Fn(usize) -> Vec<usize>) {
        for from in 0..self.edges.len() {
            let mut longer = Vec::new();
            for (over, why) in &self.edges[from] {
                for to in next(*over) {
                    longer.push((to, format!("{why} to T{over}, ReadWrite")));
                }
            }
            self.edges[from].extend(longer);
        }
    }

    /// Returns a shortest cycle through one transaction of each strongly connected component, as
    /// text.
    fn cycles(&self) -> Vec<String> {
        let mut reported = vec![false; self.edges.len()];
        let mut cycles = Vec::new();
        for start in self.nodes_on_cycles() {
            if start >= self.transaction_count || reported[start] {
                continue;
            }
            let Some(path) = self.path_back(start) else { continue };
            for (node, _) in &path {
                reported[*node] = true;
            }
            let steps: Vec<String> = path
                .iter()
                .map(|(node, why)| match node {
                    node if *node < self.transaction_count => format!("-{why}-> T{node}"),
                    _ => format!("-{why}->"),
                })
                .collect();
            cycles.push(format!("T{start} {}", steps.join(" ")));
        }
        cycles
    }

    /// Returns the nodes that remain after repeatedly removing nodes without incoming or outgoing
    /// edges: all nodes on cycles, and some between cycles.
    fn nodes_on_cycles(&self) -> Vec<usize> {
        let mut incoming = vec![0_usize; self.edges.len()];
        for (to, _) in self.edges.iter().flatten() {
            incoming[*to] += 1;
        }
        let mut free: Vec<usize> =
            (0..incoming.len()).filter(|node| incoming[*node] == 0).collect();
        while let Some(node) = free.pop() {
            for (to, _) in &self.edges[node] {
                incoming[*to] -= 1;
                if incoming[*to] == 0 {
                    free.push(*to);
                }
            }
        }
        (0..incoming.len()).filter(|node| incoming[*node] > 0).collect()
    }

    /// Returns the shortest path from a node back to itself.
    fn path_back(&self, start: usize) -> Option<Vec<(usize, &str)>> {
        let mut came: HashMap<usize, (usize, &str)> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for (to, why) in &self.edges[node] {
                if *to != start && came.contains_key(to) {
                    continue;
                }
                came.entry(*to).or_insert((node, why));
                if *to == start {
                    let mut path = Vec::new();
                    let mut at = start;
                    loop {
                        let (before, why) = came[&at];
                        path.push((at, why));
                        at = before;
                        if at == start {
                            path.reverse();
                            return Some(path);
                        }
                    }
                }
                queue.push_back(*to);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(key: u64, value: u64) -> Operation {
        Operation::Append { key, value }
    }

    fn read(key: u64, list: &[u64]) -> Operation {
        Operation::Read { key, list: list.to_vec() }
    }

    /// Returns concurrent transactions, each of its own session.
    fn concurrent(transactions: &[&[Operation]]) -> Vec<RecordedTransaction> {
        let recorded = |(session, operations): (usize, &&[Operation])| RecordedTransaction {
            session: session as u64,
            begin: 0,
            end: 1,
            operations: operations.to_vec(),
            outcome: Outcome::Committed,
        };
        transactions.iter().enumerate().map(recorded).collect()
    }

    fn found(
        transactions: &[RecordedTransaction],
        versions: &[(u64, &[u64])],
        level: Level,
    ) -> Vec<String> {
        let versions = versions.iter().map(|(key, list)| (*key, list.to_vec())).collect();
        check(transactions, &versions, level)
    }

    const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

    #[test]
    fn serial_history_is_valid_at_all_levels() {
        let mut history = concurrent(&[
            &[append(1, 10), read(1, &[10])],
            &[read(1, &[10]), append(1, 11), read(1, &[10, 11]), append(2, 20)],
        ]);
        (history[1].begin, history[1].end) = (2, 3);
        for level in LEVELS {
            let anomalies = found(&history, &[(1, &[10, 11]), (2, &[20])], level);
            assert!(anomalies.is_empty(), "{anomalies:?}");
        }
    }

    #[test]
    fn write_skew_is_anomaly_only_at_serializable() {
        let history = concurrent(&[&[read(1, &[]), append(2, 20)], &[read(2, &[]), append(1, 10)]]);
        let versions: &[(u64, &[u64])] = &[(1, &[10]), (2, &[20])];
        assert!(found(&history, versions, Level::ReadCommitted).is_empty());
        assert!(found(&history, versions, Level::RepeatableRead).is_empty());
        assert_eq!(found(&history, versions, Level::Serializable).len(), 1);
    }

    #[test]
    fn lost_update_is_anomaly_above_read_committed() {
        // Both have read an empty list and appended; the first one's next append is after the
        // second's.
        let history = concurrent(&[&[read(1, &[]), append(1, 10)], &[read(1, &[]), append(1, 11)]]);
        let versions: &[(u64, &[u64])] = &[(1, &[10, 11])];
        assert!(found(&history, versions, Level::ReadCommitted).is_empty());
        assert_eq!(found(&history, versions, Level::RepeatableRead).len(), 1);
        assert_eq!(found(&history, versions, Level::Serializable).len(), 1);
    }

    #[test]
    fn read_skew_is_anomaly_for_snapshots() {
        let history =
            concurrent(&[&[append(1, 10), append(2, 20)], &[read(1, &[]), read(2, &[20])]]);
        let versions: &[(u64, &[u64])] = &[(1, &[10]), (2, &[20])];
        assert!(found(&history, versions, Level::ReadCommitted).is_empty());
        assert_eq!(found(&history, versions, Level::RepeatableRead).len(), 1);
    }

    #[test]
    fn stale_read_is_anomaly_for_snapshots() {
        let mut history = concurrent(&[&[append(1, 10)], &[read(1, &[])]]);
        (history[1].begin, history[1].end) = (2, 3);
        let versions: &[(u64, &[u64])] = &[(1, &[10])];
        assert_eq!(found(&history, versions, Level::RepeatableRead).len(), 1);
        assert!(found(&history, versions, Level::Serializable).is_empty());
    }

    #[test]
    fn circular_information_flow_is_anomaly_at_all_levels() {
        let history =
            concurrent(&[&[append(1, 10), read(2, &[20])], &[append(2, 20), read(1, &[10])]]);
        for level in LEVELS {
            assert_eq!(found(&history, &[(1, &[10]), (2, &[20])], level).len(), 1, "{level:?}");
        }
    }

    #[test]
    fn reads_of_uncommitted_values_are_detected() {
        let mut history = concurrent(&[&[append(1, 10), append(1, 11)], &[append(1, 12)]]);
        history[1].outcome = Outcome::Aborted;
        for (seen, told) in
            [(&[10][..], "intermediate"), (&[12], "never was"), (&[11], "never was")]
        {
            let mut history = history.clone();
            history.extend(concurrent(&[&[read(1, seen)]]));
            let anomalies = found(&history, &[(1, &[10, 11])], Level::ReadCommitted);
            assert!(anomalies[0].contains(told), "{anomalies:?}");
        }
        let own = concurrent(&[&[append(1, 10), read(1, &[])]]);
        assert!(found(&own, &[(1, &[10])], Level::ReadCommitted)[0].contains("not seen"));
    }

    #[test]
    fn acknowledged_appends_are_present_exactly_once() {
        let mut history = concurrent(&[&[append(1, 10), append(2, 20)]]);
        for (outcome, versions, told) in [
            (Outcome::Committed, &[(1, &[10][..])][..], "lost after COMMIT"),
            (Outcome::Unknown, &[(1, &[10])], "by halves"),
            (Outcome::Aborted, &[(1, &[10]), (2, &[20])], "after ROLLBACK"),
            (Outcome::Committed, &[(1, &[10, 10]), (2, &[20])], "twice"),
        ] {
            history[0].outcome = outcome;
            let anomalies = found(&history, versions, Level::ReadCommitted);
            assert!(anomalies[0].contains(told), "{anomalies:?}");
        }
        history[0].outcome = Outcome::Unknown;
        assert!(found(&history, &[], Level::Serializable).is_empty());
    }
}
