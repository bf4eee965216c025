"""One job: whether it learns, how fast, where its time goes, who holds it up, what was lost and how soon it was back."""

from dashboards.panels import BARGAUGE, HEATMAP, STAT, TIMESERIES, Annotation, Dashboard, Panel, Row
from dashboards.shared import ONE_JOB, job_variables, quantile

PACE = "sum by (slot) (rate(adamant_worker_examples_total{@}[@]))"
WAITS = "rate(adamant_worker_wait_seconds_total{@}[@])"
THREADS = "sum(adamant_worker_threads{@})"

NOW = [
    Panel(STAT, "Phase", "none",
          "Phase that the job is in.",
          {"{{phase}}": "max by (phase) (adamant_job_phase{@})"}, 3, instant=True, show_name=True),
    Panel(STAT, "Epoch", "none",
          "Epoch that is open, and after how many the job ends.",
          {"epoch": "max(adamant_job_epoch{@})",
           "of": "max(adamant_job_epochs{@})"}, 3, instant=True),
    Panel(STAT, "Accuracy now", "percentunit",
          "Top-1 on the validation data of the newest model that was evaluated.",
          {"top-1": "max(adamant_job_accuracy_ratio{@})"}, 3),
    Panel(STAT, "Loss now", "none",
          "Training loss, mean over ten seconds.",
          {"loss": "max(adamant_job_training_loss{@})"}, 3),
    Panel(STAT, "Pace now", "cps",
          "Training examples counted in each second; 0 while training stands.",
          {"counted": "max(adamant_job_examples_per_second{@})"}, 3),
    Panel(STAT, "Goodput", "percentunit",
          "Share of the active time in which training got on and was not undone.",
          {"goodput": "max(adamant_job_goodput_ratio{@})"}, 3, steps={None: "red", 0.8: "orange", 0.95: "green"}),
    Panel(STAT, "Restarts left", "none",
          "Restarts that runPolicy.restartBudget still has.",
          {"left": "max(adamant_job_restarts_left{@})"}, 3, instant=True, steps={None: "red", 1: "orange", 3: "green"}),
    Panel(STAT, "Attempt", "none",
          "1, and one more for each time that the job went back to an earlier model.",
          {"attempt": "max(adamant_job_attempt{@})"}, 3, instant=True, steps={None: "green", 2: "orange"}),
]

LEARNING = [
    Panel(TIMESERIES, "Loss", "none",
          "Training loss, mean over ten seconds.",
          {"training": "max(adamant_job_training_loss{@})"}),
    Panel(TIMESERIES, "Accuracy", "percentunit",
          "Top-1 on the validation data; it changes with each epoch.",
          {"validation": "max(adamant_job_accuracy_ratio{@})"}),
    Panel(TIMESERIES, "Examples a second", "cps",
          "Examples that are counted, and those that workers train, which may be thrown away or trained again.",
          {"counted": "max(adamant_job_examples_per_second{@})",
           "acknowledged by data servers": "sum(rate(adamant_data_server_counted_examples_total{@}[@]))",
           "trained": "sum(rate(adamant_worker_examples_total{@}[@]))"}),
    Panel(TIMESERIES, "Progress of the epoch", "percentunit",
          "Share of the epoch's examples that are counted.",
          {"counted": "max(adamant_job_epoch_examples{@}) / max(adamant_job_examples_per_epoch{@})"}, most=1),
    Panel(TIMESERIES, "Factors for asynchrony", "none",
          "What the rate is multiplied by, as others train meanwhile, and by how many times as many steps momentum "
          "remembers; mean over the workers.",
          {"rate": "avg(adamant_worker_rate_factor{@})",
           "memory": "avg(adamant_worker_momentum_memory_factor{@})"}),
    Panel(TIMESERIES, "Dead units", "percentunit",
          "Share of the units of a layer to which no gradient comes, of the worker that finds most. A half is a rate that "
          "is too high.",
          {"{{layer}}": "max by (layer) (adamant_worker_dead_units_ratio{@})"}, most=1),
]

TIME = [
    Panel(TIMESERIES, "Where the threads' time goes", "percentunit",
          "Time of all training threads: what they wait for, and the rest, in which they train and evaluate.",
          {"trains": f"1 - sum({WAITS}) / {THREADS}",
           "waits for {{for}}": f"sum by (for) ({WAITS}) / on () group_left () {THREADS}"}, 12, stack=True, most=1),
    Panel(TIMESERIES, "Pushes and fetches", "s",
          "Time from a message to a parameter server to its reply.",
          {"push, half": quantile(0.5, "adamant_worker_push_seconds"),
           "push, 99 of 100": quantile(0.99, "adamant_worker_push_seconds"),
           "fetch, half": quantile(0.5, "adamant_worker_fetch_seconds"),
           "fetch, 99 of 100": quantile(0.99, "adamant_worker_fetch_seconds")}, 12),
    Panel(TIMESERIES, "Exchanges a second", "cps",
          "Batches trained, pushes acknowledged, fetches of all parameters completed.",
          {"batches": "sum(rate(adamant_worker_steps_total{@}[@]))",
           "pushes": "sum(rate(adamant_worker_pushes_total{@}[@]))",
           "fetches": "sum(rate(adamant_worker_fetches_total{@}[@]))"}),
    Panel(TIMESERIES, "Bytes a second", "Bps",
          "Payload of pushes and fetches, of all workers.",
          {"pushed": "sum(rate(adamant_worker_push_bytes_total{@}[@]))",
           "fetched": "sum(rate(adamant_worker_fetch_bytes_total{@}[@]))"}),
    Panel(TIMESERIES, "Pushes held for checkpoints", "percentunit",
          "Share of the time in which no push started because of a checkpoint, mean over the workers.",
          {"held": "avg(rate(adamant_worker_held_seconds_total{@}[@]))"}),
    Panel(TIMESERIES, "Processors", "short",
          "Processors that the job's processes keep busy, by role.",
          {"{{role}}": 'sum by (role) (rate(process_cpu_seconds_total{@, slot!=""}[@]))'}, stack=True),
    Panel(TIMESERIES, "Memory", "bytes",
          "Resident memory of the job's processes, by role.",
          {"{{role}}": 'sum by (role) (process_resident_memory_bytes{@, slot!=""})'}, stack=True),
    Panel(TIMESERIES, "Retained by workers", "bytes",
          "Acknowledged pushes that workers keep until they are on disk.",
          {"{{slot}}": "max by (slot) (adamant_worker_retained_bytes{@})"}),
]

WORKERS = [
    Panel(TIMESERIES, "Examples a second by worker", "cps",
          "Examples that each worker trains in a second.",
          {"{{slot}}": PACE}),
    Panel(BARGAUGE, "Pace beside the median", "percentunit",
          "Pace of each worker as a share of that of the worker in the middle: below a half it is a straggler.",
          {"worker {{slot}}": f"{PACE} / on () group_left () quantile(0.5, {PACE})"},
          steps={None: "red", 0.5: "orange", 0.8: "green"}),
    Panel(TIMESERIES, "Waits for data by worker", "percentunit",
          "Share of their time in which a worker's threads wait for a batch.",
          {"{{slot}}": 'sum by (slot) (rate(adamant_worker_wait_seconds_total{@, for="batch"}[@]))'
                       " / sum by (slot) (adamant_worker_threads{@})"}),
    Panel(TIMESERIES, "Staleness by worker", "short",
          "Batches of other workers between a fetch and the push computed from it.",
          {"{{slot}}": "max by (slot) (adamant_worker_staleness_batches{@})"}),
    Panel(HEATMAP, "Update staleness", "short",
          "Updates of a shard between a fetch and the push computed from it.",
          {"{{le}}": "sum by (le) (increase(adamant_worker_update_staleness_bucket{@}[@]))"}),
    Panel(TIMESERIES, "Batches between exchanges", "short",
          "Batches that a thread trains between two pushes.",
          {"{{slot}}": "max by (slot) (adamant_worker_exchange_every_batches{@})"}),
]

LOSSES = [
    Panel(TIMESERIES, "Restarts", "short",
          "Processes that were started again, by role and what had happened to the last one.",
          {"{{role}}: {{cause}}": "sum by (role, cause) (increase(adamant_job_restarts_total{@}[@])) > 0"}, points=True),
    Panel(TIMESERIES, "Recoveries", "s",
          "Mean time of each phase: a bucket's promotion and its copies, a process's restart.",
          {"{{phase}}": "sum by (phase) (increase(adamant_job_recovery_seconds_total{@}[@]))"
                        " / (sum by (phase) (increase(adamant_job_recoveries_total{@}[@])) > 0)"}, points=True),
    Panel(TIMESERIES, "Processes", "short",
          "Processes that have joined the job, by role, and those that it wants.",
          {"{{role}}": 'max by (role) (adamant_job_processes{@, state="joined"})',
           "{{role}}, wanted": 'max by (role) (adamant_job_processes{@, state="wanted"})'}),
    Panel(TIMESERIES, "Buckets", "short",
          "Buckets, by how they are doing. While some are Blocked, FailingOver or Restoring, training waits for them.",
          {"{{state}}": "max by (state) (adamant_job_buckets{@})"}, stack=True),
    Panel(TIMESERIES, "Updates lost and sent again", "short",
          "Updates that servers had acknowledged and lost with all copies.",
          {"rolled back": "max(increase(adamant_job_rolled_back_updates_total{@}[@]))",
           "sent again": "sum(increase(adamant_worker_updates_resent_total{@}[@]))",
           "lost": "sum(increase(adamant_worker_updates_lost_total{@}[@]))",
           "buckets back from disk": "max(increase(adamant_job_bucket_restores_total{@}[@]))"}),
    Panel(TIMESERIES, "Pushes refused", "short",
          "Pushes dropped because they held NaN or infinity: a rate that is too high.",
          {"refused": "sum(increase(adamant_worker_pushes_refused_total{@}[@]))"}),
    Panel(BARGAUGE, "Last fault, by worker", "s",
          "Time since updates were first acknowledged again after a parameter server was lost or the membership had "
          "changed.",
          {"worker {{slot}}": "time() - max by (slot) (adamant_worker_resumed_timestamp_seconds{@} > 0)"}),
    Panel(TIMESERIES, "Not stored yet", "s",
          "Age of each server's oldest change that is not on disk, beside the loss window that the job asks for.",
          {"server {{slot}}": "max by (slot) (adamant_parameter_server_oldest_unflushed_seconds{@})",
           "window": "max(adamant_job_loss_window_seconds{@})"}),
    Panel(BARGAUGE, "Certificates", "s",
          "Time that the first certificate of a role to end has left; it is renewed with a third.",
          {"{{role}}": "min by (role) (adamant_job_certificate_end_timestamp_seconds{@}) - time()"},
          steps={None: "red", 3600: "orange", 14400: "green"}),
]

ANNOTATIONS = [
    Annotation("Recoveries", "{{phase}}", "orange",
               'sum by (phase) (increase(adamant_job_recoveries_total{@, phase=~"reconcile|restart"}[1m])) > 0'),
    Annotation("Restarts", "{{role}}: {{cause}}", "red",
               "sum by (role, cause) (increase(adamant_job_restarts_total{@}[1m])) > 0"),
    Annotation("Alerts", "{{alertname}}", "purple", 'ALERTS{@, alertname=~"Adamant.*", alertstate="firing"}'),
]

DASHBOARD = Dashboard(
    "adamant-job", "Adamant / Job", "One job: its learning, its time, its workers, its losses.", ONE_JOB,
    job_variables("adamant_job_epoch"),
    [Row("How it stands", NOW), Row("Learning", LEARNING), Row("Where time goes", TIME), Row("Workers beside each"
          " other", WORKERS),
     Row("Losses and recoveries", LOSSES)],
    ANNOTATIONS)
