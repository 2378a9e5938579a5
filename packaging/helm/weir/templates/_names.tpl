{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "weir.nodes" -}}
{{- include "weir.fullname" . }}-nodes
{{- end -}}

{{/* The labels by which all objects select the pods of nodes, and no other pods. */}}
{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end -}}

{{/* The labels of client pods: those of the Job of policies and of helm test. */}}
{{- define "weir.clientLabels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: client
{{- end -}}

{{- define "weir.labels" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "weir.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "weir.tlsSecret" -}}
{{- default (printf "%s-tls" (include "weir.fullname" .)) .Values.tls.existingSecret -}}
{{- end -}}

{{- define "weir.nodeTLSSecret" -}}
{{- default (printf "%s-node-tls" (include "weir.fullname" .)) .Values.cluster.tls.existingSecret -}}
{{- end -}}

{{/* The name of the ConfigMap with the policy file. It is empty without a policy file. */}}
{{- define "weir.policies" -}}
{{- if .Values.policies.file -}}
{{- include "weir.fullname" . }}-policies
{{- else -}}
{{- .Values.policies.existingConfigMap -}}
{{- end -}}
{{- end -}}

{{/* The address of a node for commands in its own pod, without TLS. */}}
{{- define "weir.ownAddress" -}}
127.0.0.1:{{ ternary 6379 6380 .Values.tls.enabled }}
{{- end -}}
