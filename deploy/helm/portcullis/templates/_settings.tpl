{{/* The settings file, and what follows from it. */}}

{{/* Where things are in the container. */}}
{{- define "portcullis.dataMount" -}}/var/lib/portcullis{{- end -}}

{{/* `true` when more than one pod may run. */}}
{{- define "portcullis.isScaled" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}true{{- end -}}
{{- end -}}

{{/* `true` when the settings name a PostgreSQL database. */}}
{{- define "portcullis.isPostgres" -}}
{{- $store := default dict .Values.config.store -}}
{{- if regexMatch "(?i)^postgres(ql)?://" (toString (default "" $store.url)) -}}true{{- end -}}
{{- end -}}

{{/* `true` when the settings keep bundles in S3. */}}
{{- define "portcullis.isS3" -}}
{{- $store := default dict .Values.config.store -}}
{{- if hasPrefix "s3://" (toString (default "" $store.bundles)) -}}true{{- end -}}
{{- end -}}

{{/* portcullis.yaml: what the chart decides, and over it what the values say. */}}
{{- define "portcullis.settings" -}}
{{- $any := ternary "[::]" "0.0.0.0" (eq .Values.ipFamily "IPv6") -}}
{{- $server := dict "listen" (printf "%s:%d" $any (int .Values.ports.grpc)) -}}
{{- if .Values.auth.insecureAllowAnonymous -}}
{{- $_ := set $server "insecure_allow_anonymous" true -}}
{{- end -}}
{{- if include "portcullis.isScaled" . -}}
{{- /* Clients look for new pods when a connection ends. */ -}}
{{- $_ := set $server "max_connection_age" "10m" -}}
{{- end -}}
{{- if .Values.tls.insecureAllowPlaintext -}}
{{- $_ := set $server "insecure_allow_plaintext" true -}}
{{- end -}}
{{- if .Values.tls.enabled -}}
{{- $tls := dict "certificate" (printf "/etc/portcullis/tls/%s" .Values.tls.certificateKey) "key" (printf "/etc/portcullis/tls/%s" .Values.tls.privateKeyKey) -}}
{{- if .Values.tls.clientCaSecretName -}}
{{- $_ := set $tls "client_ca" (printf "/etc/portcullis/client-ca/%s" .Values.tls.clientCaKey) -}}
{{- end -}}
{{- $_ := set $server "tls" $tls -}}
{{- end -}}
{{- $auth := dict "mode" .Values.auth.mode -}}
{{- if eq .Values.auth.mode "tokens" -}}
{{- $_ := set $auth "tokens" (dict "path" (printf "/etc/portcullis/tokens/%s" .Values.auth.tokens.key)) -}}
{{- end -}}
{{- $settings := dict "server" $server "http" (dict "listen" (printf "%s:%d" $any (int .Values.ports.http))) "auth" $auth "data_dir" (printf "%s/data" (include "portcullis.dataMount" .)) -}}
{{- if not .Values.persistence.enabled -}}
{{- /* The folder goes with its pod; what a pod prints is kept by the cluster. */ -}}
{{- $_ := set $settings "audit" (dict "sink" "stdout") -}}
{{- end -}}
{{- if .Values.policies -}}
{{- $_ := set $settings "policy" (dict "path" "/etc/portcullis/policies") -}}
{{- end -}}
{{- if .Values.rules -}}
{{- $_ := set $settings "rules" (dict "paths" (list "/etc/portcullis/rules/custom")) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $settings (deepCopy .Values.config)) -}}
{{- end -}}

{{/* A duration of the settings in whole seconds, rounded up. */}}
{{- define "portcullis.seconds" -}}
{{- $number := int64 (regexFind "^[0-9]+" .) -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- if eq $unit "ms" -}}{{- div (add $number 999) 1000 -}}
{{- else if eq $unit "s" -}}{{- $number -}}
{{- else if eq $unit "m" -}}{{- mul $number 60 -}}
{{- else -}}{{- mul $number 3600 -}}
{{- end -}}
{{- end -}}

{{/* The longest that a stop may last, in seconds: the pause, the drain, and 27 s for reviews to be given back (5),
sessions to end (2), and incidents, HTTP answers, audit records and spans to be written (5 each), with some to spare. */}}
{{- define "portcullis.stopSeconds" -}}
{{- $server := default dict .Values.config.server -}}
{{- $drain := include "portcullis.seconds" (toString (default "10s" $server.drain_timeout)) -}}
{{- add (int .Values.preStopSeconds) (int64 $drain) 30 -}}
{{- end -}}
