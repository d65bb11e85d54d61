package greenroom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

const (
	codecPack = 1
	codecJSON = 2
)

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

// pack gives a value as MessagePack, with the names of `json` tags.
func pack(value any) ([]byte, error) {
	var out bytes.Buffer
	to := msgpack.GetEncoder()
	defer msgpack.PutEncoder(to)
	to.Reset(&out)
	to.SetCustomStructTag("json")
	to.UseCompactInts(true)
	to.SetSortMapKeys(true)
	err := to.Encode(value)
	return out.Bytes(), err
}

func unpack(data []byte, into any) error {
	from := msgpack.GetDecoder()
	defer msgpack.PutDecoder(from)
	from.Reset(bytes.NewReader(data))
	from.SetCustomStructTag("json")
	from.UseLooseInterfaceDecoding(true)
	return from.Decode(into)
}

// payload gives a value with its codec and type version.
func payload(value any, codec, version byte) ([]byte, error) {
	var written []byte
	var err error
	if _, isNone := value.(None); isNone {
		value = nil
	}
	if codec == codecJSON {
		written, err = json.Marshal(value)
	} else {
		written, err = pack(value)
	}
	return append([]byte{codec, version}, written...), err
}

// arguments is payload for what a call sends: no value is no arguments.
func arguments(value any) ([]byte, error) {
	if _, isNone := value.(None); isNone || value == nil {
		return []byte{1, 1, 0x80}, nil
	}
	return payload(value, codecPack, 1)
}

// read reads a payload's value.
func read(payload []byte, into any) error {
	if _, isNone := into.(*None); isNone {
		return nil
	}
	switch {
	case len(payload) < 2:
		return errors.New("a payload has no codec and type version")
	case payload[0] == codecPack:
		return unpack(payload[2:], into)
	case payload[0] == codecJSON:
		return json.Unmarshal(payload[2:], into)
	default:
		return fmt.Errorf("a payload has codec %d, which is not known", payload[0])
	}
}
