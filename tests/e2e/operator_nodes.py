"""Jobs that train on three nodes, for the tests of this folder that take one of them away."""

from cluster import await_that
from operator_rig import OPERATORS, Job, System, TestCase, has_ended, is_running, slot_of, tiny_job
from operator_watch import Watch

SERVERS = 3
MAPS = "/apis/adamant.dev/v1alpha1/namespaces/training/shardmaps"
CLAIMS = "/api/v1/namespaces/training/persistentvolumeclaims"


class NodesTestCase(TestCase):
    """Each test has a cluster of its own."""

    @classmethod
    def setUpClass(cls):
        pass

    def setUp(self):
        super().setUp()
        self.system = self.enterContext(System(nodes=3))

    def start_training(self, name, *, copies, epochs, detection):
        """A job whose three parameter servers hold each bucket `copies` times, each on a node of its own."""
        manifest = tiny_job(name, epochs=epochs, parameter_servers=SERVERS, copies=copies)
        job = Job(self.system, manifest + f"  detection: {detection}\n").apply()
        job.await_epoch(2)
        await_that(lambda: len(self.servers(job)) == SERVERS, "Kubernetes calls every server Running, too")
        self.maps = self.enterContext(Watch(self.system.api, MAPS))
        return job

    def leaders_node(self):
        leader = self.system.api.get(f"/api/v1/namespaces/{OPERATORS}/pods/{self.system.leader()}")
        return leader["spec"]["nodeName"]

    @staticmethod
    def servers(job):
        """{slot: its pod} of the parameter servers that run."""
        return {slot_of(pod): pod for pod in job.pods().values()
                if slot_of(pod).startswith("parameter-server") and is_running(pod)}

    def nodes_of_servers(self, job):
        """{"parameter-server-0": "node1"}"""
        return {slot: pod["spec"]["nodeName"] for slot, pod in self.servers(job).items()}

    def choose_server(self, job):
        """A parameter server, and its node: not the leading operator's, nor the data server's."""
        spared = {pod["spec"]["nodeName"] for pod in job.pods().values()
                  if slot_of(pod).startswith("data-server") and not has_ended(pod)}
        spared.add(self.leaders_node())
        for slot, node in self.nodes_of_servers(job).items():
            if node not in spared:
                return slot, node
        raise AssertionError(f"all parameter servers are on {spared}")

    def server_on(self, job, node):
        """The parameter server on this node, of those that run."""
        nodes = self.nodes_of_servers(job)
        found = [slot for slot, at in nodes.items() if at == node]
        self.assertEqual(len(found), 1, f"{node} of {nodes}\n{self.system.diagnosis(job.name)}")
        return found[0]

    def claims(self, job):
        listed = self.system.api.get(f"{CLAIMS}?labelSelector=adamant.dev/job={job.name}")["items"]
        return {claim["metadata"]["name"] for claim in listed if "deletionTimestamp" not in claim["metadata"]}

    def assert_trained_on(self, job, epochs, examples):
        """To the end, and without losing an update or counting a restart."""
        job.await_phase("Succeeded")
        self.assert_counted_once(job, epochs, examples)
        self.assertEqual({row["updates_lost"] for row in job.rows()}, {"0"})
        self.assertEqual(job.status()["restarts"], 0, job.events())
