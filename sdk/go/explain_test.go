package greenroom

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// circle may hold itself, in each way that there is.
type circle struct {
	Next  *circle        `json:"next"`
	Any   any            `json:"any"`
	List  []*circle      `json:"list"`
	Names map[string]any `json:"names"`
}

func circles() map[string]*circle {
	next, inside, list, names := &circle{}, &circle{}, &circle{}, &circle{Names: map[string]any{}}
	next.Next, inside.Any, list.List, names.Names["a"] = next, inside, []*circle{list, list}, names.Names
	return map[string]*circle{"next": next, "any": inside, "list": list, "names": names}
}

func TestWhatHoldsItselfIsRefusedByTheNameOfItsField(t *testing.T) {
	for field, value := range circles() {
		for _, codec := range []byte{codecPack, codecJSON} {
			_, err := payload(value, codec, 1)
			if err == nil {
				t.Fatal(field, "is written")
			}
			if lacks := lacking(cannotWrite("it", value, codec, err).Error(), `field "`+field+`" of it`, "64", "cycle"); lacks != nil {
				t.Error(lacks)
			}
		}
	}
	var itself any
	itself = &itself
	if _, err := payload(itself, codecPack, 1); err == nil {
		t.Fatal("a pointer to itself is written")
	}
}

// knot ties its state, or its reply, to itself.
type knot struct {
	Good int     `json:"good"`
	Rope *circle `json:"rope"`
}

func (k *knot) Tie(*Cx, None) (None, error)       { k.Rope = circles()["next"]; return None{}, nil }
func (k *knot) Give(*Cx, None) (*circle, error)   { return circles()["list"], nil }
func (k *knot) Fail(*Cx, None) (None, error)      { return None{}, Fail("Tied", circles()["any"]) }
func (k *knot) Pass(cx *Cx, _ None) (None, error) { return None{}, cx.Output("o", circles()["any"]) }
func (k *knot) Strange(*Cx, None) (any, error) {
	return struct {
		Fine int      `json:"fine"`
		Pipe chan int `json:"pipe"`
	}{}, nil
}

func TestWhatCannotBeWrittenEndsItsTurnAndNamesActorMethodAndField(t *testing.T) {
	for _, kind := range []KindOf{Kind[knot](SavedOnTurn()), Kind[knot](Reliable())} {
		p := hosting(t, kind)
		p.seat(1, nil)
		for _, each := range []struct {
			method string
			says   []string
		}{
			{"tie", []string{`field "rope" of the state of knot/lobby`, "Unsaved"}},
			{"give", []string{`field "list" of the reply of knot.give`, "Unreadable"}},
			{"fail", []string{`field "Tied" of the error of knot.fail`}},
			{"pass", []string{`field "any" of the output to o`}},
			{"strange", []string{`field "pipe" of the reply of knot.strange`, "chan int"}},
		} {
			p.turn(each.method, None{})
			status, value, _ := p.end()
			said, _ := json.Marshal(value)
			if lacks := lacking(strings.ReplaceAll(string(said), `\"`, `"`), each.says...); status == sOK || lacks != nil {
				t.Errorf("%s: %d, %s lacks %q", each.method, status, said, lacks)
			}
		}
	}
}

func TestArgumentsThatCannotBeWrittenAreNotSent(t *testing.T) {
	p := hosting(t, Kind[tally]())
	c := p.host.From(t.Context())
	_, named := CallNamed[int](c, "tally", "t", "add", map[string]any{"n": circles()["next"]})
	for _, err := range []error{named, Publish(c, "news/eu", circles()["any"])} {
		if err == nil || lacking(err.Error(), "64", "field") != nil {
			t.Fatal(err)
		}
	}
	if failure := (*Failure)(nil); !errors.Is(named, ErrRefused) || !errors.As(named, &failure) || failure.Reason != "Unsendable" || lacking(named.Error(), `field "n" of the arguments of tally.add`) != nil {
		t.Fatal(named)
	}
	p.isQuiet()
}

func TestArgumentsThatDoNotFitAreRefusedByTheNameOfTheField(t *testing.T) {
	p := hosting(t, Kind[tally]())
	p.seat(1, nil)
	for _, codec := range []byte{codecPack, codecJSON} {
		with, _ := payload(map[string]any{"n": "many", "m": 1}, codec, 1)
		p.say(tTurn, func(b *batch) { b.varint(uint64(codec)).varint(1).varint(0).u8(1).varint(0).varint(0).bytes(with) })
		status, value, _ := p.end()
		_, inside := only(value)
		_, detail := only(inside)
		about, _ := detail.(map[string]any)
		if message, _ := about["message"].(string); status != sInvalid || about["field"] != "n" || lacking(message, `field "n" of the arguments of tally.add`) != nil {
			t.Fatal(status, value)
		}
	}
}

func TestAReplyThatDoesNotFitIsUnreadableByTheNameOfTheField(t *testing.T) {
	p := hosting(t, Kind[tally]())
	ended := make(chan error, 1)
	go func() {
		c := p.host.From(t.Context())
		_, err := CallNamed[by](c, "tally", "t", "add", by{1})
		ended <- err
	}()
	p.reply(p.called(), map[string]any{"n": "many"})
	if err := next(t, ended); !errors.Is(err, ErrUnknown) || lacking(err.Error(), `field "n" of the reply of tally.add`) != nil {
		t.Fatal(err)
	}
}

func TestAStoredStateThatDoesNotFitIsRefusedByTheNameOfTheField(t *testing.T) {
	for _, kind := range []KindOf{Kind[tally](SavedOnTurn()), Kind[tally](Reliable())} {
		p := hosting(t, kind)
		whole, _ := payload(map[string]any{"count": "many"}, codecPack, 1)
		field, _ := payload("many", codecPack, 1)
		p.say(tActivate, func(b *batch) {
			b.varint(1).varint(0).varint(1).u8(0).text("lobby").fields([]part{{name: "count", payload: field}, {name: stateName, payload: whole}})
		})
		activated := p.hear(tActivated)
		if lacks := lacking(string(activated.data), `field "count" of the stored state of tally/lobby`); lacks != nil {
			t.Fatalf("%q", activated.data)
		}
	}
}
