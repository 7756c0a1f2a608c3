//! The counters of a span of time, and their sum. Plain numbers; units are in the names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bodies::BodyCounts;
use super::connections::Connections;
use super::histogram::Durations;
use super::http2::Http2Figures;
use super::responses::ResponseCounts;
use super::urls::UrlCounts;
use crate::http::expect::Unmet;
use crate::http::head::BadResponse;
use crate::tls::Secured;

/// How a request, or the attempt to connect for it, went wrong.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    ConnectRefused,
    ConnectTimeout,
    ConnectOther,
    Tls,
    /// No free source address and port (EADDRNOTAVAIL).
    AddressUnavailable,
    /// No free descriptor (EMFILE, ENFILE).
    Descriptors,
    Write,
    /// Reading failed, such as by a reset.
    Read,
    /// The server closed before the response was complete.
    PrematureClose,
    Timeout,
    /// Not HTTP, or broken framing.
    Protocol,
    HeaderTooLong,
    ExpectStatus,
    ExpectHeader,
    ExpectBody,
    /// A value that a later step needs was not in the response.
    Capture,
    /// The body was shorter or longer than is right.
    ExpectSize,
    /// The whole response came too late to be right.
    ExpectDuration,
    /// A redirect that must not be followed: to another host, or one too many.
    ExpectRedirect,
    /// The client's own kernel refused the request.
    Client,
    /// Incomplete responses exhausted the thread's memory budget.
    #[serde(rename = "answer_memory")]
    ResponseMemory,
    /// HTTP/2: the server reset the stream (RST_STREAM).
    StreamReset,
    /// HTTP/2: the server went away and had not looked at the request.
    #[serde(rename = "goaway")]
    GoAway,
    /// A body that the end of the connection ends, and TLS's close_notify was missing.
    TlsTruncated,
}

sums! {
    /// Counters of one thread over one span, or of many added up.
    Counters {
        sent: u64,
        completed: u64,
        failed: u64,
        abandoned: u64,
        errors: BTreeMap<ErrorKind, u64>,
        responses: ResponseCounts,
        bodies: BodyCounts,
        urls: UrlCounts,
        connections: Connections,
        tls_handshakes: u64,
        tls_resumptions: u64,
        /// How often each version, cipher suite and protocol was agreed on; `resumed` is always false here.
        tls_agreed: BTreeMap<Secured, u64>,
        /// From the attempt to connect to the connection.
        connect_time: Durations,
        /// From the connection to the end of the TLS handshake.
        tls_time: Durations,
        /// In words, the first reason that was found for a kind of error.
        reasons: BTreeMap<ErrorKind, String> = first_of_each,
        /// The head of the first response of a thread.
        first_head: Option<String> = first,
        /// Σ service time of what completed.
        service_time_ns: u128,
        /// Σ time in flight of what ended without a response.
        lost_time_ns: u128,
        /// ∫ in-flight dt.
        in_flight_integral_ns: i128,
        /// Σ of the client's own times before sends.
        turnaround_ns: u128,
        turnaround: Durations<2>,
        think_drawn_ns: u128,
        think_actual_ns: u128,
        think_count: u64,
        think_overshoot: Durations,
        eaddrnotavail: u64,
        emfile: u64,
        /// How often the client's kernel refused submissions for the moment.
        submissions_put_off: u64,
        /// Cookies that were too long, or made room for newer ones.
        cookies_dropped: u64,
        /// Open load: requests that became due.
        offered: u64,
        /// Open load: arrivals that found no place.
        blocked: u64,
        /// Open load: requests whose deadline had passed before they could be sent.
        expired: u64,
        /// ∫ users dt.
        users_integral_ns: u128,
        /// Open load of users who walk: those that found a place, and those that came to the end of
        /// their scenario.
        sessions_begun: u64,
        sessions_completed: u64,
        /// Only of HTTP/2.
        http2: Option<Box<Http2Figures>>,
    }
}

impl ErrorKind {
    /// No connection came about.
    pub fn is_of_connecting(self) -> bool {
        matches!(
            self,
            Self::ConnectRefused
                | Self::ConnectTimeout
                | Self::ConnectOther
                | Self::Tls
                | Self::AddressUnavailable
                | Self::Descriptors
        )
    }

    /// The reason, of a kind that has but one.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::ResponseMemory => Some(
                "incomplete responses exhausted the load generator's memory budget per thread (limits.partial_response_bytes)",
            ),
            _ => None,
        }
    }

    /// What came was no whole response.
    pub fn is_of_reading(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::PrematureClose
                | Self::Protocol
                | Self::HeaderTooLong
                | Self::ResponseMemory
                | Self::StreamReset
                | Self::GoAway
                | Self::TlsTruncated
        )
    }
}

fn first(mine: &mut Option<String>, other: &Option<String>) {
    if mine.is_none() {
        mine.clone_from(other);
    }
}

fn first_of_each(mine: &mut BTreeMap<ErrorKind, String>, other: &BTreeMap<ErrorKind, String>) {
    for (kind, reason) in other {
        mine.entry(*kind).or_insert_with(|| reason.clone());
    }
}

impl From<BadResponse> for ErrorKind {
    fn from(bad: BadResponse) -> Self {
        match bad {
            BadResponse::Malformed => Self::Protocol,
            BadResponse::HeadTooLong => Self::HeaderTooLong,
            BadResponse::NoMemory => Self::ResponseMemory,
        }
    }
}

impl From<Unmet> for ErrorKind {
    fn from(unmet: Unmet) -> Self {
        match unmet {
            Unmet::Status => Self::ExpectStatus,
            Unmet::Header => Self::ExpectHeader,
            Unmet::Size => Self::ExpectSize,
            Unmet::Body => Self::ExpectBody,
        }
    }
}

impl Counters {
    /// Counts a request that failed, by kind.
    pub fn fail(&mut self, kind: ErrorKind) {
        self.failed += 1;
        *self.errors.entry(kind).or_default() += 1;
    }

    /// Keeps the first reason for a kind of error.
    #[cold]
    pub fn explain(&mut self, kind: ErrorKind, reason: String) {
        self.reasons.entry(kind).or_insert(reason);
    }

    /// Counts a TLS handshake that ended well.
    pub fn secured(&mut self, secured: Secured, ns: u64) {
        self.tls_handshakes += 1;
        self.tls_resumptions += u64::from(secured.resumed);
        let agreed = Secured {
            resumed: false,
            ..secured
        };
        *self.tls_agreed.entry(agreed).or_default() += 1;
        self.tls_time.record(ns);
    }

    /// In words, a reason for each kind that occurred and has one.
    pub fn reasons(&self) -> BTreeMap<ErrorKind, String> {
        let fixed = self
            .errors
            .keys()
            .filter_map(|kind| Some((*kind, kind.reason()?.to_owned())));
        self.reasons.clone().into_iter().chain(fixed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sum;

    #[test]
    fn failures_add_up_by_kind() {
        let mut counters = Counters::default();
        counters.fail(ErrorKind::Timeout);
        counters.fail(ErrorKind::Timeout);
        counters.fail(ErrorKind::Read);
        let mut sum = Counters::default();
        sum.add(&counters);
        sum.add(&counters);
        assert_eq!(sum.failed, 6);
        let expected = [(ErrorKind::Read, 2), (ErrorKind::Timeout, 4)];
        assert_eq!(sum.errors, BTreeMap::from(expected));
    }

    #[test]
    fn years_of_load_overflow_nothing() {
        let year_ns = 366 * 24 * 3_600 * 1_000_000_000_u128;
        let users = 16_000_000;
        let mut counters = Counters {
            sent: 1 << 40,
            completed: 1 << 40,
            abandoned: 1 << 60,
            // All users in flight, or thinking, for a year.
            service_time_ns: year_ns * users,
            in_flight_integral_ns: (year_ns * users) as i128,
            think_drawn_ns: year_ns * users,
            think_actual_ns: year_ns * users,
            ..Counters::default()
        };
        counters.responses.count(200, 1 << 40);
        let mut sum = Counters::default();
        for _ in 0..8 {
            sum.add(&counters);
        }
        assert_eq!((sum.sent, sum.abandoned), (1 << 43, 1 << 63));
        assert_eq!(sum.in_flight_integral_ns, (8 * year_ns * users) as i128);
        assert_eq!(sum.think_actual_ns, 8 * year_ns * users);
    }
}
