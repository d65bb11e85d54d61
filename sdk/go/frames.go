package greenroom

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// The types of frames of the host protocol, version 1: length u32 LE (of what follows), type u8, body.
const (
	tHello, tWelcome, tDescribe, tOffered, tAlive, tLease = 1, 1, 2, 3, 4, 5
	tDrain, tGoodbye, tLaneLost, tLaneDropped, tJoin      = 7, 8, 9, 10, 16
	tActivate, tActivated, tDeactivate, tReleased         = 32, 33, 34, 35
	tTurn, tTurnEnd, tCancelTurn, tDefine, tCall, tReply  = 36, 37, 38, 39, 40, 41
	tCancelCall, tAsk, tOperationRefused                  = 42, 43, 44
	tStreamItem, tStreamCredit, tStreamEnd, tCredit       = 48, 49, 50, 56
)

// How a call or a turn went.
const (
	sOK, sActorError, sRefused, sUnknown, sCycle, sPanicked, sInvalid, sExpired, sAbandoned = 0, 1, 2, 3, 4, 5, 6, 7, 16
)

// What an Ask asks for.
const (
	opSave, opReload, opClear, opTimer, opCancelTimer, opRemind, opForget = 1, 2, 3, 4, 5, 6, 7
	opReminders, opSubscribe, opUnsubscribe, opOpenStream, opKeepAlive    = 8, 9, 10, 11, 12
	opDeactivate, opMigrate, opOutput, opCreate, opChosen                 = 13, 14, 15, 16, 17
)

const (
	magic    = "GRHP"
	frameMax = 8 << 20
	// roomFirst is what there is room for before any of a frame has come.
	roomFirst = 64 << 10
)

// nothing is the payload of no value: who reads a status of success looks at no more.
var nothing = []byte{1, 1, 0xc0}

// errFrame is of bytes that are no frame: the lane that they came on is closed.
var errFrame = errors.New("a frame is wrong")

func frameError(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", errFrame, fmt.Sprintf(format, arguments...))
}

// batch is frames one after the other.
type batch []byte

func (b *batch) begin(kind byte) int {
	at := len(*b)
	*b = append(*b, 0, 0, 0, 0, kind)
	return at
}

func (b *batch) end(at int) int {
	size := len(*b) - at
	binary.LittleEndian.PutUint32((*b)[at:], uint32(size-4))
	return size
}

func (b *batch) u8(value byte) *batch       { *b = append(*b, value); return b }
func (b *batch) bytes(value []byte) *batch  { *b = append(*b, value...); return b }
func (b *batch) varint(value uint64) *batch { *b = binary.AppendUvarint(*b, value); return b }
func (b *batch) block(value []byte) *batch  { return b.varint(uint64(len(value))).bytes(value) }
func (b *batch) text(value string) *batch {
	b.varint(uint64(len(value)))
	*b = append(*b, value...)
	return b
}

// part is what a state has under a name: its payload, and which of its kind's fields it is.
type part struct {
	name    string
	payload []byte
	at      int
}

// fields appends parts, which are in the order of their names.
func (b *batch) fields(all []part) *batch {
	b.varint(uint64(len(all)))
	for _, each := range all {
		b.text(each.name).u8(0).block(each.payload)
	}
	return b
}

func frame(kind byte, write func(*batch)) batch {
	var b batch
	at := b.begin(kind)
	if write != nil {
		write(&b)
	}
	b.end(at)
	return b
}

// reader takes the fields of one frame's body in order. The first error stays.
type reader struct {
	data []byte
	err  error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = frameError("%s", what)
	}
	r.data = nil
}

func (r *reader) u8() byte {
	if len(r.data) == 0 {
		r.fail("it ends within a field")
		return 0
	}
	value := r.data[0]
	r.data = r.data[1:]
	return value
}

func (r *reader) varint() uint64 {
	value, size := binary.Uvarint(r.data)
	if size <= 0 || size != (bits.Len64(value|1)+6)/7 {
		r.fail("a number is cut, over 64 bits, or not in its shortest form")
		return 0
	}
	r.data = r.data[size:]
	return value
}

func (r *reader) bytes(size uint64) []byte {
	if size > uint64(len(r.data)) {
		r.fail("it ends within a field")
		return nil
	}
	found := r.data[:size]
	r.data = r.data[size:]
	return found
}

func (r *reader) block() []byte { return r.bytes(r.varint()) }
func (r *reader) text() string  { return string(r.block()) }

// fields gives the payloads of parts by their names.
func (r *reader) fields() map[string][]byte {
	found := map[string][]byte{}
	for left := r.varint(); left > 0 && r.err == nil; left-- {
		name := r.text()
		if r.u8() != 0 {
			r.fail("state " + name + " comes in entries, which this SDK did not offer to read")
		}
		found[name] = r.block()
	}
	return found
}

// frameReader reads frames one after the other.
type frameReader struct {
	from io.Reader
	head [5]byte
}

// next reads one, whose body is the caller's to keep.
func (f *frameReader) next(limit uint32) (byte, reader, error) {
	if _, err := io.ReadFull(f.from, f.head[:]); err != nil {
		return 0, reader{}, err
	}
	length := binary.LittleEndian.Uint32(f.head[:])
	if length == 0 || length > limit {
		return 0, reader{}, frameError("%d bytes are outside the bound of %d", length, limit)
	}
	body, err := f.body(int(length - 1))
	return f.head[4], reader{data: body}, err
}

// body makes room for what is promised as it comes, not before.
func (f *frameReader) body(length int) ([]byte, error) {
	body := make([]byte, min(length, roomFirst))
	_, err := io.ReadFull(f.from, body)
	for err == nil && len(body) < length {
		begin := len(body)
		body = append(body, make([]byte, min(length-begin, begin))...)
		_, err = io.ReadFull(f.from, body[begin:])
	}
	return body, err
}

func goodbye(code byte, reason string) batch {
	return frame(tGoodbye, func(b *batch) { b.u8(code).text(reason[:min(len(reason), 1000)]) })
}
