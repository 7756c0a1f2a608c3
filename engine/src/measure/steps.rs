//! Figures per step of a scenario. With a single step the totals say it all and none are kept.

use std::collections::BTreeMap;

use super::histogram::Durations;
use super::opened::Opened;

/// What a request took, as far as it is a sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestTimes {
    /// `None`: it was never sent, or was lost without a time that counts.
    pub service_ns: Option<u64>,
    /// From the begin of the attempt to connect; of one that waited for a connection of its own.
    pub response_ns: Option<u64>,
}

sums! {
    /// What one step did in a span of time.
    StepFigures {
        completed: u64,
        failed: u64,
        status: BTreeMap<u16, u64>,
        service_time: Durations,
        opened: Opened,
    }
}

impl StepFigures {
    pub fn complete(&mut self, times: RequestTimes, status: u16, failed: bool) {
        self.completed += 1;
        self.failed += u64::from(failed);
        self.record(times);
        *self.status.entry(status).or_default() += 1;
    }

    pub fn record(&mut self, times: RequestTimes) {
        if let Some(ns) = times.service_ns {
            self.service_time.record(ns);
        }
        if let Some(ns) = times.response_ns {
            self.opened.record(ns, times.service_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Sum;

    #[test]
    fn figures_add_up_step_by_step() {
        let mut one = StepFigures::default();
        let took = |ns| RequestTimes {
            service_ns: Some(ns),
            response_ns: None,
        };
        one.complete(took(10), 200, false);
        one.complete(took(30), 404, true);
        let figures = vec![one, StepFigures::default()];
        let mut sum = Vec::new();
        sum.add(&figures);
        sum.add(&figures);
        assert_eq!((sum[0].completed, sum[0].failed), (4, 2));
        assert_eq!(sum[0].status, BTreeMap::from([(200, 2), (404, 2)]));
        assert_eq!((sum[0].service_time.count(), sum[1].completed), (4, 0));
    }
}
