package greenroom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// seat is an activation's place in a session, and its instance.
type seat struct {
	lane     *lane
	number   uint64
	kind     *KindOf
	key      string
	epoch    uint64
	instance reflect.Value
	isReady  bool
	// saved is the payload of the state as it is stored, as far as is known.
	saved []byte
	// journaled has the payloads of a reliable actor's fields, in the order of its kind's, as the last turn has left them.
	journaled [][]byte
	// state is the one that a state machine is in.
	state   string
	context context.Context
	end     context.CancelCauseFunc
	// steps is held by an exclusive turn, and by the steps of streams: these begin only between such turns.
	steps sync.RWMutex
	// exclusive is the exclusive turn that runs, if one does.
	exclusive atomic.Pointer[turn]
	outlets   []*outlet
	timers    timers
}

// isDead says whether what the seat's turns ask must fail.
func (s *seat) isDead() bool { return errors.Is(context.Cause(s.context), ErrFenced) }

// renew makes the instance anew from what is stored: a failed handler's half-changed memory is not saved by the next turn.
func (s *seat) renew() error {
	s.instance = reflect.New(s.kind.of)
	for at, field := range s.kind.kept {
		if stored := s.journaled[at]; stored != nil {
			if err := read(stored, s.instance.Elem().FieldByIndex(field.index).Addr().Interface()); err != nil {
				return fmt.Errorf("field %q of the stored state of %s cannot be read: %w", field.name, s.name(), err)
			}
		}
	}
	if s.saved == nil {
		return nil
	}
	return s.load(s.saved)
}

// changes gives what a turn has changed of a reliable actor's fields.
func (s *seat) changes() ([]part, error) {
	var changed []part
	now := borrow()
	defer giveBack(now)
	of := s.instance.Elem()
	for at, field := range s.kind.kept {
		now.Reset()
		if err := payloadTo(now, of.FieldByIndex(field.index), firstCodec(), 1); err != nil {
			return nil, fmt.Errorf("field %q of the state of %s cannot be written: %w", field.name, s.name(), err)
		}
		if !bytes.Equal(now.Bytes(), s.journaled[at]) {
			changed = append(changed, part{field.name, bytes.Clone(now.Bytes()), at})
		}
	}
	return changed, nil
}

// forget gives the exported fields, which are the state, their zero values.
func (s *seat) forget() {
	of := s.instance.Elem()
	if of.Kind() != reflect.Struct {
		of.SetZero()
		return
	}
	for _, field := range fieldsOf(of.Type()) {
		// There is none behind an embedded pointer that is nil.
		if found, err := of.FieldByIndexErr(field.Index); err == nil {
			found.SetZero()
		}
	}
}

func (s *seat) load(stored []byte) error {
	reads := s.kind.options.stateVersion
	switch {
	case len(stored) < 2:
		return errors.New("the state is empty")
	case stored[1] > reads:
		return fmt.Errorf("the state has version %d, this program reads up to %d", stored[1], reads)
	case stored[1] < reads:
		older, migrates := s.instance.Interface().(Migrates)
		if !migrates {
			return fmt.Errorf("%s has no Migrate, and its state has version %d", s.kind.of, stored[1])
		}
		var state map[string]any
		if err := read(stored, &state); err != nil {
			return cannotRead("the stored state of "+s.name(), stored, state, err)
		}
		return guarded(func() error { return older.Migrate(stored[1], state) })
	}
	instance := s.instance.Interface()
	err := read(stored, instance)
	if err != nil {
		err = cannotRead("the stored state of "+s.name(), stored, instance, err)
	}
	return err
}

func (s *seat) dump() ([]byte, error) {
	instance := s.instance.Interface()
	written, err := payload(instance, firstCodec(), s.kind.options.stateVersion)
	if err != nil {
		err = cannotWrite("the state of "+s.name(), instance, firstCodec(), err)
	}
	return written, err
}

// name is the actor's, as KIND/KEY.
func (s *seat) name() string { return s.kind.name + "/" + s.key }

// turn is the handling of one message at a seat.
type turn struct {
	seat    *seat
	number  uint64
	method  *method
	codec   byte
	isTold  bool
	life    life
	cx      Cx
	isEnded bool
	isCut   atomic.Bool
	// halts says that the turn's reliable actor ends with it.
	halts bool
	// jump is the state of a state machine from this turn on, if it says one.
	jump string
	// came is what came along with the turn's message.
	came      []byte
	arguments []byte
}

func (t *turn) run() {
	l := t.seat.lane
	if !t.method.isRead {
		hasWaited := !t.seat.steps.TryLock()
		if hasWaited {
			t.seat.steps.Lock()
		}
		defer t.seat.steps.Unlock()
		// During a stream's step the lease may have ended, or the turn may have been cut.
		if hasWaited && l.check(t.seat, t) != nil {
			return
		}
		t.seat.exclusive.Store(t)
		defer t.seat.exclusive.CompareAndSwap(t, nil)
	}
	with := reflect.New(t.method.arguments)
	reads := readAsSent
	if t.method.hasAny {
		reads = read
	}
	if err := reads(t.arguments, with.Interface()); err != nil {
		why := cannotRead("the arguments of "+t.name(), t.arguments, with.Interface(), err)
		what := map[string]any{"field": unfit(t.arguments, t.method.arguments, err), "message": why.Error()}
		l.finish(t, sInvalid, map[string]any{"Refused": map[string]any{"Invalid": what}}, nil, 0)
		return
	}
	made(with.Elem())
	reply, err := t.handle(with.Elem())
	switch {
	case err != nil:
		t.fail(err)
	case t.method.isStream && reply.IsNil():
		t.fail(errors.New("it answers with no stream: give an iter.Seq2 without items, or an error"))
	case t.method.isStream:
		out := &outlet{seat: t.seat, number: l.number(), codec: t.codec, items: reply, wake: make(chan struct{}, 1)}
		if l.add(out) {
			l.finish(t, sOK, nil, nil, out.number)
		}
	default:
		l.settle(t, sOK, reply.Interface())
	}
}

// fail ends the turn by its handler's error.
func (t *turn) fail(err error) {
	l := t.seat.lane
	status, value := outcome(err, t.seat.name()+"."+t.method.name)
	if status == sActorError {
		if t.isTold {
			value = map[string]any{"error": value, "says": err.Error()}
		}
		l.settle(t, status, value)
		return
	}
	if o := t.seat.kind.options; (o.persistent || o.reliable || o.restarts) && !t.method.isRead {
		_ = t.seat.renew()
	}
	l.finish(t, status, value, nil, 0)
}

// made has pointers to arguments point to some: what is missing is its zero value.
func made(with reflect.Value) {
	for ; with.Kind() == reflect.Pointer; with = with.Elem() {
		if with.IsNil() {
			with.Set(reflect.New(with.Type().Elem()))
		}
	}
}

// name is the method's, as KIND.METHOD.
func (t *turn) name() string { return t.seat.kind.name + "." + t.method.name }

// handle runs the handler. A panic is an error that says so.
func (t *turn) handle(with reflect.Value) (reply reflect.Value, err error) {
	hasReturned := false
	defer func() {
		if !hasReturned && err == nil {
			t.fail(errGone)
		}
	}()
	defer panicsAsError(&err)
	out := t.method.run.Call([]reflect.Value{t.seat.instance, reflect.ValueOf(&t.cx), with})
	hasReturned = true
	err, _ = out[1].Interface().(error)
	return out[0], err
}

func (l *lane) settle(t *turn, status byte, value any) {
	if t.seat.kind.options.reliable && !t.method.isRead {
		l.commit(t, status, value)
		return
	}
	if t.method.isRead || !t.seat.kind.options.onTurn {
		l.finish(t, status, value, nil, 0)
		return
	}
	state, err := t.seat.dump()
	switch {
	case err != nil:
		// What cannot be stored would keep all later turns from being stored, too.
		_ = t.seat.renew()
		l.finish(t, sUnknown, map[string]any{"Unknown": map[string]any{"Unsaved": map[string]any{"message": err.Error()}}}, nil, 0)
	case bytes.Equal(state, t.seat.saved):
		l.finish(t, status, value, nil, 0)
	default:
		// Reply and state are one frame: neither comes without the other.
		if l.finish(t, status, value, []part{{name: stateName, payload: state}}, 0) {
			t.seat.saved = state
		} else {
			_ = t.seat.renew()
		}
	}
}

// commit ends a turn of a reliable actor with all that it has changed: the node commits that with what the turn has sent.
func (l *lane) commit(t *turn, status byte, value any) {
	changed, err := t.seat.changes()
	if err != nil {
		_ = t.seat.renew()
		l.finish(t, sUnknown, map[string]any{"Unknown": map[string]any{"Unsaved": map[string]any{"message": err.Error()}}}, nil, 0)
		return
	}
	if !l.finish(t, status, value, changed, 0) {
		_ = t.seat.renew()
		return
	}
	for _, each := range changed {
		t.seat.journaled[each.at] = each.payload
	}
	if t.jump != "" {
		t.seat.state = t.jump
	}
	if t.halts {
		clear(t.seat.journaled)
		t.seat.state = t.seat.kind.options.start
	}
}

// stateName is what the state of a persistent actor is called.
const stateName = "self"

func left(c context.Context) uint64 {
	until, has := c.Deadline()
	if !has {
		return 0
	}
	return uint64(max(1, time.Until(until).Microseconds()))
}
