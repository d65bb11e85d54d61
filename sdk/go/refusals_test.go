package greenroom

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"
)

type taking[A any] struct{}

func (k *taking[A]) Take(*Cx, A) (None, error) { return None{}, nil }

type twice struct{}

func (k *twice) HTTPGet(*Cx, None) (None, error) { return None{}, nil }
func (k *twice) HttpGet(*Cx, None) (None, error) { return None{}, nil }

// refusedAtStart is why a kind is refused before anything is dialled.
func refusedAtStart(t *testing.T, kinds ...KindOf) string {
	t.Helper()
	c, end := context.WithCancel(context.Background())
	end()
	_, err := Start(c, "unix:"+t.TempDir()+"/none.sock", kinds...)
	if err == nil || errors.Is(err, ErrNoNode) || errors.Is(err, ErrNotLetIn) {
		t.Fatalf("it is not refused at start: %v", err)
	}
	return err.Error()
}

func TestArgumentsThatHaveNoNamesAreRefusedAtStart(t *testing.T) {
	kinds := map[string]KindOf{
		"int": Kind[taking[int]](Named("room")), "string": Kind[taking[string]](Named("room")), "[]string": Kind[taking[[]string]](Named("room")),
		"time.Time": Kind[taking[time.Time]](Named("room")), "map[int]string": Kind[taking[map[int]string]](Named("room")),
		"*int": Kind[taking[*int]](Named("room")),
	}
	for of, kind := range kinds {
		if lacks := lacking(refusedAtStart(t, kind), `"room"`, "Take", " "+of+",", "take a struct"); lacks != nil {
			t.Error(of, lacks, kind.err)
		}
	}
	for _, kind := range []KindOf{
		Kind[taking[by]](Named("a")), Kind[taking[*by]](Named("a")), Kind[taking[map[string]int]](Named("a")), Kind[taking[any]](Named("a")), Kind[taking[None]](Named("a")),
	} {
		if kind.err != nil {
			t.Error(kind.err)
		}
	}
}

func TestTwoMethodsOfOneNameAreRefusedAtStart(t *testing.T) {
	if lacks := lacking(refusedAtStart(t, Kind[twice]()), `"twice"`, "HTTPGet", "HttpGet", "http_get", "another name"); lacks != nil {
		t.Fatal(lacks)
	}
}

func TestTwoKindsOfOneNameAreRefusedAtStart(t *testing.T) {
	if lacks := lacking(refusedAtStart(t, Kind[tally](), Kind[asker](Named("tally"))), "tally", "asker", "Named"); lacks != nil {
		t.Fatal(lacks)
	}
}

func TestADescriptionOverTheBoundIsRefusedBeforeAnythingIsDialled(t *testing.T) {
	name := reflect.StructTag(`json:"` + strings.Repeat("n", descriptionMax) + `"`)
	wide := reflect.StructOf([]reflect.StructField{{Name: "N", Type: reflect.TypeFor[int](), Tag: name}})
	k := Kind[tally](Named("wide"))
	k.methods[0].run = reflect.MakeFunc(reflect.FuncOf([]reflect.Type{k.of, reflect.TypeFor[*Cx](), wide}, []reflect.Type{wide, reflect.TypeFor[error]()}, false), nil)
	k.describe()
	said := refusedAtStart(t, k)
	if lacks := lacking(said, `"wide"`, fmt.Sprint(len(k.description)), "262144", "smaller types"); lacks != nil {
		t.Fatal(lacks, said)
	}
}

func TestOptionsAreWrittenAsInOtherLanguages(t *testing.T) {
	k := Kind[tally](SavedAfter(5*time.Second), Mailbox(100), Placement("local"), Store("cheap"), RestartOnError())
	expected := `"options":{"mailbox":100,"on_error":"restart","persistent":true,"placement":"local","save":{"after_ms":5000},"store":"cheap"}`
	if k.err != nil || !strings.Contains(string(k.description), expected) {
		t.Fatalf("%v, %s", k.err, k.description)
	}
	for _, fault := range []KindOf{Kind[tally](Reliable(), Placement("local")), Kind[tally](Reliable(), RestartOnError()), Kind[tally](Store("cheap"))} {
		if fault.err == nil {
			t.Errorf("%s is taken", fault.description)
		}
	}
}

func TestACallWhoseContextHasEndedSaysHow(t *testing.T) {
	own := errors.New("of its own")
	ends := map[string]struct {
		context func() (context.Context, func())
		is      []error
	}{
		"its deadline": {func() (context.Context, func()) { return context.WithTimeout(t.Context(), time.Millisecond) }, []error{context.DeadlineExceeded}},
		"cancelled":    {func() (context.Context, func()) { return context.WithCancel(t.Context()) }, []error{context.Canceled}},
		"a cause": {func() (context.Context, func()) {
			c, end := context.WithCancelCause(t.Context())
			return c, func() { end(own) }
		}, []error{context.Canceled, own}},
	}
	for what, each := range ends {
		t.Run(what, func(t *testing.T) {
			p := hosting(t, Kind[tally]())
			c, end := each.context()
			defer end()
			ended := make(chan error, 1)
			go func() {
				_, err := CallNamed[int](p.host.From(c), "tally", "t", "add", by{1})
				ended <- err
			}()
			p.called()
			if what != "its deadline" {
				end()
			}
			err := next(t, ended)
			for _, is := range append(each.is, ErrUnknown) {
				if !errors.Is(err, is) || errors.Is(err, ErrRefused) {
					t.Errorf("%v is not %v", err, is)
				}
			}
			if failure := (*Failure)(nil); !errors.As(err, &failure) || failure.Reason != "TimedOut" {
				t.Error(err)
			}
		})
	}
}

func TestATimeOutThatTheNodeHasSeenFirstIsADeadlineExceeded(t *testing.T) {
	for status, said := range map[byte]any{sUnknown: map[string]any{"Unknown": "TimedOut"}, sExpired: map[string]any{"Refused": "Expired"}} {
		written, _ := payload(said, codecPack, 1)
		if err := decode(status, written); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	written, _ := payload(map[string]any{"Unknown": "HostLost"}, codecPack, 1)
	if err := decode(sUnknown, written); errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestACallThatGetsNoRoomBeforeItsContextEndsWasNotMade(t *testing.T) {
	p := hosting(t, Kind[tally](), func(p *peer) { p.window = 1 })
	first := p.host.From(t.Context())
	if err := Send(first, Of[tally](first, "t"), (*tally).Add, by{1}); err != nil {
		t.Fatal(err)
	}
	c, end := context.WithCancel(t.Context())
	end()
	second := p.host.From(c)
	if err := Send(second, Of[tally](second, "t"), (*tally).Add, by{1}); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
}

// relay streams what it gets from a call that is cancelled.
type relay struct{}

func (r relay) Items(*Cx, None) (iter.Seq2[int, error], error) {
	return func(yield func(int, error) bool) {
		c, end := context.WithCancel(context.Background())
		end()
		yield(0, gaveUp(c, ErrUnknown, "TimedOut"))
	}, nil
}

func TestAStreamWhoseOwnCallIsCancelledEndsWithAnError(t *testing.T) {
	p := hosting(t, Kind[relay]())
	p.seat(1, nil)
	p.turn("items", None{})
	_, stream, _ := p.end()
	p.say(tStreamCredit, func(b *batch) { b.varint(stream.(uint64)).varint(1).varint(0) })
	ended := p.hear(tStreamEnd)
	ended.varint()
	ended.varint()
	if status := ended.u8(); status == sOK {
		t.Fatal("it ends as if it were whole")
	}
}
