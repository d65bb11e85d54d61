package greenroom

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
)

// nestingError is of a value that is nested too deep; field is what of it is, if it has names.
type nestingError struct{ field string }

func (e *nestingError) Error() string {
	return fmt.Sprintf("it is nested over %d levels deep: does it hold itself, in a cycle?", levelsMax)
}

// checkNesting refuses what is nested too deep, before anything goes through it: a cycle would overflow the stack, which ends the program.
func checkNesting(value reflect.Value, codec byte) error {
	if !value.IsValid() || isPlain(value.Kind()) || !shapeOf(value.Type(), codec).nests {
		return nil
	}
	if field, is := nestsOver(value, codec, 0, 0); is {
		return &nestingError{field}
	}
	return nil
}

// nestsOver says whether a value has too many levels of lists, maps and structs, or pointers on the way to them, and under which of its names.
func nestsOver(value reflect.Value, codec byte, levels, hops int) (field string, is bool) {
	if levels > levelsMax || hops > hopsMax {
		return "", true
	}
	if isPlain(value.Kind()) || !shapeOf(value.Type(), codec).nests {
		return "", false
	}
	switch value.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !value.IsNil() {
			return nestsOver(value.Elem(), codec, levels, hops+1)
		}
	case reflect.Slice, reflect.Array:
		for at := range value.Len() {
			if _, is := nestsOver(value.Index(at), codec, levels+1, hops); is {
				return "", true
			}
		}
	case reflect.Map:
		for each := value.MapRange(); each.Next(); {
			if _, is := nestsOver(each.Value(), codec, levels+1, hops); is {
				return nameOfKey(each.Key()), true
			}
		}
	case reflect.Struct:
		for at := range value.NumField() {
			of := value.Type().Field(at)
			if !isWritten(of) {
				continue
			}
			inner, is := nestsOver(value.Field(at), codec, levels+1, hops)
			switch {
			case is && of.Anonymous && inner != "":
				return inner, true
			case is:
				return nameOfField(of), true
			}
		}
	}
	return "", false
}

// nests says whether values of a type may be nested to any depth: it names itself, or holds whatever there is.
func nests(of reflect.Type, codec byte, within map[reflect.Type]bool) bool {
	if isWithin, isSeen := within[of]; isSeen {
		return isWithin
	}
	if writes(of, codec) {
		return false
	}
	within[of] = true
	defer func() { within[of] = false }()
	switch of.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return nests(of.Elem(), codec, within)
	case reflect.Struct:
		for at := range of.NumField() {
			if field := of.Field(at); isWritten(field) && nests(field.Type, codec, within) {
				return true
			}
		}
	}
	return false
}

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
	if field := unfit(payload, reflect.TypeOf(into)); field != "" {
		what = fmt.Sprintf("field %q of %s", field, what)
	}
	return fmt.Errorf("%s cannot be read: %w", what, err)
}

// unfit is the first field of a struct that does not take what a payload has for it.
func unfit(payload []byte, of reflect.Type) string {
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

const (
	// levelsMax is how deep what this process writes may be nested: nodes read 64 levels of MessagePack and 128 of JSON.
	levelsMax = 128
	// hopsMax is how many pointers and interfaces may be on the way to one value.
	hopsMax = 1024
)
