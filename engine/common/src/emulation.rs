//! Whether this program is emulated: it was built for one architecture, and the kernel below it runs on
//! another (qemu-user, Rosetta). What such a program measures is the emulator.

use std::env::consts::ARCH;
use std::fs;

const X86: &str = "x86_64";
const ARM: &str = "aarch64";

/// What runs on what, in words; `None` where nothing is emulated, or nobody can tell.
pub fn emulated() -> Option<String> {
    // Since Linux 6.1; an emulator that answers for `uname` passes this file on.
    let named = fs::read_to_string("/proc/sys/kernel/arch").ok();
    let cpus = fs::read_to_string("/proc/cpuinfo").ok();
    described(ARCH, kernel_of(named.as_deref(), cpus.as_deref())?)
}

fn described(built_for: &str, kernel: &str) -> Option<String> {
    let known = [X86, ARM];
    (built_for != kernel && known.contains(&built_for))
        .then(|| format!("a program for {built_for} on a kernel for {kernel}"))
}

fn kernel_of(named: Option<&str>, cpus: Option<&str>) -> Option<&'static str> {
    match named.map(str::trim) {
        Some(X86) => Some(X86),
        Some(ARM) => Some(ARM),
        Some(_) => None,
        // Each architecture has its own words.
        None if cpus?.contains("vendor_id") => Some(X86),
        None if cpus?.contains("CPU implementer") => Some(ARM),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_on_its_own_kernel_is_not_emulated() {
        assert_eq!(described(X86, X86), None);
        assert_eq!(described(ARM, ARM), None);
        assert_eq!(
            described("x86", X86),
            None,
            "a kernel runs older programs itself"
        );
        assert_eq!(
            emulated(),
            None,
            "these tests are built for the host that runs them"
        );
    }

    #[test]
    fn one_on_another_kernel_is() {
        let found = described(ARM, X86);
        assert_eq!(
            found.as_deref(),
            Some("a program for aarch64 on a kernel for x86_64")
        );
    }

    #[test]
    fn the_kernel_says_what_it_is_or_its_cpus_do() {
        assert_eq!(kernel_of(Some("x86_64\n"), None), Some(X86));
        assert_eq!(
            kernel_of(Some("aarch64\n"), Some("vendor_id\t: x")),
            Some(ARM)
        );
        assert_eq!(kernel_of(Some("riscv64\n"), Some("vendor_id\t: x")), None);
        assert_eq!(
            kernel_of(None, Some("processor\t: 0\nvendor_id\t: GenuineIntel")),
            Some(X86)
        );
        assert_eq!(kernel_of(None, Some("CPU implementer\t: 0x41")), Some(ARM));
        assert_eq!(kernel_of(None, Some("hart\t: 0")), None);
        assert_eq!(kernel_of(None, None), None);
    }
}
