"""The page of all results: `prony serve`. Start at `prony_serve.web.app.create`."""
