// The ways in to nodes: which there are, and how they are dialled.

package greenroom

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// dial connects to a way in, unix:PATH, http://HOST:PORT or https://HOST:PORT. A token goes over TLS or to this machine.
func dial(way, token string) (net.Conn, error) {
	if path, isUnix := strings.CutPrefix(way, "unix:"); isUnix {
		return net.DialTimeout("unix", path, 5*time.Second)
	}
	to, err := url.Parse(way)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil, fmt.Errorf("%w: %q is no way in: write unix:/PATH, or http://HOST:PORT of a node's door", ErrNotLetIn, way)
	}
	if token != "" && isInTheClear(to) {
		return nil, fmt.Errorf("%w: %s is plain HTTP, where others could read the token; write https://", ErrNotLetIn, way)
	}
	conn, err := dialTCP(to)
	if err != nil {
		return nil, err
	}
	authorization := ""
	if token != "" {
		authorization = "Authorization: Bearer " + token + "\r\n"
	}
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(conn, "GET /-/host HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: greenroom-host/1\r\n%s\r\n", to.Host, authorization)
	// Nobody needs a longer head.
	bounded := &io.LimitedReader{R: conn, N: 64 << 10}
	from := bufio.NewReader(bounded)
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		err = fmt.Errorf("it does not answer as the HTTP door of a node: %w", err)
	} else if answer.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("%w: %s", ErrNotLetIn, answer.Status)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	bounded.N = math.MaxInt64
	return &buffered{conn, from}, nil
}

func dialTCP(to *url.URL) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	if to.Scheme == "https" {
		return tls.DialWithDialer(dialer, "tcp", withPort(to, "443"), nil)
	}
	return dialer.Dial("tcp", withPort(to, "80"))
}

func withPort(to *url.URL, port string) string {
	if to.Port() != "" {
		port = to.Port()
	}
	return net.JoinHostPort(to.Hostname(), port)
}

// isInTheClear is true if what is sent there crosses a network without encryption.
func isInTheClear(to *url.URL) bool {
	ip := net.ParseIP(to.Hostname())
	isHere := strings.EqualFold(to.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
	return to.Scheme == "http" && !isHere
}

// headerToken is the token of the environment as a header carries it: secrets end in a newline, editors put a byte order mark in front.
func headerToken() (string, error) {
	token := strings.TrimSpace(strings.TrimPrefix(os.Getenv("GREENROOM_TOKEN"), "\ufeff"))
	if strings.ContainsFunc(token, func(each rune) bool { return each < '!' || each > '~' }) {
		return "", fmt.Errorf("%w: GREENROOM_TOKEN holds no token: it has spaces, or characters that no token has", ErrNotLetIn)
	}
	return token, nil
}

type buffered struct {
	net.Conn
	from *bufio.Reader
}

func (b *buffered) Read(into []byte) (int, error) { return b.from.Read(into) }

// ways gives the ways in: those that are given, those of GREENROOM_HOST, or that of the one node that listens at a socket here.
func ways(given string) ([]string, error) {
	if given == "" {
		given = os.Getenv("GREENROOM_HOST")
	}
	if given != "" {
		var all []string
		for way := range strings.SplitSeq(given, ",") {
			if !slices.Contains(all, way) {
				all = append(all, way)
			}
		}
		return all, nil
	}
	directory := fmt.Sprintf("/tmp/greenroom-%d", os.Geteuid())
	if base := os.Getenv("XDG_RUNTIME_DIR"); base != "" {
		directory = filepath.Join(base, "greenroom")
	}
	var all, alive []string
	sockets, _ := filepath.Glob(filepath.Join(directory, "*.sock"))
	for _, path := range sockets {
		if !isOurs(path) {
			continue
		}
		all = append(all, "unix:"+path)
		if listens(path) {
			alive = append(alive, "unix:"+path)
		}
	}
	why := "with a socket in " + directory
	switch {
	case len(alive) == 1:
		return alive, nil
	case len(alive) > 1:
		return nil, fmt.Errorf("%w to choose of several: set GREENROOM_HOST to one of %s, or to several by commas", ErrNoNode, strings.Join(alive, ", "))
	case len(all) > 0:
		why = fmt.Sprintf("that listens at %s, which dead ones have left", strings.Join(all, ", "))
	}
	return nil, fmt.Errorf("%w %s: start one by `greenroom node`, run this program by `greenroom run PROGRAM`, or set GREENROOM_HOST to unix:/PATH or http://HOST:PORT", ErrNoNode, why)
}

// isOurs says whether it is a socket of this user's, or of root's.
func isOurs(path string) bool {
	found, err := os.Stat(path)
	if err != nil || found.Mode().Type() != os.ModeSocket {
		return false
	}
	about, is := found.Sys().(*syscall.Stat_t)
	return is && (about.Uid == 0 || int(about.Uid) == os.Geteuid())
}

// listens says whether somebody listens there, who is told nothing of this: a socket of another type is refused only after it is looked up.
func listens(path string) bool {
	probe, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(probe)
	return errors.Is(syscall.Connect(probe, &syscall.SockaddrUnix{Name: path}), syscall.EPROTOTYPE)
}
