package greenroom

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// ends fails a test of what would go on for ever.
func ends(t *testing.T, what string, does func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() { does(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		t.Fatal(what, "does not end")
	}
}

func TestADrainThatNoNodeAnswersEndsWithItsPatience(t *testing.T) {
	isDeaf := func(p *peer) { p.isDeaf = true }
	first, second := listening(t, isDeaf), listening(t, isDeaf)
	h, err := Start(t.Context(), "unix:"+first.at+",unix:"+second.at, Kind[tally]())
	if err != nil {
		t.Fatal(err)
	}
	next(t, first.joined)
	next(t, second.joined)
	ends(t, "Drain", func() { h.Drain(10 * time.Millisecond) })
	ends(t, "Close", h.Close)
}

func TestAWayInThatIsNamedTwiceIsOne(t *testing.T) {
	p := listening(t)
	h, err := Start(t.Context(), "unix:"+p.at+",unix:"+p.at, Kind[tally]())
	if err != nil {
		t.Fatal(err)
	}
	ends(t, "Close", h.Close)
	if len(p.hellos) != 1 {
		t.Fatalf("there were %d sessions", len(p.hellos))
	}
}

// wordy has a description that is more than a socket holds.
type wordy struct{}

func (w *wordy) Take(*Cx, None) (None, error) { return None{}, nil }

func TestANodeThatReadsNothingKeepsNoHostFromEnding(t *testing.T) {
	at := filepath.Join(t.TempDir(), "n.sock")
	listener, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	k := Kind[wordy]()
	k.description = bytes.Repeat([]byte(" "), frameMax)
	isOver := make(chan struct{})
	defer close(isOver)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _, _ = (&frameReader{from: conn}).next(frameMax)
		welcome, _ := pack(map[string]any{"session": 1, "secret": make([]byte, 16), "lease_ms": 60_000, "shards": []int{0}, "unknown": []string{k.digest}})
		_, _ = conn.Write(frame(tWelcome, func(b *batch) { b.bytes([]byte(magic)).bytes([]byte{1, 0, 1, 0}).bytes(welcome) }))
		<-isOver
	}()
	c, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	ends(t, "Start", func() { _, err = Start(c, "unix:"+at, k) })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestThereIsRoomForAFrameAsItComes(t *testing.T) {
	for _, length := range []int{1, 2, roomFirst, roomFirst + 1, roomFirst + 2, 3*roomFirst + 7, frameMax} {
		whole := binary.LittleEndian.AppendUint32(nil, uint32(length))
		whole = append(whole, bytes.Repeat([]byte("ab"), length)[:length]...)
		kind, r, err := (&frameReader{from: bytes.NewReader(whole)}).next(frameMax)
		if err != nil || kind != 'a' || !bytes.Equal(r.data, whole[5:]) {
			t.Fatal(length, err)
		}
		if length == 1 {
			continue
		}
		if _, _, err := (&frameReader{from: bytes.NewReader(whole[:len(whole)-1])}).next(frameMax); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Fatal(length, err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := (&frameReader{from: strings.NewReader("\xff\xff\xff\xff\x01ab")}).next(math.MaxUint32); err == nil {
		t.Fatal("half a frame is one")
	}
	runtime.ReadMemStats(&after)
	if room := after.TotalAlloc - before.TotalAlloc; room > 4*roomFirst {
		t.Fatalf("it takes %d bytes", room)
	}
}

func TestAHeadOfNoEndIsReadToItsBound(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	written := make(chan int, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nA: ")
		all, more := 0, bytes.Repeat([]byte("a"), 64<<10)
		for err == nil && all < 1<<28 {
			var count int
			count, err = conn.Write(more)
			all += count
		}
		written <- all
		_ = conn.Close()
	}()
	if _, err := dial("http://"+listener.Addr().String(), ""); err == nil {
		t.Fatal("it is let in")
	}
	if all := next(t, written); all == 1<<28 {
		t.Fatal("all of it is read")
	}
}

// clock says whether its turn has time.
type clock struct{}

func (c *clock) HasTime(cx *Cx, _ None) (bool, error) {
	until, has := cx.Deadline()
	return has && time.Until(until) > time.Hour && cx.Err() == nil, nil
}

func TestTimesBeyondTheClocksEndAreLongOnes(t *testing.T) {
	p := hosting(t, Kind[clock](), func(p *peer) { p.leaseMS = math.MaxUint64 })
	p.seat(1, nil)
	p.say(tTurn, func(b *batch) {
		b.varint(1).varint(1).varint(0).u8(1).varint(math.MaxUint64).varint(0).bytes([]byte("\x01\x01\x80"))
	})
	if status, value, _ := p.end(); status != sOK || value != true {
		t.Fatal(status, value)
	}
	if s, _ := p.session(); s.welcome.LeaseMS != leaseMSMax {
		t.Fatal(s.welcome.LeaseMS)
	}
}
