//! Tests of the plan: a table of cases, and properties of random tables.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::region::{SplitFacts, is_split_due};

/// The time of all plans.
const NOW: i64 = 1_000;
const FLUSH: u64 = 100;

fn options(target: &str) -> SplitOptions {
    let options = SplitOptions { normalization: true, ..SplitOptions::default() };
    let number = target.get(1..).and_then(|number| number.parse::<u64>().ok());
    match target.as_bytes()[0] {
        b's' => SplitOptions { normalizer_target_bytes: number, ..options },
        b'n' => SplitOptions { normalizer_target_regions: number.map(|n| n as u32), ..options },
        _ => options,
    }
}

/// Reads regions: a size, then `y` for a young one, `b` for a blocked one; `|` begins another
/// bucket.
fn regions(text: &str) -> Vec<SizedRegion> {
    let (mut regions, mut bucket): (Vec<SizedRegion>, u8) = (Vec::new(), 0);
    for (index, word) in text.split_whitespace().enumerate() {
        if word == "|" {
            bucket += 1;
            continue;
        }
        let start = if regions.is_empty() { Vec::new() } else { vec![bucket, index as u8] };
        if let Some(last) = regions.last_mut() {
            last.rows.stop = Some(start.clone());
        }
        regions.push(SizedRegion {
            region: RegionId(regions.len() as u64),
            bytes: word.trim_end_matches(['y', 'b']).parse().unwrap(),
            mergeable_from: Some(if word.ends_with('y') { NOW + 5 } else { NOW }),
            rows: RowRange { start, stop: None },
            is_blocked: word.ends_with('b'),
        });
    }
    regions
}

fn table<'a>(regions: &'a [SizedRegion], options: &'a SplitOptions) -> SizedTable<'a> {
    SizedTable { regions, options, flush_bytes: FLUSH, prefix_bytes: 1, now_micros: NOW }
}

/// Returns the actions as text: `0+1` merges, `/2` splits, `3+4@5` merges in 5 microseconds.
fn shown(actions: &[NormalizerAction]) -> String {
    let actions = actions.iter().map(|action| {
        let regions: Vec<String> = action.regions.iter().map(|id| id.0.to_string()).collect();
        match (action.kind, action.due_micros) {
            (NormalizerActionKind::Split, _) => format!("/{}", regions.concat()),
            (_, Some(due)) if due > NOW => format!("{}@{}", regions.join("+"), due - NOW),
            _ => regions.join("+"),
        }
    });
    actions.collect::<Vec<_>>().join(" ")
}

#[test]
fn plan_of_tables_with_known_answers() {
    let cases = [
        // Of the average; T = 40.
        ("avg", "10 10 100", "0+1"),
        ("avg", "10 35 75", ""),
        ("avg", "10 20 90", "0+1"),
        ("avg", "100 10 20 30", "1+2"),
        // Two regions are not merged.
        ("avg", "1 1", ""),
        ("avg", "1 1 1000 1000", "0+1"),
        // Empty regions join any neighbour.
        ("avg", "0 0 0 0", "0+1+2+3"),
        ("avg", "0 500 0 500 500", "0+1+2"),
        ("s100", "150 0 0 150", "0+1+2"),
        ("s100", "0 150 7 0", "0+1 2+3"),
        // A target size.
        ("s100", "50 50 50 50 50", "0+1 2+3"),
        ("s100", "60 60 60", ""),
        ("s100", "200 201 1", "/1"),
        ("s100", "30 30 30 30 30 30", "0+1+2 3+4+5"),
        // A target number: merges stop at it.
        ("n2", "10 10 10 10 10 10", "0+1+2 3+4+5"),
        ("n4", "0 0 0 0 0 0", "0+1+2"),
        ("n4", "100 1 1 1", "/0"),
        ("n8", "11 10 10 10", "/0"),
        // Of the average, regions up to the flush size are not split.
        ("avg", "100 1 1 1", "1+2+3"),
        ("avg", "101 1 1 1", "/0 1+2+3"),
        // Young and blocked regions.
        ("s100", "10y 10 10 10y 10", "1+2 3+4@5"),
        ("s100", "10y 10y 10y", "0+1+2@5"),
        ("s100", "10 10b 10 10", "2+3"),
        ("s100", "10 500b 10 10", "2+3"),
        // Buckets.
        ("s100", "10 10 | 10 10 | 10", "0+1 2+3"),
        ("s100", "0 | 0 | 0 | 0", ""),
    ];
    for (target, text, expected) in cases {
        let (options, regions) = (options(target), regions(text));
        assert_eq!(shown(&plan(&table(&regions, &options))), expected, "{target}: {text}");
    }
}

#[test]
fn merge_has_at_most_one_hundred_regions() {
    let (options, regions) = (options("s1000"), regions(&"0 ".repeat(250)));
    let actions = plan(&table(&regions, &options));
    let counts: Vec<usize> = actions.iter().map(|action| action.regions.len()).collect();
    assert_eq!(counts, [100, 100, 50]);
}

#[test]
fn split_policy_limits_merges_and_splits() {
    let with =
        |policy, max_file_bytes, target| SplitOptions { policy, max_file_bytes, ..options(target) };
    let planned =
        |options: &SplitOptions, text: &str| shown(&plan(&table(&regions(text), options)));
    // 87 remain of 100 with the least jitter.
    let constant = with(SplitPolicy::ConstantSize, 100, "s1000");
    assert_eq!(planned(&constant, "43 44 44 44 1"), "0+1 2+3");
    // One region would be split above twice the flush size: one with 300 is not made.
    let stepping = with(SplitPolicy::Stepping, 10_000, "s1000");
    assert_eq!(planned(&stepping, "100 100 100"), "0+1");
    assert_eq!(planned(&stepping, "100 100 100 | 100"), "0+1+2");
    // The limit is 8 * 200 for two regions, and 200 for one.
    let increasing = with(SplitPolicy::IncreasingToUpperBound, 10_000, "s5000");
    assert_eq!(planned(&increasing, "90 90 90"), "0+1");
    let disabled = with(SplitPolicy::Disabled, 10, "s100");
    assert_eq!(planned(&disabled, "50 50 500"), "0+1");
}

fn make_free(region: &mut SizedRegion) {
    (region.mergeable_from, region.is_blocked) = (None, false);
}

/// Applies a plan: a region is halved at its middle, and a merge is immediate.
fn normalized(before: &[SizedRegion], actions: &[NormalizerAction]) -> Vec<SizedRegion> {
    let mut after: Vec<SizedRegion> = Vec::new();
    for region in before {
        let of = actions.iter().find(|action| action.regions.contains(&region.region));
        match of.map(|action| (action.kind, action.regions[0] == region.region)) {
            Some((NormalizerActionKind::Merge, false)) => {
                let merged = after.last_mut().unwrap();
                merged.bytes += region.bytes;
                merged.rows.stop.clone_from(&region.rows.stop);
            }
            Some((NormalizerActionKind::Split, _)) => {
                let middle = [&region.rows.start[..], &[0, 128]].concat();
                let (mut left, mut right) = (region.clone(), region.clone());
                left.bytes = region.bytes / 2;
                right.bytes = region.bytes - left.bytes;
                left.rows.stop = Some(middle.clone());
                right.rows.start = middle;
                after.extend([left, right]);
            }
            _ => after.push(region.clone()),
        }
    }
    after.iter_mut().zip(0..).for_each(|(region, id)| region.region = RegionId(id));
    after
}

/// Returns whether the policy splits a region of this size, in a table with this number of regions,
/// for some jitter.
fn is_split(options: &SplitOptions, bytes: u64, table_regions: usize) -> bool {
    (0..200).any(|region| {
        let facts = SplitFacts {
            region: RegionId(region),
            bytes,
            table_regions: table_regions as u64,
            flush_bytes: FLUSH,
            age: Duration::ZERO,
            blocked_share: 0.0,
        };
        is_split_due(options, &facts)
    })
}

fn any_options() -> impl Strategy<Value = SplitOptions> {
    let policy = prop_oneof![
        Just(SplitPolicy::Disabled),
        Just(SplitPolicy::ConstantSize),
        Just(SplitPolicy::Stepping),
        Just(SplitPolicy::IncreasingToUpperBound),
    ];
    let target = prop_oneof![
        Just("avg".to_owned()),
        (1..2_000_u64).prop_map(|bytes| format!("s{bytes}")),
        (1..40_u64).prop_map(|count| format!("n{count}")),
    ];
    (policy, target, 100..5_000_u64).prop_map(|(policy, target, max_file_bytes)| SplitOptions {
        policy,
        max_file_bytes,
        ..options(&target)
    })
}

fn any_regions() -> impl Strategy<Value = Vec<SizedRegion>> {
    let size = prop_oneof![3 => Just(0_u64), 4 => 1..100_u64, 2 => 100..3_000_u64];
    let word = (size, 0..12_u8).prop_map(|(bytes, kind)| match kind {
        0 => format!("{bytes}y"),
        1 => format!("{bytes}b"),
        2 => format!("{bytes} |"),
        _ => bytes.to_string(),
    });
    prop::collection::vec(word, 1..60).prop_map(|words| regions(&words.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn plan_keeps_its_limits(options in any_options(), regions in any_regions()) {
        let table = table(&regions, &options);
        let actions = plan(&table);
        let mut seen = std::collections::BTreeSet::new();
        let find = |id: &RegionId| &regions[id.0 as usize];
        for action in &actions {
            for id in &action.regions {
                prop_assert!(seen.insert(*id), "{id:?} is in two actions");
                prop_assert!(!find(id).is_blocked);
            }
            let is_adjacent = action.regions.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0);
            prop_assert!(is_adjacent && action.regions.len() <= MERGE_REGIONS_MAX);
            if action.kind == NormalizerActionKind::Merge {
                let filled = action.region_bytes.iter().filter(|bytes| **bytes > 0).count();
                prop_assert!(filled <= 1 || action.bytes() <= table.target_bytes());
                let bucket = |id: &RegionId| find(id).rows.start.first().copied().unwrap_or(0);
                let buckets: Vec<u8> = action.regions.iter().map(bucket).collect();
                prop_assert!(buckets.windows(2).all(|pair| pair[0] == pair[1]), "{buckets:?}");
            }
        }
    }

    /// Without writes, repeated normalisation ends, and automatic splits do not begin.
    #[test]
    fn repeated_normalisation_ends(options in any_options(), regions in any_regions()) {
        let mut regions = regions;
        regions.iter_mut().for_each(make_free);
        let mut rounds = 0;
        loop {
            let now = table(&regions, &options);
            let actions = plan(&now);
            if actions.is_empty() {
                break;
            }
            let next = normalized(&regions, &actions);
            for merge in actions.iter().filter(|one| one.kind == NormalizerActionKind::Merge) {
                prop_assert!(!is_split(&options, merge.bytes(), next.len()), "{merge:?}");
            }
            regions = next;
            rounds += 1;
            prop_assert!(rounds < 60, "{:?}", regions.iter().map(|one| one.bytes).collect::<Vec<_>>());
        }
    }

    /// The halves of a region that the policy has split are not merged.
    #[test]
    fn automatic_split_is_not_undone(options in any_options(), regions in any_regions(), at in 0..60_usize) {
        let (mut regions, at) = (regions.clone(), at % regions.len());
        regions[at].bytes += 10_000;
        let before = table(&regions, &options);
        prop_assert!(options.policy == SplitPolicy::Disabled || is_split(&options, regions[at].bytes, regions.len()));
        prop_assume!(options.policy != SplitPolicy::Disabled);
        let split = action(&before, 0, (NormalizerActionKind::Split, &[at]));
        let mut after = normalized(&regions, &[split]);
        after.iter_mut().for_each(make_free);
        let halves = [RegionId(at as u64), RegionId(at as u64 + 1)];
        for merge in plan(&table(&after, &options)) {
            prop_assert!(!halves.iter().all(|half| merge.regions.contains(half)), "{merge:?}");
        }
    }
}
