package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of weir.yaml, read as the API server reads them.
type manifests struct {
	set      appsv1.StatefulSet
	budget   policyv1.PodDisruptionBudget
	policies corev1.ConfigMap
	services map[string]*corev1.Service
}

// read decodes every document into Kubernetes' own type; a field that the type does not
// have is an error.
func read(t *testing.T) *manifests {
	t.Helper()
	file, err := os.ReadFile("weir.yaml")
	require.NoError(t, err)
	m := &manifests{services: map[string]*corev1.Service{}}
	kinds := map[string]func() any{
		"v1 ConfigMap": func() any { return &m.policies }, "apps/v1 StatefulSet": func() any { return &m.set },
		"policy/v1 PodDisruptionBudget": func() any { return &m.budget }, "v1 Service": func() any { return new(corev1.Service) },
	}
	for _, text := range bytes.Split(file, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal(text, &kind))
		make, ok := kinds[kind.APIVersion+" "+kind.Kind]
		require.True(t, ok, "%+v", kind)
		object := make()
		require.NoError(t, yaml.UnmarshalStrict(text, object), "%+v", kind)
		if s, ok := object.(*corev1.Service); ok {
			m.services[s.Name] = s
		}
	}
	return m
}

func (m *manifests) container() *corev1.Container { return &m.set.Spec.Template.Spec.Containers[0] }

// Everything that selects pods selects those of the set, and every port has its name.
func TestTheObjectsFitTogether(t *testing.T) {
	m := read(t)
	pod := labels.Set(m.set.Spec.Template.Labels)
	selects := func(s *metav1.LabelSelector) {
		t.Helper()
		selector, err := metav1.LabelSelectorAsSelector(s)
		require.NoError(t, err)
		require.True(t, selector.Matches(pod))
	}
	selects(m.set.Spec.Selector)
	selects(m.budget.Spec.Selector)
	selects(m.set.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector)
	named := map[string]bool{}
	for _, p := range m.container().Ports {
		named[p.Name] = true
	}
	for name, s := range m.services {
		require.True(t, labels.SelectorFromSet(s.Spec.Selector).Matches(pod), name)
		for _, p := range s.Spec.Ports {
			require.True(t, named[p.TargetPort.StrVal], "port %s of %s", p.Name, name)
		}
	}
	for _, probe := range []*corev1.Probe{m.container().StartupProbe, m.container().LivenessProbe, m.container().ReadinessProbe} {
		require.True(t, named[probe.HTTPGet.Port.StrVal])
	}
	volumes := map[string]bool{"data": m.set.Spec.VolumeClaimTemplates[0].Name == "data"}
	for _, v := range m.set.Spec.Template.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, mount := range m.container().VolumeMounts {
		require.True(t, volumes[mount.Name], mount.Name)
	}
	nodes := m.services[m.set.Spec.ServiceName]
	require.Equal(t, corev1.ClusterIPNone, nodes.Spec.ClusterIP)
	require.True(t, nodes.Spec.PublishNotReadyAddresses)
	require.Equal(t, appsv1.ParallelPodManagement, m.set.Spec.PodManagementPolicy, "the first waits for the second")
}

// The pod may do nothing that weir does not need.
func TestThePodIsConfined(t *testing.T) {
	m := read(t)
	pod, own := m.set.Spec.Template.Spec.SecurityContext, m.container().SecurityContext
	require.True(t, *pod.RunAsNonRoot)
	require.EqualValues(t, 65532, *pod.RunAsUser)
	require.True(t, *own.ReadOnlyRootFilesystem)
	require.False(t, *own.AllowPrivilegeEscalation)
	require.Equal(t, []corev1.Capability{"ALL"}, own.Capabilities.Drop)
	require.False(t, *m.set.Spec.Template.Spec.AutomountServiceAccountToken)
	require.EqualValues(t, 1, m.budget.Spec.MaxUnavailable.IntValue())
	require.Greater(t, *m.set.Spec.Replicas/2, int32(m.budget.Spec.MaxUnavailable.IntValue())-1, "a majority stays")
}

// Every variable is one that weir serve reads, and names each node as the others do.
func TestTheVariablesAreWeirs(t *testing.T) {
	m := read(t)
	help := weir(t, "serve", "--help")
	values := map[string]string{"NAMESPACE": "default", "WEIR_NODE_ID": "weir-1"}
	for _, v := range m.container().Env {
		if name, ok := strings.CutPrefix(v.Name, "WEIR_"); ok {
			flag := "--" + strings.ReplaceAll(strings.ToLower(name), "_", "-")
			require.Contains(t, help, flag+"=", v.Name)
		}
		if v.ValueFrom == nil {
			values[v.Name] = os.Expand(strings.NewReplacer("$(", "${", ")", "}").Replace(v.Value), func(n string) string { return values[n] })
		}
	}
	require.Equal(t, values["WEIR_RAFT_ADDR"], strings.Split(values["WEIR_JOIN"], ",")[1])
	require.Len(t, strings.Split(values["WEIR_JOIN"], ","), int(*m.set.Spec.Replicas))
	require.Equal(t, "weir-1.weir-nodes.default.svc:6380", values["WEIR_ADVERTISE"])
}

// The command before a stop is one that weir has.
func TestTheHandoverIsACommand(t *testing.T) {
	command := read(t).container().Lifecycle.PreStop.Exec.Command
	require.Equal(t, "/usr/local/bin/weir", command[0])
	said := weir(t, append(command[1:], "--help")...)
	require.Contains(t, said, "Hand leadership to another node")
}

// The policies are a file that weir takes.
func TestThePoliciesAreAFile(t *testing.T) {
	var file struct{ Policies map[string]any }
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t).policies.Data["policies.yaml"]), &file))
	require.NotEmpty(t, file.Policies)
}

// weir runs the program that this tree makes.
func weir(t *testing.T, args ...string) string {
	t.Helper()
	run := exec.Command("go", append([]string{"run", "./cmd/weir"}, args...)...)
	run.Dir = "../.."
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
