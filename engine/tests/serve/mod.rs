//! The suite of `prony-engine serve`; each of its loops is put through all of it.

mod lifecycle;
mod protocol;
mod time;
mod trouble;
mod wire;
