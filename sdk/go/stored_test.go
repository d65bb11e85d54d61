package greenroom_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	. "greenroom"
)

// Shelf is stored when it says so.
type Shelf struct {
	Books []string       `json:"books"`
	Marks map[string]int `json:"marks"`
	// seen is no state.
	seen int
}

type Book struct {
	Name string `json:"name"`
}

func (s *Shelf) Put(_ *Cx, b Book) (None, error) {
	s.Books, s.seen = append(s.Books, b.Name), s.seen+1
	if s.Marks == nil {
		s.Marks = map[string]int{}
	}
	s.Marks[b.Name]++
	return None{}, nil
}
func (s *Shelf) Save(cx *Cx, _ None) (None, error)   { return None{}, cx.Save() }
func (s *Shelf) Reload(cx *Cx, _ None) (None, error) { return None{}, cx.Reload() }
func (s *Shelf) Clear(cx *Cx, _ None) (None, error)  { return None{}, cx.Clear() }
func (s *Shelf) Drop(cx *Cx, _ None) (None, error)   { return None{}, cx.Deactivate() }
func (s Shelf) ClearInARead(cx *Cx, _ None) (None, error) {
	return None{}, cx.Clear()
}
func (s Shelf) Count(*Cx, None) ([3]int, error) {
	return [3]int{len(s.Books), len(s.Marks), s.seen}, nil
}

// at calls methods of a shelf that have no arguments, one after the other, and then counts.
func at(t *testing.T, c Caller, kind string, methods ...string) [3]int {
	t.Helper()
	for _, method := range methods {
		if _, err := CallNamed[any](c, kind, "s", method, nil); err != nil {
			t.Fatal(method, err)
		}
	}
	count, err := CallNamed[[3]int](c, kind, "s", "count", nil)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func put(t *testing.T, c Caller, kind, name string) {
	t.Helper()
	if _, err := CallNamed[any](c, kind, "s", "put", Book{name}); err != nil {
		t.Fatal(err)
	}
}

func TestAStateIsReadAgainFromTheStoreAndRemovedFromIt(t *testing.T) {
	c := within(t, node(t).Host(Kind[Shelf](Persistent())))
	put(t, c, "shelf", "a")
	at(t, c, "shelf", "save")
	put(t, c, "shelf", "b")
	// Fields that are no state stay, maps are not merged.
	is(t, at(t, c, "shelf", "reload"), nil, [3]int{1, 1, 2})
	is(t, at(t, c, "shelf", "clear"), nil, [3]int{0, 0, 2})
	// Nothing is stored: what the actor has stays.
	put(t, c, "shelf", "c")
	is(t, at(t, c, "shelf", "reload"), nil, [3]int{1, 1, 3})
	is(t, at(t, c, "shelf", "drop"), nil, [3]int{0, 0, 0})
}

func TestAStateIsRemovedInExclusiveTurnsOfKindsThatKeepOne(t *testing.T) {
	c := within(t, node(t).Host(Kind[Shelf](Persistent()), Kind[Shelf](Named("open"))))
	if _, err := CallNamed[any](c, "shelf", "s", "clear_in_a_read", nil); err == nil {
		t.Fatal("a read has removed it")
	}
	for _, method := range []string{"reload", "clear"} {
		if _, err := CallNamed[any](c, "open", "s", method, nil); !errors.Is(err, ErrUnknown) || !contains(err, "keeps nothing", "Persistent") {
			t.Fatal(err)
		}
	}
}

func TestAStateThatIsSavedAfterADelayIsSavedByThen(t *testing.T) {
	node := node(t)
	first := node.Host(Kind[Shelf](SavedAfter(10*time.Millisecond), Mailbox(64), Placement("random")))
	c := within(t, node.Host())
	put(t, c, "shelf", "a")
	is(t, at(t, c, "shelf", "drop"), nil, [3]int{1, 1, 0})
	first.Close()
}

// Fragile breaks off in the middle.
type Fragile struct{ steps int }

func (f *Fragile) Step(_ *Cx, b Book) (int, error) {
	f.steps++
	if b.Name == "breaks" {
		return 0, errors.New("in the middle")
	}
	return f.steps, nil
}

func TestAnErrorMakesAnInstanceAnewIfItsKindSaysSo(t *testing.T) {
	c := within(t, node(t).Host(Kind[Fragile](RestartOnError()), Kind[Fragile](Named("kept"))))
	for kind, expected := range map[string]int{"fragile": 1, "kept": 3} {
		for _, name := range []string{"", "breaks"} {
			_, _ = CallNamed[int](c, kind, "f", "step", Book{name})
		}
		steps, err := CallNamed[int](c, kind, "f", "step", Book{})
		is(t, steps, err, expected)
	}
}

func TestAKindOfAnotherStoreIsToldWhichThereAre(t *testing.T) {
	c := within(t, node(t).Host(Kind[Shelf](Persistent(), Store("none"))))
	if _, err := CallNamed[any](c, "shelf", "s", "put", Book{"a"}); err == nil || !contains(err, "none") {
		t.Fatal(err)
	}
}

// contains says whether an error's text has all of the parts.
func contains(err error, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(err.Error(), part) })
}
