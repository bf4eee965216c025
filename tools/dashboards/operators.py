"""The operators and the API: who leads, whether the queue is empty, what the API answers, what ran out."""

from dashboards.panels import BARGAUGE, HEATMAP, STAT, TABLE, TIMESERIES, Dashboard, Panel, Row, Variable
from dashboards.shared import ONE_JOB

ERRORS = 'code=~"<error>|401|429|5.."'


def quantiles(metric: str, by: str = "le") -> dict[str, str]:
    name = ", {{verb}}" if "verb" in by else ""
    return {f"{text}{name}": f"histogram_quantile({share}, sum by ({by}) (rate({metric}_bucket{{@}}[@])))"
            for text, share in (("half", 0.5), ("99 of 100", 0.99))}


NOW = [
    Panel(STAT, "Leader", "none",
          "Operator that leads; another takes over within seconds when it ends.",
          {"{{pod}}": "max by (pod) (leader_election_master_status{@}) == 1"}, 6, instant=True, show_name=True),
    Panel(STAT, "Operators", "short",
          "Operators whose metrics Prometheus reads.",
          {"up": "sum(up{@})"}, 3, instant=True, steps={None: "red", 1: "orange", 2: "green"}),
    Panel(STAT, "Processes of jobs", "short",
          "Processes that have joined their jobs.",
          {"joined": "sum(adamant_operator_members{@})"}, 3),
    Panel(STAT, "Jobs in the queue", "short",
          "Jobs that wait for a thread of the operator.",
          {"jobs": "sum(workqueue_depth{@})"}, 3),
    Panel(STAT, "API errors", "percentunit",
          "Share of the requests to the API that failed or had no answer. Refusals, as of a quota, are the jobs' own.",
          {"failed": f"sum(rate(rest_client_requests_total{{@, {ERRORS}}}[@]))"
                     " / sum(rate(rest_client_requests_total{@}[@]))"},
          3, steps={None: "green", 0.01: "orange", 0.05: "red"}),
    Panel(STAT, "TLS", "short",
          "Operators that speak TLS with the jobs' processes.",
          {"operators": "sum(adamant_operator_tls_enabled{@})"}, 3, instant=True, steps={None: "red", 1: "green"}),
    Panel(STAT, "Jobs in plain text", "short",
          "Jobs of before TLS that still run without.",
          {"jobs": "max(adamant_operator_plaintext_jobs{@})"}, 3, instant=True, steps={None: "green", 1: "orange"}),
]

WORK = [
    Panel(TIMESERIES, "Jobs by phase", "short",
          "Jobs in the cluster, by phase.",
          {"{{phase}}": "sum by (phase) (adamant_operator_jobs{@})"}, stack=True),
    Panel(TIMESERIES, "Passes by result", "cps",
          "Times that a job was worked on, by how that ended.",
          {"{{result}}": "sum by (result) (rate(controller_runtime_reconcile_total{@}[@]))"}, stack=True),
    Panel(TIMESERIES, "Time of a pass", "s",
          "Time that a thread works on a job; it waits for the API in it.",
          quantiles("controller_runtime_reconcile_time_seconds")),
    Panel(TIMESERIES, "Queue", "short",
          "Jobs that wait for a thread, and that are being worked on.",
          {"wait": "sum(workqueue_depth{@})",
           "worked on": "sum(controller_runtime_active_workers{@})"}),
    Panel(TIMESERIES, "Time in the queue", "s",
          "Time that a job waits for a thread.",
          quantiles("workqueue_queue_duration_seconds")),
    Panel(TIMESERIES, "Into the queue", "cps",
          "Jobs that were put into the queue, and those again after a failure.",
          {"all": "sum(rate(workqueue_adds_total{@}[@]))",
           "after a failure": "sum(rate(workqueue_retries_total{@}[@]))"}),
]

API = [
    Panel(TIMESERIES, "Requests by answer", "cps",
          "Requests to the API, by the code that was answered; <error>: none was.",
          {"{{code}}": "sum by (code) (rate(rest_client_requests_total{@}[@]))"}, stack=True),
    Panel(TIMESERIES, "Requests by method", "cps",
          "Requests to the API, by method.",
          {"{{method}}": "sum by (method) (rate(rest_client_requests_total{@}[@]))"}, stack=True),
    Panel(TIMESERIES, "Time of a request", "s",
          "Time of requests to the API, but for watches.",
          quantiles("rest_client_request_duration_seconds", "le, verb")),
    Panel(HEATMAP, "Times of requests", "s",
          "All requests to the API but watches, by how long they took.",
          {"{{le}}": "sum by (le) (increase(rest_client_request_duration_seconds_bucket{@}[@]))"}, 12),
    Panel(TIMESERIES, "Pods made", "cps",
          "Pods that the operator created.",
          {"pods": "sum(rate(adamant_operator_pods_created_total{@}[@]))"}, 12),
]

RECOVERIES = [
    Panel(TIMESERIES, "Restarts of jobs' processes", "short",
          "Processes that were started again, by what had happened to the last.",
          {"{{cause}}": "sum by (cause) (increase(adamant_operator_restarts_total{@}[@]))"}, stack=True),
    Panel(TIMESERIES, "Buckets taken over", "short",
          "Buckets that a secondary has taken over.",
          {"buckets": "sum(increase(adamant_controller_failovers_total{@}[@]))"}),
    Panel(HEATMAP, "Time of promotions", "s",
          "Time of the phases of buckets' promotions, without that until all copies were there.",
          {"{{le}}": 'sum by (le) (increase(adamant_controller_failover_seconds_bucket{@, phase!="catch_up"}[@]))'}),
]

SECURITY = [
    Panel(BARGAUGE, "Certificates of the operators", "s",
          "Time that the operators' own certificates have left: leaf, root and, with cert-manager, issuer.",
          {"{{kind}}": "min by (kind) (adamant_operator_certificate_end_timestamp_seconds{@}) - time()"},
          steps={None: "red", 604800: "green"}),
    Panel(TIMESERIES, "Refused for who asked", "short",
          "Calls that the operators refused, and TLS handshakes that failed at them and at processes of any job, by what was "
          "wrong. `replaced` comes with ordinary recoveries.",
          {"{{reason}}": "sum by (reason) (increase(adamant_authorisation_refused_total[@]))",
           "handshake: {{reason}}": "sum by (reason) (increase(adamant_tls_handshakes_failed_total[@]))"}, 16, stack=True),
]

PROCESSES = [
    Panel(TIMESERIES, "Processors", "short",
          "Processors that each operator keeps busy.",
          {"{{pod}}": "sum by (pod) (rate(process_cpu_seconds_total{@}[@]))"}, 6),
    Panel(TIMESERIES, "Memory", "bytes",
          "Resident memory of each operator.",
          {"{{pod}}": "max by (pod) (process_resident_memory_bytes{@})",
           "{{pod}}, address space": "max by (pod) (process_virtual_memory_bytes{@})"}, 6),
    Panel(TIMESERIES, "Open files", "percentunit",
          "Share of the file descriptors that each operator may open.",
          {"{{pod}}": "max by (pod) (process_open_fds{@} / process_max_fds{@})"}, 6),
    Panel(TABLE, "Versions", "short",
          "Programs that run, of operators and of all jobs, by version, and when the first began.",
          {"Processes": "count by (version, commit) (adamant_build_info)",
           "First began": "min by (version, commit)"
                          " (adamant_build_info * on (namespace, job, pod, instance) group_left ()"
                           " process_start_time_seconds) * 1000"}, 6,
          labels={"version": "Version", "commit": "Commit"}, units={"First began": "dateTimeFromNow"}),
]

DASHBOARD = Dashboard(
    "adamant-operators", "Adamant / Operators and API", "The operators, and what the API answers them.", ONE_JOB,
    [Variable("namespace", "Namespace", "label_values(adamant_operator_members, namespace)"),
     Variable("job", "Job", 'label_values(adamant_operator_members{namespace="$namespace"}, job)')],
    [Row("Now", NOW), Row("Work", WORK), Row("API", API), Row("Recoveries", RECOVERIES), Row("Security", SECURITY),
     Row("Processes", PROCESSES)])
