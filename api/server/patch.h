// Patches: RFC 7386 merge patch, RFC 6902 JSON patch, and the strategic merge patch that kubectl sends for kinds it
// knows by heart (ConfigMap, Secret, Namespace …).
// Ownership: values. Threads: pure. Failure: a Status; the target is unchanged then.
#pragma once

#include "api/base/json.h"
#include "api/base/status.h"

namespace lockkeeper::apiserver {

// What the patch does not name stays; a null removes.
void ApplyMergePatch(Json& target, const Json& patch);

// kInvalid for a patch that is no list of operations; kPrecondition for a failed `test` and for a path that is
// missing. At most 10,000 operations, as kube-apiserver.
Status ApplyJsonPatch(Json& target, const Json& patch);

// Merge patch with the directives $patch (replace, delete, merge), $retainKeys, $setElementOrder and
// $deleteFromPrimitiveList; lists of metadata are merged by their keys (ownerReferences: uid; finalizers: value), all
// other lists are replaced. Enough for kinds without merged lists in their spec.
Status ApplyStrategicMergePatch(Json& target, const Json& patch);

}  // namespace lockkeeper::apiserver
