package greenroom

import (
	"context"
	"sync"
	"time"
)

// life is a turn's context. What it takes to wait for its end is made when somebody does: most turns wait for nothing.
type life struct {
	seat  context.Context
	until time.Time

	mu    sync.Mutex
	cause error
	made  context.Context
	end   context.CancelCauseFunc
	stop  context.CancelFunc
}

// cancel ends it. Only the first cause counts.
func (l *life) cancel(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	l.cause = cause
	if l.made != nil {
		l.end(cause)
		l.stop()
	}
}

func (l *life) real() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil {
		l.made, l.stop = l.seat, func() {}
		if !l.until.IsZero() {
			l.made, l.stop = context.WithDeadline(l.made, l.until)
		}
		l.made, l.end = context.WithCancelCause(l.made)
		if l.cause != nil {
			l.end(l.cause)
			l.stop()
		}
	}
	return l.made
}

func (l *life) Deadline() (time.Time, bool) { return l.until, !l.until.IsZero() }
func (l *life) Done() <-chan struct{}       { return l.real().Done() }
func (l *life) Err() error                  { return l.real().Err() }
func (l *life) Value(key any) any           { return l.real().Value(key) }
