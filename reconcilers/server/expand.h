// Expand: the host's own folders in a Server's paths. Pure.
//
// Purpose:   a Server can be written without knowing where its agent keeps its data: {data} is the agent's data
//            folder, {dataDir} the Server's own (layout.h), {shared} its shared files, {store} spec.store.url. They are
//            filled in once, when a spec is loaded into the ledger as intent, in every path, URL, command and
//            environment value; other placeholders ({root}, {version} …) stay for the rendering.
// Threads:   pure. Failure: total; an unknown placeholder is left for the rendering to refuse.
#pragma once

#include "reconcilers/server/layout.h"

namespace lockkeeper::roll {

ServerSpec ExpandSpec(const ServerSpec& spec, const std::string& data_dir, const ServerKey& key);

}  // namespace lockkeeper::roll
