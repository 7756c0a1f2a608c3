-- The first response brings a token, which goes into every request after it.
local token = nil

request = function()
   if token then
      return wrk.format("GET", "/private", {["Authorization"] = "Bearer " .. token})
   end
   return wrk.format("POST", "/token")
end

response = function(status, headers, body)
   if not token and status == 200 then
      token = headers["X-Token"]
   end
end
