//! Bytes that are sent once: made for this send and given back, as memory, when the kernel has taken them.

use std::io;

/// See the module.
#[derive(Debug, Default)]
pub struct Outgoing {
    bytes: Vec<u8>,
}

impl Outgoing {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The bytes to send now.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// After [`Self::bytes`] were sent: puts what follows in their place. False when nothing does.
    pub fn refill(&mut self) -> io::Result<bool> {
        self.bytes.clear();
        Ok(false)
    }

    /// The memory, to be used again.
    pub fn into_spare(mut self) -> Vec<u8> {
        self.bytes.clear();
        self.bytes
    }
}
