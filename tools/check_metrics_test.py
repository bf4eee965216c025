#!/usr/bin/env python3
"""Plants faults in a small tree and expects tools/check_metrics.py to name each."""

import pathlib
import tempfile
import unittest

import check_metrics

GOOD = """
  pushes_ = registry.AddCounter("adamant_test_pushes_total",
                                "Pushes, (all) \\"of\\" "
                                "them", {{"outcome", outcome}, {"kind", "a"}});
"""


class CheckMetricsTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def faults(self, source: str, fix: bool = True) -> list[str]:
        file = self.root / "services" / "worker" / "a.cc"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return check_metrics.check(self.root, fix)[1]

    def test_fix_writes_what_check_accepts(self) -> None:
        self.assertEqual(self.faults(GOOD), [])
        self.assertEqual(self.faults(GOOD, fix=False), [])
        page = (self.root / check_metrics.PAGE).read_text()
        row = '| `adamant_test_pushes_total` | worker | counter | `outcome`, `kind` | Pushes, (all) \\"of\\" them. |'
        self.assertIn(row, page)

    def test_new_metric_must_be_on_the_page(self) -> None:
        self.faults(GOOD)
        [fault] = self.faults(GOOD.replace("pushes", "fetches"), fix=False)
        self.assertIn("differs from the code", fault)

    def test_a_folder_has_a_process(self) -> None:
        file = self.root / "services" / "new" / "a.cc"
        file.parent.mkdir(parents=True)
        file.write_text(GOOD)
        [fault] = check_metrics.check(self.root, fix=True)[1]
        self.assertIn("new/a.cc:2: which process", fault)

    def test_what_the_registry_has_of_itself_is_served_by_all(self) -> None:
        file = self.root / "services" / "common" / "metrics" / "metrics.cc"
        file.parent.mkdir(parents=True)
        file.write_text('Gauge Registry::AddGauge(std::string_view name, std::string_view help) {}\n'
                        'a(registry.AddGauge("process_open_fds", "Open file descriptors."))')
        self.assertEqual(check_metrics.check(self.root, fix=True), (1, []))
        page = (self.root / check_metrics.PAGE).read_text()
        self.assertIn("| `process_open_fds` | all | gauge |  | Open file descriptors. |", page)

    def test_names_are_checked(self) -> None:
        for name in ("test_pushes_total", "adamant_Pushes_total", "adamant__total", "adamant_pushes"):
            self.assertEqual(len(self.faults(f'r.AddCounter("{name}", "Pushes.")')), 1, name)
        self.assertEqual(len(self.faults('r.AddGauge("adamant_level_total", "Level.")')), 1)

    def test_name_must_be_a_literal(self) -> None:
        [fault] = self.faults('\n  r.AddGauge(name, "Level.")')
        self.assertIn("a.cc:2: write name and meaning", fault)

    def test_one_name_is_one_metric(self) -> None:
        [fault] = self.faults(GOOD + GOOD.replace("(all)", "(some)"))
        self.assertIn("registered elsewhere", fault)
        self.assertEqual(self.faults(GOOD + GOOD), [])


if __name__ == "__main__":
    unittest.main()
