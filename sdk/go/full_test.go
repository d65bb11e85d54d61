package greenroom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

type leaf struct {
	List []string       `json:"list"`
	Map  map[string]int `json:"map"`
}

type hidden struct {
	List []int `json:"hidden_list"`
}

type hiddenBelow struct {
	List []int `json:"below_list"`
}

type Shown struct {
	List []int `json:"shown_list"`
}

type embeds struct {
	hidden
	*hiddenBelow
	Shown
	own []int
}

type tree struct {
	Name string  `json:"name"`
	Next *tree   `json:"next"`
	All  []*tree `json:"all"`
}

type ring struct {
	Next *ring    `json:"next"`
	List []string `json:"list"`
}

type forest map[string]forest

// byJSON writes itself in JSON, and is a struct in MessagePack.
type byJSON struct {
	List []string `json:"list"`
}

func (b byJSON) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%t", b.List == nil), nil }

// byPack writes itself in MessagePack, and is a struct in JSON.
type byPack struct {
	List []string `json:"list"`
}

func (b byPack) EncodeMsgpack(to *msgpack.Encoder) error { return to.EncodeBool(b.List == nil) }

// textList is a list that writes itself, in both.
type textList []string

func (l textList) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%t", l == nil), nil }

type zeroes struct {
	Omitted []int `json:"omitted,omitempty"`
	Zero    []int `json:"zero,omitzero"`
	Left    []int `json:"-"`
	Whole   leaf  `json:"whole,omitzero"`
}

// written is what a reader finds: JSON of what went out in the codec.
func written(t *testing.T, value any, codec byte) string {
	t.Helper()
	out, err := payload(value, codec, 1)
	if err != nil {
		t.Fatal(err)
	}
	if codec == codecJSON {
		return string(out[2:])
	}
	var found any
	if err := msgpack.Unmarshal(out[2:], &found); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sorted is the same JSON with its members in order.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var found any
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatal(text, err)
	}
	again, _ := json.Marshal(found)
	return string(again)
}

func TestNoListAndNoMapGoesOutAsNull(t *testing.T) {
	var none []string
	empty := `{"list":[],"map":{}}`
	for name, c := range map[string]struct {
		value      any
		pack, json string
	}{
		"nothing":                {nil, `null`, ``},
		"a list":                 {none, `[]`, ``},
		"a map":                  {map[string]int(nil), `{}`, ``},
		"bytes":                  {[]byte(nil), `""`, ``},
		"a struct":               {leaf{}, empty, ``},
		"a pointer":              {&leaf{}, empty, ``},
		"a pointer to nothing":   {(*leaf)(nil), `null`, ``},
		"a pointer to a list":    {&none, `[]`, ``},
		"a pointer to a pointer": {ptr(&leaf{}), empty, ``},
		"a nested struct":        {struct{ A struct{ B leaf } }{}, `{"A":{"B":` + empty + `}}`, ``},
		"a list of structs":      {[]leaf{{}, {List: []string{"x"}}}, `[` + empty + `,{"list":["x"],"map":{}}]`, ``},
		"a list of lists":        {[][]string{nil, {"x"}}, `[[],["x"]]`, ``},
		"a map of lists":         {map[string][]string{"a": nil, "b": {"x"}}, `{"a":[],"b":["x"]}`, ``},
		"a map of pointers":      {map[string]*leaf{"a": {}, "b": nil}, `{"a":` + empty + `,"b":null}`, ``},
		"an array of lists":      {[2][]string{nil, {"x"}}, `[[],["x"]]`, ``},
		"an array of structs":    {struct{ A [1]leaf }{}, `{"A":[` + empty + `]}`, ``},
		"an array of bytes":      {struct{ A [0]byte }{}, `{"A":""}`, `{"A":[]}`},
		"interfaces": {
			struct{ A, B, C, D any }{none, leaf{}, nil, &leaf{}}, `{"A":[],"B":` + empty + `,"C":null,"D":` + empty + `}`, ``,
		},
		"a list of interfaces": {[]any{none, nil, 1, map[string]any{"a": none}}, `[[],null,1,{"a":[]}]`, ``},
		"a map of interfaces":  {map[string]any{"a": none, "b": nil, "c": leaf{}}, `{"a":[],"b":null,"c":` + empty + `}`, ``},
		"interfaces with methods": {
			struct{ A fmt.Stringer }{named{}}, `{"A":{"List":[]}}`, ``,
		},
		"embedded structs": {
			embeds{hiddenBelow: &hiddenBelow{}}, `{"below_list":[],"hidden_list":[],"shown_list":[]}`, ``,
		},
		"a recursive struct": {
			tree{Next: &tree{}, All: []*tree{{Name: "x"}, nil}},
			`{"all":[{"all":[],"name":"x","next":null},null],"name":"","next":{"all":[],"name":"","next":null}}`, ``,
		},
		"a recursive struct whose list comes last": {ring{Next: &ring{}}, `{"list":[],"next":{"list":[],"next":null}}`, ``},
		"a recursive map":                          {forest{"a": {"b": nil}}, `{"a":{"b":{}}}`, ``},
		"what writes itself in JSON":               {byJSON{}, `{"list":[]}`, `true`},
		"what writes itself in MessagePack":        {byPack{}, `true`, `{"list":[]}`},
		"a list that writes itself":                {struct{ A textList }{}, `{"A":null}`, `{"A":"true"}`},
		"raw JSON":                                 {struct{ A json.RawMessage }{}, `{"A":null}`, ``},
		"times and numbers": {
			struct {
				A time.Time
				B *big.Int
			}{time.Unix(0, 0).UTC(), nil}, `{"A":"1970-01-01T00:00:00Z","B":null}`, ``,
		},
		// omitzero is of JSON alone.
		"what is left out": {zeroes{}, `{"whole":` + empty + `,"zero":[]}`, `{}`},
		"what is not left out": {
			zeroes{Whole: leaf{List: []string{}}, Zero: []int{}}, `{"whole":` + empty + `,"zero":[]}`, ``,
		},
	} {
		if c.json == "" {
			c.json = c.pack
		}
		if found := sorted(t, written(t, c.value, codecPack)); found != c.pack {
			t.Errorf("%s in MessagePack: %s, not %s", name, found, c.pack)
		}
		if found := sorted(t, written(t, c.value, codecJSON)); found != c.json {
			t.Errorf("%s in JSON: %s, not %s", name, found, c.json)
		}
	}
}

type named struct{ List []int }

func (n named) String() string { return "" }

func ptr[T any](value T) *T { return &value }

func TestWhatIsSharedWithTheActorIsNotChanged(t *testing.T) {
	made := func() any {
		return &struct {
			Leaf    leaf
			Pointer *leaf
			List    []leaf
			Lists   [][]int
			Map     map[string]*leaf
			Maps    map[string]map[string]int
			Array   *[1]leaf
			Any     any
			Anys    []any
			Embeds  embeds
			own     []int
		}{
			Pointer: &leaf{}, List: make([]leaf, 1), Lists: make([][]int, 2), Map: map[string]*leaf{"a": {}}, Maps: map[string]map[string]int{"a": nil},
			Array: &[1]leaf{}, Any: &leaf{}, Anys: []any{[]int(nil), map[string]any{"a": []int(nil)}},
			Embeds: embeds{hiddenBelow: &hiddenBelow{}},
		}
	}
	for _, codec := range []byte{codecPack, codecJSON} {
		value := made()
		if found := full(value, codec); reflect.DeepEqual(found, value) {
			t.Error("nothing is filled")
		}
		if !reflect.DeepEqual(value, made()) {
			t.Errorf("%+v is changed", value)
		}
	}
}

func TestWhatHasNothingToFillIsNotCopied(t *testing.T) {
	value := &struct {
		Map   map[string][]int
		List  []leaf
		Array [1][]int
		Any   any
		embeds
	}{
		map[string][]int{"a": {1}}, []leaf{{[]string{}, map[string]int{}}}, [1][]int{{}}, []int{},
		embeds{hidden: hidden{[]int{}}, Shown: Shown{[]int{}}},
	}
	if full(value, codecPack) != any(value) {
		t.Error("it is another one")
	}
}

func TestACircleIsRefusedByJSONAsEver(t *testing.T) {
	circle := &ring{}
	circle.Next = circle
	if _, err := payload(circle, codecJSON, 1); err == nil || !strings.Contains(err.Error(), "cycle") {
		t.Fatal(err)
	}
}

func TestATimeByItselfTravelsAsText(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	written, err := payload(when, codecPack, 1)
	if want, _ := payload(when.Format(time.RFC3339Nano), codecPack, 1); err != nil || !bytes.Equal(written, want) {
		t.Fatalf("%q, %v", written, err)
	}
	var found time.Time
	if err := read(written, &found); err != nil || !found.Equal(when) {
		t.Fatal(found, err)
	}
}

// Benchmarks of full, beside the encoding that comes with it in any case.

type plain struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

type listed struct {
	Name string   `json:"name"`
	List []string `json:"list"`
}

func BenchmarkFull(b *testing.B) {
	for _, c := range []struct {
		name  string
		value any
	}{
		{"without lists", plain{"ada", 7}},
		{"with a list", listed{"ada", []string{"a", "b", "c"}}},
		{"with a nil list", listed{"ada", nil}},
		{"with ten of them", struct{ All []listed }{make([]listed, 10)}},
		{"of any", map[string]any{"name": "ada", "count": 7}},
	} {
		b.Run(c.name+"/full", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				full(c.value, codecPack)
			}
		})
		b.Run(c.name+"/full and encoding", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = payload(c.value, codecPack, 1)
			}
		})
		b.Run(c.name+"/encoding", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = pack(c.value)
			}
		})
	}
}
