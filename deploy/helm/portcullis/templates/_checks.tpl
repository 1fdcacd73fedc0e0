{{/* Fails where `value`, or what stands in it, is a URL with credentials: with a password, with any user over http, or with
a secret as a parameter. `path` is where it stands. A password that is not escaped may hold `/`. */}}
{{- define "portcullis.refuseUrlSecrets" -}}
{{- $path := .path -}}
{{- if kindIs "map" .value -}}
{{- range $key, $inner := .value -}}{{- include "portcullis.refuseUrlSecrets" (dict "path" (printf "%s.%s" $path $key) "value" $inner) -}}{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $inner := .value -}}{{- include "portcullis.refuseUrlSecrets" (dict "path" (printf "%s[%d]" $path $index) "value" $inner) -}}{{- end -}}
{{- else if kindIs "string" .value -}}
{{- if or (regexMatch "(?i)[a-z][a-z0-9+.-]*://[^@/?#[:space:]]*:([^/?#[:space:]]*|[^0-9@[:space:]][^@[:space:]]*)@" .value) (regexMatch "(?i)https?://[^/?#[:space:]]*@" .value) (regexMatch "(?i)://[^[:space:]]*[?&][a-z_.-]*(password|passwd|secret|token|api_?key|signature|credential)=" .value) -}}
{{- fail (printf "%s is a URL with a secret, and manifests and ConfigMaps are no place for one: leave it out of the URL, or give the whole as a variable from a Secret with secrets.env" $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Values that are well formed, and yet cannot work together. Each message says what to do. */}}
{{- define "portcullis.checks" -}}
{{- $config := .Values.config -}}
{{- $store := default dict $config.store -}}
{{- $llm := default dict $config.llm -}}
{{- $server := default dict $config.server -}}
{{- $http := default dict $config.http -}}
{{- $auth := default dict $config.auth -}}

{{- /* Set by the chart, in two places at once they could differ. */ -}}
{{- if hasKey $server "listen" -}}{{- fail "config.server.listen is set by the chart: use ports.grpc and ipFamily" -}}{{- end -}}
{{- if hasKey $http "listen" -}}{{- fail "config.http.listen is set by the chart: use ports.http and ipFamily" -}}{{- end -}}
{{- if hasKey $config "data_dir" -}}{{- fail "config.data_dir is set by the chart: use persistence" -}}{{- end -}}
{{- if hasKey $auth "mode" -}}{{- fail "config.auth.mode is set by the chart: use auth.mode" -}}{{- end -}}
{{- if hasKey $server "insecure_allow_anonymous" -}}{{- fail "config.server.insecure_allow_anonymous is set by the chart: use auth.insecureAllowAnonymous" -}}{{- end -}}
{{- if hasKey $server "insecure_allow_plaintext" -}}{{- fail "config.server.insecure_allow_plaintext is set by the chart: use tls.insecureAllowPlaintext" -}}{{- end -}}
{{- if hasKey $server "tls" -}}{{- fail "config.server.tls is set by the chart: use tls.secretName and tls.clientCaSecretName" -}}{{- end -}}
{{- if hasKey (default dict $auth.tokens) "path" -}}{{- fail "config.auth.tokens.path is set by the chart: use auth.tokens" -}}{{- end -}}
{{- if and .Values.policies (hasKey (default dict $config.policy) "path") -}}{{- fail "config.policy.path cannot be given together with policies: give one of them" -}}{{- end -}}
{{- if and .Values.rules (hasKey (default dict $config.rules) "paths") -}}{{- fail "config.rules.paths cannot be given together with rules: give one of them" -}}{{- end -}}
{{- if eq (int .Values.ports.grpc) (int .Values.ports.http) -}}{{- fail "ports.grpc and ports.http must differ" -}}{{- end -}}

{{- $own := include "portcullis.labels" . | fromYaml -}}
{{- range $of, $labels := dict "podLabels" .Values.podLabels "serviceMonitor.labels" .Values.serviceMonitor.labels "prometheusRule.labels" .Values.prometheusRule.labels "dashboards.labels" .Values.dashboards.labels -}}
{{- range $label, $_ := $labels -}}
{{- if hasKey $own $label -}}{{- fail (printf "%s: the label %s is set by the chart" $of $label) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if hasKey (default dict .Values.podAnnotations) "checksum/settings" -}}{{- fail "podAnnotations: checksum/settings is set by the chart" -}}{{- end -}}

{{- /* Who may call. */ -}}
{{- if and (eq .Values.auth.mode "none") (not .Values.auth.insecureAllowAnonymous) -}}
{{- fail "auth.mode none lets everybody who reaches the port ask: use tokens, jwt or mtls, or set auth.insecureAllowAnonymous: true if something else guards the port" -}}
{{- end -}}
{{- if and (ne .Values.auth.mode "none") .Values.auth.insecureAllowAnonymous -}}
{{- fail (printf "auth.insecureAllowAnonymous is for auth.mode none, and auth.mode is %s: remove one of the two" .Values.auth.mode) -}}
{{- end -}}
{{- if and (has .Values.auth.mode (list "tokens" "jwt")) (not .Values.tls.enabled) (not .Values.tls.insecureAllowPlaintext) -}}
{{- fail (printf "auth.mode %s without TLS sends tokens in clear: set tls.enabled: true, or tls.insecureAllowPlaintext: true if a mesh encrypts" .Values.auth.mode) -}}
{{- end -}}
{{- /* The HTTP port speaks no TLS, and callers of adapters and people at the console show credentials to it. */ -}}
{{- $adapters := list -}}
{{- range $name, $on := (default dict $http.adapters) -}}{{- if $on -}}{{- $adapters = append $adapters (printf "config.http.adapters.%s" $name) -}}{{- end -}}{{- end -}}
{{- if and $adapters (eq .Values.auth.mode "mtls") -}}
{{- fail (printf "%s cannot be used with auth.mode mtls: HTTP callers bring no certificate; use tokens or jwt" (first $adapters)) -}}
{{- end -}}
{{- $inClear := ternary $adapters list (has .Values.auth.mode (list "tokens" "jwt")) -}}
{{- if (default dict $config.console).enabled -}}{{- $inClear = append $inClear "config.console.enabled" -}}{{- end -}}
{{- if and $inClear (not .Values.tls.insecureAllowPlaintext) -}}
{{- fail (printf "%s takes credentials at the HTTP port, which speaks no TLS: put a proxy or mesh that does in front of it, and set tls.insecureAllowPlaintext: true (gRPC keeps its TLS)" (first $inClear)) -}}
{{- end -}}
{{- if and .Values.tls.insecureAllowPlaintext (not $inClear) (or .Values.tls.enabled (not (has .Values.auth.mode (list "tokens" "jwt")))) -}}
{{- fail "tls.insecureAllowPlaintext is for auth.mode tokens or jwt with tls.enabled: false, and for adapters and the console on the HTTP port: remove it" -}}
{{- end -}}
{{- $audit := default dict $config.audit -}}
{{- if and (eq (toString $audit.sink) "otlp") (not $audit.otlp_endpoint) -}}
{{- fail "config.audit.sink otlp needs config.audit.otlp_endpoint" -}}
{{- end -}}
{{- if and .Values.tls.clientCaSecretName (not .Values.tls.enabled) -}}
{{- fail "tls.clientCaSecretName needs tls.enabled: true" -}}
{{- end -}}
{{- if eq .Values.auth.mode "mtls" -}}
{{- if not (and .Values.tls.enabled .Values.tls.clientCaSecretName) -}}
{{- fail "auth.mode mtls needs tls.enabled: true and tls.clientCaSecretName" -}}
{{- end -}}
{{- if not (default dict $auth.mtls).identities -}}
{{- fail "auth.mode mtls needs config.auth.mtls.identities, which say whose the certificates are" -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.auth.mode "jwt" -}}
{{- $jwt := default dict $auth.jwt -}}
{{- if not (or $jwt.jwks_path $jwt.jwks_url) -}}{{- fail "auth.mode jwt needs config.auth.jwt.jwks_path or config.auth.jwt.jwks_url" -}}{{- end -}}
{{- range $key := list "issuer" "audience" -}}
{{- if not (get $jwt $key) -}}{{- fail (printf "auth.mode jwt needs config.auth.jwt.%s" $key) -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Secrets. */ -}}
{{- if regexMatch "(?i)^postgres(ql)?://[^@]*:[^@]*@" (toString (default "" $store.url)) -}}
{{- fail "config.store.url holds a password, and a ConfigMap is no place for one: name a user alone, mount the Secret with secrets.files and set config.store.password_file" -}}
{{- end -}}
{{- if regexMatch "(?i)[?&]password=" (toString (default "" $store.url)) -}}
{{- fail "config.store.url holds a password, and a ConfigMap is no place for one: mount the Secret with secrets.files and set config.store.password_file" -}}
{{- end -}}
{{- range $key := list "secret_access_key" "session_token" "access_key_id" -}}
{{- if hasKey (default dict $store.s3) $key -}}
{{- fail (printf "config.store.s3.%s is a secret: give it with secrets.env as AWS_%s" $key (upper $key)) -}}
{{- end -}}
{{- end -}}
{{- range $key := list "api_key" "gemini_api_key" "anthropic_api_key" -}}
{{- if hasKey $llm $key -}}
{{- fail (printf "config.llm.%s is a secret: give it with secrets.env, or as a file with secrets.files and config.llm.api_key_file" $key) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .Values.env -}}
{{- if hasPrefix "PORTCULLIS_" $name -}}
{{- fail (printf "env.%s is a setting and would go before the settings file: give it in config" $name) -}}
{{- end -}}
{{- /* What names a file or an address is none, such as AWS_WEB_IDENTITY_TOKEN_FILE and AWS_CONTAINER_CREDENTIALS_FULL_URI. */ -}}
{{- if and (regexMatch "SECRET|PASSW|PASSPHRASE|TOKEN|CREDENTIAL|APIKEY|(^|_)KEY(_|$)|KEYS?$|HEADERS$|BEARER|AUTHORIZATION|COOKIE" $name) (not (regexMatch "(FILE|PATH|DIR|_URI|_ENDPOINT)$" $name)) -}}
{{- fail (printf "env.%s looks like a secret: give it with secrets.env" $name) -}}
{{- end -}}
{{- include "portcullis.refuseUrlSecrets" (dict "path" (printf "env.%s" $name) "value" $value) -}}
{{- end -}}
{{- include "portcullis.refuseUrlSecrets" (dict "path" "config" "value" $config) -}}

{{- /* Variables go before the settings file, so these would undo what the chart has checked. */ -}}
{{- $reserved := list "PORTCULLIS_CONFIG" "PORTCULLIS_DATA_DIR" "PORTCULLIS_SERVER__LISTEN" "PORTCULLIS_SERVER__DRAIN_TIMEOUT" "PORTCULLIS_SERVER__INSECURE_ALLOW_ANONYMOUS" "PORTCULLIS_SERVER__INSECURE_ALLOW_PLAINTEXT" "PORTCULLIS_SERVER__TLS__CERTIFICATE" "PORTCULLIS_SERVER__TLS__KEY" "PORTCULLIS_SERVER__TLS__CLIENT_CA" "PORTCULLIS_AUTH__TOKENS__PATH" "PORTCULLIS_HTTP__LISTEN" "PORTCULLIS_HTTP__ALLOWED_HOSTS" "PORTCULLIS_AUTH__MODE" "PORTCULLIS_STORE__URL" "PORTCULLIS_STORE__BUNDLES" "POD_IP" -}}
{{- $names := keys .Values.env -}}
{{- range .Values.secrets.env -}}{{- $names = append $names .name -}}{{- end -}}
{{- range $name := $names -}}
{{- if has $name $reserved -}}
{{- fail (printf "the variable %s would go before what the chart sets: use config and the values of the chart" $name) -}}
{{- end -}}
{{- end -}}
{{- if ne (len $names) (len (uniq $names)) -}}{{- fail "a variable is given twice in env and secrets.env" -}}{{- end -}}
{{- $mounts := list -}}
{{- range .Values.secrets.files -}}{{- $mounts = append $mounts .name -}}{{- end -}}
{{- if ne (len $mounts) (len (uniq $mounts)) -}}{{- fail "two entries of secrets.files have one name" -}}{{- end -}}
{{- $mounts = list -}}
{{- range .Values.files -}}{{- $mounts = append $mounts .name -}}{{- end -}}
{{- if ne (len $mounts) (len (uniq $mounts)) -}}{{- fail "two entries of files have one name" -}}{{- end -}}

{{- /* More than one pod. */ -}}
{{- if include "portcullis.isScaled" . -}}
{{- $what := ternary "autoscaling" (printf "replicas: %d" (int .Values.replicas)) .Values.autoscaling.enabled -}}
{{- if not (include "portcullis.isPostgres" .) -}}
{{- fail (printf "%s needs a database that pods share: set config.store.url to postgres://user@host/database (SQLite serves one pod)" $what) -}}
{{- end -}}
{{- if not (include "portcullis.isS3" .) -}}
{{- fail (printf "%s needs bundles that pods share: set config.store.bundles to s3://bucket/prefix" $what) -}}
{{- end -}}
{{- if .Values.persistence.enabled -}}
{{- fail (printf "%s needs a data folder for each pod: set persistence.enabled: false" $what) -}}
{{- end -}}
{{- end -}}
{{- if .Values.autoscaling.enabled -}}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) -}}
{{- fail "autoscaling.minReplicas must not be larger than autoscaling.maxReplicas" -}}
{{- end -}}
{{- if not (or .Values.autoscaling.targetCPUUtilization .Values.autoscaling.targetMemoryUtilization) -}}
{{- fail "autoscaling needs autoscaling.targetCPUUtilization or autoscaling.targetMemoryUtilization" -}}
{{- end -}}
{{- range $of, $target := dict "cpu" .Values.autoscaling.targetCPUUtilization "memory" .Values.autoscaling.targetMemoryUtilization -}}
{{- if and $target (not (hasKey (default dict $.Values.resources.requests) $of)) -}}
{{- fail (printf "autoscaling by %s is a share of resources.requests.%s, which is not set" $of $of) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.podDisruptionBudget.enabled -}}
{{- $has := list -}}
{{- range $key := list "maxUnavailable" "minAvailable" -}}
{{- if not (kindIs "invalid" (index $.Values.podDisruptionBudget $key)) -}}{{- $has = append $has $key -}}{{- end -}}
{{- end -}}
{{- if ne (len $has) 1 -}}
{{- fail "podDisruptionBudget needs exactly one of maxUnavailable and minAvailable; set the other one to null" -}}
{{- end -}}
{{- end -}}

{{- /* A stop that is cut off loses what it was about to write. */ -}}
{{- $drain := toString (default "10s" $server.drain_timeout) -}}
{{- if not (regexMatch "^[0-9]{1,9} *(ms|s|m|h)$" $drain) -}}
{{- fail (printf "config.server.drain_timeout `%s` is no duration such as 500ms, 10s or 1m" $drain) -}}
{{- end -}}
{{- $stop := int64 (include "portcullis.stopSeconds" .) -}}
{{- if not (kindIs "invalid" .Values.terminationGracePeriodSeconds) -}}
{{- if lt (int64 .Values.terminationGracePeriodSeconds) $stop -}}
{{- fail (printf "terminationGracePeriodSeconds %d is less than a stop may last: at least %d (preStopSeconds + config.server.drain_timeout + 30), or null" (int64 .Values.terminationGracePeriodSeconds) $stop) -}}
{{- end -}}
{{- end -}}

{{- if and .Values.prometheusRule.enabled (not (include "portcullis.ruleGroups" . | fromYamlArray)) -}}
{{- fail "prometheusRule is enabled and there is no rule: files/prometheus of the chart is empty, and so is prometheusRule.extraGroups" -}}
{{- end -}}
{{- if and .Values.dashboards.enabled (not (.Files.Glob "files/grafana/*.json")) -}}
{{- fail "dashboards are enabled and files/grafana of the chart is empty" -}}
{{- end -}}
{{- end -}}
