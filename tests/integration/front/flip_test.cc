// Flips under load: what the front promises about Set and Drain, to clients that keep to Kubernetes' retry rule.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "tests/integration/front/line_server.h"
#include "tests/integration/front/test_front.h"

namespace lockkeeper::front {
namespace {

constexpr int kFlips = 1000;

struct Tally {
  std::atomic<int64_t> requests{0};
  std::atomic<int64_t> retried{0};
  std::atomic<int64_t> failed{0};
  std::atomic<int64_t> wrong{0};  // answered by the old backend though begun after the Set's reply
};

// Odd while a Set is on its way; (epoch / 2) % 2 names the backend that the last reply promised.
using Epoch = std::atomic<uint64_t>;

std::string NameAt(uint64_t epoch) { return (epoch / 2) % 2 == 0 ? "blue" : "green"; }

// A fresh connection for each request: none may fail, and none that began after a Set's reply may reach the old one.
void FreshClient(const std::string& address, const std::string& prefix, const Epoch& epoch,
                 const std::atomic<bool>& stop, Tally* tally) {
  for (int i = 0; !stop; ++i) {
    const std::string id = prefix + std::to_string(i);
    const uint64_t before = epoch;
    const Peer peer = Peer::Connect(address);
    const auto answer = peer.ok() && peer.Send(id + "\n") ? peer.ReadLine() : std::nullopt;
    const uint64_t after = epoch;
    ++tally->requests;
    if (!answer || answer->find(" " + id) == std::string::npos) {
      ++tally->failed;
    } else if (before == after && before % 2 == 0 && *answer != NameAt(before) + " " + id) {
      ++tally->wrong;
    }
  }
}

// One kept-alive connection; a reused one that died before a byte of an answer is replaced once.
void KeptAliveClient(const std::string& address, const std::string& prefix, unsigned seed,
                     const std::atomic<bool>& stop, Tally* tally) {
  std::mt19937 random(seed);
  Peer peer;
  int used = 0;
  for (int i = 0; !stop; ++i) {
    const std::string id = prefix + std::to_string(i);
    std::optional<std::string> answer;
    for (int attempt = 0; attempt < 2 && !answer; ++attempt) {
      if (!peer.ok()) {
        peer = Peer::Connect(address);
        used = 0;
      }
      const bool reused = used++ > 0;
      if (peer.ok() && peer.Send(id + "\n")) answer = peer.ReadLine();
      if (answer) break;
      peer.Close();
      if (!reused) break;
      ++tally->retried;
    }
    ++tally->requests;
    if (!answer || answer->find(" " + id) == std::string::npos) ++tally->failed;
    // From back to back to longer than the quiet point's silence.
    if (random() % 4 == 0) ::usleep(random() % 60'000);  // not synchronisation: the load's rhythm
  }
}

TEST(Flip, AThousandFlipsUnderLoadFailNothingAndNoRequestIsHalfProcessed) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  LineServer blue("blue");
  LineServer green("green");
  TestFront front;
  ASSERT_TRUE(front.Point("blue", blue.address(), 1));
  Tally fresh;
  Tally kept;
  Epoch epoch{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] { FreshClient(front.address(), "f" + std::to_string(i) + "-", epoch, stop, &fresh); });
  }
  for (int i = 0; i < 12; ++i) {
    clients.emplace_back([&, i] {
      KeptAliveClient(front.address(), "k" + std::to_string(i) + "-", seed + static_cast<unsigned>(i), stop, &kept);
    });
  }
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kFlips; ++i) {
    const bool to_green = i % 2 == 0;
    ++epoch;
    ASSERT_TRUE(
        front.Point(to_green ? "green" : "blue", to_green ? green.address() : blue.address(), to_green ? 2 : 1));
    ++epoch;
    const std::string old = to_green ? "blue" : "green";
    const auto draining = front.service().Drain(old, to_green ? 1 : 2, Seconds(30));
    ASSERT_TRUE(draining.ok());
    // Mostly the next flip cancels it; some drains run to their end.
    if (i % 50 == 0) {
      ASSERT_TRUE(front.service().plane().WaitOpenZero(old, to_green ? 1 : 2, Seconds(30)).ok());
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  stop = true;
  for (auto& c : clients) c.join();
  blue.Stop();
  green.Stop();
  const FrontState state = front.Get();
  std::printf(
      "flips %d in %.1f s; fresh %ld requests; kept alive %ld requests, %ld retried; drained %ld, cut %ld, "
      "rehomed %.0f\n",
      kFlips, seconds, fresh.requests.load(), kept.requests.load(), kept.retried.load(),
      static_cast<long>(state.drained_total), static_cast<long>(state.cut_total),
      front.Metric("lockkeeper_front_rehomed_total"));
  EXPECT_EQ(fresh.failed, 0);
  EXPECT_EQ(fresh.wrong, 0);
  EXPECT_EQ(kept.failed, 0);
  EXPECT_EQ(state.cut_total, 0);
  EXPECT_EQ(state.refused_total, 0);
  EXPECT_GT(state.drained_total, 0);
  // A request that was repeated had not been seen by the server that died on it.
  std::set<std::string> ids;
  int64_t twice = 0;
  for (const auto* server : {&blue, &green}) {
    for (const auto& id : server->seen()) twice += ids.insert(id).second ? 0 : 1;
  }
  EXPECT_EQ(twice, 0);
  EXPECT_EQ(static_cast<int64_t>(ids.size()), fresh.requests + kept.requests);
}

}  // namespace
}  // namespace lockkeeper::front
