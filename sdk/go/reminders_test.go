package greenroom

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

// debtor asks for its reminders, and shows a test what it gets.
type debtor struct{}

func (d *debtor) Owes(cx *Cx, _ None) (None, error) {
	reminders, err := cx.Reminders()
	if err == nil {
		err = owed(reminders)
	}
	got <- err
	return None{}, nil
}

// owed is a list of reminders as an error, which a test's channel has.
type owed []Reminder

func (o owed) Error() string { return "none is wrong" }

func TestRemindersOfEachKindAreListed(t *testing.T) {
	got = make(chan error, 16)
	p := hosting(t, Kind[debtor]())
	p.seat(1, nil)
	lists := func(answer any) error {
		t.Helper()
		p.turn("owes", None{})
		asked := p.hear(tAsk)
		request := asked.varint()
		asked.varint()
		asked.varint()
		if operation := asked.u8(); operation != 8 {
			t.Fatalf("it asks for operation %d", operation)
		}
		p.reply(request, answer)
		err := next(t, got)
		p.end()
		return err
	}
	due := time.UnixMilli(1_800_000_000_000)
	err := lists([]any{
		map[string]any{"name": "dun", "method": "dun", "due_ms": due.UnixMilli(), "every_ms": nil, "cron": nil},
		map[string]any{"name": "beat", "method": "dun", "due_ms": due.UnixMilli(), "every_ms": 60_000, "cron": nil},
		map[string]any{"name": "report", "method": "report", "due_ms": due.UnixMilli(), "every_ms": nil, "cron": "0 9 * * 1-5", "more": 1},
	})
	expected := owed{
		{Name: "dun", Method: "dun", Due: due}, {Name: "beat", Method: "dun", Due: due, Every: time.Minute},
		{Name: "report", Method: "report", Due: due, Cron: "0 9 * * 1-5"},
	}
	if !reflect.DeepEqual(err, expected) {
		t.Fatalf("%#v", err)
	}
	if err := lists([]any{}); !reflect.DeepEqual(err, owed{}) {
		t.Fatalf("%#v", err)
	}
	if err := lists("none"); !errors.Is(err, ErrUnknown) || lacking(err.Error(), "the reminders of debtor/lobby") != nil {
		t.Fatal(err)
	}
}
