//! The Kolmogorov-Smirnov distance of values from the uniform distribution on [0, 1], in constant memory. By
//! the probability integral transform it is also the distance of gaps from any known distribution: for a
//! Poisson process `u = 1 - exp(-m)`, where `m` is the expected count in the gap. Knows nothing of arrivals.

use super::Sum;

/// Values are counted in cells of equal width, so the distance found is that at their borders:
/// never more than the true one, and less by no more than the width of a cell, 1/16384 = 0.00006
/// (between two borders the empirical distribution rises at most to its value at the upper one,
/// while the uniform rises by one cell).
const CELLS: usize = 16_384;

/// From where on the distance is given besides.
const MIN_VALUES: [f64; 9] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];

/// Values on [0, 1], counted in cells of equal width.
#[derive(Debug, Clone, Default)]
pub struct Uniformity {
    /// Taken with the first value.
    cells: Option<Box<[u64]>>,
    count: u64,
}

impl Uniformity {
    /// Counts a gap of a Poisson process in which so many arrivals were expected.
    #[inline]
    pub fn record_gap(&mut self, expected: f64) {
        let value = -(-expected).exp_m1();
        let cells = self
            .cells
            .get_or_insert_with(|| vec![0; CELLS].into_boxed_slice());
        cells[((value * CELLS as f64) as usize).min(CELLS - 1)] += 1;
        self.count += 1;
    }

    /// How many values lie in each cell; empty without values.
    pub fn cells(&self) -> Vec<u64> {
        self.cells.as_deref().map_or_else(Vec::new, <[u64]>::to_vec)
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest difference between the empirical distribution and the uniform one; `None` without values.
    pub fn distance(&self) -> Option<f64> {
        self.distance_from(0.0)
    }

    /// The same, looked for from this value on: what moves among smaller values does not count.
    pub fn distance_from(&self, min: f64) -> Option<f64> {
        let cells = self.cells.as_ref()?;
        let mut below = 0u64;
        let mut distance: f64 = 0.0;
        for (index, cell) in cells.iter().enumerate() {
            below += cell;
            let uniform = (index + 1) as f64 / CELLS as f64;
            if uniform >= min {
                distance = distance.max((below as f64 / self.count as f64 - uniform).abs());
            }
        }
        Some(distance)
    }

    /// `[min, distance from it on]` for each of [`MIN_VALUES`]; empty without values.
    pub fn distances(&self) -> Vec<[f64; 2]> {
        let from = |min| Some([min, self.distance_from(min)?]);
        MIN_VALUES.into_iter().filter_map(from).collect()
    }
}

impl Sum for Uniformity {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        match (&mut self.cells, &other.cells) {
            (Some(mine), Some(theirs)) => {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    *mine += theirs;
                }
            }
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    /// The distance by its definition, from all values in order.
    fn exact(values: &[f64]) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        sorted
            .iter()
            .enumerate()
            .fold(0.0, |distance: f64, (index, value)| {
                distance
                    .max((index + 1) as f64 / count - value)
                    .max(value - index as f64 / count)
            })
    }

    #[test]
    fn the_distance_is_the_exact_one_less_at_most_a_cell() {
        let mut rng = SmallRng::seed_from_u64(3);
        for bend in [1.0, 1.05, 2.0] {
            let mut found = Uniformity::default();
            let mut values = Vec::new();
            for _ in 0..5000 {
                let value = rng.random::<f64>().powf(bend);
                let expected = -(-value).ln_1p();
                values.push(value);
                found.record_gap(expected);
            }
            let (exact, found) = (exact(&values), found.distance().unwrap());
            assert!(
                found <= exact + 1e-9 && found >= exact - 1.0 / CELLS as f64 - 1e-9,
                "{found} {exact}"
            );
        }
    }

    #[test]
    fn exponential_gaps_are_near_and_equal_gaps_far() {
        let mut rng = SmallRng::seed_from_u64(5);
        let (mut poisson, mut constant) = (Uniformity::default(), Uniformity::default());
        let count = 20_000;
        for _ in 0..count {
            poisson.record_gap(-(-rng.random::<f64>()).ln_1p());
            constant.record_gap(1.0);
        }
        // The value exceeded once in a billion.
        assert!(poisson.distance().unwrap() < 3.27 / f64::from(count).sqrt());
        // All at 1 - 1/e.
        assert!((constant.distance().unwrap() - 0.632).abs() < 0.001);
    }

    #[test]
    fn what_small_values_do_among_themselves_is_not_in_the_distance_from_above_them() {
        let mut rng = SmallRng::seed_from_u64(7);
        let (mut moved, mut bent) = (Uniformity::default(), Uniformity::default());
        let count = 50_000;
        for _ in 0..count {
            let value: f64 = rng.random();
            let expected = |value: f64| -(-value).ln_1p();
            moved.record_gap(expected(if value < 0.03 { 0.029 } else { value }));
            bent.record_gap(expected(value.powf(1.1)));
        }
        let min = 1.63 / f64::from(count).sqrt();
        assert!(moved.distance().unwrap() > 0.028);
        assert!(moved.distance_from(0.05).unwrap() < min);
        assert!(bent.distance_from(0.05).unwrap() > 3.0 * min);
        let distances = moved.distances();
        assert_eq!(distances.len(), MIN_VALUES.len());
        assert!(distances.windows(2).all(|pair| pair[0][1] >= pair[1][1]));
        assert!(Uniformity::default().distances().is_empty());
    }

    #[test]
    fn sums_hold_all_values() {
        let (mut sum, mut part) = (Uniformity::default(), Uniformity::default());
        assert_eq!(sum.distance(), None);
        part.record_gap(0.0);
        part.record_gap(f64::INFINITY);
        sum.add(&part);
        sum.add(&part);
        assert_eq!(sum.count(), 4);
        assert!((sum.distance().unwrap() - 0.5).abs() < 0.001);
    }
}
