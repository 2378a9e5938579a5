{{/* The variables of a node, which set the flags of weir serve. */}}
{{- define "weir.environment" -}}
{{- $password := "/etc/weir/secret/password" -}}
- {name: WEIR_DATA_DIR, value: /data}
- {name: WEIR_HTTP, value: ":6381"}
- {name: WEIR_REQUIREPASS_FILE, value: {{ $password }}}
{{- if .Values.users.existingSecret }}
- {name: WEIR_USERS_FILE, value: /etc/weir/secret/users}
{{- end }}
{{- if include "weir.policies" . }}
- {name: WEIR_POLICIES, value: /etc/weir/policies/policies.yaml}
{{- end }}
{{- if .Values.rls.enabled }}
- {name: WEIR_RLS, value: ":6382"}
{{- end }}
{{- if .Values.tls.enabled }}
# Only the pod itself can connect without TLS. "kubectl exec" and the handover before a stop do
# so, because they must also work with an expired certificate.
- {name: WEIR_LISTEN, value: {{ include "weir.ownAddress" . | quote }}}
- {name: WEIR_TLS_LISTEN, value: ":6380"}
- {name: WEIR_TLS_CERT_FILE, value: /etc/weir/tls/tls.crt}
- {name: WEIR_TLS_KEY_FILE, value: /etc/weir/tls/tls.key}
{{- if ne .Values.tls.clientCertificates "no" }}
- {name: WEIR_TLS_CA_FILE, value: /etc/weir/tls/ca.crt}
- {name: WEIR_TLS_AUTH_CLIENTS, value: {{ .Values.tls.clientCertificates }}}
{{- end }}
{{- if .Values.rls.enabled }}
- {name: WEIR_RLS_TLS, value: "true"}
{{- end }}
{{- else }}
- {name: WEIR_LISTEN, value: ":6380"}
{{- end }}
{{- if gt (int .Values.replicas) 1 }}
{{ include "weir.clusterEnvironment" . }}
{{- end }}
# The commands in the pod read these: kubectl exec ... -- weir cluster status
- {name: WEIR_ADDR, value: {{ include "weir.ownAddress" . | quote }}}
- {name: WEIR_PASSWORD_FILE, value: {{ $password }}}
{{- range $flag, $value := .Values.settings }}
- {name: {{ printf "WEIR_%s" ($flag | upper | replace "-" "_") }}, value: {{ include "weir.plain" $value | quote }}}
{{- end }}
{{- end -}}

{{/* Helm reads numbers as floats, and would write a large one as 1e+06. */}}
{{- define "weir.plain" -}}
{{- if kindIs "float64" . -}}
{{- if eq . (floor .) -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}

{{- define "weir.clusterEnvironment" -}}
{{- $domain := printf "%s.$(NAMESPACE).svc" (include "weir.nodes" .) -}}
{{- $joins := list -}}
{{- range $i := until (int .Values.replicas) -}}
{{- $joins = append $joins (printf "%s-%d.%s:6390" (include "weir.fullname" $) $i $domain) -}}
{{- end -}}
- name: WEIR_NODE_ID
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- {name: WEIR_RAFT_ADDR, value: {{ printf "$(WEIR_NODE_ID).%s:6390" $domain | quote }}}
- {name: WEIR_RAFT_LISTEN, value: ":6390"}
- {name: WEIR_ADVERTISE, value: {{ printf "$(WEIR_NODE_ID).%s:6380" $domain | quote }}}
- name: WEIR_JOIN
  value: {{ join "," $joins | quote }}
{{- if .Values.cluster.zones }}
- name: WEIR_ZONE
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['topology.kubernetes.io/zone']"}}
{{- end }}
{{- if .Values.cluster.existingSecret }}
- {name: WEIR_CLUSTER_SECRET_FILE, value: /etc/weir/secret/cluster}
{{- end }}
{{- if .Values.cluster.tls.enabled }}
- {name: WEIR_RAFT_TLS_CERT_FILE, value: /etc/weir/node-tls/tls.crt}
- {name: WEIR_RAFT_TLS_KEY_FILE, value: /etc/weir/node-tls/tls.key}
- {name: WEIR_RAFT_TLS_CA_FILE, value: /etc/weir/node-tls/ca.crt}
{{- end }}
{{- end -}}
