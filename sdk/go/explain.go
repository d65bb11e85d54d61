package greenroom

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
)

// cannotWrite says what cannot be written, and which field of it where that is known.
func cannotWrite(what string, value any, codec byte, err error) error {
	field := ""
	if deep := (*nestingError)(nil); errors.As(err, &deep) {
		field = deep.field
	} else {
		field = unwritable(reflect.ValueOf(value), codec)
	}
	if field != "" {
		what = fmt.Sprintf("field %q of %s", field, what)
	}
	return fmt.Errorf("%s cannot be written: %w", what, err)
}

// unwritable is the first name of a value under which there is what a codec has no form for.
func unwritable(value reflect.Value, codec byte) string {
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	isUnfit := func(part reflect.Value) bool {
		if !part.CanInterface() {
			return false
		}
		_, err := payload(part.Interface(), codec, 1)
		return err != nil
	}
	switch value.Kind() {
	case reflect.Struct:
		for name, field := range fieldsOf(value.Type()) {
			if part, err := value.FieldByIndexErr(field.Index); err == nil && isUnfit(part) {
				return name
			}
		}
	case reflect.Map:
		for each := value.MapRange(); each.Next(); {
			if isUnfit(each.Value()) {
				return nameOfKey(each.Key())
			}
		}
	}
	return ""
}

// cannotRead says what cannot be read, and which field of it where that is known.
func cannotRead(what string, payload []byte, into any, err error) error {
	if field := unfit(payload, reflect.TypeOf(into), err); field != "" {
		what = fmt.Sprintf("field %q of %s", field, what)
	}
	return fmt.Errorf("%s cannot be read: %w", what, err)
}

// unfit is the field under which a payload is nested too deep, if that is why it cannot be read, or the first one of a struct that does not take what the
// payload has for it.
func unfit(payload []byte, of reflect.Type, why error) string {
	if deep := (*nestingError)(nil); errors.As(why, &deep) {
		return deep.field
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || len(payload) < 2 {
		return ""
	}
	members := map[string][]byte{}
	switch payload[0] {
	case codecPack:
		var raw map[string]msgpack.RawMessage
		_ = unpackAsSent(payload[2:], &raw)
		for name, member := range raw {
			members[name] = member
		}
	case codecJSON:
		var raw map[string]json.RawMessage
		_ = json.Unmarshal(payload[2:], &raw)
		for name, member := range raw {
			members[name] = member
		}
	}
	for name, field := range fieldsOf(of) {
		_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		member, has := members[name]
		// A number that is written as text is read as such in its struct alone.
		if !has || strings.Contains(options, "string") {
			continue
		}
		if readAsSent(append([]byte{payload[0], payload[1]}, member...), reflect.New(field.Type).Interface()) != nil {
			return name
		}
	}
	return ""
}

func nameOfField(of reflect.StructField) string {
	if name, _, _ := strings.Cut(of.Tag.Get("json"), ","); name != "" {
		return name
	}
	return of.Name
}

func nameOfKey(key reflect.Value) string {
	if key.Kind() == reflect.String {
		return key.String()
	}
	return ""
}

// unsendable is what a call ends with whose arguments cannot be written.
func unsendable(kind, method string, with any, err error) error {
	err = cannotWrite("the arguments of "+kind+"."+method, with, firstCodec(), err)
	return &Failure{Family: ErrRefused, Reason: "Unsendable", Detail: map[string]any{"message": err.Error()}, cause: err}
}
