// Command echo is what `greenroom bench host` runs: actors that echo, or with `floor` the same echo with no Greenroom in between.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log"
	"net"
	"os"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"greenroom"
)

type arguments struct {
	Text string `json:"text" msgpack:"text"`
	N    uint64 `json:"n" msgpack:"n"`
}

// Volatile echoes.
type Volatile struct{}

// Echo gives the text back.
func (v *Volatile) Echo(_ *greenroom.Cx, a arguments) (string, error) { return a.Text, nil }

// Persistent echoes, and keeps how often: in a store, or in the journal.
type Persistent struct {
	Turns int `json:"turns"`
}

// Echo gives the text back.
func (p *Persistent) Echo(_ *greenroom.Cx, a arguments) (string, error) {
	p.Turns++
	return a.Text, nil
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: echo floor|volatile|persistent|reliable")
	}
	var kind greenroom.KindOf
	switch os.Args[1] {
	case "floor":
		if err := floor(strings.TrimPrefix(os.Getenv("GREENROOM_HOST"), "unix:")); err != nil && err != io.EOF {
			log.Fatal(err)
		}
		return
	case "volatile":
		kind = greenroom.Kind[Volatile](greenroom.Named("echo"))
	case "persistent":
		kind = greenroom.Kind[Persistent](greenroom.Named("echo"), greenroom.SavedOnTurn())
	case "reliable":
		kind = greenroom.Kind[Persistent](greenroom.Named("echo"), greenroom.Reliable())
	default:
		log.Fatalf("%s is none of floor, volatile, persistent, reliable", os.Args[1])
	}
	if err := greenroom.Serve(context.Background(), kind); err != nil {
		log.Fatal(err)
	}
}

// call is a frame's number, which says whose it is, and its payload.
type call struct {
	number  uint32
	payload []byte
}

// floor answers frames of a length, a number and a payload: a goroutine an actor, a batch a round.
func floor(path string) error {
	stream, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	answers := make(chan []byte, mailboxLen)
	go write(stream, answers)
	actors := map[uint32]chan call{}
	reader := bufio.NewReaderSize(stream, 64<<10)
	for {
		var head [8]byte
		if _, err := io.ReadFull(reader, head[:]); err != nil {
			return err
		}
		next := call{binary.LittleEndian.Uint32(head[4:]), make([]byte, binary.LittleEndian.Uint32(head[:4])-4)}
		if _, err := io.ReadFull(reader, next.payload); err != nil {
			return err
		}
		mailbox, found := actors[next.number]
		if !found {
			mailbox = make(chan call, mailboxLen)
			actors[next.number] = mailbox
			go serve(mailbox, answers)
		}
		mailbox <- next
	}
}

func serve(mailbox <-chan call, answers chan<- []byte) {
	for next := range mailbox {
		var given arguments
		if err := msgpack.Unmarshal(next.payload, &given); err != nil {
			log.Fatal(err)
		}
		reply, err := msgpack.Marshal(given.Text)
		if err != nil {
			log.Fatal(err)
		}
		frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 8+len(reply)), uint32(4+len(reply)))
		answers <- append(binary.LittleEndian.AppendUint32(frame, next.number), reply...)
	}
}

func write(stream net.Conn, answers <-chan []byte) {
	writer := bufio.NewWriterSize(stream, 64<<10)
	for answer := range answers {
		if _, err := writer.Write(answer); err != nil {
			return
		}
		if len(answers) == 0 && writer.Flush() != nil {
			return
		}
	}
}

const mailboxLen = 64
