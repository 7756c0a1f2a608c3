//! Modules in C that a script loads find Lua's own functions in this program.

fn main() {
    let list = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/exported.txt");
    println!("cargo:rerun-if-changed=lua/exported.txt");
    println!("cargo:rustc-link-arg-bins=-Wl,--dynamic-list={list}");
}
