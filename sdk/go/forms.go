package greenroom

import (
	"fmt"
	"reflect"
)

// misfit is what of a type cannot travel, under which of its names, and what to do about it.
type misfit struct{ field, what string }

// says is what is said of a value's misfit.
func (m *misfit) says(value string) string {
	if m.field == "" {
		return value + " " + m.what
	}
	return fmt.Sprintf("field %q of %s %s", m.field, value, m.what)
}

// role is what values of a type are there for.
type role byte

const (
	isArguments role = iota
	isAnswer
	isState
)

// misfitOf finds what of a type no codec has a form for, or encoders and decoders go through for ever.
func misfitOf(of reflect.Type, as role) *misfit {
	return lookForMisfit(of, as, map[reflect.Type]bool{})
}

func lookForMisfit(of reflect.Type, as role, seen map[reflect.Type]bool) *misfit {
	if seen[of] || writes(of, codecPack) && writes(of, codecJSON) {
		return nil
	}
	seen[of] = true
	switch of.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr, reflect.Complex64, reflect.Complex128:
		return &misfit{what: fmt.Sprintf(`is of type %s, which cannot travel: take another type, or leave a field out by the tag json:"-"`, of)}
	case reflect.Interface:
		if as == isArguments && of.NumMethod() > 0 {
			return &misfit{what: fmt.Sprintf("is of the interface %s, of which nobody knows what to read into it: take a type of its own, or any", of)}
		}
	case reflect.Pointer:
		if pointsToItself(of) {
			return &misfit{what: fmt.Sprintf("is of type %s, which points to itself for ever: let a struct hold the pointer", of)}
		}
		return lookForMisfit(of.Elem(), as, seen)
	case reflect.Map:
		if as != isState && !isKey(of.Key()) {
			return &misfit{what: fmt.Sprintf("has keys of type %s, which JSON has not: take texts or whole numbers", of.Key())}
		}
		return lookForMisfit(of.Elem(), as, seen)
	case reflect.Slice, reflect.Array:
		return lookForMisfit(of.Elem(), as, seen)
	case reflect.Struct:
		if embedsItself(of, of, map[reflect.Type]bool{}) {
			return &misfit{what: fmt.Sprintf("embeds its own type %s: give that field a name", of)}
		}
		for at := range of.NumField() {
			field := of.Field(at)
			if !isWritten(field) {
				continue
			}
			if as != isAnswer && isInlined(field) && field.Type.Kind() == reflect.Pointer && !field.IsExported() && hasFields(field.Type.Elem()) {
				return &misfit{field.Name, fmt.Sprintf("is an embedded pointer to the unexported %s, which nobody can set: embed the struct itself", field.Type.Elem())}
			}
			found := lookForMisfit(field.Type, as, seen)
			if found != nil && found.field == "" {
				found.field = nameOfField(field)
			}
			if found != nil {
				return found
			}
		}
	}
	return nil
}

func hasFields(of reflect.Type) bool {
	for range fieldsOf(of) {
		return true
	}
	return false
}

// pointsToItself says whether there is no value behind pointers of a type, as of `type P *P`.
func pointsToItself(of reflect.Type) bool {
	seen := map[reflect.Type]bool{}
	for ; of.Kind() == reflect.Pointer; of = of.Elem() {
		if seen[of] {
			return true
		}
		seen[of] = true
	}
	return false
}

// embedsItself says whether a struct is among the fields that it has from what it embeds.
func embedsItself(of, at reflect.Type, seen map[reflect.Type]bool) bool {
	if at.Kind() != reflect.Struct {
		return false
	}
	seen[at] = true
	for index := range at.NumField() {
		field := at.Field(index)
		if !isInlined(field) {
			continue
		}
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner == of || !seen[inner] && embedsItself(of, inner, seen) {
			return true
		}
	}
	return false
}

// isKey says whether both codecs have keys of a type.
func isKey(of reflect.Type) bool {
	kind := of.Kind()
	return kind == reflect.String || kind >= reflect.Int && kind <= reflect.Uint64 || of.Implements(textWriter)
}

// isStream says whether a type is an iter.Seq2[R, error].
func isStream(of reflect.Type) bool {
	if of.Kind() != reflect.Func || of.NumIn() != 1 || of.NumOut() != 0 || of.In(0).Kind() != reflect.Func {
		return false
	}
	yield := of.In(0)
	return yield.NumIn() == 2 && yield.In(1) == reflect.TypeFor[error]() && yield.NumOut() == 1 && yield.Out(0) == reflect.TypeFor[bool]()
}
