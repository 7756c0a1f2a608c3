//! Shared by the instrument and the reference server: the chunked coding, and process settings. It
//! knows neither of them.

pub mod chunked;
pub mod process;
