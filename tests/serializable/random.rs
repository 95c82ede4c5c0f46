//! Random SERIALIZABLE transactions of many concurrent clients, checked afterwards.
//!
//! Each transaction appends its number to the lists of some rows and reads others: by key, by
//! range, by an index. A list identifies its version and all versions before it; a missing row is
//! the empty list. So the history is a graph: a reader comes after the writer of its version
//! (wr), an appender after the previous one (ww), and a reader before the next appender (rw).
//! Serializable histories have no cycles.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::harness::{TestServer, connect};
use crate::random_queries::seeded_random::SeededRandom;
use crate::serializable::run;

const KEYS: i64 = 12;
const GROUPS: i64 = 4;
const CLIENTS: u64 = 6;

/// A committed transaction.
#[derive(Debug, Default)]
struct CommittedTransaction {
    /// The list of each key that it read, before its own appends.
    reads: Vec<(i64, Vec<u64>)>,
    /// The keys to which it appended.
    appends: Vec<i64>,
}

fn seconds() -> Duration {
    let given = std::env::var("BENNU_SERIALIZABLE_SECONDS").ok();
    Duration::from_secs(given.and_then(|text| text.parse().ok()).unwrap_or(3))
}

fn seed() -> u64 {
    let given = std::env::var("BENNU_SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.unwrap().as_nanos() as u64
    })
}

/// Reads the lists of the keys that a query returns; missing ones of `keys` are empty.
async fn read(
    client: &Client,
    query: &str,
    keys: Vec<i64>,
) -> Result<Vec<(i64, Vec<u64>)>, String> {
    let rows = run(client, query).await?;
    let mut lists: BTreeMap<i64, Vec<u64>> = keys.iter().map(|key| (*key, Vec::new())).collect();
    for row in rows {
        let (key, list) = row.split_once('|').unwrap();
        let list = list.trim_matches(['{', '}']).split(',').filter(|one| !one.is_empty());
        let list = list.map(|one| one.parse().unwrap()).collect();
        assert!(lists.insert(key.parse().unwrap(), list).is_some(), "{query}: {key}");
    }
    Ok(lists.into_iter().collect())
}

/// Runs one transaction; returns its reads and appends if it committed.
async fn transact(
    client: &Client,
    number: u64,
    random: &mut SeededRandom,
) -> Result<CommittedTransaction, String> {
    let mut done = CommittedTransaction::default();
    run(client, "BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
    for _ in 0..random.between(1, 4) {
        let key = random.between(0, KEYS - 1);
        match random.below(5) {
            0 => {
                let query = format!("SELECT k, v FROM t WHERE k = {key}");
                done.reads.extend(read(client, &query, vec![key]).await?);
            }
            1 => {
                let to = (key + random.between(0, 3)).min(KEYS - 1);
                let query = format!("SELECT k, v FROM t WHERE k BETWEEN {key} AND {to}");
                done.reads.extend(read(client, &query, (key..=to).collect()).await?);
            }
            2 => {
                let group = key % GROUPS;
                let query = format!("SELECT k, v FROM t WHERE g = {group}");
                let keys = (0..KEYS).filter(|key| key % GROUPS == group).collect();
                done.reads.extend(read(client, &query, keys).await?);
            }
            _ => {
                let append = format!(
                    "INSERT INTO t VALUES ({key}, {}, ARRAY[{number}::bigint]) \
                     ON CONFLICT (k) DO UPDATE SET v = t.v || {number}::bigint",
                    key % GROUPS
                );
                if !done.appends.contains(&key) {
                    run(client, &append).await?;
                    done.appends.push(key);
                }
            }
        }
    }
    run(client, "COMMIT").await?;
    for (_, list) in &mut done.reads {
        list.retain(|one| *one != number);
    }
    Ok(done)
}

async fn work(
    address: SocketAddr,
    seed: u64,
    until: Instant,
) -> (Vec<(u64, CommittedTransaction)>, usize) {
    let client = connect(address).await;
    let mut random = SeededRandom::new(seed);
    let (mut all, mut aborted) = (Vec::new(), 0);
    let mut number = seed % CLIENTS;
    while Instant::now() < until {
        number += CLIENTS;
        match transact(&client, number, &mut random).await {
            Ok(committed) => all.push((number, committed)),
            Err(code) => {
                assert!(["40001", "40P01"].contains(&&*code), "{code}");
                aborted += 1;
                run(&client, "ROLLBACK").await.unwrap();
            }
        }
    }
    (all, aborted)
}

/// Returns the order of appends to each key, from the longest list.
fn orders(
    all: &HashMap<u64, CommittedTransaction>,
    last: &[(i64, Vec<u64>)],
) -> HashMap<i64, Vec<u64>> {
    let orders: HashMap<i64, Vec<u64>> = last.iter().cloned().collect();
    for (number, done) in all {
        for (key, list) in &done.reads {
            let order = &orders[key];
            let expected: Vec<u64> =
                order.iter().copied().filter(|one| one != number).take(list.len()).collect();
            assert_eq!(*list, expected, "{number} read a list of {key} that never was");
        }
        for key in &done.appends {
            assert!(orders[key].contains(number), "lost append of {number} to {key}");
        }
    }
    orders
}

/// Returns the edges of the graph.
fn edges(
    all: &HashMap<u64, CommittedTransaction>,
    orders: &HashMap<i64, Vec<u64>>,
) -> HashMap<u64, HashSet<u64>> {
    let mut edges: HashMap<u64, HashSet<u64>> = HashMap::new();
    let mut add = |from: u64, to: u64| {
        if from != to {
            edges.entry(from).or_default().insert(to);
        }
    };
    for order in orders.values() {
        order.windows(2).for_each(|pair| add(pair[0], pair[1]));
    }
    for (number, done) in all {
        for (key, list) in &done.reads {
            if let Some(last) = list.last() {
                add(*last, *number);
            }
            let next = orders[key].iter().filter(|one| *one != number).nth(list.len());
            if let Some(next) = next {
                add(*number, *next);
            }
        }
    }
    edges
}

/// Returns a cycle, if there is one.
fn cycle(edges: &HashMap<u64, HashSet<u64>>) -> Option<Vec<u64>> {
    let mut done: HashSet<u64> = HashSet::new();
    for start in edges.keys() {
        let mut path: Vec<(u64, Vec<u64>)> = vec![(*start, next_of(edges, *start))];
        while let Some((at, rest)) = path.last_mut() {
            let (at, Some(next)) = (*at, rest.pop()) else {
                done.insert(*at);
                path.pop();
                continue;
            };
            let _ = at;
            if let Some(from) = path.iter().position(|(other, _)| *other == next) {
                return Some(path[from..].iter().map(|(one, _)| *one).collect());
            }
            if !done.contains(&next) {
                path.push((next, next_of(edges, next)));
            }
        }
    }
    None
}

fn next_of(edges: &HashMap<u64, HashSet<u64>>, of: u64) -> Vec<u64> {
    edges.get(&of).into_iter().flatten().copied().collect()
}

#[test]
fn dependency_cycles_are_detected() {
    let of = |pairs: &[(u64, u64)]| {
        let mut edges: HashMap<u64, HashSet<u64>> = HashMap::new();
        pairs.iter().for_each(|(from, to)| {
            edges.entry(*from).or_default().insert(*to);
        });
        cycle(&edges).map(|mut cycle| {
            cycle.sort_unstable();
            cycle
        })
    };
    assert_eq!(of(&[(1, 2), (2, 3), (1, 3)]), None);
    assert_eq!(of(&[(1, 2), (2, 3), (3, 2), (3, 4)]), Some(vec![2, 3]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_histories_are_serializable() {
    let seed = seed();
    println!("BENNU_SEED={seed}");
    let server = TestServer::start();
    let admin = connect(server.address()).await;
    run(&admin, "CREATE TABLE t (k int PRIMARY KEY, g int, v bigint[])").await.unwrap();
    run(&admin, "CREATE INDEX t_g ON t (g)").await.unwrap();
    let until = Instant::now() + seconds();
    let clients = (0..CLIENTS).map(|client| {
        tokio::spawn(work(server.address(), (seed % 1_000_000) * CLIENTS + client, until))
    });
    let (mut all, mut aborted) = (HashMap::new(), 0);
    for client in clients.collect::<Vec<_>>() {
        let (committed, of_client) = client.await.unwrap();
        all.extend(committed);
        aborted += of_client;
    }
    let last = read(&admin, "SELECT k, v FROM t", (0..KEYS).collect()).await.unwrap();
    println!("{} committed, {aborted} aborted", all.len());
    assert!(all.len() > 20, "too little was done");
    let orders = orders(&all, &last);
    if let Some(cycle) = cycle(&edges(&all, &orders)) {
        let shown: Vec<_> = cycle.iter().map(|one| (one, all.get(one))).collect();
        panic!("a cycle: {shown:#?}");
    }
}

/// Withdraws from one of two accounts if their total is sufficient.
async fn withdraw(address: SocketAddr, seed: u64, until: Instant) -> usize {
    let client = connect(address).await;
    let mut random = SeededRandom::new(seed);
    let mut done = 0;
    while Instant::now() < until {
        let (pair, account) = (random.below(3), random.below(2));
        let sum = format!("SELECT sum(balance), count(*) FROM account WHERE pair = {pair}");
        let outcome = async {
            run(&client, "BEGIN ISOLATION LEVEL SERIALIZABLE").await?;
            let row = run(&client, &sum).await?;
            let sum: i64 = row[0].split('|').next().unwrap().parse().unwrap();
            let change = if sum >= 10 { -10 } else { 40 };
            run(
                &client,
                &format!(
                    "UPDATE account SET balance = balance + {change} \
                     WHERE pair = {pair} AND id = {account}"
                ),
            )
            .await?;
            run(&client, "COMMIT").await
        };
        match outcome.await {
            Ok(_) => done += 1,
            Err(code) => {
                assert!(["40001", "40P01"].contains(&&*code), "{code}");
                run(&client, "ROLLBACK").await.unwrap();
            }
        }
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sum_constraint_holds_under_random_withdrawals() {
    let seed = seed();
    println!("BENNU_SEED={seed}");
    let server = TestServer::start();
    let admin = connect(server.address()).await;
    let table = "CREATE TABLE account (pair int, id int, balance int, PRIMARY KEY (pair, id))";
    run(&admin, table).await.unwrap();
    let fill = "INSERT INTO account SELECT p, i, 20 FROM generate_series(0, 2) p, \
                generate_series(0, 1) i";
    run(&admin, fill).await.unwrap();
    let until = Instant::now() + seconds();
    let clients = (0..4)
        .map(|client| tokio::spawn(withdraw(server.address(), seed.wrapping_add(client), until)));
    let clients: Vec<_> = clients.collect();
    let watch = "SELECT pair, sum(balance) FROM account GROUP BY pair HAVING sum(balance) < 0";
    while Instant::now() < until {
        assert_eq!(run(&admin, watch).await.unwrap(), Vec::<String>::new());
    }
    let mut done = 0;
    for client in clients {
        done += client.await.unwrap();
    }
    println!("{done} committed");
    assert!(done > 20, "too little was done");
    assert_eq!(run(&admin, watch).await.unwrap(), Vec::<String>::new());
}
