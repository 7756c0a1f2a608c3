//! Where in a script an error happened: a sentence that names the script's file and line, also where
//! the engine's own Lua (prelude.lua, modules.lua) found what is wrong. It knows nothing of what is
//! called.

use mlua::Error;
use mlua::function::FunctionInfo;

/// Names of the engine's own chunks.
const OWN: [&str; 2] = ["wrk", "modules"];

/// An error of Lua in one line that names the file and the line where it happened.
pub fn sentence(error: &Error) -> String {
    match error {
        Error::SyntaxError { message, .. } => first_line(message).to_owned(),
        Error::RuntimeError(message) => {
            let said = first_line(message);
            match (without_own_place(said), place_in_script(message)) {
                (Some(what), Some(place)) => format!("{place}: {what}"),
                _ => said.to_owned(),
            }
        }
        Error::CallbackError { traceback, cause } => {
            let inner = sentence(cause);
            match place_in_script(traceback) {
                Some(place) if !inner.starts_with(place) => format!("{place}: {inner}"),
                _ => inner,
            }
        }
        other => first_line(&other.to_string()).to_owned(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What is said behind a place in the engine's own Lua.
fn without_own_place(sentence: &str) -> Option<&str> {
    let (place, what) = sentence.split_once(": ")?;
    is_own(place).then_some(what)
}

fn is_own(place: &str) -> bool {
    line_of(place).is_some_and(|(file, _)| OWN.contains(&file))
}

fn line_of(place: &str) -> Option<(&str, usize)> {
    let (file, number) = place.rsplit_once(':')?;
    Some((file, number.parse().ok()?))
}

/// The innermost place of a traceback that is the script's.
fn place_in_script(traceback: &str) -> Option<&str> {
    traceback.lines().find_map(|line| {
        let (place, _) = line.trim().split_once(": in ")?;
        (line_of(place).is_some() && !is_own(place)).then_some(place)
    })
}

/// A script, to find the line in it that a traceback does not have.
#[derive(Debug)]
pub struct Script {
    /// As errors name it.
    name: String,
    source: String,
}

impl Script {
    pub fn new(name: String, source: &[u8]) -> Self {
        let source = String::from_utf8_lossy(source).into_owned();
        Self { name, source }
    }

    /// The same error with a place in the script, where it has one of the engine's own. `called`:
    /// the script's function that ran.
    pub fn placed(&self, error: Error, called: Option<&FunctionInfo>) -> Error {
        let said = sentence(&error);
        let Some(what) = without_own_place(&said) else {
            return error;
        };
        let assigned = subject(what).and_then(|subject| self.assigned(subject));
        Error::runtime(match (assigned, called) {
            (Some(line), _) => format!("{}:{line}: {what}", self.name),
            (None, Some(called)) => format!("{}: {what}", self.left(called)),
            (None, None) => format!("{}: {what}", self.name),
        })
    }

    /// The last line that gives this variable a value.
    fn assigned(&self, name: &str) -> Option<usize> {
        let gives = |line: &str| {
            let line = line.split("--").next().unwrap_or_default();
            line.match_indices(name).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = line[at + name.len()..].trim_start();
                !before.is_some_and(|one| one.is_alphanumeric() || "_.".contains(one))
                    && after.starts_with('=')
                    && !after.starts_with("==")
            })
        };
        let lines = self.source.lines().enumerate();
        lines
            .filter(|(_, line)| gives(line))
            .last()
            .map(|(at, _)| at + 1)
    }

    /// Where a function was left by a tail call of `wrk.format`, which leaves no trace: the line of
    /// the only call in it, or else its first line.
    fn left(&self, called: &FunctionInfo) -> String {
        let file = called.short_src.as_deref().unwrap_or(&self.name);
        let (Some(first), Some(last)) = (called.line_defined, called.last_line_defined) else {
            return file.to_owned();
        };
        let mut calls = (first..=last).filter(|line| {
            let text = self.source.lines().nth(line.saturating_sub(1));
            file == self.name && text.is_some_and(|text| text.contains("format"))
        });
        let line = match (calls.next(), calls.next()) {
            (Some(only), None) => only,
            _ => first,
        };
        format!("{file}:{line}")
    }
}

/// The variable that an error of the engine's own Lua is about.
fn subject(what: &str) -> Option<&str> {
    if what.contains("global 'wrk'") {
        return Some("wrk");
    }
    let name = what.split(':').next()?;
    name.starts_with("wrk.").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str) -> String {
        sentence(&Error::RuntimeError(message.to_owned()))
    }

    #[test]
    fn an_error_in_the_engines_own_lua_is_that_of_the_line_that_called_it() {
        let traceback = "\nstack traceback:\n\t[C]: in function 'error'\n\twrk:16: in function 'format'\n\tdir/own.lua:5: in function <dir/own.lua:3>";
        assert_eq!(
            said(&format!("wrk:16: body: found a table{traceback}")),
            "dir/own.lua:5: body: found a table"
        );
        assert_eq!(
            said(&format!("dir/own.lua:4: no{traceback}")),
            "dir/own.lua:4: no"
        );
        assert_eq!(said(&format!("no{traceback}")), "no");
        assert_eq!(
            said("wrk:16: no\nstack traceback:\n\t[C]: in ?"),
            "wrk:16: no"
        );
        assert_eq!(said("wrk: no"), "wrk: no");
    }

    fn placed(source: &str, what: &str) -> String {
        let script = Script::new("own.lua".to_owned(), source.as_bytes());
        let error = Error::RuntimeError(format!("wrk:16: {what}"));
        sentence(&script.placed(error, None))
    }

    #[test]
    fn a_value_that_is_wrong_is_that_of_the_line_that_gave_it() {
        let source = "wrk.body = 'x'\nwrk.body={} -- why\nif wrk.body == 1 then end\nmy.wrk.body = 5\n-- wrk.body = 6\nwrk.bodyguard = 1";
        assert_eq!(placed(source, "wrk.body: no"), "own.lua:2: wrk.body: no");
        assert_eq!(
            placed("local w = wrk", "wrk.body: no"),
            "own.lua: wrk.body: no"
        );
        let lost = "attempt to index global 'wrk' (a nil value)";
        assert_eq!(
            placed("\nwrk.x = 1\nwrk = nil", lost),
            format!("own.lua:3: {lost}")
        );
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        let script = Script::new("own.lua".to_owned(), b"");
        let error = script.placed(Error::RuntimeError("other.lua:3: no".to_owned()), None);
        assert_eq!(sentence(&error), "other.lua:3: no");
    }
}
