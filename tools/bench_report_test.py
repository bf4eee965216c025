#!/usr/bin/env python3
"""Checks of tools/bench_report.py."""

import unittest

import bench_report
from bench_report import Ratio, Series


def series(*values, processors=None, threads=1):
    return Series(threads, list(values), processors or [threads] * len(values))


class SeriesTest(unittest.TestCase):
    def test_median_and_range_of_repetitions_that_had_their_processors(self):
        figures = series(100, 300, 200, 1, processors=[1.0, 0.98, 0.99, 0.5])
        self.assertEqual(figures.kept, [0, 1, 2])
        self.assertEqual(figures.median, 200)
        self.assertEqual(figures.text(), "200 (100–300)")

    def test_two_threads_need_two_processors(self):
        figures = series(100, 300, processors=[1.0, 1.95], threads=2)
        self.assertEqual(figures.kept, [1])

    def test_when_all_were_disturbed_they_count_by_processor_time_and_say_so(self):
        figures = series(100, 330, processors=[1.0, 1.1], threads=2)
        self.assertTrue(figures.disturbed)
        self.assertEqual(figures.text(), "400* (200–600)")

    def test_an_even_number_has_the_mean_of_the_middle_two(self):
        self.assertEqual(series(1, 2, 4, 8).median, 3)


class RatioTest(unittest.TestCase):
    def test_of_medians_with_the_range_over_rounds(self):
        ratio = Ratio(series(200, 400, 300), series(100, 100, 200))
        self.assertEqual(ratio.value, 3)
        self.assertEqual(ratio.text(), "**3.00** (1.50–4.00)")

    def test_rounds_in_which_one_side_was_disturbed_are_left_out(self):
        ratio = Ratio(series(200, 900), series(100, 100, processors=[1, 0.5]))
        self.assertEqual(ratio.text(), "**5.50** (2.00–2.00)")

    def test_disturbed_figures_mark_it(self):
        ratio = Ratio(series(100, processors=[0.5]), series(100))
        self.assertEqual(ratio.text(), "**2.00*** (2.00–2.00)")


class BenchmarksTest(unittest.TestCase):
    def repetition(self, name, time, **more):
        return {"run_name": name, "run_type": "iteration", "real_time": time, "cpu_time": time / 2, "time_unit": "us",
                "iterations": 5, **more}

    def test_a_row_per_benchmark_with_its_counters(self):
        report = {"benchmarks": [
            self.repetition("Step/1", 30, share=0.5, label="conv1"), self.repetition("Step/1", 10, share=0.7),
            self.repetition("Step/1", 20, share=0.6), {"run_name": "Step/1", "run_type": "aggregate", "real_time": 99},
            self.repetition("Update", 4)]}
        benchmarks = bench_report.figures_of_benchmarks(report)
        self.assertEqual(benchmarks[1], {"benchmark": "Update", "unit": "us", "time": [4, 4, 4], "processor time": [2, 2, 2]})
        self.assertEqual(bench_report.table_of_benchmarks(benchmarks).splitlines()[2:], [
            "| Step/1 conv1 | 20.0 (10.0–30.0) us | 10.0 (5–15.0) us | 0.6 (0.5–0.7) |",
            "| Update | 4 (4–4) us | 2 (2–2) us |  |"])

    def test_a_failed_benchmark_says_why(self):
        report = {"benchmarks": [self.repetition("Step/1", 0, error_occurred=True, error_message="no data")]}
        benchmarks = bench_report.figures_of_benchmarks(report)
        self.assertEqual(bench_report.table_of_benchmarks(benchmarks).splitlines()[2], "| Step/1 | no data |  |")

    def test_tables_that_a_program_prints_are_taken_row_by_row(self):
        text = "\n| small | 1 copy | ratio |\n|---|---|---|\n| GB/s | 3 (2–4) | |\nsaid beside it\n\n| | median |\n|--|:-:|\n| record µs | 2 |\n"
        self.assertEqual(bench_report.rows_of_tables(text), [
            {"table": "small", "benchmark": "GB/s", "1 copy": "3 (2–4)", "ratio": ""},
            {"table": "", "benchmark": "record µs", "median": "2"}])


class TextTest(unittest.TestCase):
    def test_numbers_keep_three_digits(self):
        self.assertEqual([bench_report.number(value) for value in (7.266e9, 12345.6, 123.4, 12.34, 1.234, 0.01234)],
                         ["7.27 G", "12,346", "123", "12.3", "1.23", "0.0123"])

    def test_tables_are_markdown(self):
        self.assertEqual(bench_report.table(["a", "b"], [["1", "2"]]), "| a | b |\n| --- | --- |\n| 1 | 2 |\n")

    def test_machine_names_processors_and_system(self):
        self.assertRegex(bench_report.machine(), r"processors")

    def test_a_program_that_is_not_there_has_no_version(self):
        self.assertEqual(bench_report.output_of("no-such-program-here"), "")


if __name__ == "__main__":
    unittest.main()
