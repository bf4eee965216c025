#!/usr/bin/env python3
"""The chart in a cluster with nodes, as a platform team uses it: installed, tested by `helm test`, upgraded, rolled back."""

import os
import re
import subprocess
import time
import unittest

import chart_test
from cluster import Cluster
from operator_rig import OPERATORS, PROGRAMS, image, measured, require

ROLES = ("worker", "data-server", "parameter-server")
LOST = re.compile(r"^(\S+)-0 deleted: another pod after (\S+) s, joined after (\S+) s$", re.MULTILINE)


class HelmTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster.nodes(3))
        cls.cluster.load_images([image()])
        cls.helm = chart_test.Helm("helm4", cls.cluster.kubeconfig())
        cls.addClassCleanup(cls.helm.close)
        begin = time.monotonic()
        cls.helm.run("install", chart_test.RELEASE, chart_test.CHART, "--create-namespace")
        cls.await_operators()
        measured("helm install, until the operators are ready", time.monotonic() - begin)

    @classmethod
    def await_operators(cls):
        cls.cluster.kubectl("rollout", "status", "-n", OPERATORS, chart_test.DEPLOYMENT, "--timeout=120s")

    def left(self, kinds):
        return self.cluster.kubectl("get", kinds, "-n", OPERATORS, "-o", "name").split()

    def test_helm_test_trains_loses_a_pod_of_each_role_and_leaves_nothing(self):
        begin = time.monotonic()
        printed = self.helm.run("test", chart_test.RELEASE, "--logs", "--timeout", "5m")
        measured("helm test", time.monotonic() - begin)
        recovered = {role: (float(made), float(joined)) for role, made, joined in LOST.findall(printed)}
        self.assertEqual(tuple(recovered), ROLES, printed)
        for role, (made, joined) in recovered.items():
            measured(f"{role} deleted: another pod", made)
            measured(f"{role} deleted: joined", joined)
            self.assertLessEqual(made, joined)
        self.assertRegex(printed, r"succeeded, top-1 \d+\.\d %")
        self.assertEqual(self.left("trainingjobs,serviceaccounts,roles,rolebindings").count("serviceaccount/adamant-check"), 0)
        self.assertEqual([name for name in self.left("trainingjobs,roles,rolebindings") if "adamant-check" in name], [])

    def test_where_no_operator_leads_the_check_fails_and_says_so(self):
        self.cluster.kubectl("scale", "-n", OPERATORS, chart_test.DEPLOYMENT, "--replicas=0")
        self.addCleanup(self.await_operators)
        self.addCleanup(self.cluster.kubectl, "scale", "-n", OPERATORS, chart_test.DEPLOYMENT, "--replicas=2")
        done = subprocess.run([PROGRAMS / "kubectl-adamant", "check", "-n", OPERATORS, "--timeout", "10"],
                              env={**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig())},
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("training is still waited for; the job is not looked at by any operator", done.stdout)
        self.assertIn("job deleted", done.stdout)


if __name__ == "__main__":
    require()
    unittest.main()
