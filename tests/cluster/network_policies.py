"""What NetworkPolicies let through, as rules of nftables for the network of a node, which all that its pods send or get is
routed through. IPv4 only."""

import collections
import ipaddress

TABLE = "network-policies"
_EVERYWHERE = [ipaddress.ip_network("0.0.0.0/0")]

# `type`: of policyTypes; `rules` and `peers`: fields of a policy and of its rules; `own` and `other`: what nftables calls
# the addresses of the pod and of its peer.
_Direction = collections.namedtuple("_Direction", "type rules peers own other")
_EGRESS = _Direction("Egress", "egress", "to", "saddr", "daddr")
_INGRESS = _Direction("Ingress", "ingress", "from", "daddr", "saddr")

# `ports`: [(name, protocol, number)].
_Pod = collections.namedtuple("_Pod", "namespace labels address ports")


def ruleset(policies, pods, namespaces):
    """The file for `nft --file` that replaces all rules at once; the arguments are lists of the API's objects. A packet
    of a new connection passes where its sender's policies and its receiver's let it through. What a node sends to its own
    pods, or gets of them, is not forwarded, and passes, and so do a pod's connections to itself."""
    labels = {namespace["metadata"]["name"]: namespace["metadata"].get("labels", {}) for namespace in namespaces}
    found = [_pod_of(pod) for pod in pods if _has_network(pod)]
    lines = [f"table ip {TABLE} {{", "}", f"delete table ip {TABLE}", f"table ip {TABLE} {{"]
    jumps = []
    for direction in (_EGRESS, _INGRESS):
        for pod in found:
            selecting = [policy for policy in policies if _selects(policy, pod, direction)]
            if selecting:
                chain = f"{direction.rules}-{pod.address}"
                jumps.append(f"ip {direction.own} {pod.address} jump {chain}")
                lines += _chain(chain, [f"ip {direction.other} {pod.address} return",
                                        *_rules(selecting, pod, found, labels, direction), "drop"])
    hook = "type filter hook forward priority filter; policy accept;"
    lines += _chain("forward", [hook, "ct state established,related accept", *jumps])
    return "\n".join([*lines, "}", ""])


def _chain(name, lines):
    return [f"  chain {name} {{", *(f"    {line}" for line in lines), "  }"]


# --- Pods


def _has_network(pod):
    """Whether it has an address of its own, which another pod may have once it has ended."""
    status = pod.get("status", {})
    return ("." in status.get("podIP", "") and not pod["spec"].get("hostNetwork", False)
            and status.get("phase") not in ("Succeeded", "Failed"))


def _pod_of(pod):
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    ports = [(port.get("name"), port.get("protocol", "TCP"), port["containerPort"])
             for container in containers for port in container.get("ports", [])]
    return _Pod(pod["metadata"]["namespace"], pod["metadata"].get("labels", {}),
                ipaddress.ip_address(pod["status"]["podIP"]), ports)


def _selects(policy, pod, direction):
    return (policy["metadata"]["namespace"] == pod.namespace and direction.type in policy["spec"]["policyTypes"]
            and _matches(policy["spec"].get("podSelector", {}), pod.labels))


def _matches(selector, labels):
    return (all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
            and all(_holds(expression, labels) for expression in selector.get("matchExpressions", [])))


def _holds(expression, labels):
    key, operator, values = expression["key"], expression["operator"], expression.get("values", [])
    return {"In": key in labels and labels[key] in values, "NotIn": key not in labels or labels[key] not in values,
            "Exists": key in labels, "DoesNotExist": key not in labels}[operator]


# --- Rules


def _rules(policies, pod, pods, labels, direction):
    """What these policies let through between the pod and others."""
    lines = []
    for policy in policies:
        for rule in policy["spec"].get(direction.rules, []):
            networks = _networks(rule.get(direction.peers), policy["metadata"]["namespace"], pods, labels)
            for where, port in _ports(rule.get("ports"), networks, pod, pods, direction):
                if where:
                    lines.append(" ".join([*_address(where, direction), *port, "return"]))
    return lines


def _networks(peers, namespace, pods, labels):
    """Those of the peers of a rule, apart from each other and in order; `namespace`: the policy's."""
    if not peers:
        return _EVERYWHERE
    networks = []
    for peer in peers:
        if "ipBlock" in peer:
            networks += _block(peer["ipBlock"])
        else:
            networks += [ipaddress.ip_network(pod.address) for pod in pods if _is_peer(peer, namespace, pod, labels)]
    return list(ipaddress.collapse_addresses(networks))


def _is_peer(peer, namespace, pod, labels):
    if "namespaceSelector" in peer:
        there = pod.namespace in labels and _matches(peer["namespaceSelector"], labels[pod.namespace])
    else:
        there = pod.namespace == namespace
    return there and _matches(peer.get("podSelector", {}), pod.labels)


def _block(block):
    if ":" in block["cidr"]:
        return []
    networks = [ipaddress.ip_network(block["cidr"], strict=False)]
    for gap in block.get("except", []):
        networks = _without(networks, ipaddress.ip_network(gap, strict=False))
    return networks


def _without(networks, gap):
    left = []
    for network in networks:
        if network.supernet_of(gap):
            left += network.address_exclude(gap)
        elif not network.subnet_of(gap):
            left.append(network)
    return left


def _address(networks, direction):
    """The words that match these addresses of peers."""
    if networks == _EVERYWHERE:
        return []
    return ["ip", direction.other, f"{{ {', '.join(str(network).removesuffix('/32') for network in networks)} }}"]


def _ports(ports, networks, pod, pods, direction):
    """[(networks, words that match a port there)] of a rule. What a port's name means is up to the pod that is connected
    to."""
    if not ports:
        return [(networks, [])]
    found = []
    for port in ports:
        protocol, number = port.get("protocol", "TCP"), port.get("port")
        if number is None:
            found.append((networks, ["meta l4proto", protocol.lower()]))
        elif isinstance(number, int):
            found.append((networks, _port(protocol, number, port.get("endPort", number))))
        elif direction is _INGRESS:
            found += [(networks, words) for words in _named(pod, protocol, number)]
        else:
            found += [([ipaddress.ip_network(peer.address)], words) for peer in pods
                      if any(peer.address in network for network in networks) for words in _named(peer, protocol, number)]
    return found


def _port(protocol, first, last):
    return [protocol.lower(), "dport", str(first) if first == last else f"{first}-{last}"]


def _named(pod, protocol, name):
    return [_port(protocol, number, number) for port, kind, number in pod.ports if (port, kind) == (name, protocol)]
