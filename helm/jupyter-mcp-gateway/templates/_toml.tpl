{{/*
Writes values as TOML: `include "toml.table" (dict "path" "" "table" .Values.config)`. Helm's own toToml makes
floating-point numbers of whole ones, which YAML does not tell apart.
*/}}

{{- define "toml.key" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . -}}{{ . }}{{- else -}}{{ toRawJson . }}{{- end -}}
{{- end -}}

{{/* A value on one line. */}}
{{- define "toml.value" -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- else if kindIs "slice" . -}}
{{- $items := list -}}
{{- range . }}{{ $items = append $items (include "toml.value" .) }}{{ end -}}
[{{ join ", " $items }}]
{{- else if kindIs "map" . -}}
{{- $items := list -}}
{{- range $key, $value := . }}{{ $items = append $items (printf "%s = %s" (include "toml.key" $key) (include "toml.value" $value)) }}{{ end -}}
{ {{- join ", " $items -}} }
{{- else -}}
{{ toRawJson . }}
{{- end -}}
{{- end -}}

{{/* Whether a value becomes tables of its own: "one", "many" or nothing. */}}
{{- define "toml.tables" -}}
{{- if kindIs "map" . -}}one
{{- else if and (kindIs "slice" .) (not (empty .)) -}}
{{- if kindIs "map" (first .) -}}many{{- end -}}
{{- end -}}
{{- end -}}

{{- define "toml.table" -}}
{{- $path := .path -}}
{{- range $key, $value := .table -}}
{{- if and (not (kindIs "invalid" $value)) (not (include "toml.tables" $value)) }}
{{ include "toml.key" $key }} = {{ include "toml.value" $value }}
{{- end -}}
{{- end -}}
{{- range $key, $value := .table -}}
{{- $name := printf "%s%s" $path (include "toml.key" $key) -}}
{{- $tables := include "toml.tables" $value -}}
{{- if eq $tables "one" }}

[{{ $name }}]
{{- include "toml.table" (dict "path" (printf "%s." $name) "table" $value) -}}
{{- else if eq $tables "many" -}}
{{- range $value }}

[[{{ $name }}]]
{{- include "toml.table" (dict "path" (printf "%s." $name) "table" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
