//! Requests that waited for their own connection: their response times count from the begin of the
//! attempt to connect, those of all others are their service times. Knows nothing of connections.

use super::Sum;
use super::histogram::Durations;

sums! {
    /// The requests of a closed load that opened a connection.
    Opened {
        /// Of those that are in the histogram of all service times.
        service_time: Durations,
        /// From the begin of the attempt to connect; also of attempts that timed out.
        response_time: Durations,
    }
}

impl Opened {
    /// `service_ns`: `None` of a request that was never sent.
    pub fn record(&mut self, response_ns: u64, service_ns: Option<u64>) {
        self.response_time.record(response_ns);
        if let Some(service_ns) = service_ns {
            self.service_time.record(service_ns);
        }
    }

    /// The response times of all requests, of which these are the service times; `None` where no
    /// connection was opened for one.
    pub fn response_time(&self, all: &Durations) -> Option<Durations> {
        self.response_time.filled()?;
        let mut times = all.without(&self.service_time)?;
        times.add(&self.response_time);
        Some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_on_an_open_connection_counts_with_its_service_time() {
        let mut all: Durations = Durations::default();
        let mut opened = Opened::default();
        assert!(opened.response_time(&all).is_none());
        for service_ns in [1_000, 2_000, 3_000] {
            all.record(service_ns);
        }
        assert!(opened.response_time(&all).is_none());
        // The longest and the shortest had to connect first, a fourth failed to.
        opened.record(50_000, Some(3_000));
        opened.record(9_000, Some(1_000));
        opened.record(1_000_000, None);
        let mut sum = Opened::default();
        sum.add(&opened);
        let times = sum.response_time(&all).unwrap();
        let counted = |ns: u64| times.filled().unwrap().count_at(ns);
        assert_eq!(times.count(), 4);
        assert_eq!([2_000, 9_000, 50_000, 1_000_000].map(counted), [1; 4]);
        assert_eq!(times.min_ns(), Some(2_000));
        assert!(times.max_ns().unwrap() >= 1_000_000);
    }
}
