"""All jobs beside each other: which are there, how they do, which one needs looking at."""

from dashboards.panels import BARGAUGE, HEATMAP, STAT, TABLE, TIMESERIES, Dashboard, Panel, Row, Variable

JOB = "namespace, job"


def of_job(metric: str) -> str:
    """As the operator serves it: the same of two that lead one after the other counts once."""
    return f"max by ({JOB}) ({metric}{{@}})"


def count_in(phases: str) -> str:
    return f'count(max by ({JOB}) (adamant_job_phase{{@, phase=~"{phases}"}})) or vector(0)'


def processes(state: str) -> str:
    return f'sum by ({JOB}) (max by (namespace, job, role) (adamant_job_processes{{@, state="{state}"}}))'


PROGRESS = (f"({of_job('adamant_job_epoch')} - 1 + {of_job('adamant_job_epoch_examples')}"
            f" / {of_job('adamant_job_examples_per_epoch')}) / {of_job('adamant_job_epochs')}")

NOW = [
    Panel(STAT, "Training", "short",
          "Jobs in the phases Running and Evaluating.",
          {"jobs": count_in("Running|Evaluating")}, 4),
    Panel(STAT, "Waiting", "short",
          "Jobs in the phases Pending and Starting: they have no pods yet, or not all.",
          {"jobs": count_in("Pending|Starting")}, 4),
    Panel(STAT, "Examples a second", "cps",
          "Training examples counted in each second, of all jobs.",
          {"counted": f"sum({of_job('adamant_job_examples_per_second')})"}, 4),
    Panel(STAT, "Goodput", "percentunit",
          "Share of their active time in which jobs got on, mean over the jobs.",
          {"mean": f"avg({of_job('adamant_job_goodput_ratio')})"}, 4, steps={None: "red", 0.8: "orange", 0.95: "green"}),
    Panel(STAT, "Restarts in an hour", "short",
          "Processes that were started again after a loss, whatever it was.",
          {"restarts": "sum(increase(adamant_job_restarts_total{@}[1h]))"}, 4),
    Panel(STAT, "Alerts", "short",
          "Alerts of deploy/prometheus/alerts.yaml that fire.",
          {"firing": 'count(ALERTS{alertname=~"Adamant.*", alertstate="firing", @}) or vector(0)'}, 4,
          steps={None: "green", 1: "red"}),
]

JOBS = [
    Panel(TABLE, "Jobs", "none",
          "Jobs that the operator leads, or led within the last minute, one a line.",
          {"of": "max by (namespace, job, phase) (adamant_job_phase{@})",
           "Epoch": of_job("adamant_job_epoch"),
           "Progress": PROGRESS,
           "Examples/s": of_job("adamant_job_examples_per_second"),
           "Loss": of_job("adamant_job_training_loss"),
           "Accuracy": of_job("adamant_job_accuracy_ratio"),
           "Goodput": of_job("adamant_job_goodput_ratio"),
           "Attempt": of_job("adamant_job_attempt"),
           "Restarts left": of_job("adamant_job_restarts_left"),
           "Joined": processes("joined"),
           "Wanted": processes("wanted")}, 24, hidden=("of",),
          labels={"namespace": "Namespace", "job": "Job", "phase": "Phase"},
          units={"Progress": "percentunit", "Examples/s": "cps", "Accuracy": "percentunit", "Goodput": "percentunit"}),
]

OVER_TIME = [
    Panel(TIMESERIES, "Jobs by phase", "short",
          "Jobs in the whole cluster, those that have ended or are suspended as well.",
          {"{{phase}}": "sum by (phase) (adamant_operator_jobs)"}, stack=True),
    Panel(TIMESERIES, "Fastest jobs", "cps",
          "Examples counted in each second: the ten jobs that count most.",
          {"{{namespace}}/{{job}}": f"topk(10, {of_job('adamant_job_examples_per_second')})"}),
    Panel(TIMESERIES, "Lowest goodput", "percentunit",
          "Share of the active time in which a job got on: the ten lowest.",
          {"{{namespace}}/{{job}}": f"bottomk(10, {of_job('adamant_job_goodput_ratio')})"}, most=1),
]

LOSSES = [
    Panel(TIMESERIES, "Restarts by cause", "short",
          "Processes that were started again, by what had happened to the last one.",
          {"{{cause}}": "sum by (cause) (increase(adamant_job_restarts_total{@}[@]))"}, stack=True),
    Panel(TIMESERIES, "Processes missing", "short",
          "Processes that jobs want and that have not joined, by role.",
          {"{{role}}": 'sum by (role) (max by (namespace, job, role) (adamant_job_processes{@, state="wanted"})'
                       ' - max by (namespace, job, role) (adamant_job_processes{@, state="joined"}))'}, stack=True),
    Panel(TIMESERIES, "Buckets that take no updates", "short",
          "Buckets for which training waits, by what they lack.",
          {"{{state}}": "sum by (state) (max by (namespace, job, state)"
                        ' (adamant_job_buckets{@, state=~"Blocked|FailingOver|Restoring"}))'}, stack=True),
    Panel(BARGAUGE, "Most restarts in a day", "short",
          "The ten jobs whose processes were started again most often.",
          {"{{namespace}}/{{job}}": f"topk(10, sum by ({JOB}) (increase(adamant_job_restarts_total{{@}}[1d])))"}),
    Panel(HEATMAP, "Promotions", "s",
          "Time of the phases in which secondaries took buckets over, of all jobs, without the time until all copies were "
          "there again.",
          {"{{le}}": 'sum by (le) (increase(adamant_controller_failover_seconds_bucket{phase!="catch_up"}[@]))'}),
    Panel(BARGAUGE, "Certificates that end first", "s",
          "Time that the certificates of jobs' processes have left: the ten shortest. They are renewed with a third left.",
          {"{{namespace}}/{{job}}": f"bottomk(10, min by ({JOB}) (adamant_job_certificate_end_timestamp_seconds{{@}})"
                                    " - time())"},
          steps={None: "red", 3600: "orange", 14400: "green"}),
]

RESOURCES = [
    Panel(TIMESERIES, "Processors", "short",
          "Processors that the jobs' processes keep busy, by role.",
          {"{{role}}": 'sum by (role) (rate(process_cpu_seconds_total{@, slot!=""}[@]))'}, stack=True),
    Panel(TIMESERIES, "Memory", "bytes",
          "Resident memory of the jobs' processes, by role.",
          {"{{role}}": 'sum by (role) (process_resident_memory_bytes{@, slot!=""})'}, stack=True),
    Panel(TIMESERIES, "Processes scraped", "short",
          "Processes of jobs whose metrics Prometheus reads, by role.",
          {"{{role}}": 'sum by (role) (up{@, slot!=""})'}, stack=True),
]

DASHBOARD = Dashboard(
    "adamant-fleet", "Adamant / Fleet", "All jobs of a cluster, or of some namespaces.",
    'namespace=~"$namespace", job=~"$job"',
    [Variable("namespace", "Namespace", "label_values(adamant_job_epoch, namespace)", many=True),
     Variable("job", "Job", 'label_values(adamant_job_epoch{namespace=~"$namespace"}, job)', many=True)],
    [Row("Now", NOW), Row("Jobs", JOBS), Row("Over time", OVER_TIME), Row("Losses", LOSSES), Row("Resources", RESOURCES)])
