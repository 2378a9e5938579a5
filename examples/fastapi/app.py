import os

import uvicorn
from fastapi import FastAPI
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from limit import limit

timeout = int(os.environ.get("TIMEOUT_MS", "100")) / 1000
# A request waits at most TIMEOUT_MS for weir. The client never sends it again.
redis = Redis(
    connection_pool=BlockingConnectionPool.from_url(
        "redis://" + os.environ.get("WEIR", "127.0.0.1:6380"),
        decode_responses=True, socket_timeout=timeout, timeout=timeout, retry=Retry(NoBackoff(), 0),
    )
)
app = FastAPI()
app.middleware("http")(limit(redis, "api"))


@app.get("/")
async def hello():
    return "hello"


if __name__ == "__main__":
    host, port = os.environ.get("LISTEN", "127.0.0.1:8080").split(":")
    # Behind a proxy, set proxy_headers=True, and forwarded_allow_ips to the addresses of the proxies.
    uvicorn.run(app, host=host, port=int(port), proxy_headers=False, access_log=False)
