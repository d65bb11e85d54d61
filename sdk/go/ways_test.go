package greenroom

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSocketsOfDeadNodesAreNone(t *testing.T) {
	base, err := os.MkdirTemp("", "greenroom-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	t.Setenv("XDG_RUNTIME_DIR", base)
	t.Setenv("GREENROOM_HOST", "")
	directory := filepath.Join(base, "greenroom")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	node := func(name string) *net.UnixListener {
		found, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(directory, name+".sock")})
		if err != nil {
			t.Fatal(err)
		}
		found.SetUnlinkOnClose(false)
		return found
	}
	refuses := func(words ...string) {
		t.Helper()
		_, err := ways("")
		for _, word := range words {
			if !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), word) {
				t.Fatalf("%v: it does not say %q", err, word)
			}
		}
	}
	refuses("with a socket in "+directory, "greenroom node")
	_, _ = node("a").Close(), node("b").Close()
	refuses("listens at unix:"+directory+"/a.sock, unix:"+directory+"/b.sock, which dead ones have left", "greenroom node")
	first := node("d")
	defer first.Close()
	if found, err := ways(""); err != nil || len(found) != 1 || found[0] != "unix:"+directory+"/d.sock" {
		t.Fatal(found, err)
	}
	second := node("e")
	defer second.Close()
	refuses("one of unix:" + directory + "/d.sock, unix:" + directory + "/e.sock, or")
	// The node has heard nothing of it.
	listener, err := first.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Control(func(fd uintptr) { _, _, err = syscall.Accept(int(fd)) })
	if !errors.Is(err, syscall.EAGAIN) {
		t.Fatal(err)
	}
}
