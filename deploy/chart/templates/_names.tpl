{{- define "greenroom.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "greenroom.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "greenroom.labels" -}}
{{ include "greenroom.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "greenroom.account" -}}
{{ .Values.serviceAccount.name | default (include "greenroom.name" .) }}
{{- end }}

{{- define "greenroom.table" -}}
{{ .Values.table | default (printf "kube:%s?store=%s" .Release.Namespace (include "greenroom.name" .)) }}
{{- end }}

{{/* The namespaces in which nodes keep records by the API server, with commas: those of the table, and of states. */}}
{{- define "greenroom.kube" -}}
{{- $spaces := list -}}
{{- range list (include "greenroom.table" .) .Values.store -}}
{{- if hasPrefix "kube:" . -}}
{{- $spaces = append $spaces (regexReplaceAll "[?].*$" (trimPrefix "kube:" .) "") -}}
{{- end -}}
{{- end -}}
{{ uniq $spaces | join "," }}
{{- end }}

{{- define "greenroom.certificate" -}}
{{- if .Values.tls.secretName -}}
{{ .Values.tls.secretName }}
{{- else if .Values.tls.certManager.enabled -}}
{{ include "greenroom.name" . }}-tls
{{- end -}}
{{- end }}

{{- define "greenroom.hosts" -}}
{{- $name := include "greenroom.name" . -}}
{{- $space := .Release.Namespace -}}
{{- $own := list $name (printf "%s.%s" $name $space) (printf "%s.%s.svc" $name $space) (printf "%s.%s.svc.cluster.local" $name $space) -}}
{{ concat $own .Values.door.hosts | join "," }}
{{- end }}

{{/* The configuration file: what has no variable of its own, what the user says, and the list of clusters. */}}
{{- define "greenroom.config" -}}
drain_timeout = {{ .Values.drainTimeout }}
{{- with .Values.store }}
store = {{ . | toJson }}
{{- end }}
{{- with .Values.config }}
{{ . | trim }}
{{- end }}
{{- if .Values.geo.enabled }}

[geo]
gateway = "0.0.0.0:7300"
epoch = {{ .Values.geo.epoch }}
{{- with .Values.geo.authorities }}
ca = "/etc/greenroom/tls/{{ . }}"
{{- end }}
{{- range $name, $gateways := .Values.geo.clusters }}

[geo.clusters.{{ $name }}]
gateways = {{ $gateways | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* A node in a pod listens beyond loopback, so it wants both, or a word that it may do without. */}}
{{- define "greenroom.check" -}}
{{- if not .Values.insecureListen -}}
{{- if not (include "greenroom.certificate" .) -}}
{{- fail "nodes listen beyond loopback and have no certificate: set tls.secretName or tls.certManager.enabled, or insecureListen=true in a network that is closed by other means" -}}
{{- end -}}
{{- if not (or .Values.tokens.secretName (regexMatch "(?m)^\\s*(\\[\\[auth\\.|\\[auth[.\\]]|auth\\s*[.=])" .Values.config)) -}}
{{- fail "the door listens beyond loopback and takes no credentials: set tokens.secretName or [auth] in config, or insecureListen=true in a network that is closed by other means" -}}
{{- end -}}
{{- end -}}
{{- $top := regexSplit "(?m)^\\s*\\[" .Values.config 2 | first -}}
{{- if and .Values.store (regexMatch "(?m)^\\s*[\"']?store[\"']?\\s*=" $top) -}}
{{- fail "store in config is written by the chart already: leave it out there, or in store" -}}
{{- end -}}
{{- if and .Values.geo.enabled (regexMatch "(?m)^\\s*(\\[geo(\\.clusters[.\\]]|\\])|geo\\s*[.=])" .Values.config) -}}
{{- fail "[geo] in config is written by the chart already: set geo.epoch, geo.clusters and geo.authorities; what else is about geo has tables of its own, as [geo.kinds.KIND]" -}}
{{- end -}}
{{- if regexMatch "(?m)^\\s*[\"']?drain_timeout[\"']?\\s*=" .Values.config -}}
{{- fail "drain_timeout in config is written by the chart already: set drainTimeout" -}}
{{- end -}}
{{- if and (regexMatch "(?m)^[^#\\n]*[\"']kube:" .Values.config) (not (include "greenroom.kube" .)) -}}
{{- fail "config names a store kube: and neither table nor store is one, so that pods have no rights and no token for it: set store=kube:NAMESPACE, or take another store in config" -}}
{{- end -}}
{{- if and .Values.tls.secretName .Values.tls.certManager.enabled -}}
{{- fail "tls.secretName and tls.certManager.enabled are two sources of one certificate: set one" -}}
{{- end -}}
{{- if and .Values.tls.certManager.enabled (not .Values.tls.certManager.issuer) -}}
{{- fail "tls.certManager.issuer names no issuer" -}}
{{- end -}}
{{- if and .Values.geo.enabled (not (hasKey .Values.geo.clusters .Values.cluster)) -}}
{{- fail (printf "geo.clusters does not list this cluster, %q" .Values.cluster) -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.serviceMonitor.tokenSecret) (not .Values.insecureListen) -}}
{{- fail "/metrics takes credentials: name a Secret with a token of the role metrics by serviceMonitor.tokenSecret" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (lt (int .Values.autoscaling.maxReplicas) (int .Values.autoscaling.minReplicas)) -}}
{{- fail "autoscaling.maxReplicas is below autoscaling.minReplicas" -}}
{{- end -}}
{{- end }}
