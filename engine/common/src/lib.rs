//! Shared by the instrument, the reference server and scripts: the chunked coding, digests, process settings, and
//! whether the program is emulated. It knows none of them.

pub mod chunked;
pub mod digests;
pub mod emulation;
pub mod process;
