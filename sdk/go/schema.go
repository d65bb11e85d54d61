package greenroom

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// schemas has the JSON Schemas of a description's types: those that have a name of their own, by it.
type schemas struct {
	defs  map[string]any
	names map[reflect.Type]string
}

func newSchemas() *schemas {
	return &schemas{defs: map[string]any{}, names: map[reflect.Type]string{}}
}

// of gives a type's JSON Schema; `true` of what is not known.
func (s *schemas) of(of reflect.Type) any {
	switch {
	case of == reflect.TypeFor[None]():
		return map[string]any{"type": "null"}
	case of == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case of.Name() == "" || of.Kind() != reflect.Struct && !holdsItself(of):
		return s.inline(of)
	}
	name, isKnown := s.names[of]
	if !isKnown {
		name = s.name(of)
		s.names[of] = name
		s.defs[name] = true
		s.defs[name] = s.inline(of)
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

// inline is of for what is written out where it is met, whatever its name.
func (s *schemas) inline(of reflect.Type) any {
	switch of.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Slice, reflect.Array:
		if of.Elem().Kind() == reflect.Uint8 {
			return true
		}
		return map[string]any{"type": "array", "items": s.of(of.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(of.Elem())}
	case reflect.Struct:
		properties := map[string]any{}
		for name, field := range fieldsOf(of) {
			properties[name] = s.of(field.Type)
		}
		return map[string]any{"type": "object", "properties": properties}
	}
	return true
}

// name gives a name to a type's definition that no other one has: types of several packages may share theirs.
func (s *schemas) name(of reflect.Type) string {
	plain := func(letter rune) rune {
		switch {
		case letter == '*':
			return -1
		case unicode.IsLetter(letter) || unicode.IsDigit(letter) || strings.ContainsRune("_-.", letter):
			return letter
		}
		return '_'
	}
	own := strings.Map(plain, of.Name())
	own = strings.ToValidUTF8(own[:min(len(own), definitionNameMax)], "")
	name := own
	for at := 2; s.defs[name] != nil; at++ {
		name = fmt.Sprintf("%s_%d", own, at)
	}
	return name
}

// holdsItself says of a list or a map that its elements lead back to it with no struct between them that has a name.
func holdsItself(of reflect.Type) bool {
	seen := map[reflect.Type]bool{}
	var leadsTo func(reflect.Type) bool
	leadsTo = func(at reflect.Type) bool {
		if seen[at] {
			return at == of
		}
		seen[at] = true
		switch at.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map:
			return leadsTo(at.Elem())
		case reflect.Struct:
			if at.Name() != "" {
				return false
			}
			for _, field := range fieldsOf(at) {
				if leadsTo(field.Type) {
					return true
				}
			}
		}
		return false
	}
	return leadsTo(of)
}

// definitionNameMax is how many bytes of a type's name its definition has; nodes take some more.
const definitionNameMax = 120
