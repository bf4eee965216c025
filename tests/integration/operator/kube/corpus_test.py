#!/usr/bin/env python3
"""What `adamant validate` accepts the API server accepts, with the same defaults; what it refuses is refused by the API
server, or by the operator in the same words. Over the corpus of tests/manifests."""

import collections
import concurrent.futures
import json
import re
import unittest

import cluster as harness
import state
from resources import MANIFESTS, ObjectReader, cluster_with_resources, validate

# Bad manifests that are good objects by the time that the operator sees them.
REPAIRED = {
    "bool_is_yes": "kubectl reads yes as true",
    "field_null": "the API server drops what is null",
    "field_without_value": "the API server drops what is null",
    "integer_is_hexadecimal": "kubectl reads 0x as a number",
    "pods_spec_without_value": "the API server drops what is null",
    "optimiser_decay_below_double": "the API server reads what is below any double as 0",
    "section_without_value": "the API server drops what is null",
    "status_given": "the API server drops a status that users give",
    "yaml_alias_of_anchor": "kubectl resolves aliases",
    "yaml_alias_used": "kubectl resolves aliases",
    "yaml_duplicate_field": "kubectl takes the last of two",
    "yaml_duplicate_section": "kubectl takes the last of two",
    "yaml_merge_key": "kubectl merges",
    "yaml_tag": "kubectl reads tags",
    "yaml_two_documents": "kubectl creates one after the other",
}
# What only the data servers can see, which have the files.
OF_FILES = re.compile(r"data_idx_.*|data_batch_larger_than_data|distribution_workers_for_few_examples")
# What is said in a cluster of paths that start at the manifest's folder.
OF_FOLDER = "starts at the manifest's folder, which a cluster does not have"


def spec_of(manifest):
    return manifest[manifest.index("\nspec:\n"):]


def expected_problems(manifest):
    """What `adamant validate` says, without file, line and column: "PATH: MESSAGE"."""
    lines = manifest.with_suffix(".expected").read_text().splitlines()
    return {re.sub(r"^\S+?\.yaml(:\d+:\d+)?: ", "", line) for line in lines}


class CorpusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster = cluster_with_resources(cls)
        cluster.kubectl("create", "namespace", "team-a")  # which one of the manifests names
        cls.kubectl = [cluster.programs["kubectl"], "--kubeconfig", cluster.kubeconfig(), "--namespace=team-a"]
        cls.reader = cls.enterClassContext(ObjectReader())

    def create(self, manifest):
        """What the API server makes of it, without storing it, or why it is refused."""
        try:
            created = state.run(*self.kubectl, "create", "--dry-run=server", "--validate=strict", "-o", "json", "-f",
                                manifest)
        except OSError as error:
            return None, str(error)
        return json.JSONDecoder().raw_decode(created)[0], None

    def create_all(self, folder):
        manifests = sorted((MANIFESTS / folder).glob("*.yaml"))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(zip(manifests, pool.map(self.create, manifests)))

    def read(self, job):
        """The job with its defaults, the problems, and whether there were others, of the manifest's folder."""
        manifest, problems = self.reader.read(job)
        return manifest, {problem for problem in problems if OF_FOLDER not in problem}, any(
            OF_FOLDER in problem for problem in problems)

    def test_good_manifests_are_accepted_with_the_same_defaults(self):
        compared = 0
        for manifest, (job, refusal) in self.create_all("good"):
            with self.subTest(manifest.stem):
                self.assertIsNone(refusal)
                read, problems, of_folder = self.read(job)
                self.assertEqual(problems, set())
                if not of_folder:
                    self.assertEqual(spec_of(read), spec_of(validate(manifest)))
                    compared += 1
        self.assertGreater(compared, 15)

    def test_bad_manifests_are_refused_by_the_api_server_or_by_the_operator_in_the_same_words(self):
        counts = collections.Counter()
        for manifest, (job, refusal) in self.create_all("bad"):
            name = manifest.stem
            with self.subTest(name):
                if refusal:
                    counts["by the API server"] += 1
                    self.assertNotIn(name, REPAIRED)
                    self.assertNotRegex(refusal, "connection|exceeds budget|no such (key|overload)")
                    continue
                _, problems, of_folder = self.read(job)
                if OF_FILES.fullmatch(name):
                    counts["by the operator, for their paths"] += 1
                    self.assertTrue(of_folder)
                elif name in REPAIRED:
                    counts["not at all, as what is wrong does not get so far"] += 1
                    self.assertEqual(problems, set())
                else:
                    counts["by the operator"] += 1
                    self.assertEqual(problems, expected_problems(manifest))
        print("\nbad manifests are refused:", "; ".join(f"{count} {how}" for how, count in counts.items()))


if __name__ == "__main__":
    harness.require("api-only")
    unittest.main()
