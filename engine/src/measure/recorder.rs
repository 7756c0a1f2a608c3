//! The record of one thread: everything that happens goes into the current segment, and segments
//! are cut at instants that all threads agree on. The time of each change is passed to it. Only sends
//! may be reported ahead of ends that came before them.

use super::Sum;
use super::addresses::AddressFigures;
use super::counters::ErrorKind;
use super::edges::AtEdge;
use super::gaps::{Quiet, SHORTEST_GAP_NS};
use super::http2::Http2Figures;
use super::rates::Rates;
use super::segment::{Costs, Cut, Figures, Segment, ThreadWork};
use super::slowest::Slowest;
use super::steps::{RequestTimes, StepFigures};
use super::uniformity::Uniformity;
use super::user_time::{LifePart, Lives, UserTime};

/// A poll takes less than a microsecond.
const LONGEST_POLL_NS: u64 = 10_000;

/// The record of one thread, up to the next cut.
#[derive(Debug, Default)]
pub struct Recorder {
    thread: usize,
    row: u64,
    window: Option<u32>,
    window_from_ns: u64,
    from_ns: u64,
    pub figures: Figures,
    pub work: ThreadWork,
    /// `None`: they are not asked for.
    pub slowest: Option<Box<Slowest>>,
    /// `None`: rates are not asked for.
    pub rates: Option<Rates>,
    /// Gaps of Poisson arrivals since the window opened.
    pub gaps: Uniformity,
    quiet: Vec<Quiet>,
    in_flight: u64,
    /// Requests that wait for a connection of their own.
    waiting: u64,
    changed_ns: u64,
    busy_since_ns: u64,
    last_end_ns: u64,
    pub lives: Lives,
    /// When the window opened.
    user_time_before: UserTime,
    users: u64,
    users_changed_ns: u64,
    pub connections_open: u64,
}

impl Recorder {
    pub fn new(thread: usize, from_ns: u64) -> Self {
        Self {
            thread,
            window_from_ns: from_ns,
            from_ns,
            changed_ns: from_ns,
            busy_since_ns: from_ns,
            last_end_ns: from_ns,
            users_changed_ns: from_ns,
            ..Self::default()
        }
    }

    /// What happened on connections that users share, which none of them could report.
    pub fn shared(&mut self, figures: &Http2Figures) {
        let shared = &figures.connections;
        self.figures.counters.connections.add(shared);
        self.figures
            .counters
            .http2
            .get_or_insert_default()
            .add(figures);
        self.connections_open += shared.opened;
        self.connections_open -= shared.closed_by_server + shared.closed_by_client;
    }

    /// Keeps figures per step from now on, when there are several.
    pub fn with_steps(mut self, steps: usize) -> Self {
        if steps > 1 {
            self.figures.steps.resize_with(steps, StepFigures::default);
        }
        self
    }

    /// Keeps figures per address of the target from now on, when there are several.
    pub fn with_addresses(mut self, addresses: usize) -> Self {
        if addresses > 1 {
            self.figures
                .addresses
                .resize(addresses, AddressFigures::default());
        }
        self
    }

    /// Where what goes to this address is counted; `None` with a single address.
    #[inline]
    pub fn address(&mut self, address: u16) -> Option<&mut AddressFigures> {
        self.figures.addresses.get_mut(usize::from(address))
    }

    #[inline]
    pub fn counts_steps(&self) -> bool {
        !self.figures.steps.is_empty()
    }

    /// A whole response of this step was read; `failed`: it is not as declared.
    pub fn step_completed(&mut self, step: usize, times: RequestTimes, status: u16, failed: bool) {
        if let Some(step) = self.figures.steps.get_mut(step) {
            step.complete(times, status, failed);
        }
    }

    /// A transaction was walked to its end; `failed`: one of its requests was.
    pub fn transaction_completed(&mut self, figure: usize, service_ns: u64, failed: bool) {
        if let Some(figure) = self.figures.steps.get_mut(figure) {
            figure.completed += 1;
            figure.failed += u64::from(failed);
            figure.service_time.record(service_ns);
        }
    }

    /// A request of this step ended without a response; with the times that a timeout took.
    pub fn step_failed(&mut self, step: usize, times: RequestTimes) {
        if let Some(step) = self.figures.steps.get_mut(step) {
            step.failed += 1;
            step.record(times);
        }
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    #[inline]
    fn integrate(&mut self, at_ns: u64) {
        // Signed, so that the order in which changes are reported does not matter to the sum.
        let span = at_ns.wrapping_sub(self.changed_ns) as i64;
        self.figures.counters.in_flight_integral_ns +=
            i128::from(self.in_flight) * i128::from(span);
        self.changed_ns = at_ns;
    }

    fn integrate_users(&mut self, at_ns: u64) {
        let span = at_ns.saturating_sub(self.users_changed_ns);
        self.figures.counters.users_integral_ns += u128::from(self.users) * u128::from(span);
        self.users_changed_ns = self.users_changed_ns.max(at_ns);
    }

    /// A user has started, or has arrived.
    pub fn user_came(&mut self, at_ns: u64) {
        self.integrate_users(at_ns);
        self.users += 1;
    }

    /// A user has ended, or has left.
    pub fn user_went(&mut self, at_ns: u64) {
        self.integrate_users(at_ns);
        self.users -= 1;
    }

    /// Requests that wait for something outside of the client.
    #[inline]
    fn outstanding(&self) -> u64 {
        self.in_flight + self.waiting
    }

    /// A request waits for a connection of its own.
    pub fn waits(&mut self, at_ns: u64) {
        if self.outstanding() == 0 {
            self.busy_since_ns = at_ns;
        }
        self.waiting += 1;
    }

    /// It was sent, or never will be.
    pub fn waited(&mut self, at_ns: u64) {
        self.close_quiet_span(at_ns);
        self.waiting -= 1;
    }

    /// Where nothing but what ends now without a response was waited for, nothing is from here on.
    /// The time until here must not be forgotten.
    fn close_quiet_span(&mut self, at_ns: u64) {
        if self.outstanding() == 1 {
            self.push_quiet(at_ns);
            self.last_end_ns = self.last_end_ns.max(at_ns);
        }
    }

    /// A request was handed to the kernel.
    #[inline]
    pub fn sent(&mut self, at_ns: u64) {
        self.integrate(at_ns);
        if self.outstanding() == 0 {
            self.busy_since_ns = at_ns;
        }
        self.in_flight += 1;
        self.figures.counters.sent += 1;
    }

    /// A whole response was read.
    #[inline]
    pub fn completed(&mut self, at_ns: u64, sent_ns: u64, status: u16, body_bytes: u64) {
        self.quiet_until(at_ns);
        self.last_end_ns = self.last_end_ns.max(at_ns);
        self.integrate(at_ns);
        self.in_flight -= 1;
        let service_ns = at_ns.saturating_sub(sent_ns);
        self.figures.counters.completed += 1;
        self.figures.counters.service_time_ns += u128::from(service_ns);
        self.figures.counters.responses.count(status, body_bytes);
        self.took(sent_ns, service_ns);
    }

    /// A sample of the service times.
    #[inline]
    fn took(&mut self, sent_ns: u64, service_ns: u64) {
        self.figures.service_time.record(service_ns);
        if let Some(slowest) = &mut self.slowest {
            slowest.see(sent_ns, service_ns);
        }
    }

    /// A request in flight is denied ([`crate::fault::Fault::HiddenRetries`]), and its time.
    pub fn unsend(&mut self, at_ns: u64, sent_ns: u64) {
        self.integrate(at_ns);
        let from_ns = sent_ns.max(self.window_from_ns);
        self.figures.counters.in_flight_integral_ns -= i128::from(at_ns.saturating_sub(from_ns));
        self.in_flight -= 1;
        self.figures.counters.sent -= 1;
    }

    /// A request in flight ended without a response.
    pub fn lost(&mut self, at_ns: u64, sent_ns: u64, kind: ErrorKind) {
        self.integrate(at_ns);
        self.close_quiet_span(at_ns);
        self.in_flight -= 1;
        self.figures.counters.lost_time_ns += u128::from(at_ns.saturating_sub(sent_ns));
        self.figures.counters.fail(kind);
    }

    /// A request timed out: without its time the percentiles would be those of the lucky.
    pub fn timed_out(&mut self, at_ns: u64, sent_ns: u64) {
        self.lost(at_ns, sent_ns, ErrorKind::Timeout);
        self.took(sent_ns, at_ns.saturating_sub(sent_ns));
    }

    /// A user has sent something, so long after what it did before.
    #[inline]
    pub fn turned_around(&mut self, ns: u64) {
        self.figures.counters.turnaround_ns += u128::from(ns);
        self.figures.counters.turnaround.record(ns);
    }

    /// The time from there to here of a user in this part of its life is denied, as far as it is in
    /// the window ([`crate::fault::Fault::HiddenRetries`]).
    pub fn deny(&mut self, part: LifePart, from_ns: u64, to_ns: u64) {
        let from_ns = from_ns.max(self.window_from_ns).min(to_ns);
        self.lives.leave(part, from_ns);
        self.lives.enter(part, to_ns);
    }

    /// The lives of the users up to a cut at this moment.
    pub fn at_edge(&self, at_ns: u64) -> AtEdge {
        let run_user_time = self.lives.until(at_ns);
        AtEdge {
            window_user_time: run_user_time.since(&self.user_time_before),
            run_user_time,
            ..AtEdge::default()
        }
    }

    #[inline]
    fn quiet_until(&mut self, at_ns: u64) {
        if at_ns.saturating_sub(self.last_end_ns) >= SHORTEST_GAP_NS
            || self.last_end_ns == self.from_ns
        {
            self.push_quiet(at_ns);
        }
    }

    fn push_quiet(&mut self, to_ns: u64) {
        if self.window.is_none() || to_ns <= self.last_end_ns {
            return;
        }
        let busy_from_ns = if self.outstanding() == 0 {
            to_ns
        } else {
            self.busy_since_ns.max(self.last_end_ns)
        };
        self.quiet.push(Quiet {
            from_ns: self.last_end_ns,
            busy_from_ns,
            to_ns,
            in_flight: self.outstanding(),
        });
    }

    /// The thread looked for something to do and found nothing. What took longer than a poll was an
    /// interruption, not the thread's work.
    #[inline]
    pub fn polled_idle(&mut self, ns: u64) {
        if ns <= LONGEST_POLL_NS {
            self.work.polled_ns += ns;
        }
    }

    /// A cut commanded for an instant that has passed is made here, after what was recorded.
    pub fn earliest_cut_ns(&self) -> u64 {
        self.changed_ns.max(self.users_changed_ns).max(self.from_ns)
    }

    /// Ends the segment, and begins the next, at [`Self::earliest_cut_ns`] where that is later.
    pub fn cut(&mut self, cut: Cut, at_ns: u64, at_edge: AtEdge) -> Segment {
        let at_ns = at_ns.max(self.earliest_cut_ns());
        self.integrate(at_ns);
        self.integrate_users(at_ns);
        self.push_quiet(at_ns);
        let ends_window = matches!(cut, Cut::WindowCloses(_) | Cut::TurnCloses(_) | Cut::Stop);
        let next = Recorder::default()
            .with_steps(self.figures.steps.len())
            .with_addresses(self.figures.addresses.len());
        let segment = Segment {
            thread: self.thread,
            cut,
            row: self.row,
            window: self.window,
            from_ns: self.from_ns,
            to_ns: at_ns,
            figures: std::mem::replace(&mut self.figures, next.figures),
            work: std::mem::take(&mut self.work),
            costs: Costs::default(),
            quiet: std::mem::take(&mut self.quiet),
            at_edge,
            slowest: match &mut self.slowest {
                Some(slowest) if ends_window => slowest.take(),
                _ => Vec::new(),
            },
            rates: self.rates.as_mut().map(Rates::take).unwrap_or_default(),
            gaps: if ends_window {
                std::mem::take(&mut self.gaps)
            } else {
                Uniformity::default()
            },
            in_flight: self.in_flight,
            users: self.users,
            connections_open: self.connections_open,
        };
        self.from_ns = at_ns;
        self.last_end_ns = at_ns;
        match cut {
            Cut::Row(row) => self.row = row + 1,
            Cut::WindowOpens(id) | Cut::TurnOpens(id) => {
                self.window = Some(id);
                self.window_from_ns = at_ns;
                self.user_time_before = self.lives.until(at_ns);
                self.gaps = Uniformity::default();
                if let Some(slowest) = &mut self.slowest {
                    slowest.take();
                }
            }
            Cut::WindowCloses(_) | Cut::TurnCloses(_) => self.window = None,
            Cut::Mark(_) | Cut::Stop | Cut::Rests | Cut::Resumes => {}
        }
        segment
    }
}
