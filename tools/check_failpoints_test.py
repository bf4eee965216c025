#!/usr/bin/env python3
"""Plants faults in a small tree and expects tools/check_failpoints.py to name each."""

import pathlib
import tempfile
import unittest

import check_failpoints

GOOD = """
  ADAMANT_FAILPOINT("shard/before_apply");
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS(
      "shard/flush"));
"""


class CheckFailpointsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.page = self.root / check_failpoints.PAGE
        self.ask('{"shard/before_apply": "crash"}, ["shard/flush", "shard/new"]')

    def ask(self, text: str) -> None:
        file = self.root / "tests" / "deep" / "a_test.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def write(self, source: str, name: str = "a.cc") -> None:
        file = self.root / "services" / "worker" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)

    def faults(self, source: str, fix: bool = False) -> list[str]:
        self.write(source)
        return check_failpoints.check(self.root, fix)[1]

    def describe(self) -> None:
        self.page.write_text(self.page.read_text().replace("|  |\n", "| It happens. |\n"))

    def test_fix_writes_what_check_accepts_once_it_is_described(self) -> None:
        self.assertEqual(len(self.faults(GOOD, fix=True)), 2)
        self.describe()
        self.assertEqual(self.faults(GOOD), [])
        text = self.page.read_text()
        self.assertIn("| `shard/before_apply` | no | `services/worker/a.cc` | `a_test` | It happens. |", text)
        self.assertIn("| `shard/flush` | yes | `services/worker/a.cc` | `a_test` | It happens. |", text)

    def test_fix_keeps_descriptions_and_drops_what_is_gone(self) -> None:
        self.faults(GOOD, fix=True)
        self.describe()
        [fault] = self.faults('ADAMANT_FAILPOINT("shard/flush"); ADAMANT_FAILPOINT("shard/new");', fix=True)
        self.assertIn("shard/new", fault)
        text = self.page.read_text()
        self.assertIn("| `shard/flush` | no | `services/worker/a.cc` | `a_test` | It happens. |", text)
        self.assertNotIn("before_apply", text)

    def test_new_failpoint_must_be_on_the_page(self) -> None:
        self.faults(GOOD, fix=True)
        self.describe()
        faults = self.faults(GOOD + 'ADAMANT_FAILPOINT("shard/new");')
        self.assertIn("differs from the code", faults[0])

    def test_names_are_checked(self) -> None:
        for name in ('"shard"', '"Shard/apply"', '"shard/"', '"a/b/c"', "name", '"a-b/c"'):
            faults = self.faults(f"\n  ADAMANT_FAILPOINT({name});", fix=True)
            self.assertEqual(len(faults), 1, f"{name}: {faults}")
            self.assertIn("a.cc:2: the name of a failpoint", faults[0])

    def test_one_name_is_one_place(self) -> None:
        self.write(GOOD, "b.h")
        faults = self.faults('ADAMANT_FAILPOINT("shard/flush");', fix=True)
        self.assertIn("services/worker/b.h:3: shard/flush stands in services/worker/a.cc already", faults)

    def test_steps_of_cores_are_met_by_a_simulation_or_explained(self) -> None:
        core = self.root / "services" / "worker" / "core"
        core.mkdir(parents=True)
        (core / "b.cc").write_text('ADAMANT_FAILPOINT("push/send"); ADAMANT_FAILPOINT("push/hold");')
        steps = self.root / "tests" / "simulation" / "deep" / check_failpoints.STEPS
        steps.parent.mkdir(parents=True)
        steps.write_text('{"push/send", 1, 1},\n')
        page = self.root / check_failpoints.SIMULATION_PAGE
        page.parent.mkdir(parents=True)
        page.write_text("Nothing.\n")
        self.write(GOOD)  # of no core
        failpoints, _ = check_failpoints.check(self.root)
        [fault] = check_failpoints.unmet(self.root, failpoints)
        self.assertIn("services/worker/core/b.cc: no steps.inc has push/hold", fault)
        page.write_text("- `push/hold`: nobody holds.\n")
        self.assertEqual(check_failpoints.unmet(self.root, failpoints), [])

    def test_a_test_or_a_simulation_meets_each(self) -> None:
        self.faults(GOOD, fix=True)
        self.describe()
        self.ask('"shard/flush=crash@2"\nELSEWHERE = {"shard/before_apply"}\n')
        faults = self.faults(GOOD)
        self.assertIn("services/worker/a.cc: no test asks anything of shard/before_apply", faults)
        self.assertFalse([fault for fault in faults if "anything of shard/flush" in fault])
        steps = self.root / "tests" / "simulation" / "job" / check_failpoints.STEPS
        steps.parent.mkdir(parents=True)
        steps.write_text('{"shard/before_apply", 3, 2},\n')
        self.faults(GOOD, fix=True)
        self.assertEqual(self.faults(GOOD), [])
        self.assertIn("| simulation | It happens. |", self.page.read_text())

    def test_programs_without_failpoints_hold_no_names(self) -> None:
        self.write(GOOD)
        failpoints, _ = check_failpoints.check(self.root)
        clean = self.root / "clean"
        clean.write_bytes(b"\0shard/\0")
        leaky = self.root / "leaky"
        leaky.write_bytes(b"\0shard/flush\0")
        [fault] = check_failpoints.find_leaks(failpoints, [clean, leaky])
        self.assertIn("leaky: contains the failpoint shard/flush", fault)


if __name__ == "__main__":
    unittest.main()
