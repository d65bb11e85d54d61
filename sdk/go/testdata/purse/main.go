// Command purse is one side of the payments of `sdk/python/tests/test_payments.py`: reliable actors in Go, which pay others in Python.
package main

import (
	"context"
	"log"

	"greenroom"
)

// Payment is an order, which is to be carried out once.
type Payment struct {
	Order string `json:"order"`
	To    string `json:"to,omitempty"`
	Coins int    `json:"coins"`
}

// GoPurse has coins, and how often each order was paid and got.
type GoPurse struct {
	Coins int            `json:"coins"`
	Paid  map[string]int `json:"paid"`
	Got   map[string]int `json:"got"`
}

// Pay sends coins to a purse in Python.
func (p *GoPurse) Pay(cx *greenroom.Cx, a Payment) (int, error) {
	p.Coins -= a.Coins
	p.Paid = counted(p.Paid, a.Order)
	return p.Coins, greenroom.Send(cx, greenroom.Of[PyPurse](cx, a.To), (*PyPurse).Take, a)
}

// Take gets coins.
func (p *GoPurse) Take(_ *greenroom.Cx, a Payment) (greenroom.None, error) {
	p.Coins += a.Coins
	p.Got = counted(p.Got, a.Order)
	return greenroom.None{}, nil
}

// Look shows all of it.
func (p GoPurse) Look(*greenroom.Cx, greenroom.None) (GoPurse, error) { return p, nil }

// PyPurse is what purses in Python look like from here.
type PyPurse struct{}

// Take gets coins.
func (*PyPurse) Take(*greenroom.Cx, Payment) (greenroom.None, error) { return greenroom.None{}, nil }

func counted(orders map[string]int, order string) map[string]int {
	if orders == nil {
		orders = map[string]int{}
	}
	orders[order]++
	return orders
}

func main() {
	if err := greenroom.Serve(context.Background(), greenroom.Kind[GoPurse](greenroom.Reliable())); err != nil {
		log.Fatal(err)
	}
}
