//! The Huffman code of RFC 7541, appendix B. It is canonical: within a length, codes rise with the
//! symbols, and each length begins where the one before ended. So the lengths say all of it.

const SYMBOLS: usize = 257;
/// Ends no string: it only stands for what pads the last byte.
const END: u16 = 256;
const LONGEST: usize = 30;
/// Codes up to this length are found in one look.
const SHORT: u32 = 9;

/// By symbol, in bits; the last is that of the end.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

struct Tables {
    /// By symbol.
    codes: [u32; SYMBOLS],
    /// Symbols in the order of their codes.
    sorted: [u16; SYMBOLS],
    /// By length: the first code behind those of this length, its bits at the left of 32.
    limits: [u64; LONGEST + 1],
    /// By length: what a code less this is as a place in `sorted`.
    offsets: [i64; LONGEST + 1],
    /// By the next [`SHORT`] bits: the symbol and its length; a length of 0: its code is longer.
    short: [(u8, u8); 1 << SHORT],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables {
        codes: [0; SYMBOLS],
        sorted: [0; SYMBOLS],
        limits: [0; LONGEST + 1],
        offsets: [0; LONGEST + 1],
        short: [(0, 0); 1 << SHORT],
    };
    let (mut code, mut place, mut length) = (0_u64, 0, 1);
    while length <= LONGEST {
        code <<= 1;
        tables.offsets[length] = code as i64 - place as i64;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                tables.codes[symbol] = code as u32;
                tables.sorted[place] = symbol as u16;
                if length <= SHORT as usize {
                    let from = (code << (SHORT as usize - length)) as usize;
                    let mut entry = from;
                    while entry < from + (1 << (SHORT as usize - length)) {
                        tables.short[entry] = (symbol as u8, length as u8);
                        entry += 1;
                    }
                }
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        tables.limits[length] = code << (32 - length);
        length += 1;
    }
    tables
}

/// The bytes that a string takes when it is encoded.
pub fn encoded_bytes(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|byte| usize::from(LENGTHS[usize::from(*byte)]))
        .sum();
    bits.div_ceil(8)
}

pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for byte in text {
        let symbol = usize::from(*byte);
        let length = u32::from(LENGTHS[symbol]);
        bits = bits << length | u64::from(TABLES.codes[symbol]);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // The end's first bits, which are ones.
        let padding = 8 - count;
        out.push((bits << padding) as u8 | ((1_u16 << padding) - 1) as u8);
    }
}

/// Not a string in this code: padding that is too long or not of ones, or the end within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadCode;

/// Appends the string to `out`.
pub fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), BadCode> {
    let (mut bits, mut count) = (0_u64, 0_u32);
    let mut rest = input.iter();
    loop {
        while count <= 56
            && let Some(byte) = rest.next()
        {
            bits = bits << 8 | u64::from(*byte);
            count += 8;
        }
        if count == 0 {
            return Ok(());
        }
        // The next 32 bits, filled up with ones as at the end of a string.
        let next = if count >= 32 {
            (bits >> (count - 32)) as u32
        } else {
            (bits << (32 - count)) as u32 | u32::MAX >> count
        };
        let (symbol, length) = TABLES.short[(next >> (32 - SHORT)) as usize];
        let (symbol, length) = if length > 0 {
            (symbol, u32::from(length))
        } else {
            match long(next) {
                Some(found) if found.1 <= count => found,
                // What is left is no code: only ones that pad the last byte may be.
                _ => return padding(next, count),
            }
        };
        if length > count {
            return padding(next, count);
        }
        out.push(symbol);
        count -= length;
        bits &= (1 << count) - 1;
    }
}

/// The symbol and the length of a code longer than [`SHORT`]; `None`: that of the end.
fn long(next: u32) -> Option<(u8, u32)> {
    let length =
        (SHORT as usize + 1..=LONGEST).find(|length| u64::from(next) < TABLES.limits[*length])?;
    let code = i64::from(next >> (32 - length));
    let symbol = TABLES.sorted[(code - TABLES.offsets[length]) as usize];
    (symbol != END).then_some((symbol as u8, length as u32))
}

fn padding(next: u32, count: u32) -> Result<(), BadCode> {
    if count < 8 && next == u32::MAX {
        Ok(())
    } else {
        Err(BadCode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_code_is_complete() {
        let used: u64 = LENGTHS.iter().map(|length| 1 << (32 - length)).sum();
        assert_eq!(used, 1 << 32);
        // The codes that appendix B gives for these.
        for (symbol, code) in [
            (b'0', 0x0),
            (b'a', 0x3),
            (b' ', 0x14),
            (b':', 0x5c),
            (b'{', 0x7ffe),
        ] {
            assert_eq!(TABLES.codes[usize::from(symbol)], code);
        }
        assert_eq!(TABLES.codes[0], 0x1ff8);
        assert_eq!(TABLES.codes[255], 0x3ff_ffee);
        assert_eq!(TABLES.codes[256], 0x3fff_ffff);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text: Vec<u8>) {
            let mut encoded = Vec::new();
            encode(&text, &mut encoded);
            prop_assert_eq!(encoded.len(), encoded_bytes(&text));
            let mut decoded = Vec::new();
            prop_assert_eq!(decode(&encoded, &mut decoded), Ok(()));
            prop_assert_eq!(decoded, text);
        }

        #[test]
        fn any_bytes_are_a_string_or_refused(bytes: Vec<u8>) {
            let mut decoded = Vec::new();
            if decode(&bytes, &mut decoded).is_ok() {
                let mut again = Vec::new();
                encode(&decoded, &mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn every_byte_is_decoded_alone() {
        for byte in 0..=255_u8 {
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            encode(&[byte], &mut encoded);
            assert_eq!(decode(&encoded, &mut decoded), Ok(()));
            assert_eq!(decoded, [byte]);
        }
    }

    /// RFC 7541, section 5.2.
    #[test]
    fn wrong_padding_and_the_end_are_refused() {
        // '0' (00000), then 000; a byte of ones more than needed; the end.
        for bytes in [
            &[0x00, 0xf8][..],
            &[0x07, 0xff],
            &[0xff, 0xff, 0xff, 0xff],
            &[0x18],
        ] {
            assert_eq!(decode(bytes, &mut Vec::new()), Err(BadCode), "{bytes:x?}");
        }
        let mut decoded = Vec::new();
        assert_eq!(decode(&[0x07], &mut decoded), Ok(()));
        assert_eq!(decoded, b"0");
    }

    #[test]
    fn the_examples_of_the_rfc() {
        let mut encoded = Vec::new();
        encode(b"www.example.com", &mut encoded);
        assert_eq!(
            encoded,
            [
                0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff
            ]
        );
    }
}
