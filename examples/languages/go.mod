module chat

go 1.26

require greenroom v0.1.0

require (
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
)

replace greenroom => ../../sdk/go
