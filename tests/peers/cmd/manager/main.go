// Command manager is a controller-runtime manager over one kind, read as
// unstructured. Its reconcile prints a JSON line and, when asked to, writes one
// field of the status.
package main

import (
	"context"
	"encoding/json"
	"flag"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"lockkeeper.dev/lockkeeper/tests/peers/internal/peer"
)

func main() {
	// controller-runtime itself adds --kubeconfig.
	groupVersion := flag.String("group-version", "v1", "API group and version, as in apiVersion")
	kind := flag.String("kind", "ConfigMap", "kind to reconcile")
	namespace := flag.String("namespace", "", "namespace to watch; empty for all")
	workers := flag.Int("workers", 1, "reconciles at the same time")
	field := flag.String("status-field", "", "field of the status to write; empty for none")
	valueJSON := flag.String("status-value", "null", "its value as JSON; null for metadata.generation")
	elect := flag.Bool("leader-elect", false, "reconcile only while holding a Lease")
	leaseNamespace := flag.String("leader-election-namespace", "default", "namespace of that Lease")
	leaseName := flag.String("leader-election-id", "manager", "name of that Lease")
	flag.Parse()

	var value any
	if err := json.Unmarshal([]byte(*valueJSON), &value); err != nil {
		peer.Fail(err)
	}
	ctrl.SetLogger(klog.Background())
	options := ctrl.Options{
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          *elect,
		LeaderElectionID:        *leaseName,
		LeaderElectionNamespace: *leaseNamespace,
	}
	if *namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{*namespace: {}}
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	if err != nil {
		peer.Fail(err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(peer.GroupVersion(*groupVersion).WithKind(*kind))
	err = ctrl.NewControllerManagedBy(manager).
		For(object).
		WithOptions(controller.Options{MaxConcurrentReconciles: *workers}).
		Complete(&reconciler{manager.GetClient(), object, *field, value})
	if err != nil {
		peer.Fail(err)
	}

	ctx := peer.Context()
	go func() {
		select {
		// Without an election this comes at once.
		case <-manager.Elected():
			peer.Print(peer.Line{"event": "leading"})
		case <-ctx.Done():
		}
	}()
	if err := manager.Start(ctx); err != nil {
		peer.Fail(err)
	}
}

type reconciler struct {
	client.Client
	kind  *unstructured.Unstructured
	field string
	value any
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := r.kind.DeepCopy()
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			peer.Print(peer.Line{"event": "gone", "namespace": request.Namespace, "name": request.Name})
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	peer.Print(peer.Line{
		"event":           "reconcile",
		"namespace":       request.Namespace,
		"name":            request.Name,
		"resourceVersion": object.GetResourceVersion(),
		"generation":      object.GetGeneration(),
	})
	if r.field == "" {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.patchStatus(ctx, object)
}

func (r *reconciler) patchStatus(ctx context.Context, object *unstructured.Unstructured) error {
	value := r.value
	if value == nil {
		value = object.GetGeneration()
	}
	before := object.DeepCopy()
	if err := unstructured.SetNestedField(object.Object, value, "status", r.field); err != nil {
		return err
	}
	patch := client.MergeFrom(before)
	if data, err := patch.Data(object); err != nil || string(data) == "{}" {
		return err
	}
	return r.Status().Patch(ctx, object, patch)
}
