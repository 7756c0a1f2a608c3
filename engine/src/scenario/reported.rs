//! Captured values that the plan asks to be reported, for a caller that goes on with them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::vars::Vars;
use crate::refusal::PlanError;

/// Names, and what was last captured of each by any user.
#[derive(Debug, Default)]
pub struct Reported {
    /// With the number of the value.
    names: Vec<(String, usize)>,
    last: Mutex<BTreeMap<String, String>>,
}

impl Reported {
    /// `captured`: the names of the values, by number.
    pub fn new(names: &[String], captured: &[String]) -> Result<Self, PlanError> {
        let number = |name: &String| {
            let slot = captured.iter().position(|known| known == name);
            slot.map(|slot| (name.clone(), slot)).ok_or_else(|| {
                PlanError(format!(
                    "report names {name:?}, which no step captures, expected one of: {}",
                    captured.join(", ")
                ))
            })
        };
        Ok(Self {
            names: names.iter().map(number).collect::<Result<_, _>>()?,
            last: Mutex::default(),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What this user has now is the last.
    pub fn keep(&self, vars: &Vars) {
        let Ok(mut last) = self.last.lock() else {
            return;
        };
        for (name, slot) in &self.names {
            if let Some(Some(value)) = vars.captured.get(*slot) {
                last.insert(name.clone(), String::from_utf8_lossy(value).into_owned());
            }
        }
    }

    /// By name; without those that were never captured.
    pub fn values(&self) -> BTreeMap<String, String> {
        self.last
            .lock()
            .map(|last| last.clone())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::vars::ValueCounts;

    #[test]
    fn the_last_value_of_each_name_is_kept() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let captured = names(&["a", "b"]);
        assert!(
            Reported::new(&names(&["c"]), &captured)
                .unwrap_err()
                .0
                .contains("expected one of: a, b")
        );
        let reported = Reported::new(&names(&["b"]), &captured).unwrap();
        let mut vars = Vars::new(ValueCounts {
            captured: 2,
            ..ValueCounts::default()
        });
        reported.keep(&vars);
        assert!(reported.values().is_empty());
        for value in ["1", "2"] {
            vars.set(0, b"other".to_vec());
            vars.set(1, value.as_bytes().to_vec());
            reported.keep(&vars);
        }
        vars.forget_captured(ValueCounts::default());
        reported.keep(&vars);
        assert_eq!(reported.values(), [("b".to_owned(), "2".to_owned())].into());
    }
}
