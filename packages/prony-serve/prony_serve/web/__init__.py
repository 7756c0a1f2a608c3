"""The web page of all results (`prony serve`). Entry point: `prony_serve.web.app.create`."""
