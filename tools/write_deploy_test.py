#!/usr/bin/env python3
"""What tools/write_deploy.py makes of helm's output, and that the chart's files agree with each other. No helm is needed:
tests/e2e/chart_test.py compares with what the real ones make."""

import json
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest

import write_deploy

PROJECT = pathlib.Path(__file__).resolve().parent.parent
CHART = PROJECT / write_deploy.CHART
OUTPUT = """\
---
# Source: adamant/templates/crds.yaml
# Made of something.
kind: CustomResourceDefinition
metadata:
  annotations:
    helm.sh/resource-policy: keep
  name: things.adamant.dev
spec:
  names:
    name: nothing.here
---
# Source: adamant/templates/access.yaml
# What it may do.
kind: Role
---
# Source: adamant/templates/service.yaml
kind: Service
---
# Source: adamant/templates/access.yaml
kind: RoleBinding
"""


class FilesTest(unittest.TestCase):

    def test_objects_go_to_the_file_of_their_template(self):
        files = write_deploy.files_of(OUTPUT)
        self.assertEqual(sorted(files),
                         ["deploy/crd/things.yaml", "deploy/operator/access.yaml", "deploy/operator/service.yaml"])
        self.assertEqual(files["deploy/operator/service.yaml"], f"{write_deploy.HEADER}kind: Service\n")

    def test_objects_of_one_template_are_together_in_their_order_and_keep_comments(self):
        self.assertEqual(write_deploy.files_of(OUTPUT)["deploy/operator/access.yaml"],
                         f"{write_deploy.HEADER}# What it may do.\nkind: Role\n---\nkind: RoleBinding\n")

    def test_output_that_is_not_as_expected_is_refused(self):
        for output in ("", "Error: no\n", f"WARNING: old\n{OUTPUT}"):
            with self.assertRaisesRegex(ValueError, "does not begin with an object"):
                write_deploy.files_of(output)
        with self.assertRaisesRegex(ValueError, "no name like PLURAL.GROUP"):
            write_deploy.files_of("---\n# Source: adamant/templates/crds.yaml\nmetadata:\n  name: things\n")

    def test_differences_are_told_with_their_line(self):
        wanted = {"a": "1\n2\n", "b": "1\n", "c": "1\n", "d": "1\n"}
        found = {"a": "1\n3\n", "b": "1\n", "c": "1\n2\n", "e": ""}
        self.assertEqual(write_deploy.differences(wanted, found),
                         ["a:2: differs from the chart", "c:2: differs from the chart", "d: is not there",
                          "e: is not of the chart"])


class ProgramTest(unittest.TestCase):
    """With a program in helm's place."""

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.helm = self.root / "helm-program"
        self.say(OUTPUT)
        for path in write_deploy.BY_HAND:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text("by hand\n")

    def say(self, output, code=0):
        (self.root / "output").write_text(output)
        self.helm.write_text(f"#!/bin/sh\ncat {self.root}/output\necho \"$@\" >&2\nexit {code}\n")
        self.helm.chmod(stat.S_IRWXU)

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, write_deploy.__file__, "--helm", self.helm, *arguments, self.root],
                              capture_output=True, text=True, check=False)

    def test_what_is_written_is_found_to_be_right(self):
        (self.root / "deploy/operator/gone.yaml").write_text("of an earlier chart\n")
        self.assertEqual(self.run_tool("--check").returncode, 1)
        self.assertEqual(self.run_tool().stdout, "deploy: 3 files, 4 changed\n")
        self.assertFalse((self.root / "deploy/operator/gone.yaml").exists())
        done = self.run_tool("--check")
        self.assertEqual((done.returncode, done.stdout), (0, "deploy: 3 files, 0 faults\n"))

    def test_check_names_what_differs_and_writes_nothing(self):
        self.run_tool()
        self.say(OUTPUT.replace("kind: Service", "kind: Other"))
        done = self.run_tool("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("deploy/operator/service.yaml:2: differs from the chart\n", done.stdout)
        self.assertIn("kind: Service", (self.root / "deploy/operator/service.yaml").read_text())

    def test_files_by_hand_stay(self):
        self.run_tool()
        for path in write_deploy.BY_HAND:
            self.assertEqual((self.root / path).read_text(), "by hand\n")

    def test_helm_is_asked_for_the_namespace_and_whatever_it_was_built_with(self):
        self.say("", code=3)
        done = self.run_tool()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"template adamant \S+/helm/adamant --namespace adamant-system --kube-version 1\.\d+")

    def test_missing_helm_is_told(self):
        self.helm.unlink()
        done = self.run_tool()
        self.assertEqual(done.returncode, 1)
        self.assertIn("helm-program", done.stderr)


class ChartTest(unittest.TestCase):

    def test_kustomize_reads_all_that_is_written(self):
        written = {path for path in write_deploy.present(PROJECT)}
        named = set()
        for folder in ("deploy", "deploy/operator"):
            text = (PROJECT / folder / "kustomization.yaml").read_text()
            named |= {f"{folder}/{name}" for name in re.findall(r"^  - (\S+\.yaml)$", text, re.MULTILINE)}
        self.assertEqual(named - write_deploy.BY_HAND, written)

    def test_each_template_with_objects_has_its_file(self):
        """But those that only some clusters have, or ask for."""
        templates = {file.name for file in (CHART / "templates").glob("*.yaml")}
        written = {path.rpartition("/")[2] for path in write_deploy.present(PROJECT) if path.startswith("deploy/operator/")}
        self.assertEqual(templates - written, {"ca_secret.yaml", "crds.yaml", "dashboards.yaml", "issued_certificate.yaml",
                                              "pod_monitors.yaml", "prometheus_rule.yaml"})
        self.assertEqual(written - templates, set())

    def test_custom_resources_are_those_of_the_chart(self):
        """As a template must not change what tests/unit/operator/kube/schema/crd compares."""
        keep = "\nmetadata:\n  annotations:\n    helm.sh/resource-policy: keep\n"
        for file in (CHART / "files/crds").glob("*.yaml"):
            text = file.read_text().replace("\nmetadata:\n", keep)
            self.assertEqual((PROJECT / "deploy/crd" / file.name).read_text(), write_deploy.HEADER + text)

    def test_versions_are_those_of_the_project(self):
        project = (PROJECT / "CMakeLists.txt").read_text()
        version = re.search(r"^project\(adamant VERSION ([0-9.]+)", project, re.MULTILINE)[1]
        chart = (CHART / "Chart.yaml").read_text()
        self.assertEqual(re.findall(r"^(?:version|appVersion): (\S+)$", chart, re.MULTILINE), [version, version])


class ValuesTest(unittest.TestCase):

    def test_values_and_schema_name_the_same_in_the_same_order(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        self.assertEqual([path for path, _ in values()], [path for path in schema_paths(schema) if path != "global"])

    def test_each_value_says_above_it_what_it_means(self):
        self.assertEqual([path for path, commented in values() if not commented], [])


def schema_paths(schema, above=""):
    for name, inner in schema["properties"].items():
        yield above + name
        if "properties" in inner:
            yield from schema_paths(inner, f"{above}{name}.")


def values():
    """(path, whether a comment stands above it) of each value of values.yaml, and of the tables that they are in; what is
    below one in the words of Kubernetes is not told apart."""
    names = set(schema_paths(json.loads((CHART / "values.schema.json").read_text())))
    found, tables, before = [], [], ""
    for line in (CHART / "values.yaml").read_text().splitlines():
        key = re.match(r"((?:  )*)(\w+):", line)
        if key:
            tables = [*tables[:len(key[1]) // 2], key[2]]
            path = ".".join(tables)
            if path in names or not key[1]:
                found.append((path, before.startswith("#")))
        before = line.strip()
    return found


if __name__ == "__main__":
    unittest.main()
