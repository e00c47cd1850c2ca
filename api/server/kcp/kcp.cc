#include "api/server/kcp/kcp.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/log.h"
#include "api/server/kcp/build_version.h"
#include "api/server/kcp/server.h"

namespace lockkeeper::kcp {
namespace {

int Fail(const Status& status) {
  std::fprintf(stderr, "Error: %s\n", status.message().c_str());
  return 1;
}

int Start(const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") {
      std::fputs(StartUsage().c_str(), stdout);
      return 0;
    }
  }
  auto options = ParseStartFlags(args);
  if (!options.ok()) return Fail(options.status());
  const auto scale = TimeScale::FromEnv();
  if (!scale.ok()) return Fail(scale.status());
  auto faults = Faults::FromEnv();
  if (!faults.ok()) return Fail(faults.status());
  KcpServer server(std::move(*options), *scale, std::move(*faults));
  return server.Run();
}

}  // namespace

bool IsKcpName(const char* argv0) {
  if (argv0 == nullptr) return false;
  const std::string_view path(argv0);
  return path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1) == "kcp";
}

int KcpMain(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  const std::string verb = args.empty() ? "" : args[0];
  if (!args.empty()) args.erase(args.begin());
  if (verb == "start") return Start(args);
  if (verb == "version" || verb == "--version") {
    std::printf("%s\n", BuildVersion().c_str());
    return 0;
  }
  if (verb == "write-build" && (args.size() == 2 || args.size() == 3)) {
    const Status status = WriteBuild("/proc/self/exe", args[1], args[0], args.size() == 3 ? args[2] : "");
    return status.ok() ? 0 : Fail(status);
  }
  return Fail(Status(Code::kInvalid,
                     "usage: kcp start [flags] | kcp version | kcp write-build OUT VERSION [FAULTS] (FAULTS: "
                     "NAME[=VALUE],..., for instance never-ready)"));
}

}  // namespace lockkeeper::kcp
