#include "reconcilers/peer/peer_clients.h"

#include <gtest/gtest.h>

#include "api/transport/http_server.h"
#include "tests/support/wait.h"
#include "tests/unit/controller/manual_clock.h"

namespace lockkeeper::peer {
namespace {

TEST(PeerClients, TheConnectionToASlotThatNobodyAsksAnyMoreIsClosed) {
  const auto ok = [](const HttpRequest&, HttpResponse& response) { response.body = "ok"; };
  HttpServer gone({}, ok), serving({}, ok);
  ASSERT_TRUE(gone.Start().ok());
  ASSERT_TRUE(serving.Start().ok());
  ManualClock clock;
  PeerClients clients(clock);
  ReadinessSpec readiness;
  readiness.scheme = ReadinessScheme::kHttp;
  ClientRequest request;
  request.target = "/readyz";
  const auto ask = [&](const HttpServer& server) {
    return clients.CallPort(readiness, server.port(), request, nullptr).ok();
  };
  ASSERT_TRUE(ask(gone));
  for (int i = 0; i < 4; ++i) {
    clock.Advance(Seconds(10));
    ASSERT_TRUE(ask(serving));
    if (i < 3) {
      EXPECT_EQ(gone.open_connections(), 1u) << "it may be asked again";
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return gone.open_connections() == 0; }));
  EXPECT_EQ(serving.open_connections(), 1u) << "the one in use is kept";
}

}  // namespace
}  // namespace lockkeeper::peer
