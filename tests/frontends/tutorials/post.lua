-- A POST with a body of its own.
wrk.method = "POST"
wrk.body = '{"name": "a book"}'
wrk.headers["Content-Type"] = "application/json"
