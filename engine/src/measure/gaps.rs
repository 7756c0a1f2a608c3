//! Gaps: spans in which no request completed in any thread although some were in flight. Threads
//! record when they were quiet; here the quiet spans of all threads are laid over each other. Times
//! in, spans out.

use std::collections::VecDeque;

/// Shorter spans are not gaps.
pub const SHORTEST_GAP_NS: u64 = 20_000_000;
/// The longest so many are kept one by one.
const MAX_KEPT: usize = 256;

/// A span in which one thread completed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet {
    pub from_ns: u64,
    /// Since when requests were in flight; equal to the end when none were.
    pub busy_from_ns: u64,
    pub to_ns: u64,
    pub in_flight: u64,
}

/// A span in which no thread completed anything although requests were in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub from_ns: u64,
    pub to_ns: u64,
    pub in_flight: u64,
}

/// Lays the quiet spans of several threads over each other as they come in.
#[derive(Debug)]
pub struct Gaps {
    threads: Vec<Thread>,
    /// Up to here all threads are known and laid over each other.
    settled_ns: u64,
    /// A span that ends where the settled time ends: it may go on.
    open: Option<Quiet>,
    kept: Vec<Gap>,
    total: u64,
}

#[derive(Debug)]
struct Thread {
    spans: VecDeque<Quiet>,
    known_to_ns: u64,
}

impl Gaps {
    pub fn new(threads: usize, from_ns: u64) -> Self {
        Self {
            threads: (0..threads)
                .map(|_| Thread {
                    spans: VecDeque::new(),
                    known_to_ns: from_ns,
                })
                .collect(),
            settled_ns: from_ns,
            open: None,
            kept: Vec::new(),
            total: 0,
        }
    }

    /// One thread's quiet spans, in order, up to `known_to_ns`. Of spans that touch either end of a
    /// segment also the short ones.
    pub fn add(&mut self, thread: usize, spans: &[Quiet], known_to_ns: u64) {
        let thread = &mut self.threads[thread];
        thread.spans.extend(spans);
        thread.known_to_ns = known_to_ns;
        self.settle();
    }

    fn settle(&mut self) {
        let to_ns = self
            .threads
            .iter()
            .map(|thread| thread.known_to_ns)
            .min()
            .unwrap_or(0);
        if to_ns <= self.settled_ns {
            return;
        }
        let mut common: Option<Vec<Quiet>> = None;
        for thread in &mut self.threads {
            let spans = thread.take_until(to_ns);
            common = Some(match common {
                None => spans,
                Some(others) => intersect(&others, &spans),
            });
        }
        for span in common.unwrap_or_default() {
            self.append(span);
        }
        if self.open.is_some_and(|open| open.to_ns < to_ns) {
            self.close();
        }
        self.settled_ns = to_ns;
    }

    fn append(&mut self, span: Quiet) {
        match &mut self.open {
            // Only what was in flight up to the border and goes on beyond it is one gap.
            Some(open)
                if open.to_ns == span.from_ns
                    && open.busy_from_ns < open.to_ns
                    && span.busy_from_ns == span.from_ns =>
            {
                open.to_ns = span.to_ns;
                open.in_flight = open.in_flight.max(span.in_flight);
            }
            _ => {
                self.close();
                self.open = Some(span);
            }
        }
    }

    fn close(&mut self) {
        let Some(span) = self.open.take() else { return };
        if span.to_ns - span.busy_from_ns <= SHORTEST_GAP_NS {
            return;
        }
        self.total += 1;
        let gap = Gap {
            from_ns: span.busy_from_ns,
            to_ns: span.to_ns,
            in_flight: span.in_flight,
        };
        let length = |gap: &Gap| gap.to_ns - gap.from_ns;
        if self.kept.len() < MAX_KEPT {
            self.kept.push(gap);
        } else if let Some(shortest) = self.kept.iter_mut().min_by_key(|gap| length(gap))
            && length(shortest) < length(&gap)
        {
            *shortest = gap;
        }
    }

    /// The longest gaps, longest first, and how many there were in all.
    pub fn finish(mut self) -> (Vec<Gap>, u64) {
        self.close();
        self.kept
            .sort_unstable_by_key(|gap| (std::cmp::Reverse(gap.to_ns - gap.from_ns), gap.from_ns));
        (self.kept, self.total)
    }
}

impl Thread {
    /// Takes the spans up to `to_ns`, cutting one that goes on.
    fn take_until(&mut self, to_ns: u64) -> Vec<Quiet> {
        let mut taken = Vec::new();
        while let Some(span) = self.spans.front_mut().filter(|span| span.from_ns < to_ns) {
            if span.to_ns <= to_ns {
                taken.push(*span);
                self.spans.pop_front();
                continue;
            }
            taken.push(Quiet {
                to_ns,
                busy_from_ns: span.busy_from_ns.min(to_ns),
                ..*span
            });
            span.from_ns = to_ns;
            span.busy_from_ns = span.busy_from_ns.max(to_ns);
            break;
        }
        taken
    }
}

/// The spans common to two ordered lists; in flight when either has something in flight.
fn intersect(left: &[Quiet], right: &[Quiet]) -> Vec<Quiet> {
    let (mut i, mut j) = (0, 0);
    let mut common = Vec::new();
    while let (Some(a), Some(b)) = (left.get(i), right.get(j)) {
        let (from_ns, to_ns) = (a.from_ns.max(b.from_ns), a.to_ns.min(b.to_ns));
        if from_ns < to_ns {
            common.push(Quiet {
                from_ns,
                busy_from_ns: a.busy_from_ns.min(b.busy_from_ns).clamp(from_ns, to_ns),
                to_ns,
                in_flight: a.in_flight + b.in_flight,
            });
        }
        if a.to_ns <= b.to_ns {
            i += 1;
        } else {
            j += 1;
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn quiet(from_ms: u64, busy_ms: u64, to_ms: u64) -> Quiet {
        Quiet {
            from_ns: from_ms * MS,
            busy_from_ns: busy_ms * MS,
            to_ns: to_ms * MS,
            in_flight: 1,
        }
    }

    fn spans(gaps: Gaps) -> Vec<(u64, u64)> {
        gaps.finish()
            .0
            .iter()
            .map(|gap| (gap.from_ns / MS, gap.to_ns / MS))
            .collect()
    }

    #[test]
    fn pieces_of_one_gap_join_over_the_borders_of_segments() {
        let mut gaps = Gaps::new(1, 0);
        gaps.add(0, &[quiet(0, 0, 5), quiet(985, 985, 1000)], 1000 * MS);
        gaps.add(0, &[quiet(1000, 1000, 1040)], 2000 * MS);
        assert_eq!(spans(gaps), vec![(985, 1040)]);
    }

    #[test]
    fn another_thread_that_completes_something_ends_the_gap() {
        let mut gaps = Gaps::new(2, 0);
        gaps.add(0, &[quiet(100, 100, 300)], 1000 * MS);
        gaps.add(1, &[quiet(0, 0, 150), quiet(160, 160, 500)], 1000 * MS);
        assert_eq!(spans(gaps), vec![(160, 300), (100, 150)]);
    }

    #[test]
    fn a_thread_without_requests_does_not_hide_the_gap_of_another() {
        let mut gaps = Gaps::new(2, 0);
        gaps.add(0, &[quiet(0, 1000, 1000)], 1000 * MS);
        gaps.add(1, &[quiet(100, 110, 200)], 1000 * MS);
        assert_eq!(spans(gaps), vec![(110, 200)]);
    }

    #[test]
    fn nothing_in_flight_is_no_gap() {
        let mut gaps = Gaps::new(1, 0);
        gaps.add(0, &[quiet(0, 1000, 1000)], 1000 * MS);
        gaps.add(0, &[quiet(1000, 1990, 2000)], 2000 * MS);
        assert_eq!(gaps.finish(), (vec![], 0));
    }

    #[test]
    fn a_gap_ends_where_nothing_is_in_flight_any_more() {
        let mut gaps = Gaps::new(1, 0);
        gaps.add(
            0,
            &[quiet(400, 400, 450), quiet(450, 1000, 1000)],
            1000 * MS,
        );
        gaps.add(0, &[quiet(1000, 1500, 1530)], 2000 * MS);
        assert_eq!(spans(gaps), vec![(400, 450), (1500, 1530)]);
    }

    #[test]
    fn threads_may_be_known_up_to_different_times() {
        let mut gaps = Gaps::new(2, 0);
        gaps.add(0, &[quiet(0, 0, 1000)], 1000 * MS);
        gaps.add(1, &[quiet(0, 0, 100), quiet(450, 450, 500)], 500 * MS);
        gaps.add(1, &[quiet(500, 500, 560)], 1000 * MS);
        assert_eq!(spans(gaps), vec![(450, 560), (0, 100)]);
    }

    #[test]
    fn the_longest_are_kept_and_all_are_counted() {
        let mut gaps = Gaps::new(1, 0);
        for index in 0..1000u64 {
            let from = index * 2000;
            gaps.add(
                0,
                &[quiet(from + 1, from + 1, from + 22 + index)],
                (from + 2000) * MS,
            );
        }
        let (kept, total) = gaps.finish();
        assert_eq!((kept.len(), total), (256, 1000));
        assert_eq!((kept[0].to_ns - kept[0].from_ns) / MS, 21 + 999);
    }
}
