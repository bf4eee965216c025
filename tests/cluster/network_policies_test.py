#!/usr/bin/env python3
"""NetworkPolicies become the rules that Kubernetes says they are."""

import re
import unittest

from network_policies import ruleset

NAMESPACES = [{"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}}
              for name, labels in (("here", {}), ("there", {"team": "b"}))]


def pod(name, address, *, namespace="here", phase="Running", ports=(), **spec):
    """Its label app is the name."""
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
            "spec": {"containers": [{"ports": list(ports)}], **spec}, "status": {"podIP": address, "phase": phase}}


SERVER = pod("server", "10.0.0.1", ports=[{"name": "web", "containerPort": 80}, {"name": "side", "containerPort": 90}])
CLIENT = pod("client", "10.0.0.2")
OTHER = pod("other", "10.0.0.5", namespace="there", ports=[{"name": "web", "containerPort": 8000}])
PODS = [SERVER, CLIENT, OTHER]


def labelled(app):
    return {"matchLabels": {"app": app}}


def policy(types, *, of="server", **rules):
    return {"metadata": {"name": "policy", "namespace": "here"},
            "spec": {"podSelector": labelled(of), "policyTypes": list(types), **rules}}


def chains(text):
    """{chain: its lines} of what stands in the table at last."""
    found = re.findall(r"chain (\S+) \{\n(.*?)\n  \}", text, re.DOTALL)
    return {name: [line.strip() for line in lines.split("\n")] for name, lines in found}


class NetworkPoliciesTest(unittest.TestCase):

    def rules(self, types, *, pods=PODS, of="server", address="10.0.0.1", **rules):
        """What one policy of one direction lets through, beside what a pod says to itself; the last rule denies."""
        found = chains(ruleset([policy([types], of=of, **rules)], pods, NAMESPACES))
        own, *allowed, last = found[f"{types.lower()}-{address}"]
        self.assertEqual((own.split()[2:], last), ([address, "return"], "drop"))
        return allowed

    def ingress(self, *rules, **options):
        return self.rules("Ingress", ingress=list(rules), **options)

    def egress(self, *rules, **options):
        return self.rules("Egress", egress=list(rules), **options)

    def from_peers(self, *peers):
        return self.ingress({"from": list(peers)})

    # --- Who is selected

    def test_without_policies_all_passes(self):
        self.assertEqual(chains(ruleset([], PODS, NAMESPACES)),
                         {"forward": ["type filter hook forward priority filter; policy accept;",
                                      "ct state established,related accept"]})

    def test_rules_replace_those_that_stood_before(self):
        self.assertTrue(ruleset([], [], []).startswith(
            "table ip network-policies {\n}\ndelete table ip network-policies\ntable ip network-policies {\n"))

    def test_a_policy_without_rules_denies_its_directions_and_no_other(self):
        self.assertEqual(self.ingress(), [])
        self.assertEqual(self.egress(), [])
        found = chains(ruleset([policy(["Ingress"])], PODS, NAMESPACES))
        self.assertEqual(found["forward"][2:], ["ip daddr 10.0.0.1 jump ingress-10.0.0.1"])

    def test_senders_are_asked_before_receivers(self):
        found = chains(ruleset([policy(["Ingress", "Egress"])], PODS, NAMESPACES))
        self.assertEqual(found["forward"][2:], ["ip saddr 10.0.0.1 jump egress-10.0.0.1",
                                                "ip daddr 10.0.0.1 jump ingress-10.0.0.1"])

    def test_an_empty_selector_selects_all_pods_of_the_namespace(self):
        everyone = {"metadata": {"namespace": "here"}, "spec": {"podSelector": {}, "policyTypes": ["Egress"]}}
        self.assertEqual(chains(ruleset([everyone], PODS, NAMESPACES)).keys(),
                         {"forward", "egress-10.0.0.1", "egress-10.0.0.2"})

    def test_what_any_policy_of_a_pod_lets_through_passes(self):
        one, two = ({"from": [{"podSelector": labelled("client")}], "ports": [{"protocol": "TCP", "port": port}]}
                    for port in (80, 90))
        found = chains(ruleset([policy(["Ingress"], ingress=[one]), policy(["Ingress"], ingress=[two])], PODS, NAMESPACES))
        self.assertEqual(found["ingress-10.0.0.1"], ["ip saddr 10.0.0.1 return", "ip saddr { 10.0.0.2 } tcp dport 80 return",
                                                     "ip saddr { 10.0.0.2 } tcp dport 90 return", "drop"])

    def test_pods_without_an_address_of_their_own_are_neither_selected_nor_peers(self):
        without = [pod("server", "10.0.0.1", phase="Succeeded"), pod("server", "10.0.0.3", phase="Failed"),
                   pod("server", "192.0.2.1", hostNetwork=True), pod("server", ""), pod("server", "fd00::1")]
        self.assertEqual(chains(ruleset([policy(["Ingress"])], without, NAMESPACES)).keys(), {"forward"})
        self.assertEqual(self.ingress({"from": [{"podSelector": {}}]}, pods=[*without, *PODS]),
                         ["ip saddr { 10.0.0.1, 10.0.0.2 } return"])

    # --- Peers

    def test_a_rule_without_peers_is_for_all(self):
        self.assertEqual(self.ingress({}), ["return"])
        self.assertEqual(self.egress({"ports": [{"protocol": "UDP", "port": 53}]}), ["udp dport 53 return"])

    def test_a_pod_selector_means_the_policys_namespace(self):
        self.assertEqual(self.from_peers({"podSelector": {}}), ["ip saddr { 10.0.0.1, 10.0.0.2 } return"])
        self.assertEqual(self.from_peers({"podSelector": labelled("other")}), [])

    def test_a_namespace_selector_means_all_its_pods(self):
        self.assertEqual(self.from_peers({"namespaceSelector": {"matchLabels": {"team": "b"}}}),
                         ["ip saddr { 10.0.0.5 } return"])
        self.assertEqual(self.from_peers({"namespaceSelector": {}}),
                         ["ip saddr { 10.0.0.1, 10.0.0.2, 10.0.0.5 } return"])

    def test_both_selectors_in_one_peer_must_hold_and_of_two_peers_one(self):
        there, client = {"matchLabels": {"team": "b"}}, labelled("client")
        self.assertEqual(self.from_peers({"namespaceSelector": there, "podSelector": client}), [])
        self.assertEqual(self.from_peers({"namespaceSelector": there, "podSelector": labelled("other")}),
                         ["ip saddr { 10.0.0.5 } return"])
        self.assertEqual(self.from_peers({"namespaceSelector": there}, {"podSelector": client}),
                         ["ip saddr { 10.0.0.2, 10.0.0.5 } return"])

    def test_expressions_of_selectors(self):
        for operator, values, wanted in (("In", ["client", "other"], "10.0.0.2, 10.0.0.5"),
                                         ("NotIn", ["client"], "10.0.0.1, 10.0.0.5"),
                                         ("Exists", None, "10.0.0.1, 10.0.0.2, 10.0.0.5"), ("DoesNotExist", None, None)):
            with self.subTest(operator):
                expression = {"key": "app", "operator": operator, **({} if values is None else {"values": values})}
                peer = {"namespaceSelector": {}, "podSelector": {"matchExpressions": [expression]}}
                self.assertEqual(self.from_peers(peer), [] if wanted is None else [f"ip saddr {{ {wanted} }} return"])
        lacking = {"matchExpressions": [{"key": "absent", "operator": "NotIn", "values": ["x"]}]}
        self.assertEqual(self.from_peers({"podSelector": lacking}), ["ip saddr { 10.0.0.1, 10.0.0.2 } return"])

    def test_a_block_lacks_what_is_excepted(self):
        block = {"cidr": "192.0.2.0/24", "except": ["192.0.2.0/25", "192.0.2.192/26"]}
        self.assertEqual(self.egress({"to": [{"ipBlock": block}]}), ["ip daddr { 192.0.2.128/26 } return"])
        self.assertEqual(self.from_peers({"ipBlock": {"cidr": "0.0.0.0/0"}}), ["return"])
        self.assertEqual(self.from_peers({"ipBlock": {"cidr": "fd00::/8"}}), [])

    def test_addresses_in_a_block_are_named_once(self):
        peers = [{"ipBlock": {"cidr": "10.0.0.0/30"}}, {"namespaceSelector": {}}]
        self.assertEqual(self.from_peers(*peers), ["ip saddr { 10.0.0.0/30, 10.0.0.5 } return"])

    # --- Ports

    def test_ports_by_number_range_and_protocol(self):
        ports = [{"port": 80}, {"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 8000, "endPort": 8010},
                 {"protocol": "SCTP"}]
        self.assertEqual(self.ingress({"ports": ports}), ["tcp dport 80 return", "udp dport 53 return",
                                                          "tcp dport 8000-8010 return", "meta l4proto sctp return"])

    def test_a_named_port_is_the_receivers(self):
        web = {"ports": [{"protocol": "TCP", "port": "web"}]}
        self.assertEqual(self.ingress(web), ["tcp dport 80 return"])
        self.assertEqual(self.egress(web, of="client", address="10.0.0.2"),
                         ["ip daddr { 10.0.0.1 } tcp dport 80 return", "ip daddr { 10.0.0.5 } tcp dport 8000 return"])
        self.assertEqual(self.egress({**web, "to": [{"podSelector": {}}]}, of="client", address="10.0.0.2"),
                         ["ip daddr { 10.0.0.1 } tcp dport 80 return"])

    def test_a_name_that_no_port_of_that_protocol_has_lets_nothing_through(self):
        self.assertEqual(self.ingress({"ports": [{"protocol": "TCP", "port": "absent"}]}), [])
        self.assertEqual(self.ingress({"ports": [{"protocol": "UDP", "port": "web"}]}), [])

    def test_no_peers_that_exist_are_not_all(self):
        rule = {"from": [{"podSelector": labelled("absent")}], "ports": [{"protocol": "TCP", "port": 80}]}
        self.assertEqual(self.ingress(rule), [])


if __name__ == "__main__":
    unittest.main()
