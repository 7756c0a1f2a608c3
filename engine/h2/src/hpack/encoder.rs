//! Fields to blocks of bytes (RFC 7541, section 6). A field goes into the table when there is room
//! beside those that are there: nothing is evicted for it, so that a load of the same few requests
//! settles on blocks of a byte per field, and values that never come again do not drive those out.

use super::table::{Found, Table};
use super::{huffman, integer};

/// What becomes of a field besides being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexing {
    /// It comes again: both sides keep it.
    Kept,
    /// It is another the next time.
    Passing,
    /// It is secret: nobody on the way may keep it (RFC 7541, section 7.1.3).
    Secret,
}

/// The tables of one direction of a connection.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// We do not take more than this, whatever the other side allows.
    max_bytes: usize,
    /// The least and the last limit since the last block; it must begin with them.
    resized: Option<(usize, usize)>,
}

impl Encoder {
    pub fn new(max_bytes: u32) -> Self {
        Self {
            table: Table::new(max_bytes.min(super::DEFAULT_TABLE_BYTES) as usize),
            max_bytes: max_bytes as usize,
            resized: None,
        }
    }

    /// The other side allows so much for the table.
    pub fn allow(&mut self, bytes: u32) {
        let limit = (bytes as usize).min(self.max_bytes);
        if limit != self.table.limit() {
            self.table.set_limit(limit);
            let least = self.resized.map_or(limit, |resized| resized.0.min(limit));
            self.resized = Some((least, limit));
        }
    }

    /// The same while the same block means the same fields; `None`: the next block says more than
    /// its fields.
    pub fn version(&self) -> Option<u64> {
        self.resized.is_none().then(|| self.table.version())
    }

    /// Begins a block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some((least, limit)) = self.resized.take() {
            if least < limit {
                integer::write(least, 5, 0x20, out);
            }
            integer::write(limit, 5, 0x20, out);
        }
    }

    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let found = self.table.find(name, value);
        if let (Found::Whole(index), true) = (found, indexing != Indexing::Secret) {
            return integer::write(index, 7, 0x80, out);
        }
        let keeps = indexing == Indexing::Kept && self.table.has_room(name, value);
        let (flags, prefix_bits) = match (keeps, indexing) {
            (true, _) => (0x40, 6),
            (false, Indexing::Secret) => (0x10, 4),
            (false, _) => (0, 4),
        };
        match found {
            Found::Whole(index) | Found::Name(index) => {
                integer::write(index, prefix_bits, flags, out);
            }
            Found::Nowhere => {
                out.push(flags);
                string(name, out);
            }
        }
        string(value, out);
        if keeps {
            self.table.insert(name, value);
        }
    }
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    let coded = huffman::encoded_bytes(text);
    if coded < text.len() {
        integer::write(coded, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::write(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;
    use proptest::prelude::*;

    fn indexing() -> impl Strategy<Value = Indexing> {
        prop_oneof![
            Just(Indexing::Kept),
            Just(Indexing::Passing),
            Just(Indexing::Secret)
        ]
    }

    type Block = (Option<u32>, Vec<(Vec<u8>, Vec<u8>, Indexing)>);

    fn blocks() -> impl Strategy<Value = Vec<Block>> {
        let name = prop_oneof![
            Just(b":path".to_vec()),
            Just(b"accept".to_vec()),
            Just(b"x".to_vec()),
            any::<Vec<u8>>()
        ];
        let value = prop_oneof![Just(b"/".to_vec()), Just(b"one".to_vec()), any::<Vec<u8>>()];
        let fields = proptest::collection::vec((name, value, indexing()), 0..8);
        proptest::collection::vec((proptest::option::of(0_u32..4096), fields), 1..8)
    }

    proptest! {
        /// Whatever the order of fields and limits, the other side reads what was meant.
        #[test]
        fn what_is_encoded_is_decoded(blocks in blocks()) {
            let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096));
            for (limit, fields) in blocks {
                if let Some(limit) = limit {
                    encoder.allow(limit);
                    encoder.allow(limit / 2);
                    encoder.allow(limit);
                }
                let mut block = Vec::new();
                encoder.begin(&mut block);
                for (name, value, indexing) in &fields {
                    encoder.field(name, value, *indexing, &mut block);
                }
                let mut decoded = Vec::new();
                let result = decoder.decode(&block, |name, value| decoded.push((name.to_vec(), value.to_vec())));
                prop_assert_eq!(result, Ok(()));
                let sent: Vec<_> = fields.into_iter().map(|(name, value, _)| (name, value)).collect();
                prop_assert_eq!(decoded, sent);
            }
        }
    }

    #[test]
    fn a_field_that_comes_again_is_one_byte_and_a_secret_is_in_no_table() {
        let mut encoder = Encoder::new(4096);
        let mut sizes = Vec::new();
        for _ in 0..2 {
            let mut block = Vec::new();
            encoder.begin(&mut block);
            encoder.field(b"user-agent", b"prony", Indexing::Kept, &mut block);
            sizes.push(block.len());
        }
        assert!(sizes[0] > 1 && sizes[1] == 1, "{sizes:?}");
        let version = encoder.version();
        for _ in 0..2 {
            let mut block = Vec::new();
            encoder.field(b"authorization", b"x", Indexing::Secret, &mut block);
            assert_eq!(block[0] & 0xf0, 0x10);
        }
        assert_eq!(encoder.version(), version);
    }

    #[test]
    fn a_full_table_stays_as_it_is() {
        let mut encoder = Encoder::new(40);
        let mut block = Vec::new();
        encoder.field(b"a", b"1", Indexing::Kept, &mut block);
        let version = encoder.version();
        encoder.field(b"b", b"2", Indexing::Kept, &mut block);
        assert_eq!(encoder.version(), version);
        block.clear();
        encoder.field(b"a", b"1", Indexing::Kept, &mut block);
        assert_eq!(block, [0x80 | 62]);
    }

    #[test]
    fn a_smaller_table_is_announced_before_the_next_field() {
        let mut encoder = Encoder::new(4096);
        let mut block = Vec::new();
        encoder.field(b"a", b"1", Indexing::Kept, &mut block);
        encoder.allow(0);
        encoder.allow(100);
        assert_eq!(encoder.version(), None);
        block.clear();
        encoder.begin(&mut block);
        assert_eq!(block, [0x20, 0x3f, 69]);
        assert!(encoder.version().is_some());
    }
}
