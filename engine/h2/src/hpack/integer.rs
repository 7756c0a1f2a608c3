//! Integers with a prefix (RFC 7541, section 5.1).

/// Writes a value behind a prefix of so many bits, beside the flags of the first byte.
pub fn write(value: usize, prefix_bits: u32, flags: u8, out: &mut Vec<u8>) {
    let most = (1_usize << prefix_bits) - 1;
    if value < most {
        return out.push(flags | value as u8);
    }
    out.push(flags | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes a value off the front. `None`: the input ends in it, or it is larger than anything that
/// fits into a header block.
pub fn read(input: &mut &[u8], prefix_bits: u32) -> Option<usize> {
    let (first, mut rest) = input.split_first()?;
    let most = (1_usize << prefix_bits) - 1;
    let mut value = usize::from(*first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (byte, behind) = rest.split_first()?;
            rest = behind;
            // Four bytes of seven bits: up to 256 MiB.
            if shift > 21 {
                return None;
            }
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(value in 0_usize..1 << 28, prefix_bits in 1_u32..=8) {
            let mut out = Vec::new();
            write(value, prefix_bits, 0, &mut out);
            let mut input = &out[..];
            prop_assert_eq!(read(&mut input, prefix_bits), Some(value));
            prop_assert!(input.is_empty());
            for length in 0..out.len() {
                prop_assert_eq!(read(&mut &out[..length], prefix_bits), None);
            }
        }
    }

    /// RFC 7541, C.1.
    #[test]
    fn the_examples_of_the_rfc() {
        for (value, prefix_bits, bytes) in [
            (10, 5, &[0b01010][..]),
            (1337, 5, &[0b11111, 0b1001_1010, 0b1010]),
            (42, 8, &[42]),
        ] {
            let mut out = Vec::new();
            write(value, prefix_bits, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(read(&mut &out[..], prefix_bits), Some(value));
        }
    }

    #[test]
    fn a_value_without_an_end_is_refused() {
        assert_eq!(
            read(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..], 7),
            None
        );
        assert_eq!(
            read(&mut &[0xff, 0x80, 0x80, 0x80, 0x80, 0x00][..], 7),
            None
        );
    }
}
