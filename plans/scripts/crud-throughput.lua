-- Experiment A, load 2, for wrk or prony wrk:
--    wrk -c 96 -t 8 -d 30s -s plans/scripts/crud-throughput.lua http://HOST:PORT -- plans/scripts/crud-get.txt
-- The file after `--` says what is asked for: the method on its first line, the path on its second, the body below.
-- At the end a heading and a line of CSV are printed, as the nightly runs of the experiment kept them.

local function ask(name)
   local file = assert(io.open(name, "r"))
   local method, path, body = file:read("*l"), file:read("*l"), file:read("*a")
   file:close()
   wrk.method = assert(method, name .. " has no first line with a method")
   wrk.path = assert(path, name .. " has no second line with a path")
   wrk.headers["Accept"] = "application/json"
   if body and #body > 0 then
      wrk.body = body:gsub("%s+$", "")
      wrk.headers["Content-Type"] = "application/json"
   end
end

function init(args)
   ask(assert(args[1], "expected the file with the request after --"))
end

local columns = {
   "timeStamp", "duration_microseconds", "num_requests", "total_bytes", "connect_errors", "read_errors",
   "write_errors", "error_status_codes", "timeouts", "requests_per_sec", "bytes_per_sec",
   "lat_min_microseconds", "lat_max_microseconds", "lat_mean_microseconds", "lat_stdev_microseconds",
   "lat_percentile_90_microseconds", "lat_percentile_95_microseconds", "lat_percentile_99_microseconds",
}

function done(summary, latency, requests)
   local seconds, errors = summary.duration / 1e6, summary.errors
   local values = {
      os.date("!%Y-%m-%dT%H:%M:%SZ"), summary.duration, summary.requests, summary.bytes,
      errors.connect, errors.read, errors.write, errors.status, errors.timeout,
      string.format("%.2f", summary.requests / seconds), string.format("%.2f", summary.bytes / seconds),
      latency.min, latency.max, string.format("%.2f", latency.mean), string.format("%.2f", latency.stdev),
      latency:percentile(90), latency:percentile(95), latency:percentile(99),
   }
   io.write(table.concat(columns, ","), "\n")
   io.write(table.concat(values, ","), "\n")
end
