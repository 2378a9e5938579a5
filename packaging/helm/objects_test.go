package helm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// hook is the annotation of temporary objects.
const hook = "helm.sh/hook"

// objects are the objects of a release, decoded as the API server decodes them.
type objects struct {
	set          *appsv1.StatefulSet
	budget       *policyv1.PodDisruptionBudget
	services     map[string]*corev1.Service
	configs      map[string]*corev1.ConfigMap
	certificates map[string]*certmanager.Certificate
	network      *networkingv1.NetworkPolicy
	monitor      *monitoring.ServiceMonitor
	rules        *monitoring.PrometheusRule
	job          *batchv1.Job
	test         *corev1.Pod
	all          []metav1.Object
	notes        string
}

// take stores a decoded object under its kind.
func (o *objects) take(object metav1.Object) {
	o.all = append(o.all, object)
	switch x := object.(type) {
	case *appsv1.StatefulSet:
		o.set = x
	case *policyv1.PodDisruptionBudget:
		o.budget = x
	case *corev1.Service:
		o.services[x.Name] = x
	case *corev1.ConfigMap:
		o.configs[x.Name] = x
	case *certmanager.Certificate:
		o.certificates[x.Name] = x
	case *networkingv1.NetworkPolicy:
		o.network = x
	case *monitoring.ServiceMonitor:
		o.monitor = x
	case *monitoring.PrometheusRule:
		o.rules = x
	case *batchv1.Job:
		o.job = x
	case *corev1.Pod:
		o.test = x
	}
}

var kinds = map[string]func() metav1.Object{
	"apps/v1 StatefulSet":                     func() metav1.Object { return new(appsv1.StatefulSet) },
	"policy/v1 PodDisruptionBudget":           func() metav1.Object { return new(policyv1.PodDisruptionBudget) },
	"v1 Service":                              func() metav1.Object { return new(corev1.Service) },
	"v1 ConfigMap":                            func() metav1.Object { return new(corev1.ConfigMap) },
	"v1 Pod":                                  func() metav1.Object { return new(corev1.Pod) },
	"batch/v1 Job":                            func() metav1.Object { return new(batchv1.Job) },
	"networking.k8s.io/v1 NetworkPolicy":      func() metav1.Object { return new(networkingv1.NetworkPolicy) },
	"cert-manager.io/v1 Certificate":          func() metav1.Object { return new(certmanager.Certificate) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() metav1.Object { return new(monitoring.ServiceMonitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() metav1.Object { return new(monitoring.PrometheusRule) },
}

// install renders the chart and decodes every document strictly: an unknown field or a duplicate key is an error.
func install(t *testing.T, values map[string]any) *objects {
	t.Helper()
	texts, err := rendered(t, values, nil)
	require.NoError(t, err)
	o := decode(t, texts)
	o.notes = texts[notesFile]
	return o
}

func decode(t *testing.T, texts map[string]string) *objects {
	t.Helper()
	o := &objects{
		services: map[string]*corev1.Service{}, configs: map[string]*corev1.ConfigMap{},
		certificates: map[string]*certmanager.Certificate{},
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if name == notesFile {
			continue
		}
		for text := range strings.SplitSeq(texts[name], "\n---\n") {
			if object := decodeOne(t, name, text); object != nil {
				o.take(object)
			}
		}
	}
	return o
}

// decodeOne returns nil for a document that contains only comments.
func decodeOne(t *testing.T, name, text string) metav1.Object {
	t.Helper()
	var kind metav1.TypeMeta
	require.NoError(t, yaml.Unmarshal([]byte(text), &kind), "%s:\n%s", name, text)
	if kind.Kind == "" {
		var nothing map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &nothing))
		require.Empty(t, nothing, name)
		return nil
	}
	makeOne, ok := kinds[kind.APIVersion+" "+kind.Kind]
	require.True(t, ok, "%s: %+v", name, kind)
	object := makeOne()
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), object), "%s:\n%s", name, text)
	return object
}

func (o *objects) container() *corev1.Container { return &o.set.Spec.Template.Spec.Containers[0] }

// pods returns the templates of all pods, by the object that creates them.
func (o *objects) pods() map[string]*corev1.PodSpec {
	pods := map[string]*corev1.PodSpec{"set": &o.set.Spec.Template.Spec, "test": &o.test.Spec}
	if o.job != nil {
		pods["job"] = &o.job.Spec.Template.Spec
	}
	return pods
}
