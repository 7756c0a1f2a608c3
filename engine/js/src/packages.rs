//! Packages: those that are installed in a folder `node_modules`, found as Node finds them, and the
//! parts of Node's library that host.js has itself.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::plain;

/// How a package is asked for, which may decide the file of it that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    Require,
    Import,
}

impl Asks {
    /// Whether a package's `exports` means this way by that word.
    fn means(self, condition: &str) -> bool {
        match condition {
            "node" | "default" => true,
            "require" => self == Self::Require,
            "import" => self == Self::Import,
            _ => false,
        }
    }
}

/// The file of a package: `name`, `@scope/name`, or either with a path behind it.
pub fn find(folder: &Path, name: &str, asks: Asks) -> Option<PathBuf> {
    let parts = if name.starts_with('@') { 2 } else { 1 };
    let mut words = name.splitn(parts + 1, '/');
    let package: PathBuf = words.by_ref().take(parts).collect();
    let within = words.next();
    folder.ancestors().find_map(|above| {
        let root = above.join("node_modules").join(&package);
        if !root.is_dir() {
            return None;
        }
        let exported = manifest(&root).and_then(|manifest| {
            let exports = manifest.get("exports")?;
            let entry = within.map_or_else(|| ".".to_owned(), |within| format!("./{within}"));
            // What only modules may have is better than nothing.
            exported(exports, &entry, asks).or_else(|| exported(exports, &entry, Asks::Import))
        });
        match (exported, within) {
            (Some(file), _) => at(&root.join(file)),
            (None, Some(within)) => at(&root.join(within)),
            (None, None) => at(&root),
        }
    })
}

/// The file that this path means, as Node takes it: itself, with an ending, or what a folder begins with.
pub fn at(named: &Path) -> Option<PathBuf> {
    const ENDINGS: [&str; 5] = ["", ".js", ".cjs", ".mjs", ".json"];
    let candidates = ENDINGS.iter().map(|ending| with_ending(named, ending));
    if let Some(file) = candidates.into_iter().find(|path| path.is_file()) {
        return Some(file);
    }
    if !named.is_dir() {
        return None;
    }
    let main = main(named).map(|main| named.join(main));
    let index = ["index.js", "index.cjs", "index.mjs", "index.json"].map(|name| named.join(name));
    main.filter(|main| main != named)
        .and_then(|main| at(&main))
        .or_else(|| index.into_iter().find(|path| path.is_file()))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// What a folder's package.json calls its first file.
pub fn main(folder: &Path) -> Option<String> {
    let manifest = manifest(folder)?;
    manifest.get("main")?.as_str().map(ToOwned::to_owned)
}

/// What the nearest package.json says that files are: `module` or `commonjs`.
pub fn kind(folder: &Path) -> Option<String> {
    let within = folder.ancestors();
    let mut within = within.take_while(|above| !above.ends_with("node_modules"));
    let manifest = within.find_map(manifest)?;
    manifest.get("type")?.as_str().map(ToOwned::to_owned)
}

fn manifest(folder: &Path) -> Option<Value> {
    serde_json::from_slice(&plain::whole(&folder.join("package.json")).ok()?).ok()
}

/// The file behind an entry of `exports`: https://nodejs.org/api/packages.html#package-entry-points.
fn exported(exports: &Value, entry: &str, asks: Asks) -> Option<String> {
    let by_entry = exports
        .as_object()
        .is_some_and(|map| map.keys().any(|key| key.starts_with('.')));
    if !by_entry {
        return (entry == ".").then(|| target(exports, asks)).flatten();
    }
    if let Some(found) = exports.get(entry) {
        return target(found, asks);
    }
    // ./lib/* stands for all below it.
    exports.as_object()?.iter().find_map(|(key, found)| {
        let (before, behind) = key.split_once('*')?;
        let part = entry.strip_prefix(before)?.strip_suffix(behind)?;
        target(found, asks).map(|file| file.replace('*', part))
    })
}

fn target(found: &Value, asks: Asks) -> Option<String> {
    match found {
        Value::String(file) => Some(file.clone()),
        Value::Array(several) => several.iter().find_map(|one| target(one, asks)),
        Value::Object(map) => map
            .iter()
            .filter(|(condition, _)| asks.means(condition))
            .find_map(|(_, one)| target(one, asks)),
        _ => None,
    }
}

/// What host.js has, by name, with what a module can import of it.
const OWN: [(&str, &str); 19] = [
    (
        "assert",
        "ok, equal, strictEqual, deepEqual, deepStrictEqual",
    ),
    ("buffer", "Buffer"),
    (
        "crypto",
        "randomUUID, randomInt, randomBytes, createHash, createHmac, webcrypto",
    ),
    ("events", "EventEmitter"),
    ("form-data", ""),
    (
        "fs",
        "existsSync, readFileSync, readdirSync, statSync, writeFileSync, appendFileSync, mkdirSync, createReadStream, promises",
    ),
    ("fs/promises", "readFile, writeFile, appendFile"),
    ("os", "EOL, hostname, platform, tmpdir, cpus"),
    (
        "path",
        "join, resolve, normalize, dirname, basename, extname, isAbsolute, relative, sep",
    ),
    (
        "path/posix",
        "join, resolve, normalize, dirname, basename, extname, isAbsolute, relative, sep",
    ),
    ("perf_hooks", "performance"),
    ("querystring", "parse, stringify, escape, unescape"),
    ("url", "URL, URLSearchParams, parse, fileURLToPath"),
    ("util", "promisify, inspect, format, inherits"),
    (
        "uuid",
        "v1, v3, v4, v5, v7, parse, stringify, validate, version, NIL, MAX",
    ),
    ("uuid/v1", ""),
    ("uuid/v3", ""),
    ("uuid/v4", ""),
    ("uuid/v5", ""),
];

/// Further modules of Node's library, which are no packages: a name for one says so.
const NODES: [&str; 41] = [
    "assert/strict",
    "async_hooks",
    "child_process",
    "cluster",
    "console",
    "constants",
    "dgram",
    "diagnostics_channel",
    "dns",
    "dns/promises",
    "domain",
    "http",
    "http2",
    "https",
    "inspector",
    "inspector/promises",
    "module",
    "net",
    "path/win32",
    "process",
    "punycode",
    "readline",
    "readline/promises",
    "repl",
    "stream",
    "stream/consumers",
    "stream/promises",
    "stream/web",
    "string_decoder",
    "sys",
    "timers",
    "timers/promises",
    "tls",
    "trace_events",
    "tty",
    "util/types",
    "v8",
    "vm",
    "wasi",
    "worker_threads",
    "zlib",
];

fn plain(name: &str) -> &str {
    name.strip_prefix("node:").unwrap_or(name)
}

/// Whether it is a module of Node's library that is not here.
pub fn is_nodes(name: &str) -> bool {
    name.starts_with("node:") || NODES.contains(&name)
}

/// One of host.js's modules, as a module of ECMAScript.
pub fn own(name: &str) -> Option<String> {
    let (name, exported) = OWN.iter().find(|(known, _)| *known == plain(name))?;
    Some(format!(
        "const all = globalThis[\"prony:require\"](\"{name}\", \"\"); export const {{ {exported} }} = all; export default all;"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn packages_are_found_above_and_by_their_exports() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let exports = json!({"exports": {
            ".": {"types": "./t.d.ts", "import": "./m.mjs", "require": {"default": "./c.cjs"}},
            "./locale/*": {"require": "./lib/*.cjs"}}});
        write("node_modules/plain/index.js", String::new());
        write("node_modules/plain/more.js", String::new());
        write("node_modules/@s/p/package.json", exports.to_string());
        for file in ["m.mjs", "c.cjs", "lib/de.cjs"] {
            write(&format!("node_modules/@s/p/{file}"), String::new());
        }
        fs::create_dir_all(folder.path().join("load/tests")).unwrap();
        let from = folder.path().join("load/tests");
        for (name, asks, file) in [
            ("plain", Asks::Require, "plain/index.js"),
            ("plain/more", Asks::Require, "plain/more.js"),
            ("@s/p", Asks::Require, "@s/p/./c.cjs"),
            ("@s/p", Asks::Import, "@s/p/./m.mjs"),
            ("@s/p/locale/de", Asks::Require, "@s/p/./lib/de.cjs"),
        ] {
            let found = find(&from, name, asks).unwrap();
            assert!(found.ends_with(file), "{name}: {}", found.display());
        }
        assert_eq!(find(&from, "absent", Asks::Require), None);
    }

    #[test]
    fn parts_of_nodes_library_are_told_from_packages() {
        assert!(own("node:fs").is_some() && own("uuid").is_some() && own("faker").is_none());
        assert!(is_nodes("http") && is_nodes("node:sea") && !is_nodes("faker"));
        assert!(is_nodes("timers/promises") && is_nodes("tty") && is_nodes("util/types"));
        // A slash behind the name asks for the package of that name.
        assert!(!is_nodes("process/browser") && !is_nodes("string_decoder/"));
        assert!(OWN.iter().all(|(name, _)| !NODES.contains(name)));
    }
}
