package greenroom

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// peer is a node's side of the host protocol, scripted: it says what a test has it say, and shows what the host says.
type peer struct {
	t       *testing.T
	leaseMS uint64
	window  uint64
	// isSilent says that no Alive is answered.
	isSilent bool
	// isDeaf says that no Drain is answered.
	isDeaf bool
	kind   KindOf
	// refuses says why an offer of a session is refused; if it is empty, it is taken.
	refuses func(session uint64, kind string) string
	host    *Host
	// hellos, joined, controls and said have what came, each in order; said is of user lanes.
	hellos         chan hello
	joined         chan struct{}
	controls, said chan heard
	at             string
	turns          uint64
	mu             sync.Mutex
	control, user  net.Conn
}

// hello is one, and what the peer's clock said when it came.
type hello struct {
	said map[string]any
	at   int64
}

type heard struct {
	kind byte
	*reader
}

// hosting starts a peer, and a host of a kind at it, with its lane joined.
func hosting(t *testing.T, kind KindOf, set ...func(*peer)) *peer {
	p := listening(t, set...)
	p.kind = kind
	c, end := context.WithTimeout(context.Background(), 20*time.Second)
	defer end()
	var err error
	if p.host, err = Start(c, "unix:"+p.at, kind); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.host.Close)
	next(t, p.joined)
	return p
}

// listening starts a peer.
func listening(t *testing.T, set ...func(*peer)) *peer {
	p := &peer{
		t: t, leaseMS: 5000, window: 1 << 20, refuses: func(uint64, string) string { return "" }, at: filepath.Join(t.TempDir(), "n.sock"), hellos: make(chan hello, 16),
		joined: make(chan struct{}, 16), controls: make(chan heard, 64), said: make(chan heard, 64),
	}
	for _, say := range set {
		say(p)
	}
	listener, err := net.Listen("unix", p.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for sessions := uint64(1); ; {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			kind, r, err := (&frameReader{from: conn}).next(frameMax)
			switch {
			case err != nil:
				_ = conn.Close()
			case r.bytes(4) != nil && kind == tHello && len(r.data) > 4:
				r.bytes(4)
				if isHello := p.greet(conn, &r, sessions); isHello {
					sessions++
				}
			default:
				p.mu.Lock()
				p.user = conn
				p.mu.Unlock()
				p.joined <- struct{}{}
				go p.listen(conn, p.said)
			}
		}
	}()
	return p
}

func (p *peer) greet(conn net.Conn, r *reader, session uint64) bool {
	said := map[string]any{}
	if unpack(r.data, &said) != nil {
		return false
	}
	p.hellos <- hello{said, boottime()}
	welcome, _ := pack(map[string]any{
		"cluster": "music", "node": 7, "session": session, "secret": make([]byte, 16), "lease_ms": p.leaseMS, "shards": []int{0},
		"frame_len_max": frameMax, "window": p.window, "unknown": []string{},
	})
	p.mu.Lock()
	p.control = conn
	p.mu.Unlock()
	_, _ = conn.Write(frame(tWelcome, func(b *batch) { b.bytes([]byte(magic)).bytes([]byte{1, 0, 1, 0}).bytes(welcome) }))
	offers, _ := said["offers"].([]any)
	for at, offer := range offers {
		name, _ := offer.(map[string]any)["kind"].(string)
		reason, status := p.refuses(session, name), byte(0)
		if reason != "" {
			status = 2
		}
		_, _ = conn.Write(frame(tOffered, func(b *batch) { b.varint(uint64(at)).text(name).u8(status).text(reason) }))
	}
	go p.listen(conn, p.controls)
	return true
}

func (p *peer) listen(conn net.Conn, into chan heard) {
	for {
		kind, r, err := (&frameReader{from: conn}).next(frameMax)
		switch {
		case err != nil:
			return
		case kind == tAlive && into == p.controls:
			if number := r.varint(); !p.isSilent {
				_, _ = conn.Write(frame(tLease, func(b *batch) { b.varint(number).varint(p.leaseMS) }))
			}
		case kind == tDrain && p.isDeaf:
		case kind == tDrain:
			_, _ = conn.Write(goodbye(0, "drained"))
		case kind != tDefine:
			into <- heard{kind, &r}
		}
	}
}

func (p *peer) say(kind byte, body func(*batch)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.user.Write(frame(kind, body))
}

func (p *peer) sayControl(kind byte, body func(*batch)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.control.Write(frame(kind, body))
}

// breakOff ends the control lane.
func (p *peer) breakOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.control.Close()
}

// hear is the next frame of user lanes, which is of this type.
func (p *peer) hear(kind byte) heard {
	p.t.Helper()
	found := next(p.t, p.said)
	if found.kind != kind {
		p.t.Fatalf("frame %d came, not %d: %q", found.kind, kind, found.data)
	}
	return found
}

// isQuiet fails if the host says anything on its lanes for a while.
func (p *peer) isQuiet() {
	p.t.Helper()
	select {
	case found := <-p.said:
		p.t.Fatalf("frame %d came: %q", found.kind, found.data)
	case <-time.After(50 * time.Millisecond):
	}
}

// session is the host's one, and its lane.
func (p *peer) session() (*session, *lane) {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	for _, s := range p.host.sessions {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s, s.lanes[0]
	}
	return nil, nil
}

// seat activates one, of a stored state or none.
func (p *peer) seat(number uint64, state any) {
	p.t.Helper()
	var stored []part
	if state != nil {
		written, _ := payload(state, codecPack, 1)
		stored = []part{{name: stateName, payload: written}}
	}
	p.say(tActivate, func(b *batch) { b.varint(number).varint(0).varint(1).u8(0).text("lobby").fields(stored) })
	if found := p.hear(tActivated); found.varint() != number || found.u8() != sOK {
		p.t.Fatalf("it is not activated: %q", found.data)
	}
}

// turn sends one; its number.
func (p *peer) turn(method string, with any) uint64 {
	p.turns++
	written, _ := arguments(with)
	for at, m := range p.kind.methods {
		if m.name == method {
			p.say(tTurn, func(b *batch) {
				b.varint(p.turns).varint(1).varint(uint64(at)).u8(1).varint(0).varint(0).bytes(written)
			})
		}
	}
	return p.turns
}

// end is how a turn ended: its status, its value, and the state that came with it.
func (p *peer) end() (status byte, value any, state any) {
	p.t.Helper()
	found := p.hear(tTurnEnd)
	found.varint()
	status = found.u8()
	flags := found.u8()
	if flags&1 != 0 {
		_ = read(found.fields()[stateName], &state)
	}
	if flags&8 != 0 {
		return status, found.varint(), state
	}
	_ = read(found.data, &value)
	return status, value, state
}

// called is a call that the host makes: its request.
func (p *peer) called() uint64 {
	p.t.Helper()
	return p.hear(tCall).varint()
}

func (p *peer) reply(request uint64, value any) {
	written, _ := payload(value, codecPack, 1)
	p.say(tReply, func(b *batch) { b.varint(request).u8(sOK).bytes(written) })
}

// next is what comes, which is waited for.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case found := <-from:
		return found
	case <-time.After(10 * time.Second):
		t.Fatal("nothing comes")
		panic("never")
	}
}
