"""Validates Kubernetes objects and writes them as JSON: validate.py FILE...

A file is what `helm template` prints. Built-in kinds are held against the schemas of Kubernetes, custom ones against those in
custom-resources.json. Whatever is wrong goes to stderr and makes it fail. An array is written with the objects of each file.
"""

import json
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

VERSION = "1.37"
CUSTOM = json.loads((Path(__file__).parent / "custom-resources.json").read_text("utf-8"))


def problem(thing: dict) -> str | None:
    try:
        if schema := CUSTOM.get(thing["kind"]):
            jsonschema.validate(thing, schema)
        else:
            kubernetes_validate.validate(thing, VERSION, strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
        return f"{'.'.join(str(part) for part in error.path)}: {error.message}"
    except Exception as error:  # noqa: BLE001: whatever it is, it is about this object
        return repr(error)
    return None


def main() -> int:
    files, failed = [], 0
    for name in sys.argv[1:]:
        things = [thing for thing in yaml.safe_load_all(Path(name).read_text("utf-8")) if thing]
        names = [(thing["kind"], thing["metadata"]["name"]) for thing in things]
        for twice in {one for one in names if names.count(one) > 1}:
            print(f"{name}: {twice} is there twice", file=sys.stderr)
            failed = 1
        for thing in things:
            if why := problem(thing):
                print(f"{name}: {thing['kind']} {thing['metadata']['name']}: {why}", file=sys.stderr)
                failed = 1
        files.append(things)
    json.dump(files, sys.stdout)
    return failed


sys.exit(main())
