//! Compressed set of ascending numbers that mostly have equal distances, such as the numbers of
//! the edits that a statement stages for each of its rows.

/// A set of numbers, added in ascending order.
#[derive(Default)]
pub(crate) struct ProgressionSet {
    runs: Vec<Progression>,
}

/// The numbers `first`, `first + step`, …, `count` of them.
struct Progression {
    first: u64,
    step: u64,
    count: u64,
}

impl Progression {
    fn last(&self) -> u64 {
        self.first + self.step * (self.count - 1)
    }
}

impl ProgressionSet {
    /// Adds a number that is above all others.
    pub(crate) fn push(&mut self, number: u64) {
        debug_assert!(self.runs.last().is_none_or(|run| run.last() < number), "numbers ascend");
        if let Some(run) = self.runs.last_mut() {
            let distance = number - run.last();
            if run.count == 1 || run.step == distance {
                run.step = distance;
                run.count += 1;
                return;
            }
        }
        self.runs.push(Progression { first: number, step: 1, count: 1 });
    }

    /// Returns whether the set contains a number.
    pub(crate) fn contains(&self, number: u64) -> bool {
        let index = self.runs.partition_point(|run| run.last() < number);
        let Some(run) = self.runs.get(index) else { return false };
        number >= run.first && (number - run.first).is_multiple_of(run.step)
    }

    /// Removes the numbers above `last`.
    pub(crate) fn truncate(&mut self, last: u64) {
        self.runs.truncate(self.runs.partition_point(|run| run.first <= last));
        if let Some(run) = self.runs.last_mut() {
            run.count = run.count.min((last - run.first) / run.step + 1);
        }
    }

    /// Returns the bytes of memory that the set takes.
    pub(crate) fn held_bytes(&self) -> u64 {
        size_of_val(&*self.runs) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_progression_set_contains_earlier_numbers() {
        let numbers = [3, 5, 7, 9, 10, 20, 30, 31, 32, 40];
        for last in 0..=41 {
            let mut set = ProgressionSet::default();
            numbers.into_iter().for_each(|number| set.push(number));
            set.truncate(last);
            for number in 0..=41 {
                let expected = number <= last && numbers.contains(&number);
                assert_eq!(set.contains(number), expected, "{number} up to {last}");
            }
            set.push(50);
            assert!(set.contains(50) && !set.contains(49));
        }
    }

    #[test]
    fn evenly_spaced_numbers_use_constant_memory() {
        let mut set = ProgressionSet::default();
        (0..100_000).for_each(|row| set.push(3 * row + 1));
        assert!(set.held_bytes() < 100);
        assert!(set.contains(299_998) && !set.contains(299_999));
    }
}
