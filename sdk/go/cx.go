package greenroom

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Caller is where calls come from: a turn, or a client.
type Caller interface {
	context.Context
	scope() (*seat, *turn)
	lane(kind, key string) (*lane, error)
}

// Cx is what a turn may ask of its node. As a context it ends with the turn's time, when its caller gives up, or, with the cause
// ErrFenced, when its host may no longer act.
type Cx struct {
	context.Context
	seat *seat
	turn *turn
}

func (c *Cx) scope() (*seat, *turn)              { return c.seat, c.turn }
func (c *Cx) lane(string, string) (*lane, error) { return c.seat.lane, nil }

// From is this turn as the caller of what lasts as long as of does, a context that is derived from it.
func (c *Cx) From(of context.Context) *Cx { return &Cx{of, c.seat, c.turn} }

// Key is the actor's key.
func (c *Cx) Key() string { return c.seat.key }

// Fence only rises: to be sent along to what is outside of the cluster, which then can refuse what is older.
func (c *Cx) Fence() (epoch, turn uint64) {
	if c.turn == nil {
		return c.seat.epoch, 0
	}
	return c.seat.epoch, c.turn.number
}

// Save saves the actor's state: a conditional write. Once it is done, it is stored.
func (c *Cx) Save() error {
	written, err := c.seat.dump()
	if err != nil {
		return err
	}
	var fields batch
	fields.fields([]part{{name: stateName, payload: written}})
	if _, err = c.ask(opSave, map[string]any{"state": stateName, "fields": []byte(fields)}); err == nil {
		c.seat.saved = written
	}
	return err
}

// Reload reads the state again from the store, over what the actor has of it; if nothing is stored, it stays as it is.
func (c *Cx) Reload() error {
	if err := c.keeps(); err != nil {
		return err
	}
	stored, err := c.ask(opReload, map[string]any{"state": stateName})
	if err != nil || len(stored) < 2 || bytes.Equal(stored, nothing) {
		return err
	}
	// What the store does not have is what it begins with.
	c.seat.forget()
	if err = c.seat.load(stored); err == nil {
		c.seat.saved = stored
	}
	return err
}

// Clear removes the state from the store, and gives each exported field its zero value. It is for exclusive turns.
func (c *Cx) Clear() error {
	if err := c.keeps(); err != nil {
		return err
	}
	_, err := c.ask(opClear, map[string]any{"state": stateName})
	if err == nil {
		c.seat.saved = nil
		c.seat.forget()
	}
	return err
}

// keeps is an error for an actor that keeps no state in a store.
func (c *Cx) keeps() error {
	if c.seat.kind.options.persistent {
		return nil
	}
	return fmt.Errorf("%s keeps nothing in a store: say greenroom.Persistent() of its Kind", c.seat.kind.of)
}

// After calls a method of this actor once, later. It ends with the activation. What it gives cancels it, in an exclusive turn of the actor.
func (c *Cx) After(delay time.Duration, method string, arguments any) (cancel func(), err error) {
	return c.timer(delay, 0, method, arguments)
}

// Every calls a method of this actor in each period, as long as the activation lasts. What it gives cancels it, in an exclusive turn of the
// actor.
func (c *Cx) Every(period time.Duration, method string, arguments any) (cancel func(), err error) {
	return c.timer(period, period, method, arguments)
}

// Remind sets a reminder, which is kept in the store, under the method's name; it repeats if there is a period.
func (c *Cx) Remind(after, every time.Duration, method string, of any) error {
	written, err := arguments(of)
	if err != nil {
		return unsendable(c.seat.kind.name, method, of, err)
	}
	for _, each := range []time.Duration{after, every} {
		if each < 0 {
			return fmt.Errorf("a reminder comes after so long, at least a second: %v is no such time", each)
		}
	}
	// By the node's clock; one of an older build reads the other.
	what := map[string]any{
		"name": method, "method": method, "after_ms": after.Milliseconds(), "due_ms": time.Now().Add(after).UnixMilli(), "arguments": written,
	}
	if every > 0 {
		what["every_ms"] = every.Milliseconds()
	}
	_, err = c.ask(opRemind, what)
	return err
}

// Forget cancels a reminder: once this is done, no turn of it begins.
func (c *Cx) Forget(name string) error {
	_, err := c.ask(opForget, map[string]any{"name": name})
	return err
}

// Reminder is one that is set.
type Reminder struct {
	Name   string
	Method string
	// Due is when it comes next.
	Due time.Time
	// Every is the period in which it comes again; 0 of one that does not, or has a Cron.
	Every time.Duration
	// Cron is the pattern of one that was set in another language, by which it comes again; empty of all others.
	Cron string
}

// Reminders are those of the actor that are set, in whatever language.
func (c *Cx) Reminders() ([]Reminder, error) {
	written, err := c.ask(opReminders, map[string]any{})
	if err != nil {
		return nil, err
	}
	var listed []struct {
		Name    string  `json:"name"`
		Method  string  `json:"method"`
		DueMS   int64   `json:"due_ms"`
		EveryMS *int64  `json:"every_ms"`
		Cron    *string `json:"cron"`
	}
	if err := readReply("the reminders of "+c.seat.name(), written, &listed); err != nil {
		return nil, err
	}
	found := make([]Reminder, len(listed))
	for at, each := range listed {
		found[at] = Reminder{Name: each.Name, Method: each.Method, Due: time.UnixMilli(each.DueMS)}
		if each.EveryMS != nil {
			found[at].Every = time.Duration(*each.EveryMS) * time.Millisecond
		}
		if each.Cron != nil {
			found[at].Cron = *each.Cron
		}
	}
	return found, nil
}

// Subscribe has a method of this actor called for each event of a topic, as long as the activation lasts. An event is the method's
// arguments, or the one that is called argument. Activated is the place for it.
func (c *Cx) Subscribe(topic, method, argument string) error {
	_, err := c.ask(opSubscribe, map[string]any{"topic": topic, "method": method, "argument": argument})
	return err
}

// Unsubscribe ends a subscription.
func (c *Cx) Unsubscribe(topic string) error {
	_, err := c.ask(opUnsubscribe, map[string]any{"topic": topic})
	return err
}

// Output sends a value as JSON to an outlet of the nodes', with the commit of this reliable actor's turn: at least once.
func (c *Cx) Output(outlet string, value any) error {
	written, err := payload(value, codecJSON, 1)
	if err != nil {
		return cannotWrite("the output to "+outlet, value, codecJSON, err)
	}
	return c.seat.lane.tell(c, opOutput, map[string]any{"outlet": outlet, "message": written})
}

// Create lets an actor of a reliable kind come into being with this turn's commit: its key, which was never used.
func (c *Cx) Create(kind string) (key string, err error) {
	written, err := c.ask(opCreate, map[string]any{"kind": kind})
	if err == nil {
		err = read(written, &key)
	}
	return key, err
}

// Choose gives what make gives: chance, the time, whatever neither the message nor what is stored decides. Where a test's node runs reliable turns
// twice (--rerun), the second run gets what the first one got; anywhere else nobody is asked.
func Choose[T any](c *Cx, make func() T) (T, error) {
	chosen := make()
	if !c.seat.lane.session.welcome.Rerun || !c.seat.kind.options.reliable || c.turn == nil {
		return chosen, nil
	}
	written, err := payload(chosen, codecPack, 1)
	if err != nil {
		return chosen, cannotWrite("what is chosen", chosen, codecPack, err)
	}
	if written, err = c.ask(opChosen, map[string]any{"value": written}); err != nil {
		return chosen, err
	}
	var given T
	return given, read(written, &given)
}

// Halt ends this reliable actor with its turn's commit: its state and what waits for it go.
func (c *Cx) Halt() { c.own("Halt").halts = true }

// Jump takes this state machine to another of its states, with its turn's commit: what is deferred is looked at again.
// The turn fails if nothing names that state.
func (c *Cx) Jump(state string) { c.own("Jump").jump = state }

// own is the turn, which hooks have not.
func (c *Cx) own(what string) *turn {
	if c.turn == nil {
		panic("Cx." + what + " is for turns: hooks have none, and commit nothing")
	}
	return c.turn
}

// MachineState is the state that this state machine is in, in this turn to its end; empty of what is none.
func (c *Cx) MachineState() string { return c.seat.state }

// Migrate lets the activation go to the node called node once the turns that it has begun are over. What waits for it follows. What it holds goes
// along if its kind says Travels; a Persistent one is read from its store there. It is an error, and the activation stays, if there is no such
// node, nobody hosts the kind there, or the kind says neither.
func (c *Cx) Migrate(node string) error {
	_, err := c.ask(opMigrate, map[string]any{"node": node})
	return err
}

// Deactivate ends the activation after this turn.
func (c *Cx) Deactivate() error { return c.seat.lane.tell(c, opDeactivate, map[string]any{}) }

// KeepAlive keeps the activation from ending of idleness for so long.
func (c *Cx) KeepAlive(for_ time.Duration) error {
	return c.seat.lane.tell(c, opKeepAlive, map[string]any{"for_ms": max(0, for_.Milliseconds())})
}

func (c *Cx) timer(after, every time.Duration, method string, of any) (func(), error) {
	written, err := arguments(of)
	if err != nil {
		return nil, unsendable(c.seat.kind.name, method, of, err)
	}
	name := strconv.FormatUint(c.seat.lane.number(), 10)
	if c.seat.kind.options.reliable {
		// It outlasts its lane, and is known by its name alone.
		name = rand.Text()
	}
	what := map[string]any{"name": name, "method": method, "arguments": written, "after_us": max(1, after.Microseconds())}
	if every > 0 {
		what["every_us"] = max(1, every.Microseconds())
	}
	if !c.seat.kind.options.reliable {
		if err := c.seat.timers.add(name, after, every > 0); err != nil {
			return nil, err
		}
	}
	cancel := func() {
		c.seat.timers.forget(name)
		// In the name of the turn that cancels it, which may be a later one.
		now := c
		if t := c.seat.exclusive.Load(); t != nil {
			now = &t.cx
		}
		_ = c.seat.lane.tell(now, opCancelTimer, map[string]any{"name": name})
	}
	return cancel, c.seat.lane.tell(c, opTimer, what)
}

func (c *Cx) ask(operation byte, what map[string]any) ([]byte, error) {
	return c.seat.lane.ask(c, operation, what)
}

// Ref is an actor of kind T.
type Ref[T any] struct{ target }

type target struct {
	kind, key string
	version   uint16
}

// check refuses what cannot be written as a call: the node would end the lane, with all that runs on it.
func (to target) check(method string) error {
	// So long are keys where stores escape them; the node counts in the same way.
	stored := len(to.key) + 2*(strings.Count(to.key, "/")+strings.Count(to.key, "%"))
	if stored == 0 || stored > keyMax || !utf8.ValidString(to.key) || to.key == "." || to.key == ".." {
		return refused("InvalidKey", map[string]any{"message": "a key has 1 to 400 bytes of UTF-8, where each / and % counts as three, and is neither . nor .."})
	}
	for _, name := range []string{to.kind, method} {
		if len(name) == 0 || len(name) > nameMax || !utf8.ValidString(name) {
			return refused("Invalid", map[string]any{"field": "", "message": fmt.Sprintf("%.80q is no name of a kind or a method: give 1 to 128 bytes of UTF-8", name)})
		}
	}
	return nil
}

const keyMax, nameMax = 400, 128

// Of is the actor of kind T and a key.
func Of[T any](_ Caller, key string, said ...Option) Ref[T] {
	k := options{name: snake(typeName[T]()), version: 1}
	for _, say := range said {
		say(&k)
	}
	return Ref[T]{target{k.name, key, k.version}}
}

// Call calls a method, and waits for its reply, as long as the caller's context lasts.
func Call[T, A, R any](c Caller, ref Ref[T], method func(*T, *Cx, A) (R, error), with A) (R, error) {
	return callNamed[R](c, ref.target, nameOf(method), with)
}

// Send sends a one-way message: nobody hears what becomes of it. It waits for room on the connection.
func Send[T, A, R any](c Caller, ref Ref[T], method func(*T, *Cx, A) (R, error), with A) error {
	name := nameOf(method)
	if err := ref.check(name); err != nil {
		return err
	}
	written, err := arguments(with)
	if err != nil {
		return unsendable(ref.kind, name, with, err)
	}
	l, err := c.lane(ref.kind, ref.key)
	if err != nil {
		return err
	}
	return l.call(c, 0, ref.target, name, written)
}

// CallNamed calls a method of a kind that is known by its name alone.
func CallNamed[R any](c Caller, kind, key, method string, with any) (R, error) {
	return callNamed[R](c, target{kind, key, 0}, method, with)
}

func callNamed[R any](c Caller, to target, method string, with any) (R, error) {
	var reply R
	written, _, err := call(c, to, method, with)
	if err == nil {
		err = readReply("the reply of "+to.kind+"."+method, written, &reply)
	}
	return reply, err
}

// readReply reads what a method that has run answers.
func readReply(what string, written []byte, into any) error {
	if err := read(written, into); err != nil {
		return unknown("Unreadable", cannotRead(what, written, into, err).Error())
	}
	return nil
}

// Stream calls a method that answers with a stream. The stream ends with an error if it breaks off.
func Stream[T, A, R any](c Caller, ref Ref[T], method func(*T, *Cx, A) (iter.Seq2[R, error], error), with A) iter.Seq2[R, error] {
	return stream[R](c, ref.target, nameOf(method), with)
}

func stream[R any](c Caller, to target, method string, with any) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var none R
		written, l, err := call(c, to, method, with)
		var name map[string]string
		if err == nil {
			err = readReply("the stream of "+to.kind+"."+method, written, &name)
		}
		if err != nil {
			yield(none, err)
			return
		}
		in := l.open()
		defer in.close()
		if _, err := l.ask(c, opOpenStream, map[string]any{"name": name["greenroom:stream"], "stream": in.number, "window": streamWindow}); err != nil {
			yield(none, err)
			return
		}
		for {
			written, err := in.take(c)
			if s, t := c.scope(); s != nil && err == nil {
				err = l.check(s, t)
			}
			var item R
			if err == nil && written == nil {
				return
			}
			if err == nil {
				err = readReply("an item of the stream of "+to.kind+"."+method, written, &item)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// Publish publishes to a topic: once it is done, the queues of all subscribers have it.
func Publish(c Caller, topic string, event any) error {
	err := checkNesting(reflect.ValueOf(event), codecJSON)
	var text []byte
	if err == nil {
		text, err = json.Marshal(full(event, codecJSON))
	}
	if err != nil {
		return cannotWrite("the event for "+topic, event, codecJSON, err)
	}
	_, err = CallNamed[any](c, "topics", topic, "publish", map[string]any{"event": string(text)})
	return err
}

func call(c Caller, to target, method string, with any) ([]byte, *lane, error) {
	if err := to.check(method); err != nil {
		return nil, nil, err
	}
	written, err := arguments(with)
	if err != nil {
		return nil, nil, unsendable(to.kind, method, with, err)
	}
	l, err := c.lane(to.kind, to.key)
	if err != nil {
		return nil, nil, err
	}
	status, reply, err := l.request(c, func(number uint64) error { return l.call(c, number, to, method, written) })
	if err == nil && status != sOK {
		err = decode(status, reply)
	}
	return reply, l, err
}

func typeName[T any]() string { return reflect.TypeFor[T]().Name() }
