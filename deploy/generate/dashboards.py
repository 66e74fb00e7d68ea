"""The dashboards: how the gateway is, and what each tool does."""

from panels import Panel, Query, Row, dashboard, graph, stat, table, variable

OPERATIONS = "mcp_server_operation_duration_seconds"
JUPYTER = "jmg_jupyter_request_duration_seconds"
ON = 'job=~"$job",instance=~"$instance"'
TOOL = f'{ON},gen_ai_tool_name=~"$tool"'
OF_TOOL = "gen_ai_tool_name"


def now(metric: str, by: str = "", how: str = "sum", where: str = ON, legend: str = "") -> Query:
    """What gauges say, taken together for each value of some labels."""
    return Query(f"{how}{group(by)}({metric}{{{where}}})", legend or legend_of(by))


def each(metric: str) -> Query:
    """What the gauge of each gateway says."""
    return Query(f"{metric}{{{ON}}}", "{{instance}}")


def rate(metric: str, where: str = ON) -> str:
    return f"rate({metric}{{{where}}}[$__rate_interval])"


def often(metric: str, by: str = "", where: str = ON, legend: str = "") -> Query:
    """How often a second something happens, for each value of some labels."""
    return Query(f"sum{group(by)}({rate(metric, where)})", legend or legend_of(by))


def group(by: str) -> str:
    return f" by ({by}) " if by else ""


def legend_of(by: str) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in by.split(", ")) if by else ""


QUANTILES = {"p50": "0.5", "p95": "0.95", "p99": "0.99"}


def quantile(name: str, metric: str, by: str = "", where: str = ON) -> Query:
    labels = f"le, {by}" if by else "le"
    value = f"histogram_quantile({QUANTILES[name]}, sum by ({labels}) ({rate(f'{metric}_bucket', where)}))"
    return Query(value, f"{legend_of(by)} {name}".strip())


def quantiles(metric: str, where: str = ON) -> list[Query]:
    """Median, 95th and 99th percentile of a histogram."""
    return [quantile(name, metric, where=where) for name in QUANTILES]


def share(metric: str, part: str, whole: str, by: str) -> Query:
    """The share of those with the labels `part`: 0, and not nothing, where there are none."""
    of_part, of_whole = (often(metric, by, where).expr for where in (part, whole))
    return Query(f"({of_part} or {of_whole} * 0) / {of_whole}", legend_of(by))


def all_dashboards() -> dict[str, dict]:
    job = variable("job", "Job", "label_values(jmg_build_info, job)")
    instance = variable("instance", "Instance", 'label_values(jmg_build_info{job=~"$job"}, instance)')
    tool = variable("tool", "Tool", f"label_values({OPERATIONS}_count{{{ON}}}, {OF_TOOL})")
    return {
        "gateway": dashboard(
            "jupyter-mcp-gateway",
            "Jupyter MCP gateway",
            "How the gateway is: what it is asked, what fails, what is refused, and how Jupyter answers.",
            [job, instance],
            [
                Row("Overview", overview()),
                Row("Operations", operations()),
                Row("Executions and documents", executions()),
                Row("Refused", refusals()),
                Row("Tenants", limits()),
                Row("Jupyter", jupyter()),
                Row("Store", kept()),
                Row("Process", process()),
            ],
        ),
        "tools": dashboard(
            "jupyter-mcp-gateway-tools",
            "Jupyter MCP gateway: tools",
            "What each tool does: how often it is called, how it ends, how long it takes.",
            [job, instance, tool],
            [Row("Tools", tools())],
        ),
    }


def overview() -> list[Panel]:
    all_operations = often(f"{OPERATIONS}_count")
    internal = often(f"{OPERATIONS}_count", where=f'{ON},error_type="-32603"')
    return [
        stat("Up", "Gateways that answer Prometheus.", now("up", where='job=~"$job"')),
        stat("Operations", "MCP operations a second.", all_operations, unit="reqps"),
        stat(
            "Internal errors",
            "Share of operations that failed because of the gateway (-32603); the alerts allow one in a thousand.",
            Query(f"({internal.expr} or vector(0)) / {all_operations.expr}"),
            unit="percentunit",
            thresholds=[(0.001, "orange"), (0.0144, "red")],
        ),
        stat("Open sessions", "MCP sessions of clients of the protocol up to 2025-11-25.", now("jmg_mcp_sessions")),
        stat("Connections", "Open connections of clients.", now("jmg_http_connections")),
        stat("Versions", "Gateways by version.", now("jmg_build_info", "version", "count")),
    ]


def operations() -> list[Panel]:
    count, calls = f"{OPERATIONS}_count", f'{ON},mcp_method_name="tools/call"'
    return [
        graph("By method", "MCP operations a second, by method.", often(count, "mcp_method_name"), unit="reqps"),
        graph(
            "Errors by kind",
            "`tool_error` is what a tool answers to its caller, and what code raises; numbers are JSON-RPC errors.",
            often(count, "error_type", f'{ON},error_type!=""'),
            unit="reqps",
        ),
        graph(
            "Duration of calls",
            "How long calls of tools take, those that run code included.",
            *quantiles(OPERATIONS, calls),
            unit="s",
        ),
        graph(
            "Protocol versions",
            "MCP operations a second, by version of the protocol.",
            often(count, "mcp_protocol_version"),
            unit="reqps",
        ),
        graph(
            "Resumed streams",
            "Clients that came back to a stream, by whether their last event was still kept.",
            often("jmg_events_replays_total", "hit", legend="known: {{hit}}"),
            unit="reqps",
        ),
        graph(
            "Length of sessions",
            "How long MCP sessions lived that ended.",
            *quantiles("mcp_server_session_duration_seconds"),
            unit="s",
        ),
    ]


def executions() -> list[Panel]:
    rooms = [now(metric, "instance").expr for metric in ("jmg_rooms", "jmg_rooms_max")]
    return [
        graph("Executions", "Those that run, and those that wait for their turn.", now("jmg_executions", "state")),
        graph(
            "Oldest execution",
            "Age of the oldest execution that runs.",
            now("jmg_executions_oldest_age_seconds", how="max", legend="oldest"),
            unit="s",
        ),
        graph(
            "How executions end",
            "Executions that ended, by status.",
            often("jmg_execution_duration_seconds_count", "status"),
            unit="reqps",
        ),
        graph(
            "Wait for kernels",
            "From when code was asked to run until it was sent to its kernel, with the start of the kernel where that was needed.",
            *quantiles("jmg_kernel_queue_duration_seconds"),
            unit="s",
        ),
        graph("Open documents by state", "In use, idle, or without a connection to Jupyter.", now("jmg_rooms", "state")),
        graph(
            "Share of all rooms",
            "Open documents of `sessions.max_open_rooms`.",
            Query(" / ".join(rooms), "{{instance}}"),
            unit="percentunit",
            red=0.9,
        ),
    ]


def refusals() -> list[Panel]:
    return [
        graph(
            "Requests refused at the edge",
            "Before a tool was called: no token, a wrong Host, too large, limited.",
            often("jmg_http_rejections_total", "reason"),
            unit="reqps",
        ),
        graph(
            "Refused because of limits",
            "Requests answered with 429, by tenant and limit.",
            often("jmg_limits_refusals_total", "tenant, limit"),
            unit="reqps",
        ),
        graph(
            "Connections closed by the gateway",
            "By reason: times that ran out, and places that were needed for others.",
            often("jmg_http_connections_closed_total", "reason"),
            unit="reqps",
        ),
    ]


def limits() -> list[Panel]:
    def used(limit: str) -> Query:
        return now("jmg_limits_used", "tenant", where=f'{ON},limit="{limit}"')

    in_use = f"max by (tenant, limit) (jmg_limits_used{{{ON}}} / jmg_limits_max{{{ON}}})"
    return [
        graph(
            "Share of limits in use",
            "What a tenant has at this moment of what it may have.",
            Query(in_use, "{{tenant}} {{limit}}"),
            unit="percentunit",
            red=0.9,
        ),
        graph("Running executions", "By tenant; those that wait do not count.", used("max_concurrent_executions")),
        graph("Open documents", "Rooms, by tenant.", used("max_open_rooms")),
    ]


def jupyter() -> list[Panel]:
    unanswered = f'{ON},outcome=~"unreachable|timeout"'
    return [
        graph("Up", "1 where a server answered when it was last asked.", now("jmg_jupyter_up", "server", "min"), width=6),
        graph(
            "Requests by outcome",
            "Requests to each Jupyter server, by outcome.",
            often(f"{JUPYTER}_count", "server, outcome"),
            unit="reqps",
            width=6,
        ),
        graph(
            "Duration of requests",
            "How long each Jupyter server takes (95th percentile).",
            quantile("p95", JUPYTER, "server"),
            unit="s",
            width=6,
        ),
        graph(
            "Not answered",
            "Share of requests to a server that it did not answer.",
            share(f"{JUPYTER}_count", unanswered, ON, "server"),
            unit="percentunit",
            width=6,
            red=0.5,
        ),
    ]


def kept() -> list[Panel]:
    return [
        graph(
            "Ready",
            "1 where `/readyz` says ready, and where the store could be written.",
            now("jmg_ready", "instance", "min", legend="{{instance}} ready"),
            now("jmg_store_up", "instance", "min", legend="{{instance}} store"),
        ),
        graph(
            "Duration of statements",
            "How long the database takes (95th percentile).",
            quantile("p95", "jmg_store_operation_duration_seconds", "operation"),
            unit="s",
        ),
        graph(
            "Backlog",
            "Records that wait to be written, those of the audit among them.",
            now("jmg_store_backlog", "table"),
        ),
        graph(
            "Versions written",
            "Versions of documents a second.",
            often("jmg_history_versions_total", legend="written"),
            unit="wps",
            width=12,
        ),
        graph(
            "Given up",
            "Records that found no room because the database failed, and versions that could not be kept; 0 is right.",
            now("jmg_store_lost_total", "table"),
            now("jmg_history_lost_total", legend="versions"),
            width=12,
            red=1,
        ),
    ]


def process() -> list[Panel]:
    files = f"process_unix_file_descriptor_count{{{ON}}} / jmg_process_file_descriptor_max{{{ON}}}"
    return [
        graph("Memory", "Resident memory.", each("process_memory_usage_bytes"), unit="bytes"),
        graph("Processor", "Cores in use.", Query(rate("process_cpu_time_seconds_total"), "{{instance}}")),
        graph(
            "Open files",
            "Files and sockets, of those that the process may have.",
            Query(files, "{{instance}}"),
            unit="percentunit",
            red=0.9,
        ),
        graph(
            "Tasks",
            "Tasks that live, those that wait for a thread, and the threads that they run on.",
            Query(f"jmg_tokio_tasks{{{ON}}}", "{{instance}} alive"),
            Query(f"jmg_tokio_queue{{{ON}}}", "{{instance}} waiting"),
            Query(f"jmg_tokio_workers{{{ON}}}", "{{instance}} threads"),
        ),
        graph("Time since the start", "How long each gateway has run.", each("process_uptime_seconds"), unit="s"),
        graph(
            "Batches for the collector",
            "Traces, metrics and logs that were sent, by outcome.",
            often("jmg_telemetry_exports_total", "signal, outcome"),
            unit="reqps",
        ),
    ]


def tools() -> list[Panel]:
    count, failed = f"{OPERATIONS}_count", f'{TOOL},error_type!=""'
    errors = f"sort_desc(sum by ({OF_TOOL}, error_type) (increase({count}{{{failed}}}[$__range])))"
    times = {
        "p50": ("Median", "Half of the calls take less."),
        "p95": ("95th percentile", "One in twenty calls takes longer."),
        "p99": ("99th percentile", "One in a hundred calls takes longer."),
    }
    return [
        graph("Calls", "Calls a second.", often(count, OF_TOOL, TOOL), unit="reqps", width=12),
        graph(
            "Calls that fail",
            "Share of calls that end with an error of any kind.",
            share(count, failed, TOOL, OF_TOOL),
            unit="percentunit",
            width=12,
        ),
        *(graph(*words, quantile(name, OPERATIONS, OF_TOOL, TOOL), unit="s") for name, words in times.items()),
        table("Errors by tool and kind", "Errors of the time shown.", Query(errors)),
    ]
