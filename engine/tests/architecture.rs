//! What imports what: the instrument (`src/` without its command line) knows neither the reference
//! server nor the languages of scripts.

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

#[test]
fn only_the_command_line_knows_javascript() {
    assert_eq!(users_of("prony_js"), ["src/main.rs"]);
    assert_eq!(users_of("rquickjs::"), [""; 0]);
}

/// The rooms of the instrument: each imports only from those before it.
const ROOMS: [&str; 24] = [
    "units",
    "plan",
    "fault",
    "payload",
    "refusal",
    "pace",
    "http",
    "tls",
    "check",
    "scenario",
    "measure",
    "net",
    "http2",
    "population",
    "sources",
    "log",
    "target",
    "script",
    "report",
    "job",
    "record",
    "user",
    "worker",
    "run",
];

/// The room of a source file: its first folder, or its own name.
fn room(path: &Path) -> String {
    let below = path.strip_prefix("src").unwrap().with_extension("");
    let first = below.components().next().unwrap();
    first.as_os_str().to_str().unwrap().to_owned()
}

/// The rooms that a source imports by `crate::`; comments may name any. Every import says its room
/// there: neither a list of rooms nor a way up out of a file's own room is read.
fn imported(text: &str) -> Vec<&str> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let names = code.flat_map(|line| {
        assert!(!line.contains("crate::{"), "one import per room: {line}");
        assert!(!line.contains("super::super::"), "from crate:: on: {line}");
        line.split("crate::").skip(1)
    });
    let ends = |rest: &str| rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    names
        .map(|rest| &rest[..ends(rest).unwrap_or(rest.len())])
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn imports_go_one_way() {
    let rank = |room: &str| ROOMS.iter().position(|known| *known == room);
    let mut backwards = Vec::new();
    for (path, text) in sources(Path::new("src")) {
        let here = room(&path);
        // What holds for any bytes reaches into several rooms; the crate's front names all of them.
        if ["lib", "main"].contains(&here.as_str()) {
            continue;
        }
        let Some(rank_here) = rank(&here) else {
            panic!("{here} is not in the list of rooms");
        };
        for name in imported(&text) {
            let Some(rank_there) = rank(name) else {
                panic!("{}: {name} is not in the list of rooms", path.display());
            };
            if rank_there > rank_here {
                backwards.push(format!("{} imports {name}", path.display()));
            }
        }
    }
    assert_eq!(backwards, [""; 0]);
}
