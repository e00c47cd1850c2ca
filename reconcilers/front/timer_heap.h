// TimerHeap: the next due of many nodes, one entry each.
//
// Purpose:   a binary heap over nodes that carry their own place in it (`int64_t due; uint32_t heap_index`), so that a
//            node's due can be moved or taken out in O(log n), without a stale entry left behind.
// Ownership: borrows the nodes; a node leaves (Remove) before it dies. `heap_index` starts as kNotInHeap.
// Threads:   one. Failure: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockkeeper::front {

inline constexpr uint32_t kNotInHeap = UINT32_MAX;

template <typename Node>
class TimerHeap {
 public:
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  // REQUIRES: !empty().
  Node* top() const { return heap_.front(); }

  // Puts the node in, or moves it.
  void Set(Node* node, int64_t due) {
    node->due = due;
    if (node->heap_index == kNotInHeap) {
      node->heap_index = static_cast<uint32_t>(heap_.size());
      heap_.push_back(node);
    }
    Up(node->heap_index);
    Down(node->heap_index);
  }

  void Remove(Node* node) {
    const uint32_t at = node->heap_index;
    if (at == kNotInHeap) return;
    node->heap_index = kNotInHeap;
    Node* last = heap_.back();
    heap_.pop_back();
    if (last == node) return;
    Place(last, at);
    Up(at);
    Down(last->heap_index);
  }

 private:
  void Place(Node* node, uint32_t at) {
    heap_[at] = node;
    node->heap_index = at;
  }
  void Up(uint32_t at) {
    while (at > 0) {
      const uint32_t parent = (at - 1) / 2;
      if (heap_[parent]->due <= heap_[at]->due) return;
      Swap(at, parent);
      at = parent;
    }
  }
  void Down(uint32_t at) {
    while (true) {
      uint32_t least = at;
      for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap_.size(); ++child) {
        if (heap_[child]->due < heap_[least]->due) least = child;
      }
      if (least == at) return;
      Swap(at, least);
      at = least;
    }
  }
  void Swap(uint32_t a, uint32_t b) {
    Node* x = heap_[a];
    Node* y = heap_[b];
    Place(y, a);
    Place(x, b);
  }

  std::vector<Node*> heap_;
};

}  // namespace lockkeeper::front
