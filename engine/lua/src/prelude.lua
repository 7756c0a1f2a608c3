-- What a script finds when it begins: the table `wrk`, and output that goes into the report. Called with what Rust knows.
local known, native = ...
local concat, tostring, type, select, pairs, ipairs, error = table.concat, tostring, type, select, pairs, ipairs, error
local text, length = string.format, string.len

wrk = {
   scheme = known.scheme, host = known.host, port = known.port,
   method = known.method, path = known.path, headers = known.headers, body = known.body,
   thread = nil, lookup = native.lookup, connect = native.connect,
}
package.loaded.wrk = wrk

local function refuse(given, name, value, expected)
   local found = value == nil and "nil" or "a " .. type(value)
   error((given and name .. " of wrk.format" or "wrk." .. name) .. ": found " .. found .. ", expected " .. expected)
end
local function headers_of(given)
   local headers = given or wrk.headers
   if type(headers) ~= "table" then refuse(given, "headers", headers, "a table") end
   return headers
end
local function body_of(given)
   local body = given or wrk.body
   local kind = type(body)
   if body and kind ~= "string" and kind ~= "number" then refuse(given, "body", body, "a string") end
   return body
end

function wrk.format(method, path, headers, body)
   headers, body = headers_of(headers), body_of(body)
   if not headers["Host"] then headers["Host"] = headers_of()["Host"] end
   headers["Content-Length"] = body and length(body)
   local lines = { text("%s %s HTTP/1.1", method or wrk.method, path or wrk.path) }
   for name, value in pairs(headers) do
      lines[#lines + 1] = text("%s: %s", name, value)
   end
   lines[#lines + 1] = ""
   lines[#lines + 1] = body or ""
   return concat(lines, "\r\n")
end

function wrk.resolve(host, service)
   wrk.addrs = {}
   for _, address in ipairs(wrk.lookup(host, service)) do
      if wrk.connect(address) then wrk.addrs[#wrk.addrs + 1] = address end
   end
end

function wrk.setup(thread)
   if type(setup) == "function" then setup(thread) end
end

function wrk.init(args)
   if not headers_of()["Host"] then
      local host = tostring(wrk.host)
      if host:find(":", 1, true) then host = "[" .. host .. "]" end
      wrk.headers["Host"] = wrk.port and host .. ":" .. wrk.port or host
   end
   if type(init) == "function" then init(args) end
   local fixed = wrk.format()
   function wrk.request() return fixed end
end

-- Standard output belongs to the engine's report, so what a script prints is handed over.
local stdout, current = {}, nil
local last = ""
local function hand_over(text)
   if text:find("%S") then last = text end
   native.print(text)
end
current = stdout
function stdout.write(_, ...)
   for place = 1, select("#", ...) do
      local value = select(place, ...)
      if type(value) ~= "string" and type(value) ~= "number" then
         error("bad argument #" .. place .. " to 'write' (string expected, got " .. type(value) .. ")", 2)
      end
      hand_over(tostring(value))
   end
   return stdout
end
function stdout.flush() return stdout end
function stdout.setvbuf() return true end
function stdout.close() return true end
local open_output = io.output
io.stdout = stdout
function io.output(file)
   if file == stdout then current = stdout elseif file ~= nil then current = open_output(file) end
   return current
end
function io.write(...) return current:write(...) end
function print(...)
   local words = {}
   for place = 1, select("#", ...) do words[place] = tostring((select(place, ...))) end
   hand_over(concat(words, "\t") .. "\n")
end

-- The engine's standard input and output are its own: a script cannot read there, and what other programs print goes the way of print.
local read, lines, input, popen = io.read, io.lines, io.input, io.popen
local chosen = false
local function not_here()
   error("standard input cannot be read here (it is the engine's); name a file: io.open('urls.txt')", 3)
end
function io.input(file)
   if file ~= nil then chosen = true elseif not chosen then not_here() end
   return input(file)
end
function io.read(...)
   if not chosen then not_here() end
   return read(...)
end
function io.lines(name)
   if name ~= nil then return lines(name) end
   if not chosen then not_here() end
   return lines()
end
io.stdin = setmetatable({}, { __index = function() not_here() end })
function io.popen(command, mode)
   local away = mode == "w" and "\n) >&2" or "\n) </dev/null"
   return popen("(" .. command .. away, mode)
end
function os.execute(command)
   if command == nil then return 1 end
   local pipe = io.popen("(" .. command .. "\n); printf '\\n%d' $?", "r")
   local text, code = pipe:read("*a"):match("^(.*)\n(%d+)$")
   pipe:close()
   if text ~= "" then hand_over(text) end
   return tonumber(code) * 256
end

-- A script that leaves ends the run and not the engine, which still reports what was measured.
function os.exit(code)
   if code == nil or code == true then code = 0 elseif code == false then code = 1 end
   local said = last ~= "" and "; the last it printed: " .. last:gsub("%s+$", "") or ""
   error("os.exit(" .. tostring(code) .. ") ended the script" .. said, 2)
end

-- Globals are looked up for every call: a script may put another function in their place while it runs.
return {
   has = function(name) return type(_G[name]) == "function" end,
   setup = function(thread) return wrk.setup(thread) end,
   init = function(thread, args)
      wrk.thread = thread
      return wrk.init(args)
   end,
   request = function()
      if type(request) == "function" then return request() end
      return wrk.request()
   end,
   response = function(...)
      if type(response) == "function" then return response(...) end
   end,
   delay = function()
      if type(delay) == "function" then return delay() end
   end,
   done = function(...)
      if type(done) == "function" then return done(...) end
   end,
}
