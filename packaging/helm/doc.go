// Package helm holds the chart for Kubernetes, weir/, and the tests that render it, read the
// objects as the API server does, and run what they say on this machine.
// docker/kubernetes/weir.yaml is rendered from it. It is a module of its own, so that weir
// does not depend on Helm and on the types of Kubernetes.
package helm
