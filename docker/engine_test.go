package docker_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// engineTimeout bounds the start and the stop of an engine.
	engineTimeout = 30 * time.Second
	// dockerTimeout bounds one docker command. No command downloads anything.
	dockerTimeout = time.Minute
	// imageTag is the name of the test's image.
	imageTag = "weir-test"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stopOwnEngine()
	os.Exit(code)
}

// engine is a Docker engine that answers.
type engine struct {
	host  string       // DOCKER_HOST; empty: the client's default
	build func() error // builds the image, once
}

// findEngine returns the engine of this machine, or skips the test.
func findEngine(t *testing.T) *engine {
	t.Helper()
	if os.Getenv("WEIRTEST_DOCKER") == "" {
		t.Skip("SKIPPED: containers are tested with WEIRTEST_DOCKER=1 (make test-docker)")
	}
	e, err := theEngine()
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	return e
}

// theEngine finds or starts the engine, once.
var theEngine = sync.OnceValues(func() (*engine, error) {
	e := new(engine)
	e.build = sync.OnceValue(e.buildImage)
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, errors.New("docker, the client, is missing (on Debian: apt install docker.io)")
	}
	if e.answers() {
		return e, nil
	}
	return e, e.startOwn()
})

// compose returns the command that runs compose, or skips the test.
func compose(t *testing.T) []string {
	t.Helper()
	for _, words := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if exec.Command(words[0], append(words[1:], "version")...).Run() == nil {
			return words
		}
	}
	t.Skip("SKIPPED: compose is missing, as docker compose and as docker-compose (on Debian: apt install " +
		"docker-compose)")
	return nil
}

func (e *engine) docker(args ...string) (string, error) {
	return e.command(dockerTimeout, nil, append([]string{"docker"}, args...)...)
}

func (e *engine) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := e.docker(args...)
	require.NoError(t, err, "docker %v: %s", args, out)
	return strings.TrimSpace(out)
}

func (e *engine) answers() bool {
	_, err := e.docker("version")
	return err == nil
}

// own is the engine that this test started. It is empty if there is none.
var own struct {
	cmd   *exec.Cmd
	ended chan struct{}
	dir   string
}

// startOwn starts an engine that changes nothing on the host: no bridge, no firewall rules, no forwarding. Published
// ports use its proxy process.
func (e *engine) startOwn() (err error) {
	if _, err = exec.LookPath("dockerd"); err != nil || os.Getuid() != 0 {
		return errors.New("no Docker engine answers, and none can be started: that takes dockerd (on Debian: apt " +
			"install docker.io) and root")
	}
	if own.dir, err = os.MkdirTemp("", "weir-docker"); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(own.dir, name) }
	var log bytes.Buffer
	own.cmd = exec.Command("dockerd", "--host=unix://"+at("socket"), "--pidfile="+at("pid"), "--data-root="+at("data"),
		"--exec-root="+at("exec"),
		"--bridge=none", "--iptables=false", "--ip-masq=false", "--ip-forward=false")
	own.cmd.Stdout, own.cmd.Stderr = &log, &log
	if err = own.cmd.Start(); err != nil {
		return err
	}
	own.ended = make(chan struct{})
	go func() {
		defer close(own.ended)
		_ = own.cmd.Wait()
	}()
	e.host = "unix://" + at("socket")
	for deadline := time.Now().Add(engineTimeout); time.Now().Before(deadline); {
		if e.answers() {
			return nil
		}
		select {
		case <-own.ended:
			return fmt.Errorf("dockerd does not start here: %s", log.String())
		case <-time.After(time.Second / 5):
		}
	}
	return fmt.Errorf("dockerd does not answer after %v", engineTimeout)
}

// stopOwnEngine stops the engine of startOwn.
func stopOwnEngine() {
	if own.ended != nil {
		_ = own.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-own.ended:
		case <-time.After(engineTimeout):
			_ = own.cmd.Process.Kill()
			<-own.ended
		}
	}
	if own.dir != "" {
		_ = os.RemoveAll(own.dir)
	}
}

// image returns the name of the image to test.
func (e *engine) image(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("WEIRTEST_IMAGE"); given != "" {
		return given
	}
	require.NoError(t, e.build())
	return imageTag
}

// buildImage runs the Dockerfile's last stage with a binary from this machine's Go. The first stage needs an image
// from a registry.
func (e *engine) buildImage() error {
	dir, err := os.MkdirTemp("", "weir-image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := os.ReadFile("Dockerfile")
	if err != nil {
		return err
	}
	_, last, ok := strings.Cut(string(file), "\nFROM scratch\n")
	if !ok {
		return errors.New("the Dockerfile has no stage FROM scratch")
	}
	file = []byte("FROM scratch AS build\nCOPY weir /out/weir\nWORKDIR /out/data\nFROM scratch\n" + last)
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), file, 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"go", "build", "-o", filepath.Join(dir, "weir"), "../cmd/weir"},
		{"docker", "build", "--tag", imageTag, dir},
	} {
		if out, err := e.command(2*composeTimeout, []string{"CGO_ENABLED=0", "GOOS=linux"}, args...); err != nil {
			return fmt.Errorf("%v: %w\n%s", args, err, out)
		}
	}
	return nil
}
