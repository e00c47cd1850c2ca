// Command informer runs a client-go shared informer over one resource and
// prints one JSON line for each event it is handed, and "synced" after the
// initial list has been delivered.
package main

import (
	"context"
	"flag"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"lockkeeper.dev/lockkeeper/tests/peers/internal/peer"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	groupVersion := flag.String("group-version", "v1", "API group and version, as in apiVersion")
	resource := flag.String("resource", "configmaps", "plural name of the resource")
	namespace := flag.String("namespace", "", "namespace to watch; empty for all")
	resync := flag.Duration("resync", 0, "resync period; 0 for none")
	flag.Parse()

	client, err := dynamic.NewForConfig(peer.Config(*kubeconfig))
	if err != nil {
		peer.Fail(err)
	}
	gvr := peer.GroupVersion(*groupVersion).WithResource(*resource)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, *resync, *namespace, nil)
	informer := factory.ForResource(gvr).Informer()
	err = informer.SetWatchErrorHandlerWithContext(
		func(_ context.Context, _ *cache.Reflector, err error) {
			peer.Print(peer.Line{"type": "watchError", "error": err.Error()})
		})
	if err != nil {
		peer.Fail(err)
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			emit("add", object, peer.Line{"initial": initial})
		},
		UpdateFunc: func(old, object any) {
			emit("update", object, peer.Line{"oldResourceVersion": resourceVersion(old)})
		},
		DeleteFunc: func(object any) {
			// A delete that the watch missed and a later list revealed comes
			// in a wrapper, with the last state known.
			tombstone, missed := object.(cache.DeletedFinalStateUnknown)
			if missed {
				object = tombstone.Obj
			}
			emit("delete", object, peer.Line{"missed": missed})
		},
	})
	if err != nil {
		peer.Fail(err)
	}

	ctx := peer.Context()
	started := time.Now()
	factory.Start(ctx.Done())
	if cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		peer.Print(peer.Line{
			"type":    "synced",
			"count":   len(informer.GetStore().ListKeys()),
			"seconds": time.Since(started).Seconds(),
		})
	}
	<-ctx.Done()
	factory.Shutdown()
}

func emit(event string, object any, line peer.Line) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		peer.Fail(err)
	}
	line["type"] = event
	line["namespace"] = accessor.GetNamespace()
	line["name"] = accessor.GetName()
	line["uid"] = accessor.GetUID()
	line["resourceVersion"] = accessor.GetResourceVersion()
	line["generation"] = accessor.GetGeneration()
	peer.Print(line)
}

func resourceVersion(object any) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		peer.Fail(err)
	}
	return accessor.GetResourceVersion()
}
