// Package greenroom hosts virtual actors written in Go, and calls them: a Greenroom cluster places, finds and keeps them single.
package greenroom

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// None is the arguments, or the reply, of a method that has none.
type None struct{}

// KindOf is a kind, as Serve takes it.
type KindOf struct {
	name    string
	of      reflect.Type
	methods []*method
	// kept are the fields that a journal keeps of a reliable actor, each by itself.
	kept        []kept
	options     options
	description []byte
	digest      string
	err         error
}

type kept struct {
	name  string
	index []int
}

type options struct {
	name                        string
	persistent, onTurn, travels bool
	reliable                    bool
	version, compatible         uint16
	stateVersion                byte
	idle, savedAfter            time.Duration
	restarts                    bool
	placement, store            string
	mailbox                     uint32
	// start is a state machine's first state, and handling what becomes of messages by their names.
	start    string
	handling map[string]In
}

// Option says something of a kind.
type Option func(*options)

// Named gives a kind another name than its type's in snake case.
func Named(name string) Option { return func(o *options) { o.name = name } }

// Persistent keeps the exported fields of the type as the actor's state: saved by Cx.Save.
func Persistent() Option { return func(o *options) { o.persistent = true } }

// SavedOnTurn is Persistent, and saves after each turn that has changed something: callers are answered when it is stored.
func SavedOnTurn() Option { return func(o *options) { o.persistent, o.onTurn = true, true } }

// SavedAfter is Persistent, and saves what turns have changed no later than so long after it: what came since the last save goes with a node that dies.
func SavedAfter(delay time.Duration) Option {
	return func(o *options) { o.persistent, o.onTurn, o.savedAfter = true, true, delay }
}

// Reliable keeps each exported field of the type in the nodes' journal: what a turn has changed is committed with the messages that it
// has sent, once, whatever crashes.
func Reliable() Option { return func(o *options) { o.reliable = true } }

// Starts makes a reliable actor a state machine, which begins in this state. Cx.Jump takes it to another one.
func Starts(state string) Option { return func(o *options) { o.start = state } }

// In says in which states of a state machine a message runs, and in which it waits for the next jump (Defer) or is done with, unseen
// (Ignore). "*" stands for all states that are not named. In others it is refused.
type In struct{ Run, Defer, Ignore []string }

// On says what becomes of a method's messages in the states of a state machine. One of which nothing is said runs in all of them.
func On(method any, in In) Option {
	return func(o *options) {
		if o.handling == nil {
			o.handling = map[string]In{}
		}
		name := fmt.Sprint(method)
		if reflect.TypeOf(method) != nil && reflect.TypeOf(method).Kind() == reflect.Func {
			name = nameOf(method)
		}
		o.handling[name] = in
	}
}

// states is what the description says of them.
func (in In) states() (map[string]any, error) {
	found := map[string]any{}
	for _, each := range []struct {
		handling string
		states   []string
	}{{"run", in.Run}, {"defer", in.Defer}, {"ignore", in.Ignore}} {
		for _, state := range each.states {
			if _, twice := found[state]; twice {
				return nil, fmt.Errorf("the state %q is named twice", state)
			}
			found[state] = each.handling
		}
	}
	return found, nil
}

// Travels lets the exported fields go along when an actor moves to another node, or to another host of its own.
func Travels() Option { return func(o *options) { o.travels = true } }

// Version says which version of the kind's interface this is, and which is the oldest whose callers it serves.
func Version(version, compatible uint16) Option {
	return func(o *options) { o.version, o.compatible = version, compatible }
}

// StateVersion says which version of its state the type is; older ones go through its Migrate.
func StateVersion(version byte) Option { return func(o *options) { o.stateVersion = version } }

// Idle says how long an activation lasts without a message.
func Idle(after time.Duration) Option { return func(o *options) { o.idle = after } }

// Mailbox says how many messages may wait at one activation; what comes then is refused as Overloaded.
func Mailbox(most uint32) Option { return func(o *options) { o.mailbox = most } }

// Placement says where activations begin: "balanced", "local", "random", "hash", "role:NAME", or by a name of the nodes' own.
func Placement(name string) Option { return func(o *options) { o.placement = name } }

// Store says in which of the nodes' stores a persistent kind's state is kept, by its name there.
func Store(name string) Option { return func(o *options) { o.store = name } }

// RestartOnError makes the instance of an actor that keeps nothing anew when an exclusive turn panics, or fails with an error which is none of Fail.
// One that is persistent or reliable is made anew in any case.
func RestartOnError() Option { return func(o *options) { o.restarts = true } }

type method struct {
	name string
	// written is its name in Go.
	written   string
	index     int
	isRead    bool
	isStream  bool
	run       reflect.Value
	arguments reflect.Type
	// hasAny says whether its arguments may hold interfaces.
	hasAny bool
}

// Activated is what a type may have to be told of its activation: an error refuses it.
type Activated interface{ Activated(*Cx) error }

// Deactivating is what a type may have to be told of the activation's end.
type Deactivating interface{ Deactivating(*Cx, string) }

// Migrates is what a type has to read a state that an older version wrote.
type Migrates interface {
	Migrate(version byte, state map[string]any) error
}

// Kind reads what T has: its exported methods of the form func(*Cx, A) (R, error), or of (iter.Seq2[R, error], error) for
// streams. One with a pointer receiver is an exclusive turn, one with a value receiver a read.
func Kind[T any](said ...Option) KindOf {
	of := reflect.TypeFor[T]()
	k := KindOf{of: of, options: options{name: snake(of.Name()), version: 1, compatible: 1, stateVersion: 1}}
	for _, say := range said {
		say(&k.options)
	}
	k.name = k.options.name
	if kind := of.Kind(); kind == reflect.Pointer || kind == reflect.Interface {
		k.err = fmt.Errorf("greenroom.Kind[%s] names a %s: name the type that has the fields, without a *", of, kind)
		return k
	}
	pointer := reflect.PointerTo(of)
	for at := range pointer.NumMethod() {
		found := pointer.Method(at)
		if found.Name == "Activated" || found.Name == "Deactivating" || found.Name == "Migrate" {
			continue
		}
		form := found.Type
		if form.NumIn() != 3 || form.In(1) != reflect.TypeFor[*Cx]() || form.NumOut() != 2 || form.Out(1) != reflect.TypeFor[error]() {
			k.err = fmt.Errorf("kind %q: %s.%s is not of the form func(*greenroom.Cx, A) (R, error): make it so, or do not export it", k.name, of, found.Name)
			return k
		}
		m := &method{
			name: snake(found.Name), written: found.Name, index: len(k.methods), isStream: isStream(form.Out(0)), run: found.Func, arguments: form.In(2),
		}
		if k.err = m.check(of); k.err != nil {
			k.err = fmt.Errorf("kind %q: %w", k.name, k.err)
			return k
		}
		if at := slices.IndexFunc(k.methods, func(other *method) bool { return other.name == m.name }); at >= 0 {
			k.err = fmt.Errorf("kind %q: the methods %s and %s of %s are both called %s on the wire: give one of them another name", k.name, k.methods[at].written, found.Name, of, m.name)
			return k
		}
		_, isRead := of.MethodByName(found.Name)
		m.isRead, m.hasAny = isRead || m.isStream, holdsAny(m.arguments)
		k.methods = append(k.methods, m)
	}
	if len(k.methods) == 0 {
		k.err = fmt.Errorf("%s has no method that callers have: export at least one", of)
	}
	if !regexp.MustCompile(`^[\w.-]{1,64}$`).MatchString(k.name) {
		k.err = fmt.Errorf("kind %q is not 1 to 64 letters, digits, _, - and .: give it another name by greenroom.Named", k.name)
	}
	if o := k.options; o.reliable && (o.persistent || o.travels || o.restarts || o.placement != "" || o.store != "") {
		k.err = fmt.Errorf("%s is reliable, which says already where it is and what is kept; leave the other options out", of)
	}
	if o := k.options; o.store != "" && !o.persistent {
		k.err = fmt.Errorf("%s keeps nothing in the store %q: say Persistent or SavedOnTurn too, or leave Store out", of, o.store)
	}
	if o := k.options; o.start != "" && !o.reliable || o.start == "" && o.handling != nil {
		k.err = fmt.Errorf("%s is no state machine: say both Reliable and Starts", of)
	}
	for name := range k.options.handling {
		if !slices.ContainsFunc(k.methods, func(m *method) bool { return m.name == name }) {
			k.err = fmt.Errorf("%s has no method %s, of which On says something", of, name)
		}
	}
	if o := k.options; k.err == nil && (o.persistent || o.reliable || o.travels) {
		if unfit := misfitOf(of, isState); unfit != nil {
			k.err = fmt.Errorf("kind %q: %s", k.name, unfit.says("the state of "+of.String()))
		}
	}
	if k.options.reliable && k.err == nil {
		k.keep()
	}
	k.describe()
	return k
}

// check says why a method of a type cannot be served.
func (m *method) check(of reflect.Type) error {
	where := of.String() + "." + m.written
	answer := m.run.Type().Out(0)
	switch {
	case m.isStream:
		answer = answer.In(0).In(0)
	case answer.Kind() == reflect.Func:
		return fmt.Errorf("%s answers with a %s, which cannot travel: answer with a value, or with an iter.Seq2[R, error], which is a stream", where, answer)
	}
	if unfit := misfitOf(m.arguments, isArguments); unfit != nil {
		return errors.New(unfit.says("the arguments of " + where))
	}
	if unfit := misfitOf(answer, isAnswer); unfit != nil && m.isStream {
		return errors.New(unfit.says("an item of the stream of " + where))
	} else if unfit != nil {
		return errors.New(unfit.says("the reply of " + where))
	}
	if !isNamed(m.arguments) {
		return fmt.Errorf("the arguments of %s are %s, but arguments go by their names: take a struct with a field for each, or greenroom.None", where, m.arguments)
	}
	return nil
}

// keep finds the fields that the journal keeps.
func (k *KindOf) keep() {
	if k.of.Kind() != reflect.Struct {
		k.err = fmt.Errorf("kind %q: %s is no struct, and the journal keeps a reliable actor's fields: let a struct hold it", k.name, k.of)
		return
	}
	for name, field := range fieldsOf(k.of) {
		if _, err := reflect.New(k.of).Elem().FieldByIndexErr(field.Index); err != nil {
			k.err = fmt.Errorf("kind %q: field %q of %s is behind an embedded pointer, which is nil at first: embed the struct itself", k.name, name, k.of)
			return
		}
		k.kept = append(k.kept, kept{name, field.Index})
	}
	slices.SortFunc(k.kept, func(a, b kept) int { return strings.Compare(a.name, b.name) })
	for at, field := range k.kept[min(1, len(k.kept)):] {
		if field.name == k.kept[at].name {
			k.err = fmt.Errorf("%s keeps two fields as %q: give one of them another name by a json tag", k.of, field.name)
		}
	}
}

func (k *KindOf) describe() {
	types, methods := newSchemas(), []any{}
	for _, m := range k.methods {
		form := m.run.Type()
		about := map[string]any{"name": m.name, "read": m.isRead, "arguments": types.inline(form.In(2)), "error": true}
		if m.isStream {
			about["stream"] = types.of(form.Out(0).In(0).In(0))
		} else {
			about["reply"] = types.of(form.Out(0))
		}
		if in, said := k.options.handling[m.name]; said {
			states, err := in.states()
			if err != nil {
				k.err = fmt.Errorf("%s of %s: %w", m.name, k.of, err)
			}
			about["states"] = states
		}
		methods = append(methods, about)
	}
	said, states := map[string]any{}, []any{}
	if k.options.persistent {
		said["persistent"], said["save"] = true, "explicit"
		switch after := k.options.savedAfter; {
		case after > 0:
			said["save"] = map[string]any{"after_ms": max(1, after.Milliseconds())}
		case k.options.onTurn:
			said["save"] = "turn"
		}
		states = append(states, map[string]any{"name": "self", "version": k.options.stateVersion})
	}
	if k.options.travels {
		said["migrate"] = true
	}
	if k.options.reliable {
		said["reliable"] = true
	}
	if k.options.start != "" {
		said["start"] = k.options.start
	}
	if k.options.idle > 0 {
		said["idle_ms"] = k.options.idle.Milliseconds()
	}
	if k.options.mailbox > 0 {
		said["mailbox"] = k.options.mailbox
	}
	if k.options.placement != "" {
		said["placement"] = k.options.placement
	}
	if k.options.store != "" {
		said["store"] = k.options.store
	}
	if k.options.restarts {
		said["on_error"] = "restart"
	}
	document := map[string]any{
		"greenroom": 1, "kind": k.name, "version": k.options.version, "compatible": k.options.compatible, "options": said,
		"methods": methods, "states": states, "topics": []any{}, "$defs": types.defs,
	}
	// Made of maps, it has no docs and no annotations, its keys are sorted, and its numbers are whole and small: these are
	// the canonical bytes.
	var text strings.Builder
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	if err := to.Encode(document); err != nil {
		k.err = err
	}
	k.description = []byte(strings.TrimSpace(text.String()))
	if size := len(k.description); size > descriptionMax && k.err == nil {
		k.err = fmt.Errorf("kind %q: its description has %d bytes, and %d are the most: let methods of %s take and give smaller types", k.name, size, descriptionMax, k.of)
	}
	sum := sha256.Sum256(k.description)
	k.digest = hex.EncodeToString(sum[:])
}

// isNamed says whether arguments of a type go by their names; of some types it is not known.
func isNamed(of reflect.Type) bool {
	switch of.Kind() {
	case reflect.Struct:
		return of != reflect.TypeFor[time.Time]()
	case reflect.Map:
		return of.Key().Kind() == reflect.String
	case reflect.Pointer:
		return isNamed(of.Elem())
	case reflect.Slice:
		// What is not read yet, as msgpack.RawMessage.
		return of.Elem().Kind() == reflect.Uint8 && of.Name() != ""
	}
	return of.Kind() == reflect.Interface
}

// descriptionMax is how many bytes a node takes of a description.
const descriptionMax = 256 << 10

// fieldsOf are a type's exported fields, by their names on the wire.
func fieldsOf(of reflect.Type) iter.Seq2[string, reflect.StructField] {
	return func(yield func(string, reflect.StructField) bool) {
		for _, field := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.IsExported() || field.Anonymous || name == "-" {
				continue
			}
			if name == "" {
				name = field.Name
			}
			if !yield(name, field) {
				return
			}
		}
	}
}

// nameOf is the wire's name of the method that a method expression names.
func nameOf(function any) string {
	at := reflect.ValueOf(function).Pointer()
	if name, known := names.Load(at); known {
		return name.(string)
	}
	whole := runtime.FuncForPC(at).Name()
	name := snake(strings.TrimSuffix(whole[strings.LastIndex(whole, ".")+1:], "-fm"))
	names.Store(at, name)
	return name
}

var names sync.Map

// snake writes ChatRoom as chat_room.
func snake(name string) string {
	name = regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(name, "${1}_$2")
	return strings.ToLower(regexp.MustCompile(`([A-Z])([A-Z][a-z])`).ReplaceAllString(name, "${1}_$2"))
}
