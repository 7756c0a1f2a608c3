//! Users whose requests are led elsewhere: what they sent, where they go next, what all of it took.
//! Only steps that follow redirects come here.

use std::collections::HashMap;

use super::{Context, Users};
use crate::http::response::Response;
use crate::measure::counters::ErrorKind;
use crate::measure::steps::RequestTimes;
use crate::payload::Outgoing;
use crate::record::Record;
use crate::scenario::redirect::{SentRequest, becomes_get, is_redirect};
use crate::scenario::request::Again;

/// One user on its way through redirects.
#[derive(Debug, Default)]
struct Chain {
    /// The last request.
    sent: Vec<u8>,
    /// Redirects that were followed.
    hops: u32,
    /// Service time of the requests before the present one.
    spent_ns: u64,
    /// Where the next request goes, and whether it is a GET now.
    to: Option<(String, bool)>,
}

/// The users who were led elsewhere, or may be by their next response.
#[derive(Debug, Default)]
pub(super) struct Redirects(HashMap<u32, Chain>);

impl Redirects {
    /// Whether this user has somewhere to go before its next step.
    #[inline]
    pub(super) fn leads(&self, index: u32) -> bool {
        !self.0.is_empty() && self.0.get(&index).is_some_and(|chain| chain.to.is_some())
    }

    #[inline]
    pub(super) fn drop(&mut self, index: u32) {
        if !self.0.is_empty() {
            self.0.remove(&index);
        }
    }

    /// Service time of all requests of a chain, of which the last took so long.
    pub(super) fn took_ns(&self, index: u32, last_ns: u64) -> u64 {
        let chain = self.0.get(&index);
        chain.map_or(0, |chain| chain.spent_ns) + last_ns
    }
}

impl Users {
    /// Writes the request of a step that follows redirects: its own, or the next after one.
    pub(super) fn write_followed(
        &mut self,
        index: u32,
        step: usize,
        last: bool,
        spare: Vec<u8>,
        now_ns: u64,
    ) -> Outgoing {
        let next = self.redirects.0.get_mut(&index).and_then(|chain| {
            let (path, as_get) = chain.to.take()?;
            Some((path, as_get, std::mem::take(&mut chain.sent)))
        });
        let again = next.as_ref().map(|(path, as_get, before)| Again {
            before,
            path,
            as_get: *as_get,
        });
        let outgoing = self.write_request(index, (step, last), again.as_ref(), spare, now_ns);
        let sent = outgoing.bytes().to_vec();
        match self.redirects.0.get_mut(&index).filter(|_| next.is_some()) {
            Some(chain) => chain.sent = sent,
            None => {
                let chain = Chain {
                    sent,
                    ..Chain::default()
                };
                self.redirects.0.insert(index, chain);
            }
        }
        outgoing
    }

    /// Whether the response leads elsewhere. The error: it does, and must not be followed.
    pub(super) fn follow(
        &mut self,
        index: u32,
        response: &Response,
        cx: &mut Context<'_>,
    ) -> Result<bool, ErrorKind> {
        if !is_redirect(response.status) {
            return Ok(false);
        }
        let user = &self.all[index as usize];
        let step = &self.job.steps[usize::from(user.step)];
        let most = step.max_redirects;
        let location = self.captured.headers("location").next();
        let chain = self.redirects.0.get_mut(&index);
        let (Some(location), Some(chain)) = (location, chain) else {
            return Ok(false);
        };
        let Some(sent) = SentRequest::read(&chain.sent) else {
            return Ok(false);
        };
        let found = if chain.hops >= most {
            Err(format!("there are more than {most} one after the other"))
        } else {
            let origin = &self.job.servers[usize::from(step.target)].origin;
            origin.resolve(location, sent.path, sent.host())
        };
        match found {
            Ok(path) => {
                chain.hops += 1;
                chain.spent_ns += cx.now_ns.saturating_sub(user.sent_ns);
                let as_get = becomes_get(response.status, sent.method, step.keeps_method);
                chain.to = Some((path, as_get));
                Ok(true)
            }
            Err(why) => {
                let kind = ErrorKind::ExpectRedirect;
                let reason = format!("a redirect is not followed: {why}");
                cx.counters().explain(kind, reason);
                Err(kind)
            }
        }
    }

    /// A request of a chain ended without a response; with the time that a timeout took.
    pub(super) fn chain_lost(&mut self, index: u32, service_ns: Option<u64>, record: &mut Record) {
        let step = usize::from(self.all[index as usize].step);
        let Some(figure) = self.job.scenarios.steps[step].chain_figure else {
            return;
        };
        let service_ns = service_ns.map(|took_ns| self.redirects.took_ns(index, took_ns));
        let times = RequestTimes {
            service_ns,
            response_ns: None,
        };
        record.recorder.step_failed(figure, times);
        self.redirects.drop(index);
    }
}
