package greenroom

// call sends a Call; 0 is the number of a one-way message.
func (l *lane) call(c Caller, number uint64, to target, method string, arguments []byte) error {
	s, t := c.scope()
	if err := l.check(s, t); err != nil {
		return err
	}
	var turnNumber uint64
	if t != nil {
		turnNumber = t.number
	}
	laden, err := carried(c)
	if err != nil {
		return err
	}
	laden = withSeat(laden, s, t)
	name := [2]string{to.kind, method}
	l.mu.Lock()
	route, known := l.routes[name]
	if !known {
		route = uint64(len(l.routes))
		l.routes[name] = route
		l.put(tDefine, func(b *batch) { b.varint(route).text(to.kind).text(method).varint(uint64(to.version)) })
	}
	l.mu.Unlock()
	return l.pay(c, s, t, tCall, func(b *batch) {
		b.varint(number).varint(turnNumber).varint(route).text(to.key).varint(left(c)).block(laden).bytes(arguments)
	})
}

// request sends what is answered, and waits for the answer.
func (l *lane) request(c Caller, send func(uint64) error) (byte, []byte, error) {
	s, t := c.scope()
	if err := l.check(s, t); err != nil {
		return 0, nil, err
	}
	got := make(chan answer, 1)
	l.mu.Lock()
	if l.isDead {
		l.mu.Unlock()
		return 0, nil, refused("Unreachable", map[string]any{"reason": "the connection is lost"})
	}
	l.numbers++
	number := l.numbers
	l.requests[number] = got
	l.mu.Unlock()
	if err := send(number); err != nil {
		l.mu.Lock()
		delete(l.requests, number)
		l.mu.Unlock()
		return 0, nil, err
	}
	select {
	case found := <-got:
		if err := l.check(s, t); err != nil {
			return 0, nil, err
		}
		return found.status, found.payload, found.err
	case <-c.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waits := l.requests[number]; waits {
		delete(l.requests, number)
		l.put(tCancelCall, func(b *batch) { b.varint(number) })
	}
	if isFenced(s, t) {
		return 0, nil, ErrFenced
	}
	return 0, nil, gaveUp(c, ErrUnknown, "TimedOut")
}

// ask asks the node for something; the answer's payload.
func (l *lane) ask(c Caller, operation byte, what map[string]any) ([]byte, error) {
	body, err := l.asking(c, operation, what)
	if err != nil {
		return nil, err
	}
	s, t := c.scope()
	status, reply, err := l.request(c, func(number uint64) error { return l.pay(c, s, t, tAsk, body(number)) })
	if err == nil && status != sOK {
		err = decode(status, reply)
	}
	return reply, err
}

// tell is ask of what is not answered.
func (l *lane) tell(c Caller, operation byte, what map[string]any) error {
	s, t := c.scope()
	if err := l.check(s, t); err != nil {
		return err
	}
	body, err := l.asking(c, operation, what)
	if err != nil {
		return err
	}
	return l.pay(c, s, t, tAsk, body(0))
}

func (l *lane) asking(c Caller, operation byte, what map[string]any) (func(uint64) func(*batch), error) {
	written, err := payload(what, firstCodec(), 1)
	s, t := c.scope()
	var seatNumber, turnNumber uint64
	if s != nil {
		seatNumber = s.number
	}
	if t != nil {
		turnNumber = t.number
	}
	return func(number uint64) func(*batch) {
		return func(b *batch) { b.varint(number).varint(turnNumber).varint(seatNumber).u8(operation).bytes(written) }
	}, err
}
