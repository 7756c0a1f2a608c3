"""Scripts for the tests, and how they are written to a file."""

from __future__ import annotations

from pathlib import Path

WHOLE = """\
config:
  target: "{url}"
  phases:
    - {{duration: 1, arrivalCount: 4, name: only}}
  variables: {{n: 7}}
  plugins: {{expect: {{}}, ensure: {{}}}}
  ensure:
    thresholds: [http.response_time.p99: 60000]
    conditions: [{{expression: "http.codes.200 > 3 and vusers.failed == 0"}}]
    maxErrorRate: 0
scenarios:
  - name: shop
    flow:
      - get:
          url: "/a?x=1"
          qs: {{q: "a b&c~", r: "{{{{ n }}}}"}}
          headers: {{X-Thing: "Hello {{{{ n }}}}"}}
          expect: {{statusCode: 200}}
      - think: 0.01
      - post:
          url: "/echo"
          json:
            a: 1
            b: "{{{{ n }}}}"
            c: "x{{{{ $randomNumber(3, 3) }}}}"
            d: [1, 2.5, true, null, "é\\"/"]
            e: 3.0
          capture: {{json: "$.c", as: "c"}}
      - loop:
          - put: {{url: "/p/{{{{ $loopCount }}}}/{{{{ c }}}}", body: "raw {{{{ n }}}}"}}
        count: 2
      - loop:
          - delete: {{url: "/d/{{{{ $loopElement }}}}"}}
        over: [x, y]
      - loop:
          - get: {{url: "/same"}}
        count: 3
      - post: {{url: "/f", form: {{a: "b c", d: "{{{{ n }}}}"}}}}
      - head: {{url: "/h", auth: {{user: u, pass: p}}, cookie: {{k: v}}}}
      - options: {{url: "/o"}}
      - patch: {{url: "/pp", json: {{}}, headers: {{Content-Type: application/merge-patch+json}}}}
"""
"""Everything that goes over the wire; each user sends 13 requests."""
REQUESTS_EACH = 13

BLOCKS = """\
config:
  target: "{url}"
  phases:
    - {{duration: 1, arrivalCount: 2}}
  variables: {{n: 7}}
  plugins: {{expect: {{}}}}
scenarios:
  - flow:
      - think: 20ms
      - post:
          url: "/echo"
          json: {{kind: red, n: 5}}
          capture: [{{json: $.kind, as: kind}}, {{json: $.n, as: count}}]
          expect: [{{notStatusCode: [500, 503]}}, {{headerEquals: [content-type, application/json]}}]
      - loop:
          - put:
              url: "/l/{{{{ $loopCount }}}}"
              json: {{i: "{{{{ $loopCount }}}}", e: "{{{{ $loopElement }}}}"}}
          - think: 1ms
        count: 3-25
      - loop:
          - think: 1ms
          - get: {{url: "/p"}}
          - get: {{url: "/q"}}
        count: 3
      - get: {{url: "/never", probability: 0}}
      - get: {{url: "/yes", ifTrue: 'kind == "red" and count > 4 and n == 7'}}
      - get: {{url: "/no", ifTrue: "count > 5"}}
      - get: {{url: "/known", ifTrue: "n > 6"}}
"""
"""Everything that is decided during the run; each user sends 31 requests."""
BLOCKS_EACH = 31

SESSIONS = """\
config:
  target: "{url}"
  phases: [{{duration: 1, arrivalRate: 5}}]
scenarios:
  - flow:
      - loop:
          - get: {{url: "/"}}
        count: 50
"""
"""Experiment D as it was published, in small: sessions of 50 requests one after the other."""


def written(folder: Path, text: str, url: str = "http://127.0.0.1:1") -> str:
    """A script file for this server."""
    file = folder / "script.yml"
    file.write_text(text.format(url=url), encoding="utf-8")
    return str(file)
