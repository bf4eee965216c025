#!/usr/bin/env python3
"""Removes a cluster when its owner ends, in whatever way: then this program's standard input ends. What the owner said
before decides: after "keep", the cluster stays until this program is told to end (SIGTERM).

usage: keeper.py FOLDER
"""

import pathlib
import signal
import sys

import state


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        if sys.stdin.read() == "keep":
            signal.pause()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        state.remove(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
