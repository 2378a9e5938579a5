"""Runs commands through redis-py's RedisCluster, or through its Sentinel. clusterforeign_test.go says how it is called."""

import json
import logging
import sys

from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisError, ResponseError
from redis.sentinel import Sentinel


def plain(value):
    """A reply in the types of JSON."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    return value


def said(value):
    """An answer: the library strips the word from some error replies and makes it a class instead."""
    if not isinstance(value, Exception):
        return {"reply": plain(value)}
    if not isinstance(value, ResponseError):
        return {"error": repr(value), "own": True}
    word = {"TryAgainError": "TRYAGAIN ", "ClusterDownError": "CLUSTERDOWN "}.get(type(value).__name__, "")
    return {"error": word + str(value), "own": False}


def send(cluster, commands):
    try:
        if len(commands) == 1:
            return [cluster.execute_command(*commands[0])]
        pipeline = cluster.pipeline()
        for args in commands:
            pipeline.execute_command(*args)
        return pipeline.execute(raise_on_error=False)
    except RedisError as error:
        return [error] * len(commands)


def connect(name, nodes):
    if name == "redis-py-sentinel":
        return Sentinel(nodes).master_for("mymaster")
    return RedisCluster(startup_nodes=[ClusterNode(*node) for node in nodes])


def main(name, *addresses):
    logging.basicConfig(level=logging.WARNING)
    cluster = connect(name, [(host, int(port)) for host, port in (a.rsplit(":", 1) for a in addresses)])
    print("READY", flush=True)
    for line in sys.stdin:
        print(json.dumps([said(value) for value in send(cluster, json.loads(line))]), flush=True)
    cluster.close()
    print("DONE")


main(*sys.argv[1:])
