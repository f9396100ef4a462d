-- Tool calls for wrk. SIDS: session ids, comma separated; TOOL: the tool; KEY: the API key (sent to every server).
-- One session: one constant request. Several: they take turns.
local requests = {}
local turn = 0

function init(args)
   local body = '{"name":"' .. os.getenv("TOOL") .. '","input":{"answer":"2"}}'
   for sid in string.gmatch(os.getenv("SIDS"), "[^,]+") do
      requests[#requests + 1] = wrk.format("POST", nil, {
         ["Content-Type"] = "application/json",
         ["Accept"] = "text/event-stream",
         ["X-API-Key"] = os.getenv("KEY"),
         ["X-Session-ID"] = sid,
      }, body)
   end
end

function request()
   turn = turn % #requests + 1
   return requests[turn]
end

-- The last line of the output is JSON, for load.py.
function done(summary, latency)
   local errors = summary.errors
   io.write(string.format(
      '\n{"requests":%d,"duration_us":%d,"bytes":%d,"p50_us":%d,"p99_us":%d,"max_us":%d,"refused":%d,"broken":%d}\n',
      summary.requests, summary.duration, summary.bytes,
      latency:percentile(50), latency:percentile(99), latency.max,
      errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
