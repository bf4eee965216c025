{{- /* Labels of every object. What selects the operators' pods is app.kubernetes.io/name alone. */ -}}
{{- define "adamant.labels" -}}
app.kubernetes.io/name: adamant-operator
app.kubernetes.io/part-of: adamant
{{- end -}}

{{- /* The image: NAME:TAG, or with a digest NAME@DIGEST, or NAME:TAG@DIGEST where a tag is given, too. */ -}}
{{- define "adamant.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- $image.repository }}{{ with $image.tag }}:{{ . }}{{ end }}@{{ $image.digest -}}
{{- else -}}
{{- $image.repository }}:{{ $image.tag | default .Chart.AppVersion -}}
{{- end -}}
{{- end -}}

{{- define "adamant.serviceAccount" -}}
{{- .Values.serviceAccount.name | default "adamant-operator" -}}
{{- end -}}

{{- /*
"true", or nothing: whether to make what `create` (Auto, Always, Never) is about.
A dictionary: create, kind ("GROUP/VERSION/KIND" that the cluster has to know), root.
*/ -}}
{{- define "adamant.wanted" -}}
{{- if eq .create "Always" -}}
true
{{- else if and (eq .create "Auto") (.root.Capabilities.APIVersions.Has .kind) -}}
true
{{- end -}}
{{- end -}}

{{- /* A selector of the namespaces that jobs are led in. */ -}}
{{- define "adamant.jobNamespaces" -}}
{{- if .Values.namespaces -}}
matchExpressions:
  - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson .Values.namespaces }}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{- /* When the endpoints of a PodMonitor are scraped. */ -}}
{{- define "adamant.scrapeTimes" -}}
interval: {{ .Values.podMonitor.interval }}
{{- with .Values.podMonitor.scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end -}}
{{- end -}}

{{- /* Annotations of what `helm test` makes, in the order of this weight; what has succeeded is taken away. */ -}}
{{- define "adamant.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
