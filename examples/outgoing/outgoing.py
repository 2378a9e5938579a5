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

POLICY, PROVIDER = "outgoing", "api.example.com"
TURN = 60  # seconds for which a call waits for its turn
LONGEST = 3600  # seconds of a pause, whatever the provider says

host, port = os.environ.get("WEIR", "127.0.0.1:6380").split(":")
weir = Redis(host, int(port), socket_timeout=TURN + 10)  # gives each waiting thread a connection
refused = []


def call(url):
    """Calls the provider at its turn, and again after its pause if it answers 429."""
    worker = threading.current_thread().name
    while True:
        if not weir.execute_command("RL.WAIT", "RL.CHECK", POLICY, PROVIDER, "TIMEOUT", f"{TURN}s")[0]:
            raise TimeoutError(f"no turn within {TURN} seconds")
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers={"Worker": worker})) as answer:
                return answer.read()
        except urllib.error.HTTPError as err:
            if err.code != 429:
                raise
            pause = pause_of(err.headers.get("Retry-After", "1"))
        refused.append(worker)
        # GT only lengthens: another worker may have learned of a longer pause.
        weir.execute_command("RL.BLOCK", PROVIDER, f"{pause}ms", "REASON", "429", "GT")


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
