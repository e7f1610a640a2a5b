{{- define "reactor.name" -}}
{{ .Values.fullnameOverride | default .Release.Name | trunc 45 | trimSuffix "-" }}
{{- end }}

{{- define "reactor.selector" -}}
app.kubernetes.io/name: alert-reactor
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "reactor.labels" -}}
{{ include "reactor.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: alert-reactor
{{- end }}

{{- /* What runs: a list of {name, component, user, roles, replicas, resources}. */}}
{{- define "reactor.processes" -}}
{{- $all := list "receiver" "router" "observer" "decider" "executor" }}
{{- $name := include "reactor.name" . }}
{{- $out := list }}
{{- if eq .Values.layout "Combined" }}
{{- $out = append $out (merge (dict "name" $name "component" "reactor" "user" "reactor" "roles" $all) .Values.combined) }}
{{- else }}
{{- range $role := $all }}
{{- $of := dict "name" (printf "%s-%s" $name $role) "component" $role "user" $role "roles" (list $role) }}
{{- $out = append $out (merge $of (index $.Values.roles $role)) }}
{{- end }}
{{- end }}
{{- dict "processes" $out | toJson }}
{{- end }}

{{- define "reactor.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "reactor.priorityClass" -}}
{{- if .Values.priorityClass.create -}}
{{ .Values.priorityClass.name | default (include "reactor.name" .) }}
{{- else -}}
{{ .Values.priorityClass.name }}
{{- end }}
{{- end }}

{{- /* "true" where processes log in to the bus as a user with a password; "" where `settings` say who they are. */}}
{{- define "reactor.hasPassword" -}}
{{- $bus := .Values.settings.bus | default dict }}
{{- if not (or $bus.credentials $bus.nkeySeedFile (and $bus.certFile (not $bus.user))) }}true{{ end }}
{{- end }}

{{- /* No shell and no root is needed, so none is had. */}}
{{- define "reactor.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "reactor.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* The projected volume of /run/reactor: {top, user, readers}. */}}
{{- define "reactor.secrets" -}}
defaultMode: 0440
sources:
{{- if include "reactor.hasPassword" .top }}
  - secret:
      name: {{ .top.Values.bus.passwordSecret }}
      items: [{key: {{ .user }}, path: nats_password}]
{{- end }}
{{- range $secret := .top.Values.secrets }}
{{- $needed := false }}
{{- range $reader := $.readers }}{{ if has $reader $secret.roles }}{{ $needed = true }}{{ end }}{{ end }}
{{- if $needed }}
  - secret: {name: {{ $secret.name }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "reactor.natsReplicas" -}}
{{ ternary .Values.nats.config.cluster.replicas 1 .Values.nats.config.cluster.enabled }}
{{- end }}

{{- /* reactor.yaml: what the chart knows itself, and the value `settings` on top. */}}
{{- define "reactor.settings" -}}
{{- $bus := dict "replicas" .Values.bus.replicas "maxTargetsPerPublisher" .Values.bus.maxTargetsPerPublisher }}
{{- if include "reactor.hasPassword" . }}
{{- $bus = merge $bus (dict "user" "reactor" "passwordFile" "/run/reactor/nats_password") }}
{{- end }}
{{- if .Values.nats.enabled }}
{{- $urls := list }}
{{- range $i := until (int (include "reactor.natsReplicas" .)) }}
{{- $urls = append $urls (printf "nats://%s-nats-%d.%s-nats-headless:4222" (include "reactor.name" $) $i (include "reactor.name" $)) }}
{{- end }}
{{- $_ := set $bus "url" $urls }}
{{- $_ := set $bus "replicas" (int (include "reactor.natsReplicas" .)) }}
{{- else }}
{{- $_ := set $bus "url" (ternary (first .Values.bus.url) .Values.bus.url (eq (len .Values.bus.url) 1)) }}
{{- end }}
{{- $ours := dict "bus" $bus "receiver" (dict "listen" "0.0.0.0:8484") "health" (dict "listen" "0.0.0.0:8485") "ruleFiles" (list "/etc/reactor-rules/*.yaml") "logFormat" "json" }}
{{- toYaml (mergeOverwrite $ours (deepCopy .Values.settings)) }}
{{- end }}
