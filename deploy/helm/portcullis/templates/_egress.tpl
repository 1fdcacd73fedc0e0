{{/* What the settings and variables name and a pod must reach: a list of name, port where the URL has none, and URL. A
variable goes before a setting, as in the service. */}}
{{- define "portcullis.destinations" -}}
{{- $config := .Values.config -}}
{{- $store := default dict $config.store -}}
{{- $llm := default dict $config.llm -}}
{{- $guard := default dict $config.llama_guard -}}
{{- $jwt := default dict (default dict $config.auth).jwt -}}
{{- $variables := dict -}}
{{- range $name, $value := .Values.env -}}{{- $_ := set $variables $name (toString $value) -}}{{- end -}}
{{- range .Values.secrets.env -}}{{- $_ := set $variables .name "" -}}{{- end -}}
{{- $found := list -}}
{{- if include "portcullis.isPostgres" . -}}
{{- $found = append $found (dict "name" "postgresql" "port" 5432 "url" $store.url) -}}
{{- end -}}
{{- if include "portcullis.isS3" . -}}
{{- $endpoint := coalesce (get $variables "AWS_ENDPOINT_URL_S3") (get $variables "AWS_ENDPOINT_URL") (default dict $store.s3).endpoint "" -}}
{{- $found = append $found (dict "name" "s3" "port" 443 "url" $endpoint) -}}
{{- end -}}
{{- $backend := toString (default "auto" $llm.backend) -}}
{{- $hasKey := or (hasKey $variables "GEMINI_API_KEY") (hasKey $variables "ANTHROPIC_API_KEY") -}}
{{- if or (has $backend (list "gemini" "anthropic" "openai" "ollama")) (and (eq $backend "auto") $hasKey) -}}
{{- $found = append $found (dict "name" "llm" "port" (ternary 11434 443 (eq $backend "ollama")) "url" (default (default "" $llm.base_url) $llm.proxy)) -}}
{{- end -}}
{{- if eq (toString (coalesce (get $variables "LLAMAGUARD_ENABLED") $guard.enabled false)) "true" -}}
{{- $found = append $found (dict "name" "llamaGuard" "port" 443 "url" (coalesce (get $variables "LLAMAGUARD_ENDPOINT") $guard.endpoint "http://localhost:11434")) -}}
{{- end -}}
{{- $otlp := coalesce (get $variables "OTEL_EXPORTER_OTLP_ENDPOINT") (default dict $config.tracing).otlp_endpoint "" -}}
{{- if $otlp -}}
{{- $found = append $found (dict "name" "otlp" "port" 4317 "url" $otlp) -}}
{{- end -}}
{{- $records := toString (default "" (default dict $config.audit).otlp_endpoint) -}}
{{- if and $records (ne $records $otlp) -}}
{{- $found = append $found (dict "name" "otlp" "port" 4317 "url" $records) -}}
{{- end -}}
{{- if and (eq .Values.auth.mode "jwt") $jwt.jwks_url -}}
{{- $found = append $found (dict "name" "jwks" "port" 443 "url" $jwt.jwks_url) -}}
{{- end -}}
{{- range $name, $plugin := (default dict (default dict $config.extensions).plugins) -}}
{{- $found = append $found (dict "name" "extensions" "port" 443 "url" (default "" (default dict $plugin).endpoint)) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* Peers for a destination: those of the values; else what the host tells. A Service name stands for the pods of its
namespace, an address for itself, a provider of whom nothing is said for the public internet, another name for any
address: what it resolves to is not known here. */}}
{{- define "portcullis.peers" -}}
{{- $host := .host -}}
{{- if .peers -}}
{{- toYaml .peers -}}
{{- else if not $host -}}
- ipBlock:
    cidr: 0.0.0.0/0
    except: [0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16]
- ipBlock:
    cidr: ::/0
    except: ["::1/128", "fc00::/7", "fe80::/10"]
{{- else if regexMatch "^[0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+$" $host -}}
- ipBlock:
    cidr: {{ $host }}/32
{{- else if contains ":" $host -}}
- ipBlock:
    cidr: {{ $host }}/128
{{- else if regexMatch "\\.svc(\\.|$)" $host -}}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ index (splitList "." $host) 1 }}
{{- else if not (contains "." $host) -}}
- podSelector: {}
{{- end -}}
{{- end -}}

{{- define "portcullis.egress" -}}
{{- $to := .Values.networkPolicy.egress.to -}}
{{- range $destination := include "portcullis.destinations" . | fromYamlArray -}}
{{- $authority := "" -}}
{{- $port := int $destination.port -}}
{{- if $destination.url -}}
{{- $url := urlParse $destination.url -}}
{{- if and (eq $url.scheme "http") (eq $port 443) -}}{{- $port = 80 -}}{{- end -}}
{{- if and (eq $url.scheme "https") (ne $destination.name "postgresql") -}}{{- $port = 443 -}}{{- end -}}
{{- $authority = $url.host -}}
{{- end -}}
{{- with regexFind ":[0-9]+$" $authority -}}{{- $port = int (trimPrefix ":" .) -}}{{- end -}}
{{- $host := regexReplaceAll ":[0-9]+$" $authority "" | trimPrefix "[" | trimSuffix "]" -}}
{{- if not (or (eq $host "localhost") (hasPrefix "127." $host) (eq $host "::1")) }}
# {{ $destination.name }}
- ports:
    - {protocol: TCP, port: {{ $port }}}
  {{- with include "portcullis.peers" (dict "host" $host "peers" (get $to $destination.name)) }}
  to:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
