package greenroom

import (
	"encoding/json"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// breaks panics, or ends its goroutine, where it is told to.
type breaks struct {
	Count int    `json:"count"`
	Large string `json:"large"`
}

// where says in which hook instances break, and how.
var where atomic.Value

func breakAt(place string) {
	switch where.Load() {
	case place:
		panic("it broke")
	case place + ", gone":
		runtime.Goexit()
	}
}

func (k *breaks) Activated(cx *Cx) error {
	breakAt("activated")
	if where.Load() == "halt" {
		cx.Halt()
	}
	return nil
}
func (k *breaks) Deactivating(*Cx, string)           { breakAt("deactivating") }
func (k *breaks) Migrate(byte, map[string]any) error { breakAt("migrate"); return nil }
func (k *breaks) Leave(*Cx, None) (None, error)      { k.Count++; runtime.Goexit(); return None{}, nil }
func (k *breaks) Add(*Cx, None) (int, error)         { k.Count++; return k.Count, nil }
func (k *breaks) Strange(*Cx, None) (any, error)     { k.Count++; return make(chan int), nil }
func (k *breaks) Grow(*Cx, None) (None, error) {
	k.Count, k.Large = k.Count+1, strings.Repeat("x", frameMax)
	return None{}, nil
}
func (k *breaks) None(*Cx, None) (iter.Seq2[int, error], error) { return nil, nil }
func (k *breaks) Stream(_ *Cx, w how) (iter.Seq2[int, error], error) {
	return func(yield func(int, error) bool) {
		defer breakAt("stop")
		if !yield(1, nil) {
			return
		}
		switch w.How {
		case "gone":
			runtime.Goexit()
		case "unwritable":
			yield(0, Fail("Strange", make(chan int)))
		case "large":
			yield(0, Fail("Large", strings.Repeat("x", frameMax)))
		default:
			panic("it broke")
		}
	}, nil
}

type how struct {
	How string `json:"how"`
}

func TestAHookThatBreaksEndsItsOwnActorAlone(t *testing.T) {
	defer func() { where.Store("") }()
	p := hosting(t, Kind[breaks](Persistent(), StateVersion(2)))
	number := uint64(0)
	activate := func(stored []part) heard {
		number++
		p.say(tActivate, func(b *batch) { b.varint(number).varint(0).varint(1).u8(0).text("lobby").fields(stored) })
		answered := p.hear(tActivated)
		answered.varint()
		return answered
	}
	older, _ := payload(breaks{}, codecPack, 1)
	for place, says := range map[string]string{
		"activated": "panic: it broke", "activated, gone": "has ended its goroutine", "migrate": "panic: it broke", "halt": "Cx.Halt is for turns",
	} {
		where.Store(place)
		answered := activate([]part{{name: stateName, payload: older}})
		if status := answered.u8(); status != sRefused || lacking(string(answered.data), "Activation", says) != nil {
			t.Errorf("%s: %d, %q", place, status, answered.data)
		}
	}
	for _, place := range []string{"deactivating", "deactivating, gone"} {
		where.Store(place)
		answered := activate(nil)
		if answered.u8() != sOK {
			t.Fatalf("%q", answered.data)
		}
		p.say(tDeactivate, func(b *batch) { b.varint(number).u8(1).u8(1) })
		released := p.hear(tReleased)
		if at, status := released.varint(), released.u8(); at != number || status != sOK || len(released.data) == 0 {
			t.Errorf("%s: %d, %q", place, status, released.data)
		}
	}
}

func TestAHandlerThatEndsItsGoroutineEndsItsTurn(t *testing.T) {
	p := hosting(t, Kind[breaks](SavedOnTurn()))
	p.seat(1, nil)
	p.turn("leave", None{})
	status, value, state := p.end()
	if said, _ := json.Marshal(value); status != sPanicked || state != nil || lacking(string(said), "has ended its goroutine") != nil {
		t.Fatal(status, string(said), state)
	}
	p.turn("add", None{})
	if status, value, _ := p.end(); status != sOK || value != int64(1) {
		t.Fatal(status, value)
	}
}

func TestAStreamThatBreaksEndsWithAnErrorAndItsActorGoesOn(t *testing.T) {
	defer func() { where.Store("") }()
	p := hosting(t, Kind[breaks]())
	p.seat(1, nil)
	p.turn("none", None{})
	status, value, _ := p.end()
	if said, _ := json.Marshal(value); status != sPanicked || lacking(string(said), "no stream") != nil {
		t.Fatal(status, string(said))
	}
	for way, says := range map[string]string{
		"panics": "panic: it broke", "gone": "has ended its goroutine", "unwritable": "the error of a stream of breaks/lobby", "large": "over the bound of a frame",
	} {
		where.Store(way)
		p.turn("stream", how{way})
		_, stream, _ := p.end()
		p.say(tStreamCredit, func(b *batch) { b.varint(stream.(uint64)).varint(8).varint(0) })
		p.hear(tStreamItem)
		ended := p.hear(tStreamEnd)
		at, count, status := ended.varint(), ended.varint(), ended.u8()
		if at != stream.(uint64) || count != 1 || status == sOK || lacking(string(ended.data), says) != nil {
			t.Fatalf("%s: %d items, %d, %q", way, count, status, ended.data)
		}
		p.turn("add", None{})
		if status, _, _ := p.end(); status != sOK {
			t.Fatal(way, status)
		}
	}
}

func TestAStreamThatBreaksWhenItsConsumerLeavesBreaksNothingElse(t *testing.T) {
	defer func() { where.Store("") }()
	where.Store("stop")
	p := hosting(t, Kind[breaks]())
	p.seat(1, nil)
	p.turn("stream", how{})
	_, stream, _ := p.end()
	p.say(tStreamCredit, func(b *batch) { b.varint(stream.(uint64)).varint(1).varint(0) })
	p.hear(tStreamItem)
	p.say(tStreamCredit, func(b *batch) { b.varint(stream.(uint64)).varint(0).varint(1) })
	p.hear(tStreamEnd)
	p.isQuiet()
	p.turn("add", None{})
	if status, _, _ := p.end(); status != sOK {
		t.Fatal(status)
	}
}

func TestNothingIsKeptOfATurnWhoseEndCannotBeSaid(t *testing.T) {
	for _, kind := range []KindOf{Kind[breaks](SavedOnTurn()), Kind[breaks](Reliable())} {
		p := hosting(t, kind)
		p.seat(1, nil)
		for at, method := range []string{"strange", "grow"} {
			p.turn(method, None{})
			if status, _, state := p.end(); status != sUnknown || state != nil {
				t.Fatal(method, status, state)
			}
			p.turn("add", None{})
			ended := p.hear(tTurnEnd)
			ended.varint()
			if status, flags := ended.u8(), ended.u8(); status != sOK || flags&1 == 0 {
				t.Fatalf("after %s, a turn that has changed something says %d, %d", method, status, flags)
			}
			ended.fields()
			var count int
			if err := read(ended.data, &count); err != nil || count != at+1 {
				t.Fatalf("after %s there are %d, %v", method, count, err)
			}
		}
	}
}

func TestWhatIsTooLargeToBeCarriedDoesNotKeepItsActor(t *testing.T) {
	p := hosting(t, Kind[breaks](Travels()))
	p.seat(1, nil)
	p.turn("grow", None{})
	p.end()
	p.say(tDeactivate, func(b *batch) { b.varint(1).u8(1).u8(1) })
	released := p.hear(tReleased)
	released.varint()
	if status := released.u8(); status != sUnknown || lacking(string(released.data), "breaks/lobby", "over the bound") != nil {
		t.Fatalf("%d, %q", status, released.data)
	}
}
