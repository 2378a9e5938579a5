// Package kubernetes holds the manifests for Kubernetes, and the test that takes them
// for what they claim. It is a module of its own, so that weir does not depend on the
// types of Kubernetes.
package kubernetes
