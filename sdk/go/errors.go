package greenroom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// What a call may end with, other than its reply: for errors.Is.
var (
	// ErrRefused: nothing ran, a retry cannot do anything twice.
	ErrRefused = errors.New("refused, nothing ran")
	// ErrUnknown: the method may have run, wholly or in part.
	ErrUnknown = errors.New("it may have run")
	// ErrCycle: the call would have waited for itself. Nothing ran.
	ErrCycle = errors.New("the call chain would deadlock")
	// ErrFenced: this host may no longer act, and what the turn does counts no more. It is an ErrUnknown, too.
	ErrFenced = fmt.Errorf("%w: this host's session has ended, the turn may no longer act", ErrUnknown)
)

// Failure is a call's end without the method's own error.
type Failure struct {
	// Family is ErrRefused, ErrUnknown or ErrCycle.
	Family error
	// Reason is the name of the case, as Overloaded.
	Reason string
	// Detail is what the node says of it.
	Detail map[string]any
	// Path is the chain of an ErrCycle, the first caller first.
	Path []string
	// cause is why a context has ended, if that ended the call.
	cause error
}

// Is says of a call that its context has ended also how: context.DeadlineExceeded, context.Canceled, or the context's own cause.
func (f *Failure) Is(other error) bool { return f.cause != nil && errors.Is(f.cause, other) }

func (f *Failure) Unwrap() error { return f.Family }

func (f *Failure) Error() string {
	switch {
	case len(f.Path) > 0:
		return fmt.Sprintf("%v: %s", f.Family, strings.Join(f.Path, " -> "))
	case f.Detail["message"] != nil:
		return fmt.Sprintf("%v: %s: %v", f.Family, f.Reason, f.Detail["message"])
	case len(f.Detail) > 0:
		return fmt.Sprintf("%v: %s %v", f.Family, f.Reason, f.Detail)
	}
	return fmt.Sprintf("%v: %s", f.Family, f.Reason)
}

// RetryAfter says how long to wait before a retry can help; false where none will.
func (f *Failure) RetryAfter() (time.Duration, bool) {
	switch {
	case f.Family != ErrRefused:
		return 0, false
	case f.Reason == "Overloaded" || f.Reason == "Moved":
		return 50 * time.Millisecond, true
	}
	final := " UnknownKind UnknownMethod Invalid InvalidKey DeadLetter Unbound Denied TickOver Leaving Unsendable "
	return time.Second, !strings.Contains(final, " "+f.Reason+" ")
}

func refused(reason string, detail map[string]any) error {
	return &Failure{Family: ErrRefused, Reason: reason, Detail: detail}
}

// gaveUp is what a call ends with whose context has ended: ErrFenced if its host may no longer act.
func gaveUp(c context.Context, family error, reason string) error {
	cause := context.Cause(c)
	if errors.Is(cause, ErrFenced) {
		return ErrFenced
	}
	return &Failure{Family: family, Reason: reason, Detail: map[string]any{"message": cause.Error()}, cause: errors.Join(c.Err(), cause)}
}

func unknown(reason, message string) error {
	return &Failure{Family: ErrUnknown, Reason: reason, Detail: map[string]any{"message": message}}
}

// ActorError is a method's own error: a name, and its fields.
type ActorError struct {
	Name   string
	Fields any
	value  any
}

func (e *ActorError) Error() string {
	if e.Fields == nil {
		return e.Name
	}
	return fmt.Sprintf("%s %+v", e.Name, e.Fields)
}

// Fail gives a method's own error. Its fields are a struct or a map, or nil.
func Fail(name string, fields any) error { return &ActorError{Name: name, Fields: fields} }

// Read reads the fields of an error that came from elsewhere.
func (e *ActorError) Read(into any) error {
	written, err := payload(e.Fields, codecPack, 1)
	if err == nil {
		err = read(written, into)
	}
	if err != nil {
		return fmt.Errorf("the fields of %s: %w", e.Name, err)
	}
	return nil
}

// outcome is how a turn ended that failed: its status, and its value.
func outcome(err error, where string) (byte, any) {
	var own *ActorError
	var failure *Failure
	switch {
	case errors.Is(err, ErrFenced):
		return sAbandoned, nil
	case errors.As(err, &own):
		switch {
		case own.value != nil:
			return sActorError, own.value
		case own.Fields == nil:
			return sActorError, own.Name
		}
		return sActorError, map[string]any{own.Name: own.Fields}
	case errors.As(err, &failure) && failure.Reason == "Unreadable":
		return encode(failure)
	}
	slog.Error("greenroom: a handler failed", "method", where, "error", err)
	return encode(unknown("Panicked", err.Error()).(*Failure))
}

func encode(f *Failure) (byte, any) {
	var inside any = f.Reason
	if len(f.Detail) > 0 {
		inside = map[string]any{f.Reason: f.Detail}
	}
	switch {
	case f.Family == ErrRefused && f.Reason == "Invalid":
		return sInvalid, map[string]any{"Refused": inside}
	case f.Family == ErrRefused:
		return sRefused, map[string]any{"Refused": inside}
	case f.Family == ErrCycle:
		return sCycle, map[string]any{"Cycle": f.Path}
	case f.Reason == "Panicked":
		return sPanicked, map[string]any{"Unknown": inside}
	}
	return sUnknown, map[string]any{"Unknown": inside}
}

// decode gives the error of what is no reply.
func decode(status byte, payload []byte) error {
	var value any
	if err := read(payload, &value); err != nil {
		return unknown("Unreadable", err.Error())
	}
	if status == sActorError {
		name, fields := only(value)
		return &ActorError{Name: name, Fields: fields, value: value}
	}
	family, inside := only(value)
	if list, isList := inside.([]any); isList && family == "Cycle" {
		failure := &Failure{Family: ErrCycle, Reason: "Cycle"}
		for _, entry := range list {
			failure.Path = append(failure.Path, fmt.Sprint(entry))
		}
		return failure
	}
	reason, detail := only(inside)
	failure := &Failure{Family: ErrUnknown, Reason: reason}
	failure.Detail, _ = detail.(map[string]any)
	if family == "Refused" || family == "" && (status == sRefused || status == sInvalid || status == sExpired) {
		failure.Family = ErrRefused
	}
	if reason == "TimedOut" || reason == "Expired" {
		// The node has seen it first.
		failure.cause = context.DeadlineExceeded
	}
	return failure
}

// only gives a variant's name, and what is in it.
func only(value any) (string, any) {
	switch value := value.(type) {
	case string:
		return value, nil
	case map[string]any:
		if len(value) == 1 {
			for name, inside := range value {
				return name, inside
			}
		}
	}
	return "", value
}
