//! One step of the scenarios, ready to be sent.

use crate::http::expect::Expectation;
use crate::measure::counters::ErrorKind;
use crate::pace::think::ThinkTime;
use crate::plan::Ending;

/// One step, ready to be sent.
#[derive(Debug)]
pub struct StepJob {
    /// Index of the request's bytes for a connection that stays.
    pub(super) staying: u32,
    /// The same as the last request of a connection.
    pub(super) closing: u32,
    pub head_request: bool,
    /// The number of the server that it is sent to.
    pub target: u16,
    pub expectation: Expectation,
    /// Whether something of the response is kept to look at.
    pub looks: bool,
    /// Also of its body.
    pub looks_at_body: bool,
    /// Whether more is made of its responses than what is seen while they come.
    pub judges: bool,
    /// Its response gives the user values that later requests or blocks may depend on.
    pub captures: bool,
    /// It goes out by itself: its body follows later, or is read while it goes out.
    pub alone: bool,
    /// What comes next goes out after its response: that may end the iteration or lead elsewhere.
    pub ends_group: bool,
    /// The longest service time that is right.
    pub max_ns: Option<u64>,
    /// So many are followed, one after the other.
    pub max_redirects: u32,
    /// After 301 and 302 a POST stays one.
    pub keeps_method: bool,
    /// What ends the iteration.
    pub end_on: Vec<Ending>,
    /// A request of it that fails ends the run.
    pub ends_run_on_error: bool,
    /// The pause after it.
    pub think: ThinkTime,
}

/// In place of an index: the request is written for every send.
pub const WRITTEN_ANEW: u32 = u32::MAX;

impl StepJob {
    /// Index of the bytes to send.
    #[inline]
    pub fn request(&self, last_on_connection: bool) -> u32 {
        if last_on_connection {
            self.closing
        } else {
            self.staying
        }
    }

    /// Whether the iteration ends when a request of it fails so.
    pub fn ends(&self, kind: ErrorKind) -> bool {
        let ending = match kind {
            ErrorKind::Capture => Ending::Capture,
            ErrorKind::ExpectRedirect => Ending::Redirect,
            ErrorKind::ExpectBody => Ending::Body,
            ErrorKind::ExpectStatus
            | ErrorKind::ExpectHeader
            | ErrorKind::ExpectSize
            | ErrorKind::ExpectDuration => return false,
            _ => Ending::Unanswered,
        };
        self.end_on.contains(&ending)
    }
}
