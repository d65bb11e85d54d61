package greenroom

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"sync"
)

const streamWindow = 64

// outlet is a stream that a seat gives: its items go as its consumer has room.
type outlet struct {
	seat   *seat
	number uint64
	codec  byte
	items  reflect.Value
	wake   chan struct{}
	mu     sync.Mutex
	until  uint64
	runs   bool
	// isLeft says that nobody consumes it any more.
	isLeft bool
}

func (o *outlet) credit(window, consumed uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = max(o.until, consumed+window)
	if window == 0 {
		o.isLeft = true
		o.seat.lane.drop(o)
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
	if o.isLeft {
		return
	}
	if !o.runs {
		o.runs = true
		go o.run()
	}
}

func (o *outlet) run() {
	next, stop := iter.Pull2(o.pairs())
	defer func() {
		var err error
		defer panicsAsError(&err)
		stop()
	}()
	sent, failed := uint64(0), errGone
	defer func() { o.end(sent, failed) }()
	failed = o.give(next, &sent)
}

// give gives the items, until there is none or it fails.
func (o *outlet) give(next func() (any, error, bool), sent *uint64) error {
	for {
		if err := o.room(*sent); err != nil {
			return err
		}
		item, more, err := o.step(next)
		if err != nil || !more {
			return err
		}
		written, err := payload(item, o.codec, 1)
		if err != nil {
			return cannotWrite("an item of a stream of "+o.seat.name(), item, o.codec, err)
		}
		if err := o.seat.lane.pay(o.seat.context, o.seat, nil, tStreamItem, func(b *batch) { b.varint(o.number).varint(*sent).bytes(written) }); err != nil {
			return err
		}
		*sent++
	}
}

// step is one of the stream's, between exclusive turns.
func (o *outlet) step(next func() (any, error, bool)) (item any, more bool, err error) {
	o.seat.steps.RLock()
	defer o.seat.steps.RUnlock()
	if err = o.seat.lane.check(o.seat, nil); err != nil {
		return nil, false, err
	}
	defer panicsAsError(&err)
	item, said, more := next()
	if err = o.seat.lane.check(o.seat, nil); err == nil && more {
		err = said
	}
	return item, more, err
}

// end says how the stream has ended.
func (o *outlet) end(sent uint64, failed error) {
	o.seat.lane.drop(o)
	var status byte
	var value any
	if failed != nil {
		if failed != errLeft {
			status, value = outcome(failed, "a stream of "+o.seat.name())
		}
		if status == sAbandoned {
			status, value = sUnknown, map[string]any{"Unknown": map[string]any{"Ended": map[string]any{"actor": o.seat.name()}}}
		}
	}
	written := borrow()
	defer giveBack(written)
	if err := payloadTo(written, reflect.ValueOf(value), firstCodec(), 1); err != nil {
		status = sUnknown
		unreadable(written, cannotWrite("the error of a stream of "+o.seat.name(), value, firstCodec(), err).Error())
	}
	l := o.seat.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	said := func(b *batch) { b.varint(o.number).varint(sent).u8(status).bytes(written.Bytes()) }
	if l.put(tStreamEnd, said) == 0 {
		status = sUnknown
		unreadable(written, "the error of a stream of "+o.seat.name()+" is over the bound of a frame")
		l.put(tStreamEnd, said)
	}
}

// room waits until the consumer has room for one item more than were sent.
func (o *outlet) room(sent uint64) error {
	for {
		o.mu.Lock()
		has, isLeft := sent < o.until, o.isLeft
		o.mu.Unlock()
		if err := context.Cause(o.seat.context); err != nil || has && !isLeft {
			return err
		}
		if isLeft {
			return errLeft
		}
		select {
		case <-o.wake:
		case <-o.seat.context.Done():
		}
	}
}

// errLeft: nobody consumes a stream any more.
var errLeft = errors.New("its consumer has left")

func (o *outlet) pairs() iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		body := reflect.MakeFunc(o.items.Type().In(0), func(in []reflect.Value) []reflect.Value {
			err, _ := in[1].Interface().(error)
			return []reflect.Value{reflect.ValueOf(yield(in[0].Interface(), err))}
		})
		o.items.Call([]reflect.Value{body})
	}
}

// inlet is a stream that is consumed here: items in order, none left out, none twice.
type inlet struct {
	lane   *lane
	number uint64
	items  chan []byte
	// next and err are the reader's until items is closed.
	next, taken, said uint64
	err               error
}

func (i *inlet) take(c context.Context) ([]byte, error) {
	select {
	case item, more := <-i.items:
		if !more {
			return nil, i.err
		}
		if i.taken++; i.taken-i.said >= streamWindow/2 {
			i.credit(streamWindow)
		}
		return item, nil
	case <-c.Done():
		return nil, gaveUp(c, ErrUnknown, "TimedOut")
	}
}

func (i *inlet) close() {
	if i.lane.forget(i) {
		i.credit(0)
	}
}

func (i *inlet) credit(window uint64) {
	i.said = i.taken
	i.lane.write(tStreamCredit, func(b *batch) { b.varint(i.number).varint(window).varint(i.taken) })
}

func (l *lane) open() *inlet {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.numbers++
	in := &inlet{lane: l, number: l.numbers, items: make(chan []byte, streamWindow)}
	if l.isDead {
		in.err = unknown("Disconnected", "the connection to the node is lost")
		close(in.items)
	} else {
		l.inlets[in.number] = in
	}
	return in
}

// forget ends a stream that is consumed here; it says whether its producer must hear of it.
func (l *lane) forget(in *inlet) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waits := l.inlets[in.number]
	delete(l.inlets, in.number)
	return waits
}

func (l *lane) add(out *outlet) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isDead {
		l.outlets[out.number] = out
	}
	return !l.isDead
}

func (l *lane) drop(out *outlet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.outlets, out.number)
}
