//! What the instrument and the reference server both need: the chunked coding, and what a process asks of its system. It knows
//! neither of them.

pub mod chunked;
pub mod process;
