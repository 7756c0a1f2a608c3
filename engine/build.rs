//! Modules in C that a script loads find Lua's own functions in this program.

use std::env;

fn main() {
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/exported.txt");
    println!("cargo:rerun-if-changed=lua/exported.txt");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    // zig's driver takes no lists: it exports every function in C.
    let by_zig = env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zigcc"));
    if by_zig {
        println!("cargo:rustc-link-arg-bins=-rdynamic");
    } else {
        println!("cargo:rustc-link-arg-bins=-Wl,--dynamic-list={list}");
    }
}
