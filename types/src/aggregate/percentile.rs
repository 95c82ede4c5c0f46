//! `approx_percentile(x, fraction)`: a KLL sketch of some 20 KiB per group.
//!
//! A sketch holds values in levels; a value of level `n` represents `2^n` input values. A full
//! level is sorted, and every second value moves up one level. The capacity of a level is two
//! thirds of that of the level above. Up to [`WIDTH`] values nothing is dropped and answers are
//! exact; beyond that the rank error is less than 1 % of the number of values in all tests.
//!
//! The result is the smallest value whose rank is at least `fraction` of all, as for
//! `percentile_disc`. The choice between two neighbours alternates, so that the same rows in the
//! same order give the same result; another order or partitioning may change it within the error.
//!
//! Source: Karnin, Lang, Liberty, "Optimal Quantile Approximation in Streams" (2016).

use smallvec::smallvec;

use super::{Accumulator, PartialState};
use crate::datum::{Datum, compare_floats};
use crate::error::{Error, Result};
use crate::vector::{Vector, VectorData};

/// Capacity of the highest level.
const WIDTH: usize = 800;
/// Minimum capacity of a level.
const LEVEL_MIN: usize = 8;

/// The sketch of a group.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sketch {
    levels: Vec<Vec<f64>>,
    /// Number of retained values, and of input values.
    kept: usize,
    count: u64,
    /// The second of two neighbours moves up next.
    second: bool,
}

impl Sketch {
    /// Returns the capacity of a level.
    fn capacity(&self, level: usize) -> usize {
        let below = self.levels.len() - 1 - level;
        let share = (2.0_f64 / 3.0).powi(i32::try_from(below).unwrap_or(i32::MAX));
        ((WIDTH as f64 * share).ceil() as usize).max(LEVEL_MIN)
    }

    fn add(&mut self, value: f64) {
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        self.levels[0].push(value);
        self.kept += 1;
        self.count += 1;
        if self.levels[0].len() > self.capacity(0) {
            self.compress();
        }
    }

    /// Halves the full levels, starting with the lowest.
    fn compress(&mut self) {
        let mut level = 0;
        while level < self.levels.len() {
            if self.levels[level].len() > self.capacity(level) {
                self.halve(level);
            }
            level += 1;
        }
    }

    /// Moves every second value of a level up; of an odd number one stays.
    fn halve(&mut self, level: usize) {
        if level + 1 == self.levels.len() {
            self.levels.push(Vec::new());
        }
        let mut values = std::mem::take(&mut self.levels[level]);
        let stays = if values.len() % 2 == 1 { values.pop() } else { None };
        values.sort_unstable_by(|a, b| compare_floats(*a, *b));
        let chosen = values.iter().skip(usize::from(self.second)).step_by(2);
        self.second = !self.second;
        self.levels[level + 1].extend(chosen);
        self.kept -= values.len() / 2;
        self.levels[level].extend(stays);
    }

    fn merge(&mut self, other: &Sketch) {
        for (level, values) in other.levels.iter().enumerate() {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].extend(values);
        }
        self.kept += other.kept;
        self.count += other.count;
        self.compress();
    }

    /// Returns the smallest value whose rank is at least `fraction` of all values.
    fn quantile(&self, fraction: f64) -> Option<f64> {
        let weighed = self.levels.iter().enumerate();
        let mut values: Vec<(f64, u64)> = weighed
            .flat_map(|(level, values)| values.iter().map(move |value| (*value, 1 << level)))
            .collect();
        values.sort_unstable_by(|a, b| compare_floats(a.0, b.0));
        let wanted = (fraction * self.count as f64).ceil().max(1.0) as u64;
        let mut rank = 0;
        let reached = values.iter().find(|(_, weight)| {
            rank += weight;
            rank >= wanted
        });
        reached.or(values.last()).map(|(value, _)| *value)
    }

    /// Serializes the sketch: `second` (1 byte), then for each level the number of its values
    /// (u32) and the values; all little-endian.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.second)];
        for values in &self.levels {
            bytes.extend((values.len() as u32).to_le_bytes());
            values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Sketch> {
        let (&second, mut rest) = bytes.split_first()?;
        let mut sketch = Sketch { second: second != 0, ..Sketch::default() };
        while !rest.is_empty() {
            let (length, values) = rest.split_first_chunk::<4>()?;
            let (values, after) =
                values.split_at_checked(8 * u32::from_le_bytes(*length) as usize)?;
            let (chunks, _) = values.as_chunks::<8>();
            let level: Vec<f64> = chunks.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect();
            let weight = 1u64.checked_shl(u32::try_from(sketch.levels.len()).ok()?)?;
            sketch.kept += level.len();
            sketch.count = weight.checked_mul(level.len() as u64)?.checked_add(sketch.count)?;
            sketch.levels.push(level);
            rest = after;
        }
        Some(sketch)
    }
}

/// The sketches of all groups, with the requested fractions.
#[derive(Debug, Default)]
pub(super) struct Percentiles {
    sketches: Vec<Sketch>,
    fractions: Vec<Option<f64>>,
}

impl Percentiles {
    /// Records the fraction of a group, which must be equal in all of its rows.
    fn note_fraction(&mut self, group: usize, fraction: f64) -> Result<()> {
        let noted = &mut self.fractions[group];
        match *noted {
            Some(noted) if noted == fraction => return Ok(()),
            Some(_) => {
                bail!(INVALID_PARAMETER_VALUE: "the fraction of approx_percentile must be the same in all rows");
            }
            None => {}
        }
        if !(0.0..=1.0).contains(&fraction) {
            bail!(NUMERIC_VALUE_OUT_OF_RANGE: "percentile value {fraction} is not between 0 and 1");
        }
        *noted = Some(fraction);
        Ok(())
    }
}

impl Accumulator for Percentiles {
    fn resize(&mut self, group_count: usize) {
        self.sketches.resize(group_count, Sketch::default());
        self.fractions.resize(group_count, None);
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let [x, fraction] = arguments else { panic!("a percentile has two arguments") };
        let (VectorData::Float8(values), VectorData::Float8(fractions)) = (&x.data, &fraction.data)
        else {
            panic!("percentiles are of double precision");
        };
        for (row, &group) in groups.iter().enumerate() {
            if !fraction.is_null(row) {
                self.note_fraction(group as usize, fractions[row])?;
                if !x.is_null(row) {
                    self.sketches[group as usize].add(values[row]);
                }
            }
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let fraction = self.fractions[group].map_or(Datum::Null, Datum::Float8);
        Ok(smallvec![fraction, Datum::bytea(self.sketches[group].to_bytes())])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        if let Datum::Float8(fraction) = partial[0] {
            self.note_fraction(group, fraction)?;
        }
        let sketch = partial[1]
            .as_bytes()
            .and_then(Sketch::from_bytes)
            .ok_or_else(|| err!(DATA_CORRUPTED: "damaged state of approx_percentile"))?;
        self.sketches[group].merge(&sketch);
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let Some(fraction) = self.fractions[group] else { return Ok(Datum::Null) };
        Ok(self.sketches[group].quantile(fraction).map_or(Datum::Null, Datum::Float8))
    }

    fn byte_count(&self) -> usize {
        let values: usize = self.sketches.iter().map(|sketch| sketch.kept).sum();
        self.sketches.capacity() * size_of::<Sketch>()
            + self.fractions.capacity() * size_of::<Option<f64>>()
            + values * size_of::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sketch(values: impl IntoIterator<Item = f64>) -> Sketch {
        let mut sketch = Sketch::default();
        values.into_iter().for_each(|value| sketch.add(value));
        sketch
    }

    fn check(sketch: &Sketch, count: u64) {
        assert_eq!(sketch.count, count);
        assert_eq!(sketch.kept, sketch.levels.iter().map(Vec::len).sum::<usize>());
        let weights = sketch.levels.iter().enumerate().map(|(n, level)| (level.len() as u64) << n);
        assert_eq!(weights.sum::<u64>(), count);
        assert!(sketch.kept < 4 * WIDTH, "{} values are kept", sketch.kept);
    }

    proptest! {
        #[test]
        fn small_sketch_is_exact_under_any_partitioning(
            values in prop::collection::vec((-50..50_i32, 0..3_usize), 1..400),
            fraction in 0.0..=1.0_f64,
        ) {
            let mut merged = Sketch::default();
            for part in 0..3 {
                let own = values.iter().filter(|(_, of)| *of == part);
                merged.merge(&sketch(own.map(|(value, _)| f64::from(*value))));
            }
            check(&merged, values.len() as u64);
            let mut sorted: Vec<i32> = values.iter().map(|(value, _)| *value).collect();
            sorted.sort_unstable();
            let rank = ((fraction * sorted.len() as f64).ceil() as usize).max(1);
            prop_assert_eq!(merged.quantile(fraction), Some(f64::from(sorted[rank - 1])));
            prop_assert_eq!(Sketch::from_bytes(&merged.to_bytes()), Some(merged));
        }
    }

    #[test]
    fn large_sketch_stays_within_error_bound() {
        let count = 300_000_u64;
        let scattered = |n: u64| ((n * 104_729) % count) as f64;
        let sorted = sketch((0..count).map(|n| n as f64));
        let whole = sketch((0..count).map(scattered));
        let mut merged = Sketch::default();
        for part in 0..7 {
            merged.merge(&sketch((0..count).filter(|n| n % 7 == part).map(scattered)));
        }
        for sketch in [sorted, whole, merged] {
            check(&sketch, count);
            for percent in 0..=100 {
                let fraction = f64::from(percent) / 100.0;
                let rank = sketch.quantile(fraction).unwrap() / count as f64;
                assert!((rank - fraction).abs() < 0.01, "{rank} for {fraction}");
            }
        }
    }

    #[test]
    fn corrupt_sketch_state_is_rejected() {
        let whole = sketch((0..5_000).map(f64::from)).to_bytes();
        assert!(Sketch::from_bytes(&whole).is_some());
        for bytes in [&[][..], &[0, 1], &[0, 1, 0, 0, 0, 9], &whole[..whole.len() - 1]] {
            assert_eq!(Sketch::from_bytes(bytes), None);
        }
    }
}
