package greenroom

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
)

// nestingError is of a value that is nested too deep; field is what of it is, if it has names.
type nestingError struct {
	field  string
	isRead bool
}

func (e *nestingError) Error() string {
	if e.isRead {
		return fmt.Sprintf("it is nested over %d levels deep, which is the most that is read: let who sends it send a flatter one", levelsMax)
	}
	return fmt.Sprintf("it is nested over %d levels deep, which is the most that nodes read: write a flatter one; or does it hold itself, in a cycle?", levelsMax)
}

// checkNesting refuses what is nested too deep, before anything goes through it: a cycle would overflow the stack, which ends the program.
func checkNesting(value reflect.Value, codec byte) error {
	if !value.IsValid() || isPlain(value.Kind()) {
		return nil
	}
	if field, is := nestsOver(value, codec, 0, 0); is {
		return &nestingError{field: field}
	}
	return nil
}

// nestsOver says whether a value that is within so many levels of lists, maps and structs has too many of them, or too many pointers on the way to
// one, and under which of its names.
func nestsOver(value reflect.Value, codec byte, levels, hops int) (field string, is bool) {
	if isPlain(value.Kind()) {
		return "", false
	}
	of := value.Type()
	shape := shapeOf(of, codec)
	if levels+shape.levels <= levelsMax {
		return "", false
	}
	if shape.isEndless || hops > hopsMax || levels+ownLevel(of, codec) > levelsMax {
		return "", true
	}
	if writes(of, codec) {
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
			of := of.Field(at)
			if !isWritten(of) {
				continue
			}
			within := levels + 1
			if isInlined(of) {
				within = levels
			}
			inner, is := nestsOver(value.Field(at), codec, within, hops)
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

// levelsOf is how many levels values of a type have at most: levelsEndless if it names itself, holds whatever there is, or writes itself.
func levelsOf(of reflect.Type, codec byte, known map[reflect.Type]int) int {
	if writes(of, codec) {
		return levelsWritten(of, codec)
	}
	if levels, isKnown := known[of]; isKnown {
		return levels
	}
	// What is met within itself has no end.
	known[of] = levelsEndless
	levels := 0
	switch of.Kind() {
	case reflect.Interface:
		return levelsEndless
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		levels = levelsOf(of.Elem(), codec, known)
	case reflect.Struct:
		for at := range of.NumField() {
			field := of.Field(at)
			if !isWritten(field) {
				continue
			}
			inner := levelsOf(field.Type, codec, known)
			if isInlined(field) && inner < levelsEndless {
				inner--
			}
			levels = max(levels, inner)
		}
	}
	known[of] = min(levels+ownLevel(of, codec), levelsEndless)
	return known[of]
}

// isInlined says whether a field's own fields are those of the struct that it is in.
func isInlined(field reflect.StructField) bool {
	of := field.Type
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return field.Anonymous && of.Kind() == reflect.Struct
}

// levelsWritten is levelsOf for what writes itself: as text or bytes, which have no levels, or as it likes.
func levelsWritten(of reflect.Type, codec byte) int {
	for _, by := range writers[codec] {
		if of.Implements(by) || reflect.PointerTo(of).Implements(by) {
			if by == textWriter || by == bytesWriter {
				return 0
			}
			return levelsEndless
		}
	}
	return 0
}

// ownLevel is 1 of what is a list, a map or a struct to a codec.
func ownLevel(of reflect.Type, codec byte) int {
	switch kind := of.Kind(); {
	case kind != reflect.Slice && kind != reflect.Array && kind != reflect.Map && kind != reflect.Struct || writes(of, codec):
		return 0
	case kind == reflect.Slice && of.Elem().Kind() == reflect.Uint8, kind == reflect.Array && of.Elem().Kind() == reflect.Uint8 && codec == codecPack:
		return 0
	}
	return 1
}

// checkPayload refuses a value's bytes that are nested too deep or, in MessagePack, promise more than is there: before anything is made of them,
// as its decoder makes room for what is promised, and goes as deep as they do. What else is wrong is for the decoders to say.
func checkPayload(data []byte, codec byte) error {
	if codec == codecJSON {
		return checkText(data)
	}
	return checkPacked(data)
}

func checkPacked(data []byte) error {
	// How many values are still to come on each level, in maps keys and values; the value itself is the first.
	var left [levelsMax + 1]uint64
	left[0] = 1
	isMap, key := false, []byte(nil)
	for level := 0; level >= 0; {
		if left[level] == 0 {
			level--
			continue
		}
		isKey := isMap && level == 1 && left[1]%2 == 0
		left[level]--
		if len(data) == 0 {
			return errCut
		}
		what, size, head := headOf(data)
		switch {
		case what == packWrong:
			return fmt.Errorf("byte %#x begins an extension type, or nothing that is known", data[0])
		case uint64(len(data)) < uint64(head)+size:
			// What is in a list or a map has a byte at least.
			return errCut
		case what == packText && isKey:
			key = data[head : uint64(head)+size]
		}
		data = data[head:]
		if what == packText || what == packPlain {
			data = data[size:]
			continue
		}
		if level == levelsMax {
			return &nestingError{field: string(key), isRead: true}
		}
		isMap = isMap || level == 0 && what == packMap
		level++
		left[level] = size
		if what == packMap {
			left[level] = 2 * size
		}
	}
	return nil
}

type packHead byte

const (
	packWrong packHead = iota
	packPlain
	packText
	packList
	packMap
)

// headOf says what a value in MessagePack is, how many bytes or elements follow its head, and how many bytes that has. Of a head that is cut it says
// that more follows than there is.
func headOf(data []byte) (what packHead, size uint64, head int) {
	first := data[0]
	switch {
	case first < 0x80 || first >= 0xe0:
		return packPlain, 0, 1
	case first < 0x90:
		return packMap, uint64(first & 0xf), 1
	case first < 0xa0:
		return packList, uint64(first & 0xf), 1
	case first < 0xc0:
		return packText, uint64(first & 0x1f), 1
	}
	form := packForms[first-0xc0]
	if form.counts == 0 {
		return form.what, uint64(form.size), 1
	}
	if len(data) <= form.counts {
		return form.what, uint64(len(data)), 1
	}
	var wide [8]byte
	copy(wide[8-form.counts:], data[1:1+form.counts])
	return form.what, binary.BigEndian.Uint64(wide[:]), 1 + form.counts
}

// packForms are those that begin with 0xc0 and above: what they are, and the bytes that follow, or over how many bytes their number goes.
var packForms = [0x20]struct {
	what         packHead
	size, counts int
}{
	0x00: {packPlain, 0, 0}, 0x02: {packPlain, 0, 0}, 0x03: {packPlain, 0, 0},
	0x04: {packPlain, 0, 1}, 0x05: {packPlain, 0, 2}, 0x06: {packPlain, 0, 4},
	0x0a: {packPlain, 4, 0}, 0x0b: {packPlain, 8, 0},
	0x0c: {packPlain, 1, 0}, 0x0d: {packPlain, 2, 0}, 0x0e: {packPlain, 4, 0}, 0x0f: {packPlain, 8, 0},
	0x10: {packPlain, 1, 0}, 0x11: {packPlain, 2, 0}, 0x12: {packPlain, 4, 0}, 0x13: {packPlain, 8, 0},
	0x19: {packText, 0, 1}, 0x1a: {packText, 0, 2}, 0x1b: {packText, 0, 4},
	0x1c: {packList, 0, 2}, 0x1d: {packList, 0, 4}, 0x1e: {packMap, 0, 2}, 0x1f: {packMap, 0, 4},
}

// checkText looks at brackets alone.
func checkText(data []byte) error {
	level, isMap, key, text := 0, false, []byte(nil), []byte(nil)
	for at := 0; at < len(data); at++ {
		switch data[at] {
		case '"':
			begin := at + 1
			for at = begin; at < len(data) && data[at] != '"'; at++ {
				if data[at] == '\\' {
					at++
				}
			}
			text = data[begin:min(at, len(data))]
		case ':':
			if level == 1 && isMap {
				key = text
			}
		case '[', '{':
			isMap = isMap || level == 0 && data[at] == '{'
			if level++; level > levelsMax {
				return &nestingError{field: string(key), isRead: true}
			}
		case ']', '}':
			level--
		}
	}
	return nil
}

var errCut = errors.New("it is cut: it promises more than is there")

const (
	// levelsMax is how deep what is read or written here may be nested: nodes read 64 levels of MessagePack, and write JSON over into it.
	levelsMax = 64
	// levelsEndless is more than are allowed.
	levelsEndless = levelsMax + 1
	// hopsMax is how many pointers and interfaces may be on the way to one value.
	hopsMax = 1024
)
