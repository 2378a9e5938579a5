#!/usr/bin/env bash
# litellm 1.108.7 (PyPI), a streamed answer of a provider that speaks the OpenAI protocol.
# Guess: pieces are passed on as they come, whatever they say.
# Seen: after 100 equal pieces in a row it raises an error and reports a failure, though the provider has sent more and bills all of them.
# A budget that gives everything back when a call fails gives such an answer away, so examples/litellm commits what had come.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet litellm==1.108.7
cat > run.py <<'PY'
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
import litellm

class Provider(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for i in range(150):
            text = "word " if "same" in asked["messages"][0]["content"] else f"{i} "
            piece = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
                     "choices": [{"index": 0, "delta": {"content": text}}]}
            self.wfile.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
    def log_message(self, *_): pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=server.serve_forever, daemon=True).start()
litellm.suppress_debug_info = True
print("litellm", version("litellm"))

def pieces(order):
    n = 0
    try:
        for piece in litellm.completion(model="openai/m", api_base=f"http://127.0.0.1:{server.server_port}/v1", api_key="none",
                                        stream=True, max_retries=0, messages=[{"role": "user", "content": order}]):
            n += bool(piece.choices[0].delta.content)
        return n, "ends"
    except Exception as err:
        return n, type(err).__name__

differ, same = pieces("count"), pieces("the same")
print("150 different pieces:", *differ, "- 150 equal pieces:", *same)
if differ != (150, "ends") or same[0] > 100 or same[1] == "ends":
    print("CHANGED: equal pieces pass")
    sys.exit(1)
PY
venv/bin/python run.py 2>/dev/null
