{{/* The pod, which is the same in a Deployment and in a StatefulSet. */}}

{{- define "gateway.env" -}}
{{- range $name, $ref := .Values.secretEnv }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $ref.name }}
      key: {{ $ref.key }}
{{- end }}
{{- if eq .Values.store.type "postgres" }}
- name: JMG__STORE__URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.store.postgres.secretName }}
      key: {{ .Values.store.postgres.key }}
{{- end }}
{{- if or .Values.extraCA.configMap .Values.extraCA.secret }}
- name: SSL_CERT_DIR
  value: /etc/ssl/certs:/etc/jupyter-mcp-gateway/extra-ca
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gateway.mounts" -}}
- name: config
  mountPath: /etc/jupyter-mcp-gateway/config
  readOnly: true
- name: data
  mountPath: /var/lib/jupyter-mcp-gateway
- name: tmp
  mountPath: /tmp
{{- if .Values.tls.secretName }}
- name: tls
  mountPath: /etc/jupyter-mcp-gateway/tls
  readOnly: true
{{- end }}
{{- if or .Values.extraCA.configMap .Values.extraCA.secret }}
- name: extra-ca
  mountPath: /etc/jupyter-mcp-gateway/extra-ca
  readOnly: true
{{- end }}
{{- range $i, $mount := .Values.secretMounts }}
- name: secret-{{ $i }}
  mountPath: {{ $mount.mountPath }}
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gateway.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/*
Kubelets ask by the pod's address, which is no host that the gateway is called by. Loopback is always one, so probes say that.
*/}}
{{- define "gateway.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ include "gateway.scheme" .root | upper }}
  httpHeaders:
    - name: Host
      value: localhost
timeoutSeconds: {{ .root.Values.probes.timeoutSeconds }}
{{- end -}}

{{- define "gateway.pod" -}}
metadata:
  labels:
    {{- include "gateway.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "gateway.toml" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "gateway.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- range $key, $value := .Values.podSecurityContext }}
    {{- if not (kindIs "invalid" $value) }}
    {{ $key }}: {{ $value }}
    {{- end }}
    {{- end }}
    {{- if not (kindIs "invalid" .Values.podSecurityContext.fsGroup) }}
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  initContainers:
    - name: check-config
      image: {{ include "gateway.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [check-config, --config, /etc/jupyter-mcp-gateway/config/gateway.toml]
      {{- with include "gateway.env" . }}
      env:
        {{- . | trim | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "gateway.containerSecurity" . | nindent 8 }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        {{- include "gateway.mounts" . | nindent 8 }}
  containers:
    - name: gateway
      image: {{ include "gateway.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --config, /etc/jupyter-mcp-gateway/config/gateway.toml]
      {{- with include "gateway.env" . }}
      env:
        {{- . | trim | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 8585
        - name: metrics
          containerPort: {{ .Values.metrics.port }}
      startupProbe:
        {{- include "gateway.probe" (dict "root" . "path" "/healthz") | nindent 8 }}
        periodSeconds: 2
        failureThreshold: {{ .Values.probes.startupFailureThreshold }}
      livenessProbe:
        {{- include "gateway.probe" (dict "root" . "path" "/healthz") | nindent 8 }}
        periodSeconds: {{ .Values.probes.periodSeconds }}
        failureThreshold: {{ .Values.probes.failureThreshold }}
      readinessProbe:
        {{- include "gateway.probe" (dict "root" . "path" "/readyz") | nindent 8 }}
        periodSeconds: {{ .Values.probes.periodSeconds }}
        failureThreshold: {{ .Values.probes.failureThreshold }}
      {{- if .Values.preStopSleepSeconds }}
      lifecycle:
        preStop:
          sleep:
            seconds: {{ .Values.preStopSleepSeconds }}
      {{- end }}
      securityContext:
        {{- include "gateway.containerSecurity" . | nindent 8 }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        {{- include "gateway.mounts" . | nindent 8 }}
  volumes:
    - name: config
      configMap:
        name: {{ include "gateway.fullname" . }}
    - name: tmp
      emptyDir:
        sizeLimit: 256Mi
    {{- if ne .Values.store.type "embedded" }}
    - name: data
      emptyDir: {}
    {{- else if .Values.store.embedded.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ .Values.store.embedded.existingClaim }}
    {{- end }}
    {{- with .Values.tls.secretName }}
    - name: tls
      secret:
        secretName: {{ . }}
    {{- end }}
    {{- with .Values.extraCA.configMap }}
    - name: extra-ca
      configMap:
        name: {{ . }}
    {{- end }}
    {{- with .Values.extraCA.secret }}
    - name: extra-ca
      secret:
        secretName: {{ . }}
    {{- end }}
    {{- range $i, $mount := .Values.secretMounts }}
    - name: secret-{{ $i }}
      secret:
        secretName: {{ $mount.name }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if include "gateway.several" . }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "gateway.selectorLabels" $ | nindent 10 }}
    {{- end }}
  {{- end }}
{{- end -}}
