//! When a thread's segments are cut: rows aligned to the start, the edges of the window and of its
//! turns, the stop. Every thread has the same schedule. Pure: times come in.

use std::collections::VecDeque;

use super::segment::Cut;

/// A measured window, in monotonic nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub id: u32,
    pub opens_ns: u64,
    pub closes_ns: u64,
}

/// A turn of users who rest before and after it, in monotonic nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub begins_ns: u64,
    /// From here to the end it is part of the window; at the end: none of it.
    pub opens_ns: u64,
    pub ends_ns: u64,
}

impl Turn {
    pub fn is_measured(&self) -> bool {
        self.opens_ns < self.ends_ns
    }
}

/// The instants of a run at which segments are cut.
#[derive(Debug, Clone)]
pub struct Schedule {
    interval_ns: u64,
    row: u64,
    /// From where rows are aligned, and the row that begins there: the start, or the last edge of a turn.
    aligned: (u64, u64),
    /// A row ends here, as a turn has an edge.
    row_due_ns: Option<u64>,
    /// Edges of turns, and rests.
    edges: VecDeque<(u64, Cut)>,
    window: Option<(Span, bool)>,
    stop_ns: u64,
    next_ns: u64,
}

impl Schedule {
    /// `stop_ns`: `u64::MAX` when no time limits the run.
    pub fn new(start_ns: u64, interval_ns: u64, stop_ns: u64) -> Self {
        let mut schedule = Self {
            interval_ns,
            row: 0,
            aligned: (start_ns, 0),
            row_due_ns: None,
            edges: VecDeque::new(),
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

    /// Users rest from this instant on.
    pub fn rest(&mut self, at_ns: u64) {
        self.add_edges([(at_ns, Cut::Rests)]);
    }

    /// Replaces the window by one that consists of turns, which ascend in time and do not overlap.
    pub fn set_turns(&mut self, id: u32, turns: &[Turn]) {
        let first = turns.iter().position(Turn::is_measured);
        let last = turns.iter().rposition(Turn::is_measured);
        let mut edges = Vec::new();
        for (place, turn) in turns.iter().enumerate() {
            let (opens, closes) = (Some(place) == first, Some(place) == last);
            edges.push((turn.begins_ns, Cut::Resumes));
            if turn.is_measured() {
                let cuts = [
                    if opens {
                        Cut::WindowOpens(id)
                    } else {
                        Cut::TurnOpens(id)
                    },
                    if closes {
                        Cut::WindowCloses(id)
                    } else {
                        Cut::TurnCloses(id)
                    },
                ];
                edges.extend([(turn.opens_ns, cuts[0]), (turn.ends_ns, cuts[1])]);
            }
            edges.push((turn.ends_ns, Cut::Rests));
        }
        self.window = None;
        self.add_edges(edges);
    }

    fn add_edges(&mut self, edges: impl IntoIterator<Item = (u64, Cut)>) {
        self.edges.extend(edges);
        self.edges
            .make_contiguous()
            .sort_by_key(|(at_ns, _)| *at_ns);
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
        if self.edges.front() == Some(&(at_ns, cut)) {
            self.edges.pop_front();
            self.row_due_ns = Some(at_ns);
            self.settle();
            return Some((at_ns, cut));
        }
        match cut {
            Cut::Row(_) => {
                self.row += 1;
                if let Some(at_ns) = self.row_due_ns.take() {
                    self.aligned = (at_ns, self.row);
                }
            }
            Cut::WindowOpens(_) => {
                if let Some((_, open)) = &mut self.window {
                    *open = true;
                }
            }
            Cut::WindowCloses(_) => self.window = None,
            Cut::Stop => self.stop_ns = u64::MAX,
            _ => {}
        }
        self.settle();
        Some((at_ns, cut))
    }

    fn first(&self) -> (u64, Cut) {
        let (from_ns, row) = self.aligned;
        let row_ends_ns = self.row_due_ns.unwrap_or_else(|| {
            from_ns.saturating_add(self.interval_ns.saturating_mul(self.row + 1 - row))
        });
        let window = self.window.map(|(span, open)| {
            if open {
                (span.closes_ns, Cut::WindowCloses(span.id))
            } else {
                (span.opens_ns, Cut::WindowOpens(span.id))
            }
        });
        // Of cuts at the same instant the edge of window or turn comes first, then the stop, then the row.
        let mut first = window.unwrap_or((u64::MAX, Cut::Stop));
        if let Some(edge) = self.edges.front().filter(|edge| edge.0 < first.0) {
            first = *edge;
        }
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
    fn turns_cut_rows_at_their_edges() {
        let mut schedule = Schedule::new(0, 100, 1000);
        schedule.rest(150);
        let turn = |begins_ns, opens_ns, ends_ns| Turn {
            begins_ns,
            opens_ns,
            ends_ns,
        };
        // Practice, then two turns that follow each other, then one after a break.
        let turns = [
            turn(220, 240, 240),
            turn(300, 320, 380),
            turn(380, 400, 460),
            turn(700, 720, 780),
        ];
        schedule.set_turns(3, &turns);
        let mut cuts = Vec::new();
        while let Some(cut) = schedule.take(1000) {
            cuts.push(cut);
            if cut.1 == Cut::Stop {
                break;
            }
        }
        let expected = [
            (100, Cut::Row(0)),
            (150, Cut::Rests),
            (150, Cut::Row(1)),
            (220, Cut::Resumes),
            (220, Cut::Row(2)),
            (240, Cut::Rests),
            (240, Cut::Row(3)),
            (300, Cut::Resumes),
            (300, Cut::Row(4)),
            (320, Cut::WindowOpens(3)),
            (320, Cut::Row(5)),
            (380, Cut::TurnCloses(3)),
            (380, Cut::Rests),
            (380, Cut::Resumes),
            (380, Cut::Row(6)),
            (400, Cut::TurnOpens(3)),
            (400, Cut::Row(7)),
            (460, Cut::TurnCloses(3)),
            (460, Cut::Rests),
            (460, Cut::Row(8)),
            (560, Cut::Row(9)),
            (660, Cut::Row(10)),
            (700, Cut::Resumes),
            (700, Cut::Row(11)),
            (720, Cut::TurnOpens(3)),
            (720, Cut::Row(12)),
            (780, Cut::WindowCloses(3)),
            (780, Cut::Rests),
            (780, Cut::Row(13)),
            (880, Cut::Row(14)),
            (980, Cut::Row(15)),
            (1000, Cut::Stop),
        ];
        assert_eq!(cuts, expected);
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
