"""Lists what dashboards and alerts ask Prometheus, as JSON: queries.py CHART.

Each query has where it is from, the expression with Grafana's variables replaced, and the metrics and labels that it names.
An expression that does not parse makes it fail.
"""

import json
import re
import sys
from pathlib import Path

import promql_parser
import yaml

VARIABLES = {"$__rate_interval": "1m", "$__range": "1m"}
FILTER = re.compile(r"\$[a-z]+")


def queries(chart: Path):
    for file in sorted((chart / "dashboards").glob("*.json")):
        board = json.loads(file.read_text("utf-8"))
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                legend = re.findall(r"{{(\w+)}}", target["legendFormat"])
                yield f"{file.name}: {panel['title']}", target["expr"], legend
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
                yield f"{file.name}: ${variable['name']}", found[1], [found[2]]
    for group in yaml.safe_load((chart / "rules" / "alerts.yaml").read_text("utf-8"))["groups"]:
        for rule in group["rules"]:
            used = re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
            yield f"alert {rule['alert']}", rule["expr"], used


def plain(expr: str) -> str:
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    return FILTER.sub(".*", expr)


def selectors(node):
    """Every vector selector of an expression, with the labels that those around it group by."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node.name, {matcher.name for matcher in node.matchers.matchers}
        return
    modifier = getattr(node, "modifier", None)
    labels = set(getattr(modifier, "labels", None) or [])
    for name in ("expr", "lhs", "rhs", "vector_selector"):
        child = getattr(node, name, None)
        if child is not None:
            yield from ((metric, own | labels) for metric, own in selectors(child))
    for child in getattr(node, "args", None) or []:
        yield from ((metric, own | labels) for metric, own in selectors(child))


def main() -> int:
    found, failed = [], 0
    for source, expr, labels in queries(Path(sys.argv[1])):
        expr = plain(expr)
        try:
            tree = promql_parser.parse(expr)
        except ValueError as error:
            print(f"{source}: {error}: {expr}", file=sys.stderr)
            failed = 1
            continue
        metrics = [{"name": name, "labels": sorted(own | set(labels))} for name, own in selectors(tree)]
        found.append({"source": source, "expr": expr, "metrics": metrics})
    json.dump(found, sys.stdout)
    return failed


sys.exit(main())
