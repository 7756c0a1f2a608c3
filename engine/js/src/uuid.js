// UUIDs (RFC 9562) with the interface of the package uuid; random ones are `native.uuid`.
(function (native, letters_of, utf8) {
  "use strict";
  const WHOLE = /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|(0|f)\1{7}-(?:\1{4}-){3}\1{12})$/i;
  // From the beginning of the Gregorian calendar to that of Unix time, in steps of 100 ns.
  const GREGORIAN = 122192928000000000n;
  const random_byte = () => Math.floor(Math.random() * 256);
  const validate = (text) => typeof text === "string" && WHOLE.test(text);

  function stringify(bytes, from = 0) {
    const hex = Array.from({ length: 16 }, (_, at) => bytes[from + at].toString(16).padStart(2, "0")).join("");
    return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]].map((part) => hex.slice(...part)).join("-");
  }

  function parse(text) {
    if (!validate(text)) throw new TypeError("Invalid UUID");
    return Uint8Array.from(text.replace(/-/g, "").match(/../g), (pair) => parseInt(pair, 16));
  }

  // These bytes with their version and variant, as a text or into the buffer that is given.
  function marked(bytes, version, buffer, offset = 0) {
    bytes[6] = (bytes[6] & 0x0f) | (version << 4);
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    if (!buffer) return stringify(bytes);
    for (let at = 0; at < 16; at += 1) buffer[offset + at] = bytes[at];
    return buffer;
  }

  let last_ms = 0;
  let within = 0;
  const own_node = Array.from({ length: 6 }, random_byte);
  own_node[0] |= 1; // it is no address of a network card
  const own_clock = (random_byte() << 8) | random_byte();

  function v1(options, buffer, offset) {
    const given = options || {};
    const now = given.msecs ?? Date.now();
    within = now === last_ms ? (within + 1) % 10000 : 0;
    last_ms = now;
    let ticks = BigInt(now) * 10000n + BigInt(given.nsecs ?? within) + GREGORIAN;
    const clock = given.clockseq ?? own_clock;
    const time = [];
    for (let at = 0; at < 8; at += 1, ticks >>= 8n) time.unshift(Number(ticks & 255n));
    const bytes = [...time.slice(4), time[2], time[3], time[0], time[1], (clock >> 8) & 255, clock & 255];
    return marked([...bytes, ...(given.node || own_node)], 1, buffer, offset);
  }

  function v7(options, buffer, offset) {
    let ms = (options || {}).msecs ?? Date.now();
    const bytes = Array.from({ length: 16 }, random_byte);
    for (let at = 5; at >= 0; at -= 1, ms = Math.floor(ms / 256)) bytes[at] = ms % 256;
    return marked(bytes, 7, buffer, offset);
  }

  function of_name(version, algorithm) {
    const made = (name, space, buffer, offset) => {
      const bytes = typeof space === "string" ? parse(space) : space;
      if (!bytes || bytes.length !== 16) {
        throw TypeError("Namespace must be array-like (16 iterable integer values, 0-255)");
      }
      const text = typeof name === "string" ? utf8(name) : Array.from(name);
      const digest = native.digest(algorithm, undefined, letters_of(Uint8Array.from([...bytes, ...text])));
      return marked(Array.from(digest.slice(0, 16), (one) => one.charCodeAt(0)), version, buffer, offset);
    };
    made.DNS = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    made.URL = "6ba7b811-9dad-11d1-80b4-00c04fd430c8";
    return made;
  }

  return {
    v1, v3: of_name(3, "md5"), v4: native.uuid, v5: of_name(5, "sha1"), v7, parse, stringify, validate,
    NIL: "00000000-0000-0000-0000-000000000000", MAX: "ffffffff-ffff-ffff-ffff-ffffffffffff",
    version: (text) => (validate(text) ? parseInt(text[14], 16) : (() => { throw TypeError("Invalid UUID"); })()),
  };
});
