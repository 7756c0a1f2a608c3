//! Figures per step of a scenario. With a single step the totals say it all and none are kept.

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

/// What one step did in a span of time.
#[derive(Debug, Clone, Default)]
pub struct StepFigures {
    pub completed: u64,
    pub failed: u64,
    /// Codes with their counts: a step has few.
    pub status: Vec<(u16, u64)>,
    pub service_time: Durations,
    pub opened: Opened,
}

impl StepFigures {
    pub fn complete(&mut self, times: RequestTimes, status: u16, failed: bool) {
        self.completed += 1;
        self.failed += u64::from(failed);
        self.record(times);
        self.count(status, 1);
    }

    pub fn record(&mut self, times: RequestTimes) {
        if let Some(ns) = times.service_ns {
            self.service_time.record(ns);
        }
        if let Some(ns) = times.response_ns {
            self.opened.record(ns, times.service_ns);
        }
    }

    fn count(&mut self, status: u16, count: u64) {
        match self.status.iter_mut().find(|(code, _)| *code == status) {
            Some((_, known)) => *known += count,
            None => self.status.push((status, count)),
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        for (status, count) in &other.status {
            self.count(*status, *count);
        }
        self.service_time.add(&other.service_time);
        self.opened.add(&other.opened);
    }
}

/// Adds figures step by step; the sum may be empty before.
pub fn add_all(sum: &mut Vec<StepFigures>, others: &[StepFigures]) {
    if sum.len() < others.len() {
        sum.resize_with(others.len(), StepFigures::default);
    }
    for (mine, theirs) in sum.iter_mut().zip(others) {
        mine.add(theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_add_up_step_by_step() {
        let mut one = StepFigures::default();
        let took = |ns| RequestTimes {
            service_ns: Some(ns),
            response_ns: None,
        };
        one.complete(took(10), 200, false);
        one.complete(took(30), 404, true);
        let mut sum = Vec::new();
        add_all(&mut sum, &[one.clone(), StepFigures::default()]);
        add_all(&mut sum, &[one, StepFigures::default()]);
        assert_eq!((sum[0].completed, sum[0].failed), (4, 2));
        assert_eq!(sum[0].status, [(200, 2), (404, 2)]);
        assert_eq!((sum[0].service_time.count(), sum[1].completed), (4, 0));
    }
}
