-- Every item of the interface that wrk documents. Each thread stops itself after ten responses, so that counts are those of any
-- machine. (wrk 4.1.0 itself crashes where a table in a table goes from one thread to another.)
local threads = {}

function setup(thread)
   threads[#threads + 1] = thread
   thread:set("id", #threads)
   thread:set("told", {1, "two", true, x = 1.5})
   local found = wrk.lookup(wrk.host, wrk.port)
   thread.addr = found[1]
   print("setup", #threads, tostring(thread.addr), wrk.connect(thread.addr), thread:get("nothing"),
      wrk.thread == nil)
end

function init(args)
   print("init", id, args[0], #args, args[1], args[2], told[1], told[2], told[3], told.x)
   print("wrk", wrk.scheme, wrk.host, wrk.port, wrk.method, wrk.path, wrk.body, wrk.headers["Host"],
      wrk.headers["X-Given"], type(wrk.headers), type(wrk.thread), type(wrk.thread.addr))
   wrk.headers["X-Set"] = "a"
   calls, responses, longest, codes = 0, 0, 0, {}
end

function delay()
   return calls % 2
end

function request()
   calls = calls + 1
   local kind = calls % 5
   if kind == 0 then return wrk.format() end
   if kind == 1 then return wrk.format("DELETE") end
   if kind == 2 then return wrk.format(nil, "/path?x=" .. id) end
   if kind == 3 then return wrk.format("PUT", "/own", {["X-Own"] = "1"}) end
   return wrk.format("POST", "/body", wrk.headers, "a=" .. calls % 2)
end

function response(status, headers, body)
   responses = responses + 1
   longest = math.max(longest, #body)
   codes[status] = (codes[status] or 0) + 1
   assert(#body == tonumber(headers["Content-Length"]) and headers["Server"] == "prony")
   if responses == 10 then wrk.thread:stop() end
end

function done(summary, latency, requests)
   for _, thread in ipairs(threads) do
      print("thread", thread:get("id"), thread:get("responses"), thread:get("longest"), thread:get("codes")[200],
         thread:get("told")[2], thread:get("nothing"), tostring(thread.addr))
   end
   print("summary", summary.requests, summary.bytes > 0, summary.duration > 0)
   local errors = summary.errors
   print("errors", errors.connect, errors.read, errors.write, errors.status, errors.timeout)
   local last, rising = 0, true
   for _, p in ipairs({1, 50, 90, 99, 99.999}) do
      rising = rising and latency:percentile(p) >= last
      last = latency:percentile(p)
   end
   local samples, value, count = 0, 0, 0
   for place = 1, #latency do
      value, count = latency(place)
      samples = samples + count
   end
   print("latency", latency.min > 0, latency.min <= latency.mean, latency.mean <= latency.max, latency.stdev >= 0,
      rising, last <= latency.max, samples >= summary.requests, value == latency.max)
   print("requests", type(requests.min), type(requests.max), type(requests.mean), type(requests.stdev),
      type(requests:percentile(50)), type(#requests), select("#", requests(1)))
   io.write(string.format("%d %s\n", 7, "written"))
   io.stdout:write("to ", "stdout\n")
end
