{{/* Rejects values with which no server or cluster can run, and says what to change. */}}
{{- define "weir.checks" -}}
{{- $nodes := int .Values.replicas -}}
{{- $each := int (dig "replicas" 0 .Values.settings) -}}
{{- if and (eq $each 0) (not (has $nodes (list 1 3 5 7))) -}}
{{- fail (printf "replicas is %d, must be 1, 3, 5 or 7: an even number tolerates no more losses than the odd number below it. With settings.replicas it may be any number from that on" $nodes) -}}
{{- end -}}
{{- if not (has $each (list 0 1 3 5)) -}}
{{- fail (printf "settings.replicas is %d, must be 0, 1, 3 or 5: nodes that have a replica of each Raft group" $each) -}}
{{- end -}}
{{- if and (gt $each 0) (or (lt $nodes $each) (lt $nodes 2)) -}}
{{- fail (printf "replicas is %d and settings.replicas is %d: a cluster needs as many nodes as each Raft group has replicas, and at least 2" $nodes $each) -}}
{{- end -}}
{{- if not .Values.auth.existingSecret -}}
{{- fail "auth.existingSecret is empty, and weir does not listen without a password. Create a Secret: kubectl create secret generic weir --from-literal=password=\"$(openssl rand -hex 32)\", then --set auth.existingSecret=weir" -}}
{{- end -}}
{{- if and (gt $nodes 1) (not .Values.cluster.existingSecret) (not .Values.cluster.tls.enabled) -}}
{{- fail (printf "cluster.existingSecret is empty, and %d nodes do not connect to each other without a secret: name a Secret with the key %s, or set cluster.tls.enabled" $nodes .Values.cluster.secretKey) -}}
{{- end -}}
{{- if and (eq $nodes 1) (or .Values.cluster.existingSecret .Values.cluster.tls.enabled) -}}
{{- fail "cluster.existingSecret and cluster.tls need 3 or more nodes: leave them out with replicas 1" -}}
{{- end -}}
{{- include "weir.checkTLS" (dict "of" "tls" "tls" .Values.tls) -}}
{{- include "weir.checkTLS" (dict "of" "cluster.tls" "tls" .Values.cluster.tls) -}}
{{- if and (ne .Values.tls.clientCertificates "no") (not .Values.tls.enabled) -}}
{{- fail "tls.clientCertificates needs tls.enabled: clients present certificates over TLS only" -}}
{{- end -}}
{{- if and .Values.policies.file .Values.policies.existingConfigMap -}}
{{- fail "policies.file and policies.existingConfigMap are both set: give one of them" -}}
{{- end -}}
{{- if .Values.policies.file -}}
{{- $file := fromYaml .Values.policies.file -}}
{{- if or (hasKey $file "Error") (not (hasKey $file "policies")) -}}
{{- fail (printf "policies.file is not a policy file: give its text, --set-file policies.file=policies.yaml %s" (get $file "Error")) -}}
{{- end -}}
{{- end -}}
{{- if not (dig "limits" "memory" "" .Values.resources) -}}
{{- fail "resources.limits.memory is empty: set it, because weir would otherwise use up to three quarters of the host's memory" -}}
{{- end -}}
{{- include "weir.checkGrowth" . -}}
{{- end -}}

{{- define "weir.checkTLS" -}}
{{- $given := or .tls.existingSecret .tls.issuer.name -}}
{{- if and .tls.enabled (not $given) -}}
{{- fail (printf "%s.enabled needs a certificate: set %s.existingSecret, a Secret with tls.crt, tls.key and ca.crt, or %s.issuer.name, an Issuer of cert-manager" .of .of .of) -}}
{{- end -}}
{{- if and $given (not .tls.enabled) -}}
{{- fail (printf "%s has a certificate but is disabled: set %s.enabled" .of .of) -}}
{{- end -}}
{{- if and .tls.existingSecret .tls.issuer.name -}}
{{- fail (printf "%s.existingSecret and %s.issuer.name are both set: give one of them" .of .of) -}}
{{- end -}}
{{- end -}}

{{/* Only helm install and upgrade can look up the running StatefulSet; helm template cannot. */}}
{{- define "weir.checkGrowth" -}}
{{- $nodes := int .Values.replicas -}}
{{- $set := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "weir.fullname" .) -}}
{{- if $set -}}
{{- $was := int $set.spec.replicas -}}
{{- if and (ne $was $nodes) (or (eq $was 1) (eq $nodes 1)) -}}
{{- fail (printf "replicas was %d and would be %d: a single server and a cluster store their state in different formats. Move the state with a backup: docs/kubernetes.md#change-the-number-of-nodes" $was $nodes) -}}
{{- end -}}
{{- if lt $nodes $was -}}
{{- fail (printf "replicas was %d and would be %d: the stopped nodes would stay members and count for the majority. First drain (with settings.replicas) and remove them one by one: docs/kubernetes.md#change-the-number-of-nodes" $was $nodes) -}}
{{- end -}}
{{- end -}}
{{- end -}}
