{{/* A text with the links to the runbook leading to `url`: as they are in the files where there is none. */}}
{{- define "portcullis.withRunbook" -}}
{{- if .url -}}{{- .text | replace "https://portcullis.example/docs/runbook.md" (trimSuffix "/" .url) -}}
{{- else -}}{{- .text -}}
{{- end -}}
{{- end -}}

{{/* Rule groups: those of files/prometheus, which deploy/render copies from deploy/prometheus, then those of the values. */}}
{{- define "portcullis.ruleGroups" -}}
{{- $groups := list -}}
{{- range $path, $_ := .Files.Glob "files/prometheus/*.rules.yaml" -}}
{{- $file := include "portcullis.withRunbook" (dict "text" ($.Files.Get $path) "url" $.Values.prometheusRule.runbookUrl) | fromYaml -}}
{{- if not (kindIs "slice" $file.groups) -}}
{{- fail (printf "%s has no list of groups" $path) -}}
{{- end -}}
{{- $groups = concat $groups $file.groups -}}
{{- end -}}
{{- toYaml (concat $groups .Values.prometheusRule.extraGroups) -}}
{{- end -}}
