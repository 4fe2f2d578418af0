// Kubernetes requires this module and imports none of its packages, so an empty one does.
module k8s.io/sample-apiserver

go 1.24.0
