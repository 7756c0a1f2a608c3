//! Header compression (RFC 7541): blocks of fields to bytes and back. It knows nothing of frames, or
//! of what a field means.

pub mod decoder;
pub mod encoder;
pub mod huffman;
mod integer;
mod table;

pub use decoder::{BadBlock, Decoder};
pub use encoder::{Encoder, Indexing};

/// The dynamic table's limit until SETTINGS say otherwise.
pub const DEFAULT_TABLE_BYTES: u32 = 4096;

/// What a field counts in a table and against a limit of header lists (RFC 7541, section 4.1).
pub fn field_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + 32
}
