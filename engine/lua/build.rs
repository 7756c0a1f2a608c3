//! Whether LuaJIT was built so that compiled code checks hooks (.cargo/config.toml).

fn main() {
    println!("cargo:rustc-check-cfg=cfg(compiled_code_checks_hooks)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CFLAGS");
    if std::env::var("CFLAGS").is_ok_and(|flags| flags.contains("-DLUAJIT_ENABLE_CHECKHOOK")) {
        println!("cargo:rustc-cfg=compiled_code_checks_hooks");
    }
}
