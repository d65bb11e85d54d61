package greenroom

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"
	"unsafe"
)

type giving[R any] struct{}

func (k *giving[R]) Give(*Cx, None) (r R, err error) { return r, nil }

// streaming gives what is taken for a stream if it is one.
type streaming[R any] struct{}

func (k *streaming[R]) Give(*Cx, None) (iter.Seq2[R, error], error) { return nil, nil }

type keeping[F any] struct {
	Kept F `json:"kept"`
}

func (k *keeping[F]) Look(*Cx, None) (None, error) { return None{}, nil }

// around has a member of a type.
type around[F any] struct {
	Fine int `json:"fine"`
	In   F   `json:"in"`
}

type pointless *pointless

type embedding struct {
	*embedding
	N int
}

type mutual struct{ *other }
type other struct {
	*mutual
	N int
}

type buried struct{ N int }
type embedsBuried struct{ *buried }
type Open struct{ N int }
type embedsOpen struct{ *Open }

func (k *embedsOpen) Look(*Cx, None) (None, error) { return None{}, nil }

type bare int

func (k *bare) Look(*Cx, None) (None, error) { return None{}, nil }

func TestWhatCannotTravelIsRefusedAtStart(t *testing.T) {
	for _, each := range []struct {
		kind KindOf
		says []string
	}{
		{Kind[giving[func()]](Named("room")), []string{"Give", "answers with a func()", "iter.Seq2[R, error]"}},
		{Kind[giving[func(int) bool]](Named("room")), []string{"Give", "answers with a func(int) bool", "iter.Seq2[R, error]"}},
		{Kind[giving[func(func(int))]](Named("room")), []string{"Give", "iter.Seq2[R, error]"}},
		{Kind[giving[iter.Seq[int]]](Named("room")), []string{"Give", "answers with a iter.Seq[int]", "iter.Seq2[R, error]"}},
		{Kind[giving[iter.Seq2[int, string]]](Named("room")), []string{"Give", "iter.Seq2[R, error]"}},
		{Kind[giving[chan int]](Named("room")), []string{"the reply of", "Give is of type chan int", "another type"}},
		{Kind[giving[[]map[string]complex128]](Named("room")), []string{"Give is of type complex128"}},
		{Kind[giving[around[[]func()]]](Named("room")), []string{`field "in" of the reply of`, "Give is of type func()", `json:"-"`}},
		{Kind[giving[around[around[uintptr]]]](Named("room")), []string{`field "in" of the reply of`, "uintptr"}},
		{Kind[giving[unsafe.Pointer]](Named("room")), []string{"unsafe.Pointer"}},
		{Kind[giving[pointless]](Named("room")), []string{"points to itself", "struct"}},
		{Kind[giving[embedding]](Named("room")), []string{"embeds its own type greenroom.embedding", "a name"}},
		{Kind[giving[*mutual]](Named("room")), []string{"embeds its own type greenroom.mutual"}},
		{Kind[giving[around[map[float64]int]]](Named("room")), []string{`field "in"`, "keys of type float64", "texts"}},
		{Kind[streaming[chan int]](Named("room")), []string{"an item of the stream of", "Give is of type chan int"}},
		{Kind[taking[around[chan int]]](Named("room")), []string{`field "in" of the arguments of`, "Take is of type chan int"}},
		{Kind[taking[around[fmt.Stringer]]](Named("room")), []string{`field "in" of the arguments of`, "interface fmt.Stringer", "any"}},
		{Kind[taking[around[map[any]int]]](Named("room")), []string{`field "in" of the arguments of`, "keys of type interface {}"}},
		{Kind[taking[pointless]](Named("room")), []string{"the arguments of", "points to itself"}},
		{Kind[taking[embedding]](Named("room")), []string{"the arguments of", "embeds its own type"}},
		{Kind[taking[embedsBuried]](Named("room")), []string{`field "buried" of the arguments of`, "embed the struct itself"}},
		{Kind[keeping[chan int]](Named("room"), Persistent()), []string{`field "kept" of the state of`, "chan int"}},
		{Kind[keeping[func()]](Named("room"), Reliable()), []string{`field "kept" of the state of`, "func()"}},
		{Kind[keeping[embedding]](Named("room"), Travels()), []string{`field "kept" of the state of`, "embeds"}},
		{Kind[embedsOpen](Named("room"), Reliable()), []string{`field "N" of greenroom.embedsOpen`, "embed the struct itself"}},
		{Kind[bare](Named("room"), Reliable()), []string{"greenroom.bare is no struct", "let a struct hold it"}},
	} {
		if lacks := lacking(refusedAtStart(t, each.kind), append(each.says, `kind "room"`)...); lacks != nil {
			t.Errorf("%v lacks %q", each.kind.err, lacks)
		}
	}
}

func TestKindsThatAreNoneAreRefusedAtStart(t *testing.T) {
	for _, each := range []struct {
		kind KindOf
		says []string
	}{
		{Kind[*tally](Named("room")), []string{"Kind[*greenroom.tally] names a ptr", "without a *"}},
		{Kind[fmt.Stringer](Named("room")), []string{"names a interface", "that has the fields"}},
		{Kind[tally](Named("room"), Reliable(), Starts("Off"), On(42, In{})), []string{"has no method 42, of which On says something"}},
		{Kind[tally](Named("room"), Reliable(), Starts("Off"), On(nil, In{})), []string{"of which On says something"}},
		{KindOf{}, []string{"greenroom.Kind make it"}},
		{Kind[giving[int]](), []string{`kind "giving[int]"`, "greenroom.Named"}},
	} {
		if lacks := lacking(refusedAtStart(t, each.kind), each.says...); lacks != nil {
			t.Errorf("%v lacks %q", each.kind.err, lacks)
		}
	}
}

func TestWhatEncodersWouldLookIntoForEverIsNotWritten(t *testing.T) {
	for _, value := range []any{embedding{}, &mutual{}, pointless(nil), around[pointless]{}, around[any]{In: embedding{}}, []any{mutual{}}} {
		for _, codec := range []byte{codecPack, codecJSON} {
			if _, err := payload(value, codec, 1); err == nil || lacking(err.Error(), "hold itself") != nil {
				t.Errorf("%T is written in codec %d: %v", value, codec, err)
			}
		}
	}
}

func TestWhatCanTravelIsTaken(t *testing.T) {
	for _, kind := range []KindOf{
		Kind[giving[iter.Seq2[int, error]]](Named("a")), Kind[giving[func(func(string, error) bool)]](Named("a")), Kind[giving[error]](Named("a")),
		Kind[giving[fmt.Stringer]](Named("a")), Kind[giving[map[time.Time]int]](Named("a")), Kind[giving[map[int]int]](Named("a")), Kind[giving[***by]](Named("a")),
		Kind[taking[around[map[string]any]]](Named("a")), Kind[taking[circle]](Named("a")), Kind[taking[embedsOpen]](Named("a")), Kind[keeping[chan int]](Named("a")),
		Kind[keeping[map[float64]int]](Named("a"), SavedOnTurn()), Kind[keeping[error]](Named("a"), SavedOnTurn()), Kind[embedsOpen](Named("a"), SavedOnTurn()),
		Kind[bare](Named("a"), Persistent()),
	} {
		if kind.err != nil {
			t.Error(kind.err)
		}
	}
}

// boughs and twigs lead back to themselves, the latter by a struct that has no name.
type boughs []boughs
type twigs map[string][]struct {
	Twigs twigs `json:"twigs"`
}

func TestATypeThatHoldsItselfIsDescribedByItsName(t *testing.T) {
	for expected, kind := range map[string]*KindOf{
		`"reply":{"$ref":"#/$defs/lists"}`:                                                                                                                      new(Kind[giving[lists]](Named("a"))),
		`"reply":{"items":{"$ref":"#/$defs/boughs"},"type":"array"}`:                                                                                            new(Kind[giving[[]boughs]](Named("a"))),
		`"$defs":{"mapped":{"additionalProperties":{"$ref":"#/$defs/mapped"},"type":"object"}}`:                                                                 new(Kind[giving[mapped]](Named("a"))),
		`"arguments":{"additionalProperties":{"$ref":"#/$defs/mapped"},"type":"object"}`:                                                                        new(Kind[taking[mapped]](Named("a"))),
		`"$defs":{"twigs":{"additionalProperties":{"items":{"properties":{"twigs":{"$ref":"#/$defs/twigs"}},"type":"object"},"type":"array"},"type":"object"}}`: new(Kind[giving[twigs]](Named("a"))),
		`"$defs":{}`:                    new(Kind[keeping[lists]](Named("a"), SavedOnTurn())),
		`"in":{"$ref":"#/$defs/lists"}`: new(Kind[giving[around[lists]]](Named("a"))),
	} {
		if kind.err != nil || !strings.Contains(string(kind.description), expected) {
			t.Errorf("%v: %s lacks %s", kind.err, kind.description, expected)
		}
	}
}

func TestTypesOfOneNameHaveDefinitionsOfTheirOwn(t *testing.T) {
	type by struct{ Other string }
	type both struct {
		One any
		A   giver
		B   by
	}
	k := Kind[giving[both]](Named("a"))
	var said struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(k.description, &said); err != nil || k.err != nil {
		t.Fatal(err, k.err)
	}
	if said.Defs["by"].Properties["n"] == nil || said.Defs["by_2"].Properties["Other"] == nil {
		t.Fatalf("%s", k.description)
	}
	long := Kind[giving[giving[struct {
		AMemberWithALongName, AndAnotherOneWithALongName, AndOneMoreOfThem, AndStillOneMoreOfThem, AndOneThatIsTheLast int
	}]]]()
	_ = json.Unmarshal(long.description, &said)
	for name := range said.Defs {
		if len(name) > 128 || strings.ContainsAny(name, " {;}[]*/") {
			t.Error(name)
		}
	}
}

// giver has the package's by.
type giver struct{ By by }

// pointing takes pointers.
type pointing struct{}

func (k *pointing) Take(_ *Cx, a **by) (int, error) { return (*a).N, nil }

func TestPointersToNoArgumentsAreNoArguments(t *testing.T) {
	p := hosting(t, Kind[pointing]())
	p.seat(1, nil)
	for number, with := range []string{"\x01\x01\xc0", "\x01\x01\x80", "\x02\x01null", "\x02\x01{}"} {
		p.say(tTurn, func(b *batch) {
			b.varint(uint64(number + 1)).varint(1).varint(0).u8(1).varint(0).varint(0).bytes([]byte(with))
		})
		if status, value, _ := p.end(); status != sOK || value != int64(0) {
			t.Errorf("%q: %d, %v", with, status, value)
		}
	}
	for _, with := range []any{nil, (*by)(nil), new((*by)(nil)), None{}, &None{}, (*None)(nil)} {
		if written, err := arguments(with); err != nil || string(written) != "\x01\x01\x80" {
			t.Errorf("%T is written as %q, %v", with, written, err)
		}
	}
}
