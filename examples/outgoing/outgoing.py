"""Workers that call one provider. Programs in any language share its limit, and learn its 429 once."""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ClusterDownError, ConnectionError, RedisError, TimeoutError, TryAgainError
from redis.retry import Retry

POLICY, PROVIDER = "outgoing", "api.example.com"
TURN = 60  # seconds for which a call waits for its turn, and for which a command is repeated while weir has no leader
LONGEST = 3600  # seconds of a pause, whatever the provider says

nodes = [  # each gives each waiting thread a connection
    Redis.from_url(
        "redis://" + address,
        socket_timeout=TURN + 10,
        socket_connect_timeout=2,
        retry=Retry(NoBackoff(), 0),  # ask repeats, at the next node
    )
    for address in os.environ.get("WEIR", "127.0.0.1:6380").split(",")
]
current = 0  # the node that is asked
refused = []


def ask(*words):
    """Sends a command until a node answers what was decided. A turn whose answer was lost stays unused."""
    global current
    end = time.monotonic() + TURN
    while True:
        asked = current
        try:
            return nodes[asked].execute_command(*words)
        except RedisError as err:
            again = isinstance(err, (ConnectionError, TimeoutError, ClusterDownError, TryAgainError))
            if time.monotonic() > end or not again and not str(err).startswith(("UNKNOWN ", "OVERLOADED ")):
                raise
        current = (asked + 1) % len(nodes)
        time.sleep(0.1)


def call(url):
    """Calls the provider at its turn, and again after its pause if it answers 429."""
    worker = threading.current_thread().name
    while True:
        if not ask("RL.WAIT", "RL.CHECK", POLICY, PROVIDER, "TIMEOUT", f"{TURN}s")[0]:
            raise RuntimeError(f"no turn within {TURN} seconds")
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers={"Worker": worker})) as answer:
                return answer.read()
        except urllib.error.HTTPError as err:
            if err.code != 429:
                raise
            pause = pause_of(err.headers.get("Retry-After", "1"))
        refused.append(worker)
        # GT only lengthens: another worker may have learned of a longer pause.
        ask("RL.BLOCK", PROVIDER, f"{pause}ms", "REASON", "429", "GT")


def pause_of(retry_after):
    """Returns a Retry-After, which is in seconds or a date, in milliseconds."""
    if retry_after.isdigit():
        seconds = int(retry_after)
    else:
        seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
    return int(min(max(seconds, 0), LONGEST) * 1000) + 1


def main(url, workers, calls):
    with ThreadPoolExecutor(workers, "python") as pool:
        answers = list(pool.map(call, [url] * calls))
    print(json.dumps({"calls": len(answers), "refused": len(refused)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
