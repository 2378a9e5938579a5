"""The public API as a WSGI application: rate limit first, then the circuit breaker, then the request."""

import ipaddress
import logging
import os
import time
import urllib.error
import urllib.request
from math import ceil
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from limiter import CircuitBreaker, Settings
from metrics import Metrics

ENDPOINTS = {("GET", "/api/users"): "users-read", ("POST", "/api/users"): "users-write"}
API_KEYS = dict(pair.split("=") for pair in os.environ.get("API_KEYS", "K1=acme,K2=gold:initech").split(","))
PROXIES = [ipaddress.ip_network(n.strip()) for n in os.environ.get("TRUSTED_PROXIES", "").split(",") if n.strip()]
BACKEND = os.environ.get("BACKEND")

host, port = os.environ.get("WEIR", "127.0.0.1:6380").split(":")
timeout = int(os.environ.get("TIMEOUT_MS", "100")) / 1000
# The client never sends a request again, because it could count twice.
redis = Redis(host=host, port=int(port), decode_responses=True, socket_timeout=timeout, retry=Retry(NoBackoff(), 0))
settings, breaker = Settings(), CircuitBreaker()
metrics = Metrics(redis, [("service", "all")])


def ip_of(word):
    """Reads an address. Returns None for anything else. An IPv4 address in IPv6 is the IPv4 address."""
    try:
        found = ipaddress.ip_address(word.strip())
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def trusted(addr):
    return any(addr in network for network in PROXIES)


def client_of(environ):
    """Returns the client: the last address of X-Forwarded-For that no trusted proxy has, if a trusted proxy sent it."""
    client = ip_of(environ["REMOTE_ADDR"])
    for word in reversed(environ.get("HTTP_X_FORWARDED_FOR", "").split(",")):
        hop = ip_of(word) if trusted(client) else None
        if hop is None:
            break
        client = hop
    if client.version == 6:  # a client has a whole /64
        return f"ip:{ipaddress.ip_network((client, 64), strict=False)}"
    return f"ip:{client}"


def check(environ):
    """Sends one check: for the address, the API key, the endpoint and the service, or for the settings."""
    ip, name = client_of(environ), API_KEYS.get(environ.get("HTTP_X_API_KEY"))
    user = name and "user:" + name
    policy = ENDPOINTS.get((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
    pairs = settings.pairs("/", ip, user)
    if policy:
        pairs = [(policy, user or ip), ("ip", ip), *([("api-key", user)] if user else []), ("service", "all")]
    words = [word for pair in pairs for word in pair]
    priority = ["PRIORITY", "high"] if name and name.startswith("gold:") else []
    begun = time.monotonic()
    answer = redis.execute_command("RL.CHECK", *words, *priority)
    metrics.count(answer[0] == 1, time.monotonic() - begun)
    return answer


def process(environ):
    """Serves the request: from the server behind this one, or with an empty list of users."""
    if not BACKEND:
        return "200 OK", b'{"users":[]}\n'
    request = urllib.request.Request(BACKEND + environ["PATH_INFO"], method=environ["REQUEST_METHOD"])
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return f"{response.status} {response.reason}", response.read()
    except urllib.error.HTTPError as err:
        return f"{err.code} {err.reason}", err.read()
    except OSError:
        return "502 Bad Gateway", b"the server behind is not reached\n"


def app(environ, start_response):
    headers = {"Content-Type": "application/json"}

    def answer(status, body):
        start_response(status, list(headers.items()))
        return [body]

    if environ["PATH_INFO"] == "/metrics":
        headers["Content-Type"] = "text/plain; version=0.0.4"
        return answer("200 OK", metrics.page().encode())
    if settings.enabled:
        # 1. The rate limit.
        try:
            allowed, remaining, retry_ms, reset_ms, limit, _ = check(environ)
        except RedisError as err:
            said = "answers an error" if isinstance(err, ResponseError) else "is busy or not reached"
            logging.warning("weir %s: %s", said, err)
            headers["Retry-After"] = "1"
            return answer("503 Service Unavailable", b'{"error":"Service unavailable"}\n')
        headers["X-RateLimit-Limit"] = str(limit)
        headers["X-RateLimit-Remaining"] = str(remaining)
        headers["X-RateLimit-Reset"] = str(ceil(time.time() + reset_ms / 1000))
        if not allowed:
            headers["Retry-After"] = str(max(ceil(retry_ms / 1000), 1))
            return answer("429 Too Many Requests", b'{"error":"Rate limit exceeded"}\n')
        time.sleep(retry_ms / 1000)  # 0 unless the policy delays requests
    # 2. The circuit breaker.
    if breaker.is_open():
        headers["Retry-After"] = str(ceil(breaker.pause))
        return answer("503 Service Unavailable", b'{"error":"Service unavailable"}\n')
    # 3. The request.
    status, body = process(environ)
    breaker.report(status >= "500")
    return answer(status, body)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads, request_queue_size = True, 128


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


if __name__ == "__main__":
    if settings.enabled:
        settings.install(redis)
    address, listen = os.environ.get("LISTEN", "127.0.0.1:8080").split(":")
    with make_server(address, int(listen), app, Server, Quiet) as server:
        logging.warning("listening on http://%s:%d", *server.server_address)
        server.serve_forever()
