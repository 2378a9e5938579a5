"""A fleet of agents that share one budget. Each run holds a few units, takes more as it works, and pays what it used."""

import asyncio
import json
import os
import random
import sys
import time
import uuid

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ClusterDownError, ConnectionError, RedisError, TimeoutError, TryAgainError

STEP = 50  # units that a run holds at a time; one step of its work costs no more
TTL = "60s"  # a run that says nothing for so long is dead, and what it held counts as used
PATIENCE = 30  # seconds for which a call is repeated while weir has no leader


class Spent(Exception):
    """The budget has no room for the next step."""


class Weir:
    """One connection to any of several nodes."""

    def __init__(self, addresses):
        self.current = 0  # the node that is asked
        self.nodes = [
            Redis.from_url(
                "redis://" + address,
                decode_responses=True,
                socket_timeout=2,
                socket_connect_timeout=2,
                retry=Retry(NoBackoff(), 0),  # call repeats, at the next node
            )
            for address in addresses
        ]

    async def call(self, *words):
        """Sends a command. A repetition is safe: the ID of a hold, SEQ and COMMIT make it count once."""
        end = time.monotonic() + PATIENCE
        while True:
            asked = self.current
            try:
                return await self.nodes[asked].execute_command(*words)
            except RedisError as err:
                again = isinstance(err, (ConnectionError, TimeoutError, ClusterDownError, TryAgainError))
                if time.monotonic() > end or not again and not str(err).startswith(("UNKNOWN ", "OVERLOADED ")):
                    raise
            self.current = (asked + 1) % len(self.nodes)
            await asyncio.sleep(0.1)


class Run:
    """One run of an agent. It pays from the team's budget of the month, within a budget of its own."""

    def __init__(self, weir, team):
        # The braces keep all keys of a team in one hash slot.
        self.weir, self.team, self.id = weir, f"{{{team}}}", f"{{{team}}}:{uuid.uuid4().hex}"
        self.held, self.used, self.extensions = 0, 0, 0

    async def begin(self):
        answer = await self.weir.call(
            "RL.RESERVE", "month", self.team, STEP, TTL, "AND", "run", self.id, "ID", self.id, "EXPIRE", "take"
        )
        if not answer[0]:
            raise Spent
        self.held = STEP

    async def step(self, action, cost):
        """Makes sure that the next step is paid, and is no loop, before it begins."""
        if self.used + cost > self.held:
            answer = await self.weir.call("RL.EXTEND", self.id, STEP, "SEQ", self.extensions + 1)
            if not answer[0]:
                raise Spent
            self.extensions, self.held = self.extensions + 1, self.held + STEP
        if not (await self.weir.call("RL.CHECK", "loops", f"{self.id}:{action}", "ID", f"{self.id}:{self.used}"))[0]:
            raise Spent
        self.used += cost

    async def end(self):
        await self.weir.call("RL.COMMIT", self.id, self.used)


class Fleet:
    """Agents that run until the budget is spent. Most runs are short, and a few cost a hundred times the mean."""

    def __init__(self, weir, team):
        self.weir, self.team, self.used, self.at_denial = weir, team, 0, None

    async def agent(self, rng):
        while await self.one(rng):
            pass

    async def one(self, rng):
        run, going = Run(self.weir, self.team), True
        try:
            await run.begin()
        except Spent:
            self.denied()
            return False
        try:
            for i in range(min(int(rng.paretovariate(1.2)), 400)):
                cost = rng.randint(1, STEP)
                await run.step(f"tool-{i}", cost)  # here the agent would work
                self.used += cost
        except Spent:
            self.denied()
            going = False
        await run.end()
        return going

    def denied(self):
        self.at_denial = self.used if self.at_denial is None else self.at_denial


async def main(team, agents):
    weir = Weir(os.environ.get("WEIR", "127.0.0.1:6380").split(","))
    fleet = Fleet(weir, team)
    await asyncio.gather(*(fleet.agent(random.Random(i)) for i in range(agents)))
    print(json.dumps({"used at the first denial": fleet.at_denial, "used": fleet.used}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
