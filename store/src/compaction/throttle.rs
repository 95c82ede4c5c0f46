//! Throughput limit of compactions, by a token bucket.

/// Microseconds of the rate that may accumulate while nothing runs.
const BURST_MICROS: i64 = 250_000;

/// Token bucket that may be overdrawn by a single request.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenBucket {
    /// Available bytes; negative when overdrawn.
    available: i64,
    filled_micros: i64,
}

impl TokenBucket {
    /// Takes bytes at a rate of bytes per second, and returns the microseconds that the caller
    /// must wait before it continues.
    pub fn take(&mut self, bytes: u64, rate: u64, now_micros: i64) -> u64 {
        let rate = i128::from(rate.max(1));
        let passed = now_micros.saturating_sub(self.filled_micros).max(0);
        self.filled_micros = now_micros;
        let burst = rate * i128::from(BURST_MICROS) / 1_000_000;
        let filled = i128::from(self.available) + rate * i128::from(passed) / 1_000_000;
        let left = filled.min(burst) - i128::from(bytes);
        self.available = i64::try_from(left).unwrap_or(i64::MIN);
        if left >= 0 { 0 } else { u64::try_from(-left * 1_000_000 / rate).unwrap_or(u64::MAX) }
    }
}

/// Returns the rate between two limits for a pressure: 0 when no store has more files than a
/// merge needs, 1 when one has so many that writers wait. `None` above: no limit.
pub fn rate(low: u64, high: u64, pressure: f64) -> Option<u64> {
    if pressure > 1.0 {
        return None;
    }
    let span = high.saturating_sub(low) as f64;
    Some(low + (span * pressure.max(0.0)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bucket_refills_over_time() {
        let mut bucket = TokenBucket::default();
        let second = 1_000_000;
        assert_eq!(bucket.take(100, 1000, 100 * second), 0, "saved up");
        assert_eq!(bucket.take(150, 1000, 100 * second), 0);
        assert_eq!(bucket.take(500, 1000, 100 * second), 500_000, "overdrawn by half a second");
        assert_eq!(bucket.take(0, 1000, 100 * second + 400_000), 100_000);
        assert_eq!(bucket.take(0, 1000, 100 * second + 500_000), 0);
        assert_eq!(bucket.take(251, 1000, 200 * second), 1000, "no more than a quarter is saved");
        assert_eq!(bucket.take(0, 1000, 50 * second), 1000, "a clock that goes back adds nothing");
    }

    #[test]
    fn pressure_raises_compaction_rate() {
        assert_eq!(rate(50, 100, 0.0), Some(50));
        assert_eq!(rate(50, 100, 0.5), Some(75));
        assert_eq!(rate(50, 100, -2.0), Some(50));
        assert_eq!(rate(50, 100, 1.1), None);
    }
}
