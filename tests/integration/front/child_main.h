// A test program that runs itself again as a front: argv[1] is "front", the rest are its flags.
#pragma once

#include <optional>
#include <string_view>

#include "reconcilers/front/front_main.h"

namespace lockkeeper::front {

// The exit code of the front, or nothing when this is the test itself.
inline std::optional<int> RunAsFront(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "front") return std::nullopt;
  auto config = FrontConfigFromArgs({argv + 2, argv + argc});
  if (!config.ok()) return 2;
  config->version = "v-test";
  CancelToken cancel;
  return RunFront(*config, cancel);
}

}  // namespace lockkeeper::front
