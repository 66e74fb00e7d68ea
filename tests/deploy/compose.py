"""Validates a compose file with the schema of the docker compose in a wheel, and writes it as JSON: compose.py WHEEL_FOLDER FILE."""

import json
import sys
import zipfile
from pathlib import Path

import jsonschema
import yaml

(wheel,) = Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as files:
    schema = json.loads(files.read("compose/config/compose_spec.json"))
# The one key in use that is younger than the schema.
schema["properties"]["name"] = {"type": "string"}
compose = yaml.safe_load(Path(sys.argv[2]).read_text("utf-8"))
problems = list(jsonschema.Draft7Validator(schema).iter_errors(compose))
for problem in problems:
    print(f"{'.'.join(str(part) for part in problem.path)}: {problem.message}", file=sys.stderr)
json.dump(compose, sys.stdout)
sys.exit(1 if problems else 0)
