//! What is known at the edges of a span alone: parts of users' lives that are still open, the ages of
//! what is in flight, and what is still not sent.

use super::user_time::UserTime;

/// What one thread says at an edge of the window, or at the end of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtEdge {
    /// The lives of the users by part, those that go on too, clipped to the window; at its close.
    pub window_user_time: UserTime,
    /// The same for the whole run.
    pub run_user_time: UserTime,
    /// Σ time since their sends of the requests in flight.
    pub in_flight_age_ns: i128,
    /// Requests that should have been sent by now and were not.
    pub overdue: u64,
}

/// The edges of one span, all threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Edges {
    pub user_time: UserTime,
    pub in_flight_age_open_ns: i128,
    pub in_flight_age_close_ns: i128,
    pub overdue: u64,
    /// Alive at the close.
    pub users: u64,
}

impl Edges {
    pub fn open(&mut self, edge: &AtEdge) {
        self.in_flight_age_open_ns += edge.in_flight_age_ns;
    }

    /// `user_time`: of the span that closes.
    pub fn close(&mut self, edge: &AtEdge, user_time: &UserTime, users: u64) {
        self.user_time.add(user_time);
        self.in_flight_age_close_ns += edge.in_flight_age_ns;
        self.overdue += edge.overdue;
        self.users += users;
    }
}
