//! Shared by the instrument and the reference server: the chunked coding, process settings, and
//! whether the program is emulated. It knows neither of them.

pub mod chunked;
pub mod emulation;
pub mod process;
