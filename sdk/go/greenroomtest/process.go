package greenroomtest

import (
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// process is a program that runs in a group of its own, with whatever it starts.
type process struct {
	group int
	input io.Closer
	// ended is closed when the program has ended, and all that it has started and that holds its output.
	ended chan struct{}
}

func begin(t testing.TB, command *exec.Cmd) (*process, error) {
	out := t.Output()
	command.Stdout, command.Stderr, command.WaitDelay = out, out, patience
	// Hosts do not look whether their standard input has ended, and what is frozen cannot: they are killed when the test's process dies.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	input, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, err
	}
	p := &process{command.Process.Pid, input, make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) freeze() { p.signal(syscall.SIGSTOP) }
func (p *process) thaw()   { p.signal(syscall.SIGCONT) }

func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// signal signals all of the group; an error says that nothing is left of it.
func (p *process) signal(signal syscall.Signal) { _ = syscall.Kill(-p.group, signal) }

// ends waits for the end.
func (p *process) ends(within time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(within):
		return false
	}
}

// until waits until something is so, and says whether it came to be so before the process ended.
func (p *process) until(isSo func() bool) bool {
	late := time.After(patience)
	for !isSo() {
		select {
		case <-p.ended:
			return false
		case <-late:
			return false
		case <-time.After(lookAgain):
		}
	}
	return true
}

const lookAgain = 5 * time.Millisecond
