package helm

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docker/kubernetes/weir.yaml anew")

const (
	manifests = "../../docker/kubernetes/weir.yaml"
	// head is the comment at the top of the file.
	head = `# Three nodes of one cluster, without Helm. "make kubernetes-manifests" renders this file from
# the chart in packaging/helm/weir and the values in this directory. The chart also has TLS,
# users and monitoring.
#
#   openssl rand -hex 32 > cluster && openssl rand -hex 32 > password
#   kubectl create secret generic weir --from-file=cluster --from-file=password
#   kubectl apply --filename docker/kubernetes/weir.yaml
#   kubectl exec weir-0 -- weir cluster status
#
# Replace the image with your own, from "make docker". Applications connect to the service weir
# with the password. Any node answers. docs/kubernetes.md says how to upgrade, and how to replace
# a lost volume.
`
)

// ofHelm are the labels that only a release has.
var ofHelm = regexp.MustCompile(
	`(?m)^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by|app\.kubernetes\.io/version): .*\n`)

// TestTheManifestsAreTheChart checks that docker/kubernetes/weir.yaml is what the chart renders. With -update it
// writes the file.
func TestTheManifestsAreTheChart(t *testing.T) {
	texts, err := rendered(t, valuesOf(t, "../../docker/kubernetes/values.yaml"), nil)
	require.NoError(t, err)
	want := head
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		for text := range strings.SplitSeq(texts[name], "\n---\n") {
			text = strings.TrimSpace(ofHelm.ReplaceAllString(text+"\n", ""))
			if name != notesFile && text != "" && !strings.Contains(text, hook) {
				want += "---\n" + text + "\n"
			}
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(manifests, []byte(want), 0o644))
	}
	got, err := os.ReadFile(manifests)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run: make kubernetes-manifests")
	require.NotContains(t, want, namespace+".svc", "the file is for any namespace")
	decode(t, map[string]string{"weir.yaml": want})
}
