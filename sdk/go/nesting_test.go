package greenroom

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// lists may be nested to any depth.
type lists []lists

// mapped may be nested to any depth.
type mapped map[string]mapped

// nested has so many levels around what is innermost, which has none of its own.
func nested(levels int, innermost any) any {
	for range levels {
		innermost = []any{innermost}
	}
	return innermost
}

// bytesOf are those of lists, or of maps, that are nested so deep, in a payload of a codec.
func bytesOf(codec byte, levels int, areMaps bool) []byte {
	begin, innermost, end := "\x91", "\x01", ""
	switch {
	case codec == codecPack && areMaps:
		begin = "\x81\xa1a"
	case codec == codecJSON && areMaps:
		begin, innermost, end = `{"a":`, "1", "}"
	case codec == codecJSON:
		begin, innermost, end = "[", "1", "]"
	}
	return []byte(string([]byte{codec, 1}) + strings.Repeat(begin, levels) + innermost + strings.Repeat(end, levels))
}

func TestWhatIsNestedToTheBoundIsWritten(t *testing.T) {
	for what, each := range map[string]struct {
		innermost any
		levels    int
	}{
		"a number": {1, 0}, "nothing": {nil, 0}, "no list": {[]int(nil), 1}, "an empty list": {[]any{}, 1}, "an empty map": {map[string]int{}, 1}, "bytes": {[]byte("b"), 0},
		"lists": {[][]int{{1}}, 2}, "a struct": {by{1}, 1}, "a struct in a struct": {struct{ By by }{}, 2}, "a struct of its own fields": {struct{ by }{}, 1},
		"a time": {time.Time{}, 0}, "no struct": {(*by)(nil), 0}, "maps": {mapped{"a": mapped{"b": mapped{}}}, 3},
	} {
		for _, codec := range []byte{codecPack, codecJSON} {
			whole, err := payload(nested(levelsMax-each.levels, each.innermost), codec, 1)
			if err != nil || checkPayload(whole[2:], codec) != nil {
				t.Error(what, codec, err)
			}
			_, err = payload(nested(levelsMax+1-each.levels, each.innermost), codec, 1)
			if deep := (*nestingError)(nil); !errors.As(err, &deep) || lacking(err.Error(), "64", "flatter") != nil {
				t.Errorf("%s is written in codec %d: %v", what, codec, err)
			}
		}
	}
}

// raw writes itself.
type raw struct{ codec byte }

func (r raw) EncodeMsgpack(to *msgpack.Encoder) error {
	return to.Encode(msgpack.RawMessage(bytesOf(codecPack, levelsMax, false)[2:]))
}
func (r raw) MarshalJSON() ([]byte, error) { return bytesOf(codecJSON, levelsMax, false)[2:], nil }

func TestWhatWritesItselfIsBoundedToo(t *testing.T) {
	for _, codec := range []byte{codecPack, codecJSON} {
		if _, err := payload(raw{}, codec, 1); err != nil {
			t.Error(err)
		}
		for _, value := range []any{struct{ Raw raw }{}, []raw{{}}, map[string]any{"raw": raw{}}, nested(1, raw{})} {
			if _, err := payload(value, codec, 1); err == nil || lacking(err.Error(), "64", "that nodes read") != nil {
				t.Errorf("%T is written in codec %d: %v", value, codec, err)
			}
		}
	}
	for _, fault := range []msgpack.RawMessage{{0xdd, 0xff, 0xff, 0xff, 0xff}, {0xd4, 1, 1}, {0xa5, 'a'}} {
		if _, err := payload(map[string]any{"raw": fault}, codecPack, 1); err == nil {
			t.Errorf("%q is written", fault)
		}
	}
}

func TestWhatIsNestedToTheBoundIsRead(t *testing.T) {
	for _, codec := range []byte{codecPack, codecJSON} {
		for _, areMaps := range []bool{false, true} {
			var all any
			if err := read(bytesOf(codec, levelsMax, areMaps), &all); err != nil {
				t.Error(err)
			}
			// Beyond some hundred thousand levels decoders that go as deep would end the program.
			for _, levels := range []int{levelsMax + 1, 200, frameMax - 16} {
				if areMaps {
					levels = min(levels, frameMax/8)
				}
				given := bytesOf(codec, levels, areMaps)
				for _, into := range []any{&all, &lists{}, &mapped{}, &by{}, &None{}, &[]any{}, &map[string]any{}, &msgpack.RawMessage{}, &json.RawMessage{}, &struct{ A any }{}} {
					err := read(given, into)
					if _, isNone := into.(*None); isNone {
						continue
					}
					if deep := (*nestingError)(nil); !errors.As(err, &deep) || lacking(err.Error(), "64", "flatter") != nil {
						t.Fatalf("%d levels are read into %T in codec %d: %v", levels, into, codec, err)
					}
					if said := cannotRead("it", given, into, err).Error(); areMaps && lacking(said, `field "a" of it`) != nil {
						t.Fatal(said)
					}
				}
			}
		}
	}
}

func TestArgumentsAndRepliesThatAreNestedTooDeepAreSaidToBe(t *testing.T) {
	p := hosting(t, Kind[tally]())
	p.seat(1, nil)
	for _, codec := range []byte{codecPack, codecJSON} {
		// It is in a member that nobody reads.
		p.say(tTurn, func(b *batch) {
			b.varint(uint64(codec)).varint(1).varint(0).u8(1).varint(0).varint(0).bytes(bytesOf(codec, frameMax/16, true))
		})
		status, value, _ := p.end()
		said, _ := json.Marshal(value)
		if status != sInvalid || lacking(string(said), `"field":"a"`, "of the arguments of tally.add", "64 levels") != nil {
			t.Fatal(status, string(said))
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := CallNamed[any](p.host.From(t.Context()), "tally", "t", "add", by{1})
		ended <- err
	}()
	request := p.called()
	p.say(tReply, func(b *batch) { b.varint(request).u8(sOK).bytes(bytesOf(codecPack, frameMax/16, false)) })
	if err := next(t, ended); !errors.Is(err, ErrUnknown) || lacking(err.Error(), "the reply of tally.add", "64 levels") != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := CallNamed[any](p.host.From(t.Context()), "tally", "t", "add", by{1})
		ended <- err
	}()
	request = p.called()
	p.say(tReply, func(b *batch) { b.varint(request).u8(sRefused).bytes(bytesOf(codecJSON, frameMax/16, false)) })
	if err := next(t, ended); !errors.Is(err, ErrUnknown) || lacking(err.Error(), "64 levels") != nil {
		t.Fatal(err)
	}
}

func TestWhatPromisesMoreThanIsThereIsRefusedBeforeThereIsRoomForIt(t *testing.T) {
	type wide struct{ Columns [64]int }
	for what, given := range map[string]string{
		"a list": "\xdd\xff\xff\xff\xff\x01", "a map": "\xdf\xff\xff\xff\xff\xa1a\x01", "a text": "\xdb\xff\xff\xff\xffa", "bytes": "\xc6\xff\xff\xff\xffa",
		"a list in a map": "\x81\xa1a\xdd\xff\xff\xff\xff\x01", "a map in an extension": "\xc7\x05\x01\xdf\xff\xff\xff\xff", "an extension": "\xd4\x01\x01",
		"a map behind an extension": "\xc7\x00\x01\xdf\xff\xff\xff\xff", "half a head": "\xdd\xff", "a map without its last value": "\x82\xa1a\x01\xa1b", "nothing": "",
	} {
		for _, into := range []any{
			new(any), &[]wide{}, &[]any{}, &[]string{}, &map[string]any{}, &map[string]string{}, &map[string]wide{}, &[]byte{}, new(string), &by{}, &struct{ A []wide }{},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if read(append([]byte{codecPack, 1}, given...), into) == nil {
				t.Errorf("%s is read into %T", what, into)
			}
			runtime.ReadMemStats(&after)
			if room := after.TotalAlloc - before.TotalAlloc; room > 1<<16 {
				t.Errorf("%s into %T takes %d bytes", what, into, room)
			}
		}
	}
}

// brittle writes and reads itself, and panics.
type brittle struct{}

func (b *brittle) DecodeMsgpack(*msgpack.Decoder) error { panic("it broke") }
func (b *brittle) UnmarshalJSON([]byte) error           { panic("it broke") }
func (b brittle) EncodeMsgpack(*msgpack.Encoder) error  { panic("it broke") }
func (b brittle) MarshalJSON() (text []byte, err error) { panic("it broke") }

func TestATypeThatPanicsWhenItIsReadOrWrittenEndsWithAnError(t *testing.T) {
	for _, codec := range []byte{codecPack, codecJSON} {
		if _, err := payload(&brittle{}, codec, 1); err == nil || lacking(err.Error(), "panic: it broke") != nil {
			t.Error(err)
		}
		given, _ := payload(map[string]any{"b": 1}, codec, 1)
		if err := read(given, &map[string]brittle{}); err == nil || lacking(err.Error(), "panic: it broke") != nil {
			t.Error(err)
		}
	}
}

func TestBytesOfAnyKindNeverPanic(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		given := make([]byte, 2+chance.IntN(24))
		for at := range given {
			given[at] = byte(chance.Uint32())
			if chance.IntN(3) == 0 {
				given[at] = []byte{0x81, 0x92, 0xa1, 0xdf, 0xdd, 0xc0, 0x01, 'a', 0xcb, '"', '[', '{', ':', ','}[chance.IntN(14)]
			}
		}
		given[0], given[1] = 1+byte(chance.IntN(2)), 1
		for _, into := range []any{new(any), &by{}, &[]string{}, &map[string]any{}, new(time.Time), &struct{ A []any }{}, &lists{}, &mapped{}} {
			err := read(bytes.Clone(given), into)
			if err != nil && strings.Contains(err.Error(), "panic") {
				t.Fatalf("%q into %T: %v", given, into, err)
			}
		}
		_ = decode(given[1], given)
	}
}
