// Local messages on Proto.Actor Go, in one process: ping-pong of 64 pairs, one message in flight each, and one-way messages from senders to listeners,
// whose mailboxes have no bound.
//
//	go run .
package main

import (
	"fmt"
	"sort"
	"sync"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

type ping struct {
	n    uint64
	from *actor.PID
}
type pong struct{ n uint64 }
type ponger struct{ heard uint64 }

func (p *ponger) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *ping:
		p.heard++
		c.Send(m.from, &pong{m.n + 1})
	}
}

type start struct{}
type pinger struct {
	to     *actor.PID
	n, max uint64
	wg     *sync.WaitGroup
}

func (p *pinger) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *start:
		c.Send(p.to, &ping{0, c.Self()})
	case *pong:
		p.n++
		if p.n >= p.max {
			p.wg.Done()
			return
		}
		c.Send(p.to, &ping{m.n, c.Self()})
	}
}

func run(pairs int, rounds uint64) (float64, float64) {
	s := actor.NewActorSystem()
	var wg sync.WaitGroup
	var ps []*actor.PID
	for i := 0; i < pairs; i++ {
		to := s.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &ponger{} }))
		wg.Add(1)
		ps = append(ps, s.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &pinger{to: to, max: rounds, wg: &wg} })))
	}
	t := time.Now()
	for _, p := range ps {
		s.Root.Send(p, &start{})
	}
	wg.Wait()
	d := time.Since(t).Seconds()
	s.Shutdown()
	return 2 * float64(pairs) * float64(rounds), d
}

type hear struct{}
type listener struct {
	heard, all uint64
	wg         *sync.WaitGroup
}

func (l *listener) Receive(c actor.Context) {
	if _, ok := c.Message().(*hear); ok {
		l.heard++
		if l.heard == l.all {
			l.wg.Done()
		}
	}
}

type teller struct {
	to     []*actor.PID
	bursts uint64
}

func (t *teller) Receive(c actor.Context) {
	if _, ok := c.Message().(*start); !ok {
		return
	}
	m := &hear{}
	for i := uint64(0); i < t.bursts; i++ {
		for _, to := range t.to {
			for n := 0; n < burst; n++ {
				c.Send(to, m)
			}
		}
	}
}

func tell(senders, listeners int, messages uint64) (float64, float64) {
	s := actor.NewActorSystem()
	var wg sync.WaitGroup
	bursts := messages / uint64(senders*listeners*burst)
	var to []*actor.PID
	for i := 0; i < listeners; i++ {
		wg.Add(1)
		all := bursts * uint64(senders*burst)
		to = append(to, s.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &listener{all: all, wg: &wg} })))
	}
	var ts []*actor.PID
	for i := 0; i < senders; i++ {
		ts = append(ts, s.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &teller{to: to, bursts: bursts} })))
	}
	t := time.Now()
	for _, p := range ts {
		s.Root.Send(p, &start{})
	}
	wg.Wait()
	d := time.Since(t).Seconds()
	s.Shutdown()
	return float64(bursts * uint64(senders*listeners*burst)), d
}

// Messages to one listener before the next one's turn.
const burst = 64

// Measures five times; by the clock, and by the time that the process spent on processors, which other programs disturb less.
func show(what string, measure func() (float64, float64)) {
	var wall, cpu []float64
	for i := 0; i < 5; i++ {
		before := spent()
		messages, seconds := measure()
		wall = append(wall, messages/seconds/1e6)
		cpu = append(cpu, messages/(spent()-before)/1e6)
	}
	sort.Float64s(wall)
	sort.Float64s(cpu)
	fmt.Printf("protoactor-go local %s: median %.2f (%.2f, %.2f) M/s, %.2f M a CPU second\n", what, wall[2], wall[0], wall[4], cpu[2])
}

func spent() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func main() {
	show("ping-pong, 64 pairs, 1 in flight (send)", func() (float64, float64) { return run(64, 20000) })
	for _, n := range []int{1, 2, 64} {
		show(fmt.Sprintf("tell, %d senders to %d listeners", n, n), func() (float64, float64) { return tell(n, n, 4000000) })
	}
}
