package greenroom

import (
	"errors"
	"strings"
	"testing"
)

func TestNamesThatCannotBeAreRefusedAndTheLaneGoesOn(t *testing.T) {
	p := listening(t)
	h, err := Connect(t.Context(), "unix:"+p.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	next(t, p.joined)
	c := h.From(t.Context())
	for _, each := range []struct{ kind, key, method, says string }{
		{"tally", "", "add", "a key has 1 to 400 bytes of UTF-8"},
		{"tally", "\xff", "add", "a key has 1 to 400 bytes of UTF-8"},
		{"tally", strings.Repeat("k", 401), "add", "a key has 1 to 400 bytes of UTF-8"},
		{"tally", strings.Repeat("/", 134), "add", "a key has 1 to 400 bytes of UTF-8"},
		{"tally", "..", "add", "neither . nor .."},
		{"", "t", "add", "is no name of a kind or a method"},
		{strings.Repeat("k", 129), "t", "add", "is no name of a kind or a method"},
		{"tally", "t", "\xff", `"\xff" is no name of a kind or a method`},
	} {
		if _, err := CallNamed[int](c, each.kind, each.key, each.method, by{1}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), each.says) {
			t.Errorf("%q: %v", each.says, err)
		}
	}
	if err := Send(c, Of[tally](c, "\xff"), (*tally).Add, by{1}); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	if _, err := CallNamed[int](With(c, "tenant", "\xff"), "tally", "t", "add", by{1}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "carry another text") {
		t.Error(err)
	}
	if len(h.lanes()) != 1 {
		t.Fatal("the lane is gone")
	}
}
