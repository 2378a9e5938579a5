package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weir-project/weir/internal/cli/cluster"
)

// openTerminal opens a pseudo-terminal. The process group that it controls gets SIGHUP when ours is closed, and SIGINT
// for Ctrl-C.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	// The descriptor is non-blocking, so that Close interrupts a read and closes it at once.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.SetNonblock(fd, true))
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return os.NewFile(uintptr(fd), "terminal"), theirs
}

// A demo takes its ports only some time after it has looked for free ones, so each demo of this process has a range of
// its own, with room for two layouts. The first range is random: tests of another checkout may run at the same time.
const demoRanges, portsOfDemo = 110, 40

var demoRange atomic.Int64

func init() { demoRange.Store(rand.Int64N(demoRanges)) }

// firstPort is where a demo starts to look for free ports: below the ports that package freeport reserves.
func firstPort() int { return 10_000 + int(demoRange.Add(1)%demoRanges)*portsOfDemo }

const ctrlC = "\x03"

// demoRun is a weir demo at its own terminal.
type demoRun struct {
	t     *testing.T
	dir   string
	cmd   *exec.Cmd
	tty   *os.File
	ended chan struct{}
	mu    sync.Mutex
	said  bytes.Buffer
}

// runDemo starts weir demo, which looks for free ports from firstPort on.
func runDemo(t *testing.T, dir string, args ...string) *demoRun {
	t.Helper()
	tty, theirs := openTerminal(t)
	d := &demoRun{t: t, dir: dir, tty: tty, ended: make(chan struct{})}
	d.cmd = exec.Command(
		binary, append([]string{"demo", "--dir", dir, "--first-port", strconv.Itoa(firstPort())}, args...)...)
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = theirs, theirs, theirs
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, d.cmd.Start())
	require.NoError(t, theirs.Close())
	go d.read()
	go func() {
		defer close(d.ended)
		_ = d.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
		_ = tty.Close()
		d.nobodyIsLeft()
	})
	return d
}

func (d *demoRun) read() {
	buffer := make([]byte, 4096)
	for {
		n, err := d.tty.Read(buffer)
		d.mu.Lock()
		d.said.Write(buffer[:n])
		d.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (d *demoRun) output() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.ReplaceAll(d.said.String(), "\r\n", "\n")
}

// await waits until the output of the demo matches, and returns the submatches.
func (d *demoRun) await(pattern string) []string {
	d.t.Helper()
	var found []string
	require.Eventually(d.t, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(d.output())
		return found != nil
	}, patience, 10*time.Millisecond, "%s\nis not in\n%s", pattern, d)
	return found
}

// String returns the output for messages, which are made when a wait has failed.
func (d *demoRun) String() string { return d.output() }

func (d *demoRun) up() *demoRun {
	d.t.Helper()
	d.await("Ctrl-C stops all three")
	return d
}

func (d *demoRun) typeIn(keys string) {
	d.t.Helper()
	_, err := d.tty.WriteString(keys)
	require.NoError(d.t, err)
}

// wait returns the exit code of the demo, -1 for a signal.
func (d *demoRun) wait() int {
	d.t.Helper()
	select {
	case <-d.ended:
		return d.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		d.t.Fatalf("weir demo does not end:\n%s", d.output())
		return 0
	}
}

// nodes returns the processes whose configuration is in the directory.
func (d *demoRun) nodes() (pids []int) {
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(d.t, err)
	for _, file := range found {
		line, _ := os.ReadFile(file)
		if strings.Contains(string(line), "--config\x00"+d.dir) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(d.t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

func (d *demoRun) nobodyIsLeft() {
	d.t.Helper()
	require.Eventually(d.t, func() bool { return len(d.nodes()) == 0 }, patience, 10*time.Millisecond,
		"orphans in %s", d.dir)
}

// kill kills a node by the command that the demo prints, and waits until the demo has noticed.
func (d *demoRun) kill(role string) (id string) {
	d.t.Helper()
	found := d.await(`    ([abc]) ` + role + `: +(kill -9 \d+)`)
	require.NoError(d.t, exec.Command("sh", "-c", found[2]).Run())
	d.await("Node " + found[1] + ` \(pid \d+\) has ended: signal: killed`)
	return found[1]
}

// take sends the suggested request, and returns the remaining units.
func (d *demoRun) take(node int) string {
	d.t.Helper()
	command := regexp.MustCompile(`(?:redis-cli -p |call --addr 127\.0\.0\.1:)(\d+) RL\.TOKENBUCKET (\S+) (\S+) (\S+)`).FindAllStringSubmatch(d.output(), -1)[node]
	p := &process{t: d.t, addr: "127.0.0.1:" + command[1]}
	var left string
	require.Eventually(d.t, func() bool {
		reply, err := p.dial().Do("RL.TOKENBUCKET", command[2], command[3], command[4], "ID",
			"once"+d.t.Name()+left+command[1])
		if err == nil {
			left = fmt.Sprint(reply.([]any)[:2])
		}
		return err == nil
	}, patience, 10*time.Millisecond)
	return left
}

// TestDemo follows the first minutes of a user: kill the leader, ask another node, restart the killed node, press
// Ctrl-C.
func TestDemo(t *testing.T) {
	t.Parallel()
	d := runDemo(t, t.TempDir()).up()
	require.NotContains(t, d.output(), "redis-cli -c",
		"redis-cli -c must not be suggested, because nodes that forward never redirect")
	require.Equal(t, "[1 2]", d.take(0))
	id := d.kill("leads 1 of 1")
	node := 0
	if id == "a" {
		node = 1
	}
	require.Contains(t, d.take(node), "[1 1]", "units that were taken must stay taken")
	d.typeIn("\n")
	d.await("Node " + id + " runs again")
	d.typeIn(ctrlC)
	require.Zero(t, d.wait(), d)
	require.Contains(t, d.output(), "Stopping.")
	d.nobodyIsLeft()

	again := runDemo(t, d.dir).up()
	require.Regexp(t, `\[[01] 0\]`, again.take(0), "the state must survive although the ports differ")
	again.typeIn(ctrlC)
	require.Zero(t, again.wait(), again)
}

// TestDemoLeavesNoOrphans checks that no node survives any end of the demo, not even a node that was started by hand.
func TestDemoLeavesNoOrphans(t *testing.T) {
	for name, end := range map[string]func(d *demoRun){
		"Ctrl-C":                func(d *demoRun) { d.typeIn(ctrlC) },
		"Ctrl-C twice":          func(d *demoRun) { d.typeIn(ctrlC + ctrlC) },
		"the terminal closes":   func(d *demoRun) { require.NoError(d.t, d.tty.Close()) },
		"SIGTERM":               func(d *demoRun) { require.NoError(d.t, d.cmd.Process.Signal(syscall.SIGTERM)) },
		"the demo is killed":    func(d *demoRun) { require.NoError(d.t, d.cmd.Process.Kill()) },
		"killed while starting": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := runDemo(t, t.TempDir())
			if end == nil {
				d.await("Starting three nodes")
				require.NoError(t, d.cmd.Process.Kill())
				return // runDemo's cleanup looks for orphans
			}
			d.up()
			end(d)
			d.wait()
			d.nobodyIsLeft()
		})
	}
}

func TestDemoEndsANodeThatWasStartedByHand(t *testing.T) {
	t.Parallel()
	d := runDemo(t, t.TempDir()).up()
	id := d.kill("follower")
	command := d.await(`\n    (\S+ serve --config \S+/` + id + `\.yaml)\n`)[1]
	byHand := exec.Command("sh", "-c", "exec "+command)
	require.NoError(t, byHand.Start())
	ended := make(chan error, 1)
	go func() { ended <- byHand.Wait() }()
	defer func() { _ = byHand.Process.Kill() }()
	at := regexp.MustCompile(`listen: (\S+)`)
	text, err := os.ReadFile(filepath.Join(d.dir, id+".yaml"))
	require.NoError(t, err)
	addr := at.FindStringSubmatch(string(text))[1]
	require.Eventually(t, func() bool {
		status, err := (&cluster.Command{Addr: addr}).AskStatus()
		return err == nil && status.Leader != ""
	}, patience, 10*time.Millisecond)
	d.typeIn("\n")
	d.await("Node " + id + " was not started: " + addr + ` is in use by weir \(pid ` + strconv.Itoa(byHand.Process.Pid))
	d.typeIn(ctrlC)
	require.Zero(t, d.wait(), d)
	select {
	case err := <-ended:
		require.NoError(t, err, "the demo must stop without an error")
	case <-time.After(patience):
		t.Fatal("the node that was started by hand must end with the demo")
	}
}

func TestDemoFindsFreePorts(t *testing.T) {
	t.Parallel()
	var ln net.Listener
	require.Eventually(t, func() (ok bool) {
		var err error
		ln, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort())))
		return err == nil
	}, patience, time.Millisecond)
	defer ln.Close()
	d := runDemo(t, t.TempDir(), "--first-port", strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)).up()
	found := d.await(regexp.QuoteMeta(ln.Addr().String()) +
		` is taken by (\S+) \(pid (\d+)\)\.\nSo the ports of the nodes begin at (\d+)`)
	require.Equal(t, strconv.Itoa(os.Getpid()), found[2])
	require.Regexp(t, `(?:redis-cli -p |call --addr 127\.0\.0\.1:)`+found[3], d.output())

	// The same directory once more, and once the nodes' own ports are taken.
	second := exec.Command(binary, "demo", "--dir", d.dir)
	require.Contains(t, refusal(t, second),
		fmt.Sprintf("a weir demo runs in this directory already (pid %d): stop that demo, or choose another --dir",
			d.cmd.Process.Pid))
	d.typeIn(ctrlC)
	require.Zero(t, d.wait(), d)
	text, err := os.ReadFile(filepath.Join(d.dir, "b.yaml"))
	require.NoError(t, err)
	taken := regexp.MustCompile(`raft-addr: (\S+)`).FindStringSubmatch(string(text))[1]
	inTheWay, err := net.Listen("tcp", taken)
	require.NoError(t, err)
	defer inTheWay.Close()
	require.Regexp(t, taken+
		`, the address of node b in the cluster in \S+, is in use by \S+ \(pid \d+\): stop that program, or choose another --dir`,
		refusal(t, exec.Command(binary, "demo", "--dir", d.dir, "--first-port", strconv.Itoa(firstPort()))))
}
