"""The page of all results: `prony serve`. Start at `prony.web.app.create`."""
