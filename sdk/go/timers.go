// The timers that an activation has, as far as its host knows.

package greenroom

import (
	"sync"
	"time"
)

// timersMax bounds the timers of one activation; the node refuses further ones.
const timersMax = 256

// timers are names, each with the time by which a timer that fires once has fired; zero for one that fires in each period.
type timers struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// add adds a timer that fires once after so long, or in each period; it is refused if there is no room for it.
func (t *timers) add(name string, after time.Duration, periodic bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until == nil {
		t.until = map[string]time.Time{}
	}
	if len(t.until) >= timersMax {
		for name, until := range t.until {
			if !until.IsZero() && !until.After(time.Now()) {
				delete(t.until, name)
			}
		}
	}
	if len(t.until) >= timersMax {
		return refused("Overloaded", map[string]any{"queue": "the timers of this actor", "bound": timersMax})
	}
	t.until[name] = time.Time{}
	if !periodic {
		t.until[name] = time.Now().Add(after)
	}
	return nil
}

// forget forgets a timer that was cancelled.
func (t *timers) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.until, name)
}
