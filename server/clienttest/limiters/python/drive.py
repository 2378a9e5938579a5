"""Lets a library of Python say the same again: random calls from a seed, while the
server's clock goes on. limiters_test.go says how it is called; every answer is one
line."""

import asyncio
import random
import sys

import redis
import redis.asyncio

library, port, seed, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed)
server = redis.Redis(port=port)


def limits(strategy="FixedWindowRateLimiter"):
    import time

    import limits as lib
    from limits.storage import RedisStorage
    import limits.strategies

    time.time = lambda: 0.0  # it adds what the server says to its own clock
    limiter = getattr(lib.strategies, strategy)(RedisStorage(f"redis://127.0.0.1:{port}"))
    items = [lib.parse("5/second"), lib.parse("7/3 second"), lib.parse("20/minute")]

    async def call():
        item, key, cost = rng.choice(items), f"k{rng.randrange(3)}", rng.randrange(1, 4)
        what = rng.randrange(12)
        if what == 0:
            return limiter.clear(item, key)
        if what < 3:
            return tuple(limiter.get_window_stats(item, key))
        if what < 5:
            return limiter.test(item, key, cost=cost)
        return limiter.hit(item, key, cost=cost)

    return call


def fastapi_limiter():
    from fastapi_limiter import FastAPILimiter
    from fastapi_limiter.depends import RateLimiter

    limiters = [RateLimiter(times=3, milliseconds=400), RateLimiter(times=10, seconds=2)]
    ready = False

    async def call():
        nonlocal ready
        if not ready:
            await FastAPILimiter.init(redis.asyncio.Redis(port=port))
            ready = True
        return await rng.choice(limiters)._check(f"k{rng.randrange(3)}")

    return call


def redis_py_lock():
    locks = []

    async def call():
        key, what = f"k{rng.randrange(3)}", rng.randrange(6)
        if what < 3 or not locks:
            lock = server.lock(key, timeout=rng.choice([0.3, 1, 2.5]))
            token = f"{rng.randrange(4)}" if rng.randrange(3) else f"{rng.random()}"
            taken = lock.acquire(blocking=False, token=token)
            if taken:
                locks.append(lock)
            return taken
        lock = rng.choice(locks)
        try:
            return (lock.release if what < 5 else lock.reacquire)(), server.pttl(key)
        except redis.exceptions.LockError as error:
            return type(error).__name__, server.pttl(key)

    return call


async def main():
    call = {
        "limits": limits,
        "limits-sliding": lambda: limits("SlidingWindowCounterRateLimiter"),
        "fastapi-limiter": fastapi_limiter,
        "redis-py-lock": redis_py_lock,
    }[library]()
    for _ in range(calls):
        server.execute_command("DEBUG", "CLOCK", "ADVANCE", rng.randrange(rng.randrange(1, 900)))
        print(repr(await call()))


asyncio.run(main())
