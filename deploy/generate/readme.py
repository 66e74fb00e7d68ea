"""The chart's README, with a table of its values as helm-docs writes it."""

import re
from pathlib import Path

KEY = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]+):(?: (?P<default>.*))?$")


def chart_readme(template: Path, values: Path) -> str:
    rows = [f"| {key} | {code(default)} | {text} |" for key, default, text in described(values.read_text("utf-8"))]
    table = "\n".join(["| Key | Default | Description |", "| --- | --- | --- |", *rows])
    return template.read_text("utf-8").replace("{{ values }}", table)


def code(text: str) -> str:
    return f"`{text}`" if text else "see values.yaml"


def described(values: str) -> list[tuple[str, str, str]]:
    """Key, default and description of every value with a comment that begins with `--`."""
    path: list[str] = []
    comment: list[str] = []
    found = []
    for line in values.splitlines():
        stripped = line.strip()
        if stripped.startswith("# --"):
            comment = [stripped.removeprefix("# --").strip()]
        elif stripped.startswith("#"):
            if comment:
                comment.append(stripped.removeprefix("#").strip())
        elif match := KEY.match(line):
            depth = len(match["indent"]) // 2
            path = [*path[:depth], match["key"]]
            if comment:
                found.append((".".join(path), match["default"] or "", " ".join(comment).replace("|", "\\|")))
            comment = []
        else:
            comment = []
    return found
