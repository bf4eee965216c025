"""Values for the tests of the chart: sets in which each value is changed once, and values that are wrong."""

import json
import pathlib

PROJECT = pathlib.Path(__file__).resolve().parents[2]
CHART = PROJECT / "helm/adamant"
NAMESPACES = ("team-a", "team-b", "grafana")  # of the sets, beside that of the operators
DIGEST = f"sha256:{'0123456789abcdef' * 4}"

# What changes, in words: values. Each is given to helm as it stands here.
SETS = {
    "an image by digest, from a registry that asks who one is": {
        "image": {"repository": "registry.example:5000/ml/adamant", "tag": "v1", "digest": DIGEST, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "jobs": {"imagePullSecrets": [{"name": "registry"}, {"name": "mirror.b"}]}},
    "jobs without network policies": {"jobs": {"networkPolicy": {"enabled": False}}},
    "one operator": {"replicas": 1},
    "five operators that are large": {
        "replicas": 5, "podDisruptionBudget": {"minAvailable": "50%"},
        "resources": {"requests": {"cpu": 1, "memory": "512Mi"}, "limits": {"memory": "2Gi", "ephemeral-storage": "1e9"}}},
    "a drain takes all operators": {"podDisruptionBudget": {"enabled": False}},
    "a place": {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "control", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}]}},
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {
                "topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "etcd"}}}}]},
            "podAntiAffinity": None},
        "topologySpreadConstraints": [],
        "priorityClassName": "system-cluster-critical"},
    "marks of one's own": {"podAnnotations": {"example.com/owner": "ml"}, "podLabels": {"tier": "control"}},
    "an account that is there": {"serviceAccount": {"create": False, "name": "default"}},
    "an account by another name": {
        "serviceAccount": {"name": "adamant.operators", "annotations": {"example.com/role": "arn:example"}}},
    "custom resources that somebody else brings": {"crds": {"enabled": False}},
    "custom resources that go": {"crds": {"keep": False}},
    "the jobs of two namespaces": {"namespaces": ["team-a", "team-b"]},
    "no right of the cluster": {
        "namespaces": ["team-a"], "crds": {"enabled": False}, "userRoles": {"create": False}},
    "TLS": {"tls": {"enabled": True, "trustDomain": "ml.example", "certificateLife": "90m"}},
    "TLS by an issuer of one's own": {"tls": {
        "enabled": True, "issuerRef": {"name": "ml-ca", "kind": "ClusterIssuer", "group": "issuers.example"}}},
    "TLS without a right of the cluster": {"tls": {"enabled": True}, "namespaces": ["team-a"]},
    "roles that are bound by hand": {"userRoles": {"aggregate": False}},
    "no network policy": {"networkPolicy": {"enabled": False}},
    "a narrow network policy": {"networkPolicy": {
        "metricsNamespaces": ["observability", "team-a"], "apiServerPorts": [6443],
        "apiServerCIDRs": ["192.0.2.1/32", "2001:db8::/64"], "dnsPorts": [53]}},
    "metrics for nobody": {"networkPolicy": {"metricsNamespaces": []}},
    "Prometheus' operator, asked for": {
        "podMonitor": {"create": "Always", "labels": {"release": "main"}, "interval": "30s", "scrapeTimeout": "10s"},
        "prometheusRule": {"create": "Always", "labels": {"release": "main"}, "runbookPrefix": "https://git.example/adamant/"}},
    "dashboards, asked for": {"dashboards": {
        "create": "Always", "namespace": "grafana", "labels": {"dashboards": "yes"}, "annotations": {"folder": "Adamant"}}},
}

# (path, value): refused by the schema, which names the path. A path of an object that is not known ends in its name.
WRONG = [
    ("/tls/enabled", "yes"),
    ("/tls/trustDomain", "Ours/theirs"),
    ("/tls/trustDomain", ""),
    ("/tls/certificateLife", "0h"),
    ("/tls/certificateLife", "1d"),
    ("/tls/issuerRef", "ml-ca"),
    ("/tls/issuerRef/name", "Our CA"),
    ("/tls/issuerRef/name", None),
    ("/tls/issuerRef/kind", "clusterIssuer"),
    ("/tls/issuerRef/kind", ""),
    ("/tls/issuerRef/group", ""),
    ("/tls/issuerRef/namespace", "ml"),
    ("/image/repository", ""),
    ("/image/repository", "Not A Name"),
    ("/image/repository", "registry.example/Upper"),
    ("/image/tag", "with blanks"),
    ("/image/tag", 1.5),
    ("/image/digest", "sha256:1234"),
    ("/image/digest", f"md5:{'0' * 64}"),
    ("/image/pullPolicy", "Sometimes"),
    ("/image/repo", "adamant"),
    ("/imagePullSecrets/0", "registry"),
    ("/imagePullSecrets/0/name", "Registry"),
    ("/jobs/imagePullSecrets/0", "registry"),
    ("/jobs/imagePullSecrets/0/name", "Registry"),
    ("/jobs/pullSecrets", []),
    ("/jobs/networkPolicy/enabled", "yes"),
    ("/replica", 3),
    ("/replicas", 0),
    ("/replicas", 10),
    ("/replicas", 1.5),
    ("/replicas", "2"),
    ("/replicas", None),
    ("/resources/requests/memory", "128 MB"),
    ("/resources/limits/cpu", -1),
    ("/resources/requests/cpus", 1),
    ("/resources/claims", []),
    ("/nodeSelector/disk", True),
    ("/nodeSelector/a b", "c"),
    ("/tolerations", {}),
    ("/tolerations/0/effect", "NoRun"),
    ("/tolerations/0/seconds", 10),
    ("/affinity/podAntiAfinity", {}),
    ("/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight", 0),
    ("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchLabels/app", "a b"),
    ("/topologySpreadConstraints/0/maxSkew", 0),
    ("/topologySpreadConstraints/0/whenUnsatisfiable", "Never"),
    ("/priorityClassName", "High Priority"),
    ("/podAnnotations/owner", 1),
    ("/podLabels/tier", "with blanks"),
    ("/podLabels/app.kubernetes.io~1name", "other"),
    ("/serviceAccount/create", "yes"),
    ("/serviceAccount/name", "Upper"),
    ("/crds/keep", "true"),
    ("/crds/enabled", None),
    ("/namespaces", "team-a"),
    ("/namespaces", ["team-a", "team-a"]),
    ("/namespaces/0", "Team_A"),
    ("/userRoles/aggregate", 1),
    ("/podDisruptionBudget/minAvailable", 0),
    ("/podDisruptionBudget/minAvailable", "100%"),
    ("/podDisruptionBudget/maxUnavailable", 1),
    ("/networkPolicy/apiServerPorts", []),
    ("/networkPolicy/apiServerPorts/0", 65536),
    ("/networkPolicy/apiServerCIDRs/0", "192.0.2.1"),
    ("/networkPolicy/dnsPorts/0", "53"),
    ("/networkPolicy/metricsNamespaces/0", "*"),
    ("/podMonitor/create", True),
    ("/podMonitor/interval", "30"),
    ("/podMonitor/interval", 30),
    ("/podMonitor/scrapeTimeout", "soon"),
    ("/prometheusRule/create", "auto"),
    ("/prometheusRule/runbookPrefix", "git.example"),
    ("/prometheusRule/runbookPrefix", None),
    ("/dashboards/namespace", "Grafana"),
    ("/dashboards/labels/grafana_dashboard", 1),
]


def steps(path):
    """["podLabels", "app/name"] of "/podLabels/app~1name"; numbers are places in a list."""
    return [int(step) if step.isdigit() else step.replace("~1", "/") for step in path.split("/")[1:]]


def values_of(path, value):
    """The values in which nothing but that of the path is said."""
    for step in reversed(steps(path)):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def paths_of(values, schema):
    """The paths of the schema's own values (what stands below one that is Kubernetes' is not told apart) that are there."""
    found = set()
    for name, value in values.items():
        inner = schema["properties"][name]
        if "properties" in inner:
            found |= {f"/{name}{path}" for path in paths_of(value, inner)}
        else:
            found.add(f"/{name}")
    return found


def all_paths(schema):
    """Those of all values there are."""
    found = set()
    for name, inner in schema["properties"].items():
        found |= {f"/{name}{path}" for path in all_paths(inner)} if "properties" in inner else {f"/{name}"}
    return found - {"/global"}


def schema():
    return json.loads((CHART / "values.schema.json").read_text())
