//! What an evaluation knows beside its input row.
//!
//! A plain value, so that it can travel to a region with the expression that needs it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::datum::Datum;
use crate::error::{Error, Result, sqlstate};
use crate::interrupt::Interrupt;
use crate::pieces::Pace;
use crate::random::Random;
use crate::text::TextStyle;

pub use crate::item_set::ItemSets;

/// What an evaluation may know beside its row.
#[derive(Debug, Clone)]
pub struct EvalContext {
    /// Values of [`Expr::Parameter`](crate::expr::Expr::Parameter).
    pub parameters: Vec<Datum>,
    /// What the text of values depends on: the time zone, the catalog, and the flag that ends what
    /// takes long.
    pub style: TextStyle,
    /// `statement_timestamp()`: microseconds since 2000-01-01 UTC.
    pub statement_timestamp: i64,
    /// The sequences that `nextval()` and its kin know.
    pub sequences: Sequences,
    /// What `random()` draws from.
    pub random: Random,
    /// The hash tables of long lists of constants, made once for an execution.
    pub item_sets: ItemSets,
}

impl Default for EvalContext {
    /// Returns one that knows nothing; its clock stands at the beginning.
    fn default() -> EvalContext {
        EvalContext {
            parameters: Vec::new(),
            style: TextStyle { now: Some(0), ..TextStyle::default() },
            statement_timestamp: 0,
            sequences: Sequences::default(),
            random: Random::default(),
            item_sets: ItemSets::default(),
        }
    }
}

impl EvalContext {
    /// Returns what is known before a statement runs: nothing; and nobody could cancel what takes
    /// long, so that fails with 57014.
    pub fn hasty() -> EvalContext {
        let interrupt = Interrupt::new(Arc::new(AtomicBool::new(true)));
        EvalContext::stopped_by(interrupt)
    }

    /// Returns one that knows nothing but what ends it.
    pub fn stopped_by(interrupt: Interrupt) -> EvalContext {
        let mut context = EvalContext::default();
        context.style.interrupt = interrupt;
        context
    }

    /// Returns what counts the steps of a computation, and ends it when the flag is set.
    pub fn pace(&self) -> Pace<'_> {
        Pace::new(&self.style.interrupt)
    }

    /// Returns `now()`: the start of the transaction, microseconds since 2000-01-01 UTC.
    pub fn transaction_timestamp(&self) -> i64 {
        self.style.now.unwrap_or_default()
    }
}

/// Sequences as a session sees them, by the text that names them in SQL.
pub trait SequenceSource: Send + Sync {
    /// Advances a sequence: `nextval()`.
    ///
    /// # Errors
    ///
    /// 2200H past its end; what looking it up and storing it raises.
    fn next(&self, name: &str) -> Result<i64>;

    /// Returns what the session got from a sequence last: `currval()`.
    ///
    /// # Errors
    ///
    /// 55000 if it got nothing yet.
    fn current(&self, name: &str) -> Result<i64>;

    /// Returns what the session got last from any sequence: `lastval()`.
    ///
    /// # Errors
    ///
    /// As [`SequenceSource::current`].
    fn last(&self) -> Result<i64>;

    /// Sets a sequence: `setval()`. The next value is the one behind `value` if that counts as
    /// called, else `value`.
    ///
    /// # Errors
    ///
    /// 22003 for a value that the sequence does not have.
    fn set(&self, name: &str, value: i64, is_called: bool) -> Result<()>;
}

/// A [`SequenceSource`], or none: where expressions are computed that call no such function.
#[derive(Clone, Default)]
pub struct Sequences(pub Option<Arc<dyn SequenceSource>>);

impl Sequences {
    /// Returns the source.
    ///
    /// # Errors
    ///
    /// 0A000 if there is none.
    pub fn source(&self) -> Result<&dyn SequenceSource> {
        self.0.as_deref().ok_or_else(|| {
            Error::new(sqlstate::FEATURE_NOT_SUPPORTED, "sequences cannot be used here")
        })
    }
}

impl fmt::Debug for Sequences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Sequences" } else { "none" })
    }
}
