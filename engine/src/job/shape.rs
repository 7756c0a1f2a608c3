//! What the kind of load asks for: the ramp-down of a closed one, the arrivals of an open one.

use std::sync::Arc;

use crate::check::ms_to_ns;
use crate::fault::{Fault, Faults};
use crate::pace::arrivals::Spacing;
use crate::pace::ramp::Ramp;
use crate::pace::rate::{Rate, RateStretch};
use crate::plan::{ArrivalSpacing, AtCap, Load, RatePhase, Session};

/// What only an open load has.
#[derive(Debug)]
pub struct OpenJob {
    pub rate: Arc<Rate>,
    pub spacing: Spacing,
    pub connections: u32,
    /// By phase: its end after the start, and its cap; empty when no phase has one.
    pub caps: Vec<(u64, Option<u32>)>,
    /// An arrival is a user who walks the scenario, and such walks are timed.
    pub walks: bool,
    /// An arrival that finds no place waits for one.
    pub waits: bool,
    /// After the intended send.
    pub deadline_ns: Option<u64>,
}

impl OpenJob {
    pub(super) fn new(load: &Load, faults: Faults) -> Option<Self> {
        let Load::Open {
            arrivals,
            ref phases,
            session,
            connections,
            deadline_ms,
            at_cap,
            ..
        } = *load
        else {
            return None;
        };
        let mut ends_ns = 0u64;
        let caps = phases.iter().map(|phase| {
            ends_ns = ends_ns.saturating_add(ms_to_ns(phase.duration_ms));
            (ends_ns, phase.max_users)
        });
        let caps: Vec<_> = caps.collect();
        let capped = caps.iter().any(|(_, cap)| cap.is_some());
        let stretch = |phase: &RatePhase| RateStretch {
            duration_ns: ms_to_ns(phase.duration_ms),
            from_per_s: phase.from_per_s,
            to_per_s: phase.to_per_s,
        };
        Some(Self {
            rate: Arc::new(Rate::new(&phases.iter().map(stretch).collect::<Vec<_>>())),
            spacing: match arrivals {
                ArrivalSpacing::Constant => Spacing::Constant,
                ArrivalSpacing::Poisson if faults.has(Fault::EvenArrivals) => Spacing::Even,
                ArrivalSpacing::Poisson => Spacing::Poisson,
            },
            connections,
            caps: if capped { caps } else { Vec::new() },
            walks: session == Session::User,
            waits: at_cap == AtCap::Wait,
            deadline_ns: deadline_ms.map(ms_to_ns),
        })
    }
}

/// How the users of a closed load end.
pub(super) fn ramp_down(load: &Load) -> Ramp {
    match *load {
        Load::Closed {
            ramp_down_ms,
            ramp_down_steps,
            ..
        } => Ramp {
            span_ns: ms_to_ns(ramp_down_ms),
            steps: ramp_down_steps,
        },
        Load::Open { .. } => Ramp::default(),
    }
}
