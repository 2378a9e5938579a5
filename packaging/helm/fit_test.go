package helm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// each runs a test with the objects that the chart renders from each set of example values.
func each(t *testing.T, run func(t *testing.T, o *objects)) {
	for _, file := range examples(t) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "weir/examples/"), ".yaml"), func(t *testing.T) {
			run(t, install(t, valuesOf(t, file)))
		})
	}
}

// TestSelectorsSelectTheNodes checks that every selector matches the pods of nodes, and not the pod of the helm test.
func TestSelectorsSelectTheNodes(t *testing.T) {
	each(t, func(t *testing.T, o *objects) {
		nodes, asks := labels.Set(o.set.Spec.Template.Labels), labels.Set(o.test.Labels)
		selects := func(s *metav1.LabelSelector) {
			t.Helper()
			selector, err := metav1.LabelSelectorAsSelector(s)
			require.NoError(t, err)
			require.True(t, selector.Matches(nodes))
			require.False(t, selector.Matches(asks))
		}
		selects(o.set.Spec.Selector)
		for _, spread := range o.set.Spec.Template.Spec.TopologySpreadConstraints {
			selects(spread.LabelSelector)
		}
		for _, s := range o.services {
			selects(&metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		}
		if o.budget != nil {
			selects(o.budget.Spec.Selector)
		}
		if o.network != nil {
			selects(&o.network.Spec.PodSelector)
			selects(o.network.Spec.Ingress[0].From[0].PodSelector)
			own, err := metav1.LabelSelectorAsSelector(o.network.Spec.Ingress[1].From[0].PodSelector)
			require.NoError(t, err)
			require.True(t, own.Matches(asks), "the Job and helm test are let in")
		}
		if o.monitor != nil {
			selector := labels.SelectorFromSet(o.monitor.Spec.Selector.MatchLabels)
			require.True(t, selector.Matches(labels.Set(o.services[o.set.Spec.ServiceName].Labels)))
			require.False(t, selector.Matches(labels.Set(o.services[o.set.Name].Labels)), "each node is scraped once")
		}
	})
}

// TestPortsHaveTheirNames checks that each named port exists in the container, and that weir listens on it.
func TestPortsHaveTheirNames(t *testing.T) {
	each(t, func(t *testing.T, o *objects) {
		ports := map[string]int32{}
		for _, p := range o.container().Ports {
			ports[p.Name] = p.ContainerPort
		}
		named := func(port intstr.IntOrString) {
			t.Helper()
			require.Contains(t, ports, port.StrVal)
		}
		for _, s := range o.services {
			for _, p := range s.Spec.Ports {
				named(p.TargetPort)
				require.Equal(t, ports[p.TargetPort.StrVal], p.Port, "the same inside and outside")
			}
		}
		for _, probe := range []*corev1.Probe{o.container().StartupProbe, o.container().LivenessProbe,
			o.container().ReadinessProbe} {
			named(probe.HTTPGet.Port)
		}
		if o.network != nil {
			for _, rule := range o.network.Spec.Ingress {
				for _, p := range rule.Ports {
					named(*p.Port)
				}
			}
		}
		nodes := o.services[o.set.Spec.ServiceName]
		require.Equal(t, corev1.ClusterIPNone, nodes.Spec.ClusterIP)
		require.True(t, nodes.Spec.PublishNotReadyAddresses)
		require.Equal(t, appsv1.ParallelPodManagement, o.set.Spec.PodManagementPolicy, "the first waits for the second")
		if o.monitor != nil {
			require.Equal(t, "http", o.monitor.Spec.Endpoints[0].Port)
		}
	})
}

// TestMountsHaveVolumes checks that every mount has a volume, and that every volume has a mount.
func TestMountsHaveVolumes(t *testing.T) {
	each(t, func(t *testing.T, o *objects) {
		for of, pod := range o.pods() {
			volumes := map[string]bool{}
			for _, v := range pod.Volumes {
				volumes[v.Name] = false
			}
			if of == "set" {
				volumes[o.set.Spec.VolumeClaimTemplates[0].Name] = false
			}
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				for _, mount := range c.VolumeMounts {
					require.Contains(t, volumes, mount.Name, of)
					volumes[mount.Name] = true
				}
			}
			for name, mounted := range volumes {
				require.True(t, mounted, "%s of %s", name, of)
			}
		}
	})
}

// TestPodsAreConfined checks that no pod has a right that weir does not need.
func TestPodsAreConfined(t *testing.T) {
	each(t, func(t *testing.T, o *objects) {
		for of, pod := range o.pods() {
			require.True(t, *pod.SecurityContext.RunAsNonRoot, of)
			require.EqualValues(t, 65532, *pod.SecurityContext.RunAsUser, of)
			require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type, of)
			require.False(t, *pod.AutomountServiceAccountToken, of)
			require.False(t, *pod.EnableServiceLinks, of)
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, of)
				require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, of)
				require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, of)
				require.False(t, c.Resources.Limits.Memory().IsZero(), of)
			}
		}
	})
}

// TestAMajoritySurvivesADrain checks that a majority of nodes survives a drain, and the loss of a host or zone.
func TestAMajoritySurvivesADrain(t *testing.T) {
	for _, nodes := range []int32{3, 5, 7} {
		o := install(t, with(t, "weir/examples/three-nodes.yaml", "replicas", nodes))
		require.Equal(t, nodes, *o.set.Spec.Replicas)
		require.EqualValues(t, 1, o.budget.Spec.MaxUnavailable.IntValue())
		spread := o.set.Spec.Template.Spec.TopologySpreadConstraints
		require.Equal(t, "kubernetes.io/hostname", spread[0].TopologyKey)
		require.Equal(t, nodes, *spread[0].MinDomains)
		require.Equal(t, corev1.DoNotSchedule, spread[0].WhenUnsatisfiable)
		require.Equal(t, "topology.kubernetes.io/zone", spread[1].TopologyKey)
		require.Equal(t, corev1.ScheduleAnyway, spread[1].WhenUnsatisfiable)
		require.Nil(t, spread[1].MinDomains, "Kubernetes refuses it with ScheduleAnyway")
	}
	o := install(t, with(t, "weir/examples/three-nodes.yaml", "spread.hosts", "ScheduleAnyway"))
	require.Nil(t, o.set.Spec.Template.Spec.TopologySpreadConstraints[0].MinDomains)
}

// TestNodesInZones checks that the chart takes any number of nodes with settings.replicas, and gives each node the zone
// of its host.
func TestNodesInZones(t *testing.T) {
	for _, nodes := range []int32{3, 4, 6, 12} {
		o := install(t, with(t, sixNodes, "replicas", nodes))
		require.Equal(t, nodes, *o.set.Spec.Replicas)
		zones := 0
		for _, v := range o.container().Env {
			switch v.Name {
			case "WEIR_ZONE":
				zones++
				require.Equal(t, "metadata.labels['topology.kubernetes.io/zone']", v.ValueFrom.FieldRef.FieldPath)
			case "WEIR_REPLICAS":
				require.Equal(t, "3", v.Value)
			case "WEIR_JOIN":
				require.Len(t, strings.Split(v.Value, ","), int(nodes))
			}
		}
		require.Equal(t, 1, zones)
	}
	for _, v := range install(t, valuesOf(t, threeNodes)).container().Env {
		require.NotEqual(t, "WEIR_ZONE", v.Name)
	}
}
