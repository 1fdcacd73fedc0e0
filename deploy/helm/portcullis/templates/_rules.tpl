{{/* Rule groups: those of files/prometheus, which deploy/render copies from deploy/prometheus, then those of the values. */}}
{{- define "portcullis.ruleGroups" -}}
{{- $groups := list -}}
{{- range $path, $_ := .Files.Glob "files/prometheus/*.rules.yaml" -}}
{{- $file := $.Files.Get $path | fromYaml -}}
{{- if not (kindIs "slice" $file.groups) -}}
{{- fail (printf "%s has no list of groups" $path) -}}
{{- end -}}
{{- $groups = concat $groups $file.groups -}}
{{- end -}}
{{- toYaml (concat $groups .Values.prometheusRule.extraGroups) -}}
{{- end -}}
