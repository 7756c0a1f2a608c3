// Of Node's library: URLs and queries. It knows no host.
(function () {
  "use strict";

  // ---- querystring

  const escape = (text) => encodeURIComponent(text);

  function unescape(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  const querystring = {
    escape,
    unescape,
    stringify: (values, between = "&", is = "=") =>
      Object.entries(values || {})
        .flatMap(([key, value]) => (Array.isArray(value) ? value : [value]).map((one) => [key, one]))
        .map(([key, one]) => escape(key) + is + escape(["string", "number", "boolean"].includes(typeof one) ? one : ""))
        .join(between),
    parse: (text, between = "&", is = "=") => {
      const found = Object.create(null);
      for (const pair of String(text).split(between)) {
        if (pair === "") continue;
        const at = pair.indexOf(is);
        const [key, value] = at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + is.length)];
        const [plain, one] = [key, value].map((word) => unescape(word.replace(/\+/g, " ")));
        if (plain in found) found[plain] = [].concat(found[plain], one);
        else found[plain] = one;
      }
      return found;
    },
  };
  querystring.encode = querystring.stringify;
  querystring.decode = querystring.parse;

  // ---- url

  // As a browser writes a form (WHATWG URL, application/x-www-form-urlencoded).
  const form_escaped = (text) =>
    encodeURIComponent(text).replace(/%20/g, "+").replace(/[!'()~]/g, (one) => "%" + one.charCodeAt(0).toString(16).toUpperCase());

  class URLSearchParams {
    constructor(given = "") {
      this.pairs = [];
      if (typeof given === "string") {
        for (const pair of given.replace(/^\?/, "").split("&")) {
          if (pair === "") continue;
          const [key, ...value] = pair.split("=");
          this.pairs.push([key, value.join("=")].map((word) => unescape(word.replace(/\+/g, " "))));
        }
      } else {
        const pairs = typeof given[Symbol.iterator] === "function" ? [...given] : Object.entries(given);
        this.pairs = pairs.map(([key, value]) => [String(key), String(value)]);
      }
    }

    append(key, value) { this.pairs.push([String(key), String(value)]); }
    delete(key) { this.pairs = this.pairs.filter(([one]) => one !== key); }
    get(key) { return (this.pairs.find(([one]) => one === key) || [null, null])[1]; }
    getAll(key) { return this.pairs.filter(([one]) => one === key).map(([, value]) => value); }
    has(key) { return this.pairs.some(([one]) => one === key); }

    set(key, value) {
      const first = this.pairs.find(([one]) => one === key);
      if (first === undefined) this.append(key, value);
      else {
        first[1] = String(value);
        this.pairs = this.pairs.filter((pair) => pair === first || pair[0] !== key);
      }
    }

    sort() { this.pairs.sort(([one], [other]) => (one < other ? -1 : Number(one > other))); }
    forEach(act) { for (const [key, value] of this.pairs) act(value, key, this); }
    keys() { return this.pairs.map(([key]) => key)[Symbol.iterator](); }
    values() { return this.pairs.map(([, value]) => value)[Symbol.iterator](); }
    entries() { return this.pairs.map((pair) => [...pair])[Symbol.iterator](); }
    [Symbol.iterator]() { return this.entries(); }
    get size() { return this.pairs.length; }
    toString() { return this.pairs.map((pair) => pair.map(form_escaped).join("=")).join("&"); }
  }

  const ABSOLUTE = /^([a-z][a-z0-9+.-]*:)\/\/(?:([^/?#@]*)@)?([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/i;
  const PORTS = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21" };

  class URL {
    constructor(given, base) {
      let text = String(given).trim();
      if (!ABSOLUTE.test(text) && base !== undefined) text = joined(text, new URL(base));
      const found = ABSOLUTE.exec(text);
      if (found === null || found[3] === "") {
        throw Object.assign(new TypeError("Invalid URL"), { code: "ERR_INVALID_URL", input: String(given) });
      }
      const [, scheme, user = "", host, way, query = "", hash = ""] = found;
      this.protocol = scheme.toLowerCase();
      const [name, secret = ""] = user.split(/:(.*)/s);
      this.username = name;
      this.password = secret;
      const [, hostname, port = ""] = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(host) || [null, host];
      this.hostname = hostname.toLowerCase();
      this.port = port === PORTS[this.protocol] ? "" : port;
      this.pathname = normalize_path(way === "" ? "/" : way).replace(/[ "<>`{}]/g, encodeURIComponent);
      this.hash = hash === "#" ? "" : hash;
      this.searchParams = new URLSearchParams(query);
      this.written = [query === "?" ? "" : query.replace(/[ "<>']/g, (one) => "%" + one.charCodeAt(0).toString(16).toUpperCase()), this.searchParams.toString()];
    }

    get host() { return this.hostname + (this.port === "" ? "" : ":" + this.port); }
    set host(host) { [this.hostname, this.port = ""] = host.split(":"); }
    get origin() { return this.protocol + "//" + this.host; }

    get search() {
      const now = this.searchParams.toString();
      if (now === this.written[1]) return this.written[0];
      return now === "" ? "" : "?" + now;
    }

    set search(query) {
      this.searchParams = new URLSearchParams(query);
      this.written = [query === "" || query.startsWith("?") ? query : "?" + query, this.searchParams.toString()];
    }

    get href() {
      const user = this.username === "" ? "" : this.username + (this.password === "" ? "" : ":" + this.password) + "@";
      return this.protocol + "//" + user + this.host + this.pathname + this.search + this.hash;
    }

    toString() { return this.href; }
    toJSON() { return this.href; }
  }

  function normalize_path(way) {
    const kept = [];
    const words = way.split("/").slice(1);
    words.forEach((word, place) => {
      if (word === "..") kept.pop();
      else if (word !== ".") kept.push(word);
      if ((word === ".." || word === ".") && place === words.length - 1) kept.push("");
    });
    return "/" + kept.join("/");
  }

  // A reference that is not absolute (RFC 3986, section 5.2).
  function joined(text, base) {
    const front = base.protocol + "//" + (base.username ? base.username + ":" + base.password + "@" : "") + base.host;
    if (text.startsWith("//")) return base.protocol + text;
    if (text.startsWith("/")) return front + text;
    if (text === "" || text.startsWith("#")) return front + base.pathname + base.search + text;
    if (text.startsWith("?")) return front + base.pathname + text;
    return front + base.pathname.replace(/[^/]*$/, "") + text;
  }

  function parse(text, queries = false) {
    const found = /^(?:([a-z][a-z0-9+.-]*:)\/\/(?:([^/?#@]*)@)?([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/i.exec(String(text));
    const [, protocol = null, auth = null, host = null, pathname = null, search = null, hash = null] = found;
    const [hostname, port = null] = host === null ? [null] : host.split(":");
    const way = host !== null && !pathname ? "/" : pathname;
    const plain = search === null ? null : search.slice(1);
    return { href: String(text), protocol, slashes: host !== null, auth, host, hostname, port, pathname: way, search,
      query: queries ? querystring.parse(plain ?? "") : plain, path: way + (search || ""), hash };
  }

  function format(given) {
    if (typeof given === "string" || given instanceof URL) return String(given);
    throw new TypeError("url.format() takes a text or a URL in Prony's JavaScript, and no parts");
  }

  const url = { URL, URLSearchParams, parse, format, resolve: (base, text) => new URL(text, base).href,
    fileURLToPath: (one) => decodeURIComponent(new URL(String(one).replace("file:///", "file://x/")).pathname) };

  return { querystring, url };
});
