//go:build tools

// Package main names the program of this module's go.mod, so that `go mod tidy` keeps its dependencies.
package main

import _ "go.etcd.io/etcd/server/v3"
