// Package helm contains the chart for Kubernetes, weir/, and its tests. The tests render the chart, decode the
// objects as the API server does, and run their containers on this machine. docker/kubernetes/weir.yaml is rendered
// from the chart. The package is a module of its own, so that weir does not depend on Helm and the types of
// Kubernetes.
package helm
