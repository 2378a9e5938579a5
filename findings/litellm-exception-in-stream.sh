#!/usr/bin/env bash
# litellm 1.108.7 (PyPI), the proxy, a callback whose async_post_call_streaming_iterator_hook raises in the middle of a stream.
# Guess: the client reads the error, as it does when async_pre_call_hook raises the same HTTPException.
# Seen: with an HTTPException the connection ends without a word. With litellm.RateLimitError an event says code 429.
# examples/litellm raises the second, so that a client learns that its budget is spent.
set -euo pipefail
dir=$(mktemp -d); trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet 'litellm[proxy]==1.108.7'
cat > stop.py <<'PY'
import litellm
from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger

class Stop(CustomLogger):
    async def async_post_call_streaming_iterator_hook(self, user_api_key_dict, response, request_data):
        n = 0
        async for piece in response:
            n += 1
            if n == 3 and request_data["messages"][0]["content"] == "http":
                raise HTTPException(429, "the budget is spent")
            if n == 3:
                raise litellm.RateLimitError("the budget is spent", llm_provider="", model="")
            yield piece

stop = Stop()
PY
cat > run.py <<'PY'
import json, os, subprocess, sys, threading, time, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
import socket

class Provider(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for i in range(10):
            piece = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
                     "choices": [{"index": 0, "delta": {"content": f"{i} "}}]}
            self.wfile.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
    def log_message(self, *_): pass

provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=provider.serve_forever, daemon=True).start()
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
key = "sk-" + os.urandom(24).hex()
with open("config.yaml", "w") as f:
    json.dump({"model_list": [{"model_name": "m", "litellm_params": {"model": "openai/m", "api_key": "none",
        "api_base": f"http://127.0.0.1:{provider.server_port}/v1"}}], "litellm_settings": {"callbacks": "stop.stop"},
        "general_settings": {"master_key": key}}, f)
proxy = subprocess.Popen(["venv/bin/litellm", "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": "."})
try:
    def ask(order):
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": order}]}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(),
            {"Authorization": "Bearer " + key, "Content-Type": "application/json"})
        text = b""
        try:
            with urllib.request.urlopen(request) as answer:
                while more := answer.read1():
                    text += more
        except (ConnectionError, urllib.error.URLError):
            raise
        except Exception:
            pass  # the stream was cut
        return text.decode()
    for _ in range(600):
        try:
            cut = ask("http")
            break
        except (ConnectionError, urllib.error.URLError):
            time.sleep(0.2)
    told = ask("litellm")
    print("litellm", version("litellm"))
    print("after HTTPException the stream says 429:", '429' in cut, "- after litellm.RateLimitError:", '"code": "429"' in told)
    if '429' in cut or '"code": "429"' not in told:
        print("CHANGED: errors in streams")
        sys.exit(1)
finally:
    proxy.kill()
PY
venv/bin/python run.py
