// kcp_like: the kcp-like mode as a program of its own, for tests.
#include "api/server/kcp/kcp.h"

int main(int argc, char** argv) { return lockkeeper::kcp::KcpMain(argc, argv); }
