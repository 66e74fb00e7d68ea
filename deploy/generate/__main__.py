"""Writes what is derived: the chart's schema and README, and the dashboards. `--check` only says what is not up to date.

Needs Python 3 and nothing else: `make generate`.
"""

import json
import sys
from pathlib import Path

import dashboards
import readme
import schema

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "jupyter-mcp-gateway"


def outputs() -> dict[Path, str]:
    """Every derived file and its content."""
    files = {
        CHART / "values.schema.json": as_json(schema.values_schema(ROOT / "config" / "default.toml")),
        CHART / "README.md": readme.chart_readme(CHART / "README.md.in", CHART / "values.yaml"),
    }
    for name, dashboard in dashboards.all_dashboards().items():
        files[CHART / "dashboards" / f"{name}.json"] = as_json(dashboard)
    return files


def as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    stale = [path for path, text in outputs().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not up to date: run `make generate`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(outputs()[path], "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


sys.exit(main())
