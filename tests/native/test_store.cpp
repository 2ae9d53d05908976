// test_store.cpp: what threads write is in the file, in order, and what is not is counted.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/byte_pool.h"
#include "base/checksum.h"
#include "base/system.h"
#include "check.h"
#include "format/decode.h"
#include "format/records/counter.h"
#include "format/records/span.h"
#include "store/write.h"

using namespace whence;

namespace {

struct Found {
  bool good = true;
  format::FileHeader header{};
  std::map<std::uint32_t, std::vector<std::int64_t>> values;  // of counters, by thread
  std::map<std::uint64_t, std::string> strings;
  std::uint64_t events = 0, overwritten = 0;
  std::size_t chunks = 0, bytes = 0;
};

std::string folder() {
  static const std::string made = [] {
    char name[] = "/tmp/whence-store-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  return made;
}

std::vector<std::uint8_t> contents(const std::string& path) {
  std::vector<std::uint8_t> bytes;
  const int file = open(path.c_str(), O_RDONLY);
  std::uint8_t part[65536];
  for (ssize_t got; (got = ::read(file, part, sizeof part)) > 0;) {
    bytes.insert(bytes.end(), part, part + got);
  }
  close(file);
  return bytes;
}

// A reader of its own, as simple as can be.
Found read_back(const std::string& path) {
  const std::vector<std::uint8_t> bytes = contents(path);
  Found found;
  found.bytes = bytes.size();
  if (bytes.size() < sizeof found.header) return found.good = false, found;
  std::memcpy(&found.header, bytes.data(), sizeof found.header);
  found.good = format::check_header(found.header) == format::HeaderCheck::good &&
               closing_is_good(found.header);
  const bool fixed = found.header.layout == format::Layout::fixed;
  std::uint64_t id;
  std::memcpy(&id, found.header.file_id.data(), sizeof id);
  std::map<std::uint64_t, std::size_t> places;  // by sequence
  const format::RingJournal& journal = found.header.journal;
  bool journal_holds = false;
  for (std::size_t at = found.header.header_size, index = 1; at + 128 <= bytes.size(); ++index) {
    format::ChunkHeader chunk;
    std::memcpy(&chunk, &bytes[at], sizeof chunk);
    if (chunk.state != 0) {
      found.good = found.good && opening_is_good(chunk, id) && places.count(chunk.sequence) == 0;
      places[chunk.sequence] = at;
      journal_holds =
          journal_holds || (index == journal.index && chunk.sequence == journal.sequence);
    }
    at += fixed ? found.header.chunk_size : 128 + chunk.stored;
  }
  found.overwritten = found.header.dropped[1] + (journal_holds ? journal.before : journal.after);
  for (const auto& [sequence, at] : places) {
    format::ChunkHeader chunk;
    std::memcpy(&chunk, &bytes[at], sizeof chunk);
    const auto committed = format::Committed::from(chunk.committed);
    const std::uint8_t* payload = &bytes[at] + 128;
    if (chunk.state == 2) {
      found.good = found.good && closing_is_good(chunk) &&
                   base::checksum(payload, committed.bytes) == chunk.payload_checksum;
    }
    ++found.chunks;
    found.events += committed.events;
    format::Decoder decoder({payload, committed.bytes}, chunk.thread, chunk.start_ticks);
    format::Record record;
    format::Step step;
    std::uint32_t events = 0;
    while ((step = decoder.next(record)) == format::Step::record) {
      events += record.kind != nullptr && record.kind->event;
      if (record.code == format::Counter::kKind.code) {
        found.good = found.good && found.strings.count(record.values[1]) != 0;
        found.values[record.thread].push_back(static_cast<std::int64_t>(record.values[2]));
      }
      if (record.code == 0xE0) {
        found.strings[record.values[0]].assign(record.bytes.begin(), record.bytes.end());
      }
    }
    found.good = found.good && step == format::Step::end && events == committed.events;
  }
  return found;
}

std::uint64_t named(const char* text) {
  const auto ref = base::names().intern(
      std::span(reinterpret_cast<const std::uint8_t*>(text), std::strlen(text)));
  return store::store().string(store::store().generation(), ref);
}

bool count(std::uint64_t name, std::int64_t value) {
  return store::write_with<format::Counter>(
             store::store().generation(), [&](store::Cursor& cursor, std::uint64_t now) {
               return format::Counter::encode(cursor.next(), cursor.deltas, now, name, value);
             }) != 0;
}

void produce(int threads, std::int64_t each) {
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([=] {
      const std::uint64_t name = named("number");
      for (std::int64_t n = 1; n <= each; ++n) count(name, n);
    });
  }
  for (std::thread& thread : pool) thread.join();
}

std::string start(const char* name, store::Options options = {}) {
  const std::string path = folder() + "/" + name;
  options.path = path.c_str();
  options.overwrite = true;
  CHECK(store::store().start(options) == 0);
  return path;
}

void finish() {
  const int file = store::store().stop();
  CHECK(file >= 0);
  if (file >= 0) close(file);
}

bool consecutive(const std::vector<std::int64_t>& values) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i] != values[i - 1] + 1) return false;
  }
  return true;
}

}  // namespace

TEST(every_event_is_there_in_order) {
  const std::string path = start("all");
  produce(8, 50'000);
  const store::Status status = store::store().status();
  CHECK(status.recorded == 400'000);
  finish();
  const Found found = read_back(path);
  CHECK(found.good && found.header.state == format::FileState::closed);
  CHECK(found.events == 400'000 && found.overwritten == 0 && found.values.size() == 8);
  for (const auto& [thread, values] : found.values) {
    CHECK(values.size() == 50'000 && values.front() == 1 && consecutive(values));
  }
}

TEST(a_ring_keeps_the_newest_and_counts_the_rest) {
  const std::string path = start("ring", {.chunk_size = 16384, .max_size = 1 << 20});
  produce(8, 100'000);
  finish();
  const Found found = read_back(path);
  CHECK(found.good && found.bytes <= 1 << 20);
  CHECK(found.overwritten > 0 && found.events + found.overwritten == 800'000);
  for (const auto& [thread, values] : found.values) CHECK(consecutive(values));
}

TEST(a_ring_smaller_than_its_threads_takes_from_the_idle) {
  const std::string path = start("small", {.chunk_size = 4096, .max_size = 12 * 4096});
  produce(32, 2'000);
  finish();
  const Found found = read_back(path);
  const std::uint64_t limit = found.header.dropped[7];
  CHECK(found.good && found.bytes <= 12 * 4096);
  CHECK(found.events + found.overwritten + limit == 64'000);
}

TEST(many_short_threads_share_chunks) {
  const std::string path = start("short");
  for (int i = 0; i < 500; ++i) produce(1, 3);
  finish();
  const Found found = read_back(path);
  CHECK(found.good && found.values.size() == 500 && found.events == 1500);
  CHECK(found.chunks <= 3);
}

TEST(recordings_are_independent) {
  for (int round = 0; round < 5; ++round) {
    const std::string path = start("again");
    const std::uint64_t name = named("number");
    for (int n = 1; n <= 10; ++n) CHECK(count(name, n));
    finish();
    CHECK(!count(name, 11));
    const Found found = read_back(path);
    CHECK(found.good && found.events == 10 && found.strings.size() == 1);
  }
}

TEST(a_dump_is_a_whole_recording) {
  const std::string path = start("dumped", {.chunk_size = 16384, .max_size = 1 << 19});
  std::atomic<bool> stop = false;
  std::vector<std::thread> pool;
  for (int i = 0; i < 4; ++i) {
    pool.emplace_back([&] {
      const std::uint64_t name = named("number");
      for (std::int64_t n = 1; !stop; ++n) count(name, n);
    });
  }
  std::uint64_t last = 0;
  for (int round = 0; round < 20; ++round) {
    const std::string copy = folder() + "/copy" + std::to_string(round);
    const int file = open(copy.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(store::store().dump(file) == 0);
    close(file);
    const Found found = read_back(copy);
    CHECK(found.good && found.header.state == format::FileState::closed);
    for (const auto& [thread, values] : found.values) CHECK(consecutive(values));
    CHECK(found.events + found.overwritten >= last);
    last = found.events + found.overwritten;
    unlink(copy.c_str());
  }
  stop = true;
  for (std::thread& thread : pool) thread.join();
  finish();
  CHECK(read_back(path).good);
}

// An emulator takes the advice and does nothing.
static bool children_find_pages_wiped() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* byte = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, kFlags, -1, 0));
  madvise(byte, 4096, MADV_WIPEONFORK);
  *byte = 1;
  const pid_t child = fork();
  if (child == 0) _exit(*byte);
  int status = 1;
  waitpid(child, &status, 0);
  munmap(byte, 4096);
  return status == 0;
}

TEST(a_child_writes_nothing_and_the_parent_goes_on) {
  if (!children_find_pages_wiped()) return;
  const std::string path = start("forked");
  const std::uint64_t name = named("number");
  CHECK(count(name, 1));
  const pid_t child = fork();
  if (child == 0) {
    for (int n = 0; n < 1000; ++n) count(name, 1000 + n);
    _exit(store::store().this_thread(true) == 0 ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(count(name, 2));
  finish();
  const Found found = read_back(path);
  CHECK(found.good && found.events == 2 && found.values.begin()->second.back() == 2);
}

TEST(a_thread_may_be_cancelled_while_it_writes) {
  const std::string path = start("cancelled", {.chunk_size = 4096});
  for (int round = 0; round < 20; ++round) {
    pthread_t thread;
    const auto forever = [](void*) -> void* {
      const std::uint64_t name = named("number");
      for (std::int64_t n = 1;; ++n) {
        count(name, n);
        if (n % 1000 == 0) pthread_testcancel();
      }
    };
    CHECK(pthread_create(&thread, nullptr, forever, nullptr) == 0);
    usleep(1000);
    pthread_cancel(thread);
    CHECK(pthread_join(thread, nullptr) == 0);
  }
  finish();
  CHECK(read_back(path).good);
}

TEST(a_thread_that_is_stuck_in_a_record_does_not_hold_stop_up_for_ever) {
  const std::string path = start("stuck");
  std::atomic<int> inside = 0;
  std::atomic<bool> onward = false;
  std::vector<std::thread> pool;
  for (int i = 0; i < 3; ++i) {
    pool.emplace_back([&] {
      const std::uint64_t name = named("number");
      count(name, 1);
      store::write_with<format::Counter>(
          store::store().generation(), [&](store::Cursor& cursor, std::uint64_t now) {
            ++inside;
            while (!onward) usleep(1000);
            return format::Counter::encode(cursor.next(), cursor.deltas, now, name, 2);
          });
    });
  }
  while (inside != 3) usleep(100);
  const std::uint64_t before = base::nanoseconds(CLOCK_MONOTONIC);
  finish();
  CHECK(base::nanoseconds(CLOCK_MONOTONIC) - before < 20'000'000'000u);
  Found found = read_back(path);
  CHECK(found.good && found.header.state == format::FileState::ended && found.events == 3);
  onward = true;
  for (std::thread& thread : pool) thread.join();
  found = read_back(path);
  CHECK(found.good && found.header.produced == 0 && found.events == 6);
}

TEST(an_existing_file_stays_unless_told_and_links_are_not_followed) {
  const std::string path = folder() + "/precious", link = folder() + "/link";
  close(open(path.c_str(), O_WRONLY | O_CREAT, 0644));
  CHECK(symlink((folder() + "/target").c_str(), link.c_str()) == 0);
  CHECK(store::store().start({.path = path.c_str()}) == EEXIST);
  CHECK(store::store().start({.path = link.c_str()}) == EEXIST);
  CHECK(store::store().start({.path = "/nowhere/at/all"}) == ENOENT);
  CHECK(access((folder() + "/target").c_str(), F_OK) != 0);
  CHECK(contents(path).empty());
  CHECK(store::store().generation() == 0);
}

TEST(small_bodies_fill_a_chunk_to_its_end) {
  const std::string path = start("bodies", {.chunk_size = 4096});
  const std::uint64_t name = named("number");
  const std::uint8_t tags[100] = {};
  for (std::size_t n = 1; n <= 20'000; ++n) {
    const std::span<const std::uint8_t> some(tags, n % 100);
    CHECK(store::write_body(
        store::store().generation(), format::body_size(n, some.size()),
        [&](std::uint8_t* out) { return format::SpanTags::encode(out, n, some); }));
    if (n % 7 == 0) CHECK(count(name, static_cast<std::int64_t>(n / 7)));
  }
  finish();
  const Found found = read_back(path);
  CHECK(found.good && found.events == 20'000 / 7 && consecutive(found.values.begin()->second));
}

TEST(a_record_larger_than_a_chunk_is_refused) {
  const std::string path = start("large", {.chunk_size = 4096});
  CHECK(
      !store::write_body(store::store().generation(), 5000, [](std::uint8_t* out) { return out; }));
  const std::string text(100'000, 'x');
  const auto ref = base::names().intern(
      std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  CHECK(store::store().string(store::store().generation(), ref) == ref + 1);
  finish();
  CHECK(read_back(path).good);
}
