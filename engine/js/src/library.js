// The part of Node's library that needs no network and no time: files, paths, URLs, digests, texts.
// It returns the modules by name; `native` reads, writes and digests, `Buffer` is host.js's.
(function (native, Buffer, process, letters_of) {
  "use strict";

  const { querystring, url } = native.urls();

  // Bytes as a text of one character each, as `native` takes them.
  function letters(data, encoding) {
    return letters_of(typeof data === "string" ? Buffer.from(data, encoding) : data);
  }

  const buffer_of = (text) => Buffer.from(text, "latin1");

  // ---- path

  function normalize(path) {
    const rooted = path.startsWith("/");
    const kept = [];
    for (const word of path.split("/")) {
      if (word === "" || word === ".") continue;
      if (word === ".." && kept.length > 0 && kept[kept.length - 1] !== "..") kept.pop();
      else if (word !== ".." || !rooted) kept.push(word);
    }
    const whole = (rooted ? "/" : "") + kept.join("/");
    return whole === "" ? "." : whole + (path.endsWith("/") && kept.length > 0 ? "/" : "");
  }

  function resolve(...paths) {
    let whole = "";
    for (const path of [process.cwd(), ...paths]) whole = path.startsWith("/") ? path : whole + "/" + path;
    whole = normalize(whole);
    return whole.length > 1 && whole.endsWith("/") ? whole.slice(0, -1) : whole;
  }

  function basename(path, ending = "") {
    const name = path.replace(/\/+$/, "").split("/").pop();
    return ending !== "" && name !== ending && name.endsWith(ending) ? name.slice(0, -ending.length) : name;
  }

  function dirname(path) {
    const plain = path.replace(/\/+$/, "");
    const at = plain.lastIndexOf("/");
    if (at < 0) return ".";
    return at === 0 ? "/" : plain.slice(0, at);
  }

  function extname(path) {
    const name = basename(path);
    const at = name.lastIndexOf(".");
    return at > 0 ? name.slice(at) : "";
  }

  function relative(from, to) {
    const there = resolve(to).split("/").filter(Boolean);
    const here = resolve(from).split("/").filter(Boolean);
    let same = 0;
    while (same < there.length && same < here.length && there[same] === here[same]) same += 1;
    return [...here.slice(same).map(() => ".."), ...there.slice(same)].join("/");
  }

  const path = {
    normalize,
    resolve,
    basename,
    dirname,
    extname,
    relative,
    join: (...paths) => normalize(paths.filter((one) => one !== "").join("/") || "."),
    isAbsolute: (one) => one.startsWith("/"),
    parse: (one) => {
      const [dir, base, ext] = [dirname(one), basename(one), extname(one)];
      return { root: one.startsWith("/") ? "/" : "", dir, base, ext, name: basename(base, ext) };
    },
    format: (one) => (one.dir ? one.dir + "/" : "") + (one.base || (one.name || "") + (one.ext || "")),
    sep: "/",
    delimiter: ":",
  };
  path.posix = path;

  // ---- fs

  // The code stands first in what the host says.
  function asked(act) {
    try {
      return act();
    } catch (error) {
      const code = /^(E[A-Z]+): /.exec(error.message);
      throw code === null ? error : Object.assign(error, { code: code[1], syscall: "open" });
    }
  }

  const named = (file) => (typeof file === "object" && file !== null ? file.pathname || String(file) : file);

  function encoding_of(options) {
    return typeof options === "string" ? options : options && options.encoding;
  }

  function readFileSync(file, options) {
    const encoding = encoding_of(options);
    if (encoding === "utf8" || encoding === "utf-8") return asked(() => native.text(named(file)));
    const bytes = buffer_of(asked(() => native.bytes(named(file))));
    return encoding ? bytes.toString(encoding) : bytes;
  }

  function written(file, data, options, usual) {
    const flag = (typeof options === "object" && options !== null && options.flag) || usual;
    if (flag !== "w" && flag !== "a") {
      const why = "The argument 'flag' is '" + flag + "'; Prony's JavaScript writes with 'w' and 'a'";
      throw Object.assign(new TypeError(why), { code: "ERR_INVALID_ARG_VALUE" });
    }
    const whole = typeof data === "string" || data instanceof Uint8Array ? data : String(data);
    asked(() => native.write(named(file), letters(whole, encoding_of(options)), flag === "a"));
  }

  function statSync(file) {
    const kind = native.kind(named(file));
    if (kind === "") asked(() => native.text(named(file)));
    return { isFile: () => kind === "file", isDirectory: () => kind === "folder", size: native.size(named(file)) };
  }

  const fs = {
    readFileSync,
    statSync,
    existsSync: (file) => native.kind(named(file)) !== "",
    readdirSync: (folder) => asked(() => native.list(named(folder))),
    writeFileSync: (file, data, options) => written(file, data, options, "w"),
    appendFileSync: (file, data, options) => written(file, data, options, "a"),
    mkdirSync: (folder, options) =>
      void asked(() => native.make_folder(named(folder), Boolean(options && options.recursive))),
    accessSync: (file) => void statSync(file),
    // For a form, which reads it whole.
    createReadStream: (file) => ({ path: named(file), pipe: waiting("createReadStream"), on: waiting("createReadStream") }),
  };

  function waiting(name) {
    return () => {
      throw new Error("fs." + name + "() waits for a stream, which a function cannot do in Prony; use readFileSync");
    };
  }

  fs.createWriteStream = waiting("createWriteStream");

  // What is done at once, with a callback or a promise as its answer.
  const later = { readFile: readFileSync, writeFile: fs.writeFileSync, appendFile: fs.appendFileSync,
    mkdir: fs.mkdirSync, readdir: fs.readdirSync, stat: statSync, access: fs.accessSync };
  fs.promises = {};
  for (const [name, act] of Object.entries(later)) {
    fs.promises[name] = async (...given) => act(...given);
    fs[name] = (...given) => {
      const done = given.pop();
      let found;
      try {
        found = act(...given);
      } catch (error) {
        done(error);
        return;
      }
      done(null, found);
    };
  }

  // ---- events, util, os and the like

  class EventEmitter {
    on(name, act) {
      this.prony_acts ??= new Map();
      this.prony_acts.set(name, [...(this.prony_acts.get(name) || []), act]);
      return this;
    }

    once(name, act) {
      const once = (...given) => {
        this.off(name, once);
        act.apply(this, given);
      };
      return this.on(name, once);
    }

    off(name, act) {
      const acts = this.listeners(name).filter((one) => one !== act);
      if (this.prony_acts) this.prony_acts.set(name, acts);
      return this;
    }

    emit(name, ...given) {
      const acts = this.listeners(name);
      for (const act of acts) act.apply(this, given);
      return acts.length > 0;
    }

    listeners(name) { return (this.prony_acts && this.prony_acts.get(name)) || []; }
    listenerCount(name) { return this.listeners(name).length; }
    removeAllListeners() { this.prony_acts = undefined; return this; }
    setMaxListeners() { return this; }
    addListener(name, act) { return this.on(name, act); }
    removeListener(name, act) { return this.off(name, act); }
  }
  EventEmitter.EventEmitter = EventEmitter;

  function shown(value) {
    if (typeof value === "string") return "'" + value + "'";
    if (typeof value !== "object" || value === null || value instanceof Error) return String(value);
    try {
      return JSON.stringify(value, null, 1).replace(/\n */g, " ");
    } catch {
      return String(value);
    }
  }

  function formatted(first, ...rest) {
    const text = typeof first === "string" ? first : shown(first);
    const filled = text.replace(/%[sdifjoO%]/g, (sign) => {
      if (sign === "%%") return "%";
      if (rest.length === 0) return sign;
      const value = rest.shift();
      if (sign === "%j") return JSON.stringify(value);
      if (sign === "%s") return typeof value === "string" ? value : shown(value);
      return sign === "%o" || sign === "%O" ? shown(value) : String(sign === "%d" || sign === "%f" ? Number(value) : parseInt(value));
    });
    return [filled, ...rest.map((one) => (typeof one === "string" ? one : shown(one)))].join(" ");
  }

  const util = {
    inspect: shown,
    format: formatted,
    promisify: (act) => (...given) =>
      new Promise((done, fail) => act(...given, (error, value) => (error ? fail(error) : done(value)))),
    inherits: (child, parent) => {
      child.super_ = parent;
      Object.setPrototypeOf(child.prototype, parent.prototype);
    },
    deprecate: (act) => act,
    isArray: Array.isArray,
    types: {},
  };

  // Objects by their keys; what is compared by more than these is refused.
  function same(one, other, alike) {
    if (alike(one, other)) return true;
    if ([one, other].some((side) => typeof side !== "object" || side === null)) return false;
    const kind = Object.prototype.toString.call(one);
    if (kind !== Object.prototype.toString.call(other)) return false;
    if (alike === Object.is && Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
    if (kind === "[object Date]" && !Object.is(one.getTime(), other.getTime())) return false;
    if (!["[object Object]", "[object Array]", "[object Date]", "[object Uint8Array]"].includes(kind)) {
      throw new Error("assert compares no " + kind.slice(8, -1) + " in Prony's JavaScript");
    }
    const keys = Object.keys(one);
    if (Array.isArray(one) && one.length !== other.length) return false;
    return keys.length === Object.keys(other).length &&
      keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key], alike));
  }

  const loosely = (one, other) => {
    const plain = [one, other].every((side) => typeof side !== "object" || side === null);
    return Object.is(one, other) || (plain && one == other);
  };

  function held(what, said) {
    if (!what) throw Object.assign(said instanceof Error ? said : new Error(said || "assertion failed"), { code: "ERR_ASSERTION" });
  }

  const assert = Object.assign((what, said) => held(what, said), {
    ok: held,
    equal: (one, other, said) => held(one == other, said),
    notEqual: (one, other, said) => held(one != other, said),
    strictEqual: (one, other, said) => held(one === other, said),
    notStrictEqual: (one, other, said) => held(one !== other, said),
    deepEqual: (one, other, said) => held(same(one, other, loosely), said),
    deepStrictEqual: (one, other, said) => held(same(one, other, Object.is), said),
  });

  const os = { EOL: "\n", hostname: () => "localhost", platform: () => "linux", type: () => "Linux", tmpdir: () => "/tmp",
    homedir: () => process.env.HOME || "/", cpus: () => [], networkInterfaces: () => ({}), arch: () => "x64" };

  const began = Date.now();
  const performance = { now: () => Date.now() - began, timeOrigin: began, mark: () => {}, measure: () => {} };

  // ---- crypto

  const random_byte = () => Math.floor(Math.random() * 256);
  const randomBytes = (count) => Buffer.from(Array.from({ length: count }, random_byte));

  function randomFillSync(into) {
    const bytes = new Uint8Array(into.buffer || into, into.byteOffset || 0, into.byteLength);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = random_byte();
    return into;
  }

  class Digest {
    constructor(name, key) {
      this.name = name;
      this.key = key === undefined ? undefined : letters(key);
      this.data = "";
    }

    update(data, encoding) {
      this.data += letters(data, encoding);
      return this;
    }

    digest(encoding) {
      const bytes = buffer_of(native.digest(this.name, this.key, this.data));
      return encoding ? bytes.toString(encoding) : bytes;
    }
  }

  const crypto = {
    randomUUID: native.uuid,
    randomInt: (low, high) => {
      const [from, to] = high === undefined ? [0, low] : [low, high];
      return from + Math.floor(Math.random() * (to - from));
    },
    randomBytes,
    pseudoRandomBytes: randomBytes,
    randomFillSync,
    getRandomValues: randomFillSync,
    createHash: (name) => new Digest(name),
    createHmac: (name, key) => {
      if (typeof key === "string" || key instanceof Uint8Array) return new Digest(name, key);
      const why = 'The "key" argument must be of type string or an instance of Buffer or Uint8Array';
      throw Object.assign(new TypeError(why), { code: "ERR_INVALID_ARG_TYPE" });
    },
    timingSafeEqual: (one, other) => letters(one) === letters(other),
  };
  crypto.webcrypto = crypto;

  // ---- form-data: a form of fields and files, written whole

  const TYPES = { ".csv": "text/csv", ".gif": "image/gif", ".html": "text/html", ".jpeg": "image/jpeg", ".jpg": "image/jpeg",
    ".json": "application/json", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".pdf": "application/pdf", ".png": "image/png",
    ".svg": "image/svg+xml", ".txt": "text/plain", ".wav": "audio/wav", ".webm": "video/webm", ".webp": "image/webp",
    ".xml": "application/xml", ".zip": "application/zip" };
  const files = new Map();

  function file_letters(file) {
    const whole = resolve(file);
    if (!files.has(whole)) files.set(whole, asked(() => native.bytes(whole)));
    return files.get(whole);
  }

  class FormData {
    constructor() {
      this.parts = [];
      this.boundary = "-".repeat(26) + Array.from({ length: 24 }, () => Math.floor(Math.random() * 10)).join("");
    }

    append(name, value, options) {
      const about = typeof options === "string" ? { filename: options } : options || {};
      const is_file = typeof value === "object" && value !== null && typeof value.path === "string";
      const file = about.filename || about.filepath || (is_file ? basename(value.path) : undefined);
      let type = about.contentType;
      if (type === undefined && file !== undefined) type = TYPES[extname(file).toLowerCase()];
      if (type === undefined && (is_file || value instanceof Uint8Array)) type = "application/octet-stream";
      const data = is_file ? file_letters(value.path) : letters(value instanceof Uint8Array ? value : String(value));
      let head = 'Content-Disposition: form-data; name="' + name + '"';
      if (file !== undefined) head += '; filename="' + file + '"';
      if (type !== undefined) head += "\r\nContent-Type: " + type;
      this.parts.push(letters("--" + this.boundary + "\r\n" + head + "\r\n\r\n") + data + "\r\n");
    }

    getBoundary() { return this.boundary; }
    getHeaders(more) { return { "content-type": "multipart/form-data; boundary=" + this.boundary, ...more }; }
    getBuffer() { return buffer_of(this.letters()); }
    getLengthSync() { return this.letters().length; }
    letters() { return this.parts.join("") + "--" + this.boundary + "--\r\n"; }
  }
  FormData.default = FormData;

  return { assert, buffer: { Buffer }, crypto, events: EventEmitter, "form-data": FormData, fs, "fs/promises": fs.promises,
    os, path, "path/posix": path, perf_hooks: { performance }, querystring, url, util };
});
