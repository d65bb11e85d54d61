package greenroom

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Host has sessions with nodes, which are begun again when they are lost. Without kinds, it is a client.
type Host struct {
	kinds    []KindOf
	ways     []string
	token    string
	mu       sync.Mutex
	sessions map[string]*session
	// lost is why the last session at a way in was lost.
	lost    map[string]error
	changed chan struct{}
	closing bool
	refusal error
	stays   sync.WaitGroup
}

// Start begins sessions with a node (unix:PATH, http://HOST:PORT or https://HOST:PORT, several by commas; if empty, those of GREENROOM_HOST, or the
// one that has a socket here), and offers kinds. Once it returns, one of the sessions is open.
func Start(c context.Context, node string, kinds ...KindOf) (*Host, error) {
	h := &Host{kinds: kinds, sessions: map[string]*session{}, lost: map[string]error{}, changed: make(chan struct{})}
	for _, k := range kinds {
		if k.err != nil {
			return nil, k.err
		}
		if k.of == nil {
			return nil, errors.New("a greenroom.KindOf{} is no kind: let greenroom.Kind make it")
		}
	}
	for at, k := range kinds {
		if other := slices.IndexFunc(kinds[:at], func(other KindOf) bool { return other.name == k.name }); other >= 0 {
			return nil, fmt.Errorf("%s and %s are both of kind %q: give one of them another name by greenroom.Named", kinds[other].of, k.of, k.name)
		}
	}
	if len(codecs) == 0 {
		return nil, fmt.Errorf("GREENROOM_CODEC is %q: write messagepack or json, or leave it unset for both", os.Getenv("GREENROOM_CODEC"))
	}
	var err error
	if h.ways, err = ways(node); err != nil {
		return nil, err
	}
	if h.token, err = headerToken(); err != nil {
		return nil, err
	}
	for _, way := range h.ways {
		h.stays.Go(func() { h.stay(way) })
	}
	ended := make(chan struct{})
	go func() { h.stays.Wait(); close(ended) }()
	for {
		h.mu.Lock()
		changed := h.changed
		h.mu.Unlock()
		if len(h.lanes()) > 0 {
			return h, nil
		}
		select {
		case <-changed:
			continue
		case <-time.After(lookAgain):
			// A lane that was joined again tells nobody.
			continue
		case <-ended:
		case <-c.Done():
			err = fmt.Errorf("%w that lets this host in: %w%s", ErrNoNode, context.Cause(c), h.whys())
		}
		h.mu.Lock()
		if h.refusal != nil {
			err = h.refusal
		}
		h.mu.Unlock()
		h.Close()
		return nil, err
	}
}

// whys is why its last sessions have ended, as far as they have.
func (h *Host) whys() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all strings.Builder
	for _, way := range h.ways {
		if why := h.lost[way]; why != nil {
			fmt.Fprintf(&all, "; %v", why)
		}
	}
	return all.String()
}

// Connect is a client, closed by Close.
func Connect(c context.Context, node string) (*Host, error) { return Start(c, node) }

// Serve serves kinds until the context ends, or SIGTERM, SIGINT or SIGHUP comes; then it gives its seats back, so that no call fails, for
// 30 s at most.
func Serve(c context.Context, kinds ...KindOf) error {
	given := c
	c, stop := signal.NotifyContext(c, endings()...)
	defer stop()
	started, end := context.WithTimeout(c, 30*time.Second)
	defer end()
	h, err := Start(started, "", kinds...)
	if errors.Is(err, ErrNoNode) && c.Err() != nil && given.Err() == nil {
		// A signal has ended it before there was a node: in order.
		return nil
	}
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { h.stays.Wait(); close(ended) }()
	select {
	case <-c.Done():
		h.Drain(30 * time.Second)
		h.Close()
		return nil
	case <-ended:
		h.Close()
		return h.refusal
	}
}

// endings are the signals that end a host. A hang-up that is ignored was meant to be, as by nohup.
func endings() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	}
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
}

// From gives a caller for this host's calls, which last as long as c does.
func (h *Host) From(c context.Context) Caller { return &outside{c, h} }

type outside struct {
	context.Context
	host *Host
}

func (o *outside) scope() (*seat, *turn) { return nil, nil }

func (o *outside) lane(kind, key string) (*lane, error) {
	until := time.After(5 * time.Second)
	for {
		o.host.mu.Lock()
		changed, closing := o.host.changed, o.host.closing
		o.host.mu.Unlock()
		if lanes := o.host.lanes(); len(lanes) > 0 {
			sum := fnv.New32a()
			_, _ = sum.Write([]byte(kind + "/" + key))
			return lanes[int(sum.Sum32())%len(lanes)], nil
		}
		if closing {
			return nil, refused("Unreachable", map[string]any{"reason": "this client is closed"})
		}
		select {
		case <-changed:
		case <-time.After(lookAgain):
		case <-until:
			return nil, refused("Unreachable", map[string]any{"reason": "no node answers" + o.host.whys()})
		case <-o.Done():
			return nil, gaveUp(o, ErrRefused, "Expired")
		}
	}
}

// Drain gives all seats back, saved or carried, so that no call fails; it waits for so long at most.
func (h *Host) Drain(patience time.Duration) {
	h.mu.Lock()
	h.closing = true
	sessions := h.sessions
	h.mu.Unlock()
	late, end := context.WithTimeout(context.Background(), patience)
	defer end()
	for _, s := range sessions {
		s.mu.Lock()
		isDialled := s.conn != nil
		s.mu.Unlock()
		if isDialled {
			s.say(frame(tDrain, nil))
		}
	}
	for _, s := range sessions {
		select {
		case <-s.over:
		case <-late.Done():
		}
	}
}

// Close ends its sessions. What runs is abandoned: see Drain.
func (h *Host) Close() {
	h.mu.Lock()
	h.closing = true
	sessions := h.sessions
	h.mu.Unlock()
	for _, s := range sessions {
		s.leave(0, "the host is closed")
	}
	h.tell()
	h.stays.Wait()
}

func (h *Host) lanes() []*lane {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []*lane
	for _, way := range h.ways {
		s := h.sessions[way]
		if s == nil || s.isOver() {
			continue
		}
		select {
		case <-s.opened:
		default:
			continue
		}
		s.mu.Lock()
		for _, shard := range s.welcome.Shards {
			if l := s.lanes[shard]; l != nil {
				select {
				case <-l.done:
				default:
					found = append(found, l)
				}
			}
		}
		s.mu.Unlock()
	}
	return found
}

func (h *Host) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// stay has a session at a node, and after its loss the next one.
func (h *Host) stay(way string) {
	pause := pauseMin
	var ended map[string]any
	reads := make([]int, len(codecs))
	for at, codec := range codecs {
		reads[at] = int(codec)
	}
	for {
		hello := map[string]any{
			"name": fmt.Sprintf("%s-%d", filepath.Base(os.Args[0]), os.Getpid()), "sdk": "go 0.1.0", "lanes": 1024, "codecs": reads,
			"seats_max": 100_000, "turns_max": 1024, "bytes_max": 8 << 20, "weight": 1, "spread": "",
		}
		if h.token != "" {
			hello["token"] = h.token
		}
		if ended != nil {
			hello["ended"] = ended
		}
		s := newSession(way, h.token, h.kinds)
		h.mu.Lock()
		if h.closing {
			h.mu.Unlock()
			return
		}
		h.sessions[way] = s
		h.mu.Unlock()
		go s.live(hello)
		select {
		case <-s.opened:
			pause = pauseMin
			if len(h.kinds) > 0 {
				slog.Info("greenroom: serving", "kinds", strings.Join(s.taken(), ", "), "at", way)
			}
			h.tell()
			<-s.over
		case <-s.over:
		}
		h.tell()
		if s.welcome.Session != 0 {
			ended = map[string]any{"session": s.welcome.Session, "secret": s.welcome.Secret}
		}
		h.mu.Lock()
		closing := h.closing
		h.lost[way] = s.why
		isRefused := errors.Is(s.why, ErrNotLetIn)
		switch {
		case isRefused && h.refusal != nil:
			h.refusal = fmt.Errorf("%w; %w", h.refusal, s.why)
		case isRefused:
			h.refusal = s.why
		}
		h.mu.Unlock()
		if isRefused && !closing {
			slog.Error("greenroom: a node is not dialled again", "why", s.why)
		}
		if closing || isRefused {
			return
		}
		slog.Warn("greenroom: a session is lost; dialling again", "why", s.why)
		time.Sleep(pause)
		pause = min(2*pause, pauseMax)
	}
}

const lookAgain = 10 * time.Millisecond
