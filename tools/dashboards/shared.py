"""Selectors, variables and panels that several dashboards have."""

from dashboards.panels import TIMESERIES, Panel, Variable

ONE_JOB = 'namespace="$namespace", job="$job"'


def job_variables(metric: str) -> list[Variable]:
    """One job, of those that have this metric."""
    return [Variable("namespace", "Namespace", f"label_values({metric}, namespace)"),
            Variable("job", "Job", f'label_values({metric}{{namespace="$namespace"}}, job)')]


def quantile(share: float, metric: str, by: str = "le", matchers: str = "") -> str:
    return f"histogram_quantile({share}, sum by ({by}) (rate({metric}_bucket{{@{matchers}}}[@])))"


def processes(role: str) -> list[Panel]:
    """What the processes of a role use."""
    return [
        Panel(TIMESERIES, "Processors", "short",
              "Processors that each process keeps busy.",
              {"{{slot}}": f'sum by (slot) (rate(process_cpu_seconds_total{{@, role="{role}"}}[@]))'}),
        Panel(TIMESERIES, "Memory", "bytes",
              "Resident memory of each process.",
              {"{{slot}}": f'max by (slot) (process_resident_memory_bytes{{@, role="{role}"}})'}),
        Panel(TIMESERIES, "Open files", "percentunit",
              "Share of the file descriptors that each process may open.",
              {"{{slot}}": f'max by (slot) (process_open_fds{{@, role="{role}"}} / process_max_fds{{@, role="{role}"}})'}),
    ]
