package greenroom_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "greenroom"
)

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

func TestAReliableTurnIsOneCommitWithWhatItSends(t *testing.T) {
	node := node(t, "--journal", "memory:")
	first := node.Host(Kind[Pouch](Reliable()))
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
	c = within(t, node.Host(Kind[Pouch](Reliable())))
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
	node := node(t, "--journal", "memory:")
	counter := Kind[Counter](Reliable(), Starts("Init"), On((*Counter).Begin, In{Run: []string{"Init"}}), On((*Counter).Close, In{Run: []string{"Counting"}}),
		On((*Counter).Word, In{Run: []string{"Counting"}, Defer: []string{"Init"}, Ignore: []string{"Done"}}))
	first := node.Host(counter)
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
	c = within(t, node.Host(counter))
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
		if _, err := Start(t.Context(), "", kind); err == nil || !strings.Contains(err.Error(), words) {
			t.Fatalf("%v; expected %s", err, words)
		}
	}
}
