package greenroom

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTimersOfAnActivationAreBounded(t *testing.T) {
	var held timers
	for n := range timersMax {
		if err := held.add(strconv.Itoa(n), time.Hour, true); err != nil {
			t.Fatal(err)
		}
	}
	failure := new(Failure)
	if err := held.add("more", time.Hour, true); !errors.Is(err, ErrRefused) || !errors.As(err, &failure) || failure.Reason != "Overloaded" {
		t.Fatal(err)
	}
	held.forget("0")
	if err := held.add("once", 0, false); err != nil {
		t.Fatal(err)
	}
	// One that fires once has fired.
	if err := held.add("more", time.Hour, true); err != nil {
		t.Fatal(err)
	}
}

// Later is when a reminder comes, in seconds.
type Later struct{ Seconds int }

func (d *debtor) Set(cx *Cx, a Later) (None, error) {
	got <- cx.Remind(time.Duration(a.Seconds)*time.Second, 0, "owes", None{})
	return None{}, nil
}

func TestAReminderBeforeNowIsRefusedWhereItIsSet(t *testing.T) {
	got = make(chan error, 16)
	p := hosting(t, Kind[debtor]())
	p.seat(1, nil)
	p.turn("set", Later{-5})
	if err := next(t, got); err == nil || !strings.Contains(err.Error(), "no such time") {
		t.Fatal(err)
	}
	p.end()
}
