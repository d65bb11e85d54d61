package greenroomtest

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"greenroom"
)

// Process is a host in a process of its own, killed with the test.
type Process struct {
	node    *Node
	words   []string
	env     []string
	process *process
}

// Main is for TestMain, in the place of m.Run: it runs the tests, or, in a process that Node.Process has started, serves kinds.
func Main(m *testing.M, kinds ...greenroom.KindOf) {
	if os.Getenv(serving) == "" {
		hasMain = true
		m.Run()
		return
	}
	if err := greenroom.Serve(context.Background(), kinds...); err != nil {
		log.Fatal(err)
	}
}

// Process starts the test's program once more, as a host of the kinds that Main has.
func (n *Node) Process() *Process {
	n.t.Helper()
	program, err := os.Executable()
	if err == nil && !hasMain {
		err = fmt.Errorf("nobody has said which kinds a process serves: let TestMain call greenroomtest.Main(m, kinds..)")
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return n.host([]string{serving + "=1"}, program)
}

// Command starts a program as a host, in whatever language: Command("python", "chat.py"). It finds the node by GREENROOM_HOST.
func (n *Node) Command(program string, arguments ...string) *Process {
	n.t.Helper()
	return n.host(nil, append([]string{program}, arguments...)...)
}

func (n *Node) host(env []string, words ...string) *Process {
	n.t.Helper()
	p := &Process{node: n, words: words, env: append(env, "GREENROOM_HOST="+n.URL)}
	p.begin()
	n.t.Cleanup(p.Kill)
	return p
}

// Freeze stops it where it stands, by SIGSTOP: its turns, and the renewal of its lease. Once that is over (5 s), its actors are made
// anew in another host.
func (p *Process) Freeze() { p.process.freeze() }

// Thaw lets it go on. If its lease is over it acts no more, and comes back with nothing.
func (p *Process) Thaw() { p.process.thaw() }

// Kill ends it at once, with whatever it has started.
func (p *Process) Kill() { p.process.kill() }

// Drain tells it to end, by SIGTERM, and waits until it has: its actors go to other hosts of their kinds, and no call fails.
func (p *Process) Drain() {
	p.node.t.Helper()
	p.process.signal(syscall.SIGTERM)
	if !p.process.ends(patience) {
		p.node.t.Fatalf("%s does not end after SIGTERM", strings.Join(p.words, " "))
	}
}

// Restart kills it if it runs, and starts it again.
func (p *Process) Restart() {
	p.node.t.Helper()
	p.Kill()
	p.begin()
}

// begin starts it, and waits until the node has it as a host.
func (p *Process) begin() {
	t := p.node.t
	t.Helper()
	command := exec.Command(p.words[0], p.words[1:]...)
	command.Env = append(os.Environ(), p.env...)
	process, err := begin(t, command)
	if err != nil {
		t.Fatalf("%s cannot be started: %v", p.words[0], err)
	}
	p.process = process
	if !process.until(func() bool { return p.node.hasHost(process.group) }) {
		process.kill()
		t.Fatalf("%s is no host of the node at %s: its output says why", strings.Join(p.words, " "), p.node.URL)
	}
}

// hasHost says whether a process of the group is a host of the node.
func (n *Node) hasHost(group int) bool {
	var status struct {
		Hosts []struct {
			From  string         `json:"from"`
			Kinds map[string]int `json:"kinds"`
		} `json:"hosts"`
	}
	answer, err := http.Get(n.HTTP + "/-/status")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		return false
	}
	for _, host := range status.Hosts {
		var pid int
		if _, err := fmt.Sscanf(host.From, "process %d", &pid); err != nil || len(host.Kinds) == 0 {
			continue
		}
		if found, err := syscall.Getpgid(pid); err == nil && found == group {
			return true
		}
	}
	return false
}

// hasMain says that this process has begun in Main.
var hasMain bool

// serving is the variable by which Main knows that its process is to be a host.
const serving = "GREENROOM_TEST_SERVES"
