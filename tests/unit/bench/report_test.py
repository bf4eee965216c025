#!/usr/bin/env python3
"""What tests/bench/report.py keeps of the benchmark programs, with figures that are made up."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import report  # noqa: E402

ABOUT = {"date": "2026-11-22", "machine": "a machine", "versions": "commit 1234567", "repetitions": 3}
STEP = {"program": "engine_bench", "benchmark": "TrainStep/one_dnn/32", "unit": "us", "time": [20, 10, 30],
        "share": [0.76, 0.7, 0.8]}
ROW = {"program": "replication_bench", "table": "latency", "benchmark": "µs, p50", "ratio": "2.8 (2.6–3.0)"}


class PageTest(unittest.TestCase):
    def test_has_the_headlines_that_were_measured_and_names_their_benchmarks(self):
        page = report.page_of([ABOUT, STEP, ROW, {**STEP, "benchmark": "TrainStep/one_dnn/33"}], "all.jsonl")
        self.assertEqual([line for line in page.splitlines() if line.startswith("| ")][2:], [
            "| step of adam-mnist, batch 32: share of the matrix product's speed | 0.76 (0.7–0.8) "
            "| `engine_bench`: TrainStep/one_dnn/32 |",
            "| 3 copies over 1: time of an update of 1 MB | 2.8 (2.6–3.0) | `replication_bench`: latency µs, p50 |"])
        self.assertIn("2026-11-22, a machine.\nCommit 1234567.", page)

    def test_the_data_has_a_line_for_each_benchmark_and_is_kept_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            data = pathlib.Path(folder) / "all.jsonl"
            report.write(data, [ABOUT, STEP, ROW])
            text = data.read_text()
            lines = [json.loads(line) for line in text.splitlines()]
            self.assertEqual(lines, [ABOUT, STEP, ROW])
            page = data.with_suffix(".md").read_text()
            report.write(data, lines)
            self.assertEqual((data.read_text(), data.with_suffix(".md").read_text()), (text, page))

    def test_all_headlines_are_of_programs_that_there_are(self):
        self.assertLessEqual({program for _, program, _, _ in report.HEADLINES},
                             {*report.GOOGLE_BENCHMARKS, *report.OTHERS})


if __name__ == "__main__":
    unittest.main()
