"""Runs vectors.json through redis-py. foreign_test.go says how it is called."""

import json
import logging
import sys

import redis
from redis.cache import CacheConfig

OPTIONS = {"redis-py": {}, "redis-py-resp2": {"protocol": 2}}


def plain(value):
    """A reply in the types of JSON."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    return value


def same(want, got):
    if want == "*":
        return isinstance(got, (int, str))
    if type(want) is not type(got):
        return False
    if isinstance(want, list):
        return len(want) == len(got) and all(map(same, want, got))
    if isinstance(want, dict):
        return want.keys() == got.keys() and all(same(want[k], got[k]) for k in want)
    return want == got


def check(vector, answer):
    """answer is a function, so that an error is an answer too."""
    try:
        got = plain(answer())
    except redis.ResponseError as error:
        if "error" in vector and vector["error"] in str(error):
            return
        got = repr(error)
    else:
        if "map" in vector and isinstance(got, list):
            got = dict(zip(got[::2], got[1::2]))
        if "error" not in vector and same(vector.get("map", vector.get("reply")), got):
            return
    sys.exit(f"{vector} answered {got}")


def speak(client, vectors):
    for vector in vectors["vectors"]:
        check(vector, lambda: client.execute_command(*vector["send"]))

    many = vectors["pipeline"]
    pipeline = client.pipeline(transaction=False)
    for _ in range(many["times"]):
        pipeline.execute_command(*many["send"])
    replies = pipeline.execute()
    admitted = sum(reply[0] for reply in replies)
    if len(replies) != many["times"] or admitted != many["admitted"]:
        sys.exit(f"{admitted} of {len(replies)} admitted, not {many['admitted']}")

    transaction = client.pipeline(transaction=True)
    for vector in vectors["transaction"]:
        transaction.execute_command(*vector["send"])
    replies = transaction.execute()
    if len(replies) != len(vectors["transaction"]):
        sys.exit(f"EXEC answered {replies}")
    for vector, reply in zip(vectors["transaction"], replies):
        check(vector, lambda: reply)


def must_be_refused(host, port, **options):
    try:
        redis.Redis(host, port, **options).execute_command("RL.TOKENBUCKET", "k", "1", "1")
    except redis.AuthenticationError:
        return
    sys.exit(f"{options} is let in")


def must_not_cache(host, port, password):
    """A cached GET would not see a count change, because weir sends no invalidations."""
    try:
        redis.Redis(host, port, password=password, protocol=3, cache_config=CacheConfig()).get("k")
    except redis.ResponseError as error:
        if "CLIENT TRACKING ON is refused" in str(error):
            return
    sys.exit("a client with a cache is let in")


def main(name, doing, file, host, port, password=None):
    logging.basicConfig(level=logging.WARNING)
    with open(file, encoding="utf-8") as text:
        vectors = json.load(text)
    options = OPTIONS[name]
    if doing == "database":
        client = redis.Redis.from_url(f"redis://{host}:{port}/1", **options)
    else:
        client = redis.Redis(host, int(port), password=password, **options)
    speak(client, vectors)
    if doing == "restart":
        print("READY", flush=True)
        sys.stdin.readline()
        speak(client, vectors)
    elif doing == "password":
        must_be_refused(host, int(port), password="wrong", **options)
        must_be_refused(host, int(port), **options)
        must_not_cache(host, int(port), password)
    client.close()
    print("DONE")


main(*sys.argv[1:])
