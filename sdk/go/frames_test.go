package greenroom

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestL6L10TheLeaseCountsFromWhenItWasAskedFor(t *testing.T) {
	now := int64(1_000_000_000)
	l := newLease(func() int64 { return now })
	l.begin(now, 5000)
	l.ask()
	now += 4_000_000_000
	l.granted(1, 5000)
	l.granted(1, 60_000)
	l.granted(7, 60_000)
	if until := l.until.Load(); until != 5_950_000_000 {
		t.Fatal(until)
	}
	now = 5_949_999_999
	if l.isOver() {
		t.Fatal("it is over too early")
	}
	now++
	if !l.isOver() {
		t.Fatal("it is not over")
	}
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
	laden := Idempotent(With(&Cx{}, "k", "v"), "17")
	if made, err := carried(laden); fmt.Sprintf("%x", []byte(made)) != "0104016b01760e023137" || err != nil {
		t.Errorf("a call carries %x: %v", []byte(made), err)
	}
	inHook, _ := carried(With(&Cx{}, "k", "v"))
	if made := withSeat(inHook, &seat{number: 300}, nil); fmt.Sprintf("%x", []byte(made)) != "0104016b01760f02ac02" {
		t.Errorf("a call of a hook carries %x", []byte(made))
	}
	if _, err := carried(With(laden, "k", strings.Repeat("v", carriedMax))); !errors.Is(err, ErrRefused) {
		t.Errorf("a call carries too much: %v", err)
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
