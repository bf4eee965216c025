#!/usr/bin/env python3
"""Plants faults in a small tree and expects tools/check_layers.py to name each."""

import pathlib
import tempfile
import unittest

import check_layers

RULES = """\
everywhere absl/status/
forbid core : thread
[base]
services/common/base : | unistd.h
[leaf]
services/common/tensor : services/common/base |
services/common/kernels : services/common/{base,tensor} | oneapi/dnnl/
services/common/rpc : services/common/base | grpcpp/
[core]
services/worker/core : services/common/{base,kernels} |
operator/core : services/common/base |
[edge]
services/worker/rpc : services/worker/core services/common/{base,rpc} | grpcpp/
[main]
services/worker : * |
[tests]
tests : * | *
"""


class CheckLayersTest(unittest.TestCase):
    def faults(self, files: dict[str, str], rules: str = RULES) -> list[str]:
        return check_layers.check(*self.load(files, rules))

    def load(self, files: dict[str, str], rules: str) -> tuple[check_layers.Rules, check_layers.Includes]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**files, "tools/layers.txt": rules}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_layers.load(root)

    def expect_fault(self, expected: str, files: dict[str, str], rules: str = RULES) -> None:
        faults = self.faults(files, rules)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(expected, faults[0])

    def test_clean_tree_has_no_faults(self):
        self.assertEqual(
            self.faults({
                "services/common/base/clock.cc": '#include <chrono>\n#include <unistd.h>\n#include "absl/status/status.h"\n',
                "services/common/kernels/gemm.cc": '#include "oneapi/dnnl/dnnl.hpp"\n#include "services/common/tensor/shape.h"\n',
                "services/common/rpc/call.h": "#include <grpcpp/grpcpp.h>\n",
                "services/common/rpc/call.cc": '#include "services/common/rpc/call.h"\n',
                "services/worker/rpc/service.h": '#include <grpcpp/grpcpp.h>\n#include "services/worker/core/step.h"\n',
                "services/worker/main.cc": '#include "services/worker/rpc/service.h"\n',
                "tests/unit/services/worker/step_test.cc": '#include "services/worker/core/step.h"\n#include <gtest/gtest.h>\n',
            }), [])

    def test_upward_include_is_a_fault(self):
        self.expect_fault(
            "services/common/base/clock.cc:2: includes services/common/tensor/shape.h",
            {"services/common/base/clock.cc": '#include <chrono>\n#include "services/common/tensor/shape.h"\n'})

    def test_sibling_core_is_a_fault(self):
        self.expect_fault(
            "operator/core may not include services/worker/core",
            {"operator/core/job.h": '#include "services/worker/core/step.h"\n'})

    def test_unlisted_edge_between_listed_folders_is_a_fault(self):
        self.expect_fault(
            "services/worker/core may not include services/common/tensor",
            {"services/worker/core/step.cc": '#include "services/common/tensor/shape.h"\n'})

    def test_unlisted_folder_is_a_fault(self):
        self.expect_fault("services/common/extra/a.h: its folder has no row", {"services/common/extra/a.h": ""})

    def test_include_of_an_unlisted_folder_is_a_fault(self):
        self.expect_fault(
            "whose folder has no row",
            {"services/worker/core/step.cc": '#include "services/common/extra/a.h"\n'})

    def test_product_code_that_includes_tests_is_a_fault(self):
        self.expect_fault(
            "services/worker/core may not include tests",
            {"services/worker/core/step.cc": '#include "tests/fakes/fake_clock.h"\n'})

    def test_third_party_outside_its_folder_is_a_fault(self):
        self.expect_fault(
            "includes <rocksdb/db.h>, which services/worker/core may not use",
            {"services/worker/core/step.cc": "#  include <rocksdb/db.h>\n"})

    def test_unknown_third_party_is_a_fault(self):
        self.expect_fault("boost/any.hpp", {"services/common/rpc/a.cc": "#include <boost/any.hpp>\n"})

    def test_third_party_shown_to_another_folder_is_a_fault(self):
        self.expect_fault(
            "includes services/common/kernels/gemm.h, which shows <oneapi/dnnl/dnnl.hpp> outside services/common/kernels",
            {"services/common/kernels/memory.h": "#include <oneapi/dnnl/dnnl.hpp>\n",
             "services/common/kernels/gemm.h": '#include "services/common/kernels/memory.h"\n',
             "services/worker/core/step.cc": '#include "services/common/kernels/gemm.h"\n'})

    def test_forbidden_standard_header_is_a_fault(self):
        self.expect_fault(
            "includes <thread>, which layers.txt forbids in core",
            {"services/worker/core/step.cc": "#include <thread>\n"})

    def test_cycle_in_the_rules_is_a_fault(self):
        self.expect_fault(
            "services/common/base may not include services/common/tensor: no row above has that name",
            {}, RULES.replace("services/common/base : |", "services/common/base : services/common/tensor |"))

    def test_siblings_in_the_rules_are_a_fault(self):
        self.expect_fault(
            "both are core, siblings never link",
            {}, RULES.replace("operator/core : ", "operator/core : services/worker/core "))

    def test_rooms_of_one_folder_use_each_other_in_the_order_of_their_rows(self):
        rules = ("[reconciler]\na/b/pods : |\na/b/job : a/b/pods |\na/c : |\n[main]\na/main : a/b/* |\n"
                 "[tests]\ntests : * | *\n")
        self.assertEqual(self.load({}, rules)[0].faults, [])
        self.assertEqual(self.load({}, rules)[0].rows["a/main"].folders, {"a/b/pods", "a/b/job"})
        self.assertIn("siblings never link", self.load({}, rules.replace("a/c :", "a/c : a/b/pods"))[0].faults[0])
        self.assertIn("no row above", self.load({}, rules.replace("a/b/pods :", "a/b/pods : a/b/job", 1))[0].faults[0])
        rules = "[core]\nservices/a/core : |\nservices/b/core : services/a/core |\n[tests]\ntests : * | *\n"
        self.assertIn("siblings never link", self.load({}, rules)[0].faults[0])

    def test_permission_that_nothing_uses_is_a_fault(self):
        rules = "[base]\na : | unistd.h\n[leaf]\nb : a |\nc : a | zlib.h\n[tests]\ntests : * | *\n"
        faults = check_layers.find_idle(*self.load({"tests/x.cc": "#include <gtest/gtest.h>\n"}, rules))
        self.assertEqual(faults, [
            "layers.txt: a may include unistd.h, but does not",
            "layers.txt: b may include a, but does not",
            "layers.txt: c may include a, but does not",
            "layers.txt: c may include zlib.h, but does not"])

    def test_levels_out_of_order_are_a_fault(self):
        self.expect_fault("the levels are, in order", {}, "[core]\n[leaf]\n")

    def test_row_without_columns_is_a_fault(self):
        self.expect_fault("expected `folder : folders | includes`", {}, "[base]\nservices/common/base\n")

    def test_folder_listed_twice_is_a_fault(self):
        self.expect_fault("has a row already", {}, "[base]\na : |\na : |\n")


if __name__ == "__main__":
    unittest.main()
