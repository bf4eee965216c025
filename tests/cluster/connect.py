#!/usr/bin/env python3
"""Tries TCP connections, all at once, from the network that it runs in. Prints a JSON object: of each target "open",
"refused", or "silent" where none came to be in time.

usage: connect.py SECONDS ADDRESS:PORT...
"""

import asyncio
import json
import sys


async def outcome(target, seconds):
    address, _, port = target.rpartition(":")
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(address, int(port)), seconds)
        writer.close()
        return "open"
    except ConnectionRefusedError:
        return "refused"
    except OSError:  # TimeoutError, too, and what a router says of a network that it does not know
        return "silent"


async def main():
    seconds, targets = float(sys.argv[1]), sys.argv[2:]
    outcomes = await asyncio.gather(*(outcome(target, seconds) for target in targets))
    print(json.dumps(dict(zip(targets, outcomes))))


if __name__ == "__main__":
    asyncio.run(main())
