#include "reconcilers/front/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace lockkeeper::front {
namespace {

struct Node {
  int64_t due = 0;
  uint32_t heap_index = kNotInHeap;
};

TEST(TimerHeap, TheTopIsAlwaysTheEarliestOfWhatIsIn) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<Node> nodes(100);
  TimerHeap<Node> heap;
  std::multiset<int64_t> model;
  for (int i = 0; i < 20000; ++i) {
    Node& n = nodes[random() % nodes.size()];
    const bool in = n.heap_index != kNotInHeap;
    if (in) model.erase(model.find(n.due));
    if (random() % 3 == 0) {
      heap.Remove(&n);
    } else {
      heap.Set(&n, static_cast<int64_t>(random() % 1000));
      model.insert(n.due);
    }
    ASSERT_EQ(heap.size(), model.size());
    if (!model.empty()) {
      ASSERT_EQ(heap.top()->due, *model.begin());
    }
  }
}

}  // namespace
}  // namespace lockkeeper::front
