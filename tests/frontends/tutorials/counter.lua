-- Another query with each request.
local number = 0

request = function()
   number = number + 1
   wrk.headers["X-Number"] = number
   return wrk.format(nil, "/search?q=" .. number)
end
