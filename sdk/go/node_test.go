package greenroom_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "greenroom"
	"greenroom/greenroomtest"
)

type Enter struct {
	Name  string `json:"name"`
	Times int    `json:"times,omitempty"`
}

type Hall struct {
	Entered []string `json:"entered"`
}

func (h *Hall) Enter(cx *Cx, a Enter) (int, error) {
	for range max(1, a.Times) {
		if _, err := Call(cx, Of[Member](cx, a.Name), (*Member).See, None{}); err != nil {
			return 0, err
		}
		h.Entered = append(h.Entered, a.Name)
	}
	return len(h.Entered), nil
}

func (h *Hall) Later(cx *Cx, _ None) (None, error) {
	_, err := cx.After(20*time.Millisecond, "tick", Enter{Name: "later"})
	return None{}, err
}

func (h *Hall) Tick(_ *Cx, a Enter) (None, error) {
	h.Entered = append(h.Entered, a.Name)
	return None{}, nil
}

func (h Hall) Last(*Cx, None) (string, error) {
	if len(h.Entered) == 0 {
		return "", nil
	}
	return h.Entered[len(h.Entered)-1], nil
}

func (h Hall) Names(_ *Cx, a Enter) (iter.Seq2[string, error], error) {
	names := h.Entered[a.Times:]
	return func(yield func(string, error) bool) {
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}, nil
}

type Member struct{ seen int }

func (m *Member) See(*Cx, None) (int, error)   { m.seen++; return m.seen, nil }
func (m *Member) Panic(*Cx, None) (int, error) { panic("no") }

// Visitor enters the foyer of its own name as it is activated.
type Visitor struct{}

func (v *Visitor) Activated(cx *Cx) error {
	said, err := Call(cx, Of[Foyer](cx, cx.Key()), (*Foyer).Enter, None{})
	if err == nil && said != "" {
		err = errors.New(said)
	}
	return err
}

func (v *Visitor) Hello(*Cx, None) (None, error) { return None{}, nil }

type Foyer struct{}

func (f *Foyer) Enter(cx *Cx, _ None) (string, error) {
	if _, err := Call(cx, Of[Visitor](cx, cx.Key()), (*Visitor).Hello, None{}); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

type Amount struct {
	Amount int `json:"amount"`
}

type GoPurse struct {
	Balance int `json:"balance"`
}

type Balance struct {
	Balance int `json:"balance"`
}

func (p *GoPurse) Deposit(_ *Cx, a Amount) (int, error) { p.Balance += a.Amount; return p.Balance, nil }
func (p GoPurse) Get(*Cx, None) (int, error)            { return p.Balance, nil }
func (p *GoPurse) Pay(_ *Cx, a Amount) (int, error) {
	if a.Amount > p.Balance {
		return 0, Fail("Empty", Balance{p.Balance})
	}
	p.Balance -= a.Amount
	return p.Balance, nil
}
func (p *GoPurse) BreakOff(*Cx, None) (None, error) {
	p.Balance += 1000
	return None{}, errors.New("in the middle")
}

// node starts the real program.
func node(t *testing.T, flags ...string) *greenroomtest.Node {
	if _, err := greenroomtest.Program(); err != nil && os.Getenv("GREENROOM_LANGUAGES") != "all" {
		t.Skip(err)
	}
	return greenroomtest.Start(t, flags...)
}

func within(t *testing.T, h *Host) Caller {
	c, end := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(end)
	return h.From(c)
}

func is[T comparable](t *testing.T, found T, err error, expected T) {
	t.Helper()
	if err != nil || found != expected {
		t.Fatalf("%v, %v; expected %v", found, err, expected)
	}
}

func TestAKindIsThereForAllAsSoonAsItIsServed(t *testing.T) {
	node := node(t)
	host, client := within(t, node.Host(Kind[Hall](), Kind[Member]())), within(t, node.Host())
	found, err := Call(host, Of[Hall](host, "great"), (*Hall).Enter, Enter{"ada", 2})
	is(t, found, err, 2)
	found, err = Call(client, Of[Hall](client, "great"), (*Hall).Enter, Enter{Name: "bob"})
	is(t, found, err, 3)
	found, err = CallNamed[int](client, "hall", "great", "enter", map[string]any{"name": "cy"})
	is(t, found, err, 4)
	last, err := Call(client, Of[Hall](client, "great"), (*Hall).Last, None{})
	is(t, last, err, "cy")
	if err := Send(client, Of[Member](client, "m"), (*Member).See, None{}); err != nil {
		t.Fatal(err)
	}
}

func TestACycleThroughTheHookOfAnActivationIsNamedAtOnce(t *testing.T) {
	node := node(t)
	c := within(t, node.Host(Kind[Visitor](), Kind[Foyer]()))
	for _, key := range []string{"a", "b", "c", "d"} {
		_, err := Call(c, Of[Visitor](c, key), (*Visitor).Hello, None{})
		path := fmt.Sprintf("visitor/%[1]s -> foyer/%[1]s -> visitor/%[1]s", key)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("%v does not name %s", err, path)
		}
	}
}

func TestErrorsAreToldByErrorsIsAndAs(t *testing.T) {
	node := node(t)
	c := within(t, node.Host(Kind[GoPurse](SavedOnTurn()), Kind[Member]()))
	_, err := Call(c, Of[GoPurse](c, "ada"), (*GoPurse).Pay, Amount{3})
	var own *ActorError
	var balance Balance
	if !errors.As(err, &own) || own.Name != "Empty" || own.Read(&balance) != nil || balance.Balance != 0 {
		t.Fatal(err)
	}
	if _, err = Call(c, Of[Member](c, "m"), (*Member).Panic, None{}); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "panic: no") {
		t.Fatal(err)
	}
	_, err = CallNamed[int](c, "no_such_kind", "k", "m", nil)
	var failure *Failure
	if !errors.Is(err, ErrRefused) || !errors.As(err, &failure) || failure.Reason != "UnknownKind" {
		t.Fatal(err)
	}
}

func TestStateIsSavedBeforeTheCallerIsAnswered(t *testing.T) {
	node := node(t)
	h := node.Host(Kind[GoPurse](SavedOnTurn()))
	c := within(t, h)
	found, err := Call(c, Of[GoPurse](c, "ada"), (*GoPurse).Deposit, Amount{5})
	is(t, found, err, 5)
	if _, err = Call(c, Of[GoPurse](c, "ada"), (*GoPurse).BreakOff, None{}); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	h.Close()
	c = within(t, node.Host(Kind[GoPurse](SavedOnTurn())))
	found, err = Call(c, Of[GoPurse](c, "ada"), (*GoPurse).Get, None{})
	is(t, found, err, 5)
}

func TestManyCallsAtOnceAreAnsweredEach(t *testing.T) {
	node := node(t)
	c := within(t, node.Host(Kind[Member]()))
	var all sync.WaitGroup
	var sum, failed int
	var mu sync.Mutex
	for at := range 2000 {
		all.Go(func() {
			found, err := Call(c, Of[Member](c, fmt.Sprint(at%50)), (*Member).See, None{})
			mu.Lock()
			defer mu.Unlock()
			sum += found
			if err != nil {
				t.Error(err)
				failed++
			}
		})
	}
	all.Wait()
	is(t, [2]int{sum, failed}, nil, [2]int{50 * 820, 0})
}

type Ticker struct{ Ticks int }

var stopTicker func()

func (k *Ticker) Start(cx *Cx, _ None) (None, error) {
	var err error
	stopTicker, err = cx.Every(5*time.Millisecond, "tick", None{})
	return None{}, err
}

func (k *Ticker) Tick(*Cx, None) (None, error) { k.Ticks++; return None{}, nil }
func (k *Ticker) Stop(*Cx, None) (None, error) { stopTicker(); return None{}, nil }
func (k Ticker) Count(*Cx, None) (int, error)  { return k.Ticks, nil }

func TestATimerOfAnEarlierTurnIsCancelled(t *testing.T) {
	c := within(t, node(t).Host(Kind[Ticker]()))
	one := Of[Ticker](c, "t")
	if _, err := Call(c, one, (*Ticker).Start, None{}); err != nil {
		t.Fatal(err)
	}
	for ticks := 0; ticks < 3; {
		ticks, _ = CallNamed[int](c, "ticker", "t", "count", nil)
	}
	if _, err := Call(c, one, (*Ticker).Stop, None{}); err != nil {
		t.Fatal(err)
	}
	// A tick that was waiting already is behind it.
	stopped, _ := CallNamed[int](c, "ticker", "t", "count", nil)
	time.Sleep(100 * time.Millisecond)
	ticks, err := CallNamed[int](c, "ticker", "t", "count", nil)
	is(t, ticks, err, stopped)
}

func TestATimerTicks(t *testing.T) {
	node := node(t)
	c := within(t, node.Host(Kind[Hall](), Kind[Member]()))
	if _, err := Call(c, Of[Hall](c, "h"), (*Hall).Later, None{}); err != nil {
		t.Fatal(err)
	}
	for {
		last, err := Call(c, Of[Hall](c, "h"), (*Hall).Last, None{})
		if err != nil || last != "" {
			is(t, last, err, "later")
			return
		}
	}
}

func TestAStreamOfAHostIsConsumedByClients(t *testing.T) {
	node := node(t)
	c := within(t, node.Host(Kind[Hall](), Kind[Member]()))
	if _, err := Call(c, Of[Hall](c, "h"), (*Hall).Enter, Enter{"ada", 200}); err != nil {
		t.Fatal(err)
	}
	count := 0
	for name, err := range Stream(c, Of[Hall](c, "h"), (*Hall).Names, Enter{Times: 1}) {
		is(t, name, err, "ada")
		count++
	}
	is(t, count, nil, 199)
	// One that is left early is given up.
	for range 100 {
		for name, err := range Stream(c, Of[Hall](c, "h"), (*Hall).Names, Enter{}) {
			is(t, name, err, "ada")
			break
		}
	}
}

// Listener hears a topic and its reminders.
type Listener struct{ heard []string }

// News is an event.
type News struct {
	Text string `json:"text"`
}

func (l *Listener) Activated(c *Cx) error { return c.Subscribe("news/go", "hear", "") }

func (l *Listener) Hear(_ *Cx, a News) (None, error) {
	l.heard = append(l.heard, a.Text)
	return None{}, nil
}

func (l *Listener) Dun(c *Cx, _ None) (None, error) {
	if err := c.Unsubscribe("news/go"); err != nil {
		return None{}, err
	}
	if err := c.Remind(time.Second, 0, "hear", News{"reminded"}); err != nil {
		return None{}, err
	}
	return None{}, c.Deactivate()
}

// Owe sets a reminder that comes again.
func (l *Listener) Owe(c *Cx, _ None) (None, error) {
	return None{}, c.Remind(time.Hour, time.Minute, "hear", News{"owed"})
}

// Owes lists what is set.
func (l Listener) Owes(c *Cx, _ None) ([]Reminder, error) { return c.Reminders() }

// Forget cancels it.
func (l *Listener) Forget(c *Cx, _ None) (None, error) { return None{}, c.Forget("hear") }

func (l Listener) All(_ *Cx, _ None) ([]string, error) { return l.heard, nil }

func TestAnActorHearsATopicAndItsReminders(t *testing.T) {
	node := node(t)
	c := within(t, node.Host(Kind[Listener]()))
	one := Of[Listener](c, "l")
	hears := func(text string, meanwhile func() error) {
		for {
			heard, err := Call(c, one, (*Listener).All, None{})
			if err == nil && !slices.Contains(heard, text) {
				err = meanwhile()
			} else if err == nil {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	hears("news", func() error { return Publish(c, "news/go", News{"news"}) })
	if _, err := Call(c, one, (*Listener).Dun, None{}); err != nil {
		t.Fatal(err)
	}
	hears("reminded", func() error { time.Sleep(20 * time.Millisecond); return nil })
}

func TestTheRemindersThatAreSetAreListed(t *testing.T) {
	node := node(t)
	c := within(t, node.Host(Kind[Listener]()))
	one := Of[Listener](c, "l")
	owes, err := Call(c, one, (*Listener).Owes, None{})
	is(t, len(owes), err, 0)
	before := time.Now()
	_, err = Call(c, one, (*Listener).Owe, None{})
	is(t, err, nil, nil)
	owes, err = Call(c, one, (*Listener).Owes, None{})
	is(t, len(owes), err, 1)
	found := owes[0]
	if due := found.Due.Sub(before) - time.Hour; found.Name != "hear" || found.Method != "hear" || found.Every != time.Minute || found.Cron != "" || due < -time.Second {
		t.Fatalf("%+v", found)
	}
	_, err = Call(c, one, (*Listener).Forget, None{})
	is(t, err, nil, nil)
	owes, err = Call(c, one, (*Listener).Owes, None{})
	is(t, len(owes), err, 0)
}

// Rack holds racks.
type Rack map[string]Rack

// Crates hold crates.
type Crates []Crates

// Depot has them.
type Depot struct{}

// Stack gives a crate for each rack.
func (s Depot) Stack(_ *Cx, on Rack) (Crates, error) {
	crates := Crates{}
	for range on {
		crates = append(crates, Crates{})
	}
	return crates, nil
}

func TestTypesThatHoldThemselvesAreServed(t *testing.T) {
	node := node(t)
	c := within(t, node.Host(Kind[Depot]()))
	crates, err := Call(c, Of[Depot](c, "s"), (*Depot).Stack, Rack{"a": Rack{"b": nil}, "c": nil})
	is(t, len(crates), err, 2)
}

func TestAHostThatDrainsFailsNoCall(t *testing.T) {
	node := node(t)
	first, second := node.Host(Kind[GoPurse](SavedOnTurn())), node.Host(Kind[GoPurse](SavedOnTurn()))
	c := within(t, second)
	done := make(chan struct{})
	var paying sync.WaitGroup
	counts := make([]int, 8)
	for at := range counts {
		paying.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := Call(c, Of[GoPurse](c, fmt.Sprint(at)), (*GoPurse).Deposit, Amount{1}); err != nil {
					t.Error(err)
					return
				}
				counts[at]++
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	first.Drain(20 * time.Second)
	first.Close()
	close(done)
	paying.Wait()
	for at, count := range counts {
		found, err := Call(c, Of[GoPurse](c, fmt.Sprint(at)), (*GoPurse).Get, None{})
		is(t, found, err, count)
	}
}

// Patient bounds what it calls.
type Patient struct{}

// Wait gives up a call before its own time is over, and says how that ended.
func (p *Patient) Wait(cx *Cx, _ None) (string, error) {
	short, end := context.WithTimeout(cx, 20*time.Millisecond)
	defer end()
	_, err := Call(cx.From(short), Of[Patient](cx, "other"), (*Patient).Sleep, None{})
	if !errors.Is(err, ErrUnknown) || cx.Err() != nil {
		return "", fmt.Errorf("%v, %v", err, cx.Err())
	}
	return CallNamed[string](cx, "patient", "third", "answer", nil)
}

// Sleep fails when its caller gives up: that may come to be known first.
func (p *Patient) Sleep(cx *Cx, _ None) (None, error) {
	<-cx.Done()
	return None{}, context.Cause(cx)
}

// Answer answers.
func (p *Patient) Answer(*Cx, None) (string, error) { return "there", nil }

func TestACallInATurnMayEndBeforeTheTurn(t *testing.T) {
	c := within(t, node(t).Host(Kind[Patient]()))
	found, err := Call(c, Of[Patient](c, "one"), (*Patient).Wait, None{})
	is(t, found, err, "there")
}
