"""Parts of Grafana dashboards: panels on a grid, with the queries that they show."""

from dataclasses import dataclass

WIDTH = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Query:
    """A PromQL expression and how its series are called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """A panel; `unit` is one of Grafana's, such as `s`, `reqps`, `percentunit`, `short`."""

    kind: str
    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str
    width: int
    height: int
    thresholds: list[tuple[float, str]]

    def as_json(self, number: int, x: int, y: int) -> dict:
        steps = [{"color": "green", "value": None}]
        steps += [{"color": color, "value": value} for value, color in self.thresholds]
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "fieldConfig": {
                "defaults": {
                    "unit": self.unit,
                    "min": 0,
                    "thresholds": {"mode": "absolute", "steps": steps},
                    "custom": CUSTOM.get(self.kind, {}),
                },
                "overrides": [],
            },
            "options": OPTIONS[self.kind],
            "targets": [
                {
                    "refId": chr(ord("A") + index),
                    "datasource": DATASOURCE,
                    "expr": query.expr,
                    "legendFormat": query.legend or "__auto",
                    "range": self.kind == "timeseries",
                    "instant": self.kind != "timeseries",
                    "format": "table" if self.kind == "table" else "time_series",
                }
                for index, query in enumerate(self.queries)
            ],
        }


CUSTOM = {"timeseries": {"drawStyle": "line", "fillOpacity": 10, "lineWidth": 1, "showPoints": "never"}}
OPTIONS = {
    "timeseries": {
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "area",
        "textMode": "auto",
    },
    "table": {"showHeader": True},
}


def graph(
    title: str, description: str, *queries: Query, unit: str = "short", width: int = 8, red: float | None = None
) -> Panel:
    """Lines over time, with a value from which on they are red."""
    thresholds = [] if red is None else [(red, "red")]
    return Panel("timeseries", title, description, queries, unit, width, 8, thresholds)


def stat(
    title: str, description: str, query: Query, unit: str = "short", thresholds: list[tuple[float, str]] | None = None
) -> Panel:
    """One number."""
    return Panel("stat", title, description, (query,), unit, 4, 4, thresholds or [])


def table(title: str, description: str, query: Query) -> Panel:
    """A table as wide as the dashboard."""
    return Panel("table", title, description, (query,), "short", WIDTH, 8, [])


@dataclass(frozen=True)
class Row:
    title: str
    panels: list[Panel]


def dashboard(uid: str, title: str, description: str, variables: list[dict], rows: list[Row]) -> dict:
    """A dashboard with its panels from left to right, row by row."""
    panels: list[dict] = []
    y = 0
    for row in rows:
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": y},
                "panels": [],
            }
        )
        y += 1
        x = height = 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            panels.append(panel.as_json(len(panels) + 1, x, y))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["jupyter-mcp-gateway"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [datasource(), *variables]},
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    }


def datasource() -> dict:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}


def variable(name: str, label: str, query: str) -> dict:
    """A variable with the values of a label, all of them by default."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
    }
