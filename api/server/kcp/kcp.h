// KcpMain: the command line of the kcp-like mode.
//
//   kcp start [flags]             options.h
//   kcp version                   prints the build's version
//   kcp write-build OUT VERSION [FAULTS]   copies this executable with another version in it (build_version.h)
//
// Threads: called once, on the main thread, before any other thread is started.
// Failure: exit code 1 and a sentence on standard error.
#pragma once

namespace lockkeeper::kcp {

// `argv[0]` is the program. The dispatcher calls it when the executable's base name is "kcp".
int KcpMain(int argc, char** argv);

// Whether `argv0` asks for this mode: its base name is "kcp".
bool IsKcpName(const char* argv0);

}  // namespace lockkeeper::kcp
