#!/usr/bin/env python3
"""Plants faults in a small tree and expects tools/check_queries.py to name each."""

import json
import pathlib
import tempfile
import unittest

import check_queries
from check_queries import read

HEAD = "| name | served by | type | labels | meaning |\n|---|---|---|---|---|\n"
PAGE = HEAD + ("| `adamant_test_pushes_total` | worker | counter | `outcome` | Pushes. |\n"
               "| `adamant_test_seconds` | worker | histogram |  | Time. |\n"
               "| `adamant_test_buckets` | worker | gauge | `role` | Buckets. |\n")
NOTE = (f"# Note\n\n## To be built\n\n{HEAD}| `adamant_test_phase` | operator | gauge | `namespace`, `job`, `phase` | 1. |\n"
        f"\n## To be changed\n\n{HEAD}| `adamant_test_buckets` | worker | gauge | `copy` | Buckets. |\n\n## More\n")
ALERT = """\
groups:
  - name: test
    rules:
      - alert: TestStuck
        expr: sum by (job) (rate(adamant_test_pushes_total{outcome="applied"}[5m])) == 0
        for: 5m
        labels: {severity: warning}
        annotations: {summary: It is stuck., description: For long., runbook_url: docs/runbooks/TestStuck.md}
"""


def dashboard(query: str, variable: str = "label_values(adamant_test_phase, namespace)") -> str:
    return json.dumps({"panels": [{"title": "Row"}, {"title": "Pace", "targets": [{"expr": query}]}],
                       "annotations": {"list": [{"name": "All", "expr": "adamant_test_phase"}]},
                       "templating": {"list": [{"name": "source", "type": "datasource"},
                                               {"name": "namespace", "type": "query", "query": {"query": variable}}]}})


class ReadTest(unittest.TestCase):
    def names(self, query: str) -> list[str]:
        return [name for name, _ in read(query).metrics]

    def test_functions_words_and_labels_are_no_metrics(self) -> None:
        named = read('topk(3, sum by (slot) (rate(a_total{role="x", for!=""}[$__rate_interval])))'
                     ' / on (job) group_left (b) c unless ignoring(d) (e offset 5m) > bool 1e3 # f')
        self.assertEqual(named.metrics, [("a_total", {"role", "for"}), ("c", set()), ("e", set())])
        self.assertEqual(named.labels, {"slot", "job", "b", "d"})

    def test_aggregations_may_be_written_either_way(self) -> None:
        self.assertEqual(self.names("sum by (a) (b) + sum(b) by (a) + sum without (a) (b)"), ["b", "b", "b"])

    def test_texts_may_hold_anything(self) -> None:
        self.assertEqual(self.names("""a{b="c) {\\"d\\"", e='f{', g=`h`}"""), ["a"])

    def test_what_cannot_be_read_is_said(self) -> None:
        for query in ("sum(a", "a)", 'a{b="c"', "sum by (a", '{__name__="a"}', "a & b"):
            self.assertRaises(check_queries.SyntaxFault, read, query)


class CheckQueriesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.put(check_queries.PAGE, PAGE)
        self.put(check_queries.NOTE, NOTE)
        self.put(check_queries.ALERTS, ALERT)
        self.put("docs/runbooks/TestStuck.md", "# TestStuck\n\n```promql\nadamant_test_phase\n\nup\n```\n")

    def put(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def faults(self) -> list[str]:
        return check_queries.check(self.root)[1]

    def faults_of(self, query: str) -> list[str]:
        self.put("deploy/grafana/test.json", dashboard(query))
        return self.faults()

    def test_what_is_there_or_planned_may_be_asked_for(self) -> None:
        self.assertEqual(self.faults_of("histogram_quantile(0.9, sum by (le, slot) (rate(adamant_test_seconds_bucket[5m])))"), [])
        self.assertEqual(self.faults_of('adamant_test_buckets{copy="primary"} * on (pod) adamant_test_seconds_count'), [])
        count, faults, unused = check_queries.check(self.root)
        self.assertEqual((count, faults, unused), (6, [], []))  # one of each kind, and two of the page

    def test_other_names_are_refused(self) -> None:
        for query in ("adamant_test_fetches_total", "adamant_test_seconds", "adamant_test_pushes_total_bucket", "1"):
            [fault] = self.faults_of(query)
            self.assertIn("test.json: Pace: ", fault)

    def test_labels_are_those_of_the_metric_or_of_the_scrape(self) -> None:
        [fault] = self.faults_of('adamant_test_pushes_total{cause="a", pod="b"}')
        self.assertIn("adamant_test_pushes_total has no label cause", fault)
        [fault] = self.faults_of("sum by (le) (adamant_test_seconds_sum)")
        self.assertIn("no metric of the query has a label le", fault)

    def test_variables_and_pages_are_read_too(self) -> None:
        self.put("deploy/grafana/test.json", dashboard("up", "label_values(adamant_test_phase, layer)"))
        [fault] = self.faults()
        self.assertIn("variable namespace: no metric of the query has a label layer", fault)
        self.put("deploy/grafana/test.json", dashboard("up"))
        self.put("docs/runbooks/TestStuck.md", "```promql\nadamant_test_phases\n```\n")
        [fault] = self.faults()
        self.assertIn("docs/runbooks/TestStuck.md: adamant_test_phases is neither", fault)

    def test_what_is_built_leaves_the_note(self) -> None:
        self.put(check_queries.PAGE, PAGE + "| `adamant_test_phase` | operator | gauge | `namespace`, `job`, `phase` | 1. |\n")
        [fault] = self.faults()
        self.assertIn('adamant_test_phase is there: take it out of "To be built"', fault)
        self.put(check_queries.PAGE, PAGE.replace("`role`", "`copy`"))
        [fault] = self.faults()
        self.assertIn('adamant_test_buckets is there: take it out of "To be changed"', fault)

    def test_what_is_built_otherwise_is_said(self) -> None:
        self.put(check_queries.PAGE, PAGE + "| `adamant_test_phase` | operator | gauge | `phase` | 1. |\n")
        [fault] = self.faults()
        self.assertIn('adamant_test_phase is in "To be built", and in', fault)

    def test_a_pod_has_no_label_that_the_scrape_has(self) -> None:
        self.put(check_queries.NOTE, NOTE.replace("`copy`", "`slot`"))
        [fault] = self.faults()
        self.assertIn("adamant_test_buckets: in Prometheus its label slot is the pod's", fault)

    def test_an_alert_is_whole(self) -> None:
        for old, new, said in (("severity: warning", "severity: urgent", "its severity is"), ("        for: 5m\n", "", "say for how"),
                               ("summary: It is stuck., ", "", "it has no summary"), ("/TestStuck.md", "/Stuck.md", "its runbook_url"),
                               ("description: For long., ", "", "it has no description")):
            self.put(check_queries.ALERTS, ALERT.replace(old, new))
            [fault] = self.faults()
            self.assertIn(said, fault)

    def test_an_alert_and_its_page_belong_together(self) -> None:
        self.put("docs/runbooks/Other.md", "# Other\n")
        self.put("docs/runbooks/README.md", "# All\n")
        [fault] = self.faults()
        self.assertIn("docs/runbooks/Other.md is of no alert", fault)
        (self.root / "docs/runbooks/Other.md").unlink()
        (self.root / "docs/runbooks/TestStuck.md").unlink()
        [fault] = self.faults()
        self.assertIn("docs/runbooks/TestStuck.md is not there", fault)


if __name__ == "__main__":
    unittest.main()
