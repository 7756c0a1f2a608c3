//! What the surroundings of a script ask of the host: printing and counting, and for Node's library
//! files and digests. Files are read and written as the script says, by whoever runs it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use prony_script::Setup;
use prony_script::output::Output;
use rquickjs::context::EvalOptions;
use rquickjs::{Array, Ctx, Exception, Function, Module, Object, Value};

use super::counts::Counts;
use super::files;
use super::packages::{self, Asks};
use super::plain;
use prony_common::digests;

/// The value of a script of the engine's own, which is not strict.
pub fn eval<'js, V: rquickjs::FromJs<'js>>(
    ctx: &Ctx<'js>,
    text: &str,
    name: &str,
) -> rquickjs::Result<V> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(text, options)
}

/// The functions of the host; `env`: the environment that the script sees.
pub fn native<'js>(
    ctx: &Ctx<'js>,
    setup: &Setup<'_>,
    env: &serde_json::Value,
    output: &Arc<Output>,
    counts: &Arc<Counts>,
) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    counting(ctx, &native, output, counts)?;
    loading(ctx, &native)?;
    filing(ctx, &native)?;
    let uuid: Function<'js> = eval(ctx, UUID, "prony:uuid")?;
    native.set("uuid", uuid)?;
    let folder = std::env::current_dir().ok();
    let folder = folder.or_else(|| setup.file.parent().map(Path::to_owned));
    native.set(
        "folder",
        folder.map_or_else(String::new, |path| path.display().to_string()),
    )?;
    native.set("env", ctx.json_parse(env.to_string())?)?;
    Ok(native)
}

/// A random UUID (RFC 9562, version 4).
const UUID: &str = r#"() => "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx".replace(/[xy]/g, (place) => {
    const digit = Math.floor(Math.random() * 16);
    return (place === "x" ? digit : (digit & 3) | 8).toString(16);
})"#;

fn counting<'js>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    output: &Arc<Output>,
    counts: &Arc<Counts>,
) -> rquickjs::Result<()> {
    let sink = Arc::clone(output);
    let print = move |text: String| {
        sink.print(text.as_bytes());
        sink.print(b"\n");
    };
    native.set("print", Function::new(ctx.clone(), print)?)?;
    let counted = Arc::clone(counts);
    let count = move |name: String, by: f64| counted.count(name, by);
    native.set("count", Function::new(ctx.clone(), count)?)?;
    let counted = Arc::clone(counts);
    let rate = move |name: String| counted.rate(name);
    native.set("rate", Function::new(ctx.clone(), rate)?)?;
    let counted = Arc::clone(counts);
    let record = move |name: String, value: f64| counted.record(name, value);
    native.set("record", Function::new(ctx.clone(), record)?)
}

/// Files as modules.
fn loading<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> rquickjs::Result<()> {
    let read = |ctx: Ctx<'js>, base: String, name: String| -> rquickjs::Result<Vec<String>> {
        match files::read(&base, &name, Asks::Require) {
            Ok((path, text)) => Ok(vec![path, text]),
            Err(why) => Err(Exception::throw_message(&ctx, &why)),
        }
    };
    native.set("read", Function::new(ctx.clone(), read)?)?;
    let wrapped = |ctx: Ctx<'js>, path: String, text: String| -> rquickjs::Result<Function<'js>> {
        // On the first line, so that errors name the script's own lines.
        let text = text
            .strip_prefix("#!")
            .map_or(text.clone(), |rest| format!("//{rest}"));
        let whole =
            format!("(function (exports, require, module, __filename, __dirname) {{{text}\n}})");
        eval(&ctx, &whole, &path)
    };
    native.set("wrapped", Function::new(ctx.clone(), wrapped)?)?;
    let imported = |ctx: Ctx<'js>, path: String, text: String| -> rquickjs::Result<Value<'js>> {
        module(&ctx, path, text)
    };
    native.set("imported", Function::new(ctx.clone(), imported)?)?;
    let is_module = |path: String, text: String| files::is_module(Path::new(&path), &text);
    native.set("is_module", Function::new(ctx.clone(), is_module)?)?;
    let is_nodes = |name: String| packages::is_nodes(&name);
    native.set("is_nodes", Function::new(ctx.clone(), is_nodes)?)
}

/// A module of ECMAScript, run: what it exports.
pub fn module<'js>(ctx: &Ctx<'js>, path: String, text: String) -> rquickjs::Result<Value<'js>> {
    let (module, promise) = Module::declare(ctx.clone(), path, text)?.eval()?;
    promise.finish::<()>()?;
    Ok(module.namespace()?.into_value())
}

/// Files as such, and digests. Bytes go as texts of one character each.
fn filing<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> rquickjs::Result<()> {
    let text = |ctx: Ctx<'js>, path: String| -> rquickjs::Result<String> {
        Ok(String::from_utf8_lossy(&read(&ctx, &path)?).into_owned())
    };
    native.set("text", Function::new(ctx.clone(), text)?)?;
    let bytes = |ctx: Ctx<'js>, path: String| -> rquickjs::Result<String> {
        Ok(read(&ctx, &path)?.into_iter().map(char::from).collect())
    };
    native.set("bytes", Function::new(ctx.clone(), bytes)?)?;
    let decoded = |text: String| String::from_utf8_lossy(&bytes_of(&text)).into_owned();
    native.set("decoded", Function::new(ctx.clone(), decoded)?)?;
    let kind = |path: String| -> &'static str {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => "folder",
            Ok(found) if found.is_file() => "file",
            Ok(_) => "other",
            Err(_) => "",
        }
    };
    native.set("kind", Function::new(ctx.clone(), kind)?)?;
    let size = |path: String| fs::metadata(path).map_or(0.0, |found| found.len() as f64);
    native.set("size", Function::new(ctx.clone(), size)?)?;
    let list = |ctx: Ctx<'js>, path: String| -> rquickjs::Result<Array<'js>> {
        let found = fs::read_dir(&path).map_err(|error| thrown(&ctx, &error, "scandir", &path))?;
        let names = found.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        let array = Array::new(ctx.clone())?;
        for (place, name) in names.into_iter().enumerate() {
            array.set(place, name)?;
        }
        Ok(array)
    };
    native.set("list", Function::new(ctx.clone(), list)?)?;
    let write = |ctx: Ctx<'js>, path: String, data: String, append: bool| -> rquickjs::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.create(true).write(true);
        let options = options.append(append).truncate(!append);
        let bytes = bytes_of(&data);
        let plain = match fs::metadata(&path) {
            Ok(found) => plain::only_plain(&found),
            Err(_) => Ok(()),
        };
        let written = plain
            .and_then(|()| options.open(&path))
            .and_then(|mut file| file.write_all(&bytes));
        written.map_err(|error| thrown(&ctx, &error, "open", &path))
    };
    native.set("write", Function::new(ctx.clone(), write)?)?;
    let folder = |ctx: Ctx<'js>, path: String, all: bool| -> rquickjs::Result<()> {
        let made = fs::DirBuilder::new().recursive(all).create(&path);
        made.map_err(|error| thrown(&ctx, &error, "mkdir", &path))
    };
    native.set("make_folder", Function::new(ctx.clone(), folder)?)?;
    let digest = |ctx: Ctx<'js>,
                  name: String,
                  key: Option<String>,
                  data: String|
     -> rquickjs::Result<String> {
        let key = key.map(|key| bytes_of(&key));
        match digests::of(&name, key.as_deref(), &bytes_of(&data)) {
            Ok(bytes) => Ok(bytes.into_iter().map(char::from).collect()),
            Err(why) => Err(Exception::throw_message(&ctx, &why)),
        }
    };
    native.set("digest", Function::new(ctx.clone(), digest)?)
}

fn read(ctx: &Ctx<'_>, path: &str) -> rquickjs::Result<Vec<u8>> {
    plain::whole(Path::new(path)).map_err(|error| thrown(ctx, &error, "open", path))
}

/// As Node says it: the code, what it means, and what was asked for.
fn thrown(ctx: &Ctx<'_>, error: &std::io::Error, call: &str, path: &str) -> rquickjs::Error {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => "ENOENT",
        std::io::ErrorKind::PermissionDenied => "EACCES",
        std::io::ErrorKind::IsADirectory => "EISDIR",
        std::io::ErrorKind::AlreadyExists => "EEXIST",
        std::io::ErrorKind::FileTooLarge => "EFBIG",
        std::io::ErrorKind::InvalidInput => "EINVAL",
        _ => "EIO",
    };
    Exception::throw_message(ctx, &format!("{code}: {error}, {call} '{path}'"))
}

/// The bytes that a text of one character each stands for.
pub fn bytes_of(text: &str) -> Vec<u8> {
    text.chars().map(|one| one as u32 as u8).collect()
}
