{{/* gateway.toml: what the values say, and what the chart knows better. */}}

{{/* The names by which clients reach the gateway, as JSON: those of the Service, and of what is in front of it. */}}
{{- define "gateway.hosts" -}}
{{- $name := include "gateway.fullname" . -}}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- if .Values.ingress.enabled -}}{{- $hosts = append $hosts .Values.ingress.host -}}{{- end -}}
{{- if .Values.httpRoute.enabled -}}{{- $hosts = concat $hosts .Values.httpRoute.hostnames -}}{{- end -}}
{{- $http := .Values.config.http | default dict -}}
{{- concat $hosts ($http.allowed_hosts | default list) | uniq | toRawJson -}}
{{- end -}}

{{- define "gateway.publicUrl" -}}
{{- $http := .Values.config.http | default dict -}}
{{- if $http.public_url -}}
{{- $http.public_url -}}
{{- else if .Values.ingress.enabled -}}
{{- printf "%s://%s/" (ternary "https" "http" (or (ne .Values.ingress.tlsSecretName "") .Values.ingress.tlsElsewhere)) .Values.ingress.host -}}
{{- else if and .Values.httpRoute.enabled .Values.httpRoute.hostnames -}}
{{- printf "%s://%s/" (ternary "https" "http" .Values.httpRoute.tls) (first .Values.httpRoute.hostnames) -}}
{{- end -}}
{{- end -}}

{{- define "gateway.toml" -}}
{{- $config := deepCopy .Values.config -}}
{{- $http := $config.http | default dict -}}
{{- $address := ternary "[::]" "0.0.0.0" (eq .Values.service.listen "ipv6") -}}
{{- $_ := set $http "listen" (printf "%s:8585" $address) -}}
{{- $_ := set $http "metrics_listen" (printf "%s:%d" $address (int .Values.metrics.port)) -}}
{{- $_ := set $http "allowed_hosts" (include "gateway.hosts" . | fromJsonArray) -}}
{{- with include "gateway.publicUrl" . }}{{- $_ := set $http "public_url" . -}}{{- end -}}
{{- if .Values.tls.secretName -}}
{{- $_ := set $http "tls_cert" "/etc/jupyter-mcp-gateway/tls/tls.crt" -}}
{{- $_ := set $http "tls_key" "/etc/jupyter-mcp-gateway/tls/tls.key" -}}
{{- end -}}
{{- $_ := set $config "http" $http -}}
{{- $store := $config.store | default dict -}}
{{- if eq .Values.store.type "embedded" -}}
{{- $_ := set $store "url" "sqlite:///var/lib/jupyter-mcp-gateway/gateway.db" -}}
{{- else if eq .Values.store.type "memory" -}}
{{- $_ := set $store "url" "sqlite::memory:" -}}
{{- end -}}
{{- if $store }}{{- $_ := set $config "store" $store -}}{{- end -}}
# Made by the chart from `config` of its values.
{{- include "toml.table" (dict "path" "" "table" $config) }}
{{- end -}}
