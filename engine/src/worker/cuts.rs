//! Ends the segments of a thread's record: at instants of the schedule, and at marks, which are numbers of completed requests.

use std::sync::atomic::Ordering;

use super::{News, Worker};
use crate::measure::recorder::{AtEnd, Cut};
use crate::net::Driver;
use crate::net::sys::thread_cpu_ns;
use crate::user::User;

impl<D: Driver> Worker<'_, D> {
    #[cold]
    pub(super) fn cut_due(&mut self, now_ns: u64) {
        while !self.stopped
            && let Some((at_ns, cut)) = self.schedule.take(now_ns)
        {
            self.cut_passed_marks();
            if cut == Cut::Stop {
                self.recorder.counters.abandoned += self.recorder.in_flight();
                self.stopped = true;
            }
            self.cut(cut, at_ns);
        }
    }

    pub(super) fn cut(&mut self, cut: Cut, at_ns: u64) {
        self.count_offered(at_ns);
        self.recorder.counters.submissions_put_off += self.driver.take_put_off();
        if let (Some(logging), Some(log)) = (&mut self.logging, &self.job.log) {
            logging.hand_over(log);
        }
        let at_end = match cut {
            Cut::WindowCloses(_) | Cut::Stop => AtEnd {
                overdue: self.overdue(at_ns),
                ..self
                    .recorder
                    .open_cycles(at_ns, self.users.iter().filter_map(User::open_since_ns))
            },
            _ => AtEnd::default(),
        };
        let segment = self
            .recorder
            .cut(cut, at_ns, at_end, thread_cpu_ns(), self.driver.now_ns());
        self.tell(News::Segment(Box::new(segment)));
    }

    /// Takes a completed request's number among those of all threads, before it is recorded: the first number past a mark ends the
    /// segment that belongs to the mark.
    #[inline]
    pub(super) fn number_completed(&mut self) -> Option<usize> {
        if self.next_mark >= self.job.marks.len() {
            return None;
        }
        let number = self.job.completed.fetch_add(1, Ordering::Relaxed) + 1;
        while self
            .job
            .marks
            .get(self.next_mark)
            .is_some_and(|mark| number > *mark)
        {
            self.cut(Cut::Mark(self.next_mark), self.now_ns);
            self.next_mark += 1;
        }
        let reached = self.job.marks.get(self.next_mark) == Some(&number);
        reached.then_some(self.next_mark)
    }

    pub(super) fn reach_mark(&mut self, mark: usize) {
        self.cut(Cut::Mark(mark), self.now_ns);
        self.next_mark = mark + 1;
        self.tell(News::MarkReached {
            mark,
            at_ns: self.now_ns,
        });
    }

    /// Cuts for marks that other threads reached while this one completed nothing.
    pub(super) fn cut_passed_marks(&mut self) {
        while let Some(mark) = self.job.marks.get(self.next_mark)
            && self.job.completed.load(Ordering::Relaxed) >= *mark
        {
            self.cut(Cut::Mark(self.next_mark), self.now_ns);
            self.next_mark += 1;
        }
    }
}
