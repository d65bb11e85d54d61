// Command probe is that of Go for the cases of `sdk/python/tests/test_languages.py`: one actor in four forms.
package main

import (
	"context"
	"errors"
	"iter"
	"log"
	"os"
	"time"

	"greenroom"
)

// Probe has a number.
type Probe struct {
	Value int `json:"value"`
}

// N is a number, and when it is to be added.
type N struct {
	Ms int `json:"ms,omitempty"`
	N  int `json:"n"`
}

// Named names an actor, and what it is to be told.
type Named struct {
	Kind      string         `json:"kind"`
	Key       string         `json:"key"`
	Method    string         `json:"method"`
	Arguments map[string]any `json:"arguments"`
	N         int            `json:"n"`
}

// Laden is what another actor is told, and what that carries along.
type Laden struct {
	Named
	Context        map[string]string `json:"context"`
	IdempotencyKey string            `json:"idempotency_key"`
}

// Any is anything.
type Any struct {
	Value any `json:"value"`
}

// Ms is a time.
type Ms struct {
	Ms int `json:"ms"`
}

// Upto is how far to count.
type Upto struct {
	Upto int `json:"upto"`
}

// At is where it broke.
type At struct {
	At int `json:"at"`
}

// Add adds.
func (p *Probe) Add(_ *greenroom.Cx, a N) (int, error) { p.Value += a.N; return p.Value, nil }

// Get shows the number.
func (p Probe) Get(*greenroom.Cx, greenroom.None) (int, error) { return p.Value, nil }

// Echo gives it back.
func (p Probe) Echo(_ *greenroom.Cx, a Any) (any, error) { return a.Value, nil }

// Fail fails as it means to.
func (p *Probe) Fail(*greenroom.Cx, greenroom.None) (int, error) {
	p.Value++
	return 0, greenroom.Fail("Broke", At{p.Value})
}

// Panic fails as it does not mean to.
func (p *Probe) Panic(*greenroom.Cx, greenroom.None) (greenroom.None, error) {
	p.Value += 1000
	return greenroom.None{}, errors.New("in the middle")
}

// Call calls another actor.
func (p *Probe) Call(cx *greenroom.Cx, a Named) (any, error) {
	return greenroom.CallNamed[any](cx, a.Kind, a.Key, a.Method, a.Arguments)
}

// Carry calls another actor, with a context and an idempotency key if there are any.
func (p *Probe) Carry(cx *greenroom.Cx, a Laden) (any, error) {
	caller := greenroom.Caller(cx)
	for key, value := range a.Context {
		caller = greenroom.With(caller, key, value)
	}
	if a.IdempotencyKey != "" {
		caller = greenroom.Idempotent(caller, a.IdempotencyKey)
	}
	return greenroom.CallNamed[any](caller, a.Kind, a.Key, a.Method, a.Arguments)
}

// Told gives the context that it was called with.
func (p Probe) Told(cx *greenroom.Cx, _ greenroom.None) (map[string]string, error) {
	return cx.RequestContext(), nil
}

// Send sends another probe what is taken from this one.
func (p *Probe) Send(cx *greenroom.Cx, a Named) (int, error) {
	p.Value -= a.N
	to := greenroom.Of[Probe](cx, a.Key, greenroom.Named(a.Kind))
	return p.Value, greenroom.Send(cx, to, (*Probe).Add, N{N: a.N})
}

// Later adds after a while.
func (p *Probe) Later(cx *greenroom.Cx, a N) (greenroom.None, error) {
	_, err := cx.After(time.Duration(a.Ms)*time.Millisecond, "add", N{N: a.N})
	return greenroom.None{}, err
}

// Remind adds after a while, although the actor sleeps.
func (p *Probe) Remind(cx *greenroom.Cx, a N) (greenroom.None, error) {
	return greenroom.None{}, cx.Remind(time.Duration(a.Ms)*time.Millisecond, 0, "add", N{N: a.N})
}

// Rest ends the activation.
func (p *Probe) Rest(cx *greenroom.Cx, _ greenroom.None) (greenroom.None, error) {
	return greenroom.None{}, cx.Deactivate()
}

// Node names a node.
type Node struct {
	Node string `json:"node"`
}

// Move goes to another node.
func (p *Probe) Move(cx *greenroom.Cx, a Node) (greenroom.None, error) {
	return greenroom.None{}, cx.Migrate(a.Node)
}

// Where tells the process.
func (p Probe) Where(*greenroom.Cx, greenroom.None) (int, error) { return os.Getpid(), nil }

// Slow takes its time.
func (p *Probe) Slow(_ *greenroom.Cx, a Ms) (int, error) {
	p.Value++
	time.Sleep(time.Duration(a.Ms) * time.Millisecond)
	return p.Value, nil
}

// Look takes its time, too.
func (p Probe) Look(_ *greenroom.Cx, a Ms) (int, error) {
	time.Sleep(time.Duration(a.Ms) * time.Millisecond)
	return p.Value, nil
}

// Count counts.
func (p Probe) Count(_ *greenroom.Cx, a Upto) (iter.Seq2[int, error], error) {
	return func(yield func(int, error) bool) {
		for number := range a.Upto {
			if !yield(number, nil) {
				return
			}
		}
	}, nil
}

func main() {
	err := greenroom.Serve(context.Background(),
		greenroom.Kind[Probe](greenroom.Named("go_volatile")),
		greenroom.Kind[Probe](greenroom.Named("go_traveller"), greenroom.Travels()),
		greenroom.Kind[Probe](greenroom.Named("go_persistent"), greenroom.SavedOnTurn()),
		greenroom.Kind[Probe](greenroom.Named("go_reliable"), greenroom.Reliable()),
	)
	if err != nil {
		log.Fatal(err)
	}
}
