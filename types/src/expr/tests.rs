//! Tests of expressions: batch path against row path, folding, text output, analysis.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::batch;
use super::{CompareOp, EvalContext, Expr};
use crate::datatype::DataType::Timestamp;
use crate::datatype::DataType::{self, Bool, Char, Date, Float8, Int2, Int4, Int8, Numeric, Text};
use crate::datatype::SqlType;
use crate::datum::Datum;
use crate::function;
use crate::interrupt::Interrupt;
use crate::numeric;
use crate::vector::Batch;

/// The columns of the random batches.
const COLUMNS: [DataType; 10] = [Int4, Int4, Int8, Int2, Float8, Text, Bool, Numeric, Date, Char];

/// A small random number generator (splitmix64), so that a seed determines a case.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize].clone()
    }

    fn integer(&mut self) -> i64 {
        match self.below(12) {
            0 => i64::MAX,
            1 => i64::MIN,
            2 => 0,
            _ => self.below(9) as i64 - 4,
        }
    }

    fn value(&mut self, data_type: &DataType) -> Datum {
        if self.below(6) == 0 {
            return Datum::Null;
        }
        let n = self.integer();
        match data_type {
            Bool => Datum::Bool(n > 0),
            Int2 => Datum::Int2(n.clamp(i16::MIN.into(), i16::MAX.into()) as i16),
            Int4 => Datum::Int4(n.clamp(i32::MIN.into(), i32::MAX.into()) as i32),
            Int8 => Datum::Int8(n),
            Float8 => Datum::Float8(self.pick(&[0.0, -0.0, 1.5, -2.0, f64::NAN, f64::MAX, 1e-300])),
            Numeric => Datum::Numeric(numeric::Numeric::from_mantissa(n.into(), n as u32 % 4)),
            Date => Datum::Date(n.clamp(-1000, 1000) as i32),
            Text => Datum::text(self.pick(&["", "a", "ab", "b%", "B", "ä", "a b"])),
            Char => Datum::text(self.pick(&["a  ", "a", "b ", "  "])),
            other => panic!("no random values of {other:?}"),
        }
    }

    /// Returns a random expression of a type, at most `depth` deep.
    fn expr(&mut self, data_type: &DataType, depth: u32) -> Expr {
        if depth == 0 || self.below(8) == 0 {
            let columns: Vec<usize> =
                (0..COLUMNS.len()).filter(|i| COLUMNS[*i] == *data_type).collect();
            if columns.is_empty() || self.below(4) == 0 {
                return Expr::constant(self.value(data_type), data_type);
            }
            return Expr::column(self.pick(&columns), data_type);
        }
        let depth = depth - 1;
        match self.below(10) {
            0 => self.case(data_type, depth),
            1 => {
                let operands = (0..3).map(|_| self.expr(data_type, depth)).collect();
                Expr::Coalesce { operands, data_type: data_type.clone() }
            }
            _ if *data_type == Bool => self.condition(depth),
            2 => self.cast(data_type, depth),
            _ => self.call(data_type, depth),
        }
    }

    fn case(&mut self, data_type: &DataType, depth: u32) -> Expr {
        let branches =
            (0..2).map(|_| (self.expr(&Bool, depth), self.expr(data_type, depth))).collect();
        let otherwise = Box::new(self.expr(data_type, depth));
        Expr::Case { branches, otherwise, data_type: data_type.clone() }
    }

    fn cast(&mut self, data_type: &DataType, depth: u32) -> Expr {
        let from = match data_type {
            Int2 | Int4 | Int8 | Float8 | Numeric => {
                self.pick(&[Int2, Int4, Int8, Float8, Numeric])
            }
            Text => self.pick(&COLUMNS),
            other => other.clone(),
        };
        Expr::Cast {
            operand: Box::new(self.expr(&from, depth)),
            from,
            to: SqlType::from(data_type),
            explicit: true,
        }
    }

    fn condition(&mut self, depth: u32) -> Expr {
        let data_type = self.pick(&COLUMNS);
        match self.below(8) {
            0 => Expr::And((0..3).map(|_| self.expr(&Bool, depth)).collect()),
            1 => Expr::Or((0..3).map(|_| self.expr(&Bool, depth)).collect()),
            2 => Expr::Not(Box::new(self.expr(&Bool, depth))),
            3 => Expr::IsNull(Box::new(self.expr(&data_type, depth))),
            4 => Expr::IsDistinct {
                left: Box::new(self.expr(&data_type, depth)),
                right: Box::new(self.expr(&data_type, depth)),
                negated: self.below(2) == 0,
            },
            5 => {
                let operand = Box::new(self.expr(&data_type, depth));
                let simple = self.below(2) == 0;
                let item = |random: &mut Random| {
                    if simple {
                        Expr::constant(random.value(&data_type), data_type)
                    } else {
                        random.expr(&data_type, depth.min(1))
                    }
                };
                let list = Arc::new((0..self.below(12)).map(|_| item.clone()(self)).collect());
                Expr::InList { operand, list }
            }
            _ => self.call(&Bool, depth),
        }
    }

    /// Returns a call of a random function with this result type, over types of the columns.
    fn call(&mut self, data_type: &DataType, depth: u32) -> Expr {
        let fits = |signature: &&function::Signature| {
            signature.result == *data_type
                && signature.volatility == function::Volatility::Immutable
                && signature.arguments.iter().all(|argument| COLUMNS.contains(argument))
                && !["repeat", "lpad", "rpad", "exp", "power", "pow", "^"].contains(&signature.name)
        };
        let operators: Vec<&function::Signature> = function::all().iter().filter(fits).collect();
        let shaped: Vec<&function::Signature> = operators
            .iter()
            .copied()
            .filter(|signature| function::shape(signature.id) != function::KernelKind::Other)
            .collect();
        let among = if self.below(3) > 0 && !shaped.is_empty() { shaped } else { operators };
        if among.is_empty() {
            return Expr::constant(self.value(data_type), data_type);
        }
        let signature = self.pick(&among);
        let mut types = signature.arguments.to_vec();
        if let (true, Some(last)) = (signature.variadic, types.last().cloned()) {
            types.extend((0..self.below(3)).map(|_| last.clone()));
        }
        let arguments = types.iter().map(|argument| self.expr(argument, depth)).collect();
        Expr::Call { function: signature.id, arguments, data_type: data_type.clone() }
    }

    fn batch(&mut self) -> Batch {
        let row_count = self.below(24) as usize;
        let rows: Vec<Vec<Datum>> = (0..row_count)
            .map(|_| COLUMNS.iter().map(|data_type| self.value(data_type)).collect())
            .collect();
        Batch::from_rows(&COLUMNS, &rows)
    }
}

/// Returns a result in a form that can be compared: NaN equals NaN.
fn shown<T: std::fmt::Debug>(result: &T) -> String {
    format!("{result:?}")
}

#[test]
fn date_compares_with_timestamp_at_midnight() {
    let dates = [i32::MIN, -2_451_545, -1, 0, 1, 2_145_031_948, i32::MAX].map(Datum::Date);
    let day = 86_400_000_000;
    let times = [i64::MIN, -day, -1, 0, 1, day, 9_223_371_331_199_999_999, i64::MAX];
    let rows = dates
        .iter()
        .flat_map(|date| times.iter().map(|time| vec![date.clone(), Datum::Timestamp(*time)]));
    let mut rows: Vec<Vec<Datum>> = rows.collect();
    rows.push(vec![Datum::Null, Datum::Timestamp(0)]);
    rows.push(vec![Datum::Date(0), Datum::Null]);
    let batch = Batch::from_rows(&[Date, Timestamp], &rows);
    let context = EvalContext::default();
    let operators = [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt];
    for op in operators.into_iter().chain([CompareOp::Ge]) {
        let (date, time) = (Expr::column(0, Date), Expr::column(1, Timestamp));
        for (left, right) in [(&date, &time), (&time, &date)] {
            let expr = Expr::compare(op, left.clone(), right.clone());
            assert!(!batch::fails(&expr, &batch, &context));
            let found = expr.eval_batch(&batch, &context).unwrap();
            for (row, values) in rows.iter().enumerate() {
                let expected = expr.eval_row(values, &context).unwrap();
                assert_eq!(found.datum(row), expected, "{op:?} {values:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn batch_evaluation_matches_row_evaluation(seed in any::<u64>()) {
        let mut random = Random(seed);
        let context = EvalContext::default();
        let data_type = random.pick(&COLUMNS);
        let expr = random.expr(&data_type, 3);
        let batch = random.batch();
        let rows: Result<Vec<Datum>, _> =
            (0..batch.row_count).map(|i| expr.eval_row(&batch.row(i), &context)).collect();
        let columns = expr.eval_batch(&batch, &context).map(|vector| {
            (0..vector.len()).map(|index| vector.datum(index)).collect::<Vec<Datum>>()
        });
        prop_assert_eq!(shown(&rows), shown(&columns), "{:?}", &expr);
        prop_assert_eq!(
            batch::fails(&expr, &batch, &context), rows.is_err(),
            "only one path fails: {:?}", &expr
        );
        let folded = expr.clone().fold(&context);
        if let Ok(rows) = &rows {
            let folded: Result<Vec<Datum>, _> =
                (0..batch.row_count).map(|i| folded.eval_row(&batch.row(i), &context)).collect();
            prop_assert_eq!(shown(&Ok::<_, crate::Error>(rows.clone())), shown(&folded));
        }
        let columns = |index: usize| ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][index].to_owned();
        prop_assert!(!expr.describe(&columns).is_empty());
    }

    #[test]
    fn batch_filter_matches_row_evaluation(seed in any::<u64>()) {
        let mut random = Random(seed);
        let context = EvalContext::default();
        let expr = Expr::And(vec![random.expr(&Bool, 2), random.expr(&Bool, 2)]);
        let batch = random.batch();
        let rows: Result<Vec<u32>, _> = (0..batch.row_count)
            .filter_map(|i| match expr.passes_row(&batch.row(i), &context) {
                Ok(true) => Some(Ok(i as u32)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            })
            .collect();
        prop_assert_eq!(rows, expr.filter_batch(&batch, &context), "{:?}", &expr);
    }
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let types: Vec<DataType> = arguments.iter().map(Expr::data_type).cloned().collect();
    let function = function::find(name, &types).unwrap_or_else(|| panic!("{name} {types:?}"));
    let data_type = function::signature(function).result.clone();
    Expr::Call { function, arguments, data_type }
}

fn int(value: i32) -> Expr {
    Expr::constant(Datum::Int4(value), Int4)
}

#[test]
fn case_evaluates_only_selected_branch_in_batch() {
    let (a, b) = (Expr::column(0, Int4), Expr::column(1, Int4));
    let guarded = Expr::Case {
        branches: vec![(
            Expr::compare(CompareOp::Ne, b.clone(), int(0)),
            call("/", vec![a.clone(), b.clone()]),
        )],
        otherwise: Box::new(int(-1)),
        data_type: Int4,
    };
    let rows = [[6, 2], [1, 0], [9, 3]].map(|row| row.map(Datum::Int4).to_vec());
    let batch = Batch::from_rows(&[Int4, Int4], &rows);
    let context = EvalContext::default();
    let values = guarded.eval_batch(&batch, &context).unwrap();
    let values: Vec<Datum> = (0..3).map(|i| values.datum(i)).collect();
    assert_eq!(values, [3, -1, 3].map(Datum::Int4));

    let naked = call("/", vec![a, b]);
    let error = naked.eval_batch(&batch, &context).unwrap_err();
    assert_eq!((error.sqlstate, error.message.as_str()), ("22012", "division by zero"));
}

#[test]
fn first_failing_row_determines_error() {
    // Row 0 overflows in the second operand, row 1 divides by zero in the first.
    let (a, b) = (Expr::column(0, Int4), Expr::column(1, Int4));
    let expr = call("+", vec![call("/", vec![int(1), a]), call("*", vec![b.clone(), b])]);
    let rows = [[1, i32::MAX], [0, 1]].map(|row| row.map(Datum::Int4).to_vec());
    let batch = Batch::from_rows(&[Int4, Int4], &rows);
    let error = expr.eval_batch(&batch, &EvalContext::default()).unwrap_err();
    assert_eq!(error.message, "integer out of range");
}

#[test]
fn overflow_at_null_position_is_ignored() {
    let (a, b) = (Expr::column(0, Int4), Expr::column(1, Int4));
    let rows = [vec![Datum::Int4(i32::MAX), Datum::Null], vec![Datum::Int4(1), Datum::Int4(2)]];
    let batch = Batch::from_rows(&[Int4, Int4], &rows);
    let sum = call("/", vec![a, b]).eval_batch(&batch, &EvalContext::default()).unwrap();
    assert_eq!((sum.datum(0), sum.datum(1)), (Datum::Null, Datum::Int4(0)));
}

#[test]
fn expressions_are_described_as_in_explain() {
    let names = |index: usize| ["dep_delay", "carrier", "note"][index].to_owned();
    let delay = Expr::column(0, Int4);
    let carrier = Expr::column(1, Text);
    let late = Expr::compare(CompareOp::Gt, delay.clone(), int(10));
    let united =
        Expr::compare(CompareOp::Eq, carrier.clone(), Expr::constant(Datum::text("UA"), Text));
    let both = Expr::And(vec![late.clone(), united]);
    assert_eq!(both.describe(&names), "(dep_delay > 10) AND (carrier = 'UA'::text)");
    let no = Expr::Not(Box::new(Expr::IsNull(Box::new(carrier.clone()))));
    assert_eq!(no.describe(&names), "carrier IS NOT NULL");
    let cast = Expr::Cast {
        operand: Box::new(delay.clone()),
        from: Int4,
        to: SqlType::new(Numeric, ((10 << 16) | 2) + 4),
        explicit: true,
    };
    assert_eq!(cast.describe(&names), "(dep_delay)::numeric(10,2)");
    let negative = Expr::compare(CompareOp::Lt, call("abs", vec![delay]), int(-5));
    assert_eq!(negative.describe(&names), "abs(dep_delay) < '-5'::integer");
    let case = Expr::Case {
        branches: vec![(late, carrier)],
        otherwise: Box::new(Expr::constant(Datum::Null, Text)),
        data_type: Text,
    };
    let printed = "CASE WHEN (dep_delay > 10) THEN carrier ELSE NULL::text END";
    assert_eq!(case.describe(&names), printed);
}

#[test]
fn folding_evaluates_constants_and_preserves_errors() {
    let context = EvalContext::default();
    let sum = call("+", vec![int(1), call("*", vec![int(2), int(3)])]);
    assert_eq!(sum.fold(&context), int(7));
    let failing = call("/", vec![int(1), int(0)]);
    assert_eq!(failing.clone().fold(&context), failing);
    let open = Expr::compare(CompareOp::Eq, Expr::column(0, Int4), int(1));
    let yes = Expr::constant(Datum::Bool(true), Bool);
    let no = Expr::constant(Datum::Bool(false), Bool);
    assert_eq!(Expr::And(vec![yes.clone(), open.clone()]).fold(&context), open);
    assert_eq!(Expr::And(vec![open.clone(), no.clone()]).fold(&context), no);
    assert_eq!(Expr::Or(vec![open, yes.clone()]).fold(&context), yes);
    let random = call("random", vec![]);
    assert_eq!(random.clone().fold(&context), random);
}

#[test]
fn folding_records_first_unavoidable_error() {
    let error_of = |expr: Expr| {
        let mut failure = None;
        drop(expr.fold_with_error(&EvalContext::default(), &mut failure));
        failure.map(|error| error.sqlstate)
    };
    let (by_zero, out_of_range) = (Some("22012"), Some("22003"));
    let failing = call("/", vec![int(1), int(0)]);
    let too_large = call("*", vec![int(i32::MAX), int(2)]);
    let fails = Expr::compare(CompareOp::Eq, failing.clone(), int(1));
    let open = Expr::compare(CompareOp::Eq, Expr::column(0, Int4), int(1));
    let yes = Expr::constant(Datum::Bool(true), Bool);
    let no = Expr::constant(Datum::Bool(false), Bool);
    assert_eq!(error_of(call("+", vec![too_large.clone(), failing.clone()])), out_of_range);
    assert_eq!(error_of(Expr::And(vec![no.clone(), fails.clone()])), None);
    assert_eq!(error_of(Expr::And(vec![open.clone(), fails.clone(), no.clone()])), by_zero);
    assert_eq!(error_of(Expr::Or(vec![yes.clone(), fails.clone()])), None);
    assert_eq!(error_of(Expr::Or(vec![open.clone(), fails])), by_zero);
    let case = |condition: &Expr, result: &Expr, otherwise: &Expr| Expr::Case {
        branches: vec![(condition.clone(), result.clone())],
        otherwise: Box::new(otherwise.clone()),
        data_type: Int4,
    };
    assert_eq!(error_of(case(&yes, &int(1), &failing)), None);
    assert_eq!(error_of(case(&no, &failing, &int(1))), None);
    assert_eq!(error_of(case(&open, &failing, &int(1))), by_zero);
    let coalesce = |operands| error_of(Expr::Coalesce { operands, data_type: Int4 });
    assert_eq!(coalesce(vec![int(1), failing.clone()]), None);
    assert_eq!(coalesce(vec![Expr::column(0, Int4), failing.clone()]), by_zero);
    let null = Expr::constant(Datum::Null, Int4);
    assert_eq!(error_of(call("+", vec![null, failing])), by_zero);
}

#[test]
fn parameter_may_cause_constant_failure() {
    let parameter = |index| Expr::Parameter { index, data_type: Int4 };
    let fails = |expr: &Expr| expr.may_fail_by_parameters(&|index| index == 0);
    let quotient = call("/", vec![int(1), parameter(0)]);
    assert!(fails(&quotient));
    assert!(!fails(&call("/", vec![Expr::column(0, Int4), parameter(0)])));
    assert!(!fails(&call("/", vec![parameter(1), parameter(0)])));
    assert!(!fails(&Expr::compare(CompareOp::Eq, Expr::column(0, Int4), parameter(0))));
    let known = quotient.with_parameters(&|index| (index == 0).then_some(Datum::Int4(0)));
    assert_eq!(known, call("/", vec![int(1), int(0)]));
}

#[test]
fn timestamp_comparison_of_date_column_becomes_date_comparison() {
    let context = EvalContext::default();
    const DAY: i64 = 86_400_000_000;
    let days = [i32::MIN, -2, -1, 0, 1, 2, i32::MAX];
    let batch: Vec<Vec<Datum>> = days.iter().map(|&day| vec![Datum::Date(day)]).collect();
    let batch = Batch::from_rows(&[Date], &batch);
    for time in [-DAY - 1, -DAY, -1, 0, 1, DAY - 1, DAY, i64::MAX, i64::MIN] {
        for op in ["<", "<=", ">", ">=", "=", "<>"] {
            let time = Expr::constant(Datum::Timestamp(time), Timestamp);
            let date = Expr::column(0, Date);
            for sides in [vec![date.clone(), time.clone()], vec![time, date]] {
                let plain = call(op, sides);
                let folded = plain.clone().fold(&context);
                let rows = plain.filter_batch(&batch, &context);
                assert_eq!(folded.filter_batch(&batch, &context), rows, "{plain:?}");
            }
        }
    }
    let noon = Expr::constant(Datum::Timestamp(DAY / 2), Timestamp);
    let before = call("<", vec![Expr::column(0, Date), noon]).fold(&context);
    let day = Expr::constant(Datum::Date(0), Date);
    assert_eq!(before, Expr::compare(CompareOp::Le, Expr::column(0, Date), day));
}

#[test]
fn folding_strict_call_on_null_ignores_other_arguments() {
    let context = EvalContext::default();
    let null = Expr::constant(Datum::Null, Int4);
    let fails_on_a_row = call("/", vec![Expr::column(0, Int4), int(0)]);
    assert_eq!(call("+", vec![fails_on_a_row, null.clone()]).fold(&context), null);
    // An expression that fails without a row still fails.
    let fails = call("+", vec![call("/", vec![int(1), int(0)]), null]);
    assert_eq!(fails.clone().fold(&context), fails);
}

#[test]
fn expressions_are_decomposed() {
    let (a, b) = (Expr::column(3, Int4), Expr::column(1, Int8));
    let less = call("<", vec![a.clone(), b.clone()]);
    let (left, op, right) = less.as_comparison().unwrap();
    assert_eq!((left, op, right), (&a, CompareOp::Lt, &b));
    assert_eq!(op.flip(), CompareOp::Gt);
    let nested = Expr::And(vec![less.clone(), Expr::And(vec![less.clone(), less.clone()])]);
    assert_eq!(nested.columns(), [1, 3]);
    assert_eq!(nested.split_conjunction(), [less.clone(), less.clone(), less.clone()]);
    let moved = less.clone().remap_columns(&|index| index * 10);
    assert_eq!(moved.columns(), [10, 30]);
    assert!(!less.has_parameters() && less.is_immutable());
    let parameter = Expr::Parameter { index: 0, data_type: Int4 };
    assert!(Expr::compare(CompareOp::Eq, a, parameter).has_parameters());
    assert!(!call("now", vec![]).is_immutable());
    assert!(call("random", vec![]).is_volatile());
}

#[test]
fn filter_short_circuits_at_null_conjunct() {
    // NULL AND 1 / 0 = 1: an error as a value, but not as a filter.
    let null = Expr::constant(Datum::Null, Bool);
    let failing =
        Expr::compare(CompareOp::Eq, call("/", vec![int(1), Expr::column(0, Int4)]), int(1));
    let both = Expr::And(vec![null, failing]);
    let batch = Batch::from_rows(&[Int4], &[vec![Datum::Int4(0)]]);
    let context = EvalContext::default();
    assert_eq!(both.filter_batch(&batch, &context), Ok(vec![]));
    assert!(both.eval_batch(&batch, &context).is_err());
}

#[test]
fn batch_evaluation_is_interruptible() {
    let flag = Arc::new(AtomicBool::new(false));
    let interrupt = Interrupt::new(Arc::clone(&flag));
    let context = EvalContext::with_interrupt(interrupt);
    let rows: Vec<Vec<Datum>> = (0..10).map(|_| vec![Datum::text("heron")]).collect();
    let batch = Batch::from_rows(&[Text], &rows);
    let column = || Expr::Column { index: 0, data_type: Text };
    let text = |value: &str| Expr::constant(Datum::text(value), Text);
    let reversed = call("reverse", vec![column()]);
    let alike = call("~~", vec![column(), text("h%r%n")]);
    assert!(reversed.eval_batch(&batch, &context).is_ok());
    assert_eq!(alike.filter_batch(&batch, &context).unwrap().len(), 10);
    flag.store(true, Ordering::Relaxed);
    assert_eq!(reversed.eval_batch(&batch, &context).unwrap_err().sqlstate, "57014");
    assert_eq!(alike.filter_batch(&batch, &context).unwrap_err().sqlstate, "57014");
}

#[test]
fn unreadable_expression_fails_only_when_evaluated() {
    let context = EvalContext::default();
    let unreadable = Expr::Unreadable { reason: "it cannot be read".into(), data_type: Int4 };
    let unreadable = unreadable.fold(&context);
    let compared = Expr::compare(CompareOp::Eq, unreadable.clone(), int(1));
    let none = Batch::from_rows(&[Int4], &[]);
    assert_eq!(compared.eval_batch(&none, &context).unwrap().len(), 0);
    let one = Batch::from_rows(&[Int4], &[vec![Datum::Int4(0)]]);
    for error in [
        compared.eval_batch(&one, &context).unwrap_err(),
        unreadable.eval_row(&[], &context).unwrap_err(),
    ] {
        assert_eq!((error.sqlstate, error.message.as_str()), ("XX001", "it cannot be read"));
    }
}
