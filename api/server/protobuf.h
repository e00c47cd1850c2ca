// The few protobuf bodies that kubectl, Helm and client-go insist on (crd-idioms 10.7), as JSON.
//
// Purpose:   `kubectl create ns|cm|secret`, `auth can-i`, `auth whoami`, Helm's release Secrets; the Leases and Events
//            of client-go's leader election and event recorder, and DeleteOptions: its typed clients write nothing
//            else.
// Ownership: values. Threads: pure.
// Failure:   kUnsupported for another kind (the client gets a 415 that says "use -f"), kInvalid for broken bytes.
#pragma once

#include <string_view>

#include "api/base/json.h"
#include "api/base/status.h"

namespace lockkeeper::apiserver {

inline constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";

Result<Json> DecodeProtobuf(std::string_view body);

}  // namespace lockkeeper::apiserver
