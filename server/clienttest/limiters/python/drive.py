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


def limits_moving(release=None):
    import time

    if release:
        sys.path.insert(0, f"limits-{release}")
    import limits as lib
    from limits.storage import RedisStorage
    from limits.strategies import MovingWindowRateLimiter

    storage = RedisStorage(f"redis://127.0.0.1:{port}")
    limiter = MovingWindowRateLimiter(storage)
    assert (release or "5.8.0") == lib.__version__
    items = [lib.parse("3/second"), lib.parse("30/4 second"), lib.parse("1000/minute")]

    async def call():
        # The library sends its own time. Those of its servers differ.
        skew = rng.choice([0, 0, 0, rng.uniform(-0.3, 0.3), rng.uniform(-5, 5)])
        now = 1_700_000_000 + passed_ms / 1000 + skew + rng.randrange(1000) / 1e6
        time.time = lambda: now
        item, key = rng.choice(items), f"k{rng.randrange(2)}"
        cost = rng.randrange(1, 2 + item.amount // rng.choice([1, 20, 1000]))
        what = rng.randrange(200)
        if what == 0:
            return storage.reset()
        if what < 5:
            return limiter.clear(item, key)
        if what < 40:
            return tuple(limiter.get_window_stats(item, key))
        if what < 60 and release not in ("3.1.6", "3.6.0"):
            return limiter.test(item, key, cost=cost)
        return limiter.hit(item, key, cost=cost), server.type("LIMITS:LIMITER/k0/3/1/second")

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


passed_ms = 0


async def main():
    global passed_ms
    call = {
        "limits": limits,
        "limits-sliding": lambda: limits("SlidingWindowCounterRateLimiter"),
        "limits-moving": limits_moving,
        "limits-moving-4.8.0": lambda: limits_moving("4.8.0"),
        "limits-moving-3.14.1": lambda: limits_moving("3.14.1"),
        "limits-moving-3.6.0": lambda: limits_moving("3.6.0"),
        "limits-moving-3.1.6": lambda: limits_moving("3.1.6"),
        "fastapi-limiter": fastapi_limiter,
        "redis-py-lock": redis_py_lock,
    }[library]()
    for _ in range(calls):
        step_ms = rng.randrange(rng.randrange(1, 900))
        passed_ms += step_ms
        server.execute_command("DEBUG", "CLOCK", "ADVANCE", step_ms)
        print(repr(await call()))


asyncio.run(main())
