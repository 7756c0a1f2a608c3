//! Defects that a test build carries on purpose (feature `rigged`), so that the judge can be shown to notice an instrument that
//! lies. In every other build each question here is answered `false` at compile time. It knows nothing of users or requests.

/// What the instrument does wrong.
#[cfg_attr(not(feature = "rigged"), allow(dead_code))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rig {
    /// Poisson arrivals are asked for, evenly spaced ones are sent.
    EvenArrivals,
    /// Timers fire [`LATE_NS`] late.
    LateTimer,
    /// One user in ten stops without a word.
    SilentDeath,
    /// A lost request is sent again as if nothing had happened.
    HiddenRetry,
}

/// How late the timers of [`Rig::LateTimer`] fire.
pub const LATE_NS: u64 = 20_000_000;

/// Whether this build was told, by `PRONY_RIG`, to have this defect.
#[cfg(feature = "rigged")]
pub fn has(rig: Rig) -> bool {
    use std::sync::OnceLock;
    static CHOSEN: OnceLock<Option<Rig>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| match std::env::var("PRONY_RIG").as_deref() {
        Ok("even-arrivals") => Some(Rig::EvenArrivals),
        Ok("late-timer") => Some(Rig::LateTimer),
        Ok("silent-death") => Some(Rig::SilentDeath),
        Ok("hidden-retry") => Some(Rig::HiddenRetry),
        _ => None,
    });
    *chosen == Some(rig)
}

/// See above: an honest build has no defect on purpose.
#[cfg(not(feature = "rigged"))]
#[inline(always)]
pub const fn has(_: Rig) -> bool {
    false
}
