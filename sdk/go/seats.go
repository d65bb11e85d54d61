// How activations get their seats here, and leave them.

package greenroom

import (
	"context"
	"errors"
	"log/slog"
)

func (l *lane) activate(r *reader) error {
	number, offer, epoch, flags := r.varint(), r.varint(), r.varint(), r.u8()
	key := r.text()
	state := l.startOf(offer)
	if flags&1 != 0 {
		state = r.text()
	}
	var carried []byte
	if flags&2 != 0 {
		carried = r.block()
	}
	stored := r.fields()
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.err == nil && (flags&^3 != 0 || offer >= uint64(len(l.session.kinds)) || l.seats[number] != nil) {
		r.fail("Activate names what is not there")
	}
	if r.err != nil {
		return r.err
	}
	s := &seat{lane: l, number: number, kind: &l.session.kinds[offer], key: key, epoch: epoch, state: state}
	if s.kind.options.reliable {
		for _, field := range s.kind.kept {
			s.journaled = append(s.journaled, stored[field.name])
		}
	} else {
		s.saved = stored[stateName]
	}
	s.context, s.end = context.WithCancelCause(context.Background())
	l.seats[number] = s
	go l.make(s, carried)
	return nil
}

// startOf gives the first state of an offer's state machine, if it is one.
func (l *lane) startOf(offer uint64) string {
	if offer >= uint64(len(l.session.kinds)) {
		return ""
	}
	return l.session.kinds[offer].options.start
}

func (l *lane) make(s *seat, carried []byte) {
	err := s.renew()
	if err == nil && len(carried) > 0 {
		err = s.load(carried)
	}
	if hooked, has := s.instance.Interface().(Activated); has && err == nil {
		err = guarded(func() error { return hooked.Activated(&Cx{s.context, s, nil}) })
	}
	status, written := byte(sOK), nothing
	if err != nil {
		slog.Error("greenroom: an actor cannot be activated", "actor", s.kind.name+"/"+s.key, "error", err)
		status = sRefused
		written, _ = payload(map[string]any{"Refused": map[string]any{"Activation": map[string]any{"message": err.Error()}}}, firstCodec(), 1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.isReady = err == nil
	if err != nil {
		delete(l.seats, s.number)
	}
	l.put(tActivated, func(b *batch) { b.varint(s.number).u8(status).bytes(written) })
}

func (l *lane) deactivate(r *reader) error {
	number, why, flags := r.varint(), r.u8(), r.u8()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.seats[number]
	if s == nil {
		return frameError("Deactivate names seat %d, which is not there", number)
	}
	if flags&2 != 0 {
		for at, t := range l.turns {
			if t.seat == s {
				t.isEnded = true
				t.isCut.Store(true)
				t.life.cancel(ErrFenced)
				delete(l.turns, at)
			}
		}
	}
	go l.release(s, why, flags&1 != 0, flags&2 != 0)
	return nil
}

func (l *lane) release(s *seat, why byte, isCarried, isCut bool) {
	status, carried := byte(sOK), []byte(nil)
	isFree := s.steps.TryLock()
	// Nobody can end the code of a turn that was cut: it asks in vain, and its actor goes without it.
	if isFree || !isCut {
		if !isFree {
			s.steps.Lock()
		}
		defer s.steps.Unlock()
		status, carried = s.leave(why, isCarried)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.end(ErrFenced)
	delete(l.seats, s.number)
	said := func(b *batch) { b.varint(s.number).u8(status).bytes(carried) }
	if l.put(tReleased, said) == 0 {
		status, carried = uncarried("what " + s.name() + " carries is over the bound of a frame")
		l.put(tReleased, said)
	}
}

// uncarried says why an actor takes nothing along.
func uncarried(why string) (status byte, carried []byte) {
	carried, _ = payload(map[string]any{"Unknown": map[string]any{"Panicked": map[string]any{"message": why}}}, firstCodec(), 1)
	return sUnknown, carried
}

// leave tells the actor that it goes, and gives what it takes along.
func (s *seat) leave(why byte, isCarried bool) (status byte, carried []byte) {
	if hooked, has := s.instance.Interface().(Deactivating); has {
		name := "other"
		if int(why) < len(whys) {
			name = whys[why]
		}
		if err := guarded(func() error { hooked.Deactivating(&Cx{s.context, s, nil}, name); return nil }); err != nil {
			slog.Error("greenroom: an actor fails to hear of its end", "actor", s.name(), "error", err)
		}
	}
	if isCarried && (s.kind.options.persistent || s.kind.options.travels) {
		carried, err := s.dump()
		if err == nil {
			return sOK, carried
		}
		return uncarried(err.Error())
	}
	return sOK, nil
}

var whys = []string{"idle", "stopping", "asked", "failed", "migrating", "superseded", "upgraded", "unsaved", "duplicate", "stopped"}

// guarded has a hook's panic, or its end by runtime.Goexit, as an error.
func guarded(hook func() error) error {
	ended := make(chan error, 1)
	go func() {
		err := errGone
		defer func() { ended <- err }()
		defer panicsAsError(&err)
		err = hook()
	}()
	return <-ended
}

// errGone is of code that has ended its goroutine, and so says nothing.
var errGone = errors.New("it has ended its goroutine, as runtime.Goexit and testing.T.FailNow do: let it return an error")
