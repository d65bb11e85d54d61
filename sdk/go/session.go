package greenroom

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// ErrNoNode: there is no node to dial; the message says what to start.
var ErrNoNode = errors.New("there is no node")

// ErrNotLetIn: the node refuses the host, or this program is wrong about it. Dialling again does not help.
var ErrNotLetIn = errors.New("the node does not let this host in")

// welcome is what a session is.
type welcome struct {
	Node     uint64   `json:"node"`
	Session  uint64   `json:"session"`
	Secret   []byte   `json:"secret"`
	LeaseMS  uint64   `json:"lease_ms"`
	Shards   []uint64 `json:"shards"`
	FrameMax uint32   `json:"frame_len_max"`
	Window   uint64   `json:"window"`
	Unknown  []string `json:"unknown"`
	Rerun    bool     `json:"rerun"`
}

// lease is until when this host may act, by a clock that goes on while the machine is suspended. It counts from when it was
// asked for, not from when it was answered, and ends at 0.99 of what was granted: before the node can believe that it is over.
type lease struct {
	until atomic.Int64
	clock func() int64
	mu    sync.Mutex
	next  uint64
	asked map[uint64]int64
}

func newLease(clock func() int64) *lease { return &lease{clock: clock, asked: map[uint64]int64{}} }

func (l *lease) isOver() bool { return l.clock() >= l.until.Load() }

func (l *lease) begin(asked int64, ms uint64) {
	l.until.Store(max(l.until.Load(), asked+int64(min(ms, leaseMSMax))*990_000))
}

func (l *lease) ask() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	l.asked[l.next] = l.clock()
	delete(l.asked, l.next-64)
	return l.next
}

func (l *lease) granted(number, ms uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked, known := l.asked[number]; known {
		delete(l.asked, number)
		l.begin(asked, ms)
	}
}

// boottime is CLOCK_BOOTTIME in nanoseconds.
func boottime() int64 {
	var now syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 7, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

// session is a host's stay at one node, from its Hello to its loss. It never comes back; the next one begins with nothing.
type session struct {
	way     string
	token   string
	kinds   []KindOf
	lease   *lease
	welcome welcome
	conn    net.Conn
	writing sync.Mutex
	// opened is closed when its lanes are joined and its offers answered, over when it is lost.
	opened, over chan struct{}

	mu       sync.Mutex
	lanes    map[uint64]*lane
	offered  map[string]string
	answers  int
	isLost   bool
	why      error
	draining bool
}

func newSession(way, token string, kinds []KindOf) *session {
	return &session{
		way: way, token: token, kinds: kinds, lease: newLease(boottime), opened: make(chan struct{}), over: make(chan struct{}),
		lanes: map[uint64]*lane{}, offered: map[string]string{},
	}
}

func (s *session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return s.lease.isOver()
	}
}

// live greets and keeps the lease, until the session is lost.
func (s *session) live(hello map[string]any) {
	err := s.greet(hello)
	if err == nil {
		for _, shard := range s.welcome.Shards {
			go s.keep(shard)
		}
		go s.beat()
		err = s.hear(bufio.NewReader(s.conn))
	}
	s.end(fmt.Errorf("%s: %w", s.way, err))
}

func (s *session) greet(hello map[string]any) error {
	conn, err := dial(s.way, s.token)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.conn = conn
	isLost := s.isLost
	s.mu.Unlock()
	if isLost {
		// The host was closed meanwhile.
		_ = conn.Close()
		return errors.New("it is closed")
	}
	offers := []any{}
	for _, k := range s.kinds {
		offers = append(offers, map[string]any{"kind": k.name, "version": k.options.version, "compatible": k.options.compatible, "digest": k.digest})
	}
	hello["offers"] = offers
	written, err := pack(hello)
	if err != nil {
		return err
	}
	asked := s.lease.clock()
	_ = s.conn.SetDeadline(time.Now().Add(sayMax))
	s.say(frame(tHello, func(b *batch) { b.bytes([]byte(magic)).bytes([]byte{1, 0, 1, 0}).bytes(written) }))
	kind, r, err := (&frameReader{from: s.conn}).next(64 << 10)
	switch {
	case errors.Is(err, errFrame):
		return fmt.Errorf("%w: what answers there does not speak the host protocol: is it the host socket, or the HTTP door, of a Greenroom node? (%w)", ErrNotLetIn, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("nobody answers the greeting within 5 s: is it the host socket, or the HTTP door, of a Greenroom node?")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection was closed in place of an answer to the greeting: is it the host socket of a Greenroom node?")
	case err != nil:
		return err
	case kind == tGoodbye:
		if code, reason := r.u8(), r.text(); code == 5 {
			return fmt.Errorf("%w: %s", ErrNotLetIn, reason)
		} else {
			return errors.New(reason)
		}
	case kind != tWelcome || string(r.bytes(4)) != magic:
		return fmt.Errorf("%w: it does not speak the host protocol: is it a Greenroom node?", ErrNotLetIn)
	}
	versions := r.bytes(4)
	if r.err != nil || binary.LittleEndian.Uint16(versions) > 1 || binary.LittleEndian.Uint16(versions[2:]) < 1 {
		return fmt.Errorf("%w: it speaks other versions of the host protocol than 1", ErrNotLetIn)
	}
	s.welcome = welcome{FrameMax: frameMax, Window: 1 << 20}
	if err := unpack(r.data, &s.welcome); err != nil {
		return fmt.Errorf("its Welcome cannot be read: %w", err)
	}
	_ = s.conn.SetDeadline(time.Time{})
	// A longer one would be over its clock's end.
	s.welcome.LeaseMS = min(s.welcome.LeaseMS, leaseMSMax)
	s.lease.begin(asked, s.welcome.LeaseMS)
	for _, digest := range s.welcome.Unknown {
		for _, k := range s.kinds {
			if k.digest == digest {
				s.say(frame(tDescribe, func(b *batch) { b.text(k.name).varint(uint64(k.options.version)).bytes(k.description) }))
			}
		}
	}
	s.look()
	return nil
}

// beat asks for the lease, five times in its time.
func (s *session) beat() {
	tick := time.NewTicker(max(time.Millisecond, time.Duration(s.welcome.LeaseMS)*time.Millisecond/5))
	defer tick.Stop()
	for {
		if s.lease.isOver() {
			s.lose("the lease is over, and was not renewed")
			return
		}
		number := s.lease.ask()
		s.say(frame(tAlive, func(b *batch) { b.varint(number) }))
		select {
		case <-tick.C:
		case <-s.over:
			return
		}
	}
}

func (s *session) hear(from *bufio.Reader) error {
	frames := frameReader{from: from}
	for {
		kind, r, err := frames.next(64 << 10)
		if err != nil {
			return err
		}
		switch kind {
		case tLease:
			number := r.varint()
			s.lease.granted(number, r.varint())
		case tOffered:
			_, name, status, reason := r.varint(), r.text(), r.u8(), r.text()
			if status >= 2 {
				slog.Error("greenroom: a kind is refused", "kind", name, "at", s.way, "reason", reason)
			}
			s.mu.Lock()
			s.answers++
			_, wasRefused := s.offered[name]
			if status >= 2 {
				s.offered[name] = reason
			} else {
				delete(s.offered, name)
			}
			s.mu.Unlock()
			if status < 2 && wasRefused {
				slog.Info("greenroom: a kind that was refused is taken now", "kind", name, "at", s.way)
			}
			if err := s.noneTaken(); err != nil {
				s.say(goodbye(0, "none of its kinds is taken"))
				return err
			}
			s.look()
		case tLaneLost:
			shard := r.varint()
			s.mu.Lock()
			l := s.lanes[shard]
			s.mu.Unlock()
			if l != nil {
				l.dropAll()
			}
			s.say(frame(tLaneDropped, func(b *batch) { b.varint(shard) }))
			if l != nil {
				select {
				case l.told <- struct{}{}:
				default:
				}
			}
		case tGoodbye:
			code, reason := r.u8(), r.text()
			if code == 5 {
				return fmt.Errorf("%w: %s", ErrNotLetIn, reason)
			}
			return errors.New(reason)
		}
		if r.err != nil {
			return r.err
		}
	}
}

// noneTaken says why, once all offers are refused: there is nothing to stay for.
func (s *session) noneTaken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kinds) == 0 || s.answers < len(s.kinds) || len(s.offered) < len(s.kinds) {
		return nil
	}
	var whys []string
	for _, k := range s.kinds {
		whys = append(whys, fmt.Sprintf("%s is refused: %s", k.name, s.offered[k.name]))
	}
	return fmt.Errorf("%w: %s", ErrNotLetIn, strings.Join(whys, "; "))
}

// taken are the names of the kinds that the node has taken.
func (s *session) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, k := range s.kinds {
		if _, isRefused := s.offered[k.name]; !isRefused {
			names = append(names, k.name)
		}
	}
	return names
}

// say writes a frame on the control lane. To a node that reads none of them for as long as a greeting may take, the connection ends.
func (s *session) say(frame batch) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(sayMax))
	if _, err := s.conn.Write(frame); err != nil {
		_ = s.conn.Close()
	}
}

func (s *session) lose(why string) { s.end(errors.New(why)) }

// end drops seats and abandons turns, before anybody can greet again.
func (s *session) end(why error) {
	s.mu.Lock()
	if s.isLost {
		s.mu.Unlock()
		return
	}
	s.isLost, s.why = true, why
	lanes, conn := s.lanes, s.conn
	s.lanes = map[uint64]*lane{}
	s.mu.Unlock()
	for _, l := range lanes {
		l.dropAll()
	}
	close(s.over)
	if conn != nil {
		_ = conn.Close()
	}
}

// leave says goodbye, and ends it.
func (s *session) leave(code byte, reason string) {
	s.mu.Lock()
	lanes, isDialled := maps.Clone(s.lanes), s.conn != nil
	s.mu.Unlock()
	for _, l := range lanes {
		l.dropAll()
	}
	if isDialled {
		s.say(goodbye(code, reason))
	}
	s.lose(reason)
}

// keep has a lane to the shard, as long as the session lasts.
func (s *session) keep(shard uint64) {
	pause := pauseMin
	for !s.isOver() {
		if conn, err := dial(s.way, s.token); err == nil {
			what, _ := pack(map[string]any{"session": s.welcome.Session, "secret": s.welcome.Secret, "shard": shard})
			_, _ = conn.Write(frame(tJoin, func(b *batch) { b.bytes([]byte(magic)).bytes([]byte{1, 0}).bytes(what) }))
			l := newLane(s, shard, conn)
			s.mu.Lock()
			if s.isLost {
				s.mu.Unlock()
				_ = conn.Close()
				return
			}
			s.lanes[shard] = l
			s.mu.Unlock()
			s.look()
			since := time.Now()
			l.live()
			if s.isOver() {
				return
			}
			// It is joined again when the node has said that the lane is lost, and was told that its seats are dropped.
			select {
			case <-l.told:
			case <-s.over:
				return
			case <-time.After(time.Duration(s.welcome.LeaseMS) * time.Millisecond):
			}
			if time.Since(since) > pauseMax {
				pause = pauseMin
			}
		}
		time.Sleep(pause)
		pause = min(2*pause, pauseMax)
	}
}

func (s *session) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lanes) == len(s.welcome.Shards) && s.answers >= len(s.kinds) && !s.isLost {
		select {
		case <-s.opened:
		default:
			close(s.opened)
		}
	}
}

const (
	pauseMin = 50 * time.Millisecond
	pauseMax = 2 * time.Second
	// sayMax is how long a greeting may take, and what is said on a control lane.
	sayMax = 5 * time.Second
	// leaseMSMax is some 34 years.
	leaseMSMax = 1 << 40
)
