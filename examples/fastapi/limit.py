"""A limit for FastAPI: every request asks weir about its client."""

import asyncio
import logging
from ipaddress import ip_address, ip_network
from math import ceil

from fastapi import Request
from fastapi.responses import JSONResponse
from redis.exceptions import RedisError

TYPES = "https://iana.org/assignments/http-problem-types#"
QUOTA = "Request cannot be satisfied as assigned quota has been exceeded"
CAPACITY = "Request cannot be satisfied due to temporary server capacity constraints"


def problem(status, kind, title, headers=None, **more):
    document = {"type": TYPES + kind, "title": title, "status": status, **more}
    return JSONResponse(document, status, headers, media_type="application/problem+json")


def client_of(request):
    """Returns the client that sent a request. An IPv6 client has a whole /64, and may change its address in it."""
    address = ip_address(request.client.host)
    address = getattr(address, "ipv4_mapped", None) or address
    return str(address if address.version == 4 else ip_network((int(address), 64), strict=False))


def limit(redis, policy, key_of=client_of):
    """Middleware: app.middleware("http")(limit(redis, "api"))."""

    async def middleware(request: Request, call_next):
        try:
            answer = await redis.execute_command("RL.CHECK", policy, key_of(request))
        except RedisError as err:
            logging.warning("weir is not reached: %s", err)
            return problem(503, "temporary-reduced-capacity", CAPACITY)
        allowed, remaining, retry_ms, reset_ms, most, by = answer
        until = reset_ms if allowed else retry_ms
        headers = {
            "RateLimit-Policy": f'"{by}";q={most}',
            "RateLimit": f'"{by}";r={remaining}' + ("" if until < 0 else f";t={ceil(until / 1000)}"),
        }
        if not allowed:
            if retry_ms >= 0:
                headers["Retry-After"] = str(max(ceil(retry_ms / 1000), 1))
            return problem(429, "quota-exceeded", QUOTA, headers, **{"violated-policies": [by]})
        await asyncio.sleep(retry_ms / 1000)  # 0 unless the policy delays requests
        response = await call_next(request)
        response.headers.update(headers)
        return response

    return middleware
