// test_safe_copy.cpp: memory that may not be there is copied, or reported; and what a frame pointer
// has to show before it is believed.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "base/safe_copy.h"
#include "check.h"
#include "unwind/frame_pointer.h"

using namespace whence;
using namespace whence::unwind;

// `plain` has no table and keeps a frame pointer. `listed` has one, and lies before `plain`, too.
#if defined(__x86_64__)
asm(R"(
    .text
    .p2align 4
frames_caller:
    .cfi_startproc
    callq frames_plain
frames_after_plain:
    callq frames_listed
frames_after_listed:
    callq *%rax
frames_after_pointer:
    callq frames_behind
frames_after_behind:
    nop
    .cfi_endproc
frames_listed:
    .cfi_startproc
    nop
    nop
    .cfi_endproc
frames_plain:
    nop
    nop
    nop
    nop
frames_behind:
    nop
    nop
    .cfi_startproc
    nop
    .cfi_endproc
)");
#else
asm(R"(
    .text
    .p2align 4
frames_caller:
    .cfi_startproc
    bl frames_plain
frames_after_plain:
    bl frames_listed
frames_after_listed:
    blr x0
frames_after_pointer:
    bl frames_behind
frames_after_behind:
    nop
    .cfi_endproc
frames_listed:
    .cfi_startproc
    nop
    nop
    .cfi_endproc
frames_plain:
    nop
    nop
    nop
    nop
frames_behind:
    nop
    nop
    .cfi_startproc
    nop
    .cfi_endproc
)");
#endif
// Hidden: by way of a table of addresses, labels of one section may all become its beginning.
extern "C" {
[[gnu::visibility("hidden")]] extern const char frames_after_plain[], frames_after_listed[],
    frames_after_pointer[], frames_after_behind[], frames_plain[];
}

namespace {

[[nodiscard]] Address address(const void* place) {
  return reinterpret_cast<Address>(place);
}

// Inside `plain`, with this return address beside the frame pointer.
[[nodiscard]] bool believed(const char* back) {
  const Address frame[2] = {0, address(back)};
  return has_frame_pointer({address(frames_plain) + 3, address(frame) - 64, address(frame), 0});
}

}  // namespace

TEST(memory_that_is_there_is_copied) {
  char from[300], to[300];
  for (std::size_t i = 0; i < sizeof from; ++i) from[i] = static_cast<char>(i * 7);
  for (const std::size_t size : {0u, 1u, 7u, 8u, 299u}) {
    std::memset(to, 0, sizeof to);
    CHECK(base::safe_copy(address(from + 1), to, size));
    CHECK(std::memcmp(from + 1, to, size) == 0 && (size == 299 || to[size] == 0));
  }
}

static void check_what_is_not_there() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  char* pages = static_cast<char*>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, kFlags, -1, 0));
  CHECK(mprotect(pages + page, page, PROT_NONE) == 0);
  char to[64];
  errno = 77;
  CHECK(base::safe_copy(address(pages + page - 64), to, 64));
  CHECK(base::safe_copy(address(pages + 2 * page), to, 64));
  CHECK(!base::safe_copy(address(pages + page), to, 1));
  CHECK(!base::safe_copy(address(pages + page - 63), to, 64));  // the last byte is not there
  CHECK(!base::safe_copy(address(pages + 2 * page - 1), to, 64));
  munmap(pages + 2 * page, page);
  CHECK(!base::safe_copy(address(pages + 2 * page), to, 8));
  CHECK(!base::safe_copy(0, to, 8));
  CHECK(!base::safe_copy(8, to, 8));
  CHECK(!base::safe_copy(~std::uintptr_t{7}, to, 7));
  CHECK(!base::safe_copy(~std::uintptr_t{7}, to, 16));  // round the end
  CHECK(!base::safe_copy(std::uintptr_t{1} << 62, to, 8));
  CHECK(errno == 77);
  munmap(pages, 2 * page);
}

TEST(memory_that_is_not_there_is_reported) {
  check_what_is_not_there();
}

// As in a sandbox, which can only be entered: so it is another process that does.
TEST(memory_is_asked_for_where_the_kernel_may_not_copy_it) {
  const pid_t child = fork();
  if (child == 0) {
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter = {std::size(steps), steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);  // an emulator has none, nor the call
    const int before = check::failures;
    check_what_is_not_there();
    std::fflush(stdout);
    _exit(check::failures == before ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

TEST(a_frame_pointer_is_believed_where_a_call_to_this_code_is_beside_it) {
  CHECK(believed(frames_after_plain));
  CHECK(!believed(frames_after_plain + 4));
  CHECK(!believed(frames_after_pointer));  // it may have called anything
  CHECK(!believed(frames_after_behind));   // what lies behind
  CHECK(!believed(nullptr));
}

TEST(the_frame_of_another_function_is_not_taken_for_this_ones) {
  CHECK(!believed(frames_after_listed));
}

TEST(a_frame_pointer_that_points_nowhere_is_not_believed) {
  const Address frame[2] = {0, address(frames_after_plain)};
  const Address pc = address(frames_plain) + 3, fp = address(frame);
  CHECK(has_frame_pointer({pc, fp, fp, 0}));
  CHECK(!has_frame_pointer({pc, fp + 8, fp, 0}));  // further in than the stack
  CHECK(!has_frame_pointer({pc, 0, fp + 4, 0}));
  CHECK(!has_frame_pointer({pc, 0, 0, 0}));
  CHECK(!has_frame_pointer({pc, 0, 16, 0}));
  CHECK(!has_frame_pointer({pc, 0, ~Address{7}, 0}));
}
