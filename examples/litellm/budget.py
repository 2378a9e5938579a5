"""A budget for LiteLLM: each call holds tokens in weir before it is sent, and takes what it used at its end."""

import logging
import os
import uuid

import litellm
from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

POLICY = os.environ.get("POLICY", "llm")
STEP = int(os.environ.get("STEP", "200"))  # tokens that a call holds beyond its prompt, and takes at a time
TTL = os.environ.get("TTL", "60s")  # after this long without an extension the call is taken for dead

# A repetition of RL.RESERVE or RL.EXTEND counts once, so redis-py may repeat them.
redis = Redis.from_url("redis://" + os.environ.get("WEIR", "127.0.0.1:6380"), decode_responses=True)


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

    def __init__(self, name, held, used):
        self.name, self.held, self.used, self.extensions = name, held, used, 0
        self.began = False  # an answer has come

    async def cover(self, tokens):
        """Counts tokens as used. It raises an error if the budget has no room for them."""
        self.used += tokens
        if self.used <= self.held:
            return
        number = self.extensions + 1
        more = self.used - self.held + STEP
        answer = await redis.execute_command("RL.EXTEND", self.name, more, "SEQ", number, "PARTIAL")
        self.extensions += 1 if answer[0] else 0
        self.held = int(answer[5])
        if self.used > self.held:
            raise Spent()

    async def commit(self, tokens):
        """Ends the hold. Its true cost counts even beyond the budget."""
        try:
            await redis.execute_command("RL.COMMIT", self.name, tokens)
        except ResponseError as err:  # it was committed before
            logging.warning("%s: %s", self.name, err)


class Budget(CustomLogger):
    def __init__(self):
        super().__init__()
        self.holds = {}  # by name, of the calls that run here

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        # Not litellm_call_id: a client may choose that, and two calls with one name would hold once.
        name = uuid.uuid4().hex
        prompt = litellm.token_counter(model=data.get("model", ""), messages=data.get("messages") or [])
        try:
            answer = await redis.execute_command(
                "RL.RESERVE", POLICY, payer(user_api_key_dict), prompt + STEP, TTL, "EXPIRE", "take", "ID", name
            )
        except RedisError as err:
            raise HTTPException(503, f"the budget cannot be asked: {err}")
        if not answer[0]:
            raise denied(answer)
        self.holds[name] = Hold(name, prompt + STEP, prompt)
        data.setdefault("metadata", {})["hold"] = name
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
            await hold.commit(hold.used if tokens is None else tokens)


budget = Budget()
