// Package peer holds what the small client-go programs beside it share: they
// read one kubeconfig, stop on SIGTERM, and speak JSON lines on stdout.
package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Line is one line of output.
type Line map[string]any

var stdout struct {
	sync.Mutex
	*json.Encoder
}

func init() { stdout.Encoder = json.NewEncoder(os.Stdout) }

// Print writes one line; safe for concurrent use. Nobody is left to read once
// stdout is gone, so that ends the program.
func Print(line Line) {
	stdout.Lock()
	defer stdout.Unlock()
	if err := stdout.Encode(line); err != nil {
		Fail(err)
	}
}

// Fail ends the program with the error on stderr.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Context ends on SIGTERM or SIGINT.
func Context() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	return ctx
}

// Config reads the kubeconfig; without a path it follows KUBECONFIG like kubectl.
func Config(path string) *rest.Config {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		Fail(err)
	}
	return config
}

// GroupVersion parses "group/version" or, for the core group, "version".
func GroupVersion(text string) schema.GroupVersion {
	parsed, err := schema.ParseGroupVersion(text)
	if err != nil {
		Fail(err)
	}
	return parsed
}
