package greenroom

import (
	"errors"
	"iter"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tally counts, and is saved with each turn.
type tally struct {
	Count int `json:"count"`
}

type by struct {
	N int `json:"n"`
}

func (c *tally) Add(_ *Cx, a by) (int, error) { c.Count += a.N; return c.Count, nil }
func (c *tally) BreakOff(*Cx, None) (int, error) {
	c.Count += 1000
	return 0, errors.New("in the middle")
}

// asker shows a test what its turns get, and goes on as that says.
type asker struct {
	steps              int
	got, goes, leaving chan error
}

// got has what turns of a test's askers get, goes what they wait for, and leaving, if it is there, what their end waits for.
var got, goes, leaving chan error

// Activated has an asker stay with its own test: code of a turn that was cut may go on beyond it.
func (a *asker) Activated(*Cx) error { a.got, a.goes, a.leaving = got, goes, leaving; return nil }

func (a *asker) Deactivating(*Cx, string) {
	if a.leaving != nil {
		<-a.leaving
	}
}

func (a *asker) Ask(cx *Cx, _ None) (None, error) {
	for range 2 {
		_, err := CallNamed[int](cx, "tally", "t", "add", by{1})
		a.got <- err
	}
	return None{}, nil
}

func (a *asker) Begin(*Cx, None) (None, error) {
	a.got <- errors.New("it has begun")
	return None{}, nil
}

// Look is a read that acts.
func (a asker) Look(cx *Cx, _ None) (None, error) { return a.Act(cx, None{}) }

func (a *asker) Act(cx *Cx, _ None) (None, error) {
	a.got <- nil
	<-a.goes
	_, timer := cx.After(time.Second, "begin", None{})
	a.got <- timer
	a.got <- Send(cx, Of[asker](cx, "other"), (*asker).Begin, None{})
	_, err := CallNamed[int](cx, "tally", "t", "add", by{1})
	a.got <- err
	return None{}, nil
}

func (a *asker) Fill(cx *Cx, _ None) (None, error) {
	for range 2 {
		a.got <- Send(cx, Of[asker](cx, "other"), (*asker).Begin, None{})
	}
	return None{}, nil
}

func (a *asker) Halves(*Cx, None) (None, error) {
	a.steps++
	a.got <- nil
	<-a.goes
	a.steps++
	return None{}, nil
}

// Watch gives how many halves are done, again and again; it says when a step begins, of which each waits for the test.
func (a *asker) Watch(_ *Cx, w watch) (iter.Seq2[int, error], error) {
	return func(yield func(int, error) bool) {
		for {
			if w.Waits {
				a.got <- nil
				<-a.goes
			}
			if !yield(a.steps, nil) {
				return
			}
		}
	}, nil
}

type watch struct {
	Waits bool `json:"waits"`
}

// Consume reads a stream of another actor.
func (a *asker) Consume(cx *Cx, _ None) (None, error) {
	for _, err := range Stream(cx, Of[asker](cx, "other"), (*asker).Watch, watch{}) {
		a.got <- err
	}
	return None{}, nil
}

// asking has an asker seated. Its lease is as a test has it: no answer to an Alive makes it longer.
func asking(t *testing.T, set ...func(*peer)) *peer {
	got, goes = make(chan error, 16), make(chan error)
	silent := func(p *peer) { p.leaseMS, p.isSilent = 60_000, true }
	p := hosting(t, Kind[asker](), append([]func(*peer){silent}, set...)...)
	p.seat(1, nil)
	return p
}

// getsFenced says that a turn got no more than this, so often.
func getsFenced(t *testing.T, times int) {
	t.Helper()
	for range times {
		if err := next(t, got); !errors.Is(err, ErrFenced) {
			t.Fatal(err)
		}
	}
}

func TestL2AHostWhoseLeaseIsOverBeginsNothing(t *testing.T) {
	p := asking(t)
	s, _ := p.session()
	s.lease.until.Store(0)
	p.turn("begin", None{})
	next(t, s.over)
	p.isQuiet()
	if len(got) > 0 {
		t.Fatal(<-got)
	}
}

func TestL2TurnsSeeErrFencedOnceTheLeaseIsOver(t *testing.T) {
	p := asking(t, func(p *peer) { p.leaseMS = 200 })
	p.turn("ask", None{})
	p.called()
	s, _ := p.session()
	next(t, s.over)
	getsFenced(t, 2)
	p.isQuiet()
	if !strings.Contains(s.why.Error(), "the lease is over") {
		t.Fatal(s.why)
	}
}

func TestL2AnAwaitOfTheSDKLooksAtTheLeaseWhenItEnds(t *testing.T) {
	p := asking(t)
	p.turn("ask", None{})
	request := p.called()
	s, _ := p.session()
	s.lease.until.Store(0)
	p.reply(request, 1)
	getsFenced(t, 2)
	p.isQuiet()
}

func TestL2WhatATurnAsksWhenTheLeaseIsOverDoesNotLeave(t *testing.T) {
	p := asking(t)
	p.turn("act", None{})
	next(t, got)
	s, _ := p.session()
	s.lease.until.Store(0)
	goes <- nil
	getsFenced(t, 3)
	p.isQuiet()
}

func TestL2WhatHasWaitedForRoomDoesNotLeaveWhenTheLeaseIsOver(t *testing.T) {
	p := asking(t, func(p *peer) { p.window = 1 })
	p.turn("fill", None{})
	p.called()
	if err := next(t, got); err != nil {
		t.Fatal(err)
	}
	p.isQuiet()
	s, _ := p.session()
	s.lease.until.Store(0)
	p.say(tCredit, func(b *batch) { b.varint(1000) })
	getsFenced(t, 1)
	p.isQuiet()
}

func TestL2WhatAStreamsStepGivesWhenTheLeaseIsOverDoesNotLeave(t *testing.T) {
	p := asking(t)
	p.turn("watch", watch{true})
	_, stream, _ := p.end()
	p.say(tStreamCredit, func(b *batch) { b.varint(stream.(uint64)).varint(1).varint(0) })
	next(t, got)
	s, _ := p.session()
	s.lease.until.Store(0)
	goes <- nil
	next(t, s.over)
	p.isQuiet()
}

func TestL2AStreamsStepDoesNotBeginWhenTheLeaseIsOver(t *testing.T) {
	p := asking(t)
	p.turn("watch", watch{true})
	_, stream, _ := p.end()
	s, _ := p.session()
	s.lease.until.Store(0)
	p.say(tStreamCredit, func(b *batch) { b.varint(stream.(uint64)).varint(64).varint(0) })
	next(t, s.over)
	p.isQuiet()
	if len(got) > 0 {
		t.Fatal("a step has begun")
	}
}

func TestL2ATurnThatHasWaitedForAStreamsStepDoesNotBeginWhenTheLeaseIsOver(t *testing.T) {
	p := asking(t)
	p.turn("watch", watch{true})
	_, stream, _ := p.end()
	p.say(tStreamCredit, func(b *batch) { b.varint(stream.(uint64)).varint(1).varint(0) })
	next(t, got)
	p.turn("begin", None{})
	p.isQuiet()
	s, _ := p.session()
	s.lease.until.Store(0)
	goes <- nil
	next(t, s.over)
	p.isQuiet()
	if len(got) > 0 {
		t.Fatal(<-got)
	}
}

func TestL2WhoConsumesAStreamLooksAtTheLeaseAtEachItem(t *testing.T) {
	p := asking(t)
	p.turn("consume", None{})
	p.reply(p.called(), map[string]any{"greenroom:stream": "7.0.1.2.3"})
	opened := p.hear(tAsk).varint()
	p.reply(opened, nil)
	item, _ := payload(1, codecPack, 1)
	say := func(at uint64) {
		p.say(tStreamItem, func(b *batch) { b.varint(opened - 1).varint(at).bytes(item) })
	}
	say(0)
	if err := next(t, got); err != nil {
		t.Fatal(err)
	}
	s, _ := p.session()
	s.lease.until.Store(0)
	say(1)
	getsFenced(t, 1)
}

func TestL4TheStateLeavesWithTheReplyInOneFrameIfItHasChanged(t *testing.T) {
	p := hosting(t, Kind[tally](SavedOnTurn()))
	p.seat(1, tally{5})
	for _, each := range []struct{ add, count int }{{2, 7}, {0, 7}, {1, 8}} {
		p.turn("add", by{each.add})
		status, value, state := p.end()
		if status != sOK || value != int64(each.count) {
			t.Fatal(status, value)
		}
		if saved, is := state.(map[string]any); is != (each.add != 0) || is && saved["count"] != int64(each.count) {
			t.Fatal(state)
		}
	}
}

func TestL5BeforeAHelloTurnsAreAbandonedAndSeatsDropped(t *testing.T) {
	p := asking(t)
	if first := next(t, p.hellos); first.said["ended"] != nil {
		t.Fatal(first)
	}
	p.turn("ask", None{})
	p.called()
	_, l := p.session()
	p.breakOff()
	again := next(t, p.hellos)
	l.mu.Lock()
	if !l.isDead || len(l.seats) > 0 || len(l.turns) > 0 {
		t.Fatal("it is greeted, and what was there is there")
	}
	l.mu.Unlock()
	if ended, _ := again.said["ended"].(map[string]any); ended["session"] != int64(1) {
		t.Fatal(again)
	}
	getsFenced(t, 2)
	next(t, p.joined)
	p.seat(1, nil)
	p.turn("begin", None{})
	if status, _, _ := p.end(); status != sOK {
		t.Fatal(status)
	}
}

func TestL6TheFirstLeaseCountsFromTheHello(t *testing.T) {
	p := hosting(t, Kind[tally](), func(p *peer) { p.isSilent = true })
	s, _ := p.session()
	if greeted := next(t, p.hellos); s.lease.until.Load() > greeted.at+int64(p.leaseMS)*990_000 {
		t.Fatal("it counts from later than when the Hello came")
	}
}

// TestL10TheClockGoesOnWhileTheMachineIsSuspended looks at it in a time namespace, where CLOCK_BOOTTIME alone is an hour ahead.
func TestL10TheClockGoesOnWhileTheMachineIsSuspended(t *testing.T) {
	const apart = "GREENROOM_TEST_CLOCK"
	if before, err := strconv.ParseInt(os.Getenv(apart), 10, 64); err == nil {
		if s := newSession("", "", nil); s.lease.clock() < before+int64(time.Hour) {
			t.Fatal("it is another clock")
		}
		return
	}
	self := exec.Command("unshare", "--user", "--map-root-user", "--time", "--boottime", "3600", "--fork", os.Args[0], "-test.run", "^"+t.Name()+"$")
	self.Env = append(os.Environ(), apart+"="+strconv.FormatInt(boottime(), 10))
	if exec.Command("unshare", "--user", "--map-root-user", "--time", "--fork", "true").Run() != nil {
		t.Skip("there are no time namespaces here")
	}
	if said, err := self.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

func TestL11ADeadTurnAsksInVainAndItsActorDoesNotWaitForIt(t *testing.T) {
	p := asking(t)
	p.turn("act", None{})
	next(t, got)
	p.say(tDeactivate, func(b *batch) { b.varint(1).u8(1).u8(2) })
	p.hear(tReleased)
	goes <- nil
	getsFenced(t, 3)
	p.isQuiet()
}

func TestL11ADeadReadAsksInVainWhileItsSeatsEndTakesItsTime(t *testing.T) {
	orders := map[string]func(*peer, uint64){
		"it is cut":                           func(*peer, uint64) {},
		"its caller has given up before that": func(p *peer, turn uint64) { p.say(tCancelTurn, func(b *batch) { b.varint(turn) }) },
	}
	for order, before := range orders {
		t.Run(order, func(t *testing.T) { deadReadAsksInVain(t, before) })
	}
}

func deadReadAsksInVain(t *testing.T, before func(*peer, uint64)) {
	leaving = make(chan error)
	defer func() { leaving = nil }()
	p := asking(t)
	turn := p.turn("look", None{})
	next(t, got)
	before(p, turn)
	p.say(tDeactivate, func(b *batch) { b.varint(1).u8(1).u8(2) })
	p.isQuiet()
	goes <- nil
	getsFenced(t, 3)
	p.isQuiet()
	close(leaving)
	p.hear(tReleased)
}

func TestL11ATurnThatIsCutBeforeItBeginsDoesNotBegin(t *testing.T) {
	p := asking(t)
	p.turn("watch", watch{true})
	_, stream, _ := p.end()
	p.say(tStreamCredit, func(b *batch) { b.varint(stream.(uint64)).varint(1).varint(0) })
	next(t, got)
	p.turn("begin", None{})
	p.isQuiet()
	p.say(tDeactivate, func(b *batch) { b.varint(1).u8(1).u8(2) })
	p.hear(tReleased)
	goes <- nil
	time.Sleep(50 * time.Millisecond)
	if len(got) > 0 {
		t.Fatal(<-got)
	}
}

func TestL17ATurnInJSONIsAnsweredInJSON(t *testing.T) {
	p := hosting(t, Kind[tally]())
	p.seat(1, nil)
	for _, codec := range []byte{codecJSON, codecPack} {
		with, _ := payload(by{1}, codec, 1)
		p.say(tTurn, func(b *batch) { b.varint(uint64(codec)).varint(1).varint(0).u8(1).varint(0).varint(0).bytes(with) })
		ended := p.hear(tTurnEnd)
		ended.bytes(3)
		if len(ended.data) == 0 || ended.data[0] != codec {
			t.Fatalf("what came in codec %d is answered by %q", codec, ended.data)
		}
	}
}

func TestL21WhatAFailedTurnHasHalfChangedIsNotSaved(t *testing.T) {
	p := hosting(t, Kind[tally](SavedOnTurn()))
	p.seat(1, tally{5})
	p.turn("break_off", None{})
	if status, _, state := p.end(); status != sPanicked || state != nil {
		t.Fatal(status, state)
	}
	p.turn("add", by{1})
	if _, value, _ := p.end(); value != int64(6) {
		t.Fatal(value)
	}
}

func TestL21WhatAFailedTurnHasHalfChangedIsNotCommitted(t *testing.T) {
	p := hosting(t, Kind[tally](Reliable()))
	p.seat(1, nil)
	for _, each := range []struct {
		method string
		status byte
	}{{"add", sOK}, {"break_off", sPanicked}} {
		p.turn(each.method, by{5})
		if status, _, _ := p.end(); status != each.status {
			t.Fatal(status)
		}
	}
	p.turn("add", by{1})
	if _, value, _ := p.end(); value != int64(6) {
		t.Fatal(value)
	}
}

func TestL24AStreamsStepBeginsBetweenExclusiveTurns(t *testing.T) {
	p := asking(t)
	p.turn("watch", watch{})
	_, stream, _ := p.end()
	p.turn("halves", None{})
	next(t, got)
	p.say(tStreamCredit, func(b *batch) { b.varint(stream.(uint64)).varint(1).varint(0) })
	p.isQuiet()
	goes <- nil
	if status, _, _ := p.end(); status != sOK {
		t.Fatal(status)
	}
	item := p.hear(tStreamItem)
	item.varint()
	item.varint()
	if found := 0; read(item.data, &found) != nil || found != 2 {
		t.Fatal(found)
	}
}

// TestL1 is of a lane that this side has not seen break.
func TestL1ALaneIsSaidToBeDroppedWhenItsSeatsAre(t *testing.T) {
	p := asking(t)
	p.turn("ask", None{})
	p.called()
	_, l := p.session()
	p.sayControl(tLaneLost, func(b *batch) { b.varint(0) })
	for next(t, p.controls).kind != tLaneDropped {
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isDead || len(l.seats) > 0 {
		t.Fatal("its seats are there")
	}
	getsFenced(t, 2)
}
