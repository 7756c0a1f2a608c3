//! The fields that both sides know by number: those of RFC 7541, appendix A, and behind them the
//! dynamic table, whose newest entry comes first.

use std::collections::VecDeque;

use super::field_bytes;

/// Appendix A, from index 1 on.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

#[derive(Debug)]
struct Entry {
    name_length: usize,
    /// The name, then the value.
    bytes: Box<[u8]>,
}

impl Entry {
    fn field(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.name_length)
    }
}

/// Where a field is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Whole(usize),
    Name(usize),
    Nowhere,
}

#[derive(Debug)]
pub struct Table {
    entries: VecDeque<Entry>,
    bytes: usize,
    limit: usize,
    /// Changes when an entry comes or goes: until then an index means the same field.
    version: u64,
}

impl Table {
    pub fn new(limit: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            limit,
            version: 0,
        }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether a field fits beside all that is there.
    pub fn has_room(&self, name: &[u8], value: &[u8]) -> bool {
        self.bytes + field_bytes(name, value) <= self.limit
    }

    /// `None`: there is no such index.
    pub fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let index = index.checked_sub(1)?;
        if let Some((name, value)) = STATIC.get(index) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        self.entries.get(index - STATIC.len()).map(Entry::field)
    }

    pub fn find(&self, name: &[u8], value: &[u8]) -> Found {
        let dynamic = self.entries.iter().map(Entry::field);
        let fixed = STATIC
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let mut found = Found::Nowhere;
        for (place, field) in fixed.chain(dynamic).enumerate() {
            if field.0 != name {
                continue;
            }
            if field.1 == value {
                return Found::Whole(place + 1);
            }
            if found == Found::Nowhere {
                found = Found::Name(place + 1);
            }
        }
        found
    }

    /// A field larger than the table empties it (RFC 7541, section 4.4).
    pub fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.version += 1;
        let bytes = field_bytes(name, value);
        self.evict_down_to(self.limit.saturating_sub(bytes));
        if bytes <= self.limit {
            self.bytes += bytes;
            self.entries.push_front(Entry {
                name_length: name.len(),
                bytes: [name, value].concat().into_boxed_slice(),
            });
        }
    }

    pub fn set_limit(&mut self, limit: usize) {
        self.version += 1;
        self.limit = limit;
        self.evict_down_to(limit);
    }

    fn evict_down_to(&mut self, bytes: usize) {
        while self.bytes > bytes
            && let Some(entry) = self.entries.pop_back()
        {
            let (name, value) = entry.field();
            self.bytes -= field_bytes(name, value);
        }
    }

    #[cfg(test)]
    pub fn fields(&self) -> (Vec<(String, String)>, usize) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let field = |entry: &Entry| (text(entry.field().0), text(entry.field().1));
        (self.entries.iter().map(field).collect(), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_static_table_has_the_indexes_of_the_rfc() {
        let table = Table::new(0);
        for (index, name, value) in [
            (1, ":authority", ""),
            (2, ":method", "GET"),
            (8, ":status", "200"),
            (16, "accept-encoding", "gzip, deflate"),
            (28, "content-length", ""),
            (38, "host", ""),
            (55, "set-cookie", ""),
            (61, "www-authenticate", ""),
        ] {
            assert_eq!(table.get(index), Some((name.as_bytes(), value.as_bytes())));
        }
        assert_eq!((table.get(0), table.get(62)), (None, None));
    }

    #[test]
    fn the_oldest_make_room_and_one_too_large_empties_the_table() {
        let mut table = Table::new(3 * 34);
        for name in [b"a", b"b", b"c", b"d"] {
            table.insert(name, b"1");
        }
        let (fields, bytes) = table.fields();
        assert_eq!(
            fields.iter().map(|field| &field.0[..]).collect::<Vec<_>>(),
            ["d", "c", "b"]
        );
        assert_eq!(bytes, 3 * 34);
        assert_eq!(table.find(b"c", b"1"), Found::Whole(63));
        assert_eq!(table.find(b"c", b"2"), Found::Name(63));
        assert_eq!(table.find(b"a", b"1"), Found::Nowhere);
        table.insert(&[b'x'; 100], b"");
        assert_eq!(table.fields(), (vec![], 0));
        table.insert(b"a", b"1");
        table.set_limit(33);
        assert_eq!(table.fields(), (vec![], 0));
    }
}
