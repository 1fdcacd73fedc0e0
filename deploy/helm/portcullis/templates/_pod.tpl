{{/* The pod of the Deployment. */}}

{{/* Health over gRPC needs plain text: the kubelet speaks no TLS there. With TLS /readyz says the same. */}}
{{- define "portcullis.serving" -}}
{{- if .Values.tls.enabled -}}
httpGet:
  path: /readyz
  port: http
  httpHeaders:
    - {name: Host, value: localhost}
{{- else -}}
grpc:
  port: {{ .Values.ports.grpc }}
{{- end -}}
{{- end -}}

{{- define "portcullis.env" -}}
- name: PORTCULLIS_CONFIG
  value: /etc/portcullis/config/portcullis.yaml
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
# Prometheus and the kubelet name the address of the pod, which is known here only.
- name: PORTCULLIS_HTTP__ALLOWED_HOSTS
  {{- $own := ternary "[$(POD_IP)]" "$(POD_IP)" (eq .Values.ipFamily "IPv6") }}
  value: {{ prepend (default list (default dict .Values.config.http).allowed_hosts) $own | join "," | quote }}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- range .Values.secrets.env }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secretName }}
      key: {{ .key }}
{{- end }}
{{- end -}}

{{- define "portcullis.volumeMounts" -}}
- {name: config, mountPath: /etc/portcullis/config, readOnly: true}
- {name: data, mountPath: {{ include "portcullis.dataMount" . }}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.policies }}
- {name: policies, mountPath: /etc/portcullis/policies, readOnly: true}
{{- end }}
{{- if .Values.rules }}
- {name: rules, mountPath: /etc/portcullis/rules/custom, readOnly: true}
{{- end }}
{{- if eq .Values.auth.mode "tokens" }}
- {name: tokens, mountPath: /etc/portcullis/tokens, readOnly: true}
{{- end }}
{{- if .Values.tls.enabled }}
- {name: tls, mountPath: /etc/portcullis/tls, readOnly: true}
{{- end }}
{{- if .Values.tls.clientCaSecretName }}
- {name: client-ca, mountPath: /etc/portcullis/client-ca, readOnly: true}
{{- end }}
{{- range .Values.secrets.files }}
- {name: secret-{{ .name }}, mountPath: /etc/portcullis/secrets/{{ .name }}, readOnly: true}
{{- end }}
{{- range .Values.files }}
- {name: files-{{ .name }}, mountPath: /etc/portcullis/files/{{ .name }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "portcullis.volumes" -}}
{{- $fullname := include "portcullis.fullname" . -}}
- name: config
  configMap:
    name: {{ $fullname }}
- name: data
  {{- if .Values.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ default $fullname .Values.persistence.existingClaim }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .Values.emptyDir.dataSizeLimit }}
  {{- end }}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.emptyDir.tmpSizeLimit }}
{{- if .Values.policies }}
- name: policies
  configMap:
    name: {{ $fullname }}-policies
{{- end }}
{{- if .Values.rules }}
- name: rules
  configMap:
    name: {{ $fullname }}-rules
{{- end }}
{{- if eq .Values.auth.mode "tokens" }}
- name: tokens
  secret:
    secretName: {{ include "portcullis.tokensSecret" . }}
    defaultMode: 0440
{{- end }}
{{- if .Values.tls.enabled }}
- name: tls
  secret:
    secretName: {{ include "portcullis.tlsSecret" . }}
    defaultMode: 0440
{{- end }}
{{- with .Values.tls.clientCaSecretName }}
- name: client-ca
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- range .Values.secrets.files }}
- name: secret-{{ .name }}
  secret:
    secretName: {{ .secretName }}
    defaultMode: 0440
{{- end }}
{{- range .Values.files }}
- name: files-{{ .name }}
  configMap:
    name: {{ .configMapName }}
{{- end }}
{{- end -}}

{{- define "portcullis.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
# Otherwise every start would open all files of the data folder to the group, and the service refuses an admin token that
# others can read.
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "portcullis.securityContext" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}
