//! What imports what: the instrument (`src/` without its command line) knows neither the reference server nor Lua.

use std::path::{Path, PathBuf};

/// The source files below a folder, with their text.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// The files below `src` that name this crate.
fn users_of(name: &str) -> Vec<String> {
    let mut users: Vec<String> = sources(Path::new("src"))
        .into_iter()
        .filter(|(_, text)| text.contains(name))
        .map(|(path, _)| path.display().to_string())
        .collect();
    users.sort();
    users
}

#[test]
fn only_the_command_line_knows_the_reference_server() {
    assert_eq!(users_of("prony_serve"), ["src/main.rs"]);
}

#[test]
fn only_the_command_line_knows_lua() {
    assert_eq!(users_of("prony_lua"), ["src/main.rs"]);
    assert_eq!(users_of("mlua"), [""; 0]);
}
