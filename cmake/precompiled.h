// What nearly every file includes anyway; compiled once with LK_PCH=ON. The clang pass builds without it, so that a
// file that leans on it is found.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/base/json.h"
#include "api/base/status.h"
#include "api/base/sync.h"
#include "api/base/time.h"
