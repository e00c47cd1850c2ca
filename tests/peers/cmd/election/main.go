// Command election takes part in a client-go leader election on a Lease and
// prints one JSON line for each turn of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"lockkeeper.dev/lockkeeper/tests/peers/internal/peer"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	namespace := flag.String("namespace", "default", "namespace of the Lease")
	name := flag.String("name", "election", "name of the Lease")
	identity := flag.String("identity", fmt.Sprintf("peer-%d", os.Getpid()), "identity of this candidate")
	lease := flag.Duration("lease", 15*time.Second, "lease duration")
	renew := flag.Duration("renew", 10*time.Second, "renew deadline")
	retry := flag.Duration("retry", 2*time.Second, "retry period")
	release := flag.Bool("release", false, "release the Lease when stopped")
	rejoin := flag.Bool("rejoin", false, "stand again after losing the Lease, instead of exit 1")
	flag.Parse()

	client, err := kubernetes.NewForConfig(peer.Config(*kubeconfig))
	if err != nil {
		peer.Fail(err)
	}
	say := func(event, holder string) {
		peer.Print(peer.Line{
			"event":    event,
			"identity": *identity,
			"holder":   holder,
			"time":     time.Now().UTC().Format(time.RFC3339Nano),
		})
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: *name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: *identity},
		},
		LeaseDuration:   *lease,
		RenewDeadline:   *renew,
		RetryPeriod:     *retry,
		ReleaseOnCancel: *release,
		Name:            *name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { say("leading", *identity) },
			// Also called for a candidate that never led.
			OnStoppedLeading: func() { say("stopped", "") },
			OnNewLeader:      func(holder string) { say("holder", holder) },
		},
	})
	if err != nil {
		peer.Fail(err)
	}

	ctx := peer.Context()
	for {
		elector.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		if !*rejoin {
			os.Exit(1)
		}
	}
}
