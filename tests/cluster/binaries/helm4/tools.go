//go:build tools

// Package tools pins the helm 4 that installs the chart.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
