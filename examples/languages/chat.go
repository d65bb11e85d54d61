// Command chat is a chat that costs: members post in rooms, for a coin from their wallets. The same is in chat.py and chat.ts, so each kind may run in any
// of them.
//
//	go build -C examples/languages -o chat
//	greenroom run --table sqlite:chat.db --journal sqlite:journal.db examples/languages/chat
//	curl -d '{"order": "gift", "amount": 10}' localhost:7070/wallet/ada/deposit
//	curl -d '{"room": "lobby", "text": "hello"}' localhost:7070/member/ada/say
//
// With the argument room it serves rooms alone, and so on. Wallets are reliable, and want the journal: without one they are refused, and nobody can post.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"log"
	"os"
	"slices"

	"greenroom"
)

// kept is how many messages a room and a member keep, and orders a wallet remembers: whoever repeats one does so within seconds.
const kept = 100

// Message is what was said.
type Message struct {
	Number int    `json:"number"`
	Order  string `json:"order"`
	User   string `json:"user"`
	Text   string `json:"text"`
}

// Member is a user who is online: what it has heard lasts as long as its activation.
type Member struct {
	Heard []Message `json:"heard"`
}

// Say is what a member says.
type Say struct {
	Room string `json:"room"`
	Text string `json:"text"`
}

// Heard is an event of a room's topic.
type Heard struct {
	Message Message `json:"message"`
}

// Join hears from now on what is said in a room, and what was said before.
func (m *Member) Join(cx *greenroom.Cx, a Say) (int, error) {
	if err := cx.Subscribe("rooms/"+a.Room, "hear", "message"); err != nil {
		return 0, err
	}
	for message, err := range greenroom.Stream(cx, greenroom.Of[Room](cx, a.Room), (*Room).Replay, From{}) {
		if err != nil {
			return 0, err
		}
		_, _ = m.Hear(cx, Heard{message})
	}
	return len(m.Heard), nil
}

// Hear takes a message, which may come twice and counts once.
func (m *Member) Hear(_ *greenroom.Cx, a Heard) (greenroom.None, error) {
	if !slices.ContainsFunc(m.Heard, func(known Message) bool { return known.Order == a.Message.Order }) {
		m.Heard = last(m.Heard, a.Message)
	}
	return greenroom.None{}, nil
}

// Say posts. After an unknown outcome it may be posted, or paid: the same order again does what is left of it.
func (m *Member) Say(cx *greenroom.Cx, a Say) (int, error) {
	room, post := greenroom.Of[Room](cx, a.Room), Post{Order: rand.Text(), User: cx.Key(), Text: a.Text}
	number, err := greenroom.Call(cx, room, (*Room).Post, post)
	if errors.Is(err, greenroom.ErrUnknown) {
		return greenroom.Call(cx, room, (*Room).Post, post)
	}
	return number, err
}

// Inbox is what it has heard.
func (m Member) Inbox(*greenroom.Cx, greenroom.None) ([]Message, error) { return m.Heard, nil }

// Room has what was said last. Who posts is answered when it is stored.
type Room struct {
	Messages []Message `json:"messages"`
}

// Post is a message under an order of its user's.
type Post struct {
	Order string `json:"order"`
	User  string `json:"user"`
	Text  string `json:"text"`
}

// From is the number of a message.
type From struct {
	Start int `json:"start"`
}

// Post says something, for a coin from the user's wallet to that of the room's name; it gives the message's number.
func (r *Room) Post(cx *greenroom.Cx, a Post) (int, error) {
	message := Message{1, cx.Key() + "/" + a.Order, a.User, a.Text}
	for _, known := range r.Messages {
		if known.Order == message.Order {
			return known.Number, nil
		}
		message.Number = known.Number + 1
	}
	payment := Payment{Order: message.Order, To: cx.Key(), Amount: 1}
	_, err := greenroom.Call(cx, greenroom.Of[Wallet](cx, a.User), (*Wallet).Pay, payment)
	if own := (*greenroom.ActorError)(nil); errors.As(err, &own) && own.Name == "Empty" {
		return 0, greenroom.Fail("NotMember", map[string]string{"user": a.User})
	}
	if err != nil {
		return 0, err
	}
	if err := greenroom.Publish(cx, "rooms/"+cx.Key(), message); err != nil {
		return 0, err
	}
	r.Messages = last(r.Messages, message)
	return message.Number, nil
}

// History has the messages from a number on.
func (r Room) History(_ *greenroom.Cx, a From) ([]Message, error) {
	return slices.DeleteFunc(slices.Clone(r.Messages), func(message Message) bool { return message.Number < a.Start }), nil
}

// Replay is the same as a stream: one message after the other, as the caller has room.
func (r Room) Replay(cx *greenroom.Cx, a From) (iter.Seq2[Message, error], error) {
	messages, err := r.History(cx, a)
	return func(yield func(Message, error) bool) {
		for _, message := range messages {
			if !yield(message, nil) {
				return
			}
		}
	}, err
}

// Wallet is what a user has. What a turn changes and what it sends is one commit; an order is carried out once, however often it comes.
type Wallet struct {
	Coins  int    `json:"coins"`
	Orders []Done `json:"orders"`
}

// Done is an order, and what it was answered.
type Done struct {
	Order   string `json:"order"`
	Balance int    `json:"balance"`
}

// Payment is an order to a wallet; To is another one.
type Payment struct {
	Order  string `json:"order"`
	To     string `json:"to"`
	Amount int    `json:"amount"`
}

// Deposit puts coins in.
func (w *Wallet) Deposit(_ *greenroom.Cx, a Payment) (int, error) {
	return w.once(a.Order, a.Amount), nil
}

// Pay sends coins to another wallet.
func (w *Wallet) Pay(cx *greenroom.Cx, a Payment) (int, error) {
	if w.find(a.Order) < 0 {
		if a.Amount <= 0 || a.Amount > w.Coins {
			return 0, greenroom.Fail("Empty", map[string]int{"balance": w.Coins})
		}
		if err := greenroom.Send(cx, greenroom.Of[Wallet](cx, a.To), (*Wallet).Take, Payment{Amount: a.Amount}); err != nil {
			return 0, err
		}
	}
	return w.once(a.Order, -a.Amount), nil
}

// Take gets coins.
func (w *Wallet) Take(_ *greenroom.Cx, a Payment) (greenroom.None, error) {
	w.Coins += a.Amount
	return greenroom.None{}, nil
}

// Balance is what there is.
func (w Wallet) Balance(*greenroom.Cx, greenroom.None) (int, error) { return w.Coins, nil }

func (w *Wallet) find(order string) int {
	return slices.IndexFunc(w.Orders, func(done Done) bool { return done.Order == order })
}

func (w *Wallet) once(order string, amount int) int {
	if at := w.find(order); at >= 0 {
		return w.Orders[at].Balance
	}
	w.Coins += amount
	w.Orders = last(w.Orders, Done{order, w.Coins})
	return w.Coins
}

// last are the newest of them, in a slice of its own: what streams and replies have is not changed.
func last[T any](of []T, next T) []T {
	return slices.Concat(of[max(0, len(of)+1-kept):], []T{next})
}

func main() {
	kinds := []greenroom.KindOf{}
	for name, kind := range map[string]greenroom.KindOf{
		"member": greenroom.Kind[Member](), "room": greenroom.Kind[Room](greenroom.SavedOnTurn()), "wallet": greenroom.Kind[Wallet](greenroom.Reliable()),
	} {
		if len(os.Args) == 1 || slices.Contains(os.Args[1:], name) {
			kinds = append(kinds, kind)
		}
	}
	if err := greenroom.Serve(context.Background(), kinds...); err != nil {
		log.Fatal(err)
	}
}
