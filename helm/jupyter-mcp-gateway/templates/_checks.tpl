{{/*
What cannot work is refused here with a sentence that says what to do. What is misspelt or of the wrong type was refused by
values.schema.json before, and the rest is found by `check-config` in the init container.
*/}}
{{- define "gateway.check" -}}
{{- include "gateway.checkConfig" . -}}
{{- include "gateway.checkSecrets" . -}}
{{- include "gateway.checkStore" . -}}
{{- include "gateway.checkReplicas" . -}}
{{- include "gateway.checkFront" . -}}
{{- end -}}

{{- define "gateway.checkConfig" -}}
{{- $http := .Values.config.http | default dict -}}
{{- $auth := .Values.config.auth | default dict -}}
{{- range $key, $value := dict "listen" "service.port" "metrics_listen" "metrics.port" "tls_cert" "tls.secretName" "tls_key" "tls.secretName" -}}
{{- if hasKey $http $key -}}
{{- fail (printf "config.http.%s: the chart sets it; use %s instead" $key $value) -}}
{{- end -}}
{{- end -}}
{{- if and (empty .Values.config.servers) (empty $auth.jupyterhub) -}}
{{- fail "config.servers: name at least one Jupyter server, with name, url and token_env (or set config.auth.jupyterhub)" -}}
{{- end -}}
{{- if not (or $auth.tokens $auth.jwt $auth.jupyterhub (dig "jupyter" "enabled" false $auth) (dig "oauth" "enabled" false $auth)) -}}
{{- fail "config.auth: nobody could log in; add config.auth.tokens (jupyter-mcp-gateway token new --name N prints one), jwt or jupyterhub" -}}
{{- end -}}
{{- if and $auth.tokens (empty .Values.config.tenants) -}}
{{- fail "config.tenants: add at least one, and name it as `tenant` of each of config.auth.tokens" -}}
{{- end -}}
{{- end -}}

{{/* Whatever is in the values is in the ConfigMap and in the release's history, for everybody who may read those. */}}
{{- define "gateway.checkSecrets" -}}
{{- $auth := .Values.config.auth | default dict -}}
{{- $store := .Values.config.store | default dict -}}
{{- $events := .Values.config.events | default dict -}}
{{- range $i, $server := .Values.config.servers -}}
{{- if $server.token -}}
{{- fail (printf "config.servers[%d].token: a token does not belong into the values; put it into a Secret, name that in secretEnv and the variable in token_env" $i) -}}
{{- end -}}
{{- if and $server.token_env (not (hasKey $.Values.secretEnv $server.token_env)) -}}
{{- fail (printf "config.servers[%d].token_env: there is no variable %s; add it to secretEnv, as `%s: {name: SECRET, key: KEY}`" $i $server.token_env $server.token_env) -}}
{{- end -}}
{{- end -}}
{{- range $i, $token := $auth.tokens -}}
{{- if $token.token -}}
{{- fail (printf "config.auth.tokens[%d].token: a token does not belong into the values; give its `sha256`, which `jupyter-mcp-gateway token new` prints" $i) -}}
{{- end -}}
{{- end -}}
{{- if dig "jwt" "secret" "" $auth -}}
{{- fail "config.auth.jwt.secret: a secret does not belong into the values; put it into a Secret and name that in secretEnv as JMG__AUTH__JWT__SECRET" -}}
{{- end -}}
{{- range $key := list "client_secret_env" "encryption_key_env" -}}
{{- with dig "oauth" $key "" $auth -}}
{{- if not (hasKey $.Values.secretEnv .) -}}
{{- fail (printf "config.auth.oauth.%s: there is no variable %s; add it to secretEnv, as `%s: {name: SECRET, key: KEY}`" $key . .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if hasKey $store "url" -}}
{{- fail "config.store.url: the chart sets it from store.type; for PostgreSQL put the URL into a Secret and name it in store.postgres.secretName" -}}
{{- end -}}
{{- if or $events.url (hasKey .Values.secretEnv "JMG__EVENTS__URL") -}}
{{- fail "config.events.url: this version of the gateway keeps resumable streams in memory; leave it empty, and with several replicas set stickiness" -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if regexMatch "(?i)(token|password|secret|store__url)$" .name -}}
{{- if .value -}}
{{- fail (printf "extraEnv: %s looks like a secret; take it from a Secret with secretEnv" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gateway.checkStore" -}}
{{- if and (eq .Values.store.type "postgres") (not .Values.store.postgres.secretName) -}}
{{- fail "store.postgres.secretName: name the Secret that holds the database's URL" -}}
{{- end -}}
{{- if and (ne .Values.store.type "postgres") .Values.store.postgres.secretName -}}
{{- fail "store.postgres.secretName: it is set, but store.type is not postgres" -}}
{{- end -}}
{{- if and .Values.extraCA.configMap .Values.extraCA.secret -}}
{{- fail "extraCA: set configMap or secret, not both" -}}
{{- end -}}
{{- end -}}

{{- define "gateway.checkReplicas" -}}
{{- if include "gateway.several" . -}}
{{- if ne .Values.store.type "postgres" -}}
{{- fail (printf "replicas: more than one gateway needs a store that they share, and store.type is %s; set store.type to postgres, or replicas to 1 and autoscaling.enabled to false" .Values.store.type) -}}
{{- end -}}
{{- if not .Values.stickiness -}}
{{- fail "stickiness: sessions of the MCP protocol up to 2025-11-25 and their streams live in one replica, so requests with one token must reach the same one; set it to ingress-nginx, client-ip or external, see the chart's README" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling: minReplicas is more than maxReplicas" -}}
{{- end -}}
{{- else if .Values.podDisruptionBudget.enabled -}}
{{- fail "podDisruptionBudget.enabled: with one replica there is nothing to keep while a node is drained; set replicas to 2 or more" -}}
{{- end -}}
{{- if and (eq .Values.stickiness "client-ip") (or .Values.ingress.enabled .Values.httpRoute.enabled) -}}
{{- fail "stickiness: client-ip is done by the Service, which ingress controllers and gateways pass by; set it to ingress-nginx, or to external if yours hashes by the Authorization header" -}}
{{- end -}}
{{- if and (eq .Values.stickiness "ingress-nginx") (not (and .Values.ingress.enabled (eq .Values.ingress.controller "nginx"))) -}}
{{- fail "stickiness: ingress-nginx needs ingress.enabled and ingress.controller nginx" -}}
{{- end -}}
{{- end -}}

{{- define "gateway.checkFront" -}}
{{- $http := .Values.config.http | default dict -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host: name the host by which clients call the gateway" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: name the Gateway that the route belongs to" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.hostnames) -}}
{{- fail "httpRoute.hostnames: name the hosts by which clients call the gateway" -}}
{{- end -}}
{{- if and (or .Values.ingress.enabled .Values.httpRoute.enabled) (empty $http.trusted_proxies) -}}
{{- fail "config.http.trusted_proxies: name the addresses of the ingress controller's pods, such as [10.0.0.0/8]; else all clients count as one address, which may have 256 connections and 100 failed logins a minute" -}}
{{- end -}}
{{- if and .Values.tls.secretName .Values.ingress.enabled (ne .Values.ingress.controller "nginx") -}}
{{- fail "tls.secretName: only for ingress.controller nginx does the chart know how to have an ingress speak TLS to the gateway; leave it to the ingress, or set ingress.enabled to false" -}}
{{- end -}}
{{- if eq (int .Values.service.port) (int .Values.metrics.port) -}}
{{- fail "metrics.port: it is the port of the service too; choose another" -}}
{{- end -}}
{{- if eq (int .Values.metrics.port) 8585 -}}
{{- fail "metrics.port: the gateway itself listens on 8585 in the pod; choose another" -}}
{{- end -}}
{{- $drain := $http.drain_timeout | default "20s" -}}
{{- if regexMatch "^[0-9]+s$" $drain -}}
{{- $least := add (int .Values.preStopSleepSeconds) (trimSuffix "s" $drain | int) 5 -}}
{{- if lt (int .Values.terminationGracePeriodSeconds) (int $least) -}}
{{- fail (printf "terminationGracePeriodSeconds: %d is less than preStopSleepSeconds + http.drain_timeout + 5; set it to %d or more, else running calls are cut off" (int .Values.terminationGracePeriodSeconds) $least) -}}
{{- end -}}
{{- end -}}
{{- end -}}
