#!/usr/bin/env python3
"""Whatever value a field is given: what the operator reads without problems, the API server accepts, and reads the same
with its defaults. Each field of a job that uses nearly all of them is given values at and around its bounds, and values
of other kinds."""

import concurrent.futures
import copy
import json
import unittest

import cluster as harness
from api import ApiError
from resources import JOBS, MANIFESTS, ObjectReader, cluster_with_resources

NUMBERS = [-1, 0, 1, 2, 3, 1.5, 0.5, 1e-9, 2**31 - 1, 2**31, 2**53 - 1, 2**53, 2**63 - 1, 1e300]
DURATIONS = ["0s", "1ns", "9ms", "10ms", "50ms", "60ms", "99.9ms", "100ms", "1s", "10s", "60s", "1m", "1m1ns", "1h", "20m",
             "24h", "24h1ns", "8760h", "8760h0.5s", "87600h", "1h1m1s1ms1us1ns", "0.5ns", "5", "-5s", "5 s", ".5s", "1s" * 32,
             "1s" * 33, "9999999999h"]
SIZES = ["0", "1", "1Ki", "1023Ki", "1Mi", "1048575", "1048576", "1.5Gi", "0.1Mi", "1Ti", "4Ti", "4.5Ti", "4Pi", "5Pi", "1M",
         "1k", "1K", "1e3", "1E", "1.5", "9" * 30, "0" * 63 + "1"]
TEXTS = ["", "a", "A", "a-b", "a_b", "a.b", "-a", "true", "None", "a b", "é", "a\n", "a" * 63, "a" * 64, "a" * 253, "a" * 254,
         "a" * 4096, "a" * 4097, "é" * 2048, "http://a", "https://a.b:1/c?d#e", "ftp://a", "http://", "f" * 64, "../a", "/a"]
OTHERS = [True, False, [], {}, [1], [1, 1], [0, 0], [1, 1, 1], [[1]], ["a"], ["a", "a"], {"a": "b"}, {"a": 1}, {"a b": "c"}]


def fields(schema, value, path=()):
    """Path and schema of every field that `value` has, and of those that it could have beside them."""
    for name, inner in schema.get("properties", {}).items():
        yield (*path, name), inner
        if isinstance(value.get(name), dict):
            yield from fields(inner, value[name], (*path, name))
        for index, item in enumerate(value.get(name) if isinstance(value.get(name), list) else ()):
            if isinstance(item, dict):
                yield from fields(inner["items"], item, (*path, name, index))


def values(schema):
    bounds = [schema[bound] for bound in ("minimum", "maximum") if bound in schema]
    around = [bound + step for bound in bounds for step in (-1, -1e-3, 0, 1e-3, 1)]
    whole = [int(number) for number in around if number == int(number)]
    yield from NUMBERS + around + whole + DURATIONS + SIZES + TEXTS + schema.get("enum", []) + OTHERS


def changed(job, path, value):
    job = copy.deepcopy(job)
    place = job
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return job


class AgreementTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster_with_resources(cls)
        cls.api = cls.cluster.api
        cls.reader = cls.enterClassContext(ObjectReader())

    def create(self, job):
        """What the API server makes of it, or why it refuses it."""
        try:
            return self.api.create(f"{JOBS}?fieldValidation=Strict&dryRun=All", job), None
        except ApiError as error:
            return None, str(error)

    def changed_jobs(self):
        """What is changed, the job, and what the operator reads of it."""
        name = "trainingjobs.adamant.dev"
        definition = self.api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for manifest in ("everything", "data_download", "sgd_on_server", "one_of_each"):
            text = self.cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", MANIFESTS / f"good/{manifest}.yaml")
            job = json.loads(text)
            job["metadata"] = {"name": "example"}
            for path, inner in fields({"properties": {"spec": schema["properties"]["spec"]}}, job):
                for value in values(inner):
                    other = changed(job, path, value)
                    yield f"{manifest}: {path} = {value!r:.80}", other, self.reader.read(other)[0]

    def test_what_the_operator_accepts_the_api_server_accepts_and_reads_the_same(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            accepted = [(what, job, read) for what, job, read in self.changed_jobs() if read]
            for (what, _, read), (stored, refusal) in zip(accepted, pool.map(self.create, [job for _, job, _ in accepted])):
                with self.subTest(what):
                    self.assertIsNone(refusal)
                    stored["metadata"] = {"name": "example"}
                    self.assertEqual(self.reader.read(stored)[0], read)
        print(f"\n{len(accepted)} values are accepted by both")
        self.assertGreater(len(accepted), 1000)


if __name__ == "__main__":
    harness.require("api-only")
    unittest.main()
