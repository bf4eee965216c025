{{- /* What an operator may do in the namespaces of jobs: rules of a Role, or of a ClusterRole. */ -}}
{{- define "adamant.jobRules" -}}
# Jobs are their users'; the operator deletes those whose time to live after the end is over.
- apiGroups: [adamant.dev]
  resources: [trainingjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [adamant.dev]
  resources: [trainingjobs/status]
  verbs: [patch]
# Lets what belongs to a job hold up its deletion, where the cluster checks who may say so.
- apiGroups: [adamant.dev]
  resources: [trainingjobs/finalizers]
  verbs: [update]
# Who holds which buckets.
- apiGroups: [adamant.dev]
  resources: [shardmaps]
  verbs: [get, list, watch, create, update, delete]
# The jobs' processes, their volumes, and how many of them may be evicted at once.
- apiGroups: [""]
  resources: [pods, persistentvolumeclaims]
  verbs: [get, list, watch, create, delete]
# Where Kueue places a job's pods: to tell it that a group ends, and that a pod was on a node that is lost.
- apiGroups: [""]
  resources: [pods, pods/status]
  verbs: [patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
# Who may talk to a job's pods, and with whom they may talk.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, create, patch, delete]
# In which pods of a job that names one are placed together, by the coscheduling plugin.
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get, list, create, patch, delete]
# Each job's state, by name. Those with the operator's label are listed every 10 minutes, for what a job left behind
# that exists no more; without that verb they are only deleted when another job of its name needs theirs.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, create, update, patch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{- /* What it reads of the cluster: rules of a ClusterRole only. */ -}}
{{- define "adamant.clusterRules" -}}
# Which nodes are lost, and in which zones the others are.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
# Whether the claim for a job's output, which has no volume yet, will get one once a pod wants it.
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [get]
# Which node a parameter server's volume is on that was made by hand.
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs: [get]
{{- end -}}

{{- define "adamant.subjects" -}}
- kind: ServiceAccount
  name: {{ include "adamant.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
