//! Gaps: spans in which no request completed in any thread although some were in flight. The quiet
//! spans of all threads are laid over each other.

use std::collections::VecDeque;

/// Shorter spans are not gaps.
pub const SHORTEST_GAP_NS: u64 = 20_000_000;
/// The longest so many are kept one by one.
const MAX_KEPT: usize = 256;
/// Of a window with more silences than this they are not listed: an hour of 18 a second.
const MAX_SILENCES: usize = 65_536;

/// A span in which one thread completed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet {
    pub from_ns: u64,
    /// Since when requests were in flight; equal to the end when none were.
    pub busy_from_ns: u64,
    pub to_ns: u64,
    pub in_flight: u64,
}

/// A quiet span, and whether the silence began before it: spans are cut where segments end, and
/// two that touch are otherwise two, with a completion between them.
#[derive(Debug, Clone, Copy)]
struct Piece {
    span: Quiet,
    goes_on: bool,
}

impl Piece {
    /// Whether the silence began before `from_ns`, which lies in it.
    fn began_before(&self, from_ns: u64) -> bool {
        self.goes_on || self.span.from_ns < from_ns
    }
}

/// A span in which no thread completed anything although requests were in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub from_ns: u64,
    pub to_ns: u64,
    pub in_flight: u64,
}

/// Lays the quiet spans of several threads over each other as they come in.
#[derive(Debug, Default)]
pub struct Gaps {
    threads: Vec<Thread>,
    /// Up to here all threads are known and laid over each other.
    settled_ns: u64,
    /// The newest silence: it may go on.
    open: Option<Quiet>,
    kept: Vec<Gap>,
    total: u64,
    /// Spans without a completion, longer than a gap's least, whether requests were in flight or not.
    silences: Vec<Quiet>,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The longest gaps, longest first.
    pub longest: Vec<Gap>,
    /// How many there were in all.
    pub total: u64,
    /// Spans above 20 ms in which no thread completed anything, also those in which nothing was in
    /// flight; `None` where there were too many.
    pub silences: Option<Vec<Quiet>>,
}

#[derive(Debug, Default)]
struct Thread {
    pieces: VecDeque<Piece>,
    known_to_ns: u64,
    /// It was quiet at the end of what is known.
    quiet_to_the_end: bool,
}

impl Gaps {
    pub fn new(threads: usize, from_ns: u64) -> Self {
        Self {
            threads: (0..threads)
                .map(|_| Thread {
                    known_to_ns: from_ns,
                    ..Thread::default()
                })
                .collect(),
            settled_ns: from_ns,
            ..Self::default()
        }
    }

    /// One thread's quiet spans, in order, up to `known_to_ns`; at its ends also short ones.
    pub fn add(&mut self, thread: usize, spans: &[Quiet], known_to_ns: u64) {
        let thread = &mut self.threads[thread];
        let (border_ns, quiet) = (thread.known_to_ns, thread.quiet_to_the_end);
        let pieces = spans.iter().enumerate().map(|(place, span)| Piece {
            span: *span,
            goes_on: place == 0 && quiet && span.from_ns == border_ns,
        });
        thread.pieces.extend(pieces);
        thread.known_to_ns = known_to_ns;
        thread.quiet_to_the_end = spans.last().is_some_and(|span| span.to_ns == known_to_ns);
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
        let mut common: Option<Vec<Piece>> = None;
        for thread in &mut self.threads {
            let pieces = thread.take_until(to_ns);
            common = Some(match common {
                None => pieces,
                Some(others) => intersect(&others, &pieces),
            });
        }
        for piece in common.unwrap_or_default() {
            self.append(piece);
        }
        if self.open.is_some_and(|open| open.to_ns < to_ns) {
            self.close();
        }
        self.settled_ns = to_ns;
    }

    fn append(&mut self, Piece { span, goes_on }: Piece) {
        match &mut self.open {
            Some(open) if goes_on && open.to_ns == span.from_ns => {
                if open.busy_from_ns == open.to_ns {
                    open.busy_from_ns = span.busy_from_ns;
                }
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
        if span.to_ns - span.from_ns > SHORTEST_GAP_NS && self.silences.len() <= MAX_SILENCES {
            self.silences.push(span);
        }
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

    /// After the last spans.
    pub fn finish(mut self) -> Found {
        self.close();
        self.kept
            .sort_unstable_by_key(|gap| (std::cmp::Reverse(gap.to_ns - gap.from_ns), gap.from_ns));
        Found {
            longest: self.kept,
            total: self.total,
            silences: (self.silences.len() <= MAX_SILENCES).then_some(self.silences),
        }
    }
}

impl Thread {
    /// Takes the pieces up to `to_ns`, cutting one that goes on.
    fn take_until(&mut self, to_ns: u64) -> Vec<Piece> {
        let mut taken = Vec::new();
        while let Some(piece) = self
            .pieces
            .front_mut()
            .filter(|piece| piece.span.from_ns < to_ns)
        {
            if piece.span.to_ns <= to_ns {
                taken.push(*piece);
                self.pieces.pop_front();
                continue;
            }
            let mut first = *piece;
            first.span.to_ns = to_ns;
            first.span.busy_from_ns = first.span.busy_from_ns.min(to_ns);
            taken.push(first);
            piece.goes_on = true;
            piece.span.from_ns = to_ns;
            piece.span.busy_from_ns = piece.span.busy_from_ns.max(to_ns);
            break;
        }
        taken
    }
}

/// The spans common to two ordered lists; in flight when either has something in flight.
fn intersect(left: &[Piece], right: &[Piece]) -> Vec<Piece> {
    let (mut i, mut j) = (0, 0);
    let mut common = Vec::new();
    while let (Some(one), Some(other)) = (left.get(i), right.get(j)) {
        let (a, b) = (&one.span, &other.span);
        let (from_ns, to_ns) = (a.from_ns.max(b.from_ns), a.to_ns.min(b.to_ns));
        if from_ns < to_ns {
            common.push(Piece {
                span: Quiet {
                    from_ns,
                    busy_from_ns: a.busy_from_ns.min(b.busy_from_ns).clamp(from_ns, to_ns),
                    to_ns,
                    in_flight: a.in_flight + b.in_flight,
                },
                goes_on: one.began_before(from_ns) && other.began_before(from_ns),
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
            .longest
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
        let found = gaps.finish();
        assert_eq!((found.longest, found.total), (vec![], 0));
        // One span, not one for each segment: other engines may have had something in flight.
        assert_eq!(found.silences, Some(vec![quiet(0, 1990, 2000)]));
    }

    #[test]
    fn a_completion_between_two_gaps_that_touch_keeps_them_two() {
        let mut gaps = Gaps::new(1, 0);
        gaps.add(0, &[quiet(0, 0, 50), quiet(50, 50, 100)], 100 * MS);
        gaps.add(0, &[quiet(100, 100, 130), quiet(130, 130, 170)], 1000 * MS);
        assert_eq!(spans(gaps), vec![(50, 130), (0, 50), (130, 170)]);
        let mut of_two = Gaps::new(2, 0);
        of_two.add(0, &[quiet(0, 0, 50), quiet(50, 50, 100)], 1000 * MS);
        of_two.add(1, &[quiet(0, 0, 100)], 1000 * MS);
        assert_eq!(spans(of_two), vec![(0, 50), (50, 100)]);
    }

    #[test]
    fn too_many_silences_are_none() {
        let mut gaps = Gaps::new(1, 0);
        for index in 0..=MAX_SILENCES as u64 {
            let from = index * 100;
            gaps.add(
                0,
                &[quiet(from + 10, from + 40, from + 40)],
                (from + 100) * MS,
            );
        }
        assert_eq!(gaps.finish().silences, None);
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
        let Found {
            longest: kept,
            total,
            ..
        } = gaps.finish();
        assert_eq!((kept.len(), total), (256, 1000));
        assert_eq!((kept[0].to_ns - kept[0].from_ns) / MS, 21 + 999);
    }
}
