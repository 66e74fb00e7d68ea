"""Writes a YAML file as JSON: yaml_json.py FILE."""

import json
import sys
from pathlib import Path

import yaml

json.dump(yaml.safe_load(Path(sys.argv[1]).read_text("utf-8")), sys.stdout)
