package greenroom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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

type Payment struct {
	To    string `json:"to"`
	Coins int    `json:"coins"`
}

type Pouch struct {
	Coins int   `json:"coins"`
	Taken []int `json:"taken"`
}

func (p *Pouch) Pay(cx *Cx, a Payment) (int, error) {
	p.Coins -= a.Coins
	if err := Send(cx, Of[Pouch](cx, a.To), (*Pouch).Take, a); err != nil {
		return 0, err
	}
	if a.Coins == 13 {
		return 0, errors.New("thirteen")
	}
	return p.Coins, nil
}

func (p *Pouch) Take(_ *Cx, a Payment) (None, error) {
	p.Coins += a.Coins
	p.Taken = append(p.Taken, a.Coins)
	return None{}, nil
}

func (p *Pouch) Later(cx *Cx, a Payment) (None, error) {
	_, err := cx.After(20*time.Millisecond, "pay", a)
	return None{}, err
}

func (p *Pouch) Ask(cx *Cx, a Payment) (None, error) {
	return Call(cx, Of[Pouch](cx, a.To), (*Pouch).Take, a)
}

func (p *Pouch) Close(cx *Cx, _ None) (None, error) { cx.Halt(); return None{}, nil }
func (p Pouch) Look(*Cx, None) (string, error)      { return fmt.Sprint(p.Coins, p.Taken), nil }

// node starts the real program, and gives its way in and its door.
func node(t *testing.T, flags ...string) (way, door string) {
	program := os.Getenv("GREENROOM_BIN")
	if program == "" && os.Getenv("GREENROOM_LANGUAGES") != "all" {
		t.Skip("no program: set GREENROOM_BIN")
	}
	directory, err := os.MkdirTemp("", "greenroom-")
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	door = free.Addr().String()
	_ = free.Close()
	command := exec.Command(program, "node", "--name", "node", "--http", door, "--without-examples", "--until-stdin-ends")
	command.Args = append(command.Args, flags...)
	command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+directory, "RUST_LOG=warn")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close(); _ = command.Wait(); _ = os.RemoveAll(directory) })
	socket := filepath.Join(directory, "greenroom", "node.sock")
	for left := 3000; ; left-- {
		if _, err := os.Stat(socket); err == nil {
			return "unix:" + socket, "http://" + door
		}
		if left == 0 {
			t.Fatal("the node did not open its socket")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func started(t *testing.T, way string, kinds ...KindOf) *Host {
	c, end := context.WithTimeout(context.Background(), 10*time.Second)
	defer end()
	h, err := Start(c, way, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
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
	way, _ := node(t)
	host, client := within(t, started(t, way, Kind[Hall](), Kind[Member]())), within(t, started(t, way))
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

func TestErrorsAreToldByErrorsIsAndAs(t *testing.T) {
	way, _ := node(t)
	c := within(t, started(t, way, Kind[GoPurse](SavedOnTurn()), Kind[Member]()))
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

func TestAReliableTurnIsOneCommitWithWhatItSends(t *testing.T) {
	way, _ := node(t, "--journal", "memory:")
	first := started(t, way, Kind[Pouch](Reliable()))
	c := within(t, first)
	ada, bob := Of[Pouch](c, "ada"), Of[Pouch](c, "bob")
	found, err := Call(c, ada, (*Pouch).Pay, Payment{"bob", 5})
	is(t, found, err, -5)
	if _, err = Call(c, ada, (*Pouch).Pay, Payment{"bob", 13}); err == nil || !strings.Contains(err.Error(), "thirteen") {
		t.Fatal(err)
	}
	found, err = Call(c, ada, (*Pouch).Pay, Payment{"bob", 2})
	is(t, found, err, -7)
	if _, err = Call(c, ada, (*Pouch).Later, Payment{"bob", 1}); err != nil {
		t.Fatal(err)
	}
	for {
		seen, err := Call(c, bob, (*Pouch).Look, None{})
		if err != nil {
			t.Fatal(err)
		}
		if seen == "8 [5 2 1]" {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, err = Call(c, ada, (*Pouch).Ask, Payment{To: "bob"}); err == nil || !strings.Contains(err.Error(), "send it one-way") {
		t.Fatal(err)
	}
	first.Close()
	// What is kept is there again at the next host, and goes with who halts.
	c = within(t, started(t, way, Kind[Pouch](Reliable())))
	ada, bob = Of[Pouch](c, "ada"), Of[Pouch](c, "bob")
	seen, err := Call(c, ada, (*Pouch).Look, None{})
	is(t, seen, err, "-8 []")
	seen, err = Call(c, bob, (*Pouch).Look, None{})
	is(t, seen, err, "8 [5 2 1]")
	if _, err = Call(c, bob, (*Pouch).Close, None{}); err != nil {
		t.Fatal(err)
	}
	seen, err = Call(c, bob, (*Pouch).Look, None{})
	is(t, seen, err, "0 []")
}

// Text is what a Counter is told.
type Text struct {
	Text string `json:"text"`
}

// Counter is a state machine.
type Counter struct{ Words []string }

// Begin lets it count.
func (c *Counter) Begin(cx *Cx, _ None) (None, error) {
	cx.Jump("Counting")
	return None{}, nil
}

// Word counts.
func (c *Counter) Word(_ *Cx, a Text) (None, error) {
	c.Words = append(c.Words, a.Text)
	return None{}, nil
}

// Close jumps to a state, if there is one.
func (c *Counter) Close(cx *Cx, a Text) (None, error) {
	c.Words = append(c.Words, "close")
	cx.Jump(a.Text)
	if a.Text == "" {
		cx.Jump("Done")
		panic("in the middle")
	}
	return None{}, nil
}

// Look shows all of it.
func (c Counter) Look(cx *Cx, _ None) (string, error) {
	return fmt.Sprint(cx.MachineState(), c.Words), nil
}

func TestAStateMachineDefersIgnoresAndJumps(t *testing.T) {
	way, _ := node(t, "--journal", "memory:")
	counter := Kind[Counter](Reliable(), Starts("Init"), On((*Counter).Begin, In{Run: []string{"Init"}}), On((*Counter).Close, In{Run: []string{"Counting"}}),
		On((*Counter).Word, In{Run: []string{"Counting"}, Defer: []string{"Init"}, Ignore: []string{"Done"}}))
	first := started(t, way, counter)
	c := within(t, first)
	of := Of[Counter](c, "c")
	early := make(chan error, 1)
	go func() {
		_, err := Call(c, of, (*Counter).Word, Text{"early"})
		early <- err
	}()
	time.Sleep(100 * time.Millisecond)
	seen, err := Call(c, of, (*Counter).Look, None{})
	is(t, seen, err, "Init[]")
	if len(early) > 0 {
		t.Fatal("a deferred call is answered")
	}
	if _, err := Call(c, of, (*Counter).Begin, None{}); err != nil {
		t.Fatal(err)
	}
	// What had waited has run by now, and is answered.
	if err := <-early; err != nil {
		t.Fatal(err)
	}
	refused := func(words string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Fatalf("%v; expected %s", err, words)
		}
	}
	_, err = Call(c, of, (*Counter).Begin, None{})
	refused(`does not know "begin" in the state "Counting"`, err)
	// A turn that fails has not jumped.
	_, err = Call(c, of, (*Counter).Close, Text{"Nowhere"})
	refused(`no state "Nowhere"`, err)
	_, err = Call(c, of, (*Counter).Close, Text{})
	refused("in the middle", err)
	seen, err = Call(c, of, (*Counter).Look, None{})
	is(t, seen, err, "Counting[early]")
	first.Close()
	// The state is there again at the next host.
	c = within(t, started(t, way, counter))
	seen, err = Call(c, of, (*Counter).Look, None{})
	is(t, seen, err, "Counting[early]")
	_, err = Call(c, of, (*Counter).Close, Text{"Done"})
	is(t, None{}, err, None{})
	_, err = Call(c, of, (*Counter).Word, Text{"never"})
	refused(`ignores "word" in the state "Done"`, err)
	seen, err = Call(c, of, (*Counter).Look, None{})
	is(t, seen, err, "Done[early close]")
}

func TestAKindThatIsNoStateMachineIsRefusedWithTheRemedy(t *testing.T) {
	for words, kind := range map[string]KindOf{
		"say both":       Kind[Counter](Starts("Init")),
		"no method":      Kind[Counter](Reliable(), Starts("Init"), On((*Pouch).Pay, In{Run: []string{"Init"}})),
		"is named twice": Kind[Counter](Reliable(), Starts("Init"), On((*Counter).Word, In{Run: []string{"Init"}, Defer: []string{"Init"}})),
	} {
		if kind.err == nil || !strings.Contains(kind.err.Error(), words) {
			t.Fatalf("%v; expected %s", kind.err, words)
		}
	}
}

func TestStateIsSavedBeforeTheCallerIsAnswered(t *testing.T) {
	way, _ := node(t)
	h := started(t, way, Kind[GoPurse](SavedOnTurn()))
	c := within(t, h)
	found, err := Call(c, Of[GoPurse](c, "ada"), (*GoPurse).Deposit, Amount{5})
	is(t, found, err, 5)
	if _, err = Call(c, Of[GoPurse](c, "ada"), (*GoPurse).BreakOff, None{}); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	h.Close()
	c = within(t, started(t, way, Kind[GoPurse](SavedOnTurn())))
	found, err = Call(c, Of[GoPurse](c, "ada"), (*GoPurse).Get, None{})
	is(t, found, err, 5)
}

func TestManyCallsAtOnceAreAnsweredEach(t *testing.T) {
	way, _ := node(t)
	c := within(t, started(t, way, Kind[Member]()))
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

func TestATimerTicks(t *testing.T) {
	way, _ := node(t)
	c := within(t, started(t, way, Kind[Hall](), Kind[Member]()))
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
	way, _ := node(t)
	c := within(t, started(t, way, Kind[Hall](), Kind[Member]()))
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
	if err := c.Remind(200*time.Millisecond, 0, "hear", News{"reminded"}); err != nil {
		return None{}, err
	}
	return None{}, c.Deactivate()
}

func (l Listener) All(_ *Cx, _ None) ([]string, error) { return l.heard, nil }

func TestAnActorHearsATopicAndItsReminders(t *testing.T) {
	way, _ := node(t)
	c := within(t, started(t, way, Kind[Listener]()))
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

func TestAHostThatDrainsFailsNoCall(t *testing.T) {
	way, _ := node(t)
	first, second := started(t, way, Kind[GoPurse](SavedOnTurn())), started(t, way, Kind[GoPurse](SavedOnTurn()))
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

func TestL6L10TheLeaseCountsFromWhenItWasAskedFor(t *testing.T) {
	now := int64(1_000_000_000)
	l := newLease(func() int64 { return now })
	l.begin(now, 5000)
	l.ask()
	now += 4_000_000_000
	l.granted(1, 5000)
	l.granted(1, 60_000)
	l.granted(7, 60_000)
	is(t, l.until.Load(), nil, 5_950_000_000)
	now = 5_949_999_999
	is(t, l.isOver(), nil, false)
	now++
	is(t, l.isOver(), nil, true)
	if boottime() <= 0 {
		t.Fatal("there is no clock")
	}
}

// TestGolden reads and writes the frames that all SDKs do alike.
func TestGolden(t *testing.T) {
	text, err := os.ReadFile("../golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Frames []struct {
			Name, Frame, From, Hex string
			Body                   map[string]any
		}
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, g := range golden.Frames {
		number := func(name string) uint64 { n, _ := g.Body[name].(float64); return uint64(n) }
		name := func(name string) string { s, _ := g.Body[name].(string); return s }
		rest := func() []byte { var b []byte; _, _ = fmt.Sscanf(name("payload"), "%x", &b); return b }
		var made batch
		switch {
		case g.From == "node" || g.Body["jump"] != nil:
			continue
		case g.Frame == "Alive":
			made = frame(tAlive, func(b *batch) { b.varint(number("number")) })
		case g.Frame == "Goodbye":
			made = goodbye(byte(number("code")), name("reason"))
		case g.Frame == "LaneDropped":
			made = frame(tLaneDropped, func(b *batch) { b.varint(number("shard")) })
		case g.Frame == "Define":
			made = frame(tDefine, func(b *batch) {
				b.varint(number("route")).text(name("kind")).text(name("method")).varint(number("version"))
			})
		case g.Frame == "Released":
			made = frame(tReleased, func(b *batch) { b.varint(number("seat")).u8(byte(number("status"))).bytes(rest()) })
		case g.Frame == "StreamItem":
			made = frame(tStreamItem, func(b *batch) { b.varint(number("stream")).varint(number("number")).bytes(rest()) })
		case g.Frame == "StreamEnd":
			made = frame(tStreamEnd, func(b *batch) {
				b.varint(number("stream")).varint(number("number")).u8(byte(number("status"))).bytes(rest())
			})
		default:
			continue
		}
		written++
		if fmt.Sprintf("%x", []byte(made)) != g.Hex {
			t.Errorf("%s: %x, not %s", g.Name, []byte(made), g.Hex)
		}
	}
	if written < 6 {
		t.Fatal("the golden frames are not there")
	}
	for _, bad := range [][]byte{{0x80, 0}, {0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}} {
		if r := (&reader{data: bad}); r.varint() != 0 || r.err == nil {
			t.Errorf("%x was read", bad)
		}
	}
}
