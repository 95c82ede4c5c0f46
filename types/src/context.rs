//! Evaluation context of expressions: everything but the input row.
//!
//! It is a plain value, so that it can be sent to a region with an expression.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::interruptible::InterruptPacer;
use crate::random::Random;
use crate::text::TextStyle;

pub use crate::item_set::ItemSets;

/// The environment in which an expression is evaluated.
#[derive(Debug, Clone)]
pub struct EvalContext {
    /// Values of [`Expr::Parameter`](crate::expr::Expr::Parameter).
    pub parameters: Vec<Datum>,
    /// Settings for text conversion: the time zone, the catalog, and the interrupt flag.
    pub style: TextStyle,
    /// `statement_timestamp()`: microseconds since 2000-01-01 UTC.
    pub statement_timestamp: i64,
    /// The sequences for `nextval()` and related functions.
    pub sequences: Sequences,
    /// The generator of `random()`.
    pub random: Random,
    /// Hash tables of long constant lists, built once per execution.
    pub item_sets: ItemSets,
}

impl Default for EvalContext {
    /// Returns a context without parameters, catalog or sequences; its clock is 0.
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
    /// Returns the context for planning, before a statement runs. Long computations fail with
    /// 57014, since they could not be cancelled.
    pub fn planning() -> EvalContext {
        let interrupt = Interrupt::new(Arc::new(AtomicBool::new(true)));
        EvalContext::with_interrupt(interrupt)
    }

    /// Returns a default context with an interrupt flag.
    pub fn with_interrupt(interrupt: Interrupt) -> EvalContext {
        let mut context = EvalContext::default();
        context.style.interrupt = interrupt;
        context
    }

    /// Returns a counter that checks the interrupt flag.
    pub fn pace(&self) -> InterruptPacer<'_> {
        InterruptPacer::new(&self.style.interrupt)
    }

    /// Returns `now()`: the start of the transaction, microseconds since 2000-01-01 UTC.
    pub fn transaction_timestamp(&self) -> i64 {
        self.style.now.unwrap_or_default()
    }
}

/// The sequences of a session, by their names in SQL.
pub trait SequenceSource: Send + Sync {
    /// Advances a sequence: `nextval()`.
    ///
    /// # Errors
    ///
    /// 2200H past its end; errors of the catalog and the store.
    fn next(&self, name: &str) -> Result<i64>;

    /// Allocates `count` successive values of a sequence, and returns the first.
    ///
    /// # Errors
    ///
    /// 22023 if `count` is not positive; as [`SequenceSource::next`].
    fn next_block(&self, name: &str, count: i64) -> Result<i64>;

    /// Returns the last value that the session obtained from a sequence: `currval()`.
    ///
    /// # Errors
    ///
    /// 55000 if it has obtained none.
    fn current(&self, name: &str) -> Result<i64>;

    /// Returns the last value that the session obtained from any sequence: `lastval()`.
    ///
    /// # Errors
    ///
    /// As [`SequenceSource::current`].
    fn last(&self) -> Result<i64>;

    /// Sets a sequence: `setval()`. The next value follows `value` if `is_called`, otherwise it
    /// is `value`.
    ///
    /// # Errors
    ///
    /// 22003 for a value outside the sequence's bounds.
    fn set(&self, name: &str, value: i64, is_called: bool) -> Result<()>;
}

/// An optional [`SequenceSource`]; `None` where expressions cannot call its functions.
#[derive(Clone, Default)]
pub struct Sequences(pub Option<Arc<dyn SequenceSource>>);

impl Sequences {
    /// Returns the source.
    ///
    /// # Errors
    ///
    /// 0A000 if there is none.
    pub fn source(&self) -> Result<&dyn SequenceSource> {
        self.0
            .as_deref()
            .ok_or_else(|| err!(FEATURE_NOT_SUPPORTED: "sequences are not available here"))
    }
}

impl fmt::Debug for Sequences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Sequences" } else { "none" })
    }
}
