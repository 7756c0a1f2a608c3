//! The parts of a request's time: until the kernel has taken its last byte, until the response's
//! first byte, until its last. Only for plans that ask for them, since they cost readings of the
//! clock, and with io_uring a call to the kernel, per request.

use crate::measure::segment::PartTimes;

/// Not yet.
const NOT: u64 = 0;

#[derive(Debug, Clone, Copy)]
struct Times {
    accepted_ns: u64,
    first_ns: u64,
}

/// The instants of the request of each user that is answered next.
#[derive(Debug)]
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

    /// A request went out, or the rest of it: no byte of its response has come.
    pub(super) fn begin(&mut self, index: u32) {
        self.times[index as usize].first_ns = NOT;
    }

    /// Bytes have come; the first of a response are an instant to keep. `accepted_ns`: when the
    /// kernel had taken the whole request, if it has.
    pub(super) fn first_byte(
        &mut self,
        index: u32,
        sent_ns: u64,
        accepted_ns: Option<u64>,
        now_ns: u64,
    ) {
        let times = &mut self.times[index as usize];
        if times.first_ns != NOT {
            return;
        }
        let first_ns = now_ns.max(sent_ns);
        *times = Times {
            // A response that came before the whole request was taken leaves nothing to wait for.
            accepted_ns: accepted_ns.unwrap_or(first_ns).clamp(sent_ns, first_ns),
            first_ns,
        };
    }

    /// The last byte has come. When the first came is not known of a response whose bytes came
    /// together with the request for the body: its parts are left out.
    pub(super) fn end(&self, index: u32, sent_ns: u64, now_ns: u64, into: &mut PartTimes) {
        let times = self.times[index as usize];
        if times.first_ns == NOT {
            return;
        }
        into.send.record(times.accepted_ns - sent_ns);
        into.wait.record(times.first_ns - times.accepted_ns);
        into.receive.record(now_ns.saturating_sub(times.first_ns));
    }
}
