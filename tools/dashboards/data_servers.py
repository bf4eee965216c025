"""The data servers of a job: whether batches are there before they are asked for, and acknowledged ones are written down."""

from dashboards.panels import HEATMAP, STAT, TIMESERIES, Dashboard, Panel, Row
from dashboards.shared import ONE_JOB, job_variables, processes, quantile

NAME = "adamant_data_server"

NOW = [
    Panel(STAT, "Servers", "short",
          "Data servers whose metrics Prometheus reads.",
          {"up": 'sum(up{@, role="data-server"})'}, 4, instant=True),
    Panel(STAT, "Workers", "short",
          "Workers with an open stream, of the server that has fewest: each should have them all.",
          {"streams": f"min({NAME}_workers{{@}})"}, 4, instant=True),
    Panel(STAT, "Dispatched", "cps",
          "Training examples handed out in each second.",
          {"examples": f'sum(rate({NAME}_dealt_examples_total{{@, kind="train"}}[@]))'}, 4),
    Panel(STAT, "Counted", "cps",
          "Training examples acknowledged, and stored as such, in each second.",
          {"examples": f"sum(rate({NAME}_counted_examples_total{{@}}[@]))"}, 4),
    Panel(STAT, "Prepared", "short",
          "Batches that are prepared and not yet dispatched.",
          {"batches": f"sum({NAME}_prepared_batches{{@}})"}, 4),
    Panel(STAT, "Dispatched again", "percentunit",
          "Share of the training examples handed out that a lost worker had had before.",
          {"examples": f"sum(rate({NAME}_retrained_examples_total{{@}}[@]))"
                       f' / sum(rate({NAME}_dealt_examples_total{{@, kind="train"}}[@]))'}, 4),
]

BATCHES = [
    Panel(TIMESERIES, "Examples dispatched", "cps",
          "Examples handed out, to train on and to evaluate with.",
          {"{{kind}}": f"sum by (kind) (rate({NAME}_dealt_examples_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Late batches", "cps",
          "Batches that were not prepared when they were dispatched: the worker waits.",
          {"{{slot}}": f"sum by (slot) (rate({NAME}_late_batches_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Workers that wait for a batch", "percentunit",
          "Share of their time in which each worker's threads wait for a batch. Where all do, data is short; where one "
          "does, look at that worker's network.",
          {"worker {{slot}}": 'sum by (slot) (rate(adamant_worker_wait_seconds_total{@, for="batch"}[@]))'
                              " / sum by (slot) (adamant_worker_threads{@})"}),
    Panel(HEATMAP, "Time to prepare", "s",
          "Time to put one batch together and transform it.",
          {"{{le}}": f"sum by (le) (increase({NAME}_prepare_seconds_bucket{{@}}[@]))"}),
    Panel(TIMESERIES, "Batches prepared", "short",
          "Batches that wait to be dispatched, by server.",
          {"{{slot}}": f"max by (slot) ({NAME}_prepared_batches{{@}})"}),
    Panel(TIMESERIES, "Cache", "bytes",
          "Memory of the prepared batches; data.cache limits it.",
          {"{{slot}}": f"max by (slot) ({NAME}_cache_bytes{{@}})"}),
    Panel(TIMESERIES, "Images sent", "Bps",
          "Bytes of images sent to workers.",
          {"{{slot}}": f"sum by (slot) (rate({NAME}_sent_bytes_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Time to prepare by server", "s",
          "Within which 99 of 100 batches are prepared.",
          {"{{slot}}": quantile(0.99, f"{NAME}_prepare_seconds", "le, slot")}),
    Panel(TIMESERIES, "Streams", "short",
          "Workers with an open stream, by server.",
          {"{{slot}}": f"max by (slot) ({NAME}_workers{{@}})"}),
]

LEDGER = [
    Panel(TIMESERIES, "Time of a write", "s",
          "Until a write of the ledger was answered, retries included.",
          {"half": quantile(0.5, f"{NAME}_ledger_write_seconds"),
           "99 of 100": quantile(0.99, f"{NAME}_ledger_write_seconds")}),
    Panel(TIMESERIES, "Accesses repeated", "cps",
          "Accesses to the ledger's record that had to be repeated, as its primary changed.",
          {"{{slot}}": f"sum by (slot) (rate({NAME}_record_retries_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Results not counted", "cps",
          "Results of batches that were counted before, or whose lease was void; and examples handed out again after a "
          "worker was lost.",
          {"duplicates": f"sum(rate({NAME}_duplicate_results_total{{@}}[@]))",
           "dispatched again": f"sum(rate({NAME}_retrained_examples_total{{@}}[@]))"}),
]

DASHBOARD = Dashboard(
    "adamant-data-servers", "Adamant / Data servers", "The data servers of one job.", ONE_JOB,
    job_variables("adamant_data_server_workers"),
    [Row("Now", NOW), Row("Batches", BATCHES), Row("Ledger", LEDGER), Row("Processes", processes("data-server"))])
