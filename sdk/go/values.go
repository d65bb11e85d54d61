package greenroom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

const (
	codecPack = 1
	codecJSON = 2
)

// codecs are those that this process reads, by GREENROOM_CODEC; the node writes over what is in another one. The first is the one that it
// writes, but for replies: these are in the codec of their arguments.
var codecs = map[string][]byte{"": {codecPack, codecJSON}, "messagepack": {codecPack}, "json": {codecJSON}}[os.Getenv("GREENROOM_CODEC")]

// firstCodec is the codec of what this process is the first to write.
func firstCodec() byte {
	if len(codecs) == 0 {
		return codecPack
	}
	return codecs[0]
}

func init() {
	// Times travel as text: MessagePack's own extension is not for all languages.
	msgpack.Register(time.Time{},
		func(to *msgpack.Encoder, value reflect.Value) error {
			return to.EncodeString(value.Interface().(time.Time).Format(time.RFC3339Nano))
		},
		func(from *msgpack.Decoder, value reflect.Value) error {
			text, err := from.DecodeString()
			if err != nil {
				return err
			}
			found, err := time.Parse(time.RFC3339Nano, text)
			value.Set(reflect.ValueOf(found))
			return err
		})
}

// pack gives a value as MessagePack.
func pack(value any) ([]byte, error) {
	var out bytes.Buffer
	err := packTo(&out, reflect.ValueOf(value))
	return out.Bytes(), err
}

// packTo writes a value as MessagePack, with the names of `json` tags.
func packTo(out *bytes.Buffer, value reflect.Value) error {
	to := msgpack.GetEncoder()
	defer msgpack.PutEncoder(to)
	to.Reset(out)
	to.SetCustomStructTag("json")
	to.UseCompactInts(true)
	to.SetSortMapKeys(true)
	switch {
	case !value.IsValid():
		return to.EncodeNil()
	case !isPlain(value.Kind()) || value.Type().PkgPath() != "":
		return to.EncodeValue(value)
	case value.Kind() == reflect.String:
		return to.EncodeString(value.String())
	case value.Kind() == reflect.Bool:
		return to.EncodeBool(value.Bool())
	case value.CanInt():
		return to.EncodeInt(value.Int())
	case value.CanUint():
		return to.EncodeUint(value.Uint())
	}
	return to.EncodeValue(value)
}

// isPlain says whether values of the kind hold no others.
func isPlain(kind reflect.Kind) bool {
	return kind == reflect.String || kind >= reflect.Bool && kind <= reflect.Complex128
}

func unpack(data []byte, into any) (err error) {
	defer panicsAsError(&err)
	err = unpackAsSent(data, into)
	if err == nil {
		widen(reflect.ValueOf(into))
	}
	return err
}

func unpackAsSent(data []byte, into any) error {
	if err := checkPacked(data); err != nil {
		return err
	}
	from := unpackers.Get().(*unpacker)
	from.data.Reset(data)
	from.Reset(&from.data)
	from.SetCustomStructTag("json")
	if err := from.Decode(into); err != nil {
		// It may be in the middle of recording what it reads.
		return err
	}
	from.data.Reset(nil)
	unpackers.Put(from)
	return nil
}

type unpacker struct {
	*msgpack.Decoder
	data bytes.Reader
}

var unpackers = sync.Pool{New: func() any { return &unpacker{Decoder: msgpack.NewDecoder(nil)} }}

// widen gives what is in interfaces the types that one expects there, whatever the wire has: int64, uint64 beyond it, float64.
func widen(value reflect.Value) {
	if !holdsAny(value.Type()) {
		return
	}
	switch value.Kind() {
	case reflect.Interface:
		if !value.IsNil() {
			value.Set(widened(value.Elem()))
		}
	case reflect.Pointer:
		if !value.IsNil() {
			widen(value.Elem())
		}
	case reflect.Slice, reflect.Array:
		for at := range value.Len() {
			widen(value.Index(at))
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			item := reflect.New(value.Type().Elem()).Elem()
			item.Set(value.MapIndex(key))
			widen(item)
			value.SetMapIndex(key, item)
		}
	case reflect.Struct:
		for at := range value.NumField() {
			if value.Type().Field(at).IsExported() {
				widen(value.Field(at))
			}
		}
	}
}

func widened(value reflect.Value) reflect.Value {
	switch {
	case value.CanInt():
		return reflect.ValueOf(value.Int())
	case value.CanUint() && value.Uint() <= math.MaxInt64:
		return reflect.ValueOf(int64(value.Uint()))
	case value.CanUint():
		return reflect.ValueOf(value.Uint())
	case value.CanFloat():
		return reflect.ValueOf(value.Float())
	}
	number, isNumber := value.Interface().(json.Number)
	if !isNumber {
		widen(value)
		return value
	}
	if found, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
		return reflect.ValueOf(found)
	}
	if found, err := strconv.ParseUint(number.String(), 10, 64); err == nil {
		return reflect.ValueOf(found)
	}
	found, _ := number.Float64()
	return reflect.ValueOf(found)
}

// holdsAny says whether a value of the type may have one in an interface.
func holdsAny(of reflect.Type) bool {
	if known, is := holding.Load(of); is {
		return known.(bool)
	}
	found := looksForAny(of, map[reflect.Type]bool{})
	holding.Store(of, found)
	return found
}

func looksForAny(of reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[of] {
		return false
	}
	seen[of] = true
	switch of.Kind() {
	case reflect.Interface:
		return of.NumMethod() == 0
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return looksForAny(of.Elem(), seen)
	case reflect.Struct:
		for at := range of.NumField() {
			if field := of.Field(at); field.IsExported() && looksForAny(field.Type, seen) {
				return true
			}
		}
	}
	return false
}

// holding has what holdsAny has found, by types.
var holding sync.Map

// payload gives a value with its codec and type version.
func payload(value any, codec, version byte) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, 64))
	err := payloadTo(out, reflect.ValueOf(value), codec, version)
	return out.Bytes(), err
}

// payloadTo writes a payload behind what is in out.
func payloadTo(out *bytes.Buffer, value reflect.Value, codec, version byte) (err error) {
	defer panicsAsError(&err)
	out.WriteByte(codec)
	out.WriteByte(version)
	if !value.IsValid() || value.Type() == reflect.TypeFor[None]() {
		if codec == codecJSON {
			out.WriteString("null")
			return nil
		}
		return packTo(out, reflect.Value{})
	}
	if err := checkNesting(value, codec); err != nil {
		return err
	}
	from := out.Len()
	value = fullValue(value, codec)
	if codec == codecJSON {
		written, err := json.Marshal(value.Interface())
		if err != nil {
			return err
		}
		out.Write(written)
	} else if err := packTo(out, value); err != nil {
		return err
	}
	return checkWritten(value, codec, out.Bytes()[from:])
}

// checkWritten refuses what types that write themselves have nested too deep.
func checkWritten(value reflect.Value, codec byte, written []byte) error {
	if isPlain(value.Kind()) || shapeOf(value.Type(), codec).levels < levelsEndless {
		return nil
	}
	err := checkPayload(written, codec)
	if deep := (*nestingError)(nil); errors.As(err, &deep) {
		deep.isRead = false
	}
	return err
}

// panicsAsError has what panics end with an error: types may write and read themselves, and their code is not this one's.
func panicsAsError(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("panic: %v", panicked)
		debug.PrintStack()
	}
}

// buffers has what payloads are written into before it is known what becomes of them.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// borrow gives an empty one.
func borrow() *bytes.Buffer {
	found := buffers.Get().(*bytes.Buffer)
	found.Reset()
	return found
}

// giveBack takes it back, unless it has grown too long to be kept for others.
func giveBack(buffer *bytes.Buffer) {
	if buffer.Cap() <= 64<<10 {
		buffers.Put(buffer)
	}
}

// arguments is payload for what a call sends: no value, or a pointer to none, is no arguments.
func arguments(value any) ([]byte, error) {
	given := reflect.ValueOf(value)
	for given.Kind() == reflect.Pointer && !pointsToItself(given.Type()) {
		given = given.Elem()
	}
	if !given.IsValid() || given.Type() == reflect.TypeFor[None]() {
		value = map[string]any{}
	}
	return payload(value, firstCodec(), 1)
}

// read reads a payload's value.
func read(payload []byte, into any) (err error) {
	defer panicsAsError(&err)
	err = decodeInto(payload, into)
	if err == nil {
		widen(reflect.ValueOf(into))
	}
	return err
}

// readAsSent is read for what holds no interfaces.
func readAsSent(payload []byte, into any) (err error) {
	defer panicsAsError(&err)
	return decodeInto(payload, into)
}

func decodeInto(payload []byte, into any) error {
	if _, isNone := into.(*None); isNone {
		return nil
	}
	switch {
	case len(payload) < 2:
		return errors.New("a payload has no codec and type version")
	case payload[0] == codecPack:
		return unpackAsSent(payload[2:], into)
	case payload[0] == codecJSON:
		if err := checkText(payload[2:]); err != nil {
			return err
		}
		from := json.NewDecoder(bytes.NewReader(payload[2:]))
		from.UseNumber()
		return from.Decode(into)
	default:
		return fmt.Errorf("a payload has codec %d, which is not known", payload[0])
	}
}
