"""A process that owns a cluster until it is ended by force: for tests of what is left behind."""

import os
import pathlib
import signal
import subprocess
import sys

import state

# Says what it has, and waits.
_PROGRAM = """
import sys, time
sys.path.insert(0, {folder!r})
from cluster import Cluster
with Cluster.{cluster} as cluster:
    print(cluster.folder, cluster._keeper.pid, flush=True)
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        pass
"""


class Owner:
    """`cluster`: as after "Cluster.", like "api_only()"; `environment`: more variables."""

    def __init__(self, cluster, **environment):
        program = _PROGRAM.format(folder=str(pathlib.Path(__file__).parent), cluster=cluster)
        self._process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                                         env={**os.environ, **environment})
        folder, keeper = self._process.stdout.readline().split()
        self.folder, self.keeper = pathlib.Path(folder), int(keeper)

    def kill(self):
        """Kills it and its keeper; returns when both have ended and hold no lock any more."""
        os.kill(self.keeper, signal.SIGKILL)
        self.end(signal.SIGKILL)
        state.await_that(lambda: state.has_ended(self.keeper), "the killed keeper has ended")

    def end(self, number):
        """Sends it a signal and waits for its end."""
        self._process.send_signal(number)
        self._process.communicate()
