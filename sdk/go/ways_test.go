package greenroom

import (
	"errors"
	"net"
	"net/url"
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

func TestATokenGoesOverTLSOrToThisMachine(t *testing.T) {
	for way, isClear := range map[string]bool{
		"https://db.example.org:7070": false, "http://127.0.0.1:7070": false, "http://LOCALHOST:7070": false, "http://[::1]:7070": false,
		"http://db.example.org:7070": true, "http://10.0.0.1": true, "http://127.0.0.1.example.org": true,
	} {
		to, err := url.Parse(way)
		if err != nil || isInTheClear(to) != isClear {
			t.Fatal(way, err)
		}
	}
	if _, err := dial("http://10.0.0.1:1", "secret"); !errors.Is(err, ErrNotLetIn) || !strings.Contains(err.Error(), "others could read the token") {
		t.Fatal(err)
	}
	t.Setenv("GREENROOM_TOKEN", "\ufeffsecret\n")
	if token, err := headerToken(); token != "secret" || err != nil {
		t.Fatal(token, err)
	}
	t.Setenv("GREENROOM_TOKEN", "two words")
	if _, err := headerToken(); err == nil || strings.Contains(err.Error(), "two words") {
		t.Fatal(err)
	}
}
