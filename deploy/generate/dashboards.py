"""The dashboards: how the gateway is, and what each tool does."""

from panels import Panel, Query, Row, dashboard, variable

OPERATIONS = "mcp_server_operation_duration_seconds"
JUPYTER = "jmg_jupyter_request_duration_seconds"
ON = 'job=~"$job",instance=~"$instance"'
TOOL = f'{ON},gen_ai_tool_name=~"$tool"'
CALLS = f'{ON},mcp_method_name="tools/call"'


def rate(metric: str, labels: str) -> str:
    return f"rate({metric}{{{labels}}}[$__rate_interval])"


def quantiles(metric: str, labels: str, by: str = "") -> list[Query]:
    """Median, 95th and 99th percentile of a histogram."""
    group = f"le, {by}" if by else "le"
    legend = f"{{{{{by}}}}} " if by else ""
    return [
        Query(f"histogram_quantile({q}, sum by ({group}) ({rate(f'{metric}_bucket', labels)}))", f"{legend}p{name}")
        for q, name in (("0.5", "50"), ("0.95", "95"), ("0.99", "99"))
    ]


def share(metric: str, part: str, whole: str, by: str) -> Query:
    """The share of those with the labels `part`: 0, and not nothing, where there are none."""
    of_part, of_whole = (f"sum by ({by}) ({rate(metric, labels)})" for labels in (part, whole))
    return Query(f"({of_part} or {of_whole} * 0) / {of_whole}", f"{{{{{by}}}}}")


def all_dashboards() -> dict[str, dict]:
    job = variable("job", "Job", "label_values(jmg_build_info, job)")
    instance = variable("instance", "Instance", 'label_values(jmg_build_info{job=~"$job"}, instance)')
    tool = variable("tool", "Tool", f"label_values({OPERATIONS}_count{{{ON}}}, gen_ai_tool_name)")
    return {
        "gateway": dashboard(
            "jupyter-mcp-gateway",
            "Jupyter MCP gateway",
            "How the gateway is: what it is asked, what fails, what is refused, and how Jupyter answers.",
            [job, instance],
            [overview(), operations(), executions(), refusals(), limits(), jupyter(), kept(), process()],
        ),
        "tools": dashboard(
            "jupyter-mcp-gateway-tools",
            "Jupyter MCP gateway: tools",
            "What each tool does: how often it is called, how it ends, how long it takes.",
            [job, instance, tool],
            tools(),
        ),
    }


def overview() -> Row:
    internal = f'{ON},error_type="-32603"'
    failing = f"sum({rate(f'{OPERATIONS}_count', internal)}) or vector(0)"
    return Row(
        "Overview",
        [
            Panel("Up", "Gateways that answer Prometheus.", [Query('sum(up{job=~"$job"})')], kind="stat", width=4, height=4),
            Panel(
                "Operations",
                "MCP operations a second.",
                [Query(f"sum({rate(f'{OPERATIONS}_count', ON)})")],
                "reqps",
                "stat",
                4,
                4,
            ),
            Panel(
                "Internal errors",
                "Share of operations that failed because of the gateway (-32603); the alerts allow one in a thousand.",
                [Query(f"({failing}) / sum({rate(f'{OPERATIONS}_count', ON)})")],
                "percentunit",
                "stat",
                4,
                4,
                [(0.001, "orange"), (0.0144, "red")],
            ),
            Panel(
                "Open sessions",
                "MCP sessions of clients of the protocol up to 2025-11-25.",
                [Query(f"sum(jmg_mcp_sessions{{{ON}}})")],
                kind="stat",
                width=4,
                height=4,
            ),
            Panel(
                "Connections",
                "Open connections of clients.",
                [Query(f"sum(jmg_http_connections{{{ON}}})")],
                kind="stat",
                width=4,
                height=4,
            ),
            Panel(
                "Versions",
                "Gateways by version.",
                [Query(f"count by (version) (jmg_build_info{{{ON}}})", "{{version}}")],
                kind="stat",
                width=4,
                height=4,
            ),
        ],
    )


def operations() -> Row:
    errors = f'{ON},error_type!=""'
    return Row(
        "Operations",
        [
            Panel(
                "By method",
                "MCP operations a second, by method.",
                [Query(f"sum by (mcp_method_name) ({rate(f'{OPERATIONS}_count', ON)})", "{{mcp_method_name}}")],
                "reqps",
            ),
            Panel(
                "Errors by kind",
                "`tool_error` is what a tool answers to its caller, and what code raises; numbers are JSON-RPC errors.",
                [Query(f"sum by (error_type) ({rate(f'{OPERATIONS}_count', errors)})", "{{error_type}}")],
                "reqps",
            ),
            Panel(
                "Duration of calls",
                "How long calls of tools take, those that run code included.",
                quantiles(OPERATIONS, CALLS),
                "s",
            ),
            Panel(
                "Protocol versions",
                "MCP operations a second, by version of the protocol.",
                [Query(f"sum by (mcp_protocol_version) ({rate(f'{OPERATIONS}_count', ON)})", "{{mcp_protocol_version}}")],
                "reqps",
            ),
            Panel(
                "Resumed streams",
                "Clients that came back to a stream, by whether their last event was still kept.",
                [Query(f"sum by (hit) ({rate('jmg_events_replays_total', ON)})", "known: {{hit}}")],
                "reqps",
            ),
            Panel(
                "Length of sessions",
                "How long MCP sessions lived that ended.",
                quantiles("mcp_server_session_duration_seconds", ON),
                "s",
            ),
        ],
    )


def executions() -> Row:
    return Row(
        "Executions and documents",
        [
            Panel(
                "Executions",
                "Those that run, and those that wait for their turn.",
                [Query(f"sum by (state) (jmg_executions{{{ON}}})", "{{state}}")],
            ),
            Panel(
                "Oldest execution",
                "Age of the oldest execution that runs.",
                [Query(f"max(jmg_executions_oldest_age_seconds{{{ON}}})", "oldest")],
                "s",
            ),
            Panel(
                "How executions end",
                "Executions that ended, by status.",
                [Query(f"sum by (status) ({rate('jmg_execution_duration_seconds_count', ON)})", "{{status}}")],
                "reqps",
            ),
            Panel(
                "Wait for kernels",
                "From when code was asked to run until it was sent to its kernel, with the start of the kernel where that was needed.",
                quantiles("jmg_kernel_queue_duration_seconds", ON),
                "s",
            ),
            Panel(
                "Open documents by state",
                "In use, idle, or without a connection to Jupyter.",
                [Query(f"sum by (state) (jmg_rooms{{{ON}}})", "{{state}}")],
            ),
            Panel(
                "Share of all rooms",
                "Open documents of `sessions.max_open_rooms`.",
                [Query(f"sum by (instance) (jmg_rooms{{{ON}}}) / sum by (instance) (jmg_rooms_max{{{ON}}})", "{{instance}}")],
                "percentunit",
                thresholds=[(0.9, "red")],
            ),
        ],
    )


def refusals() -> Row:
    return Row(
        "Refused",
        [
            Panel(
                "Requests refused at the edge",
                "Before a tool was called: no token, a wrong Host, too large, limited.",
                [Query(f"sum by (reason) ({rate('jmg_http_rejections_total', ON)})", "{{reason}}")],
                "reqps",
            ),
            Panel(
                "Refused because of limits",
                "Requests answered with 429, by tenant and limit.",
                [Query(f"sum by (tenant, limit) ({rate('jmg_limits_refusals_total', ON)})", "{{tenant}} {{limit}}")],
                "reqps",
            ),
            Panel(
                "Connections closed by the gateway",
                "By reason: times that ran out, and places that were needed for others.",
                [Query(f"sum by (reason) ({rate('jmg_http_connections_closed_total', ON)})", "{{reason}}")],
                "reqps",
            ),
        ],
    )


def limits() -> Row:
    def used(limit: str) -> str:
        return f'sum by (tenant) (jmg_limits_used{{{ON},limit="{limit}"}})'

    return Row(
        "Tenants",
        [
            Panel(
                "Share of limits in use",
                "What a tenant has at this moment of what it may have.",
                [Query(f"max by (tenant, limit) (jmg_limits_used{{{ON}}} / jmg_limits_max{{{ON}}})", "{{tenant}} {{limit}}")],
                "percentunit",
                thresholds=[(0.9, "red")],
            ),
            Panel(
                "Running executions",
                "By tenant; those that wait do not count.",
                [Query(used("max_concurrent_executions"), "{{tenant}}")],
            ),
            Panel("Open documents", "Rooms, by tenant.", [Query(used("max_open_rooms"), "{{tenant}}")]),
        ],
    )


def jupyter() -> Row:
    unanswered = f'{ON},outcome=~"unreachable|timeout"'
    return Row(
        "Jupyter",
        [
            Panel(
                "Requests by outcome",
                "Requests to each Jupyter server, by outcome.",
                [Query(f"sum by (server, outcome) ({rate(f'{JUPYTER}_count', ON)})", "{{server}} {{outcome}}")],
                "reqps",
            ),
            Panel(
                "Duration of requests",
                "How long each Jupyter server takes (95th percentile).",
                quantiles(JUPYTER, ON, "server")[1:2],
                "s",
            ),
            Panel(
                "Not answered",
                "Share of requests to a server that it did not answer.",
                [share(f"{JUPYTER}_count", unanswered, ON, "server")],
                "percentunit",
                thresholds=[(0.5, "red")],
            ),
        ],
    )


def kept() -> Row:
    return Row(
        "Store",
        [
            Panel(
                "Ready",
                "1 where `/readyz` says ready, and where the store could be written.",
                [
                    Query(f"min by (instance) (jmg_ready{{{ON}}})", "{{instance}} ready"),
                    Query(f"min by (instance) (jmg_store_up{{{ON}}})", "{{instance}} store"),
                ],
            ),
            Panel(
                "Duration of statements",
                "How long the database takes (95th percentile).",
                quantiles("jmg_store_operation_duration_seconds", ON, "operation")[1:2],
                "s",
            ),
            Panel(
                "Backlog",
                "Records that wait to be written, those of the audit among them.",
                [Query(f"sum by (table) (jmg_store_backlog{{{ON}}})", "{{table}}")],
            ),
            Panel(
                "Versions written",
                "Versions of documents a second.",
                [Query(f"sum({rate('jmg_history_versions_total', ON)})", "written")],
                "wps",
                width=12,
            ),
            Panel(
                "Given up",
                "Records that found no room because the database failed, and versions that could not be kept; 0 is right.",
                [
                    Query(f"sum by (table) (jmg_store_lost_total{{{ON}}})", "{{table}}"),
                    Query(f"sum(jmg_history_lost_total{{{ON}}})", "versions"),
                ],
                width=12,
                thresholds=[(1, "red")],
            ),
        ],
    )


def process() -> Row:
    return Row(
        "Process",
        [
            Panel("Memory", "Resident memory.", [Query(f"process_memory_usage_bytes{{{ON}}}", "{{instance}}")], "bytes"),
            Panel(
                "Processor",
                "Cores in use.",
                [Query(rate("process_cpu_time_seconds_total", ON), "{{instance}}")],
            ),
            Panel(
                "Open files",
                "Files and sockets, of those that the process may have.",
                [Query(f"process_unix_file_descriptor_count{{{ON}}} / jmg_process_file_descriptor_max{{{ON}}}", "{{instance}}")],
                "percentunit",
                thresholds=[(0.9, "red")],
            ),
            Panel(
                "Tasks",
                "Tasks that live, and those that wait for a thread.",
                [
                    Query(f"jmg_tokio_tasks{{{ON}}}", "{{instance}} alive"),
                    Query(f"jmg_tokio_queue{{{ON}}}", "{{instance}} waiting"),
                ],
            ),
            Panel("Time since the start", "", [Query(f"process_uptime_seconds{{{ON}}}", "{{instance}}")], "s"),
            Panel(
                "Batches for the collector",
                "Traces, metrics and logs that were sent, by outcome.",
                [Query(f"sum by (signal, outcome) ({rate('jmg_telemetry_exports_total', ON)})", "{{signal}} {{outcome}}")],
                "reqps",
            ),
        ],
    )


def tools() -> list[Row]:
    failed = f'{TOOL},error_type!=""'
    by_tool = "sum by (gen_ai_tool_name)"
    return [
        Row(
            "Tools",
            [
                Panel(
                    "Calls",
                    "Calls a second.",
                    [Query(f"{by_tool} ({rate(f'{OPERATIONS}_count', TOOL)})", "{{gen_ai_tool_name}}")],
                    "reqps",
                    width=12,
                ),
                Panel(
                    "Calls that fail",
                    "Share of calls that end with an error of any kind.",
                    [share(f"{OPERATIONS}_count", failed, TOOL, "gen_ai_tool_name")],
                    "percentunit",
                    width=12,
                ),
                Panel(
                    "Median",
                    "Half of the calls take less.",
                    quantiles(OPERATIONS, TOOL, "gen_ai_tool_name")[:1],
                    "s",
                ),
                Panel(
                    "95th percentile",
                    "One in twenty calls takes longer.",
                    quantiles(OPERATIONS, TOOL, "gen_ai_tool_name")[1:2],
                    "s",
                ),
                Panel(
                    "99th percentile",
                    "One in a hundred calls takes longer.",
                    quantiles(OPERATIONS, TOOL, "gen_ai_tool_name")[2:],
                    "s",
                ),
                Panel(
                    "Errors by tool and kind",
                    "Errors of the time shown.",
                    [
                        Query(
                            f"sort_desc(sum by (gen_ai_tool_name, error_type) (increase({OPERATIONS}_count{{{failed}}}[$__range])))",
                        )
                    ],
                    kind="table",
                    width=24,
                ),
            ],
        )
    ]
