// What a processor finds around itself: console, process, Buffer, and require for files, packages and
// library.js. It returns `require`; `native` reads and evaluates files.
(function (native) {
  "use strict";

  function shown(value) {
    if (typeof value === "string") return value;
    if (value instanceof Error) return value.stack ? value + "\n" + value.stack : String(value);
    if (typeof value === "object" && value !== null) {
      try {
        return JSON.stringify(value);
      } catch {
        return String(value);
      }
    }
    return String(value);
  }

  const print = (...words) => native.print(words.map(shown).join(" "));
  globalThis.console = { log: print, info: print, warn: print, error: print, debug: print, trace: print };
  globalThis.global = globalThis;

  const later = (act, ...given) => void Promise.resolve().then(() => act(...given));

  function waits(name) {
    return (act, ms, ...given) => {
      if (name === "setTimeout" && !(Number(ms) > 0)) {
        later(act, ...given);
        return 0;
      }
      throw new Error(name + "() waits, which a function cannot do in Prony; use think");
    };
  }

  globalThis.setTimeout = waits("setTimeout");
  globalThis.setInterval = waits("setInterval");
  globalThis.clearTimeout = globalThis.clearInterval = () => {};
  globalThis.setImmediate = later;
  globalThis.queueMicrotask ??= later;
  globalThis.fetch = () => {
    throw new Error("fetch() sends requests, which functions cannot do in Prony; write them into the flow");
  };
  globalThis.process = {
    env: native.env,
    argv: [],
    platform: "linux",
    version: "",
    versions: {},
    nextTick: later,
    cwd: () => native.folder,
    memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0 }),
    pid: 0,
    hrtime: Object.assign(
      () => {
        const ms = Date.now();
        return [Math.floor(ms / 1000), (ms % 1000) * 1e6];
      },
      { bigint: () => BigInt(Date.now()) * 1000000n },
    ),
    uptime: () => 0,
    on: () => {},
  };

  // ---- Buffer: text and its encodings

  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  function utf8(text) {
    const bytes = [];
    for (const one of String(text)) {
      const code = one.codePointAt(0);
      if (code < 0x80) bytes.push(code);
      else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
      else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
      else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    }
    return bytes;
  }

  // The text of bytes, some at a time: a long text that grows is copied again and again.
  function piecewise(bytes, text_of) {
    const pieces = [];
    for (let at = 0; at < bytes.length; at += 3072) pieces.push(text_of(bytes.subarray(at, at + 3072)));
    return pieces.join("");
  }

  // Bytes as a text of one character each, as `native` takes them, and back.
  const letters_of = (bytes) => piecewise(bytes, (some) => String.fromCharCode(...some));

  function bytes_of(text) {
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
    return bytes;
  }

  const from_utf8 = (bytes) => native.decoded(letters_of(bytes));

  function hex(bytes) {
    let text = "";
    for (const byte of bytes) text += (byte < 16 ? "0" : "") + byte.toString(16);
    return text;
  }

  function from_hex(text) {
    const bytes = new Uint8Array(text.length >> 1);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = parseInt(text.slice(2 * at, 2 * at + 2), 16);
    return bytes;
  }

  function base64(bytes) {
    let text = "";
    for (let at = 0; at < bytes.length; at += 3) {
      const [one, two, three] = [bytes[at], bytes[at + 1], bytes[at + 2]];
      text += DIGITS[one >> 2] + DIGITS[((one & 3) << 4) | ((two ?? 0) >> 4)];
      text += two === undefined ? "=" : DIGITS[((two & 15) << 2) | ((three ?? 0) >> 6)];
      text += three === undefined ? "=" : DIGITS[three & 63];
    }
    return text;
  }

  function from_base64(text) {
    const bytes = [];
    let held = 0;
    let bits = 0;
    for (const one of String(text).replace(/-/g, "+").replace(/_/g, "/")) {
      const digit = DIGITS.indexOf(one);
      if (digit < 0) continue;
      held = ((held << 6) | digit) & 0xffffff;
      bits += 6;
      if (bits >= 8) {
        bits -= 8;
        bytes.push((held >> bits) & 255);
      }
    }
    return bytes;
  }

  class Buffer extends Uint8Array {
    static from(value, encoding = "utf8") {
      if (typeof value !== "string") return new Buffer(value);
      if (encoding === "base64" || encoding === "base64url") return new Buffer(from_base64(value));
      if (encoding === "hex") return new Buffer(from_hex(value));
      if (encoding === "latin1" || encoding === "binary" || encoding === "ascii") {
        return new Buffer(bytes_of(value));
      }
      return new Buffer(utf8(value));
    }

    static alloc(length, fill) {
      const made = new Buffer(length);
      if (typeof fill === "number") made.fill(fill);
      else if (fill !== undefined && fill.length > 0) {
        const bytes = Buffer.from(fill);
        for (let at = 0; at < length; at += 1) made[at] = bytes[at % bytes.length];
      }
      return made;
    }

    static allocUnsafe(length) { return new Buffer(length); }

    static concat(parts) {
      const made = new Buffer(parts.reduce((sum, part) => sum + part.length, 0));
      let at = 0;
      for (const part of parts) {
        made.set(part, at);
        at += part.length;
      }
      return made;
    }

    static isBuffer(value) { return value instanceof Buffer; }
    static byteLength(text) { return utf8(text).length; }

    toString(encoding = "utf8") {
      if (encoding === "hex") return piecewise(this, hex);
      if (encoding === "base64") return piecewise(this, base64);
      if (encoding === "base64url") {
        return piecewise(this, base64).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
      }
      if (encoding === "latin1" || encoding === "binary" || encoding === "ascii") {
        return letters_of(this);
      }
      return from_utf8(this);
    }
  }

  globalThis.Buffer = Buffer;
  globalThis.btoa = (text) => piecewise(bytes_of(String(text)), base64);
  globalThis.atob = (text) => Buffer.from(String(text), "base64").toString("latin1");

  // ---- modules

  const library = native.library(native, Buffer, globalThis.process, letters_of);
  const uuid = native.uuids(native, letters_of, utf8);
  const known = { ...library, uuid };
  for (const kind of ["v1", "v3", "v4", "v5"]) known["uuid/" + kind] = uuid[kind];
  const { crypto } = library;
  Object.assign(globalThis, { crypto, URL: library.url.URL, URLSearchParams: library.url.URLSearchParams,
    performance: library.perf_hooks.performance });
  globalThis.TextEncoder ??= class { encode(text = "") { return new Uint8Array(utf8(text)); } };
  globalThis.TextDecoder ??= class {
    decode(given = []) { return from_utf8(new Uint8Array(given.buffer ?? given, given.byteOffset, given.byteLength)); }
  };
  const loaded = Object.create(null);

  function required(name, base) {
    const plain = name.replace(/^node:/, "");
    if (Object.hasOwn(known, plain)) return known[plain];
    const is_file = /^(\.{0,2}\/|\.{1,2}$)/.test(name);
    if (!is_file && native.is_nodes(name)) {
      throw new Error("require('" + name + "'): Prony's JavaScript has not this part of Node's library");
    }
    let found;
    try {
      found = native.read(base, name);
    } catch (error) {
      throw is_file
        ? Object.assign(error, { code: "MODULE_NOT_FOUND" })
        : Object.assign(new Error("require('" + name + "'): " + error.message), { code: "MODULE_NOT_FOUND" });
    }
    const [path, source] = found;
    if (path in loaded) return loaded[path].exports;
    const module = { exports: {}, filename: path, id: path, loaded: false };
    loaded[path] = module;
    if (path.endsWith(".json")) {
      module.exports = JSON.parse(source);
    } else if (native.is_module(path, source)) {
      module.exports = native.imported(path, source);
    } else {
      const folder = path.slice(0, path.lastIndexOf("/")) || "/";
      const own = Object.assign((inner) => required(inner, path), { main: module, cache: loaded, resolve: (inner) => inner });
      const body = native.wrapped(path, source);
      body.call(module.exports, module.exports, own, module, path, folder);
    }
    module.loaded = true;
    return module.exports;
  }

  globalThis["prony:require"] = required;
  return required;
});
