//go:build tools

// Package tools pins the helm 3 that installs the chart.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
