#!/usr/bin/env python3
"""Checks of what tools/compare_pytorch makes of its programs' answers. The programs are scripted, PyTorch is not needed."""

import contextlib
import io
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "pytorch"))

import comparison  # noqa: E402
import sides  # noqa: E402


class Scripted:
    """Answers each request with the figures, or the error, that the script has for it."""

    def __init__(self, script):
        self.script = script

    def ask(self, request=""):
        answer = self.script[request]
        if isinstance(answer, str):
            return {"error": answer}
        return {"examples_per_second": answer.pop(0), "processors": 1, "share_of_product": 0.5}


def chosen(script):
    program = comparison.Program(Scripted(script), 1)
    program.choose_variants(script)
    return program


class ProgramTest(unittest.TestCase):
    def test_the_fastest_two_variants_take_part_and_the_better_median_counts(self):
        program = chosen({"a": [30, 10, 50, 10], "b": [20, 20, 20, 20], "c": [10]})
        self.assertEqual(program.requests, ["a", "b"])
        for _ in range(3):
            program.take_turn()
        self.assertEqual(program.best, "b")
        self.assertEqual(program.result.values, [20, 20, 20])

    def test_a_variant_that_fails_is_left_out_and_named(self):
        program = chosen({"a": "no compiler", "b": [20]})
        self.assertEqual(program.requests, ["b"])
        self.assertEqual(program.failures, {"a": "no compiler"})

    def test_none_left_is_a_failure(self):
        with self.assertRaisesRegex(sides.Failure, "no compiler"):
            chosen({"a": "no compiler"})


class LearningTest(unittest.TestCase):
    @staticmethod
    def lines(*top1):
        return [{"seconds": i + 1, "top1": value, "processors": 2.0} for i, value in enumerate(top1)]

    def test_the_time_is_that_of_the_first_evaluation_at_the_target(self):
        result = comparison.Learning("x")
        result.add(self.lines(0.98, 0.991, 0.989, 0.992))
        result.add(self.lines(0.98, 0.989))
        result.add(self.lines(0.98, 0.9, 0.9, 0.99))
        self.assertEqual(result.seconds, [2, None, 4])
        self.assertEqual(result.median, 3)
        self.assertEqual(result.top1_text(), "99.03% (98.90%–99.20%)")


class OneAtATime:
    """Both sides; fails when a program starts while another one runs."""

    def __init__(self):
        self.running = None
        self.learned = []

    def ours(self, command, *_):
        return self.start("ours", command)

    def theirs(self, command, _net, _batch, threads, processes, *_):
        return self.start(f"theirs {threads} {processes}", command)

    def start(self, name, command):
        if self.running:
            raise AssertionError(f"{name} starts while {self.running} runs")
        self.running = name
        if command == "learn":
            self.learned.append(name)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.running = None

    def lines(self):
        return LearningTest.lines(0.99)

    def ask(self, _request):
        return {"examples_per_second": 1, "processors": 2}


class CompareLearningTest(unittest.TestCase):
    def test_programs_train_one_after_another(self):
        both = OneAtATime()
        options = types.SimpleNamespace(mnist="mnist", seeds=2, seconds=1, quick=True)
        results = comparison.compare_learning(both, options)
        self.assertEqual(both.learned, ["ours", "theirs 2 1", "theirs 1 2"] * 2)
        self.assertEqual([result.seconds for result in results], [[1, 1]] * 3)


class PageTest(unittest.TestCase):
    def test_a_row_has_both_sides_and_their_ratio(self):
        theirs = chosen({"NCHW, fused, eager": [10, 10, 20]})
        ours = comparison.Program(Scripted({"": [60, 30]}), 1)
        for _ in range(2):
            ours.take_turn()
            theirs.take_turn()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            page = comparison.Page("command", "PyTorch 0")
            page.add_speed(comparison.Speed("nets/cifar10.yaml", 64, {"ours": ours, "theirs": theirs}))
        row = "| cifar10 | 64 | 45.0 (30.0–60.0) | 50% | 15.0 (10.0–20.0) | NCHW, fused, eager | **3.00** (1.50–6.00) |\n"
        self.assertEqual(page.text(), row)
        self.assertEqual(printed.getvalue(), row)


class ChildTest(unittest.TestCase):
    def test_answers_are_lines_of_json_and_the_program_is_gone_afterwards(self):
        code = "import sys\nfor line in sys.stdin: print('{\"got\": \"' + line.strip() + '\"}', flush=True)"
        with sides.Child([sys.executable, "-c", code]) as child:
            self.assertEqual(child.ask("a"), {"got": "a"})
            self.assertEqual(child.ask("b"), {"got": "b"})
        self.assertEqual(child.process.returncode, 0)

    def test_a_program_that_fails_is_a_failure_with_its_command(self):
        with sides.Child([sys.executable, "-c", "raise SystemExit(3)"]) as child:
            with self.assertRaisesRegex(sides.Failure, "failed with 3: .*SystemExit"):
                child.read()


if __name__ == "__main__":
    unittest.main()
