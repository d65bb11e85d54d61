package greenroom

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// full gives a value in which no slice and no map is nil: descriptions promise lists and objects, other languages read no null in their place, and
// encoding/json/v2 writes them so. What is shared with the actor is not changed. Types that write themselves stay as they are.
func full(value any) any {
	if value == nil || !holdsNil(reflect.TypeOf(value)) {
		return value
	}
	filled, _ := fill(reflect.ValueOf(value))
	return filled.Interface()
}

// fill gives a value without nil slices and maps, and whether it is another one.
func fill(value reflect.Value) (filled reflect.Value, isOther bool) {
	of := value.Type()
	if !holdsNil(of) {
		return value, false
	}
	switch of.Kind() {
	case reflect.Slice:
		if value.IsNil() {
			return reflect.MakeSlice(of, 0, 0), true
		}
		if !holdsNil(of.Elem()) {
			return value, false
		}
		return parts(value, value.Len(), reflect.Value.Index, func() reflect.Value {
			return reflect.AppendSlice(reflect.MakeSlice(of, 0, value.Len()), value)
		})
	case reflect.Map:
		if value.IsNil() {
			return reflect.MakeMap(of), true
		}
		if !holdsNil(of.Elem()) {
			return value, false
		}
		all := reflect.MakeMapWithSize(of, value.Len())
		for each := value.MapRange(); each.Next(); {
			item, _ := fill(each.Value())
			all.SetMapIndex(each.Key(), item)
		}
		return all, true
	case reflect.Struct:
		return parts(value, of.NumField(), reflect.Value.Field, func() reflect.Value { return settable(value) })
	case reflect.Pointer:
		if value.IsNil() {
			return value, false
		}
		if filled, isOther = fill(value.Elem()); isOther {
			return settable(filled).Addr(), true
		}
	}
	return value, false
}

// parts fills the elements of a slice, or a struct's fields; what it changes is a copy.
func parts(of reflect.Value, count int, part func(reflect.Value, int) reflect.Value, copied func() reflect.Value) (filled reflect.Value, isOther bool) {
	filled = of
	for at := range count {
		if !part(of, at).CanInterface() {
			continue
		}
		if item, changes := fill(part(of, at)); changes {
			if !isOther {
				filled, isOther = copied(), true
			}
			part(filled, at).Set(item)
		}
	}
	return filled, isOther
}

func settable(value reflect.Value) reflect.Value {
	found := reflect.New(value.Type()).Elem()
	found.Set(value)
	return found
}

// holdsNil says whether a value of the type may have a slice or a map that is nil.
func holdsNil(of reflect.Type) bool {
	if known, is := nils.Load(of); is {
		return known.(bool)
	}
	found := looksForNil(of, map[reflect.Type]bool{})
	nils.Store(of, found)
	return found
}

func looksForNil(of reflect.Type, seen map[reflect.Type]bool) bool {
	for _, writes := range writers {
		if of.Implements(writes) || reflect.PointerTo(of).Implements(writes) {
			return false
		}
	}
	switch of.Kind() {
	case reflect.Slice, reflect.Map:
		return true
	case reflect.Pointer:
		return looksForNil(of.Elem(), seen)
	case reflect.Struct:
		if seen[of] {
			return false
		}
		seen[of] = true
		for at := range of.NumField() {
			if field := of.Field(at); field.IsExported() && looksForNil(field.Type, seen) {
				return true
			}
		}
	}
	return false
}

var writers = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.BinaryMarshaler](),
	reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](),
}

// nils has what holdsNil has found, by types.
var nils sync.Map
