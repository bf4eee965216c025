#!/usr/bin/env python3
"""The custom resources at a real API server: what can change, defaults, status, scale, columns, and what is kept."""

import json
import re
import unittest

import cluster as harness
from api import ApiError
from resources import JOBS, MANIFESTS, MAPS, MERGE, cluster_with_resources

# What may change while a job exists, and what else only while it is suspended.
CHANGEABLE = {
    "distribution.workers",
    "runPolicy.activeDeadline",
    "runPolicy.checkpointInterval",
    "runPolicy.cleanUpPolicy.claims",
    "runPolicy.cleanUpPolicy.pods",
    "runPolicy.epochDeadline",
    "runPolicy.epochs",
    "runPolicy.failureRules",
    "runPolicy.onDivergence.action",
    "runPolicy.onDivergence.times",
    "runPolicy.onStartDeadline",
    "runPolicy.restartBudget.backoff",
    "runPolicy.restartBudget.limit",
    "runPolicy.startDeadline",
    "runPolicy.suspend",
    "runPolicy.targetAccuracy",
    "runPolicy.ttlAfterFinished",
}
FROZEN = "cannot change while the job exists"
RUNS = "cannot change while the job runs"


def job(name, **spec):
    digits = [{"digits": {"seed": seed, "examples": 100}} for seed in (1, 2)]
    return {"apiVersion": "adamant.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"model": {"reference": "adam-mnist"}, "data": {"train": digits[0], "validation": digits[1]}, **spec}}


def shard_map(name, **fields):
    buckets = [{"epoch": 1, "primary": {"slot": 0, "incarnation": 1}, "members": [{"slot": 0, "incarnation": 1}]}]
    return {"apiVersion": "adamant.dev/v1alpha1", "kind": "ShardMap", "metadata": {"name": name}, "job": "mnist",
            "jobUid": "0a1b2c3d-0000-1111-2222-333344445555", "term": 3, "first": 64, "count": 1, "buckets": buckets,
            **fields}


def leaves(schema, path=()):
    """Paths and schemas of the single values of a schema."""
    if "properties" not in schema:
        yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from leaves(inner, (*path, name))


def other_value(schema, value):
    """Another value than this one that the schema allows."""
    if "enum" in schema:
        return next(text for text in schema["enum"] if text != value)
    if schema.get("type") == "boolean":
        return not value
    if schema.get("type") in ("integer", "number"):
        bounds = [schema.get("minimum", 0), schema.get("maximum", 0)]
        middle = sum(bounds) / 2 if schema["type"] == "number" else sum(bounds) // 2
        return next(bound for bound in (middle, *bounds) if bound != value)
    if schema.get("x-kubernetes-int-or-string"):
        return "17Mi"
    if schema.get("type") == "array":
        return [schema["items"].get("minimum", {})] * schema.get("minItems", 0)
    if "h|m|s" in schema.get("pattern", ""):
        return "17s"
    return "a" * schema.get("minLength", 1)


def at(value, path):
    """What stands there, or None."""
    for name in path:
        value = value.get(name) if value is not None else None
    return value


def nested(path, value):
    for name in reversed(path):
        value = {name: value}
    return value


class CrdTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster_with_resources(cls)
        cls.api = cls.cluster.api

    def patch(self, name, spec, dry_run=True):
        return self.api.request("PATCH", f"{JOBS}/{name}?fieldValidation=Strict" + ("&dryRun=All" if dry_run else ""),
                                {"spec": spec}, MERGE)

    def assert_refused(self, reason, *arguments, **options):
        with self.assertRaisesRegex(ApiError, reason):
            self.patch(*arguments, **options)

    def test_only_what_may_change_changes(self):
        stored = self.api.create(JOBS, job("frozen"))
        definition = self.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainingjobs.adamant.dev")
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        changed = set()
        for path, leaf in leaves(schema):
            of_union = at(stored["spec"], path[:-1]) is None  # of a member that is not given: see below
            if path[0] == "pods" or of_union or len(leaf.get("enum", "ab")) == 1:
                continue
            field = ".".join(path)
            with self.subTest(field):
                change = nested(path, other_value(leaf, at(stored["spec"], path)))
                if field in CHANGEABLE:
                    self.patch("frozen", change)
                    changed.add(field)
                else:
                    self.assert_refused(rf"spec\.{re.escape(field)}: .*{FROZEN}", "frozen", change)
        self.assertEqual(changed, CHANGEABLE)
        for union in ({"model": {"reference": None, "network": {
                "input": [1, 28, 28], "classes": 10, "layers": [{"name": "out", "kind": "FullyConnected", "outputs": 10}]}}},
                      {"data": {"train": {"digits": None, "idx": {"images": "/images", "labels": "/labels"}}}}):
            self.assert_refused(FROZEN, "frozen", union)

    def test_what_is_optional_can_be_neither_added_nor_removed(self):
        self.api.create(JOBS, job("optional", distribution={"fetchEvery": 4}, runPolicy={
            "targetAccuracy": 0.5, "failureRules": [{"cause": "Exit", "action": "FailJob"}]}))
        self.patch("optional", {"runPolicy": {"targetAccuracy": None, "failureRules": None}})
        self.assert_refused(FROZEN, "optional", {"distribution": {"fetchEvery": None}})
        self.assert_refused(FROZEN, "optional", {"distribution": {"pushEvery": 2}})
        self.assert_refused(FROZEN, "optional", {"data": {"seed": 7}})
        self.assert_refused(FROZEN, "optional", {"output": {"storage": None, "claim": "models"}})
        self.patch("optional", {"runPolicy": {"activeDeadline": "1h", "ttlAfterFinished": "0s"}})

    def test_a_manifest_that_leaves_workers_out_keeps_what_was_scaled_to(self):
        manifest = job("elastic")
        path = f"{JOBS}/elastic"

        def apply(manifest):
            self.cluster.kubectl("apply", "-f", "-", input=json.dumps(manifest))

        def workers():
            return self.api.get(path)["spec"]["distribution"]["workers"]

        apply(manifest)
        self.assertEqual(workers(), 2)
        self.cluster.kubectl("scale", "trainingjob/elastic", "--replicas=5")
        apply({**manifest, "spec": {**manifest["spec"], "runPolicy": {"epochs": 20}}})
        self.assertEqual(workers(), 5)
        self.assertEqual(self.api.get(path)["spec"]["runPolicy"]["epochs"], 20)
        apply(job("elastic", distribution={"workers": 3}))
        self.assertEqual(workers(), 3)

    def test_pods_change_while_the_job_is_suspended_and_when_it_goes_on(self):
        gated = {"worker": {"spec": {"nodeSelector": {"zone": "a"}}}}
        self.api.create(JOBS, job("queued", pods={"worker": {"spec": {"schedulerName": "other"}}}))
        self.assert_refused(RUNS, "queued", {"pods": gated})
        self.assert_refused(RUNS, "queued", {"pods": None})
        self.assert_refused(RUNS, "queued", {"runPolicy": {"suspend": True}, "pods": gated})
        self.patch("queued", {"runPolicy": {"suspend": True}}, dry_run=False)
        admitted = self.patch("queued", {"runPolicy": {"suspend": False}, "pods": gated}, dry_run=False)
        self.assertEqual(admitted["spec"]["pods"]["worker"]["spec"],
                         {"schedulerName": "other", "nodeSelector": {"zone": "a"}})
        self.assert_refused(RUNS, "queued", {"pods": {"worker": {"spec": {"nodeSelector": {"zone": "b"}}}}})

    def test_applying_again_changes_nothing(self):
        manifest = MANIFESTS / "good" / "everything.yaml"
        for apply in (["apply"], ["apply", "--server-side", "--force-conflicts"]):
            generations = set()
            for _ in range(3):
                self.cluster.kubectl(*apply, "-f", manifest)
                generations.add(self.api.get(f"{JOBS}/example")["metadata"]["generation"])
            self.assertEqual(generations, {1}, apply)

    def test_unknown_fields_are_refused_or_dropped_but_not_those_of_pods(self):
        odd = job("odd", optimizer={"kind": "Sgd"}, pods={"worker": {"spec": {"later": {"field": 1}}}})
        with self.assertRaisesRegex(ApiError, 'unknown field \\\\"spec.optimizer'):
            self.api.create(f"{JOBS}?fieldValidation=Strict", odd)
        stored = self.api.create(f"{JOBS}?fieldValidation=Ignore", odd)
        self.assertNotIn("optimizer", stored["spec"])
        self.assertEqual(stored["spec"]["pods"]["worker"]["spec"], {"later": {"field": 1}})

    def test_workers_are_scaled_by_the_subresource(self):
        self.api.create(JOBS, job("scaled"))
        self.cluster.kubectl("scale", "tj", "scaled", "--replicas=5")
        self.assertEqual(self.api.get(f"{JOBS}/scaled")["spec"]["distribution"]["workers"], 5)
        with self.assertRaises(OSError):
            self.cluster.kubectl("scale", "tj", "scaled", "--replicas=0")
        status = {"roles": {"worker": {"desired": 5, "pods": 4, "selector": "adamant.dev/job=scaled"}}}
        self.api.request("PATCH", f"{JOBS}/scaled/status", {"status": status}, MERGE)
        scale = self.api.get(f"{JOBS}/scaled/scale")
        self.assertEqual(scale["spec"]["replicas"], 5)
        self.assertEqual(scale["status"], {"replicas": 4, "selector": "adamant.dev/job=scaled"})

    def test_status_is_written_apart_from_the_spec(self):
        stored = self.api.create(JOBS, {**job("told"), "status": {"phase": "Succeeded"}})
        self.assertNotIn("status", stored)
        condition = {"type": "Valid", "status": "True", "reason": "Checked", "message": "",
                     "lastTransitionTime": "2024-02-29T12:00:00Z", "observedGeneration": 1}
        written = self.api.request("PATCH", f"{JOBS}/told/status", {
            "spec": {"distribution": {"workers": 9}},
            "status": {"phase": "Running", "epoch": 3, "accuracy": 0.9871, "examplesPerSecond": 12345, "restarts": 1,
                       "roles": {"worker": {"ready": 2}}, "conditions": [condition]}}, MERGE)
        self.assertEqual(written["spec"], stored["spec"])
        self.assertEqual(written["metadata"]["generation"], 1)
        for wrong in ({"phase": "Done"}, {"conditions": [{"type": "Valid"}]}, {"startTime": "today"},
                      {"conditions": [condition, condition]}):
            with self.assertRaises(ApiError, msg=wrong) as caught:
                self.api.request("PATCH", f"{JOBS}/told/status", {"status": wrong}, MERGE)
            self.assertEqual(caught.exception.status, 422)
        lines = self.cluster.kubectl("get", "tj", "told").splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "PHASE", "EPOCH", "ACCURACY", "EXAMPLES/S", "WORKERS", "RESTARTS", "AGE"])
        self.assertEqual(lines[1].split()[:-1], ["told", "Running", "3", "0.9871", "12345", "2", "1"])

    def test_several_write_one_status(self):
        self.api.create(JOBS, job("shared"))
        for manager, kind in (("a", "Valid"), ("b", "Admitted")):
            condition = {"type": kind, "status": "True", "reason": "Checked", "message": "",
                         "lastTransitionTime": "2024-02-29T12:00:00Z"}
            self.api.request("PATCH", f"{JOBS}/shared/status?fieldManager={manager}", {
                "apiVersion": "adamant.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "shared"},
                "status": {"conditions": [condition]}}, "application/apply-patch+yaml")
        conditions = self.api.get(f"{JOBS}/shared")["status"]["conditions"]
        self.assertEqual([condition["type"] for condition in conditions], ["Valid", "Admitted"])

    def test_definitions_are_structural_named_and_explained(self):
        for name in ("trainingjobs", "shardmaps"):
            definition = self.api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}.adamant.dev")
            conditions = {condition["type"]: condition["status"] for condition in definition["status"]["conditions"]}
            self.assertEqual(conditions, {"NamesAccepted": "True", "Established": "True"})
        explained = self.cluster.kubectl("explain", "tj.spec.optimiser.rate")
        self.assertIn("Learning rate, before the schedule.", explained)
        self.api.create(JOBS, job("listed"))
        self.assertIn("trainingjob.adamant.dev/listed", self.cluster.kubectl("get", "adamant", "-o", "name"))

    def test_shard_maps_are_kept_by_the_highest_term(self):
        self.api.create(MAPS, shard_map("mnist-1"))
        lines = self.cluster.kubectl("get", "shardmaps", "mnist-1").splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "JOB", "FIRST", "BUCKETS", "TERM", "AGE"])
        self.assertEqual(lines[1].split()[:-1], ["mnist-1", "mnist", "64", "1", "3"])
        for wrong, reason in (({"term": 2}, "a controller of a higher term"), ({"first": 0}, "other buckets"),
                              ({"count": 2}, "not the number of the buckets"), ({"jobUid": "b"}, "of another job")):
            with self.assertRaisesRegex(ApiError, reason):
                self.api.request("PATCH", f"{MAPS}/mnist-1", wrong, MERGE)
        self.api.request("PATCH", f"{MAPS}/mnist-1", {"term": 4}, MERGE)

    def test_shard_maps_hold_at_most_64_buckets(self):
        bucket = shard_map("any")["buckets"][0]
        self.api.create(MAPS, shard_map("full", count=64, buckets=[bucket] * 64))
        with self.assertRaisesRegex(ApiError, "at most 64 items"):
            self.api.create(MAPS, shard_map("too-full", count=65, buckets=[bucket] * 65))

    def test_numbers_of_a_record_keep_63_bits(self):
        large = 2**63 - 1
        record = {**shard_map("any")["buckets"][0], "epoch": large, "restoredSnapshot": large}
        self.api.create(MAPS, shard_map("large", term=large, buckets=[record]))
        stored = self.api.get(f"{MAPS}/large")
        self.assertEqual((stored["term"], stored["buckets"]), (large, [record]))

    def test_largest_manifest_is_stored(self):
        layers = [{"name": f"layer_{i}", "kind": "Relu", "inputs": ["input"]} for i in range(1023)]
        layers.append({"name": "out", "kind": "FullyConnected", "outputs": 10})
        large = job("large", model={"network": {"input": [1, 28, 28], "classes": 10, "layers": layers}}, optimiser={
            "layers": [{"layer": layer["name"], "rate": 0.5} for layer in layers]})
        self.api.create(f"{JOBS}?fieldValidation=Strict", large)
        self.patch("large", {"distribution": {"workers": 3}}, dry_run=False)
        self.assert_refused(FROZEN, "large", {"optimiser": {"rate": 0.5}})
        self.assertGreater(len(json.dumps(large)), 90_000)


if __name__ == "__main__":
    harness.require("api-only")
    unittest.main()
