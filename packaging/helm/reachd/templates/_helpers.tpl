{{- define "reachd.name" -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "reachd.selector" -}}
app.kubernetes.io/name: reachd
{{- if ne .Release.Name "reachd" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- end -}}

{{- define "reachd.labels" -}}
{{ include "reachd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "reachd.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end -}}

{{- /* What holds for every container but the one that gives directories an owner. */ -}}
{{- define "reachd.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* The number of the health port. */ -}}
{{- define "reachd.health" -}}
{{- regexFind "[0-9]+$" (required "config.health is required: the kubelet's probes go there" .Values.config.health) -}}
{{- end -}}
