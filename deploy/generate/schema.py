"""The chart's values.schema.json: its own values, and every key of config/default.toml."""

import json
import re
from pathlib import Path

STRING = {"type": "string"}
BOOL = {"type": "boolean"}
MAP = {"type": "object"}
STRINGS = {"type": "object", "additionalProperties": STRING}
OBJECTS = {"type": "array", "items": {"type": "object"}}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
COUNT = {"type": "integer", "minimum": 1}
DNS_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
NAME = {"type": "string", "minLength": 1, "pattern": DNS_NAME}
NAME_OR_NONE = {"type": "string", "pattern": f"^$|{DNS_NAME}"}
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
DURATION = {"type": "string", "pattern": r"^\s*([0-9]+\s*[a-z]+\s*)+$"}

# What default.toml does not tell of its keys.
KNOWN = {
    "servers.name": {"pattern": "^[a-z0-9-]+$"},
    "servers.url": {"pattern": "^https?://"},
    "servers.public_url": {"pattern": "^$|^https?://"},
    "http.public_url": {"pattern": "^$|^https?://"},
    "tenants.permissions": {"items": {"enum": ["read", "write", "execute", "admin"]}},
    "tenants.review": {"enum": ["off", "required"]},
    "auth.tokens.permissions": {"items": {"enum": ["read", "write", "execute", "admin"]}},
    "auth.tokens.sha256": {"pattern": "^[0-9a-fA-F]{64}$"},
    "telemetry.log_format": {"enum": ["auto", "pretty", "json"]},
    "events.url": {"pattern": "^$|^rediss?://"},
}
REQUIRED = {
    "servers": ["name", "url"],
    "tenants": ["name"],
    "auth.tokens": ["name", "tenant"],
    "auth.jwt": ["issuer", "audience"],
    "auth.jupyterhub": ["url", "tenant"],
}


def closed(properties: dict, **more: object) -> dict:
    """An object that has no other keys."""
    return {"type": "object", "additionalProperties": False, "properties": properties, **more}


def one_of(*values: str) -> dict:
    return {"type": "string", "enum": list(values)}


def values_schema(default_toml: Path) -> dict:
    reference = closed({"name": NAME, "key": {"type": "string", "minLength": 1}}, required=["name", "key"])
    mount = closed({"name": NAME, "mountPath": {"type": "string", "pattern": "^/."}}, required=["name", "mountPath"])
    variable = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "pattern": VARIABLE}, "value": STRING},
    }
    user = {"type": ["integer", "null"], "minimum": 1}
    schema = closed(
        {
            "global": MAP,
            "nameOverride": STRING,
            "fullnameOverride": STRING,
            "commonLabels": STRINGS,
            "image": closed(
                {
                    "repository": {"type": "string", "minLength": 1},
                    "tag": STRING,
                    "digest": {"type": "string", "pattern": "^$|^sha256:[0-9a-f]{64}$"},
                    "pullPolicy": one_of("Always", "IfNotPresent", "Never"),
                }
            ),
            "imagePullSecrets": {"type": "array", "items": closed({"name": NAME}, required=["name"])},
            "config": config_schema(default_toml),
            "secretEnv": {"type": "object", "propertyNames": {"pattern": VARIABLE}, "additionalProperties": reference},
            "secretMounts": {"type": "array", "items": mount},
            "extraEnv": {"type": "array", "items": variable},
            "extraVolumes": OBJECTS,
            "extraVolumeMounts": OBJECTS,
            "extraCA": closed({"configMap": NAME_OR_NONE, "secret": NAME_OR_NONE}),
            "store": store_schema(),
            "replicas": COUNT,
            "stickiness": one_of("", "ingress-nginx", "client-ip", "external"),
            "autoscaling": closed(
                {
                    "enabled": BOOL,
                    "minReplicas": COUNT,
                    "maxReplicas": COUNT,
                    "targetCPUUtilizationPercentage": {"type": "integer", "minimum": 1, "maximum": 100},
                }
            ),
            "podDisruptionBudget": closed({"enabled": BOOL, "maxUnavailable": {"type": ["integer", "string"]}}),
            **front_schema(),
            "preStopSleepSeconds": {"type": "integer", "minimum": 0, "maximum": 300},
            "terminationGracePeriodSeconds": {"type": "integer", "minimum": 5},
            "probes": closed(
                dict.fromkeys(["periodSeconds", "timeoutSeconds", "failureThreshold", "startupFailureThreshold"], COUNT)
            ),
            "metrics": metrics_schema(),
            "networkPolicy": closed({"enabled": BOOL, "from": OBJECTS, "metricsFrom": OBJECTS, "egress": OBJECTS}),
            "serviceAccount": closed({"create": BOOL, "name": NAME_OR_NONE, "annotations": STRINGS}),
            "resources": closed({"requests": MAP, "limits": MAP, "claims": OBJECTS}),
            "podAnnotations": STRINGS,
            "podLabels": STRINGS,
            "nodeSelector": STRINGS,
            "tolerations": OBJECTS,
            "affinity": MAP,
            "topologySpreadConstraints": OBJECTS,
            "priorityClassName": NAME_OR_NONE,
            "podSecurityContext": closed({"runAsUser": user, "runAsGroup": user, "fsGroup": user}),
        }
    )
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of jupyter-mcp-gateway", **schema}


def store_schema() -> dict:
    return closed(
        {
            "type": one_of("embedded", "postgres", "memory"),
            "embedded": closed(
                {
                    "size": {"type": "string", "pattern": r"^[0-9.]+([KMGTP]i?)?$"},
                    "storageClassName": NAME_OR_NONE,
                    "existingClaim": NAME_OR_NONE,
                    "retain": BOOL,
                }
            ),
            "postgres": closed({"secretName": NAME_OR_NONE, "key": {"type": "string", "minLength": 1}}),
        }
    )


def front_schema() -> dict:
    """What is in front of the gateway."""
    parent = closed(
        {"group": STRING, "kind": STRING, "namespace": NAME, "name": NAME, "sectionName": NAME, "port": PORT},
        required=["name"],
    )
    return {
        "service": closed(
            {
                "type": one_of("ClusterIP", "NodePort", "LoadBalancer"),
                "port": PORT,
                "annotations": STRINGS,
                "listen": one_of("ipv4", "ipv6"),
            }
        ),
        "tls": closed({"secretName": NAME_OR_NONE}),
        "ingress": closed(
            {
                "enabled": BOOL,
                "className": NAME_OR_NONE,
                "controller": one_of("nginx", "traefik", "other"),
                "host": NAME_OR_NONE,
                "tlsSecretName": NAME_OR_NONE,
                "tlsElsewhere": BOOL,
                "annotations": STRINGS,
            }
        ),
        "httpRoute": closed(
            {
                "enabled": BOOL,
                "parentRefs": {"type": "array", "items": parent},
                "hostnames": {"type": "array", "items": NAME},
                "tls": BOOL,
                "annotations": STRINGS,
            }
        ),
    }


def metrics_schema() -> dict:
    return closed(
        {
            "port": PORT,
            "serviceMonitor": closed(
                {"enabled": BOOL, "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"}, "labels": STRINGS}
            ),
            "prometheusRule": closed({"enabled": BOOL, "labels": STRINGS, "runbookUrl": STRING}),
            "dashboards": closed({"enabled": BOOL, "labels": STRINGS, "annotations": STRINGS}),
        }
    )


def config_schema(default_toml: Path) -> dict:
    """Every section and key of default.toml, its examples included."""
    root: dict = {"properties": {}}
    section, path = root, ""
    for line in default_toml.read_text("utf-8").splitlines():
        # "# " begins an explanation, "#" alone an example.
        line = line if line.startswith("# ") or line == "#" else line.removeprefix("#")
        if line.startswith("["):
            path = line.strip("[]")
            section = section_of(root, path, is_list=line.startswith("[["))
        elif " = " in line and not line.startswith("#"):
            key, _, value = line.partition(" = ")
            section["properties"].setdefault(key, key_schema(f"{path}.{key}", parsed(value)))
    return closed(root["properties"])


def parsed(value: str) -> object:
    """A value of default.toml, which is one of JSON but for strings in single quotes."""
    return json.loads(re.sub(r"'[^']*'", '""', value))


def section_of(root: dict, path: str, is_list: bool) -> dict:
    """The schema of a section's table, made if it is not there; all parts of a path but the last exist or are tables."""
    node = root
    parts = path.split(".")
    for depth, part in enumerate(parts, 1):
        name, last = ".".join(parts[:depth]), depth == len(parts)
        if part not in node["properties"]:
            table = closed({})
            if name in REQUIRED:
                table["required"] = REQUIRED[name]
            node["properties"][part] = {"type": "array", "items": table} if last and is_list else table
        node = node["properties"][part]
        node = node.get("items", node)
    return node


def key_schema(path: str, shown: object) -> dict:
    if isinstance(shown, bool):
        schema = dict(BOOL)
    elif isinstance(shown, int):
        schema = {"type": "integer", "minimum": 0}
    elif isinstance(shown, list):
        schema = {"type": "array", "items": STRING}
    elif shown[:1].isdigit() and shown[-1:] in "smhd" and shown[:-1].isdigit():
        schema = dict(DURATION)
    else:
        schema = dict(STRING)
    return {**schema, **KNOWN.get(path, {})}
