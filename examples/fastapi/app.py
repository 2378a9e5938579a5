import os

import uvicorn
from fastapi import FastAPI
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from limit import limit

timeout = int(os.environ.get("TIMEOUT_MS", "100")) / 1000
# A request waits for weir for TIMEOUT_MS at most, and is never sent twice.
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
    # Behind a proxy: proxy_headers=True, forwarded_allow_ips with the addresses that are believed.
    uvicorn.run(app, host=host, port=int(port), proxy_headers=False, access_log=False)
