#!/usr/bin/env bash
# redis-py 8.1.0 (PyPI), the plain client with its defaults, at a server that answers no INCR in time.
# Guess: a command that changes something is sent once, and the caller gets a TimeoutError.
# Seen: it is sent eleven times within seconds, each of which the server may have carried out. Then comes the TimeoutError.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check redis==8.1.0
"$dir/venv/bin/python" - <<'PY'
import socket, threading
import redis
print("redis-py", redis.__version__)
sent = []

def serve(connection):
    while data := connection.recv(4096):
        if b"INCR" in data:
            sent.append(data)  # and no answer in time
        else:
            connection.sendall(b"+OK\r\n" * data.count(b"CLIENT"))

def accept(server):
    while True:
        threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()

server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, args=(server,), daemon=True).start()
try:
    redis.Redis(port=server.getsockname()[1], protocol=2, socket_timeout=0.2).incr("k")
except redis.TimeoutError as error:
    print("one call of incr sent INCR", len(sent), "times, then:", error)
if len(sent) != 11:
    raise SystemExit("CHANGED: INCR is sent another number of times")
PY
