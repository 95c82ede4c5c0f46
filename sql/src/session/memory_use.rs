//! Memory account of a session, and memory checks before parsing and execution.

use std::sync::atomic::Ordering;

use store::memory;
use store::memory::AccountId;

use crate::error::{Error, Result};
use crate::memory_governor;
use crate::parser::constant_runs;
use crate::rows::{out_of_memory, with_cancel_reason};
use crate::session::Session;
use crate::timer::MemoryShortage;

/// Token count below which a text is not checked.
const FEW_TOKENS: usize = 50_000;
/// Bytes that a token takes at most while it is parsed: the token and its share of two trees.
const TOKEN_BYTES: usize = 400;
/// The same for each constant of a long list, on average.
const CONSTANT_BYTES: usize = 80;

impl Session {
    /// Returns the memory account of the session, for the thread that executes its statements.
    pub fn memory_account(&self) -> AccountId {
        self.activity.account()
    }

    /// Fails if the memory limit is exceeded and this session is one of the largest: parsing and
    /// planning come before a statement can be cancelled.
    pub(super) fn check_memory(&self) -> Result<()> {
        // The governor does the same, but may be late on a busy machine.
        if memory::is_near_limit() {
            memory_governor::forget_plans(&self.engine);
        }
        match memory::is_exceeded() {
            true => memory_governor::check_session(&self.engine, &self.activity),
            false => Ok(()),
        }
    }

    /// Fails if the running statement was cancelled. For a caller that feeds data to it.
    ///
    /// # Errors
    ///
    /// 57014, 53200 or 57P01, by the reason.
    pub fn check_stopped(&self) -> Result<()> {
        if !self.stop.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(with_cancel_reason(
            err!(QUERY_CANCELED: "canceling statement due to user request"),
            &self.stop,
        ))
    }
}

/// Fails if parsing a text would need more than the free memory: parsing cannot be cancelled.
pub(super) fn check_text(text: &str) -> Result<()> {
    if text.len() <= FEW_TOKENS || memory::limit().is_none() {
        return Ok(());
    }
    let (mut tokens, mut constants, mut at) = (0, 0, 0);
    for run in constant_runs::find(text) {
        tokens += count_tokens(&text.as_bytes()[at..run.range.start]);
        constants += run.constant_count;
        at = run.range.end;
    }
    tokens += count_tokens(&text.as_bytes()[at..]);
    let (bytes, free) = (tokens * TOKEN_BYTES + constants * CONSTANT_BYTES, memory::free_bytes());
    if tokens + constants <= FEW_TOKENS || bytes <= free {
        return Ok(());
    }
    let detail = format!(
        "Parsing about {tokens} tokens and lists of {constants} constants requires {} MiB, but \
         only {} MiB are free.",
        bytes >> 20,
        free >> 20
    );
    Err(out_of_memory(MemoryShortage { detail }))
}

/// Returns an estimate of the number of tokens: words, signs, and quoted texts.
fn count_tokens(text: &[u8]) -> usize {
    let (mut count, mut in_word, mut quote) = (0, false, None);
    for &byte in text {
        if let Some(end) = quote {
            quote = Some(end).filter(|end| *end != byte);
            continue;
        }
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        let begins = match is_word {
            true => !in_word,
            false => !byte.is_ascii_whitespace(),
        };
        count += usize::from(begins);
        in_word = is_word;
        quote = Some(byte).filter(|byte| matches!(byte, b'\'' | b'"'));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::count_tokens;

    #[test]
    fn token_count_covers_words_operators_and_quotes() {
        assert_eq!(count_tokens(b"SELECT  a1, 'b, ''c' FROM \"d e\" WHERE x<(3)"), 13);
        assert_eq!(count_tokens(b""), 0);
    }
}
