package greenroom

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// logged has what is logged from here to the test's end.
func logged(t *testing.T) *record {
	to, before := &record{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(to, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return to
}

type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(line)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// until waits until it has all of the parts in one line.
func (r *record) until(t *testing.T, parts ...string) {
	t.Helper()
	for guard := time.Now().Add(time.Minute); time.Now().Before(guard); time.Sleep(time.Millisecond) {
		for line := range strings.Lines(r.String()) {
			if lacking(line, parts...) == nil {
				return
			}
		}
	}
	t.Fatalf("there is no line of %q in:\n%v", parts, r)
}

// lacking says which parts a text lacks.
func lacking(text string, parts ...string) (lacks []string) {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			lacks = append(lacks, part)
		}
	}
	return lacks
}

// serving runs Serve at peers; what it ends with comes, or is what stop gives.
func serving(t *testing.T, peers []*peer, kinds ...KindOf) (ended chan error, stop func()) {
	var all []string
	for _, p := range peers {
		all = append(all, "unix:"+p.at)
	}
	t.Setenv("GREENROOM_HOST", strings.Join(all, ","))
	c, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	ended = make(chan error, 1)
	go func() { ended <- Serve(c, kinds...) }()
	return ended, stop
}

// refusing refuses kinds, each for a reason.
func refusing(why map[string]string) func(*peer) {
	return func(p *peer) { p.refuses = func(_ uint64, kind string) string { return why[kind] } }
}

func TestAHostOfWhichNothingIsTakenEndsWithEachReason(t *testing.T) {
	why := map[string]string{"tally": "it is another team's", "asker": "it is linked"}
	p := listening(t, refusing(why))
	ended, _ := serving(t, []*peer{p}, Kind[tally](), Kind[asker]())
	err := next(t, ended)
	if !errors.Is(err, ErrNotLetIn) || lacking(err.Error(), "tally is refused: it is another team's", "asker is refused: it is linked", p.at) != nil {
		t.Fatal(err)
	}
	if len(p.hellos) != 1 {
		t.Fatalf("it has dialled %d times", len(p.hellos))
	}
}

func TestAnOperationThatTheNodeRefusesIsLoggedAndTheLaneGoesOn(t *testing.T) {
	log := logged(t)
	p := listening(t)
	_, _ = serving(t, []*peer{p}, Kind[tally]())
	<-p.joined
	p.say(tOperationRefused, func(b *batch) { b.varint(9).text("tally/t").text("SetTimer").text("full") })
	log.until(t, "the node refuses an operation", "tally/t", "SetTimer", "full")
	p.seat(1, nil)
}

func TestAHostOfWhichSomeIsTakenServesThatAndSaysWhatIsRefused(t *testing.T) {
	log := logged(t)
	p := listening(t, refusing(map[string]string{"asker": "it is linked"}))
	ended, stop := serving(t, []*peer{p}, Kind[tally](), Kind[asker]())
	log.until(t, "level=ERROR", "kind=asker", p.at, "it is linked")
	log.until(t, "level=INFO", "serving", "kinds=tally", p.at)
	if strings.Contains(log.String(), `kinds="tally, asker"`) {
		t.Fatal(log)
	}
	p.mu.Lock()
	_, _ = p.control.Write(frame(tOffered, func(b *batch) { b.varint(1).text("asker").u8(0).text("") }))
	p.mu.Unlock()
	log.until(t, "level=INFO", "was refused is taken now", "kind=asker", p.at)
	stop()
	if err := next(t, ended); err != nil {
		t.Fatal(err)
	}
}

func TestAHostGoesOnWhileOneNodeOfSeveralTakesIt(t *testing.T) {
	log := logged(t)
	one, other := listening(t, refusing(map[string]string{"tally": "no"})), listening(t)
	ended, stop := serving(t, []*peer{one, other}, Kind[tally]())
	log.until(t, "not dialled again", "tally is refused: no", one.at)
	log.until(t, "serving", other.at)
	if len(ended) > 0 {
		t.Fatal(<-ended)
	}
	stop()
	if err := next(t, ended); err != nil {
		t.Fatal(err)
	}
}

func TestAHostThatNoNodeTakesNamesThemAll(t *testing.T) {
	one, other := listening(t, refusing(map[string]string{"tally": "here not"})), listening(t, refusing(map[string]string{"tally": "nor here"}))
	ended, _ := serving(t, []*peer{one, other}, Kind[tally]())
	if err := next(t, ended); !errors.Is(err, ErrNotLetIn) || lacking(err.Error(), "here not", "nor here", one.at, other.at) != nil {
		t.Fatal(err)
	}
}

func TestAHostThatIsRefusedWhenItDialsAgainEndsToo(t *testing.T) {
	log := logged(t)
	p := listening(t, func(p *peer) {
		p.refuses = func(session uint64, _ string) string {
			if session > 1 {
				return "a newer version is there"
			}
			return ""
		}
	})
	ended, _ := serving(t, []*peer{p}, Kind[tally]())
	log.until(t, "serving", p.at)
	p.breakOff()
	if err := next(t, ended); !errors.Is(err, ErrNotLetIn) || lacking(err.Error(), "a newer version is there") != nil {
		t.Fatal(err)
	}
}

// late is a connection that is closed here, and has one frame more.
type late struct {
	net.Conn
	close func()
	frame batch
}

func (c *late) Read(into []byte) (int, error) {
	c.close()
	read := copy(into, c.frame)
	c.frame = c.frame[read:]
	if read == 0 {
		return 0, net.ErrClosed
	}
	return read, nil
}

func TestWhatComesForALaneThatIsClosedInOrderIsNoMistake(t *testing.T) {
	log := logged(t)
	s := newSession("", "", []KindOf{Kind[tally]()})
	s.welcome.FrameMax = frameMax
	s.lease.until.Store(math.MaxInt64)
	conn, other := net.Pipe()
	defer other.Close()
	l := newLane(s, 0, nil)
	l.conn = &late{conn, l.dropAll, frame(tTurn, func(b *batch) { b.varint(1).varint(1).varint(0).u8(1).varint(0).varint(0) })}
	l.live()
	if text := log.String(); text != "" {
		t.Fatal(text)
	}
}

func TestAHostThatItsUserClosesOrDrainsLogsNoWarning(t *testing.T) {
	for what, end := range map[string]func(*Host){"closed": func(*Host) {}, "drained": func(h *Host) { h.Drain(time.Minute) }} {
		t.Run(what, func(t *testing.T) {
			log := logged(t)
			p := hosting(t, Kind[tally]())
			p.seat(1, nil)
			end(p.host)
			p.host.Close()
			if text := log.String(); strings.Contains(text, "level=WARN") || strings.Contains(text, "level=ERROR") {
				t.Fatal(text)
			}
		})
	}
}

func TestNonsenseInThePlaceOfAWelcomeIsSaidToBeNoHostSocket(t *testing.T) {
	for what, answer := range map[string]string{"HTTP": "HTTP/1.1 400 Bad Request\r\n\r\n", "a length": "\xff\xff\xff\xff\x01", "no length": "\x00\x00\x00\x00\x00"} {
		t.Run(what, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "n.sock")
			listener, err := net.Listen("unix", at)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				conn, _ := listener.Accept()
				defer conn.Close()
				_, _, _ = (&frameReader{from: conn}).next(frameMax)
				_, _ = conn.Write([]byte(answer))
			}()
			c, end := context.WithTimeout(context.Background(), time.Minute)
			defer end()
			_, err = Connect(c, "unix:"+at)
			if !errors.Is(err, ErrNotLetIn) || lacking(err.Error(), at, "does not speak the host protocol", "host socket") != nil {
				t.Fatal(err)
			}
		})
	}
}
