//! Digests of bytes, with and without a key, by the names that Node gives them.

use ring::{digest, hmac};

/// The digest by this algorithm, with a key an HMAC (RFC 2104). The error is a sentence.
pub fn of(name: &str, key: Option<&[u8]>, data: &[u8]) -> Result<Vec<u8>, String> {
    if let Some(key) = key {
        let algorithm = match plain(name).as_str() {
            "md5" => return Ok(hmac_md5(key, data)),
            "sha1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            "sha256" => hmac::HMAC_SHA256,
            "sha384" => hmac::HMAC_SHA384,
            "sha512" => hmac::HMAC_SHA512,
            _ => return Err(unknown(name)),
        };
        let key = hmac::Key::new(algorithm, key);
        return Ok(hmac::sign(&key, data).as_ref().to_vec());
    }
    let algorithm = match plain(name).as_str() {
        "md5" => return Ok(md5(data).to_vec()),
        "sha1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        "sha256" => &digest::SHA256,
        "sha384" => &digest::SHA384,
        "sha512" => &digest::SHA512,
        _ => return Err(unknown(name)),
    };
    Ok(digest::digest(algorithm, data).as_ref().to_vec())
}

/// SHA-256 of bytes that come in pieces, of which the first 64 bits tell bodies apart.
pub struct BodyDigest(digest::Context);

impl BodyDigest {
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub fn first_bits(self) -> u64 {
        let whole = self.0.finish();
        let first = whole.as_ref().iter().take(8);
        first.fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }
}

impl Default for BodyDigest {
    fn default() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl std::fmt::Debug for BodyDigest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("BodyDigest")
    }
}

fn plain(name: &str) -> String {
    name.to_ascii_lowercase()
        .replace("rsa-", "")
        .replace('-', "")
}

fn unknown(name: &str) -> String {
    format!("Prony has no digest {name:?}, expected md5, sha1, sha256, sha384 or sha512")
}

const BLOCK_BYTES: usize = 64;

fn hmac_md5(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        block[..16].copy_from_slice(&md5(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = block.map(|byte| byte ^ 0x36).to_vec();
    inner.extend_from_slice(data);
    let mut outer = block.map(|byte| byte ^ 0x5c).to_vec();
    outer.extend_from_slice(&md5(&inner));
    md5(&outer).to_vec()
}

/// RFC 1321.
fn md5(data: &[u8]) -> [u8; 16] {
    const TURNS: [[u32; 4]; 4] = [
        [7, 12, 17, 22],
        [5, 9, 14, 20],
        [4, 11, 16, 23],
        [6, 10, 15, 21],
    ];
    let mut padded = data.to_vec();
    padded.push(0x80);
    while padded.len() % BLOCK_BYTES != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&((data.len() as u64).wrapping_mul(8)).to_le_bytes());
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(BLOCK_BYTES) {
        let words: Vec<u32> = block
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64_usize {
            let (mixed, place) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), (7 * step) % 16),
            };
            let constant = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a
                .wrapping_add(mixed)
                .wrapping_add(constant)
                .wrapping_add(words[place]);
            a = d;
            d = c;
            c = b;
            b = b.wrapping_add(sum.rotate_left(TURNS[step / 16][step % 4]));
        }
        for (whole, part) in state.iter_mut().zip([a, b, c, d]) {
            *whole = whole.wrapping_add(part);
        }
    }
    let mut digest = [0; 16];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_first_bits_are_those_of_sha256_in_whatever_pieces() {
        let mut digest = BodyDigest::default();
        digest.update(b"a");
        digest.update(b"bc");
        assert_eq!(digest.first_bits(), 0xba78_16bf_8f01_cfea);
    }

    #[test]
    fn digests_are_those_of_the_standards() {
        for (name, data, digest) in [
            ("md5", "", "d41d8cd98f00b204e9800998ecf8427e"),
            ("md5", "message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (
                "MD5",
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
            ("sha1", "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "SHA-256",
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ] {
            assert_eq!(hex(&of(name, None, data.as_bytes()).unwrap()), digest);
        }
        assert!(of("whirlpool", None, b"").unwrap_err().contains("sha512"));
    }

    #[test]
    fn digests_with_a_key_are_those_of_rfc_2202_and_4231() {
        let data = b"what do ya want for nothing?";
        for (name, digest) in [
            ("md5", "750c783e6ab0b503eaa86e310a5db738"),
            ("sha1", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (
                "sha256",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
        ] {
            assert_eq!(hex(&of(name, Some(b"Jefe"), data).unwrap()), digest);
        }
    }
}
