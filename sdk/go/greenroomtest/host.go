package greenroomtest

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"greenroom"
)

// Process is a host in a process of its own, killed with the test.
type Process struct {
	node    *Node
	words   []string
	kinds   []string
	process *process
}

// Main is for TestMain, in the place of m.Run: it runs the tests, or, in a process that Node.Process has started, serves kinds.
func Main(m *testing.M, kinds ...greenroom.KindOf) {
	if os.Getenv(serving) == "" {
		hasMain = true
		m.Run()
		return
	}
	c, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	host, err := greenroom.Start(c, "", kinds...)
	if err != nil {
		log.Fatal(err)
	}
	_, _ = os.NewFile(3, "started").WriteString(".")
	<-c.Done()
	host.Drain(patience)
	host.Close()
}

// Process starts the test's program once more, as a host of the kinds that Main has. They are there once this returns.
func (n *Node) Process() *Process {
	n.t.Helper()
	if !hasMain {
		n.t.Fatal("nobody has said which kinds a process serves: let TestMain call greenroomtest.Main(m, kinds..)")
	}
	p := &Process{node: n}
	p.begin()
	n.t.Cleanup(p.Kill)
	return p
}

// Command starts a program as a host, in whatever language: Command("python", "chat.py"). It finds the node by GREENROOM_HOST. Its first kind
// is there once this returns; for more, see Serves.
func (n *Node) Command(program string, arguments ...string) *Process {
	n.t.Helper()
	p := &Process{node: n, words: append([]string{program}, arguments...)}
	p.begin()
	n.t.Cleanup(p.Kill)
	return p
}

// Serves waits until it serves these kinds, by their names on the wire. So does Restart from then on.
func (p *Process) Serves(kinds ...string) *Process {
	p.node.t.Helper()
	p.kinds = kinds
	p.await(p.isHost)
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
		p.node.t.Fatalf("%v does not end after SIGTERM", p)
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
	p.node.t.Helper()
	if len(p.words) > 0 {
		p.run(exec.Command(p.words[0], p.words[1:]...))
		p.await(p.isHost)
		return
	}
	program, err := os.Executable()
	if err != nil {
		p.node.t.Fatal(err)
	}
	hears, tells, err := os.Pipe()
	if err != nil {
		p.node.t.Fatal(err)
	}
	defer hears.Close()
	command := exec.Command(program)
	command.Env, command.ExtraFiles = []string{serving + "=1"}, []*os.File{tells}
	p.run(command)
	_ = tells.Close()
	started := make(chan bool, 1)
	go func() {
		count, _ := hears.Read(make([]byte, 1))
		started <- count == 1
	}()
	p.await(func() bool { return len(started) > 0 && <-started })
}

func (p *Process) run(command *exec.Cmd) {
	t := p.node.t
	t.Helper()
	command.Env = append(append(os.Environ(), "GREENROOM_HOST="+p.node.URL), command.Env...)
	process, err := begin(t, command)
	if err != nil {
		t.Fatalf("%s cannot be started: %v", command, err)
	}
	p.process = process
}

// await waits until it serves what it is to serve.
func (p *Process) await(isSo func() bool) {
	p.node.t.Helper()
	if !p.process.until(isSo) {
		p.process.kill()
		p.node.t.Fatalf("%v does not serve %q at %s: its output says why", p, p.kinds, p.node.URL)
	}
}

// String is its command.
func (p *Process) String() string {
	if len(p.words) == 0 {
		return "the test's program"
	}
	return strings.Join(p.words, " ")
}

// isHost says whether a process of the group serves all kinds that have been named, or any, and whether callers find these.
func (p *Process) isHost() bool {
	var status struct {
		Cluster struct {
			Members []struct {
				Kinds []string `json:"kinds"`
			} `json:"members"`
		} `json:"cluster"`
		Hosts []struct {
			From  string         `json:"from"`
			Kinds map[string]int `json:"kinds"`
		} `json:"hosts"`
	}
	answer, err := http.Get(p.node.HTTP + "/-/status")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		return false
	}
	// Nodes write their kinds into the table at most once a second.
	found := map[string]bool{}
	for _, member := range status.Cluster.Members {
		for _, kind := range member.Kinds {
			found[kind] = true
		}
	}
	for _, host := range status.Hosts {
		var pid int
		if _, err := fmt.Sscanf(host.From, "process %d", &pid); err != nil {
			continue
		}
		if group, err := syscall.Getpgid(pid); err != nil || group != p.process.group {
			continue
		}
		served := slices.Collect(maps.Keys(host.Kinds))
		served = slices.DeleteFunc(served, func(kind string) bool { return !found[kind] })
		return len(served) > 0 && !slices.ContainsFunc(p.kinds, func(kind string) bool { return !slices.Contains(served, kind) })
	}
	return false
}

// hasMain says that this process has begun in Main.
var hasMain bool

// serving is the variable by which Main knows that its process is to be a host.
const serving = "GREENROOM_TEST_SERVES"
