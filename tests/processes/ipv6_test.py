#!/usr/bin/env python3
"""On a machine that has IPv6 alone, a job trains as on any other."""

import pathlib
import sys
import unittest

import netns

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import adamant  # noqa: E402


class Ipv6Test(adamant.TestCase):
    def setUp(self):
        super().setUp()
        netns.run("ip", "address", "delete", "127.0.0.1/8", "dev", "lo")
        self.addCleanup(netns.run, "ip", "address", "add", "127.0.0.1/8", "dev", "lo")

    def test_a_job_trains_and_is_looked_at_while_it_runs(self):
        run = self.run_in().train(self.job(epochs=1000, copies=2))
        run.await_epoch(1)
        status = adamant.adamant("status", run.folder)
        self.assertIn("http://[::1]:", status.stdout, status.stderr)
        run.kill("parameter-server-0")
        run.await_epoch(len(run.rows()) + 2)
        self.assertEqual((run.folder / "endpoint").read_text()[:5], "unix:")

    def test_a_job_succeeds(self):
        run = self.run_in().train(self.job(epochs=2))
        code, output = run.wait()
        self.assertEqual(code, 0, output)
        self.assert_counted_once(run, 2, 3000)


if __name__ == "__main__":
    netns.main()
