//go:build tools

// Package main names the program of this module's go.mod, so that `go mod tidy` keeps its dependencies.
package main

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
