// Package greenroomtest tests actors against the real program: each test has a node of its own, and hosts in its own process, or in
// processes that it can kill, freeze and drain.
//
//	func TestARoom(t *testing.T) {
//		node := greenroomtest.Start(t)
//		c := node.Host(greenroom.Kind[ChatRoom]()).From(t.Context())
//		count, err := greenroom.Call(c, greenroom.Of[ChatRoom](c, "lobby"), (*ChatRoom).Post, Post{"ada", "hi"})
//		..
//	}
package greenroomtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"greenroom"
)

// Node is a process of the program, which ends with the test, and with the test's process however that ends.
type Node struct {
	// URL is its way in for hosts and clients, and HTTP its door: http://127.0.0.1:PORT.
	URL, HTTP string

	t         testing.TB
	words     []string
	directory string
	process   *process
}

// Start starts a node: with flags of `greenroom node`, and in memory unless they say otherwise. It is of the program that Program finds;
// the test fails if there is none.
func Start(t testing.TB, flags ...string) *Node {
	t.Helper()
	program, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(serving) != "" {
		t.Fatal("this process is to be a host, and runs tests: let TestMain call greenroomtest.Main")
	}
	// Not t.TempDir, whose name may be too long for a socket in it.
	directory, err := os.MkdirTemp("", "greenroom-")
	if err != nil {
		t.Fatal(err)
	}
	door := freeDoor()
	n := &Node{t: t, directory: directory, HTTP: "http://" + door}
	n.URL = "unix:" + n.socket()
	n.words = append([]string{program, "node", "--name", "node", "--http", door, "--without-examples", "--until-stdin-ends"}, flags...)
	t.Cleanup(func() { n.Stop(); _ = os.RemoveAll(directory) })
	n.begin()
	return n
}

// Program is the program's path: GREENROOM_BIN, or greenroom in PATH.
func Program() (string, error) {
	if named := os.Getenv("GREENROOM_BIN"); named != "" {
		return named, nil
	}
	found, err := exec.LookPath("greenroom")
	if err != nil {
		return "", fmt.Errorf("there is no greenroom program: set GREENROOM_BIN, or put it into PATH: %w", err)
	}
	return found, nil
}

// Host is a host of kinds in the test's own process, closed with the test. It is open once this returns.
func (n *Node) Host(kinds ...greenroom.KindOf) *greenroom.Host {
	n.t.Helper()
	c, end := context.WithTimeout(context.Background(), patience)
	defer end()
	host, err := greenroom.Start(c, n.URL, kinds...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(host.Close)
	return host
}

// Client is a client, closed with the test: calls are made from its From(t.Context()).
func (n *Node) Client() *greenroom.Host {
	n.t.Helper()
	return n.Host()
}

// Freeze stops it where it stands, by SIGSTOP: its clock and its leases go on.
func (n *Node) Freeze() { n.process.freeze() }

// Thaw lets it go on.
func (n *Node) Thaw() { n.process.thaw() }

// Kill ends it at once, as a machine's failure does.
func (n *Node) Kill() {
	n.process.kill()
	_ = os.Remove(n.socket())
}

// Restart kills it if it runs, and starts it again with the same flags at the same ports: it finds what these keep outside of its
// memory, and hosts and clients dial it again, within 2 s. One that is killed is in its table until its lease there is over (4 s).
func (n *Node) Restart() {
	n.t.Helper()
	n.Kill()
	n.begin()
}

// Stop ends it in order: its actors are deactivated.
func (n *Node) Stop() {
	n.t.Helper()
	if n.process == nil {
		return
	}
	n.process.thaw()
	_ = n.process.input.Close()
	if !n.process.ends(patience) {
		n.t.Errorf("%s does not end with its standard input", n.words[0])
	}
	n.Kill()
}

func (n *Node) socket() string { return filepath.Join(n.directory, "greenroom", "node.sock") }

// begin starts its process, and waits until it is in its cluster, where it lets hosts and callers in.
func (n *Node) begin() {
	n.t.Helper()
	command := exec.Command(n.words[0], n.words[1:]...)
	command.Env = append(append([]string{"RUST_LOG=warn"}, os.Environ()...), "XDG_RUNTIME_DIR="+n.directory)
	process, err := begin(n.t, command)
	if err != nil {
		n.t.Fatalf("%s cannot be started: %v", n.words[0], err)
	}
	n.process = process
	isOpen := process.until(func() bool {
		answer, err := http.Get(n.HTTP + "/readyz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		_, err = os.Stat(n.socket())
		return err == nil && answer.StatusCode == http.StatusOK
	})
	if !isOpen {
		n.t.Fatalf("%s is not ready at %s and %s: its output says why", strings.Join(n.words, " "), n.URL, n.HTTP)
	}
}

// freeDoor is an address with a free port, from below those that systems give to connections: it is still free for a node that comes back.
func freeDoor() string {
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_768))
		if found, err := net.Listen("tcp", address); err == nil {
			_ = found.Close()
			return address
		}
	}
}

// patience ends waits for what does not come.
const patience = 120 * time.Second
