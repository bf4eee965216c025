//go:build tools

// Package tools pins the kwok that makes nodes and pods without containers.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
