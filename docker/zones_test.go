package docker_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestComposeZones checks that the nodes of compose.zones.yaml found one cluster together, with two nodes in each of
// three zones, a volume for each node, and the settings of compose.yaml.
func TestComposeZones(t *testing.T) {
	type service struct {
		Environment map[string]string
		Volumes     []string
		Common      map[string]any `yaml:",inline"`
	}
	services := func(name string) (file struct {
		Services map[string]service
		Volumes  map[string]any
	}) {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(b, &file))
		return file
	}
	file, other := services("compose.zones.yaml"), services("compose.yaml").Services["b"]
	zones, addrs, ids := map[string]int{}, []string{}, slices.Sorted(maps.Keys(file.Services))
	for _, id := range ids {
		s := file.Services[id]
		zones[s.Environment["WEIR_ZONE"]]++
		addrs = append(addrs, s.Environment["WEIR_RAFT_ADDR"])
		require.Equal(t, id+":6390", s.Environment["WEIR_RAFT_ADDR"])
		require.Equal(t, id, s.Environment["WEIR_NODE_ID"])
		require.Equal(t, []string{id + ":/data"}, s.Volumes)
		require.Contains(t, file.Volumes, id)
		require.Equal(t, fmt.Sprint(len(ids)), s.Environment["WEIR_EXPECT"])
		for _, same := range []string{"WEIR_RAFT_LISTEN", "WEIR_CLUSTER_SECRET_FILE", "WEIR_PROTECTED_MODE"} {
			require.Equal(t, other.Environment[same], s.Environment[same], same)
		}
		delete(s.Common, "ports")
		delete(other.Common, "ports")
		require.Equal(t, other.Common, s.Common)
	}
	require.Equal(t, map[string]int{"z1": 2, "z2": 2, "z3": 2}, zones)
	for _, id := range ids {
		require.Equal(t, strings.Join(addrs, ","), file.Services[id].Environment["WEIR_JOIN"])
	}
}
