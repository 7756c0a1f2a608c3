-- Modules that scripts for wrk require and that few hosts have: LuaSocket's clock, and JSON with the interface of lua-cjson.
-- One that is installed is taken in place of these. Called with what Rust knows of the host.
local host = ...
local type, pairs, next, tostring, tonumber, error, pcall = type, pairs, next, tostring, tonumber, error, pcall
local floor, huge, concat, format, byte, char = math.floor, math.huge, table.concat, string.format, string.byte, string.char
local find, sub, gsub, match = string.find, string.sub, string.gsub, string.match

-- Where most systems install modules for Lua 5.1 and LuaJIT, besides where LuaJIT looks by itself.
local function look_also(paths, where)
   for path in where:gmatch("[^;]+") do
      if not find(";" .. paths .. ";", ";" .. path .. ";", 1, true) then paths = paths .. ";" .. path end
   end
   return paths
end
local machine = jit.arch == "arm64" and "aarch64" or "x86_64"
package.path = look_also(package.path, "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua")
package.cpath = look_also(package.cpath, "/usr/lib/" .. machine .. "-linux-gnu/lua/5.1/?.so;/usr/lib64/lua/5.1/?.so;/usr/lib/lua/5.1/?.so")

-- The module of this name that is installed, or what our own function makes.
local function provide(name, make)
   package.preload[name] = function()
      for place = 2, #package.loaders do
         local found, loader = pcall(package.loaders[place], name)
         if found and type(loader) == "function" then
            local loads, module = pcall(loader, name)
            if loads and type(module) == "table" then return module end
         end
      end
      return make()
   end
end

local function only(name, functions)
   return setmetatable(functions, { __index = function(_, key)
      error(name .. "." .. tostring(key) .. " is not here; install " .. name .. " for LuaJIT, or do without it", 2)
   end })
end

provide("socket", function()
   return only("socket", { gettime = host.time_s, sleep = host.wait_s, _VERSION = "LuaSocket's gettime and sleep" })
end)

-- JSON ---------------------------------------------------------------------------------------------

local null = host.null
local DEEPEST = 1000
local ESCAPED = { ['"'] = '\\"', ["\\"] = "\\\\", ["/"] = "\\/", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
   ["\t"] = "\\t", ["\127"] = "\\u007f" }
for code = 0, 31 do
   local one = char(code)
   ESCAPED[one] = ESCAPED[one] or format("\\u%04x", code)
end
local PLAIN = { ["b"] = "\b", ["f"] = "\f", ["n"] = "\n", ["r"] = "\r", ["t"] = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

-- The length of a list, or nil for a table with other keys. As lua-cjson: places may be empty, most must not.
local function length(value)
   local most, count = 0, 0
   for key in pairs(value) do
      if type(key) ~= "number" or key < 1 or key ~= floor(key) then return nil end
      if key > most then most = key end
      count = count + 1
   end
   if most > 10 and most > 2 * count then error("Cannot serialise table: excessively sparse array", 0) end
   return most
end

local function number(value)
   if value ~= value or value == huge or value == -huge then
      error("Cannot serialise number: must not be NaN or Inf", 0)
   end
   return format("%.14g", value)
end

local function quoted(text) return '"' .. gsub(text, '[%c"\\/\127]', ESCAPED) .. '"' end

local write
function write(value, out, depth)
   local kind = type(value)
   if kind == "string" then
      out[#out + 1] = quoted(value)
   elseif kind == "number" then
      out[#out + 1] = number(value)
   elseif kind == "boolean" then
      out[#out + 1] = tostring(value)
   elseif value == nil or value == null then
      out[#out + 1] = "null"
   elseif kind == "table" then
      if depth >= DEEPEST then error("Cannot serialise, excessive depth (" .. depth + 1 .. ")", 0) end
      local count = next(value) ~= nil and length(value)
      if count then
         out[#out + 1] = "["
         for place = 1, count do
            if place > 1 then out[#out + 1] = "," end
            write(value[place], out, depth + 1)
         end
         out[#out + 1] = "]"
      else
         out[#out + 1] = "{"
         local first = true
         for key, inner in pairs(value) do
            if type(key) == "number" then key = number(key) end
            if type(key) ~= "string" then error("Cannot serialise table: table key must be a number or string", 0) end
            out[#out + 1] = (first and "" or ",") .. quoted(key) .. ":"
            first = false
            write(inner, out, depth + 1)
         end
         out[#out + 1] = "}"
      end
   else
      error("Cannot serialise " .. kind .. ": type not supported", 0)
   end
end

local function encode(value)
   local out = {}
   write(value, out, 0)
   return concat(out)
end

local function wrong(expected, text, place)
   local found = place > #text and "T_END" or "invalid token"
   error("Expected " .. expected .. " but found " .. found .. " at character " .. place, 0)
end

local function utf8(code)
   if code < 0x80 then return char(code) end
   if code < 0x800 then return char(0xc0 + floor(code / 0x40), 0x80 + code % 0x40) end
   if code < 0x10000 then
      return char(0xe0 + floor(code / 0x1000), 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
   end
   return char(0xf0 + floor(code / 0x40000), 0x80 + floor(code / 0x1000) % 0x40, 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
end

local function read_string(text, place)
   local parts, from = {}, place + 1
   while true do
      local at = find(text, '[%z\1-\31"\\]', from)
      if not at or byte(text, at) < 32 then wrong("value", text, place) end
      parts[#parts + 1] = sub(text, from, at - 1)
      if byte(text, at) == 34 then return concat(parts), at + 1 end
      local letter = sub(text, at + 1, at + 1)
      if letter == "u" then
         local code = tonumber(match(text, "^%x%x%x%x", at + 2) or wrong("value", text, at), 16)
         from = at + 6
         if code >= 0xd800 and code < 0xdc00 then
            local low = tonumber(match(text, "^\\u([dD][c-fC-F]%x%x)", from) or wrong("value", text, at), 16)
            code = 0x10000 + (code - 0xd800) * 0x400 + low - 0xdc00
            from = from + 6
         elseif code >= 0xdc00 and code < 0xe000 then
            wrong("value", text, at)
         end
         parts[#parts + 1] = utf8(code)
      else
         parts[#parts + 1] = PLAIN[letter] or wrong("value", text, at)
         from = at + 2
      end
   end
end

local read
local function read_list(text, place, depth)
   local list, count = {}, 0
   place = find(text, "%S", place + 1) or #text + 1
   if sub(text, place, place) == "]" then return list, place + 1 end
   while true do
      count = count + 1
      list[count], place = read(text, place, depth)
      place = find(text, "%S", place) or #text + 1
      local letter = sub(text, place, place)
      if letter == "]" then return list, place + 1 end
      if letter ~= "," then wrong("comma or array end", text, place) end
      place = place + 1
   end
end

local function read_object(text, place, depth)
   local object = {}
   place = find(text, "%S", place + 1) or #text + 1
   if sub(text, place, place) == "}" then return object, place + 1 end
   while true do
      if sub(text, place, place) ~= '"' then wrong("object key string", text, place) end
      local key
      key, place = read_string(text, place)
      place = find(text, "%S", place) or #text + 1
      if sub(text, place, place) ~= ":" then wrong("colon", text, place) end
      object[key], place = read(text, place + 1, depth)
      place = find(text, "%S", place) or #text + 1
      local letter = sub(text, place, place)
      if letter == "}" then return object, place + 1 end
      if letter ~= "," then wrong("comma or object end", text, place) end
      place = find(text, "%S", place + 1) or #text + 1
   end
end

local WORDS = { ["true"] = true, ["false"] = false, null = null }
function read(text, place, depth)
   place = find(text, "%S", place) or #text + 1
   local letter = sub(text, place, place)
   if letter == "{" or letter == "[" then
      if depth >= DEEPEST then error("Found too many nested data structures (" .. depth + 1 .. ")", 0) end
      return (letter == "{" and read_object or read_list)(text, place, depth + 1)
   end
   if letter == '"' then return read_string(text, place) end
   local word = match(text, "^%a+", place)
   if word and WORDS[word] ~= nil then return WORDS[word], place + #word end
   local digits = match(text, "^-?%d+%.?%d*[eE]?[+-]?%d*", place)
   local found = digits and tonumber(digits)
   if not found then wrong("value", text, place) end
   return found, place + #digits
end

local function decode(text)
   if type(text) == "number" then text = tostring(text) end
   if type(text) ~= "string" then error("bad argument #1 to 'decode' (string expected, got " .. type(text) .. ")", 0) end
   local value, place = read(text, 1, 0)
   place = find(text, "%S", place)
   if place then wrong("the end", text, place) end
   return value
end

-- An error names the line of the script that called, as one of a module in C does.
local function raising(call)
   return function(value)
      local well, result = pcall(call, value)
      if not well then error(result, 2) end
      return result
   end
end

local function returning(call)
   return function(value)
      local well, result = pcall(call, value)
      if not well then return nil, result end
      return result
   end
end

local function cjson(name, calls)
   provide(name, function()
      local module = only("cjson", { encode = calls(encode), decode = calls(decode), null = null, _NAME = name })
      module.new = function() return module end
      return module
   end)
end
cjson("cjson", raising)
cjson("cjson.safe", returning)
