-- Three requests at once on each connection.
init = function(args)
   local all = {}
   for _, path in ipairs({"/", "/changes", "/about"}) do
      all[#all + 1] = wrk.format(nil, path)
   end
   together = table.concat(all)
end

request = function()
   return together
end
