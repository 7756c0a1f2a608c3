//! What a right response looks like, compiled once, and the check of a body that streams by without
//! being kept. It knows nothing of framing.

use memchr::memmem::Finder;

use super::folded::unfold;
use crate::plan::Expect;

/// Which declaration a response did not meet; the first of status, header, size, body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmet {
    Status,
    Header,
    Size,
    Body,
}

/// Whether `value` contains `part`, ASCII case apart: servers write charsets in either.
fn holds_ignoring_case(value: &[u8], part: &[u8]) -> bool {
    if value.contains(&b'\n') {
        let mut line = value.to_vec();
        unfold(&mut line);
        return holds_ignoring_case(&line, part);
    }
    part.is_empty()
        || value
            .windows(part.len())
            .any(|at| at.eq_ignore_ascii_case(part))
}

/// A compiled [`Expect`], but for what needs the whole body in one piece.
#[derive(Debug, Clone)]
pub struct Expectation {
    status: Vec<u16>,
    not_status: Vec<u16>,
    headers: Vec<(String, Vec<u8>)>,
    /// What must occur, and behind it what must not.
    texts: Vec<Finder<'static>>,
    /// Bit i: the i-th text must occur.
    wanted: u64,
    equals: Option<Vec<u8>>,
    differs_from: Option<Vec<u8>>,
    /// The length is none other.
    exact: bool,
    min_bytes: u64,
    max_bytes: u64,
}

impl Expectation {
    /// From a checked one: at most 64 texts.
    pub fn new(expect: &Expect) -> Self {
        let finder = |text: &String| Finder::new(text.as_bytes()).into_owned();
        let bytes = |text: &String| text.as_bytes().to_vec();
        let contains = expect.body_contains.len() as u32;
        Self {
            status: expect.status.clone(),
            not_status: expect.not_status.clone(),
            headers: expect
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.trim().as_bytes().to_vec()))
                .collect(),
            texts: expect
                .body_contains
                .iter()
                .chain(&expect.body_not_contains)
                .map(finder)
                .collect(),
            wanted: 1_u64.checked_shl(contains).map_or(u64::MAX, |bit| bit - 1),
            equals: expect.body_equals.as_ref().map(bytes),
            differs_from: expect.body_not_equals.as_ref().map(bytes),
            exact: expect.body_bytes.is_some(),
            min_bytes: expect.body_bytes.or(expect.min_bytes).unwrap_or(0),
            max_bytes: expect.body_bytes.or(expect.max_bytes).unwrap_or(u64::MAX),
        }
    }

    /// Checks what the head alone can show.
    pub fn check_head(&self, status: u16, headers: &[httparse::Header<'_>]) -> Option<Unmet> {
        if !self.status.is_empty() && !self.status.contains(&status)
            || self.not_status.contains(&status)
        {
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
        self.equals.is_some() || self.differs_from.is_some() || !self.texts.is_empty()
    }

    /// Checks a body that lies in one piece.
    pub fn check_body(&self, body: &[u8]) -> Option<Unmet> {
        let unmet = self.check_size(body.len() as u64);
        if unmet.is_some() {
            return unmet;
        }
        let right = self.equals.as_deref().is_none_or(|equals| equals == body)
            && self
                .differs_from
                .as_deref()
                .is_none_or(|other| other != body)
            && self
                .texts
                .iter()
                .enumerate()
                .all(|(index, finder)| finder.find(body).is_some() == self.wants(index));
        if right { None } else { Some(Unmet::Body) }
    }

    fn wants(&self, index: usize) -> bool {
        self.wanted & (1 << index) != 0
    }

    fn check_size(&self, bytes: u64) -> Option<Unmet> {
        if bytes >= self.min_bytes && bytes <= self.max_bytes {
            None
        } else if self.exact {
            Some(Unmet::Body)
        } else {
            Some(Unmet::Size)
        }
    }
}

/// The check of one body that comes in pieces: constant memory whatever the length.
#[derive(Debug, Default)]
pub struct BodyCheck {
    seen: u64,
    /// From what it should be, and from what it should not be.
    differs: bool,
    is_another: bool,
    /// Bit i: the i-th text was found.
    found: u64,
    /// The end of what was seen, as long as the longest text less one byte.
    tail: Vec<u8>,
}

impl BodyCheck {
    pub fn feed(&mut self, expectation: &Expectation, piece: &[u8]) {
        if let Some(equals) = &expectation.equals {
            self.differs |= differs(equals, self.seen, piece);
        }
        if let Some(other) = &expectation.differs_from {
            self.is_another |= differs(other, self.seen, piece);
        }
        self.seen += piece.len() as u64;
        if !expectation.texts.is_empty() {
            self.search(expectation, piece);
        }
    }

    fn search(&mut self, expectation: &Expectation, piece: &[u8]) {
        let longest = expectation
            .texts
            .iter()
            .map(|finder| finder.needle().len())
            .max()
            .unwrap_or(1);
        let overlap = longest - 1;
        // A text may lie across the border of two pieces: look at the border too.
        let before = self.tail.len();
        self.tail
            .extend_from_slice(&piece[..piece.len().min(overlap)]);
        for (index, finder) in expectation.texts.iter().enumerate() {
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
        let unmet = expectation.check_size(self.seen);
        if unmet.is_some() {
            return unmet;
        }
        let is = |text: &Vec<u8>, differs: bool| !differs && text.len() as u64 == self.seen;
        let equals = expectation.equals.as_ref();
        let other = expectation.differs_from.as_ref();
        let right = equals.is_none_or(|text| is(text, self.differs))
            && other.is_none_or(|text| !is(text, self.is_another))
            && self.found == expectation.wanted;
        if right { None } else { Some(Unmet::Body) }
    }
}

/// Whether a piece that begins there is another than that of the text.
fn differs(text: &[u8], from: u64, piece: &[u8]) -> bool {
    let begin = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
    let end = begin.saturating_add(piece.len()).min(text.len());
    text[begin..end] != *piece
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
                Expectation::new(&Expect {
                    body_contains: vec!["ab".to_owned()],
                    body_not_contains: vec!["bbb".to_owned(), "aaa".to_owned()],
                    body_not_equals: Some("abab".to_owned()),
                    min_bytes: Some(2),
                    max_bytes: Some(20),
                    ..Expect::default()
                }),
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
        let not = Expectation::new(&Expect {
            not_status: vec![503],
            ..Expect::default()
        });
        assert_eq!(not.check_head(503, &wrong), Some(Unmet::Status));
        assert_eq!(not.check_head(200, &wrong), None);
    }

    #[test]
    fn a_body_is_what_it_must_be_and_not_what_it_must_not_be() {
        let not_this = Expectation::new(&Expect {
            body_not_equals: Some("hello".to_owned()),
            ..Expect::default()
        });
        let not_within = Expectation::new(&Expect {
            body_not_contains: vec!["ell".to_owned()],
            ..Expect::default()
        });
        let of_length = |fewest, most| {
            Expectation::new(&Expect {
                min_bytes: fewest,
                max_bytes: most,
                ..Expect::default()
            })
        };
        for (expectation, body, unmet) in [
            (&not_this, "hello", Some(Unmet::Body)),
            (&not_this, "hello!", None),
            (&not_within, "hello", Some(Unmet::Body)),
            (&not_within, "help", None),
            (&of_length(Some(5), None), "hell", Some(Unmet::Size)),
            (&of_length(Some(5), None), "hello", None),
            (&of_length(None, Some(5)), "hello!", Some(Unmet::Size)),
            (&of_length(Some(5), Some(5)), "hello", None),
        ] {
            assert_eq!(expectation.check_body(body.as_bytes()), unmet, "{body}");
        }
    }
}
