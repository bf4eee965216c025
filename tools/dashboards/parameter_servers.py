"""The parameter servers of a job: what pushes and fetches cost, whether copies are level, whether the disk keeps up."""

from dashboards.panels import HEATMAP, STAT, TIMESERIES, Dashboard, Panel, Row
from dashboards.shared import ONE_JOB, job_variables, processes, quantile

NAME = "adamant_parameter_server"

NOW = [
    Panel(STAT, "Servers", "short",
          "Parameter servers whose metrics Prometheus reads.",
          {"up": 'sum(up{@, role="parameter-server"})'}, 4, instant=True),
    Panel(STAT, "Primaries", "short",
          "Buckets that have a primary.",
          {"buckets": f'sum({NAME}_buckets{{@, copy="primary"}})'}, 4),
    Panel(STAT, "Updates a second", "cps",
          "Updates to shards that were applied.",
          {"applied": f'sum(rate({NAME}_updates_total{{@, outcome="applied"}}[@]))'}, 4),
    Panel(STAT, "Oldest change not stored", "s",
          "What a loss of all copies would cost at this moment, in the mode Delayed.",
          {"age": f"max({NAME}_oldest_unflushed_seconds{{@}})"}, 4),
    Panel(STAT, "Disks full", "short",
          "Servers that cannot store at the moment, as their disk is full.",
          {"servers": f"sum({NAME}_disk_full{{@}})"}, 4, instant=True, steps={None: "green", 1: "red"}),
    Panel(STAT, "Damaged values in a day", "short",
          "Stored values that were found damaged, in the background or in a checkpoint.",
          {"values": f"sum(increase({NAME}_damaged_values_total{{@}}[1d]))"}, 4, instant=True,
          steps={None: "green", 0.5: "red"}),
]

TRAFFIC = [
    Panel(TIMESERIES, "Updates by outcome", "cps",
          "Updates to shards received, by what became of them.",
          {"{{outcome}}": f"sum by (outcome) (rate({NAME}_updates_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Updates by server", "cps",
          "Updates that each server applied: even where shards are of one size.",
          {"{{slot}}": f'sum by (slot) (rate({NAME}_updates_total{{@, outcome="applied"}}[@]))'}),
    Panel(TIMESERIES, "Bytes by direction", "Bps",
          "Payload of pushes received and of fetches answered.",
          {"pushes": f"sum(rate({NAME}_push_bytes_total{{@}}[@]))",
           "fetches": f"sum(rate({NAME}_fetch_bytes_total{{@}}[@]))"}),
    Panel(HEATMAP, "Time to apply", "s",
          "From a push's arrival until all of it is committed and applied.",
          {"{{le}}": f"sum by (le) (increase({NAME}_apply_seconds_bucket{{@}}[@]))"}),
    Panel(TIMESERIES, "Time to apply by server", "s",
          "Within which 99 of 100 pushes are committed and applied.",
          {"{{slot}}": quantile(0.99, f"{NAME}_apply_seconds", "le, slot")}),
    Panel(HEATMAP, "Update staleness", "short",
          "Updates applied between a worker's fetch and its update.",
          {"{{le}}": f"sum by (le) (increase({NAME}_update_staleness_bucket{{@}}[@]))"}),
]

COPIES = [
    Panel(TIMESERIES, "Buckets by copy", "short",
          "Buckets that the servers hold, as primary or secondary, or learn.",
          {"{{copy}}": f"sum by (copy) ({NAME}_buckets{{@}})"}, stack=True),
    Panel(TIMESERIES, "Primaries by server", "short",
          "Buckets that each server is primary of.",
          {"{{slot}}": f'sum by (slot) ({NAME}_buckets{{@, copy="primary"}})'}, stack=True),
    Panel(TIMESERIES, "Lag", "short",
          "Entries of a bucket that its slowest replica has not acknowledged: the largest of each primary.",
          {"{{slot}}": f"max by (slot) ({NAME}_largest_lag_entries{{@}})"}),
    Panel(TIMESERIES, "Bytes between servers", "Bps",
          "Sent to other parameter servers, and received from them.",
          {"sent": f"sum(rate({NAME}_peer_sent_bytes_total{{@}}[@]))",
           "received": f"sum(rate({NAME}_peer_received_bytes_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Messages between servers", "cps",
          "Sent and received, by kind. What is sent and not received is lost.",
          {"{{kind}}, sent": f"sum by (kind) (rate({NAME}_peer_sent_messages_total{{@}}[@]))",
           "{{kind}}, received": f"sum by (kind) (rate({NAME}_peer_received_messages_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Promotions", "s",
          "Mean time of the phases in which servers took buckets over.",
          {"{{phase}}": f"sum by (phase) (increase({NAME}_failover_seconds_sum{{@}}[@]))"
                        f" / (sum by (phase) (increase({NAME}_failover_seconds_count{{@}}[@])) > 0)"}, points=True),
]

DISK = [
    Panel(TIMESERIES, "Not stored yet", "s",
          "Age of each server's oldest change that is not on disk, beside the loss window that the job asks for.",
          {"{{slot}}": f"max by (slot) ({NAME}_oldest_unflushed_seconds{{@}})",
           "window": "max(adamant_job_loss_window_seconds{@})"}),
    Panel(TIMESERIES, "Changed and not stored", "bytes",
          "Shards that have changed since they were stored.",
          {"{{slot}}": f"max by (slot) ({NAME}_dirty_bytes{{@}})"}),
    Panel(TIMESERIES, "Time of a flush", "s",
          "Within which half, and 99 of 100, flushes are done; and snapshots.",
          {"flush, half": quantile(0.5, f"{NAME}_flush_seconds"),
           "flush, 99 of 100": quantile(0.99, f"{NAME}_flush_seconds"),
           "snapshot, 99 of 100": quantile(0.99, f"{NAME}_snapshot_seconds")}),
    Panel(TIMESERIES, "Written", "Bps",
          "Bytes of shards that flushes write.",
          {"{{slot}}": f"sum by (slot) (rate({NAME}_flushed_bytes_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Flushes", "cps",
          "Flushes that succeeded, and updates that shared a write with an earlier one.",
          {"flushes": f"sum(rate({NAME}_flushes_total{{@}}[@]))",
           "updates spared": f"sum(rate({NAME}_folded_updates_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Read again", "Bps",
          "Stored bytes read again in the background and found to be good.",
          {"{{slot}}": f"sum by (slot) (rate({NAME}_scrubbed_bytes_total{{@}}[@]))"}),
    Panel(TIMESERIES, "Back from disk", "short",
          "Buckets that came back from a server's disk after all copies were lost.",
          {"{{slot}}": f"sum by (slot) (increase({NAME}_rollbacks_total{{@}}[@]))"}, 24),
]

DASHBOARD = Dashboard(
    "adamant-parameter-servers", "Adamant / Parameter servers", "The parameter servers of one job.", ONE_JOB,
    job_variables("adamant_parameter_server_dirty_bytes"),
    [Row("Now", NOW), Row("Traffic", TRAFFIC), Row("Copies", COPIES), Row("Disk", DISK),
     Row("Processes", processes("parameter-server"))])
