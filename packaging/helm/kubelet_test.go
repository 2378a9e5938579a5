package helm

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const (
	// patience bounds every wait for processes on a busy machine.
	patience = 90 * time.Second
	// restartAfter is the delay before an ended container starts again. A kubelet starts with ten seconds.
	restartAfter = 100 * time.Millisecond
	// program is the path of weir in the image.
	program = "/usr/local/bin/weir"
)

// kubelet runs the pods of a release on this machine. It uses the rendered args and variables of each container,
// directories as volumes, and ports of 127.0.0.1 for the names and ports of the network.
type kubelet struct {
	t       *testing.T
	o       *objects
	dir     string
	secrets map[string]map[string]string
	ports   map[string]string // "weir-0:6380" to an address
	nodes   map[string]*node
}

// node is a pod of the StatefulSet. Its container restarts whenever it ends.
type node struct {
	mu      sync.Mutex
	process *os.Process
	starts  int
	done    chan struct{}
	ended   chan struct{}
}

func newKubelet(t *testing.T, o *objects, secrets map[string]map[string]string) *kubelet {
	k := &kubelet{t: t, o: o, dir: t.TempDir(), secrets: secrets, ports: map[string]string{}, nodes: map[string]*node{}}
	t.Cleanup(func() {
		for name := range k.nodes {
			k.stop(name)
		}
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(k.dir, "*.log"))
			for _, log := range logs {
				text, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", log, text[max(0, len(text)-2000):])
			}
		}
	})
	return k
}

func podName(o *objects, ordinal int) string { return fmt.Sprintf("%s-%d", o.set.Name, ordinal) }

// address returns the address of a pod's port on this machine. The port numbers are below those that the kernel
// assigns to outgoing connections.
func (k *kubelet) address(pod, port string) string {
	k.t.Helper()
	key := pod + ":" + port
	for k.ports[key] == "" {
		ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(15000+time.Now().Nanosecond()/1000%17000))
		if err != nil || slices.Contains(values(k.ports), ln.Addr().String()) {
			continue
		}
		k.ports[key] = ln.Addr().String()
		require.NoError(k.t, ln.Close())
	}
	return k.ports[key]
}

var (
	nodeAddress    = regexp.MustCompile(`([a-z0-9-]+)\.weir-nodes\.` + namespace + `\.svc:([0-9]+)`)
	serviceAddress = regexp.MustCompile(`^weir\.` + namespace + `\.svc:([0-9]+)$`)
	listenAddress  = regexp.MustCompile(`^(?:127\.0\.0\.1)?:([0-9]+)$`)
)

// here replaces addresses and mounted directories in a variable or an argument of a pod with those of this machine.
func (k *kubelet) here(pod, text string, mounts map[string]string) string {
	if nodeAddress.MatchString(text) {
		return nodeAddress.ReplaceAllStringFunc(text, func(s string) string {
			m := nodeAddress.FindStringSubmatch(s)
			return k.address(m[1], m[2])
		})
	}
	if m := serviceAddress.FindStringSubmatch(text); m != nil {
		return k.address(podName(k.o, 0), m[1]) // any node answers
	}
	if m := listenAddress.FindStringSubmatch(text); m != nil {
		return k.address(pod, m[1])
	}
	for path, dir := range mounts {
		if at := strings.Index(text, path); at == 0 || at > 0 && text[at-1] == '=' {
			return text[:at] + dir + text[at+len(path):]
		}
	}
	return text
}

// mount writes the volumes of a pod, and returns the directory for each path in the container. A key that is missing
// from a Secret is an error, as with a real kubelet.
func (k *kubelet) mount(pod string, spec *corev1.PodSpec, c *corev1.Container) map[string]string {
	k.t.Helper()
	dirs := map[string]string{"data": filepath.Join(k.dir, pod, "data")}
	require.NoError(k.t, os.MkdirAll(dirs["data"], 0o700))
	for _, v := range spec.Volumes {
		dir := filepath.Join(k.dir, pod, v.Name)
		dirs[v.Name] = dir
		if os.Mkdir(dir, 0o755) != nil {
			continue // mounted when the pod started; a running server may be reading it
		}
		switch {
		case v.Secret != nil:
			k.write(dir, v.Secret.SecretName, nil)
		case v.ConfigMap != nil:
			for _, item := range v.ConfigMap.Items {
				text, ok := k.o.configs[v.ConfigMap.Name].Data[item.Key]
				require.True(k.t, ok, "ConfigMap %s has no key %s", v.ConfigMap.Name, item.Key)
				require.NoError(k.t, os.WriteFile(filepath.Join(dir, item.Path), []byte(text), 0o644))
			}
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				k.write(dir, source.Secret.Name, source.Secret.Items)
			}
		}
	}
	mounts := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounts[m.MountPath] = dirs[m.Name]
	}
	return mounts
}

func (k *kubelet) write(dir, secret string, items []corev1.KeyToPath) {
	k.t.Helper()
	content, ok := k.secrets[secret]
	require.True(k.t, ok, "no Secret %s", secret)
	for key, text := range content {
		if items == nil {
			require.NoError(k.t, os.WriteFile(filepath.Join(dir, key), []byte(text), 0o600))
		}
	}
	for _, item := range items {
		text, ok := content[item.Key]
		require.True(k.t, ok, "Secret %s has no key %s", secret, item.Key)
		require.NoError(k.t, os.WriteFile(filepath.Join(dir, item.Path), []byte(text), 0o600))
	}
}

// command returns a command in a pod of the StatefulSet, with only the variables of its container.
func (k *kubelet) command(ordinal int, args ...string) *exec.Cmd {
	k.t.Helper()
	pod := podName(k.o, ordinal)
	mounts := k.mount(pod, &k.o.set.Spec.Template.Spec, k.o.container())
	cmd := exec.Command(binary)
	for _, arg := range args {
		cmd.Args = append(cmd.Args, k.here(pod, arg, mounts))
	}
	cmd.Env = []string{"HOME=/"}
	for name, value := range environment(k.o, ordinal) {
		cmd.Env = append(cmd.Env, name+"="+k.here(pod, value, mounts))
	}
	return cmd
}

// start runs a pod of the StatefulSet until stop.
func (k *kubelet) start(ordinal int) {
	k.t.Helper()
	name := podName(k.o, ordinal)
	log, err := os.OpenFile(filepath.Join(k.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(k.t, err)
	n := &node{done: make(chan struct{}), ended: make(chan struct{})}
	k.nodes[name] = n
	command := k.command(ordinal, k.o.container().Args...)
	go func() {
		defer close(n.ended)
		defer log.Close()
		for {
			cmd := exec.Command(binary)
			cmd.Args, cmd.Env, cmd.Stdout, cmd.Stderr = command.Args, command.Env, log, log
			if !n.begin(cmd) {
				return
			}
			_ = cmd.Wait()
			select {
			case <-n.done:
				return
			case <-time.After(restartAfter):
			}
		}
	}()
}

// begin starts a process, unless the pod is stopping.
func (n *node) begin(cmd *exec.Cmd) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.done:
		return false
	default:
	}
	if cmd.Start() != nil {
		return false
	}
	n.process = cmd.Process
	n.starts++
	return true
}

func (n *node) signal(s os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		_ = n.process.Signal(s)
	}
}

// stop ends a pod as the kubelet does: it sends a signal and does not restart the container.
func (k *kubelet) stop(name string) {
	n := k.nodes[name]
	delete(k.nodes, name)
	n.mu.Lock()
	close(n.done)
	n.mu.Unlock()
	n.signal(syscall.SIGTERM)
	<-n.ended
}

// terminate deletes a pod: it runs the preStop command, then sends the signal.
func (k *kubelet) terminate(ordinal int) {
	k.t.Helper()
	if hooks := k.o.container().Lifecycle; hooks != nil {
		command := hooks.PreStop.Exec.Command
		require.Equal(k.t, program, command[0])
		k.exec(ordinal, command[1:]...)
	}
	k.stop(podName(k.o, ordinal))
}

// exec runs weir in a pod, as kubectl exec does, and requires success.
func (k *kubelet) exec(ordinal int, args ...string) string {
	k.t.Helper()
	out, err := k.command(ordinal, args...).CombinedOutput()
	require.NoError(k.t, err, "%v: %s", args, out)
	return string(out)
}

// await waits until a command in a pod succeeds and prints the given words.
func (k *kubelet) await(ordinal int, args []string, says ...string) {
	k.t.Helper()
	var out []byte
	var err error
	require.Eventually(k.t, func() bool {
		out, err = k.command(ordinal, args...).CombinedOutput()
		return err == nil &&
			!slices.ContainsFunc(says, func(s string) bool { return !regexp.MustCompile(s).Match(out) })
	}, patience, 100*time.Millisecond, "%v: %s", args, (*said)(&out))
	k.t.Logf("%v: %s", args, out)
}

// ready waits until the readiness probes of the pods succeed.
func (k *kubelet) ready(ordinals ...int) {
	k.t.Helper()
	for _, i := range ordinals {
		k.await(i, []string{"healthcheck"})
	}
}

// run runs the containers of another pod one after the other, and requires each to succeed.
func (k *kubelet) run(name string, spec *corev1.PodSpec) (said string) {
	k.t.Helper()
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		mounts := k.mount(name, spec, &c)
		cmd := exec.Command(binary)
		for _, arg := range c.Args {
			cmd.Args = append(cmd.Args, k.here(name, arg, mounts))
		}
		cmd.Env = []string{"HOME=/"}
		for _, v := range c.Env {
			cmd.Env = append(cmd.Env, v.Name+"="+k.here(name, v.Value, mounts))
		}
		out, err := cmd.CombinedOutput()
		require.NoError(k.t, err, "%s of %s: %s", c.Name, name, out)
		said += string(out)
	}
	return said
}

// said is the output of a command, which is formatted only when a wait has failed.
type said []byte

func (s *said) String() string { return string(*s) }

func values(m map[string]string) (list []string) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}
