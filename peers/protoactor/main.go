// Local ping-pong on Proto.Actor Go: 64 pairs in one process, one message in flight each.
//
//	go run .
package main

import (
	"fmt"
	"sort"
	"sync"
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

func run(pairs int, rounds uint64) float64 {
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
	return 2 * float64(pairs) * float64(rounds) / d / 1e6
}

func main() {
	var r []float64
	for i := 0; i < 5; i++ {
		r = append(r, run(64, 20000))
	}
	sort.Float64s(r)
	fmt.Printf("protoactor-go local ping-pong, 64 pairs, 1 in flight (send): median %.2f (%.2f, %.2f) M/s\n", r[2], r[0], r[4])
}
