//! The program `prony-engine`: everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    prony_engine::main()
}
