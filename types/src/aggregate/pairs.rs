//! Statistics of pairs of floats: `regr_*`, `corr`, `covar_pop` and `covar_samp`.
//!
//! Uses the Youngs-Cramer algorithm and its merging of states, as PostgreSQL does, so that the
//! last digit agrees. The first argument is Y, the second X; pairs with a NULL are ignored.

use super::sum::{overflow, partial_count};
use super::{Accumulator, PartialState};
use crate::datum::Datum;
use crate::error::Result;
use crate::vector::{Vector, VectorData};

/// The statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairStatistic {
    /// `corr(y, x)`
    Correlation,
    /// `covar_pop(y, x)`
    CovariancePopulation,
    /// `covar_samp(y, x)`
    CovarianceSample,
    /// `regr_avgx(y, x)`
    AverageX,
    /// `regr_avgy(y, x)`
    AverageY,
    /// `regr_count(y, x)`
    Count,
    /// `regr_intercept(y, x)`
    Intercept,
    /// `regr_r2(y, x)`
    Determination,
    /// `regr_slope(y, x)`
    Slope,
    /// `regr_sxx(y, x)`
    SquaresX,
    /// `regr_sxy(y, x)`
    Products,
    /// `regr_syy(y, x)`
    SquaresY,
}

/// All statistics with their names.
const NAMES: [(&str, PairStatistic); 12] = [
    ("corr", PairStatistic::Correlation),
    ("covar_pop", PairStatistic::CovariancePopulation),
    ("covar_samp", PairStatistic::CovarianceSample),
    ("regr_avgx", PairStatistic::AverageX),
    ("regr_avgy", PairStatistic::AverageY),
    ("regr_count", PairStatistic::Count),
    ("regr_intercept", PairStatistic::Intercept),
    ("regr_r2", PairStatistic::Determination),
    ("regr_slope", PairStatistic::Slope),
    ("regr_sxx", PairStatistic::SquaresX),
    ("regr_sxy", PairStatistic::Products),
    ("regr_syy", PairStatistic::SquaresY),
];

impl PairStatistic {
    /// Returns the statistic of this name.
    pub fn from_name(name: &str) -> Option<PairStatistic> {
        NAMES.iter().find(|(other, _)| *other == name).map(|(_, statistic)| *statistic)
    }

    /// Returns the names of all statistics.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|(_, statistic)| *statistic == self);
        found.map_or("", |(name, _)| *name)
    }
}

/// Accumulated moments of the pairs of a group.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    sum_x: f64,
    /// Sum of the squares of the differences from the mean.
    squares_x: f64,
    sum_y: f64,
    squares_y: f64,
    /// Sum of the products of the differences from the means.
    products: f64,
}

impl Moments {
    fn add(&mut self, x: f64, y: f64) -> Result<()> {
        let before = *self;
        self.count += 1.0;
        self.sum_x += x;
        self.sum_y += y;
        if before.count == 0.0 {
            if !x.is_finite() {
                (self.squares_x, self.products) = (f64::NAN, f64::NAN);
            }
            if !y.is_finite() {
                (self.squares_y, self.products) = (f64::NAN, f64::NAN);
            }
            return Ok(());
        }
        let difference_x = x * self.count - self.sum_x;
        let difference_y = y * self.count - self.sum_y;
        let scale = 1.0 / (self.count * before.count);
        self.squares_x += difference_x * difference_x * scale;
        self.squares_y += difference_y * difference_y * scale;
        self.products += difference_x * difference_y * scale;
        let finite_x = !before.sum_x.is_infinite() && !x.is_infinite();
        let finite_y = !before.sum_y.is_infinite() && !y.is_infinite();
        let overflows = ((self.sum_x.is_infinite() || self.squares_x.is_infinite()) && finite_x)
            || ((self.sum_y.is_infinite() || self.squares_y.is_infinite()) && finite_y)
            || (self.products.is_infinite() && finite_x && finite_y);
        if overflows {
            return Err(overflow());
        }
        for part in [&mut self.squares_x, &mut self.squares_y, &mut self.products] {
            if part.is_infinite() {
                *part = f64::NAN;
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Moments) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = other;
            return Ok(());
        }
        let count = self.count + other.count;
        let weight = self.count * other.count;
        let difference_x = self.sum_x / self.count - other.sum_x / other.count;
        let difference_y = self.sum_y / self.count - other.sum_y / other.count;
        let sum = |a: f64, b: f64, between: f64| {
            let sum = a + b + between;
            match sum.is_infinite() && a.is_finite() && b.is_finite() {
                true => Err(overflow()),
                false => Ok(sum),
            }
        };
        *self = Moments {
            count,
            sum_x: sum(self.sum_x, other.sum_x, 0.0)?,
            squares_x: sum(
                self.squares_x,
                other.squares_x,
                weight * difference_x * difference_x / count,
            )?,
            sum_y: sum(self.sum_y, other.sum_y, 0.0)?,
            squares_y: sum(
                self.squares_y,
                other.squares_y,
                weight * difference_y * difference_y / count,
            )?,
            products: sum(
                self.products,
                other.products,
                weight * difference_x * difference_y / count,
            )?,
        };
        Ok(())
    }

    fn result(&self, statistic: PairStatistic) -> Option<f64> {
        let Moments { count, sum_x, squares_x, sum_y, squares_y, products } = *self;
        if count < 1.0 {
            return None;
        }
        let of_line = |value: f64| (squares_x != 0.0).then_some(value);
        match statistic {
            PairStatistic::Count => Some(count),
            PairStatistic::SquaresX => Some(squares_x),
            PairStatistic::SquaresY => Some(squares_y),
            PairStatistic::Products => Some(products),
            PairStatistic::AverageX => Some(sum_x / count),
            PairStatistic::AverageY => Some(sum_y / count),
            PairStatistic::CovariancePopulation => Some(products / count),
            PairStatistic::CovarianceSample => (count >= 2.0).then(|| products / (count - 1.0)),
            PairStatistic::Correlation => {
                let varies = squares_x != 0.0 && squares_y != 0.0;
                varies.then(|| products / (squares_x * squares_y).sqrt())
            }
            PairStatistic::Determination if squares_y == 0.0 => of_line(1.0),
            PairStatistic::Determination => {
                of_line((products * products) / (squares_x * squares_y))
            }
            PairStatistic::Slope => of_line(products / squares_x),
            PairStatistic::Intercept => of_line((sum_y - sum_x * products / squares_x) / count),
        }
    }
}

/// One statistic of all groups.
pub(super) struct PairMoments {
    statistic: PairStatistic,
    groups: Vec<Moments>,
}

impl PairMoments {
    pub(super) fn new(statistic: PairStatistic) -> PairMoments {
        PairMoments { statistic, groups: Vec::new() }
    }
}

impl Accumulator for PairMoments {
    fn resize(&mut self, group_count: usize) {
        self.groups.resize(group_count, Moments::default());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let [y, x] = arguments else { panic!("a pair has two arguments") };
        let (VectorData::Float8(ys), VectorData::Float8(xs)) = (&y.data, &x.data) else {
            panic!("pairs are cast to double precision");
        };
        for (row, &group) in groups.iter().enumerate() {
            let moments = &mut self.groups[group as usize];
            match y.is_null(row) || x.is_null(row) {
                true => {}
                false if self.statistic == PairStatistic::Count => moments.count += 1.0,
                false => moments.add(xs[row], ys[row])?,
            }
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let Moments { count, sum_x, squares_x, sum_y, squares_y, products } = self.groups[group];
        let sums = [sum_x, squares_x, sum_y, squares_y, products].map(Datum::Float8);
        Ok([Datum::Int8(count as i64)].into_iter().chain(sums).collect())
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        let sum = |index: usize| partial[index].as_f64().unwrap_or(0.0);
        self.groups[group].merge(Moments {
            count: partial_count(&partial[0]) as f64,
            sum_x: sum(1),
            squares_x: sum(2),
            sum_y: sum(3),
            squares_y: sum(4),
            products: sum(5),
        })
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let moments = &self.groups[group];
        Ok(match (self.statistic, moments.result(self.statistic)) {
            (PairStatistic::Count, count) => Datum::Int8(count.unwrap_or(0.0) as i64),
            (_, Some(value)) => Datum::Float8(value),
            (_, None) => Datum::Null,
        })
    }

    fn byte_count(&self) -> usize {
        self.groups.capacity() * size_of::<Moments>()
    }
}
