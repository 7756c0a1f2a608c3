//! The files of a script: which one a name means, what is in it, and whether it is a module of ECMAScript.

use std::fs;
use std::path::Path;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Module, Result};

use super::packages::{self, Asks};
use super::plain;

/// A file that a script names, with what is in it: one beside the file that names it, or a package
/// that is installed.
pub fn read(base: &str, name: &str, asks: Asks) -> std::result::Result<(String, String), String> {
    let folder = Path::new(base).parent().unwrap_or_else(|| Path::new(""));
    let file = if name.starts_with(['.', '/']) {
        packages::at(&folder.join(name)).ok_or_else(|| format!("{base}: there is no file {name}"))
    } else {
        packages::find(folder, name, asks).ok_or_else(|| {
            format!(
                "{base}: there is no package {name} in a folder node_modules beside or above it"
            )
        })
    }?;
    let file = fs::canonicalize(&file).unwrap_or(file);
    let bytes = plain::whole(&file)
        .map_err(|error| format!("{}: cannot be read: {error}", file.display()))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((file.to_string_lossy().into_owned(), text))
}

/// Whether a file is a module of ECMAScript; else it is one of CommonJS. Its ending says so, else the
/// nearest package.json, else its lines.
pub fn is_module(file: &Path, text: &str) -> bool {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("mjs") => true,
        Some("cjs" | "json") => false,
        _ => match file.parent().and_then(packages::kind).as_deref() {
            Some("module") => true,
            Some("commonjs") => false,
            _ => text.lines().any(is_of_a_module),
        },
    }
}

fn is_of_a_module(line: &str) -> bool {
    let exports = line.strip_prefix("export").unwrap_or("x");
    let imports = line.strip_prefix("import").unwrap_or("x");
    exports.starts_with([' ', '{', '*']) || imports.starts_with([' ', '{', '*', '"', '\''])
}

/// Finds and loads what modules import: files beside them, packages, and what host.js has itself.
pub struct Beside;

impl Resolver for Beside {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if packages::own(name).is_some() {
            return Ok(name.to_owned());
        }
        if packages::is_nodes(name) {
            return Err(Error::new_resolving_message(
                base,
                name,
                "Prony has no such part of Node's library",
            ));
        }
        read(base, name, Asks::Import)
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
        if let Some(text) = packages::own(name) {
            return Module::declare(ctx.clone(), name, text);
        }
        let (path, text) =
            read(name, name, Asks::Import).map_err(|why| Error::new_loading_message(name, why))?;
        if is_module(Path::new(&path), &text) {
            return Module::declare(ctx.clone(), name, text);
        }
        // Of CommonJS, as Node gives it to a module: all of it by default.
        let path = serde_json::Value::from(path);
        let text = format!("export default globalThis[\"prony:require\"]({path}, {path});");
        Module::declare(ctx.clone(), name, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_told_by_their_ending_or_by_their_words() {
        let by_text = |file: &str, text: &str| is_module(Path::new(file), text);
        assert!(by_text("a.mjs", "") && !by_text("a.cjs", "export function f() {}"));
        assert!(by_text("a.js", "// x\nexport function f() {}"));
        assert!(by_text("a.js", "import { a } from './b.js'"));
        assert!(!by_text(
            "a.js",
            "exports.f = 1\nmodule.exports = {}\nimporter()"
        ));
    }

    #[test]
    fn the_nearest_package_says_what_its_files_are() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("package.json", r#"{"type": "module"}"#);
        write("lib/old/package.json", r#"{"type": "commonjs"}"#);
        write("unsaid/package.json", "{}");
        write("node_modules/p/index.js", "");
        let by_text = |file: &str, text: &str| is_module(&folder.path().join(file), text);
        assert!(
            by_text("a.js", "") && by_text("lib/a.js", "") && !by_text("lib/old/a.js", "export {}")
        );
        assert!(!by_text("a.cjs", "") && by_text("lib/old/a.mjs", ""));
        assert!(!by_text("unsaid/a.js", "") && by_text("unsaid/a.js", "export {}"));
        // What is installed is not of the package that it is installed in.
        assert!(!by_text("node_modules/p/index.js", "exports.a = 1"));
    }

    #[test]
    fn names_mean_files_beside_the_one_that_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("a.js", "1");
        write("lib/package.json", "{\"main\": \"./src/first\"}");
        write("lib/src/first.js", "2");
        let base = folder.path().join("main.js");
        let base = base.to_str().unwrap();
        let (path, text) = read(base, "./a", Asks::Require).unwrap();
        assert!(path.ends_with("a.js") && text == "1");
        assert_eq!(read(base, "./lib", Asks::Require).unwrap().1, "2");
        let missing = read(base, "./b", Asks::Require).unwrap_err();
        assert!(missing.ends_with("there is no file ./b"), "{missing}");
    }
}
