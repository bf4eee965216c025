#!/usr/bin/env python3
"""Lets tools/mutate break a small tree whose builds and tests are scripts, and checks what it says."""

import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent / "mutate"
loader = importlib.machinery.SourceFileLoader("mutate", str(TOOL))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
loader.exec_module(mutate)

SOURCE = "int Stored() {\n  Write();\n  Sync();\n  return kAll;\n}\n"

# A program's behaviour is settled when it is built, as that of a real one is.
BUILD = r"""#!/bin/sh
preset=$1
shift
mkdir -p build/$preset/tests
echo "$@" >>build/builds
grep -q 'Sync()$' core/log.cc && { echo "log.cc:3: expected ;"; exit 1; }
for target in "$@"; do
  program=build/$preset/tests/$target
  {
    echo '#!/bin/sh'
    case $target in
      core_test)
        grep -q 'Write();' core/log.cc || echo 'echo "[  FAILED  ] LogTest.WhatIsStoredIsThere (0 ms)"; exit 1'
        grep -q 'for (;;)' core/log.cc && echo 'echo "[ RUN      ] LogTest.Ends"; sleep 60'
        ;;
      flaky_test)
        echo 'echo "[  FAILED  ] FlakyTest.NeverPasses"; exit 1'
        ;;
      core_simulation)
        echo 'last=$((ADAMANT_SIMULATION_FIRST_SEED + ADAMANT_SIMULATION_SEEDS - 1))'
        grep -q 'Sync();' core/log.cc || seeds="5 37"
        for seed in 5 $seeds; do  # 5 breaks a promise of the code as it is
          [ -f quiet ] && [ $seed = 5 ] && continue
          echo "if [ $seed -ge \$ADAMANT_SIMULATION_FIRST_SEED ] && [ $seed -le \$last ]; then"
          echo "  echo 'seed $seed: I4: an update | is lost'; failed=1; fi"
        done
        echo 'exit ${failed:-0}'
        ;;
    esac
  } >$program
  chmod +x $program
done
"""

LIST = """
folder = "core"
unit = ["core_test"]
simulation = ["core_simulation"]

[[mutation]]
name = "not-written"
file = "log.cc"
breaks = "what is stored is there"
find = '''
  Write();
'''
replace = ''

[[mutation]]
name = "not-synced"
file = "log.cc"
breaks = "what is stored survives the loss of power"
find = 'Sync();'
replace = ''
noticed = ["simulation"]

[[mutation]]
name = "more"
file = "log.cc"
breaks = "as much as was asked for is stored"
find = 'kAll'
replace = 'kMore'
"""


def mutation(find, replace, more=""):
    return f"[[mutation]]\nname = 'one'\nfile = 'log.cc'\nbreaks = 'it'\nfind = '{find}'\nreplace = '{replace}'\n{more}\n"


class MutateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("core/log.cc", SOURCE)
        self.write("quiet", "")
        self.write("tools/build", BUILD)
        (self.root / "tools/build").chmod(0o755)
        self.write("tests/CMakeLists.txt", "adamant_test(core_test SRCS a.cc)\nadamant_test(\n  core_simulation SRCS b.cc)\n"
                   "adamant_test(flaky_test SRCS c.cc)\n")
        self.write("tests/mutations/log.toml", LIST)
        self.write(".gitignore", "/build/\n")
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def only(self, text):
        """One mutation in place of the list's."""
        self.write("tests/mutations/log.toml", LIST.split("[[mutation]]")[0] + text)

    def run_tool(self, *arguments):
        """Exit code, and all that is printed."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = mutate.main(["--root", str(self.root), "--seeds", "100", *arguments])
        return code, output.getvalue()

    def builds(self):
        path = self.root / "build/mutate/tree/build/builds"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def outcome(self, name):
        return mutate.results.Results(self.root / "build/mutate/results.jsonl").by_name[name].outcome

    # --- What is tried

    def test_tests_are_told_that_notice_and_who_survives(self):
        code, output = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("3 mutations: 1 noticed by unit tests, 1 by simulations, 1 survive, unexplained", output)
        self.assertIn("| not-written | what is stored is there | core_test: LogTest.WhatIsStoredIsThere |", output)
        self.assertIn("| core_simulation, seed 37: I4: an update \\| is lost |", output)
        self.assertIn("| more | as much as was asked for is stored | **SURVIVES** (not noticed in 100 seeds) |", output)

    def test_the_working_tree_is_left_alone(self):
        self.run_tool()
        self.assertEqual((self.root / "core/log.cc").read_text(), SOURCE)

    def test_the_copy_is_intact_after_a_run(self):
        self.run_tool()
        self.assertEqual((self.root / "build/mutate/tree/core/log.cc").read_text(), SOURCE)

    def test_a_survivor_that_is_explained_is_no_failure(self):
        self.only(mutation("kAll", "kMore", "harmless = 'more does no harm'"))
        code, output = self.run_tool()
        self.assertEqual(code, 0, output)
        self.assertIn("survives: more does no harm (not noticed in 100 seeds)", output)

    def test_a_hang_is_noticed(self):
        self.only(mutation("return kAll;", "for (;;) {}"))
        code, output = self.run_tool("--unit-seconds", "0.5")
        self.assertEqual(code, 0, output)
        self.assertIn("core_test: hangs in LogTest.Ends", output)

    def test_a_mutation_that_does_not_build_is_a_failure(self):
        self.only(mutation("Sync();", "Sync()"))
        code, output = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("does not build", output)
        self.assertIn("log.cc:3: expected ;", output)

    def test_what_the_code_shows_as_it_is_was_not_noticed(self):
        (self.root / "quiet").unlink()
        code, output = self.run_tool("not-synced")
        self.assertEqual(code, 0, output)
        self.assertEqual(self.outcome("not-synced").seed, 37)
        code, output = self.run_tool("more")
        self.assertIn("unclear: core_simulation fails without it, too (fails in seeds 1 to 10)", output)

    def test_a_unit_test_that_always_fails_proves_nothing(self):
        self.only(mutation("kAll", "kMore", "unit = ['flaky_test']\nharmless = 'it'"))
        code, output = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("unclear: flaky_test fails without it, too (FlakyTest.NeverPasses)", output)

    def test_simulations_are_not_built_for_what_a_unit_test_notices(self):
        self.run_tool("not-written")
        self.assertEqual(list(self.root.glob("build/mutate/tree/build/*/tests/core_simulation")), [])

    def test_tests_of_one_kind_can_be_tried_alone(self):
        _, output = self.run_tool("--only", "simulation")
        self.assertIn("3 mutations: 1 by simulations, 2 survive", output)
        self.assertIn("| core_simulation, seed 37: I4: an update \\| is lost |", output)
        _, output = self.run_tool("--only", "unit", "not-synced")
        self.assertIn("**SURVIVES**", output)
        self.assertFalse((self.root / "build/mutate/results.jsonl").exists())

    def test_ranges_of_seeds_are_counted(self):
        code, output = self.run_tool("not-synced", "--ranges", "2", "--first-seed", "1", "--seeds", "20")
        self.assertEqual(code, 1)
        self.assertIn("| not-synced | 1 of 2 | 17 | core_simulation |", output)
        code, output = self.run_tool("not-synced", "--ranges", "1", "--first-seed", "30", "--seeds", "20")
        self.assertEqual(code, 0)
        self.assertIn("| not-synced | 1 of 1 | 8 | core_simulation |", output)

    def test_ranges_do_not_count_what_the_code_shows_as_it_is(self):
        (self.root / "quiet").unlink()
        code, output = self.run_tool("not-synced", "--ranges", "1", "--first-seed", "1", "--seeds", "20")
        self.assertEqual(code, 1)
        self.assertIn("| not-synced | 0 of 1 |", output)

    def test_changes_that_are_not_committed_and_new_files_are_in_the_copy(self):
        self.run_tool("not-written")
        self.write("core/new.cc", "int x;\n")
        (self.root / "quiet").unlink()
        self.run_tool("not-written")
        self.assertTrue((self.root / "build/mutate/tree/core/new.cc").exists())
        self.assertFalse((self.root / "build/mutate/tree/quiet").exists())

    # --- What is known

    def test_a_run_goes_on_where_the_last_one_ended(self):
        self.run_tool("not-written")
        code, output = self.run_tool()
        self.assertIn("3 mutations, 1 known already, 2 to be tried", output)
        before = self.builds()
        code, output = self.run_tool()
        self.assertIn("3 mutations, 3 known already, 0 to be tried", output)
        self.assertEqual(self.builds(), before)
        self.assertIn("1 by simulations", output)

    def test_a_line_that_was_cut_off_is_run_again(self):
        self.run_tool("not-written", "more")
        path = self.root / "build/mutate/results.jsonl"
        path.write_text(path.read_text()[:-20])
        code, output = self.run_tool("not-written", "more")
        self.assertIn("2 mutations, 1 known already, 1 to be tried", output)
        self.assertEqual(self.outcome("more").verdict, "survived")

    def test_a_changed_file_is_run_again(self):
        self.run_tool()
        self.write("core/log.cc", SOURCE + "// more\n")
        self.assertIn("0 known already", self.run_tool()[1])

    def test_one_that_is_shown_to_other_tests_is_run_again(self):
        self.run_tool()
        self.write("tests/mutations/log.toml", LIST.replace('simulation = ["core_simulation"]', "simulation = []", 1))
        self.assertIn("0 known already", self.run_tool()[1])

    def test_only_survivors_are_run_again_when_tests_change_or_seeds_are_more(self):
        self.run_tool()
        self.assertIn("2 known already, 1 to be tried", self.run_tool("--seeds", "101")[1])
        self.write("tests/log_test.cc", "TEST(LogTest, More) {}\n")
        self.assertIn("2 known already, 1 to be tried", self.run_tool()[1])

    def test_the_table_of_what_is_known_builds_nothing(self):
        code, output = self.run_tool("--table")
        self.assertIn("3 mutations: 3 not run", output)
        self.assertEqual(self.builds(), 0)

    # --- What is checked

    def expect_fault(self, expected, text=None):
        if text is not None:
            self.only(text)
        code, output = self.run_tool("--check")
        self.assertEqual(code, 1, output)
        self.assertIn(expected, output)
        self.assertEqual(self.builds(), 0)

    def test_a_list_that_applies_has_no_faults(self):
        code, output = self.run_tool("--check")
        self.assertEqual((code, output), (0, "mutate: 3 mutations, 0 faults\n"))

    def test_a_text_that_is_gone_is_a_fault(self):
        self.expect_fault("log.toml: one: its text occurs 0 times in core/log.cc", mutation("Gone();", ""))

    def test_a_text_that_is_there_twice_is_a_fault(self):
        self.expect_fault("its text occurs 2 times", mutation("();", ""))

    def test_a_file_that_is_gone_is_a_fault(self):
        (self.root / "core/log.cc").unlink()
        self.expect_fault("there is no core/log.cc")

    def test_a_name_that_is_there_twice_is_a_fault(self):
        self.expect_fault("log.toml: one: another has this name", mutation("kAll", "1") + mutation("Write", "Read"))

    def test_a_test_that_is_gone_is_a_fault(self):
        self.expect_fault("there is no test gone_test", mutation("kAll", "1", "unit = ['gone_test']"))

    def test_a_mutation_without_tests_is_a_fault(self):
        self.expect_fault("no test is named for it", mutation("kAll", "1", "unit = []\nsimulation = []"))

    def test_an_edit_that_changes_nothing_is_a_fault(self):
        self.expect_fault("it changes nothing", mutation("kAll", "kAll"))

    def test_a_field_that_is_missing_or_unknown_is_a_fault(self):
        self.expect_fault("one lacks breaks", mutation("kAll", "1").replace("breaks = 'it'", ""))
        self.expect_fault("one has seeds, which nobody knows", mutation("kAll", "1", "seeds = 3"))

    def test_a_list_that_cannot_be_read_is_a_fault(self):
        self.expect_fault("tests/mutations/log.toml:", "[[mutation]\n")

    def test_nothing_is_run_while_there_are_faults(self):
        self.only(mutation("Gone();", ""))
        self.assertEqual(self.run_tool()[0], 1)
        self.assertEqual(self.builds(), 0)

    def test_a_name_that_nobody_knows_is_refused(self):
        code, output = self.run_tool("missing")
        self.assertEqual(code, 1)
        self.assertIn("there is no mutation missing", output)


if __name__ == "__main__":
    unittest.main()
