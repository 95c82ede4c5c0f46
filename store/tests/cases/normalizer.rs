//! Tests of the normaliser on a store: ages by a simulated clock, and regions that change between
//! a plan and its actions.

use std::time::Duration;

use store::descriptor::SplitOptions;
use store::env::fault::{FaultEnv, Unsynced};
use store::normalizer::{NormalizerAction, NormalizerActionKind, NormalizerPlan, NormalizerRules};
use store::store::{RegionFamilyStatus, SplitPoint};
use store::{Error, Store, TableDescriptor};

use crate::cases::splits::noise;
use crate::cases::{TABLE, begin, descriptor, open, put, scan};

const DAY: i64 = 24 * 3_600_000_000;

fn plan(store: &Store, age_days: u64) -> NormalizerPlan {
    let min_age = Duration::from_secs(age_days * 24 * 3600);
    store.normalizer_plan(TABLE, NormalizerRules { prefix_bytes: 0, min_age }).unwrap()
}

fn due(store: &Store, age_days: u64) -> Vec<(usize, Option<i64>)> {
    let actions = plan(store, age_days).actions;
    actions.iter().map(|action| (action.regions.len(), action.due_micros)).collect()
}

fn starts(store: &Store) -> Vec<String> {
    let regions = store.regions(TABLE).unwrap();
    regions.iter().map(|region| String::from_utf8_lossy(&region.start).into_owned()).collect()
}

fn with_target(target_bytes: u64, split_points: &[&str]) -> TableDescriptor {
    let split =
        SplitOptions { normalizer_target_bytes: Some(target_bytes), ..SplitOptions::default() };
    TableDescriptor { split, ..descriptor(split_points, 1) }
}

fn only(plan: NormalizerPlan, kind: NormalizerActionKind) -> NormalizerAction {
    let [action] = plan.actions.try_into().unwrap();
    assert_eq!(action.kind, kind);
    action
}

#[test]
fn regions_are_merged_once_old_enough() {
    let env = FaultEnv::new(1);
    env.set_now(10 * DAY);
    let store = open(&env).unwrap();
    store.create_table(with_target(1 << 20, &["b", "c", "d", "e"])).unwrap();
    assert_eq!(due(&store, 3), [(5, Some(13 * DAY))]);
    assert_eq!(due(&store, 0), [(5, Some(10 * DAY))]);
    env.set_now(12 * DAY);
    store.split_region(TABLE, SplitPoint::At("c1".into())).unwrap();
    assert_eq!(due(&store, 3), [(6, Some(15 * DAY))]);
    // The old regions do not wait for the young ones.
    env.set_now(13 * DAY);
    let merges = [(2, Some(13 * DAY)), (2, Some(13 * DAY)), (2, Some(15 * DAY))];
    assert_eq!(due(&store, 3), merges);
    // The times outlive the process, with and without a shutdown.
    let env = env.after_crash(Unsynced::Lost);
    let store = open(&env).unwrap();
    assert_eq!(due(&store, 3), merges);
    drop(store);
    let store = open(&env).unwrap();
    assert_eq!(due(&store, 3), merges);
    for action in &plan(&store, 3).actions[..2] {
        assert!(store.normalize(TABLE, action).unwrap().is_some());
    }
    assert_eq!(starts(&store), ["", "c", "c1", "d"]);
    // A merged region is as old as its merge.
    assert_eq!(due(&store, 3), [(4, Some(16 * DAY))]);
}

#[test]
fn action_on_changed_regions_has_no_effect() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(with_target(100 << 10, &["b", "c"])).unwrap();
    let stays = |store: &Store, action: &NormalizerAction| {
        let before = starts(store);
        assert_eq!(store.normalize(TABLE, action).unwrap(), None);
        assert_eq!(starts(store), before);
    };
    put(&store, "a1", "1");
    put(&store, "a2", "2");
    let merge = only(plan(&store, 0), NormalizerActionKind::Merge);
    store.split_region(TABLE, SplitPoint::At("a2".into())).unwrap();
    stays(&store, &merge);
    // Regions with half-files wait for a compaction, which may run at any time.
    let planned: Vec<_> = plan(&store, 0).actions.into_iter().flat_map(|one| one.regions).collect();
    let stores = store.stores(TABLE).unwrap();
    let is_waiting = |one: &&RegionFamilyStatus| one.status.files.iter().any(|file| file.is_part);
    assert!(stores.iter().filter(is_waiting).all(|one| !planned.contains(&one.region)));
    assert!(planned.len() >= 2);
    store.compact(TABLE, true).unwrap();
    let merge = only(plan(&store, 0), NormalizerActionKind::Merge);
    assert_eq!(merge.regions.len(), 4);
    // Rows that were written since the plan.
    put(&store, "c1", &"x".repeat(110 << 10));
    stays(&store, &merge);
    store.drop_table(TABLE).unwrap();
    assert!(matches!(store.normalize(TABLE, &merge), Err(Error::NoSuchTable(_))));
}

#[test]
fn large_region_is_split_and_stays_split() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(with_target(64 << 10, &["b", "c"])).unwrap();
    let value =
        |row: u64| (0..64).map(|n| format!("{:016x}", noise(row * 64 + n))).collect::<String>();
    (0..400).for_each(|row| put(&store, &format!("b{row:03}"), &value(row)));
    store.flush(TABLE).unwrap();
    let before = scan(&begin(&store)).unwrap();
    let mut rounds = 0;
    loop {
        let actions = plan(&store, 0).actions;
        let filled =
            |one: &NormalizerAction| one.region_bytes.iter().filter(|bytes| **bytes > 0).count();
        assert!(actions.iter().all(|one| filled(one) <= 1), "a half is merged: {actions:?}");
        for action in &actions {
            store.normalize(TABLE, action).unwrap();
        }
        store.compact(TABLE, true).unwrap();
        if actions.is_empty() {
            break;
        }
        rounds += 1;
        assert!(rounds < 10);
    }
    assert!(rounds > 1 && starts(&store).len() > 3, "{:?}", starts(&store));
    assert_eq!(scan(&begin(&store)).unwrap(), before);
    // A row alone is not split.
    let tiny = with_target(1, &[]);
    store.alter_table(tiny).unwrap();
    assert!(plan(&store, 0).actions.iter().all(|action| action.bytes() > 2));
    drop(store);
    assert_eq!(scan(&begin(&open(&env).unwrap())).unwrap(), before);
}

#[test]
fn regions_of_a_bulk_load_are_not_replaced() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(with_target(1 << 20, &["b", "c"])).unwrap();
    let load = store.bulk_load(TABLE).unwrap();
    let merge = only(plan(&store, 0), NormalizerActionKind::Merge);
    assert!(matches!(store.normalize(TABLE, &merge), Err(Error::InvalidRequest(_))));
    drop(load);
    assert!(store.normalize(TABLE, &merge).unwrap().is_some());
}
