#!/usr/bin/env python3
"""Traces by hand that the model must accept, or reject at the line marked with `<--`."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

REPLAY = pathlib.Path(__file__).resolve().parent / "replay"

COMMIT = """
servers a b c
start 1 0 a b c
promise b a
promise c a
append a w1/1 1
accept b 1 1
accept c 1 1
commit a 1
answer a w1/1
"""

PROMOTE = COMMIT + """
append a w1/2 2
accept b 1 2
expire b
take_over b 2
outcome b 2
learn c 2
promise c b
accept c 2 1
accept c 2 2
commit b 1
commit b 2
read b
hear c 1
step_down a
"""

PROVED = COMMIT + """
crash a
proof a
freed c
take_over c 2
outcome c 2
learn b 2
accept b 2 1
commit c 1
"""

COPY = COMMIT + """
drop a c 2
outcome a 2
learn b 2
copy a c
accept c 2 1
append a w1/2 2
turn_joint a
promise c a
accept b 2 2
accept c 2 2
commit a 2
add a c 3
learn c 3
outcome a 3
learn b 3
promise b a
promise c a
read a
"""

HAND_OVER = COMMIT + """
hand_over a
freed b
take_over b 2
learn a 2
learn c 2
outcome b 2
promise a b
promise c b
accept a 2 1
accept c 2 1
commit b 1
read b
"""

RECOVERY = """
servers a b c
start 7 40 a
append a w1/1 41
commit a 41
answer a w1/1
crash a
proof a
recover b 8
outcome b 8
append b w1/1 41
commit b 41
read b
"""


def replay(trace: str) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace"
        path.write_text(trace.replace("<--", ""), encoding="utf-8")
        return subprocess.run([REPLAY, "--build", folder, path], check=False, capture_output=True, text=True)


class ReplayTest(unittest.TestCase):
    def assert_accepted(self, trace: str) -> None:
        result = replay(trace)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def assert_rejected(self, trace: str) -> None:
        result = replay(trace)
        marked = next(number for number, line in enumerate(trace.splitlines(), 1) if line.endswith("<--"))
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn(f"line {marked}: no transition", result.stdout)

    def test_an_update_is_committed(self):
        self.assert_accepted(COMMIT + "read a\nhear b 1\nhear c 1\n")

    def test_a_secondary_takes_over_when_its_promise_ran_out(self):
        self.assert_accepted(PROMOTE)

    def test_a_secondary_takes_over_at_once_from_the_dead(self):
        self.assert_accepted(PROVED)

    def test_a_server_is_dropped_copied_anew_and_added(self):
        self.assert_accepted(COPY)

    def test_a_copy_that_the_trace_leaves_unfinished_is_accepted(self):
        self.assert_accepted(COPY.partition("turn_joint")[0])

    def test_a_primary_hands_over_and_stays(self):
        self.assert_accepted(HAND_OVER)

    def test_a_bucket_with_one_member_comes_back_from_disk(self):
        self.assert_accepted(RECOVERY)

    def test_a_commit_without_an_acknowledgement_is_rejected(self):
        self.assert_rejected(COMMIT.replace("accept c 1 1\ncommit a 1", "commit a 1<--"))

    def test_a_take_over_while_the_promise_holds_is_rejected(self):
        self.assert_rejected(PROMOTE.replace("expire b\ntake_over b 2", "take_over b 2<--"))

    def test_a_promise_released_without_proof_is_rejected(self):
        self.assert_rejected(PROVED.replace("crash a\nproof a", "").replace("freed c", "freed c<--"))

    def test_a_proof_of_a_death_that_did_not_happen_is_rejected(self):
        self.assert_rejected(PROVED.replace("crash a\nproof a", "proof a<--"))

    def test_a_read_after_the_promise_ran_out_is_rejected(self):
        self.assert_rejected(COMMIT + "expire b\nread a<--\n")

    def test_a_read_before_reconciling_is_rejected(self):
        self.assert_rejected(PROMOTE.replace("commit b 1\ncommit b 2\nread b", "commit b 1\nread b<--"))

    def test_a_read_after_the_hand_over_is_rejected(self):
        self.assert_rejected(COMMIT + "hand_over a\nread a<--\n")

    def test_a_commit_without_the_joint_learner_is_rejected(self):
        self.assert_rejected(COPY.replace("accept c 2 2\ncommit a 2", "commit a 2<--"))

    def test_an_update_appended_twice_is_rejected(self):
        self.assert_rejected(COMMIT + "append a w1/1 2<--\n")

    def test_a_recovery_while_a_member_lives_is_rejected(self):
        self.assert_rejected(RECOVERY.replace("crash a\nproof a\nrecover b 8", "recover b 8<--"))

    def test_what_is_no_trace_is_refused_with_its_line(self):
        for trace, message in [
            ("", "no line 'start"),
            ("servers a b\n", "line 1: the first line must be 'servers A B C'"),
            ("servers a b c\nstart 1 0 d\n", "line 2: the second line must be 'start"),
            (COMMIT + "commit a\n", "it must be 'commit SERVER LSN'"),
            (COMMIT + "commit d 2\n", "no server is called 'd'"),
            (COMMIT + "commit a 0\n", "lsn 0 is not among"),
            (COMMIT + "learn a 99\n", "epoch 99 is not among"),
            (COMMIT + "rest a\n", "no step is called 'rest'"),
        ]:
            with self.subTest(message):
                result = replay(trace)
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertIn(message, result.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
