//! The files of a script: which one a name means, and whether it is a module of ECMAScript.

use std::fs;
use std::path::{Path, PathBuf};

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Module, Result};

/// A file that a script names, beside the file that names it, with what is in it.
pub fn read(base: &str, name: &str) -> std::result::Result<(String, String), String> {
    let folder = Path::new(base).parent().unwrap_or_else(|| Path::new(""));
    let named = folder.join(name);
    let candidates = [
        named.clone(),
        with_ending(&named, ".js"),
        with_ending(&named, ".cjs"),
        with_ending(&named, ".mjs"),
        with_ending(&named, ".json"),
        named.join("index.js"),
    ];
    let Some(file) = candidates.iter().find(|path| path.is_file()) else {
        return Err(format!("{base}: there is no file {name}"));
    };
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.clone());
    let text = fs::read_to_string(&file)
        .map_err(|error| format!("{}: cannot be read: {error}", file.display()))?;
    Ok((file.to_string_lossy().into_owned(), text))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether a file is a module of ECMAScript; else it is one of CommonJS.
pub fn is_module(file: &Path, text: &str) -> bool {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("mjs") => true,
        Some("cjs") => false,
        _ => text.lines().any(|line| {
            let exports = line.strip_prefix("export").unwrap_or("x");
            let imports = line.strip_prefix("import").unwrap_or("x");
            exports.starts_with([' ', '{', '*']) || imports.starts_with([' ', '{', '*', '"', '\''])
        }),
    }
}

/// What there is of Node's library and of packages, as host.js has it for `require`.
fn own(name: &str) -> Option<&'static str> {
    match name.strip_prefix("node:").unwrap_or(name) {
        "crypto" => Some(
            "export const { randomUUID, randomInt, randomBytes } = globalThis.crypto; export default globalThis.crypto;",
        ),
        "uuid" => Some("export const v4 = globalThis.crypto.randomUUID; export default { v4 };"),
        _ => None,
    }
}

/// Finds and loads what modules import: files beside them, and nothing else.
pub struct Beside;

impl Resolver for Beside {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if own(name).is_some() {
            return Ok(name.to_owned());
        }
        if !name.starts_with(['.', '/']) {
            return Err(Error::new_resolving_message(
                base,
                name,
                "Prony runs a processor without Node's library and without packages; import files beside it",
            ));
        }
        read(base, name)
            .map(|(path, _)| path)
            .map_err(|why| Error::new_resolving_message(base, name, why))
    }
}

impl Loader for Beside {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        if let Some(text) = own(name) {
            return Module::declare(ctx.clone(), name, text);
        }
        let (_, text) = read(name, name).map_err(|why| Error::new_loading_message(name, why))?;
        Module::declare(ctx.clone(), name, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_told_by_their_ending_or_by_their_words() {
        let told = |file: &str, text: &str| is_module(Path::new(file), text);
        assert!(told("a.mjs", "") && !told("a.cjs", "export function f() {}"));
        assert!(told("a.js", "// x\nexport function f() {}"));
        assert!(told("a.js", "import { a } from './b.js'"));
        assert!(!told(
            "a.js",
            "exports.f = 1\nmodule.exports = {}\nimporter()"
        ));
    }

    #[test]
    fn names_mean_files_beside_the_one_that_names_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.js"), "1").unwrap();
        let base = folder.path().join("main.js");
        let (path, text) = read(base.to_str().unwrap(), "./a").unwrap();
        assert!(path.ends_with("a.js") && text == "1");
        let missing = read(base.to_str().unwrap(), "./b").unwrap_err();
        assert!(missing.ends_with("there is no file ./b"), "{missing}");
    }
}
