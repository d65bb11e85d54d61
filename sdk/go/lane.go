package greenroom

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// lane is a connection to one shard of a node: its turns, calls and streams, a batch a round.
type lane struct {
	session *session
	shard   uint64
	conn    net.Conn
	// flush has a token while frames wait to be written.
	flush chan struct{}
	done  chan struct{}
	// told has a token when the node has said that the lane is lost.
	told chan struct{}
	// next has turns for the goroutines that wait for one.
	next chan *turn
	idle atomic.Int32

	mu       sync.Mutex
	room     *sync.Cond
	isDead   bool
	out      batch
	numbers  uint64
	sent     uint64
	granted  uint64
	routes   map[[2]string]uint64
	seats    map[uint64]*seat
	turns    map[uint64]*turn
	requests map[uint64]chan answer
	inlets   map[uint64]*inlet
	outlets  map[uint64]*outlet
}

type answer struct {
	status  byte
	payload []byte
	err     error
}

func newLane(s *session, shard uint64, conn net.Conn) *lane {
	l := &lane{
		session: s, shard: shard, conn: conn, flush: make(chan struct{}, 1), done: make(chan struct{}), told: make(chan struct{}, 1), next: make(chan *turn), granted: s.welcome.Window,
		routes: map[[2]string]uint64{}, seats: map[uint64]*seat{}, turns: map[uint64]*turn{}, requests: map[uint64]chan answer{},
		inlets: map[uint64]*inlet{}, outlets: map[uint64]*outlet{},
	}
	l.room = sync.NewCond(&l.mu)
	return l
}

// live reads until the connection ends, and drops what was there.
func (l *lane) live() {
	go l.writes()
	frames := frameReader{from: bufio.NewReaderSize(l.conn, 64<<10)}
	for {
		kind, body, err := frames.next(l.session.welcome.FrameMax)
		if err == nil {
			if err = l.hear(kind, &body); err == nil {
				err = body.err
			}
		}
		if err != nil {
			// What comes for seats that are dropped already, as by Close, is no mistake of the node's.
			if errors.Is(err, errFrame) && !l.isOver() {
				slog.Error("greenroom: a lane ends", "shard", l.shard, "error", err)
				_ = l.conn.SetWriteDeadline(time.Now().Add(time.Second))
				_, _ = l.conn.Write(goodbye(4, err.Error()))
			}
			break
		}
	}
	close(l.next)
	l.dropAll()
}

func (l *lane) isOver() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// dropAll abandons what runs, and drops all seats: nothing that was here acts any more.
func (l *lane) dropAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDead {
		return
	}
	l.isDead = true
	for _, t := range l.turns {
		t.isEnded = true
	}
	for _, s := range l.seats {
		s.end(ErrFenced)
	}
	lost := unknown("Disconnected", "the connection to the node is lost")
	for _, request := range l.requests {
		request <- answer{err: lost}
	}
	for _, in := range l.inlets {
		in.err = lost
		close(in.items)
	}
	clear(l.turns)
	clear(l.seats)
	clear(l.requests)
	clear(l.inlets)
	clear(l.outlets)
	l.room.Broadcast()
	close(l.done)
	_ = l.conn.Close()
}

// writes is the goroutine that writes batches.
func (l *lane) writes() {
	var spare batch
	for {
		select {
		case <-l.flush:
		case <-l.done:
			return
		}
		// Turns that are about to end come along: a write costs more than most of them.
		runtime.Gosched()
		l.mu.Lock()
		full := l.out
		l.out = spare[:0]
		l.mu.Unlock()
		if _, err := l.conn.Write(full); err != nil {
			_ = l.conn.Close()
			return
		}
		spare = full
	}
}

func (l *lane) write(kind byte, body func(*batch)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(kind, body)
}

// put appends a frame; the lock is held. It gives the frame's length, or nothing of one that is too long.
func (l *lane) put(kind byte, body func(*batch)) int {
	if l.isDead {
		return 0
	}
	at := l.out.begin(kind)
	body(&l.out)
	size := l.out.end(at)
	if size-4 > int(l.session.welcome.FrameMax) {
		l.out = l.out[:at]
		return 0
	}
	select {
	case l.flush <- struct{}{}:
	default:
	}
	return size
}

// check says why a seat, its turn or the session may no longer act.
func (l *lane) check(s *seat, t *turn) error {
	if l.session.isOver() {
		l.session.lose("its lease is over")
	}
	if isFenced(s, t) {
		return ErrFenced
	}
	return nil
}

// isFenced says whether what a seat or its turn asks must fail: a turn that was cut asks in vain also while its seat's end takes its time.
func isFenced(s *seat, t *turn) bool { return s != nil && s.isDead() || t != nil && t.isCut.Load() }

// pay sends a frame of a seat's, or of nobody's, that costs credit, when there is room.
func (l *lane) pay(c context.Context, s *seat, t *turn, kind byte, body func(*batch)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent >= l.granted {
		stop := context.AfterFunc(c, func() { l.mu.Lock(); l.room.Broadcast(); l.mu.Unlock() })
		defer stop()
		for l.sent >= l.granted && !l.isDead {
			if c.Err() != nil {
				return gaveUp(c, ErrRefused, "Expired")
			}
			l.room.Wait()
			// The lease may have ended meanwhile.
			l.mu.Unlock()
			err := l.check(s, t)
			l.mu.Lock()
			if err != nil {
				return err
			}
		}
	}
	if l.isDead {
		return refused("Unreachable", map[string]any{"reason": "the connection is lost"})
	}
	size := l.put(kind, body)
	if size == 0 {
		return refused("Unsendable", map[string]any{"message": "the frame is over the bound of the node"})
	}
	l.sent += uint64(size)
	return nil
}

func (l *lane) number() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.numbers++
	return l.numbers
}

// hear is told of a frame.
func (l *lane) hear(kind byte, r *reader) error {
	switch kind {
	case tTurn:
		return l.begin(r)
	case tActivate:
		return l.activate(r)
	case tDeactivate:
		return l.deactivate(r)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch kind {
	case tCancelTurn:
		if t := l.turns[r.varint()]; t != nil {
			t.life.cancel(context.Canceled)
		}
	case tReply:
		number, status := r.varint(), r.u8()
		if request := l.requests[number]; request != nil {
			delete(l.requests, number)
			request <- answer{status: status, payload: r.data}
		}
	case tStreamItem:
		in, number := l.inlets[r.varint()], r.varint()
		if in != nil && r.err == nil {
			if number != in.next || len(in.items) == cap(in.items) {
				return frameError("item %d of a stream came in the place of %d", number, in.next)
			}
			in.next++
			in.items <- r.data
		}
	case tStreamEnd:
		at := r.varint()
		count, status := r.varint(), r.u8()
		if in := l.inlets[at]; in != nil && r.err == nil {
			delete(l.inlets, at)
			if status != sOK {
				in.err = decode(status, r.data)
			} else if count != in.next {
				in.err = unknown("Unreadable", "the stream's last items are missing")
			}
			close(in.items)
		}
	case tStreamCredit:
		if out := l.outlets[r.varint()]; out != nil {
			window, consumed := r.varint(), r.varint()
			go out.credit(window, consumed)
		}
	case tCredit:
		l.granted = max(l.granted, l.session.welcome.Window+r.varint())
		l.room.Broadcast()
	case tOperationRefused:
		turn, actor, operation, reason := r.varint(), r.text(), r.text(), r.text()
		if r.err == nil {
			slog.Error("greenroom: the node refuses an operation", "actor", actor, "operation", operation, "reason", reason, "turn", turn)
		}
	case tGoodbye:
		code, reason := r.u8(), r.text()
		level := slog.LevelInfo
		if code > 1 {
			// It is not done, and the node does not stop.
			level = slog.LevelError
		}
		slog.Log(context.Background(), level, "greenroom: the node ends a lane", "code", code, "reason", reason)
		select {
		case l.told <- struct{}{}:
		default:
		}
		return errors.New(reason)
	}
	return nil
}

func (l *lane) begin(r *reader) error {
	number, seatNumber, methodNumber := r.varint(), r.varint(), r.varint()
	_, micros, came := r.u8(), r.varint(), r.block()
	if r.err != nil {
		return r.err
	}
	if l.session.isOver() {
		// Nothing begins any more.
		l.session.lose("its lease is over")
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.seats[seatNumber]
	if s == nil || !s.isReady || l.turns[number] != nil || methodNumber >= uint64(len(s.kind.methods)) {
		return frameError("turn %d names what is not there, or has begun", number)
	}
	t := &turn{number: number, method: s.kind.methods[methodNumber], codec: firstCodec(), came: came, arguments: r.data}
	if len(r.data) > 1 {
		t.codec, t.isTold = r.data[0], r.data[0] == codecJSON && r.data[1] == 2
	}
	t.seat, t.life.seat = s, s.context
	if micros > 0 {
		t.life.until = time.Now().Add(time.Duration(min(micros, microsMax)) * time.Microsecond)
	}
	t.cx = Cx{&t.life, s, t}
	l.turns[number] = t
	select {
	case l.next <- t:
	default:
		go l.work(t)
	}
	return nil
}

// work is a goroutine that runs turns, each once the one before has ended: its stack has grown by then.
func (l *lane) work(t *turn) {
	for t.run(); l.idle.Add(1) <= idleMax; t.run() {
		next, is := <-l.next
		l.idle.Add(-1)
		if !is {
			return
		}
		t = next
	}
	l.idle.Add(-1)
}

// microsMax is the time of a turn that has no end to speak of.
const microsMax = math.MaxInt64 / 4_000

// idleMax is how many goroutines wait for turns.
const idleMax = 256

// finish says how a turn ended. If that cannot be said as it is, the turn has failed, and is said to: nothing is kept of it.
func (l *lane) finish(t *turn, status byte, value any, changes []part, stream uint64) (isWhole bool) {
	isWhole = true
	version := byte(1)
	if t.isTold && status == sActorError {
		version = 2
	}
	codec := t.codec
	if status != sOK && status != sActorError {
		codec = firstCodec()
	}
	written := borrow()
	defer giveBack(written)
	if err := payloadTo(written, reflect.ValueOf(value), codec, version); err != nil {
		what := "the reply of "
		if status == sActorError {
			what = "the error of "
		}
		isWhole, status, changes, stream = false, sUnknown, nil, 0
		unreadable(written, cannotWrite(what+t.name(), value, codec, err).Error())
	}
	if !t.method.isStream {
		t.life.cancel(context.Canceled)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.isEnded {
		return isWhole
	}
	t.isEnded = true
	delete(l.turns, t.number)
	end := func(b *batch) {
		var flags byte
		if len(changes) > 0 {
			flags |= 1
		}
		// Of a turn that has failed nothing is kept.
		jump := t.jump != "" && (status == sOK || status == sActorError)
		if jump {
			flags |= 2
		}
		if t.halts && isWhole {
			flags |= 4
		}
		if stream != 0 {
			flags |= 8
		}
		b.varint(t.number).u8(status).u8(flags)
		if len(changes) > 0 {
			b.fields(changes)
		}
		if jump {
			b.text(t.jump)
		}
		if stream != 0 {
			b.varint(stream)
		}
		b.bytes(written.Bytes())
	}
	if l.put(tTurnEnd, end) == 0 && !l.isDead {
		isWhole, changes, stream, status = false, nil, 0, sUnknown
		unreadable(written, "the reply of "+t.name()+", with what the turn has changed, is over the bound of a frame")
		l.put(tTurnEnd, end)
	}
	return isWhole
}

// unreadable writes why a reply cannot be sent in its place.
func unreadable(written *bytes.Buffer, why string) {
	written.Reset()
	value := map[string]any{"Unknown": map[string]any{"Unreadable": map[string]any{"message": why}}}
	_ = payloadTo(written, reflect.ValueOf(value), firstCodec(), 1)
}
