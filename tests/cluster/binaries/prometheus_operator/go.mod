// Only read: its example/ has the custom resources that the chart's PodMonitors and alerts are of.
module adamant.dev/tests/cluster/prometheus_operator

go 1.24.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
