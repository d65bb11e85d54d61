package greenroom

import (
	"fmt"
	"maps"
	"unicode/utf8"
)

// The tags of what a message carries along.
const (
	tagContext, tagPrincipal, tagIdempotencyKey, tagCallingSeat = 1, 7, 14, 15
	carriedMax                                                  = 16 << 10
)

// RequestContext has the pairs of the request context that came with the turn's message.
func (c *Cx) RequestContext() map[string]string {
	found := map[string]string{}
	for pairs := c.came(tagContext); len(pairs.data) > 0; {
		key, value := pairs.text(), pairs.text()
		if pairs.err == nil {
			found[key] = value
		}
	}
	return found
}

// Principal is on whose behalf the turn is; empty if on nobody's.
func (c *Cx) Principal() string {
	named := c.came(tagPrincipal)
	return named.text()
}

func (c *Cx) came(wanted uint64) reader {
	if c.turn == nil {
		return reader{}
	}
	for fields := (reader{data: c.turn.came}); len(fields.data) > 0; {
		tag, field := fields.varint(), fields.block()
		if tag == wanted {
			return reader{data: field}
		}
	}
	return reader{}
}

// With gives a caller whose messages carry value under key in their request context, and so do all calls that are made on their behalf.
func With(c Caller, key, value string) Caller {
	given := carryingOf(c)
	given.context = maps.Clone(given.context)
	if given.context == nil {
		given.context = map[string]string{}
	}
	given.context[key] = value
	return given
}

// Idempotent gives a caller for a call that has an idempotency key: among all calls of the reliable actor with this key it runs once, and
// the others get the answer that was recorded. An actor that is not reliable refuses it.
func Idempotent(c Caller, key string) Caller {
	given := carryingOf(c)
	given.idempotencyKey = &key
	return given
}

// carrying is a caller whose messages carry something along.
type carrying struct {
	Caller
	context        map[string]string
	idempotencyKey *string
}

func carryingOf(c Caller) *carrying {
	if given, is := c.(*carrying); is {
		own := *given
		return &own
	}
	return &carrying{Caller: c}
}

// carried is what the messages of a caller carry, as it is in a Call.
func carried(c Caller) (batch, error) {
	given, is := c.(*carrying)
	if !is {
		return nil, nil
	}
	var all batch
	if len(given.context) > 0 {
		var pairs batch
		for key, value := range given.context {
			if !utf8.ValidString(key) || !utf8.ValidString(value) {
				return nil, refused("Invalid", map[string]any{"field": "context", "message": fmt.Sprintf("%.80q: %.80q is no UTF-8: carry another text", key, value)})
			}
			pairs.text(key).text(value)
		}
		all.varint(tagContext).block(pairs)
	}
	if given.idempotencyKey != nil {
		all.varint(tagIdempotencyKey).text(*given.idempotencyKey)
	}
	if len(all) > carriedMax {
		return nil, refused("Invalid", map[string]any{"field": "context", "message": "what the call carries is over 16 KiB; carry less"})
	}
	return all, nil
}

// withSeat adds the seat to what a call carries that no turn makes: while a hook of the seat runs, the call is part of what waits for the hook.
func withSeat(carried batch, s *seat, t *turn) batch {
	if s == nil || t != nil {
		return carried
	}
	var number batch
	number.varint(s.number)
	laden := append(batch(nil), carried...)
	laden.varint(tagCallingSeat).block(number)
	if len(laden) > carriedMax {
		return carried
	}
	return laden
}
