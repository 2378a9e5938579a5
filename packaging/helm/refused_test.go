package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

const threeNodes, oneNode = "weir/examples/three-nodes.yaml", "weir/examples/one-node.yaml"

const sixNodes = "weir/examples/six-nodes-in-zones.yaml"

// slip is a set of values that gives no working server, or another server than the operator meant.
type slip struct {
	what string
	from string // the values file under the set values; empty for none
	set  []any
	says []string
}

var slips = []slip{
	{what: "nothing at all", says: []string{"auth.existingSecret is empty", "kubectl create secret generic weir",
		"--set auth.existingSecret=weir"}},
	{what: "two nodes", from: threeNodes, set: []any{"replicas", 2},
		says: []string{"replicas is 2, must be 1, 3, 5 or 7"}},
	{what: "four nodes", from: threeNodes, set: []any{"replicas", 4},
		says: []string{"replicas is 4, must be 1, 3, 5 or 7"}},
	{what: "no node", from: oneNode, set: []any{"replicas", 0}, says: []string{"replicas is 0, must be 1, 3, 5 or 7"}},
	{what: "four nodes with every group", from: threeNodes, set: []any{"replicas", 4, "settings.replicas", 0.0},
		says: []string{"replicas is 4, must be 1, 3, 5 or 7"}},
	{what: "an even number of replicas", from: sixNodes, set: []any{"settings.replicas", 2.0},
		says: []string{"settings.replicas is 2, must be 0, 1, 3 or 5"}},
	{what: "fewer nodes than replicas", from: sixNodes, set: []any{"settings.replicas", 5.0, "replicas", 4},
		says: []string{"replicas is 4 and settings.replicas is 5"}},
	{what: "replicas of a single server", from: oneNode, set: []any{"settings.replicas", 1.0},
		says: []string{"replicas is 1 and settings.replicas is 1"}},
	{what: "a setting zone", from: sixNodes, set: []any{"settings.zone", "z1"}, says: []string{"'/settings'", "'zone'"}},
	{what: "a word as a number", from: oneNode, set: []any{"replicas", "three"},
		says: []string{"'/replicas'", "want integer"}},
	{what: "no password", from: threeNodes, set: []any{"auth.existingSecret", ""},
		says: []string{"does not listen without a password"}},
	{what: "three nodes without a secret", from: threeNodes, set: []any{"cluster.existingSecret", ""},
		says: []string{"cluster.existingSecret is empty", "with the key cluster", "cluster.tls.enabled"}},
	{what: "one node with a cluster's secret", from: threeNodes, set: []any{"replicas", 1},
		says: []string{"cluster.existingSecret and cluster.tls need 3 or more nodes"}},
	{what: "TLS without a certificate", from: threeNodes, set: []any{"tls.enabled", true},
		says: []string{"tls.enabled needs a certificate", "tls.existingSecret", "tls.issuer.name"}},
	{what: "TLS between nodes without a certificate", from: threeNodes, set: []any{"cluster.tls.enabled", true},
		says: []string{"cluster.tls.enabled needs a certificate", "cluster.tls.existingSecret"}},
	{what: "a certificate without TLS", from: oneNode, set: []any{"tls.existingSecret", "x"},
		says: []string{"tls has a certificate but is disabled: set tls.enabled"}},
	{what: "two certificates", from: oneNode,
		set:  []any{"tls.enabled", true, "tls.existingSecret", "x", "tls.issuer.name", "y"},
		says: []string{"tls.existingSecret and tls.issuer.name are both set"}},
	{what: "clients' certificates without TLS", from: oneNode, set: []any{"tls.clientCertificates", "required"},
		says: []string{"tls.clientCertificates needs tls.enabled"}},
	{what: "clients' certificates as a boolean", from: oneNode, set: []any{"tls.clientCertificates", true},
		says: []string{"'/tls/clientCertificates'", "'no', 'optional', 'required'"}},
	{what: "no limit of memory", from: oneNode, set: []any{"resources.limits", map[string]any{"memory": nil}},
		says: []string{"resources.limits.memory is empty"}},
	{what: "policies twice", from: oneNode,
		set:  []any{"policies.file", "policies: {}", "policies.existingConfigMap", "x"},
		says: []string{"policies.file and policies.existingConfigMap are both set"}},
	{what: "the name of a policy file instead of its text", from: oneNode, set: []any{"policies.file", "policies.yaml"},
		says: []string{"policies.file is not a policy file", "--set-file policies.file=policies.yaml"}},
	{what: "a misspelt value", from: threeNodes, set: []any{"replica", 3},
		says: []string{"additional properties 'replica' not allowed"}},
	{what: "a misspelt value further down", from: threeNodes, set: []any{"monitoring.rules.enable", true},
		says: []string{"'/monitoring/rules'", "additional properties 'enable' not allowed"}},
	{what: "a misspelt setting", from: oneNode, set: []any{"settings.max-client", 5},
		says: []string{"'/settings'", "'max-client' not allowed"}},
	{what: "a setting that the chart sets", from: threeNodes, set: []any{"settings.join", "a:1"},
		says: []string{"'/settings'", "'join'"}},
	{what: "a volume without a unit", from: oneNode, set: []any{"storage.size", "10"},
		says: []string{"'/storage/size'"}},
}

// TestSlipsAreRefused checks that the chart rejects bad values, and that each error says what to change.
func TestSlipsAreRefused(t *testing.T) {
	for _, s := range slips {
		t.Run(s.what, func(t *testing.T) {
			_, err := rendered(t, with(t, s.from, s.set...), nil)
			require.Error(t, err)
			t.Log(lastLine(err))
			for _, say := range s.says {
				require.ErrorContains(t, err, say)
			}
		})
	}
}

// lastLine returns an error of Helm without the positions in templates.
func lastLine(err error) string {
	text := strings.TrimSpace(err.Error())
	_, after, found := strings.Cut(text, "error calling fail: ")
	if !found {
		return text
	}
	return after
}

// running is a fake Kubernetes cluster in which the release runs with the given number of nodes.
type running struct{ nodes int32 }

func (r running) GetClientFor(version, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if version != "apps/v1" || kind != "StatefulSet" {
		return nil, false, fmt.Errorf("the chart looked up %s %s, but only the StatefulSet is expected", version, kind)
	}
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		return nil, false, err
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: release, Namespace: namespace},
		Spec:       appsv1.StatefulSetSpec{Replicas: &r.nodes},
	}
	return fake.NewSimpleDynamicClient(scheme, set).Resource(
		schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}), true, nil
}

// TestChangesOfTheNumberOfNodes checks that helm upgrade rejects a change that would lose the state or the
// majority, and that it lets a cluster grow.
func TestChangesOfTheNumberOfNodes(t *testing.T) {
	for _, c := range []struct {
		was, will int32
		says      string
	}{
		{1, 1, ""}, {3, 3, ""}, {3, 5, ""},
		{1, 3, "replicas was 1 and would be 3: a single server and a cluster store their state in " +
			"different formats"},
		{3, 1, "replicas was 3 and would be 1"},
		{5, 3, "replicas was 5 and would be 3: the stopped nodes would stay members"},
	} {
		file := threeNodes
		if c.will == 1 {
			file = oneNode
		}
		var clusters engine.ClientProvider = running{c.was}
		_, err := rendered(t, with(t, file, "replicas", c.will), clusters)
		if c.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, "docs/kubernetes.md#change-the-number-of-nodes")
	}
	_, err := running{3}.client().Namespace(namespace).Get(context.Background(), release, metav1.GetOptions{})
	require.NoError(t, err, "the templates find what they look up")
}

func (r running) client() dynamic.NamespaceableResourceInterface {
	c, _, _ := r.GetClientFor("apps/v1", "StatefulSet")
	return c
}

// TestTheSchemaHasTheValues checks that the schema has exactly the values of values.yaml. So the schema rejects a
// misspelt value at every depth.
func TestTheSchemaHasTheValues(t *testing.T) {
	c := load(t)
	var root map[string]any
	require.NoError(t, json.Unmarshal(c.Schema, &root))
	defs := root["$defs"].(map[string]any)
	var compare func(path string, values, schema map[string]any)
	compare = func(path string, values, schema map[string]any) {
		if ref, ok := schema["$ref"].(string); ok {
			schema = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		properties, ok := schema["properties"].(map[string]any)
		if !ok {
			return // any keys are allowed: labels, settings
		}
		require.Equal(t, false, schema["additionalProperties"], path)
		for name, property := range properties {
			value, ok := values[name]
			require.True(t, ok || name == "global" || path == ".settings", "%s.%s is in the schema, not in values.yaml",
				path, name)
			if below, ok := value.(map[string]any); ok {
				compare(path+"."+name, below, property.(map[string]any))
			}
		}
		for name := range values {
			require.Contains(t, properties, name, "%s.%s is in values.yaml, not in the schema", path, name)
		}
	}
	resources := root["properties"].(map[string]any)["resources"].(map[string]any)
	require.ElementsMatch(t, []string{"requests", "limits"},
		slices.Collect(maps.Keys(resources["properties"].(map[string]any))))
	compare("", c.Values, root)
}
