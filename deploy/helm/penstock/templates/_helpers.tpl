{{/* Names. Room is left for "-controller" and the like within 63 characters. */}}
{{- define "penstock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "penstock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "penstock.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "penstock.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "penstock.controllerServiceAccount" -}}
{{- .Values.controller.serviceAccount.name | default (printf "%s-controller" (include "penstock.fullname" .)) -}}
{{- end -}}

{{- define "penstock.monitorServiceAccount" -}}
{{- .Values.monitor.serviceAccount.name | default (printf "%s-monitor" (include "penstock.fullname" .)) -}}
{{- end -}}

{{- define "penstock.consumerServiceAccount" -}}
{{- .Values.consumer.serviceAccount.name | default (printf "%s-consumer" (include "penstock.fullname" .)) -}}
{{- end -}}

{{- define "penstock.lakeClaim" -}}
{{- .Values.lake.persistence.existingClaim | default (printf "%s-lake" (include "penstock.fullname" .)) -}}
{{- end -}}

{{- define "penstock.group" -}}
{{- dig "lake" "group" "penstock" .Values.settings -}}
{{- end -}}

{{/* Labels: [context, component]. Selector labels stay the same in every upgrade: a Deployment's selector cannot change. */}}
{{- define "penstock.selectorLabels" -}}
app.kubernetes.io/name: {{ include "penstock.name" (first .) }}
app.kubernetes.io/instance: {{ (first .).Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{- define "penstock.labels" -}}
{{- $root := first . -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "penstock.selectorLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: penstock
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end -}}

{{/* What GitOps tools must not remove although it is no longer in what they render. */}}
{{- define "penstock.notPruned" -}}
argocd.argoproj.io/compare-options: IgnoreExtraneous
argocd.argoproj.io/sync-options: Prune=false
kustomize.toolkit.fluxcd.io/prune: disabled
{{- end -}}

{{/* An image reference: [context, image values]. */}}
{{- define "penstock.imageOf" -}}
{{- $root := first . -}}
{{- $image := last . -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default $root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "penstock.consumerImage" -}}
{{- $standard := ternary .Values.thinImage .Values.image .Values.spark.connect.enabled -}}
{{- $own := .Values.consumer.image -}}
{{- $image := dict "repository" $standard.repository "tag" $standard.tag "digest" $standard.digest -}}
{{- if or $own.repository $own.tag $own.digest -}}
{{- $image = dict "repository" ($own.repository | default $standard.repository) "tag" ($own.tag | default $standard.tag) "digest" $own.digest -}}
{{- end -}}
{{- include "penstock.imageOf" (list . $image) -}}
{{- end -}}

{{/* The labels that the controller gives the consumers of this group. */}}
{{- define "penstock.consumerLabels" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/component: consumer
app.kubernetes.io/managed-by: penstock-controller
penstock.io/group: {{ include "penstock.groupLabel" . | quote }}
{{- end -}}

{{/* The group's name as the controller writes it into a label: itself, or a DNS label with a sum where it cannot be one. */}}
{{- define "penstock.groupLabel" -}}
{{- $group := include "penstock.group" . -}}
{{- if regexMatch "^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$" $group -}}
{{- $group -}}
{{- else -}}
{{- $mark := sha256sum $group | trunc 6 -}}
{{- $kept := regexReplaceAll "[^a-z0-9]+" (lower $group) "-" | trimAll "-" | trunc 23 | trimAll "-" -}}
{{- if regexMatch "^[a-z]" $kept -}}
{{- printf "%s-%s" $kept $mark -}}
{{- else -}}
{{- printf "g-%s-%s" $kept $mark | replace "--" "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The settings map is named by its content: a pod that restarts gets the settings of its own version. */}}
{{- define "penstock.settingsMap" -}}
{{- $content := printf "%s\n%s" (include "penstock.settingsWith" (list . "")) (include "penstock.podTemplate" .) -}}
{{- printf "%s-%s" (include "penstock.fullname" .) ($content | sha256sum | trunc 10) -}}
{{- end -}}

{{/* The whole of penstock.yaml: what the chart knows, and over it what the user set. */}}
{{- define "penstock.settings" -}}
{{- include "penstock.settingsWith" (list . (include "penstock.settingsMap" .)) -}}
{{- end -}}

{{/* The same with a name of the settings map, which is made of the rest: [context, name]. */}}
{{- define "penstock.settingsWith" -}}
{{- $map := last . -}}
{{- with first . -}}
{{- $connect := .Values.spark.connect -}}
{{- $resources := .Values.consumer.resources | default (fromYaml (include "penstock.consumerResources" .)) -}}
{{- $volume := .Values.consumer.volume -}}
{{- $known := dict
  "controller" (dict "deployment" "kubernetes" "directory" "/var/lib/penstock/state")
  "log" (dict "format" "json")
  "kubernetes" (dict
    "image" (include "penstock.consumerImage" .)
    "image_pull_policy" .Values.image.pullPolicy
    "consumer_service_account" (include "penstock.consumerServiceAccount" .)
    "pod_template" "/etc/penstock/pod-template.yaml"
    "settings_config_map" $map
    "owner" (printf "%s-controller" (include "penstock.fullname" .))
    "volume_size" $volume.size
    "volume_storage_class" $volume.storageClass
    "volume_access_mode" $volume.accessMode
    "remove_volumes" $volume.removeOnScaleDown
    "grace_period" .Values.consumer.gracePeriod
    "cpu_request" ($resources.requests.cpu | toString)
    "memory_request" ($resources.requests.memory | toString)
    "cpu_limit" ($resources.limits.cpu | toString)
    "memory_limit" ($resources.limits.memory | toString))
-}}
{{- if .Values.lake.persistence.enabled -}}
{{- $_ := set $known "lake" (dict "root" .Values.lake.persistence.mountPath) -}}
{{- end -}}
{{- if $connect.enabled -}}
{{- $spark := dict "master" (printf "sc://%s-spark:%d" (include "penstock.fullname" .) (int $connect.port)) -}}
{{- if $connect.tls.enabled -}}
{{- $spark = dict "master" (printf "%s/;use_ssl=true" $spark.master) "certificate_authority_file" "/etc/spark-tls/ca.crt" "certificate_file" "/etc/spark-tls/tls.crt" "certificate_key_file" "/etc/spark-tls/tls.key" -}}
{{- else if not (dig "spark" "insecure" false .Values.settings) -}}
{{- fail "spark.connect.tls.enabled is false: what goes to the Spark Connect server, its token too, would not be encrypted. If that is meant, set settings.spark.insecure=true." -}}
{{- else if or .Values.kafka.existingSecret .Values.consumer.kafka.existingSecret -}}
{{- fail "Consumers give their Kafka password to the Spark Connect server: that needs spark.connect.tls.enabled." -}}
{{- end -}}
{{- $_ := set $known "spark" $spark -}}
{{- end -}}
{{- if .Values.kafka.username -}}
{{- $_ := set $known "kafka" (dict "properties" (dict "sasl.username" .Values.kafka.username)) -}}
{{- end -}}
{{- $settings := mergeOverwrite $known (deepCopy .Values.settings) -}}
{{- $root := dig "lake" "root" "" $settings -}}
{{- if not (or .Values.lake.persistence.enabled (contains "://" $root) .Values.consumer.extraVolumeMounts .Values.extraVolumeMounts .Values.consumer.podTemplate) -}}
{{- fail "Nothing holds the lake: set lake.persistence.enabled, or settings.lake.root to an object store (s3://...), or mount a volume with consumer.extraVolumes and extraVolumeMounts." -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}
{{- end -}}

{{- define "penstock.consumerResources" -}}
{{- if .Values.spark.connect.enabled -}}
requests: {cpu: 250m, memory: 512Mi}
limits: {cpu: "1", memory: 1Gi}
{{- else -}}
requests: {cpu: 500m, memory: 1536Mi}
limits: {cpu: "2", memory: 2Gi}
{{- end -}}
{{- end -}}

{{/* Who a role is to Kafka: [context, the role's kafka values]. The Secret is named, never copied. */}}
{{- define "penstock.kafkaEnv" -}}
{{- $root := first . -}}
{{- $own := last . | default dict -}}
{{- $all := $root.Values.kafka -}}
{{- $secret := $own.existingSecret | default $all.existingSecret -}}
{{- $passwordKey := $own.passwordKey | default $all.passwordKey -}}
{{- $tlsKeyPasswordKey := $own.tlsKeyPasswordKey | default $all.tlsKeyPasswordKey -}}
{{- if $own.username }}
- name: PENSTOCK_KAFKA__PROPERTIES
  value: {{ mergeOverwrite (deepCopy (dig "kafka" "properties" dict $root.Values.settings)) (dict "sasl.username" $own.username) | toJson | quote }}
{{- end }}
{{- if and $secret $passwordKey }}
- name: PENSTOCK_KAFKA__SASL_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ $secret | quote }}, key: {{ $passwordKey | quote }}}
{{- end }}
{{- if and $secret $tlsKeyPasswordKey }}
- name: PENSTOCK_KAFKA__SSL_KEY_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ $secret | quote }}, key: {{ $tlsKeyPasswordKey | quote }}}
{{- end }}
{{- end -}}

{{/* What opens sessions on the Spark Connect server, and with which its certificate is checked: for the server and its consumers alone. */}}
{{- define "penstock.sparkSecret" -}}
{{- .Values.spark.connect.existingSecret | default (printf "%s-spark" (include "penstock.fullname" .)) -}}
{{- end -}}

{{- define "penstock.sparkEnv" -}}
{{- if .Values.spark.connect.enabled }}
- name: PENSTOCK_SPARK__TOKEN
  valueFrom:
    secretKeyRef: {name: {{ include "penstock.sparkSecret" . | quote }}, key: token}
{{- end }}
{{- end -}}

{{- define "penstock.sparkMount" -}}
{{- if and .Values.spark.connect.enabled .Values.spark.connect.tls.enabled }}
- name: spark-tls
  mountPath: /etc/spark-tls
  readOnly: true
{{- end }}
{{- end -}}

{{/* [context, the names of the files]. */}}
{{- define "penstock.sparkVolume" -}}
{{- $root := first . -}}
{{- if and $root.Values.spark.connect.enabled $root.Values.spark.connect.tls.enabled }}
- name: spark-tls
  secret:
    secretName: {{ $root.Values.spark.connect.tls.existingSecret | default (include "penstock.sparkSecret" $root) | quote }}
    items:
      {{- range last . }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- end -}}

{{/* The pod's own: [context, the role's values]. */}}
{{- define "penstock.podSpec" -}}
{{- $root := first . -}}
{{- $role := last . -}}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with mergeOverwrite (deepCopy $root.Values.nodeSelector) $role.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with concat $root.Values.tolerations $role.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $role.affinity | default $root.Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $role.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "penstock.podSecurityContext" -}}
{{ mergeOverwrite (deepCopy .Values.podSecurityContext) (dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault")) | toYaml }}
{{- end -}}

{{- define "penstock.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Pods of ours read no service addresses from the environment: PENSTOCK_SPARK_PORT would be taken for a setting. */}}
{{- define "penstock.podBasics" -}}
enableServiceLinks: false
securityContext: {{ include "penstock.podSecurityContext" . | nindent 2 }}
{{- end -}}

{{- define "penstock.extraEnv" -}}
{{- with concat (first .).Values.extraEnv (last .).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "penstock.envFrom" -}}
{{- with concat (first .).Values.extraEnvFrom (last .).extraEnvFrom }}
envFrom: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "penstock.extraMounts" -}}
{{- $root := first . -}}
{{- if $root.Values.kafka.tls.existingSecret }}
- name: kafka-tls
  mountPath: {{ $root.Values.kafka.tls.mountPath }}
  readOnly: true
{{- end }}
{{- with concat $root.Values.extraVolumeMounts (last .).extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "penstock.extraVolumes" -}}
{{- $root := first . -}}
{{- with $root.Values.kafka.tls.existingSecret }}
- name: kafka-tls
  secret:
    secretName: {{ . | quote }}
{{- end }}
{{- with concat $root.Values.extraVolumes (last .).extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "penstock.lakeMount" -}}
{{- if .Values.lake.persistence.enabled }}
- name: lake
  mountPath: {{ .Values.lake.persistence.mountPath }}
{{- end }}
{{- end -}}

{{/* For who only looks at the tables: the live page. */}}
{{- define "penstock.lakeMountToRead" -}}
{{- if .Values.lake.persistence.enabled }}
- name: lake
  mountPath: {{ .Values.lake.persistence.mountPath }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "penstock.lakeVolume" -}}
{{- if .Values.lake.persistence.enabled }}
- name: lake
  persistentVolumeClaim:
    claimName: {{ include "penstock.lakeClaim" . | quote }}
{{- end }}
{{- end -}}

{{- define "penstock.podAnnotations" -}}
{{- $root := first . -}}
checksum/config: {{ include (print $root.Template.BasePath "/configmap.yaml") $root | sha256sum }}
{{- with mergeOverwrite (deepCopy $root.Values.podAnnotations) (last .).podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "penstock.podLabels" -}}
{{- $root := index . 0 -}}
{{- /* No version here: a chart that only changes its version restarts nothing. */ -}}
{{ mergeOverwrite (deepCopy $root.Values.podLabels) (index . 1).podLabels (dict "app.kubernetes.io/part-of" "penstock") (fromYaml (include "penstock.selectorLabels" (list $root (index . 2)))) | toYaml }}
{{- end -}}

{{/* Probes on the process's own health endpoint. */}}
{{- define "penstock.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  timeoutSeconds: 2
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 3
{{- end -}}

{{/* What the controller lays over the consumers' pod template: the values above, then the user's own template. */}}
{{- define "penstock.podTemplate" -}}
{{- $role := .Values.consumer -}}
{{- $container := dict "name" "consumer" -}}
{{- $env := concat (fromYamlArray (include "penstock.kafkaEnv" (list . $role.kafka))) (fromYamlArray (include "penstock.sparkEnv" .)) (fromYamlArray (include "penstock.extraEnv" (list . $role))) -}}
{{- with $env }}{{ $_ := set $container "env" . }}{{ end -}}
{{- with concat .Values.extraEnvFrom $role.extraEnvFrom }}{{ $_ := set $container "envFrom" . }}{{ end -}}
{{- with concat (fromYamlArray (include "penstock.lakeMount" .)) (fromYamlArray (include "penstock.sparkMount" .)) (fromYamlArray (include "penstock.extraMounts" (list . $role))) }}{{ $_ := set $container "volumeMounts" . }}{{ end -}}
{{- $spec := fromYaml (include "penstock.podSpec" (list . $role)) -}}
{{- with concat (fromYamlArray (include "penstock.lakeVolume" .)) (fromYamlArray (include "penstock.sparkVolume" (list . (list "ca.crt")))) (fromYamlArray (include "penstock.extraVolumes" (list . $role))) }}{{ $_ := set $spec "volumes" . }}{{ end -}}
{{- with $role.topologySpreadConstraints }}{{ $_ := set $spec "topologySpreadConstraints" . }}{{ end -}}
{{- $_ := set $spec "securityContext" (fromYaml (include "penstock.podSecurityContext" .)) -}}
{{- $own := deepCopy $role.podTemplate -}}
{{- $containers := list -}}
{{- range (dig "spec" "containers" list $own) -}}
{{- if eq .name "consumer" -}}
{{- range $key, $value := . -}}
{{- if and (has $key (list "env" "volumeMounts" "envFrom")) (hasKey $container $key) -}}
{{- $_ := set $container $key (concat (get $container $key) $value) -}}
{{- else -}}
{{- $_ := set $container $key $value -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- $containers = append $containers . -}}
{{- end -}}
{{- end -}}
{{- $volumes := concat ($spec.volumes | default list) (dig "spec" "volumes" list $own) -}}
{{- $_ := set $spec "containers" (prepend $containers $container) -}}
{{- $metadata := dict -}}
{{- with mergeOverwrite (deepCopy .Values.podLabels) $role.podLabels }}{{ $_ := set $metadata "labels" . }}{{ end -}}
{{- with mergeOverwrite (deepCopy .Values.podAnnotations) $role.podAnnotations }}{{ $_ := set $metadata "annotations" . }}{{ end -}}
{{- $ownSpec := omit ($own.spec | default dict) "containers" "volumes" -}}
{{- $spec = mergeOverwrite $spec $ownSpec -}}
{{- with $volumes }}{{ $_ := set $spec "volumes" . }}{{ end -}}
{{- dict "metadata" (mergeOverwrite $metadata ($own.metadata | default dict)) "spec" $spec | toYaml -}}
{{- end -}}
