package commands

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

const (
	processorSeed = 3
	// processorCommands is how many commands the ordinary test compares.
	processorCommands = 33_000
	// envCommands says how many commands to compare, and envArchitectures on which other architectures (GOARCH). A
	// child process also reads where to write the hash chain, and which command to show.
	envCommands, envArchitectures = "WEIRTEST_PROCESSOR_COMMANDS", "WEIRTEST_PROCESSOR_ARCHITECTURES"
	envChain, envShow             = "WEIRTEST_PROCESSOR_CHAIN", "WEIRTEST_PROCESSOR_SHOW"
)

// emulators maps a GOARCH to the program that runs its binaries.
var emulators = map[string]string{
	"arm64": "qemu-aarch64", "s390x": "qemu-s390x", "riscv64": "qemu-riscv64", "ppc64le": "qemu-ppc64le",
	"loong64": "qemu-loongarch64",
	"arm":     "qemu-arm", "386": "qemu-i386",
}

// TestSameOnOtherProcessors sends one sequence of commands to processes that represent different processors. All
// replies, all operations and all states must be equal.
func TestSameOnOtherProcessors(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	commands := envInt(envCommands, processorCommands)
	here := traceCommands(t, processorSeed, commands, -1)
	here.requireComplete(t)
	self, err := os.Executable()
	require.NoError(t, err)
	for _, env := range [][]string{
		{"GODEBUG=cpu.fma=off", "GOMAXPROCS=1"}, {"GODEBUG=cpu.avx2=off", "GOMAXPROCS=8"},
		{"GODEBUG=cpu.all=off", "GOMAXPROCS=3"},
	} {
		t.Run(strings.Join(env, " "), func(t *testing.T) { here.compare(t, commands, env, self) })
	}
	for _, arch := range slices.Sorted(maps.Keys(emulators)) {
		t.Run(arch, func(t *testing.T) { here.compareOn(t, commands, arch, emulators[arch]) })
	}
}

// compareOn builds this test for another architecture and runs it in an emulator.
func (tr *trace) compareOn(t *testing.T, commands int, arch, emulator string) {
	switch path, err := exec.LookPath(emulator); {
	case !strings.Contains(" "+os.Getenv(envArchitectures)+" ", " "+arch+" "):
		t.Skipf("SKIPPED: %s is compared by make test-processors ARCHITECTURES=%s", arch, arch)
	case arch == runtime.GOARCH:
		t.Skipf("SKIPPED: this is %s", arch)
	case err != nil:
		t.Skipf("SKIPPED: %s is missing (on Debian: apt install qemu-user)", emulator)
	default:
		binary := filepath.Join(t.TempDir(), "server.test")
		build := exec.Command("go", "test", "-c", "-o", binary, ".")
		build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		tr.compare(t, commands, nil, path, binary)
	}
}

// compare runs the sequence in a child process and shows the first command that differs.
func (tr *trace) compare(t *testing.T, commands int, env []string, argv ...string) {
	file := filepath.Join(t.TempDir(), "chain")
	child := func(show int) string {
		args := append(argv[1:len(argv):len(argv)], "-test.run=^TestProcessorChild$", "-test.timeout=30m")
		cmd := exec.Command(argv[0], args...)
		cmd.Env = append(append(os.Environ(), env...), envChain+"="+file, envCommands+"="+strconv.Itoa(commands),
			envShow+"="+strconv.Itoa(show))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	child(-1)
	chain := readChain(t, file)
	for i := range tr.chain {
		if i < len(chain) && chain[i] == tr.chain[i] {
			continue
		}
		t.Fatalf("command %d differs; here:\n%s\nthere:\n%s", i, traceCommands(t, processorSeed, commands, i).shown,
			child(i))
	}
	require.Len(t, chain, len(tr.chain))
	t.Logf("%d commands, %d operations, %d of %d scripts: 0 differences", len(chain)-1, sum(tr.lim.ops[:]),
		covered(tr.lim.scripts[:]), engine.NumScripts-1)
}

// TestProcessorChild is the part of TestSameOnOtherProcessors that runs in the child process.
func TestProcessorChild(t *testing.T) {
	file := os.Getenv(envChain)
	if file == "" {
		t.Skip("SKIPPED: TestSameOnOtherProcessors runs it")
	}
	tr := traceCommands(t, processorSeed, envInt(envCommands, 0), envInt(envShow, -1))
	fmt.Println(tr.shown)
	var out bytes.Buffer
	require.NoError(t, binary.Write(&out, binary.LittleEndian, tr.chain))
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
}

func readChain(t *testing.T, file string) []uint64 {
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	chain := make([]uint64, len(raw)/8)
	require.NoError(t, binary.Read(bytes.NewReader(raw), binary.LittleEndian, chain))
	return chain
}

func envInt(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// requireComplete fails unless each command, operation and script was run.
func (tr *trace) requireComplete(t *testing.T) {
	const least = 3
	for _, cmd := range comparedCommands() {
		assert.GreaterOrEqual(t, tr.commands[cmd.Full], least, "add the arguments of %s to argumentValues", cmd.Full)
	}
	for code, n := range tr.lim.ops {
		switch engine.OpCode(code) {
		case engine.OpFollow, engine.OpBind, engine.OpEnd, engine.OpFlush, engine.OpCharge:
			continue // the Limiter or a report of Kuadrant makes them
		}
		assert.GreaterOrEqual(t, n, least, "some command of the source must make operation %d", code)
	}
	for id, n := range tr.lim.scripts {
		if (&engine.Script{ID: engine.ScriptID(id)}).Valid() { // some numbers are unused
			assert.GreaterOrEqual(t, n, least, "the source must call script %d", id)
		}
	}
}

func sum(counts []int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

func covered(counts []int) (n int) {
	for _, count := range counts {
		n += min(count, 1)
	}
	return n
}
