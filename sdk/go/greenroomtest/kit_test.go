package greenroomtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"greenroom"
	"greenroom/greenroomtest"
)

// Post is what is said in a room.
type Post struct {
	User string `json:"user"`
	Text string `json:"text"`
}

// ChatRoom is the guides' room.
type ChatRoom struct {
	Messages []string `json:"messages"`
}

// Slowly has begun once there is a file, and says something later.
func (r *ChatRoom) Slowly(cx *greenroom.Cx, a Post) (int, error) {
	if err := os.WriteFile(a.Text, nil, 0o600); err != nil {
		return 0, err
	}
	time.Sleep(300 * time.Millisecond)
	return r.Post(cx, a)
}

// Post says something.
func (r *ChatRoom) Post(_ *greenroom.Cx, a Post) (int, error) {
	r.Messages = append(r.Messages, a.User+": "+a.Text)
	return len(r.Messages), nil
}

// History is what was said.
func (r ChatRoom) History(*greenroom.Cx, greenroom.None) ([]string, error) { return r.Messages, nil }

// Where is the process that has the actor.
func (r ChatRoom) Where(*greenroom.Cx, greenroom.None) (int, error) { return os.Getpid(), nil }

var room = greenroom.Kind[ChatRoom](greenroom.SavedOnTurn())

// Echo is a kind beside it.
type Echo struct{}

// Echo gives it back.
func (e Echo) Echo(_ *greenroom.Cx, a Post) (Post, error) { return a, nil }

func TestMain(m *testing.M) { greenroomtest.Main(m, room, greenroom.Kind[Echo]()) }

func started(t *testing.T, flags ...string) *greenroomtest.Node {
	if _, err := greenroomtest.Program(); err != nil && os.Getenv("GREENROOM_LANGUAGES") != "all" {
		t.Skip(err)
	}
	return greenroomtest.Start(t, flags...)
}

func posts(t *testing.T, c greenroom.Caller, text string, expected int) {
	t.Helper()
	count, err := greenroom.Call(c, greenroom.Of[ChatRoom](c, "lobby"), (*ChatRoom).Post, Post{"ada", text})
	if err != nil || count != expected {
		t.Fatalf("%d, %v; expected %d", count, err, expected)
	}
}

func where(c greenroom.Caller) (int, error) {
	return greenroom.Call(c, greenroom.Of[ChatRoom](c, "lobby"), (*ChatRoom).Where, greenroom.None{})
}

// comesTo waits until the room is in the test's own process.
func comesTo(t *testing.T, c greenroom.Caller, pid int) {
	t.Helper()
	until(t, func() error {
		found, err := where(c)
		if err == nil && found != pid {
			return errors.New("it is in another process")
		}
		return err
	})
}

// until waits until something succeeds: what comes in between is no matter.
func until(t *testing.T, succeeds func() error) {
	t.Helper()
	var err error
	for late := time.Now().Add(120 * time.Second); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		if err = succeeds(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func TestARoomIsServedInTheTestsProcessAndCalledFromOutside(t *testing.T) {
	node := started(t)
	c := node.Host(room).From(t.Context())
	posts(t, c, "hi", 1)
	c = node.Client().From(t.Context())
	posts(t, c, "hello", 2)
	if pid, err := where(c); err != nil || pid != os.Getpid() {
		t.Fatal(pid, err)
	}
	said, err := greenroom.Call(c, greenroom.Of[ChatRoom](c, "lobby"), (*ChatRoom).History, greenroom.None{})
	if err != nil || !slices.Equal(said, []string{"ada: hi", "ada: hello"}) {
		t.Fatal(said, err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(node.HTTP, "http://")); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsStoredIsThereAgainAfterTheNodeIsKilledAndStarted(t *testing.T) {
	node := started(t, "--table", "sqlite:"+filepath.Join(t.TempDir(), "node.db"))
	host := node.Host(room)
	url, door := node.URL, node.HTTP
	posts(t, host.From(t.Context()), "hi", 1)
	node.Kill()
	if conn, err := net.Dial("tcp", strings.TrimPrefix(node.HTTP, "http://")); err == nil {
		_ = conn.Close()
		t.Fatal("a node that was killed lets callers in")
	}
	node.Restart()
	if node.URL != url || node.HTTP != door {
		t.Fatal("it is elsewhere")
	}
	// The host comes back by itself.
	until(t, func() error { _, err := where(host.From(t.Context())); return err })
	posts(t, node.Client().From(t.Context()), "again", 2)
	node.Stop()
	node.Restart()
	until(t, func() error { _, err := where(host.From(t.Context())); return err })
	posts(t, host.From(t.Context()), "and again", 3)
}

func TestAFrozenNodeAnswersNobodyUntilItIsThawed(t *testing.T) {
	node := started(t)
	host := node.Host(room)
	posts(t, host.From(t.Context()), "hi", 1)
	node.Freeze()
	c, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, err := where(host.From(c)); !errors.Is(err, greenroom.ErrUnknown) {
		t.Fatal(err)
	}
	node.Thaw()
	until(t, func() error { _, err := where(host.From(t.Context())); return err })
}

func TestAKilledHostsActorsComeBackInAnother(t *testing.T) {
	node := started(t)
	first := node.Process()
	c := node.Client().From(t.Context())
	// All of its kinds are there.
	if _, err := greenroom.Call(c, greenroom.Of[Echo](c, "e"), (*Echo).Echo, Post{}); err != nil {
		t.Fatal(err)
	}
	posts(t, c, "hi", 1)
	if pid, err := where(c); err != nil || pid == os.Getpid() {
		t.Fatalf("%d, %v: it is no process of its own", pid, err)
	}
	node.Host(room)
	first.Kill()
	comesTo(t, c, os.Getpid())
	posts(t, c, "hello", 2)
}

func TestAFrozenHostsActorsComeBackInAnotherAndItActsNoMore(t *testing.T) {
	node := started(t)
	first := node.Process()
	c := node.Client().From(t.Context())
	posts(t, c, "hi", 1)
	node.Host(room)
	first.Freeze()
	comesTo(t, c, os.Getpid())
	posts(t, c, "hello", 2)
	first.Thaw()
	posts(t, c, "again", 3)
	comesTo(t, c, os.Getpid())
}

func TestAHostThatIsDrainedFailsNoCall(t *testing.T) {
	node := started(t)
	first := node.Process()
	c := node.Client().From(t.Context())
	posts(t, c, "hi", 1)
	node.Host(room)
	hasBegun, called := filepath.Join(t.TempDir(), "begun"), make(chan error)
	go func() {
		_, err := greenroom.Call(c, greenroom.Of[ChatRoom](c, "lobby"), (*ChatRoom).Slowly, Post{"ada", hasBegun})
		called <- err
	}()
	until(t, func() error { _, err := os.Stat(hasBegun); return err })
	first.Drain()
	if err := <-called; err != nil {
		t.Fatal(err)
	}
	posts(t, c, "hello", 3)
	comesTo(t, c, os.Getpid())
	first.Restart()
	first.Drain()
}

func TestAProgramThatIsGivenByItsCommandIsAHost(t *testing.T) {
	node := started(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// With a shell between, as with `go run`: its child is killed, frozen and drained as well.
	host := node.Command("sh", "-c", "GREENROOM_TEST_SERVES=1 "+program+"; exit 1").Serves("chat_room", "echo")
	c := node.Client().From(t.Context())
	posts(t, c, "hi", 1)
	node.Host(room)
	host.Drain()
	comesTo(t, c, os.Getpid())
	host.Restart()
	host.Kill()
}

// TestAllIsLeftBehind is the other process of the test below.
func TestAllIsLeftBehind(t *testing.T) {
	if os.Getenv("GREENROOM_TEST_LEAVES") == "" {
		t.Skip("it is started by another test")
	}
	node := greenroomtest.Start(t)
	node.Process()
	pid, err := where(node.Client().From(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("GREENROOM_TEST_LEAVES") == "frozen" {
		node.Freeze()
	}
	_, _ = fmt.Println("left", node.HTTP, pid)
	select {}
}

func TestNodesAndHostsEndWithTheTestsProcess(t *testing.T) {
	started(t).Stop()
	for _, leaves := range []string{"running", "frozen"} {
		t.Run(leaves, func(t *testing.T) {
			program, _ := greenroomtest.Program()
			if leaves == "running" {
				// Its parent is a shell: it has its standard input alone to know of the end by.
				between := filepath.Join(t.TempDir(), "between")
				if err := os.WriteFile(between, []byte("#!/bin/sh\n"+program+" \"$@\"\nexit 1\n"), 0o700); err != nil {
					t.Fatal(err)
				}
				program = between
			}
			other := exec.Command(os.Args[0], "-test.run=^TestAllIsLeftBehind$")
			other.Env = append(os.Environ(), "GREENROOM_TEST_LEAVES="+leaves, "GREENROOM_BIN="+program)
			out, err := other.StdoutPipe()
			if err == nil {
				err = other.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			var door string
			var pid int
			for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
				_, _ = fmt.Sscanf(lines.Text(), "left http://%s %d", &door, &pid)
			}
			_ = other.Process.Kill()
			_ = other.Wait()
			if pid == 0 {
				t.Fatal("it has started nothing")
			}
			until(t, func() error {
				if conn, err := net.DialTimeout("tcp", door, time.Second); err == nil {
					_ = conn.Close()
					return errors.New("the node outlives the test's process")
				}
				// One that has ended, and that nobody has waited for, has no words.
				if words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); len(words) > 0 {
					return errors.New("the host outlives the test's process")
				}
				return nil
			})
		})
	}
}

func TestAProgramThatIsNotThereIsNamedWithTheRemedy(t *testing.T) {
	t.Setenv("GREENROOM_BIN", "")
	t.Setenv("PATH", t.TempDir())
	if _, err := greenroomtest.Program(); err == nil || !strings.Contains(err.Error(), "set GREENROOM_BIN") {
		t.Fatal(err)
	}
}
