//! What a right answer looks like, compiled once, and the check of a body that streams by without being kept.
//! It knows nothing of framing.

use memchr::memmem::Finder;

use crate::plan::Expect;

/// Which declaration an answer did not meet; the first of status, header, body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmet {
    Status,
    Header,
    Body,
}

/// Whether `value` contains `part`, ASCII case apart: servers agree on `text/plain`, not on how they write
/// its charset.
fn holds_ignoring_case(value: &[u8], part: &[u8]) -> bool {
    part.is_empty()
        || value
            .windows(part.len())
            .any(|at| at.eq_ignore_ascii_case(part))
}

/// A compiled [`Expect`].
#[derive(Debug, Clone)]
pub struct Expectation {
    status: Vec<u16>,
    headers: Vec<(String, Vec<u8>)>,
    contains: Vec<Finder<'static>>,
    equals: Option<Vec<u8>>,
    bytes: Option<u64>,
}

impl Expectation {
    pub fn new(expect: &Expect) -> Self {
        Self {
            status: expect.status.clone(),
            headers: expect
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.trim().as_bytes().to_vec()))
                .collect(),
            contains: expect
                .body_contains
                .iter()
                .map(|text| Finder::new(text.as_bytes()).into_owned())
                .collect(),
            equals: expect
                .body_equals
                .as_ref()
                .map(|text| text.as_bytes().to_vec()),
            bytes: expect.body_bytes,
        }
    }

    /// Checks what the head alone can show.
    pub fn check_head(&self, status: u16, headers: &[httparse::Header<'_>]) -> Option<Unmet> {
        if !self.status.is_empty() && !self.status.contains(&status) {
            return Some(Unmet::Status);
        }
        let all_there = self.headers.iter().all(|(name, value)| {
            headers.iter().any(|header| {
                header.name.eq_ignore_ascii_case(name) && holds_ignoring_case(header.value, value)
            })
        });
        if all_there { None } else { Some(Unmet::Header) }
    }

    /// Whether a body has to be looked at and not only counted.
    pub fn reads_body(&self) -> bool {
        self.equals.is_some() || !self.contains.is_empty()
    }

    /// Checks a body that lies in one piece.
    pub fn check_body(&self, body: &[u8]) -> Option<Unmet> {
        let right = self.bytes.is_none_or(|bytes| bytes == body.len() as u64)
            && self.equals.as_deref().is_none_or(|equals| equals == body)
            && self
                .contains
                .iter()
                .all(|finder| finder.find(body).is_some());
        if right { None } else { Some(Unmet::Body) }
    }
}

/// The check of one body that comes in pieces: constant memory whatever the length.
#[derive(Debug, Default)]
pub struct BodyCheck {
    seen: u64,
    differs: bool,
    /// Bit i: the i-th text was found.
    found: u64,
    /// The end of what was seen, as long as the longest text less one byte.
    tail: Vec<u8>,
}

impl BodyCheck {
    pub fn feed(&mut self, expectation: &Expectation, piece: &[u8]) {
        if let Some(equals) = &expectation.equals {
            let begin = usize::try_from(self.seen)
                .unwrap_or(usize::MAX)
                .min(equals.len());
            let end = begin.saturating_add(piece.len()).min(equals.len());
            self.differs |= equals[begin..end] != *piece;
        }
        self.seen += piece.len() as u64;
        if !expectation.contains.is_empty() {
            self.search(expectation, piece);
        }
    }

    fn search(&mut self, expectation: &Expectation, piece: &[u8]) {
        let longest = expectation
            .contains
            .iter()
            .map(|finder| finder.needle().len())
            .max()
            .unwrap_or(1);
        let overlap = longest - 1;
        // A text may lie across the border of two pieces: look at the border too.
        let before = self.tail.len();
        self.tail
            .extend_from_slice(&piece[..piece.len().min(overlap)]);
        for (index, finder) in expectation.contains.iter().enumerate() {
            if finder.find(&self.tail).is_some() || finder.find(piece).is_some() {
                self.found |= 1 << index;
            }
        }
        if piece.len() >= overlap {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - overlap..]);
        } else {
            debug_assert_eq!(self.tail.len(), before + piece.len());
            let surplus = self.tail.len().saturating_sub(overlap);
            self.tail.drain(..surplus);
        }
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }

    pub fn finish(&self, expectation: &Expectation) -> Option<Unmet> {
        let texts = expectation.contains.len();
        let all = if texts == 64 {
            u64::MAX
        } else {
            (1 << texts) - 1
        };
        let right = expectation.bytes.is_none_or(|bytes| bytes == self.seen)
            && expectation
                .equals
                .as_ref()
                .is_none_or(|equals| !self.differs && equals.len() as u64 == self.seen)
            && self.found & all == all;
        if right { None } else { Some(Unmet::Body) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expectation(contains: &[&str], equals: Option<&str>, bytes: Option<u64>) -> Expectation {
        Expectation::new(&Expect {
            body_contains: contains.iter().map(|text| (*text).to_owned()).collect(),
            body_equals: equals.map(str::to_owned),
            body_bytes: bytes,
            ..Expect::default()
        })
    }

    proptest! {
        /// Pieces are judged as the whole is.
        #[test]
        fn pieces_and_the_whole_agree(body in "[ab]{0,30}", cuts in proptest::collection::vec(0usize..30, 0..6)) {
            for expectation in [
                expectation(&["ab", "abba"], None, None),
                expectation(&["a"], Some("abab"), None),
                expectation(&[], None, Some(7)),
            ] {
                let mut cuts = cuts.clone();
                cuts.push(0);
                cuts.push(body.len());
                cuts.iter_mut().for_each(|cut| *cut = (*cut).min(body.len()));
                cuts.sort_unstable();
                let mut check = BodyCheck::default();
                for pair in cuts.windows(2) {
                    check.feed(&expectation, &body.as_bytes()[pair[0]..pair[1]]);
                }
                prop_assert_eq!(check.finish(&expectation), expectation.check_body(body.as_bytes()));
            }
        }
    }

    #[test]
    fn status_and_headers_are_checked_in_this_order() {
        let expectation = Expectation::new(&Expect {
            status: vec![200],
            headers: vec![("x-kind".into(), "the a".into())],
            ..Expect::default()
        });
        let right = [httparse::Header {
            name: "X-Kind",
            value: b" the A; b",
        }];
        let wrong = [httparse::Header {
            name: "X-Kind",
            value: b"the b",
        }];
        assert_eq!(expectation.check_head(200, &right), None);
        assert_eq!(expectation.check_head(200, &wrong), Some(Unmet::Header));
        assert_eq!(expectation.check_head(404, &wrong), Some(Unmet::Status));
    }
}
