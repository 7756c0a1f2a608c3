//! A request as its fields, in one piece of memory that is used again.

use crate::hpack::encoder::Indexing;
use crate::hpack::field_bytes;

#[derive(Debug, Clone, Copy)]
struct Span {
    name: u32,
    value: u32,
    indexing: Indexing,
}

/// The fields of a request, the pseudo-header fields first.
#[derive(Debug, Default, Clone)]
pub struct Fields {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    head_request: bool,
    /// A number below a few hundred that this very request always has: its block is then kept.
    number: Option<u32>,
    /// What RFC 9113, section 6.5.2, counts for a header list.
    list_bytes: usize,
}

impl Fields {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        (self.head_request, self.number, self.list_bytes) = (false, None, 0);
    }

    /// A field; its name in lower case.
    pub fn push(&mut self, name: &[u8], value: &[u8], indexing: Indexing) {
        if name == b":method" {
            self.head_request = value == b"HEAD";
        }
        let from = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes[from..].make_ascii_lowercase();
        self.bytes.extend_from_slice(value);
        self.spans.push(Span {
            name: name.len() as u32,
            value: value.len() as u32,
            indexing,
        });
        self.list_bytes += field_bytes(name, value);
    }

    /// The same request comes again under this number, on any connection.
    pub fn set_number(&mut self, number: u32) {
        self.number = Some(number);
    }

    pub fn number(&self) -> Option<u32> {
        self.number
    }

    /// Its response has no body whatever its head says.
    pub fn is_head(&self) -> bool {
        self.head_request
    }

    pub(crate) fn list_bytes(&self) -> usize {
        self.list_bytes
    }

    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8], Indexing)> {
        let mut rest = &self.bytes[..];
        self.spans.iter().map(move |span| {
            let (name, behind) = rest.split_at(span.name as usize);
            let (value, behind) = behind.split_at(span.value as usize);
            rest = behind;
            (name, value, span.indexing)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_their_order_and_names_in_lower_case() {
        let mut request = Fields::default();
        request.push(b":method", b"HEAD", Indexing::Kept);
        request.push(b"X-One", b"A b", Indexing::Passing);
        assert!(request.is_head());
        let fields: Vec<_> = request.fields().collect();
        assert_eq!(
            fields,
            [
                (&b":method"[..], &b"HEAD"[..], Indexing::Kept),
                (b"x-one", b"A b", Indexing::Passing)
            ]
        );
        request.clear();
        assert!(!request.is_head() && request.fields().next().is_none());
    }
}
