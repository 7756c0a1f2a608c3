//! The names of captured values: which are allowed, and which numbered ones are referred to.

use crate::plan::Capture;

/// The numbered names (`id_3`) that a plan refers to: others of a capture are not kept.
#[derive(Debug, Default)]
pub struct Numbered(String);

impl Numbered {
    /// `scenarios` as JSON.
    pub fn new(scenarios: String) -> Self {
        Self(scenarios)
    }

    /// The numbers, rising, that stand behind this name.
    pub(super) fn of(&self, name: &str) -> Vec<usize> {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'-';
        let (text, prefix) = (self.0.as_bytes(), format!("{name}_"));
        let mut found: Vec<usize> = memchr::memmem::find_iter(text, &prefix)
            .filter(|at| *at == 0 || !word(&text[at - 1]))
            .filter_map(|at| {
                let after = &self.0[at + prefix.len()..];
                let digits = after.bytes().take_while(u8::is_ascii_digit).count();
                let ends = !after.as_bytes().get(digits).is_some_and(word);
                // Not 01: that is another name.
                let number: usize = after[..digits].parse().ok()?;
                (ends && number > 0 && !after.starts_with('0')).then_some(number)
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The names that a capture gives values to.
    pub fn names(&self, capture: &Capture) -> Vec<String> {
        let name = &capture.name;
        let mut names = vec![name.clone()];
        if capture.which == -1 {
            names.push(format!("{name}_matchNr"));
            names.extend(
                self.of(name)
                    .iter()
                    .map(|number| format!("{name}_{number}")),
            );
        }
        names
    }
}

const GENERATORS: [&str; 6] = ["sequence", "uuid", "random", "time", "user", "iteration"];

pub(super) fn check_name(name: &str) -> Result<(), String> {
    let good = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    refuse_if! {
        !good || GENERATORS.contains(&name) =>
            "a value has the name {name:?}, expected letters, digits, _ and -, and none of {}", GENERATORS.join(", ");
    }
    Ok(())
}
