//! When a thread's segments are cut: interval rows aligned to the start, the edges of the window,
//! the stop. Every thread has the same schedule, so that all cut at the same instants. Pure: times
//! come in.

use super::segment::Cut;

/// A measured window, in monotonic nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub id: u32,
    pub opens_ns: u64,
    pub closes_ns: u64,
}

/// The instants of a run at which segments are cut.
#[derive(Debug, Clone)]
pub struct Schedule {
    start_ns: u64,
    interval_ns: u64,
    row: u64,
    window: Option<(Span, bool)>,
    stop_ns: u64,
    next_ns: u64,
}

impl Schedule {
    /// `stop_ns`: `u64::MAX` when no time limits the run.
    pub fn new(start_ns: u64, interval_ns: u64, stop_ns: u64) -> Self {
        let mut schedule = Self {
            start_ns,
            interval_ns,
            row: 0,
            window: None,
            stop_ns,
            next_ns: 0,
        };
        schedule.settle();
        schedule
    }

    /// The next instant at which something is cut.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Replaces the window.
    pub fn set_window(&mut self, span: Span) {
        self.window = Some((span, false));
        self.settle();
    }

    /// Closes this window no later than `at_ns`; nothing when it is not the current one.
    pub fn close_window(&mut self, id: u32, at_ns: u64) {
        if let Some((span, _)) = self.window.as_mut().filter(|(span, _)| span.id == id) {
            span.closes_ns = span.closes_ns.min(at_ns.max(span.opens_ns));
        }
        self.settle();
    }

    pub fn set_stop(&mut self, stop_ns: u64) {
        self.stop_ns = self.stop_ns.min(stop_ns);
        self.settle();
    }

    /// Takes the next cut that is due at `now_ns`. A row that ends with the stop is left to the stop.
    pub fn take(&mut self, now_ns: u64) -> Option<(u64, Cut)> {
        if now_ns < self.next_ns {
            return None;
        }
        let (at_ns, cut) = self.first();
        match cut {
            Cut::Row(_) => self.row += 1,
            Cut::WindowOpens(_) => {
                if let Some((_, open)) = &mut self.window {
                    *open = true;
                }
            }
            Cut::WindowCloses(_) => self.window = None,
            Cut::Stop => self.stop_ns = u64::MAX,
            Cut::Mark(_) => {}
        }
        self.settle();
        Some((at_ns, cut))
    }

    fn first(&self) -> (u64, Cut) {
        let row_ends_ns = self
            .start_ns
            .saturating_add(self.interval_ns.saturating_mul(self.row + 1));
        let window = self.window.map(|(span, open)| {
            if open {
                (span.closes_ns, Cut::WindowCloses(span.id))
            } else {
                (span.opens_ns, Cut::WindowOpens(span.id))
            }
        });
        // Of cuts at the same instant the window's edge comes first, then the stop, then the row.
        let mut first = window.unwrap_or((u64::MAX, Cut::Stop));
        if self.stop_ns < first.0 {
            first = (self.stop_ns, Cut::Stop);
        }
        if row_ends_ns < first.0 {
            first = (row_ends_ns, Cut::Row(self.row));
        }
        first
    }

    fn settle(&mut self) {
        self.next_ns = self.first().0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_come_in_order_and_the_edges_of_the_window_before_rows() {
        let mut schedule = Schedule::new(1000, 100, 1350);
        schedule.set_window(Span {
            id: 7,
            opens_ns: 1100,
            closes_ns: 1250,
        });
        let mut cuts = Vec::new();
        while let Some(cut) = schedule.take(1350) {
            cuts.push(cut);
            if cut.1 == Cut::Stop {
                break;
            }
        }
        assert_eq!(
            cuts,
            vec![
                (1100, Cut::WindowOpens(7)),
                (1100, Cut::Row(0)),
                (1200, Cut::Row(1)),
                (1250, Cut::WindowCloses(7)),
                (1300, Cut::Row(2)),
                (1350, Cut::Stop),
            ]
        );
    }

    #[test]
    fn a_window_closes_early_and_another_one_is_left_alone() {
        let mut schedule = Schedule::new(0, 100, u64::MAX);
        schedule.set_window(Span {
            id: 7,
            opens_ns: 10,
            closes_ns: 90,
        });
        schedule.close_window(6, 20);
        assert_eq!(schedule.take(15), Some((10, Cut::WindowOpens(7))));
        assert_eq!(schedule.take(60), None);
        schedule.close_window(7, 70);
        assert_eq!(schedule.take(75), Some((70, Cut::WindowCloses(7))));
        schedule.close_window(7, 80);
        assert_eq!(schedule.take(100), Some((100, Cut::Row(0))));
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut schedule = Schedule::new(0, 100, u64::MAX);
        assert_eq!(schedule.next_ns(), 100);
        assert_eq!(schedule.take(99), None);
        schedule.set_stop(50);
        assert_eq!(schedule.take(60), Some((50, Cut::Stop)));
    }
}
