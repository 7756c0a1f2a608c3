//! How often each response came: its status and the length of its body.

use std::collections::BTreeMap;
use std::collections::HashMap;

use super::Sum;

/// Different responses counted one by one; more (random lengths) go to the others.
const MAX_DISTINCT: usize = 4096;

/// A status and the length of a body.
pub type StatusAndLength = (u16, u64);

/// Counts per response and per status.
#[derive(Debug, Clone, Default)]
pub struct ResponseCounts {
    /// The response that came last, and how often in a row: a run costs one comparison each.
    last: Option<(StatusAndLength, u64)>,
    counts: HashMap<StatusAndLength, u64>,
    others: BTreeMap<u16, u64>,
}

impl ResponseCounts {
    #[inline]
    pub fn count(&mut self, status: u16, body_bytes: u64) {
        match &mut self.last {
            Some((response, count)) if *response == (status, body_bytes) => *count += 1,
            _ => {
                self.settle();
                self.last = Some(((status, body_bytes), 1));
            }
        }
    }

    fn settle(&mut self) {
        if let Some((response, count)) = self.last.take() {
            self.add_one(response, count);
        }
    }

    fn add_one(&mut self, response: StatusAndLength, count: u64) {
        if self.counts.len() < MAX_DISTINCT || self.counts.contains_key(&response) {
            *self.counts.entry(response).or_default() += count;
        } else {
            *self.others.entry(response.0).or_default() += count;
        }
    }

    /// Count per status code.
    pub fn by_status(&self) -> BTreeMap<u16, u64> {
        let mut by_status = self.others.clone();
        for ((status, _), count) in self.counts.iter().map(|(a, c)| (*a, *c)).chain(self.last) {
            *by_status.entry(status).or_default() += count;
        }
        by_status
    }

    /// The `limit` most frequent responses, most first, and how many there were of all others.
    pub fn most_frequent(&self, limit: usize) -> (Vec<(StatusAndLength, u64)>, u64) {
        let mut counts = self.counts.clone();
        if let Some((response, count)) = self.last {
            *counts.entry(response).or_default() += count;
        }
        let mut all: Vec<(StatusAndLength, u64)> = counts.into_iter().collect();
        all.sort_unstable_by_key(|(response, count)| (std::cmp::Reverse(*count), *response));
        let rest: u64 = all.iter().skip(limit).map(|(_, count)| count).sum();
        all.truncate(limit);
        (all, rest + self.others.values().sum::<u64>())
    }
}

impl Sum for ResponseCounts {
    fn add(&mut self, other: &Self) {
        for (response, count) in other.counts.iter().map(|(a, c)| (*a, *c)).chain(other.last) {
            self.add_one(response, count);
        }
        for (status, count) in &other.others {
            *self.others.entry(*status).or_default() += count;
        }
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_come_first_and_none_is_lost() {
        let mut responses = ResponseCounts::default();
        for round in 0..10u64 {
            responses.count(200, 5);
            responses.count(200, 5);
            responses.count(404, 9);
            responses.count(200, 100 + round);
        }
        let mut sum = ResponseCounts::default();
        sum.add(&responses);
        sum.add(&responses);
        let (most, others) = sum.most_frequent(2);
        assert_eq!(most, vec![((200, 5), 40), ((404, 9), 20)]);
        assert_eq!(others, 20);
        assert_eq!(sum.by_status(), BTreeMap::from([(200, 60), (404, 20)]));
    }

    #[test]
    fn memory_stays_bounded_with_ever_new_lengths() {
        let mut responses = ResponseCounts::default();
        for length in 0..100_000 {
            responses.count(200, length);
        }
        assert!(responses.counts.len() <= MAX_DISTINCT);
        assert_eq!(responses.by_status()[&200], 100_000);
    }
}
