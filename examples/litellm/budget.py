"""A budget for LiteLLM: each call holds tokens in weir before it is sent, and takes what it used at its end."""

import asyncio
import logging
import os
import time
import uuid

import litellm
from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ClusterDownError, ConnectionError, RedisError, ResponseError, TimeoutError, TryAgainError

POLICY = os.environ.get("POLICY", "llm")
STEP = int(os.environ.get("STEP", "200"))  # tokens that a call holds beyond its prompt, and takes at a time
TTL = int(os.environ.get("TTL", "600"))  # seconds without an extension, after which a call is taken for dead
PATIENCE = 10  # seconds for which a command is repeated; weir counts repetitions once for --id-lifetime, 60 s

nodes = [
    Redis.from_url(
        "redis://" + address,
        decode_responses=True,
        socket_timeout=2,
        socket_connect_timeout=2,
        retry=Retry(NoBackoff(), 0),  # call repeats, at the next node
    )
    for address in os.environ.get("WEIR", "127.0.0.1:6380").split(",")
]
current = 0  # the node that is asked


async def call(*words):
    """Sends a command until a node answers what was decided. The ID of a hold, SEQ and RL.COMMIT make it count once."""
    global current
    end = time.monotonic() + PATIENCE
    while True:
        asked = current
        try:
            return await nodes[asked].execute_command(*words)
        except RedisError as err:
            again = isinstance(err, (ConnectionError, TimeoutError, ClusterDownError, TryAgainError))
            if time.monotonic() > end or not again and not str(err).startswith(("UNKNOWN ", "OVERLOADED ")):
                raise
        current = (asked + 1) % len(nodes)
        await asyncio.sleep(0.1)


def payer(key):
    """Returns who pays: the team of an API key, else the key."""
    return "team:" + key.team_id if key.team_id else "key:" + (key.key_alias or key.api_key or "none")


def denied(answer):
    """Returns the error of a call for which the budget has too few tokens left."""
    remaining, retry_ms = answer[1], answer[2]
    headers = {"Retry-After": str(-(-retry_ms // 1000))} if retry_ms >= 0 else {}
    return HTTPException(429, f"budget {POLICY}: {remaining} tokens are left", headers)


class Spent(litellm.RateLimitError):
    """The error in a stream. LiteLLM cuts a stream that ends with an HTTPException, and the client reads no reason."""

    def __init__(self):
        super().__init__(f"budget {POLICY}: no tokens are left", llm_provider="", model="")


class Hold:
    """The tokens that one call holds, and those that it has used."""

    def __init__(self, payer, used):
        # Not litellm_call_id: a client may choose that, and two calls with one name would hold once.
        self.name, self.payer, self.used, self.held, self.extensions = uuid.uuid4().hex, payer, used, 0, 0
        self.until = 0  # weir ends the hold by itself, not before this time
        self.began = False  # an answer has come

    async def reserve(self, tokens):
        self.held, self.until = tokens, time.monotonic() + TTL
        return await call("RL.RESERVE", POLICY, self.payer, tokens, f"{TTL}s", "EXPIRE", "take", "ID", self.name)

    async def cover(self, tokens):
        """Counts tokens as used. It raises an error if the budget has no room for them."""
        self.used += tokens
        if self.used <= self.held:
            return
        number, until = self.extensions + 1, time.monotonic() + TTL
        more = self.used - self.held + STEP
        answer = await call("RL.EXTEND", self.name, more, "SEQ", number, "PARTIAL")
        if answer[0]:
            self.extensions, self.until = number, until
        self.held = int(answer[5])
        if self.used > self.held:
            raise Spent()

    async def commit(self, tokens):
        """Ends the hold. Its true cost counts even beyond the budget."""
        try:
            await call("RL.COMMIT", self.name, tokens)
        except ResponseError as err:
            if not str(err).startswith("NOHOLD "):
                raise
            # The hold has ended by itself, and all of it was taken. Before that time, a server alone forgot it in a
            # crash, and nothing was taken.
            rest = tokens - self.held if time.monotonic() > self.until else tokens
            if rest > 0:
                if not (await self.reserve(1))[0]:
                    raise
                await call("RL.COMMIT", self.name, rest)


class Budget(CustomLogger):
    def __init__(self):
        super().__init__()
        self.holds = {}  # by name, of the calls that run here

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        prompt = litellm.token_counter(model=data.get("model", ""), messages=data.get("messages") or [])
        hold = Hold(payer(user_api_key_dict), prompt)
        try:
            answer = await hold.reserve(prompt + STEP)
        except RedisError as err:
            raise HTTPException(503, f"the budget cannot be asked: {err}")
        if not answer[0]:
            raise denied(answer)
        self.holds[hold.name] = hold
        data.setdefault("metadata", {})["hold"] = hold.name
        return data

    async def async_post_call_streaming_iterator_hook(self, user_api_key_dict, response, request_data):
        hold = self.holds.get(request_data["metadata"]["hold"])
        async for chunk in response:
            hold.began = True
            text = "".join(choice.delta.content or "" for choice in chunk.choices)
            try:
                await hold.cover(-(-len(text) // 4))  # about four characters are a token; the commit corrects it
            except Spent:
                await self.end(hold.name, hold.used)
                raise
            except RedisError as err:
                raise litellm.ServiceUnavailableError(f"the budget cannot be asked: {err}", llm_provider="", model="")
            yield chunk

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        usage = getattr(response_obj, "usage", None)
        name = kwargs["litellm_params"]["metadata"].get("hold")
        await self.end(name, usage.total_tokens if usage else None)

    # Not async_log_failure_event: LiteLLM calls that for each attempt, also when a retry or a fallback then succeeds.
    async def async_post_call_failure_hook(
        self, request_data, original_exception, user_api_key_dict, traceback_str=None
    ):
        # A stream that breaks has used what came.
        name = request_data.get("metadata", {}).get("hold")
        await self.end(name, None if name in self.holds and self.holds[name].began else 0)

    async def end(self, name, tokens):
        hold = self.holds.pop(name, None)
        if hold:
            tokens = hold.used if tokens is None else tokens
            try:
                await hold.commit(tokens)
            except RedisError as err:  # if weir has the hold, all of it counts as used after TTL
                logging.error("the budget did not learn of %d tokens of %s: %s", tokens, hold.payer, err)


budget = Budget()
