//! The parts of a request's time: until the kernel has taken its last byte, until the answer's first byte, until its last. Only for
//! plans that ask for them, since they cost readings of the clock, and with io_uring a call to the kernel, for every request.

use super::Worker;
use crate::net::Driver;
use crate::user::Phase;

/// Not yet.
const NOT: u64 = 0;

#[derive(Debug, Clone, Copy)]
struct Times {
    accepted_ns: u64,
    first_ns: u64,
}

/// The instants of the request that each user has in flight.
pub(super) struct Parts {
    times: Vec<Times>,
}

impl Parts {
    pub(super) fn new(users: usize) -> Self {
        let times = Times {
            accepted_ns: NOT,
            first_ns: NOT,
        };
        Self {
            times: vec![times; users],
        }
    }

    /// A request went out, or the rest of it: no byte of its answer has come.
    pub(super) fn begin(&mut self, index: u32) {
        self.times[index as usize].first_ns = NOT;
    }
}

impl<D: Driver> Worker<'_, D> {
    /// Bytes have come; the first of an answer are an instant to keep.
    pub(super) fn answer_begins(&mut self, index: u32) {
        let user = &self.users[index as usize];
        let Some(parts) = &mut self.parts else { return };
        let times = &mut parts.times[index as usize];
        if user.phase != Phase::InFlight || times.first_ns != NOT {
            return;
        }
        let first_ns = self.now_ns.max(user.sent_ns);
        let accepted_ns = self.driver.accepted_ns(index).unwrap_or(first_ns);
        *times = Times {
            // An answer that came before the whole request was taken leaves nothing to wait for.
            accepted_ns: accepted_ns.clamp(user.sent_ns, first_ns),
            first_ns,
        };
    }

    /// The last byte has come.
    pub(super) fn record_parts(&mut self, index: u32) {
        let user = &self.users[index as usize];
        let Some(parts) = &self.parts else { return };
        let times = parts.times[index as usize];
        let record = &mut self.recorder.parts;
        record.send.record(times.accepted_ns - user.sent_ns);
        record.wait.record(times.first_ns - times.accepted_ns);
        let receive_ns = self.now_ns.saturating_sub(times.first_ns);
        record.receive.record(receive_ns);
    }
}
