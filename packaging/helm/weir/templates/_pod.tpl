{{/* The security context of every pod of the chart. */}}
{{- define "weir.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "weir.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* A volume with the passwords of all Secrets in one directory. */}}
{{- define "weir.secretVolume" -}}
name: secret
projected:
  defaultMode: 0440
  sources:
    - secret:
        name: {{ .Values.auth.existingSecret }}
        items: [{key: {{ .Values.auth.passwordKey }}, path: password}]
{{- end -}}

{{- define "weir.tlsVolume" -}}
name: tls
secret: {secretName: {{ include "weir.tlsSecret" . }}, defaultMode: 0440}
{{- end -}}

{{/* The spec of a client pod. It sends commands to the nodes and ends. */}}
{{- define "weir.clientPod" -}}
restartPolicy: {{ .restart }}
automountServiceAccountToken: false
# Kubernetes would set variables for a Service named weir-..., which weir could take for flags.
enableServiceLinks: false
securityContext: {{- include "weir.podSecurity" .root | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A container of a client pod, with the given name and args. */}}
{{- define "weir.client" -}}
name: {{ .name }}
image: {{ include "weir.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args:
{{- range .args }}
  - {{ . | quote }}
{{- end }}
{{- if .root.Values.tls.enabled }}
  - --tls
  - --tls-ca-file=/etc/weir/tls/ca.crt
{{- if eq .root.Values.tls.clientCertificates "required" }}
  - --tls-cert-file=/etc/weir/tls/tls.crt
  - --tls-key-file=/etc/weir/tls/tls.key
{{- end }}
{{- end }}
env:
  - {name: WEIR_ADDR, value: "{{ include "weir.fullname" .root }}.{{ .root.Release.Namespace }}.svc:6380"}
  - {name: WEIR_PASSWORD_FILE, value: /etc/weir/secret/password}
resources:
  requests: {cpu: 10m, memory: 32Mi}
  limits: {memory: 64Mi}
securityContext: {{- include "weir.containerSecurity" .root | nindent 2 }}
volumeMounts:
{{- if .root.Values.tls.enabled }}
  - {name: tls, mountPath: /etc/weir/tls, readOnly: true}
{{- end }}
  - {name: secret, mountPath: /etc/weir/secret, readOnly: true}
{{- end -}}
