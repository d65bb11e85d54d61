package greenroom

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/vmihailenco/msgpack/v5"
)

// full gives a value in which no slice and no map is nil: descriptions promise lists and objects, other languages read no null in their place, and
// encoding/json/v2 writes them so. What is shared with the actor is not changed. Types that write themselves in the codec stay as they are,
// and so do lists and maps that do so in either one: nil may mean something of its own to them.
func full(value any, codec byte) any {
	if value == nil {
		return nil
	}
	return fullValue(reflect.ValueOf(value), codec).Interface()
}

// fullValue is full for what reflection has at hand.
func fullValue(value reflect.Value, codec byte) reflect.Value {
	if codec != codecJSON {
		codec = codecPack
	}
	if filled, isOther := fill(value, codec, 0); isOther {
		return filled
	}
	return value
}

// fill gives a value without nil slices and maps, and whether it is another one.
func fill(value reflect.Value, codec byte, depth int) (filled reflect.Value, isOther bool) {
	if isPlain(value.Kind()) {
		return value, false
	}
	of := value.Type()
	shape := shapeOf(of, codec)
	// What holds itself is for the encoder to refuse.
	if !shape.holdsNil || depth > depthMax {
		return value, false
	}
	depth++
	switch of.Kind() {
	case reflect.Interface, reflect.Pointer:
		if value.IsNil() {
			return value, false
		}
		filled, isOther = fill(value.Elem(), codec, depth)
		if isOther && of.Kind() == reflect.Pointer {
			filled = copied(filled).Addr()
		}
		return filled, isOther
	case reflect.Slice:
		if value.IsNil() {
			return reflect.MakeSlice(of, 0, 0), true
		}
		return items(value, codec, depth)
	case reflect.Array:
		return items(value, codec, depth)
	case reflect.Map:
		if value.IsNil() {
			return reflect.MakeMap(of), true
		}
		return entries(value, codec, depth)
	default:
		return fields(value, shape.fields, codec, depth)
	}
}

func items(of reflect.Value, codec byte, depth int) (filled reflect.Value, isOther bool) {
	filled = of
	if !shapeOf(of.Type().Elem(), codec).holdsNil {
		return filled, false
	}
	for at := range of.Len() {
		item, changes := fill(of.Index(at), codec, depth)
		if changes && !isOther {
			filled, isOther = copied(of), true
		}
		if changes {
			filled.Index(at).Set(item)
		}
	}
	return filled, isOther
}

func entries(of reflect.Value, codec byte, depth int) (filled reflect.Value, isOther bool) {
	filled = of
	if !shapeOf(of.Type().Elem(), codec).holdsNil {
		return filled, false
	}
	for each := of.MapRange(); each.Next(); {
		item, changes := fill(each.Value(), codec, depth)
		if changes && !isOther {
			filled, isOther = copied(of), true
		}
		if changes {
			filled.SetMapIndex(each.Key(), item)
		}
	}
	return filled, isOther
}

func fields(of reflect.Value, looked []fieldShape, codec byte, depth int) (filled reflect.Value, isOther bool) {
	filled = of
	var own reflect.Value
	for _, look := range looked {
		field := of.Field(look.at)
		if look.isHidden {
			// Its exported fields are written as if they were the outer struct's, but only what is addressable can be reached there.
			if !own.IsValid() {
				own = copied(filled)
			}
			hidden := own.Field(look.at)
			field = reflect.NewAt(hidden.Type(), unsafe.Pointer(hidden.UnsafeAddr())).Elem()
		}
		if look.omitsZero && field.IsZero() {
			continue
		}
		item, changes := fill(field, codec, depth)
		if !changes {
			continue
		}
		if !own.IsValid() {
			own = copied(of)
		}
		filled, isOther = own, true
		if look.isHidden {
			field.Set(item)
		} else {
			own.Field(look.at).Set(item)
		}
	}
	return filled, isOther
}

// copied gives another value, which can be set, and of lists and maps the elements, too.
func copied(value reflect.Value) reflect.Value {
	of := value.Type()
	found := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Slice:
		found.Set(reflect.AppendSlice(reflect.MakeSlice(of, 0, value.Len()), value))
	case reflect.Map:
		found.Set(reflect.MakeMapWithSize(of, value.Len()))
		for each := value.MapRange(); each.Next(); {
			found.SetMapIndex(each.Key(), each.Value())
		}
	default:
		found.Set(value)
	}
	return found
}

// shape is what there is to look at in values of a type: whether any may have a slice or a map that is nil, a struct's fields of which that is so, and
// how many levels they have.
type shape struct {
	holdsNil bool
	// levels is how deep values may be nested: to levelsEndless, or less.
	levels int
	// isEndless says that encoders would look into the type itself for ever.
	isEndless bool
	fields    []fieldShape
}

type fieldShape struct {
	at                  int
	isHidden, omitsZero bool
}

func shapeOf(of reflect.Type, codec byte) *shape {
	known := &shapes[0]
	if codec == codecJSON {
		known = &shapes[1]
	}
	if found, is := known.Load(of); is {
		return found.(*shape)
	}
	found := &shape{holdsNil: holdsNil(of, codec, map[reflect.Type]bool{}), levels: levelsOf(of, codec, map[reflect.Type]int{}), isEndless: pointsToItself(of) || embedsItself(of, of, map[reflect.Type]bool{})}
	if found.holdsNil && of.Kind() == reflect.Struct {
		for at := range of.NumField() {
			field := of.Field(at)
			if isWritten(field) && holdsNil(field.Type, codec, map[reflect.Type]bool{}) {
				_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
				omitsZero := codec == codecJSON && strings.Contains(","+options+",", ",omitzero,")
				found.fields = append(found.fields, fieldShape{at, !field.IsExported(), omitsZero})
			}
		}
	}
	known.Store(of, found)
	return found
}

func holdsNil(of reflect.Type, codec byte, seen map[reflect.Type]bool) bool {
	if seen[of] {
		return false
	}
	seen[of] = true
	kind := of.Kind()
	isList := kind == reflect.Slice || kind == reflect.Map
	if writes(of, codec) || isList && (writes(of, codecPack) || writes(of, codecJSON)) {
		return false
	}
	switch kind {
	case reflect.Slice, reflect.Map, reflect.Interface:
		return true
	case reflect.Pointer, reflect.Array:
		return holdsNil(of.Elem(), codec, seen)
	case reflect.Struct:
		for at := range of.NumField() {
			if field := of.Field(at); isWritten(field) && holdsNil(field.Type, codec, seen) {
				return true
			}
		}
	}
	return false
}

// isWritten says whether encoders write a field, or those that are in it.
func isWritten(field reflect.StructField) bool {
	of := field.Type
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return field.Tag.Get("json") != "-" && (field.IsExported() || field.Anonymous && of.Kind() == reflect.Struct)
}

// writes says whether a type writes itself in a codec.
func writes(of reflect.Type, codec byte) bool {
	for _, by := range writers[codec] {
		if of.Implements(by) || reflect.PointerTo(of).Implements(by) {
			return true
		}
	}
	return false
}

var writers = map[byte][]reflect.Type{
	codecPack: {
		reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](), bytesWriter, textWriter,
	},
	codecJSON: {reflect.TypeFor[json.Marshaler](), textWriter},
}

var bytesWriter, textWriter = reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.TextMarshaler]()

// shapes has what shapeOf has found, by types: in MessagePack, in JSON.
var shapes [2]sync.Map

// depthMax is how deep values are looked into; encoding/json looks for circles from there on.
const depthMax = 1000
