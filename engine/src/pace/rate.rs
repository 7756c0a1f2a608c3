//! A rate of arrivals over time: phases one after the other, each level, rising, falling or a
//! pause. Its integral and the inverse of that are closed forms, so when something is due follows
//! from its number alone. No clock is read here.

/// A stretch of time over which the rate changes linearly; a pause has the rate 0 at both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateStretch {
    pub duration_ns: u64,
    pub from_per_s: f64,
    pub to_per_s: f64,
}

/// One phase with what came before it. Rates are per nanosecond.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from_ns: u64,
    to_ns: u64,
    /// Expected arrivals before the piece and before its end.
    before: f64,
    until: f64,
    rate: f64,
    /// Change of the rate per nanosecond.
    slope: f64,
}

/// The rate of arrivals over time, and its integral.
#[derive(Debug, Clone)]
pub struct Rate {
    pieces: Vec<Piece>,
    /// Two expected counts that differ by less are the same: sums of products of decimal fractions
    /// are a little off.
    tolerance: f64,
}

impl Rate {
    pub fn new(phases: &[RateStretch]) -> Self {
        let mut pieces = Vec::with_capacity(phases.len());
        let (mut from_ns, mut before) = (0u64, 0.0);
        for phase in phases.iter().filter(|phase| phase.duration_ns > 0) {
            let length = phase.duration_ns as f64;
            let (from, to) = (phase.from_per_s * 1e-9, phase.to_per_s * 1e-9);
            let piece = Piece {
                from_ns,
                to_ns: from_ns.saturating_add(phase.duration_ns),
                before,
                until: before + (from + to) / 2.0 * length,
                rate: from,
                slope: (to - from) / length,
            };
            (from_ns, before) = (piece.to_ns, piece.until);
            pieces.push(piece);
        }
        Self {
            pieces,
            tolerance: 1e-9 * before.max(1.0),
        }
    }

    /// When the last phase ends, after the start.
    pub fn end_ns(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.to_ns)
    }

    /// Expected arrivals of all phases.
    pub fn total(&self) -> f64 {
        self.pieces.last().map_or(0.0, |piece| piece.until)
    }

    /// Expected arrivals up to a time after the start: the integral of the rate, `r0 t + (r1 - r0)
    /// t² / 2T` within a phase.
    pub fn expected(&self, elapsed_ns: u64) -> f64 {
        let at = self
            .pieces
            .partition_point(|piece| piece.to_ns <= elapsed_ns);
        self.pieces.get(at).map_or(self.total(), |piece| {
            let t = (elapsed_ns - piece.from_ns) as f64;
            (piece.before + piece.rate * t + piece.slope / 2.0 * t * t)
                .clamp(piece.before, piece.until)
        })
    }

    /// When the expected arrivals first exceed this count: the inverse of [`Self::expected`],
    /// `None` when they never do. What is due at the border of a pause is due at its end.
    pub fn when_ns(&self, count: f64) -> Option<u64> {
        let at = self
            .pieces
            .partition_point(|piece| piece.until <= count + self.tolerance);
        let piece = self.pieces.get(at)?;
        let missing = (count - piece.before).max(0.0);
        // The root of the quadratic in the form that loses no digits when the rate hardly changes.
        let root = (piece.rate * piece.rate + 2.0 * piece.slope * missing)
            .max(0.0)
            .sqrt();
        let t = if missing > 0.0 {
            2.0 * missing / (piece.rate + root)
        } else {
            0.0
        };
        let rounded = piece.from_ns.saturating_add(t.round() as u64);
        Some(rounded.min(piece.to_ns))
    }
}

#[cfg(test)]
#[path = "rate_tests.rs"]
pub(super) mod tests;
