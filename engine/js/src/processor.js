// Tasks for users: calls functions of a processor as Artillery calls them, fills in requests as it
// does, and counts as it counts. It knows nothing of files; `native` has the counters and the output.
//
// A task: {kind, functions, give, take} and, of a request, {method, params, has_body, compressed}; of
// the kind `fail`, which fails the user, the {error} that is counted.
// What is given is the user's variables as JSON, and of a response its status, head and body as they
// came (response.*). What is taken: variables as JSON, and request.path, request.headers,
// request.body, result. `begin` returns the taken values, null when the user fails, or undefined while
// a promise is open; `end` says what became of it when nothing is left to do.
(function (native, functions, config) {
  "use strict";
  const tasks = config.tasks;
  const constants = JSON.stringify(config.variables);
  const users = new Map();
  // The query of a script, by request: functions may replace their own.
  const qs_of = new WeakMap();
  let call = null;

  const ee = {
    emit(kind, name, value) {
      switch (kind) {
        case "counter":
          native.count(String(name), Number(value));
          break;
        case "rate":
          native.rate(String(name));
          break;
        case "histogram":
        case "summary":
          native.record(String(name), Number(value));
          break;
        case "customStat":
          native.record(String(name.stat), Number(name.value));
          break;
        case "error":
          native.count("errors." + name, 1);
          break;
        default:
          return false;
      }
      return true;
    },
    on() { return ee; },
    once() { return ee; },
    removeListener() { return ee; },
  };

  function random_number(low, high) {
    let from = low === undefined ? 0 : Number(low);
    let to = high === undefined ? (low === undefined ? 1 : from) : Number(high);
    if (high === undefined && low !== undefined) from = 0;
    if (from > to) [from, to] = [to, from];
    return from + Math.floor(Math.random() * (to - from + 1));
  }

  const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

  function random_string(length = 10) {
    let text = "";
    while (text.length < length) text += LETTERS.charAt(Math.floor(Math.random() * LETTERS.length));
    return text;
  }

  function user_of(place, started) {
    let user = users.get(place);
    if (user === undefined || user.started !== started) {
      const vars = Object.assign(JSON.parse(constants), config.rows);
      vars.$uuid = native.uuid();
      vars.$env = vars.$processEnvironment = native.env;
      const context = { vars, _uid: vars.$uuid };
      context.funcs = {
        $randomNumber: random_number,
        $randomString: random_string,
        $template: (text) => filled(text, context),
      };
      user = { started, context, known: Object.create(null), request: null };
      users.set(place, user);
    }
    return user;
  }

  // ---- templates

  const CALLED = /{{\s*(\$[A-Za-z0-9_]+)\s*\(\s*([A-Za-z0-9_,\s]*)\s*\)\s*}}/;
  const NAMED = /{{{?[\s$\w.[\]'"-]+}}}?/;

  function at(vars, path) {
    if (Object.hasOwn(vars, path)) return vars[path];
    let value = vars;
    for (const word of path.split(/[.[\]'"]+/)) {
      if (word === "") continue;
      if (value === null || value === undefined) return undefined;
      value = value[word];
    }
    return value;
  }

  function filled_text(text, context) {
    for (let rounds = 0; rounds < 1000; rounds++) {
      const found = CALLED.exec(text);
      if (found === null) break;
      const made = context.funcs[found[1]];
      if (typeof made !== "function") return undefined;
      const words = found[2].split(",").map((word) => word.trim()).filter((word) => word !== "");
      const given = words.map((word) => (isNaN(Number(word)) ? undefined : Number(word)));
      const before = text.slice(0, found.index);
      text = before + String(made(...given)) + text.slice(found.index + found[0].length);
    }
    const name = (token) => token.replace(/[{}]/g, "").trim();
    const only = NAMED.exec(text);
    if (only === null) return text;
    if (only[0] === text) {
      const value = at(context.vars, name(text));
      return typeof value === "function" ? undefined : value;
    }
    for (let rounds = 0; rounds < 10000; rounds++) {
      const found = NAMED.exec(text);
      if (found === null) break;
      let value = at(context.vars, name(found[0]));
      if (typeof value === "object") value = JSON.stringify(value);
      text = text.slice(0, found.index) + String(value) + text.slice(found.index + found[0].length);
    }
    return text;
  }

  // A copy with its texts filled in; anything but texts, lists and plain objects stays as it is.
  function filled(value, context) {
    if (typeof value === "string") return value.includes("{{") ? filled_text(value, context) : value;
    if (Array.isArray(value)) return value.map((inner) => filled(inner, context));
    if (value !== null && typeof value === "object" && value.constructor === Object) {
      const copy = {};
      for (const [key, inner] of Object.entries(value)) {
        copy[filled(key, context)] = filled(inner, context);
      }
      return copy;
    }
    return value;
  }

  // ---- requests

  function prefixed(url) {
    return typeof url === "string" && url.startsWith("/") ? config.target + url : url;
  }

  function begun(task) {
    const params = JSON.parse(task.params_text);
    params.url = prefixed(params.url || params.uri);
    delete params.uri;
    params.method = task.method;
    params.timeout = config.timeout_ms;
    params.uuid = native.uuid();
    qs_of.set(params, params.qs);
    return params;
  }

  // As browsers write a form: blanks as +, everything but letters, digits and *-._ as %XX.
  function escaped(text) {
    const plain = encodeURIComponent(text).replace(/%20/g, "+");
    return plain.replace(/[!'()~]/g, (one) => "%" + one.charCodeAt(0).toString(16).toUpperCase());
  }

  function pairs(values) {
    const found = [];
    for (const [key, value] of Object.entries(values)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        // Node's querystring writes anything else as nothing.
        const written = ["string", "number", "bigint", "boolean"].includes(typeof one);
        found.push(escaped(key) + "=" + escaped(written ? String(one) : ""));
      }
    }
    return found.join("&");
  }

  // The query that replaces the URL's; undefined: none does. Only the script's own qs counts, which functions
  // may change, but not replace.
  function query_of(request, context) {
    if (qs_of.get(request)) return pairs(filled(qs_of.get(request), context));
    const given = request.searchParams;
    if (given === undefined || given === null || given === "") return undefined;
    if (typeof given !== "object") return String(new URLSearchParams(String(given)));
    if (given instanceof URLSearchParams) return String(given);
    const named = Object.entries(given).filter(([, value]) => value !== undefined);
    return named.map(([key, value]) => escaped(key) + "=" + escaped(value === null ? "" : String(value))).join("&");
  }

  function lower(headers) {
    const found = {};
    for (const [name, value] of Object.entries(headers || {})) found[name.toLowerCase()] = value;
    return found;
  }

  function path_of(request, context) {
    const url = prefixed(filled(request.uri || request.url, context));
    if (typeof url !== "string" || !url.startsWith("http")) throw new Error("Invalid URL - " + url);
    if (!url.startsWith(config.origin) || !["/", "?", "#", undefined].includes(url[config.origin.length])) {
      throw new Error("the URL leads to another server, where Prony sends nothing that is made during the run: " + url);
    }
    let path = url.slice(config.origin.length).split("#")[0];
    if (!path.startsWith("/")) path = "/" + path;
    const query = query_of(request, context);
    if (query !== undefined) path = path.split("?")[0] + (query === "" ? "" : "?" + query);
    return path;
  }

  // The body and its content type.
  function body_of(request, context) {
    if (request.json) {
      request.json = filled(request.json, context);
      delete request.body;
      if (typeof request.json === "object") return [JSON.stringify(request.json), "application/json"];
    }
    if (request.form) {
      request.form = filled(request.form, context);
      return [pairs(request.form), "application/x-www-form-urlencoded"];
    }
    if (!request.body) return [undefined, undefined];
    // Of the module form-data: bytes, as a text of one character each.
    if (typeof request.body.getBoundary === "function" && typeof request.body.letters === "function") {
      return [[request.body.letters()], request.body.getHeaders()["content-type"]];
    }
    if (request.body instanceof Uint8Array) return [[Buffer.from(request.body).toString("latin1")], undefined];
    request.body = filled(request.body, context);
    if (typeof request.body !== "string") throw new Error("a function gives a body that is no text");
    return [request.body, undefined];
  }

  const OURS = ["host", "connection", "content-length"];

  function lines_of(request, task, context, type) {
    const own = lower(config.headers === null ? {} : config.headers);
    const headers = { "user-agent": config.user_agent };
    Object.assign(headers, filled(Object.assign(own, lower(request.headers)), context));
    if (type !== undefined && headers["content-type"] === undefined) headers["content-type"] = type;
    if (task.compressed && request.gzip !== false && headers["accept-encoding"] === undefined) {
      headers["accept-encoding"] = "gzip, deflate, br";
    }
    request.headers = headers;
    let lines = "";
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined || value === null || OURS.includes(name)) continue;
      if (Array.isArray(value) && value.length === 0) continue;
      const text = Array.isArray(value) ? value.join(", ") : String(value);
      if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) {
        throw Object.assign(new TypeError('Invalid character in header content ["' + name + '"]'), { code: "ERR_INVALID_CHAR" });
      }
      if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) {
        throw Object.assign(new TypeError("Header name must be a valid HTTP token"), { code: "ERR_INVALID_HTTP_TOKEN" });
      }
      lines += name + ": " + text + "\r\n";
    }
    return lines;
  }

  // What it puts into the jar, a line for each.
  function cookies_of(request, context) {
    const own = request.cookie && typeof request.cookie === "object" ? request.cookie : {};
    const jar = Object.entries(Object.assign({}, config.cookies, own));
    return jar.map(([name, value]) => name + "=" + filled(value, context)).join("\n");
  }

  function written(request, task, context) {
    const [body, type] = body_of(request, context);
    if (body !== undefined && !task.has_body) {
      throw new Error("a function gives a " + task.method + " a body, which Prony sends where the script has one");
    }
    request.url = config.origin + path_of(request, context);
    return {
      path: request.url.slice(config.origin.length + 1),
      headers: lines_of(request, task, context, type),
      cookies: cookies_of(request, context),
      body: body === undefined ? "" : body,
    };
  }

  function response_of(given) {
    const headers = {};
    for (const line of given["response.head"].split(/\r?\n/).slice(1)) {
      const colon = line.indexOf(":");
      if (colon <= 0) continue;
      const name = line.slice(0, colon).toLowerCase();
      const value = line.slice(colon + 1).trim();
      if (name === "set-cookie") (headers[name] ??= []).push(value);
      else headers[name] = name in headers ? headers[name] + ", " + value : value;
    }
    const status = Number(given["response.head"].split(" ")[1]);
    // Times are not known here: what a function makes of them it makes of nothing.
    const timings = { phases: {} };
    return { statusCode: status, headers, body: given["response.body"], url: call.user.request.url, timings };
  }

  // ---- calls

  function fail(made, error) {
    if (made !== call || made.ended) return;
    made.ended = made.failed = true;
    native.count("errors." + ((error && (error.code || error.message)) || undefined), 1);
  }

  function complete(made) {
    try {
      if (made.task.kind === "before") {
        made.sent = written(made.user.request, made.task, made.user.context);
      }
      made.ended = true;
    } catch (error) {
      fail(made, error);
    }
  }

  // What a function of this kind is called with, before its callback.
  function given_to(made) {
    const context = made.user.context;
    switch (made.task.kind) {
      case "before":
        return [made.user.request, context, ee];
      case "after":
        return [made.user.request, made.response, context, ee];
      default:
        return [context, ee];
    }
  }

  function next(made, place) {
    if (made !== call || made.ended) return;
    const kind = made.task.kind;
    if (place === made.task.functions.length) {
      complete(made);
      return;
    }
    const name = String(filled(made.task.functions[place], made.user.context));
    const called = functions[name];
    made.name = name;
    if (typeof called !== "function") {
      if (kind === "function") native.count('errors.Undefined function "' + name + '"', 1);
      else native.print("WARNING: custom function " + name + " could not be found");
      next(made, place + 1);
      return;
    }
    try {
      if (kind === "condition") {
        made.result = called(made.user.context.vars);
        next(made, place + 1);
        return;
      }
      let answered = false;
      const done = (error) => {
        if (answered) return;
        answered = true;
        if (kind === "while") made.result = error;
        else if (error) {
          fail(made, error);
          return;
        }
        next(made, place + 1);
      };
      made.waits = "did not call its callback, and Prony's JavaScript has no timers and no network to wait for";
      if (kind === "while") {
        called(made.user.context, done);
      } else if (called.constructor.name === "Function") {
        called(...given_to(made), done);
      } else {
        made.waits = "waits for a promise that nothing in Prony's JavaScript settles (it has no timers and no network)";
        const promise = called(...given_to(made));
        // There the value of a hook's promise is taken for its error, and that of a step's is not.
        if (kind === "function") promise.then(() => done(), (error) => fail(made, error));
        else promise.then(done, (error) => fail(made, error));
      }
    } catch (error) {
      fail(made, error);
    }
  }

  function taken(made) {
    if (made.failed) return null;
    const { vars } = made.user.context;
    try {
      return made.task.take.map((name) => {
        switch (name) {
          case "request.path":
            return made.sent.path;
          case "request.headers":
            return made.sent.headers;
          case "request.cookies":
            return made.sent.cookies;
          case "request.body":
            return made.sent.body;
          case "result":
            return made.result ? "true" : "false";
          default: {
            const text = JSON.stringify(vars[name]);
            made.user.known[name] = text === undefined ? "null" : text;
            return made.user.known[name];
          }
        }
      });
    } catch (error) {
      made.ended = false;
      fail(made, error);
      return null;
    }
  }

  function begin(number, place, started, texts) {
    const task = tasks[number];
    const user = user_of(place, started);
    const parts = {};
    task.give.forEach((name, index) => {
      const text = texts[index];
      if (name.startsWith("response.")) parts[name] = text;
      // What nothing has set yet is no variable.
      else if (text === "null" && !(name in user.known)) user.known[name] = text;
      else if (text !== "" && user.known[name] !== text) {
        user.known[name] = text;
        user.context.vars[name] = JSON.parse(text);
      }
    });
    user.context.scenario = task.scenario;
    const made = { task, user, ended: false, failed: false, result: undefined };
    call = made;
    if (task.kind === "fail") {
      fail(made, new Error(task.error));
      return taken(made);
    }
    try {
      if (task.kind === "before") {
        user.request = begun(task);
      } else if (task.kind === "after") {
        if (user.request === null || task.alone) {
          user.request = begun(task);
          written(user.request, task, user.context);
        }
        made.response = response_of(parts);
      }
    } catch (error) {
      fail(made, error);
    }
    next(made, 0);
    return made.ended ? taken(made) : undefined;
  }

  function end() {
    if (!call.ended) fail(call, new Error(call.name + "() " + call.waits));
    return taken(call);
  }

  for (const task of tasks) {
    task.take = task.take || [];
    if (task.params !== undefined) task.params_text = JSON.stringify(task.params);
  }
  Object.defineProperty(globalThis, "prony:calls", { value: Object.freeze({ begin, end }) });
});
