-- Paths from a file, one thread after the other; what each thread has asked is added up at the end.
local threads = {}

function setup(thread)
   table.insert(threads, thread)
   thread:set("id", #threads)
end

function init(args)
   paths, asked = {}, 0
   for line in io.lines(args[1]) do
      paths[#paths + 1] = line
   end
end

function request()
   asked = asked + 1
   return wrk.format("GET", paths[asked % #paths + 1])
end

function done(summary, latency, requests)
   for _, thread in ipairs(threads) do
      print("thread " .. thread:get("id") .. (thread:get("asked") > 0 and " has asked" or " has not asked"))
   end
   print(latency:percentile(99) > 0 and "times are known" or "no times")
end
