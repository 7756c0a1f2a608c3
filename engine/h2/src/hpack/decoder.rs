//! Blocks of bytes to fields (RFC 7541, section 6).

use super::table::Table;
use super::{huffman, integer};

/// Not a header block: the connection is of no more use, for its tables differ from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadBlock(pub &'static str);

/// The tables of one direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// What the other side was allowed to take for its table.
    max_bytes: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    pub fn new(max_bytes: u32) -> Self {
        let max_bytes = max_bytes as usize;
        Self {
            table: Table::new(max_bytes),
            max_bytes,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// The same while the same bytes mean the same fields and change nothing.
    pub fn version(&self) -> u64 {
        self.table.version()
    }

    /// Hands each field of a whole block to `each`, in their order. The table is kept in step also
    /// when nobody wants the fields.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), BadBlock> {
        const SHORT: BadBlock = BadBlock("a header block ends within a field");
        let mut input = block;
        let mut begun = false;
        while let Some(first) = input.first() {
            if first & 0xe0 == 0x20 {
                if begun {
                    return Err(BadBlock(
                        "the size of the table changes behind the first field",
                    ));
                }
                let bytes = integer::read(&mut input, 5).ok_or(SHORT)?;
                if bytes > self.max_bytes {
                    return Err(BadBlock("the table grows beyond what SETTINGS allow"));
                }
                self.table.set_limit(bytes);
                continue;
            }
            begun = true;
            if first & 0x80 != 0 {
                let index = integer::read(&mut input, 7).ok_or(SHORT)?;
                let (name, value) = self.known(index)?;
                each(name, value);
                continue;
            }
            let indexed = first & 0x40 != 0;
            let index = integer::read(&mut input, if indexed { 6 } else { 4 }).ok_or(SHORT)?;
            let mut name = std::mem::take(&mut self.name);
            name.clear();
            let result = if index == 0 {
                string(&mut input, &mut name)
            } else {
                self.known(index)
                    .map(|known| name.extend_from_slice(known.0))
            };
            self.name = name;
            result?;
            self.value.clear();
            string(&mut input, &mut self.value)?;
            each(&self.name, &self.value);
            if indexed {
                self.table.insert(&self.name, &self.value);
            }
        }
        Ok(())
    }

    fn known(&self, index: usize) -> Result<(&[u8], &[u8]), BadBlock> {
        self.table
            .get(index)
            .ok_or(BadBlock("a header block names an index that no field has"))
    }

    #[cfg(test)]
    pub(super) fn fields(&self) -> (Vec<(String, String)>, usize) {
        self.table.fields()
    }
}

fn string(input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), BadBlock> {
    const SHORT: BadBlock = BadBlock("a header block ends within a string");
    let coded = input.first().ok_or(SHORT)? & 0x80 != 0;
    let length = integer::read(input, 7).ok_or(SHORT)?;
    let (text, rest) = input.split_at_checked(length).ok_or(SHORT)?;
    *input = rest;
    if coded {
        huffman::decode(text, out).map_err(|_| BadBlock("a string is not in the Huffman code"))
    } else {
        out.extend_from_slice(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = Vec<(String, String)>;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, BadBlock> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(block, |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    /// Requests of RFC 7541, C.3 and C.4: the same fields, plain and in the Huffman code.
    #[test]
    fn the_requests_of_the_rfc() {
        let blocks = [
            [
                "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                "8286 84be 5808 6e6f 2d63 6163 6865",
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
            ],
            [
                "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
                "8286 84be 5886 a8eb 1064 9cbf",
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
            ],
        ];
        for [first, second, third] in blocks {
            let mut decoder = Decoder::new(4096);
            let start = [(":method", "GET"), (":scheme", "http"), (":path", "/")];
            let authority = (":authority", "www.example.com");
            let expected = [&start[..], &[authority]].concat();
            assert_eq!(decode(&mut decoder, &bytes(first)), Ok(fields(&expected)));
            let expected = [&expected[..], &[("cache-control", "no-cache")]].concat();
            assert_eq!(decode(&mut decoder, &bytes(second)), Ok(fields(&expected)));
            assert_eq!(
                decode(&mut decoder, &bytes(third)),
                Ok(fields(&[
                    (":method", "GET"),
                    (":scheme", "https"),
                    (":path", "/index.html"),
                    authority,
                    ("custom-key", "custom-value"),
                ]))
            );
            let kept = [
                ("custom-key", "custom-value"),
                ("cache-control", "no-cache"),
                authority,
            ];
            assert_eq!(decoder.fields(), (fields(&kept), 164));
        }
    }

    /// Responses of RFC 7541, C.5 and C.6, with a table of 256 bytes.
    #[test]
    fn the_responses_of_the_rfc() {
        let blocks = [
            [
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a \
                 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                "4803 3330 37c1 c0bf",
            ],
            [
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e \
                 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                "4883 640e ffc1 c0bf",
            ],
        ];
        for [first, second] in blocks {
            let mut decoder = Decoder::new(256);
            let rest = [
                ("cache-control", "private"),
                ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
                ("location", "https://www.example.com"),
            ];
            let expected = [&[(":status", "302")], &rest[..]].concat();
            assert_eq!(decode(&mut decoder, &bytes(first)), Ok(fields(&expected)));
            assert_eq!(decoder.fields().1, 222);
            let expected = [&[(":status", "307")], &rest[..]].concat();
            assert_eq!(decode(&mut decoder, &bytes(second)), Ok(fields(&expected)));
            assert_eq!(decoder.fields().1, 222);
        }
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for (block, part) in [
            ("80", "index that no field has"),
            ("be", "index that no field has"),
            ("4f", "within a string"),
            ("40", "within a string"),
            ("4003 6162", "within a string"),
            ("4081 0001 61", "Huffman"),
            ("ff", "within a field"),
            ("ff ff ff ff ff ff", "within a field"),
            ("3fe2 1f", "beyond what SETTINGS allow"),
            ("82 20", "behind the first field"),
            ("7e 00", "index that no field has"),
        ] {
            let error = decode(&mut Decoder::new(4096), &bytes(block)).unwrap_err();
            assert!(error.0.contains(part), "{block}: {}", error.0);
        }
    }

    #[test]
    fn the_version_stays_while_a_block_means_the_same() {
        let mut decoder = Decoder::new(4096);
        let before = decoder.version();
        decode(&mut decoder, &bytes("88 0f0d 0231 32")).unwrap();
        assert_eq!(decoder.version(), before);
        decode(&mut decoder, &bytes("88 5f 0161")).unwrap();
        assert_ne!(decoder.version(), before);
        let before = decoder.version();
        decode(&mut decoder, &bytes("20")).unwrap();
        assert_ne!(decoder.version(), before);
    }
}
