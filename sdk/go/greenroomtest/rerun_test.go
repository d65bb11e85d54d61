package greenroomtest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"greenroom"
)

// Urn has what was drawn.
type Urn struct {
	Drawn []float64 `json:"drawn"`
}

// Choose draws what a second run of the turn draws as well.
func (u *Urn) Choose(cx *greenroom.Cx, _ greenroom.None) (int, error) {
	drawn, err := greenroom.Choose(cx, rand.Float64)
	u.Drawn = append(u.Drawn, drawn)
	return len(u.Drawn), err
}

// Some chooses what may be whatever there is.
func (u *Urn) Some(cx *greenroom.Cx, _ greenroom.None) (int, error) {
	chosen, err := greenroom.Choose(cx, func() any { return rand.Float64() })
	drawn, _ := chosen.(float64)
	u.Drawn = append(u.Drawn, drawn)
	return len(u.Drawn), err
}

// Draw draws another one in each run.
func (u *Urn) Draw(*greenroom.Cx, greenroom.None) (greenroom.None, error) {
	u.Drawn = append(u.Drawn, rand.Float64())
	return greenroom.None{}, nil
}

// Later chooses when the turn is committed.
func (u *Urn) Later(cx *greenroom.Cx, _ greenroom.None) (greenroom.None, error) {
	_, err := cx.After(10*time.Millisecond, "choose", greenroom.None{})
	return greenroom.None{}, err
}

// Ask takes what another one has.
func (u *Urn) Ask(cx *greenroom.Cx, a Post) (greenroom.None, error) {
	drawn, err := greenroom.Call(cx, greenroom.Of[Urn](cx, a.User), (*Urn).Look, greenroom.None{})
	u.Drawn = append(u.Drawn, drawn...)
	return greenroom.None{}, err
}

// Look is a read.
func (u Urn) Look(*greenroom.Cx, greenroom.None) ([]float64, error) { return u.Drawn, nil }

func TestAReliableTurnThatWouldBeAnotherOneAfterAFailoverIsFound(t *testing.T) {
	node := started(t, "--journal", "memory:", "--rerun")
	c := node.Host(greenroom.Kind[Urn](greenroom.Reliable())).From(t.Context())
	calls := func(key string, method func(*Urn, *greenroom.Cx, greenroom.None) (int, error), expected int) {
		t.Helper()
		if count, err := greenroom.Call(c, greenroom.Of[Urn](c, key), method, greenroom.None{}); err != nil || count != expected {
			t.Fatalf("%d, %v; expected %d", count, err, expected)
		}
	}
	calls("one", (*Urn).Choose, 1)
	calls("one", (*Urn).Choose, 2)
	calls("other", (*Urn).Choose, 1)
	calls("some", (*Urn).Some, 1)
	if _, err := greenroom.Call(c, greenroom.Of[Urn](c, "one"), (*Urn).Later, greenroom.None{}); err != nil {
		t.Fatal(err)
	}
	if _, err := greenroom.Call(c, greenroom.Of[Urn](c, "one"), (*Urn).Ask, Post{User: "other"}); err != nil {
		t.Fatal(err)
	}
	holds := func(key string, count int) error {
		drawn, err := greenroom.Call(c, greenroom.Of[Urn](c, key), (*Urn).Look, greenroom.None{})
		if err == nil && len(drawn) != count {
			err = fmt.Errorf("%s has %v", key, drawn)
		}
		return err
	}
	until(t, func() error { return holds("one", 4) })
	_, err := greenroom.Call(c, greenroom.Of[Urn](c, "other"), (*Urn).Draw, greenroom.None{})
	if err == nil || !strings.Contains(err.Error(), "field `drawn` differs") || !strings.Contains(err.Error(), "cx.choose") {
		t.Fatal(err)
	}
	if err := holds("other", 1); err != nil {
		t.Fatal(err)
	}
}
