import { bindOnce } from '../system/native.ts'
import { SOL_SOCKET, POLLIN, MAX_ADDRESS_BYTES } from '../system/socket-numbers.ts'

export type HelperCalls = NonNullable<ReturnType<typeof loadHelperCalls>>

// poll.h, fcntl.h, sys/epoll.h, sys/mman.h, sys/socket.h
const EPOLL_CTL_ADD = 1
const MFD_CLOEXEC = 1
const F_GETFD = 1
const SO_LINGER = 13
const MAX_OPTION_BYTES = 64
const MAX_READ_BYTES = 4096

/** Calls of the system that the call helper alone needs: for it is a process of its own, and may wait. */
export const loadHelperCalls = bindOnce((koffi) => {
  const libc = koffi.load(null)
  const poll = libc.func('int poll(void *descriptors, unsigned long count, int timeoutMs)')
  const getsockopt = libc.func('int getsockopt(int fd, int level, int name, void *value, void *length)')
  const setsockopt = libc.func('int setsockopt(int fd, int level, int name, const void *value, unsigned int length)')
  const getpeername = libc.func('int getpeername(int fd, void *address, void *length)')
  const socket = libc.func('int socket(int domain, int type, int protocol)')
  const fcntl = libc.func('int fcntl(int fd, int command, ...)')
  const dup = libc.func('int dup(int fd)')
  const dup2 = libc.func('int dup2(int from, int to)')
  const epollCtl = libc.func('int epoll_ctl(int set, int operation, int fd, void *event)')
  const memfdCreate = libc.func('int memfd_create(const char *name, unsigned int flags)')
  const readMemory = libc.func(
    'long process_vm_readv(int pid, const void *local, unsigned long count, const void *remote, unsigned long remoteCount, unsigned long flags)'
  )
  const alarm = libc.func('unsigned int alarm(unsigned int seconds)')
  const close = libc.func('int close(int fd)')
  const strerror = libc.func('const char *strerror(int number)')

  const read = Buffer.alloc(MAX_READ_BYTES)
  // Two of struct iovec.
  const local = Buffer.alloc(16)
  const remote = Buffer.alloc(16)
  local.writeBigUInt64LE(BigInt(koffi.address(read)))

  return {
    /**
     * Reads the memory of another process with one call; a file of /proc takes three. Returns good until the next call;
     * null: that is not permitted, as in a container, or cannot be read.
     */
    memoryOf (thread: number, address: bigint, count: number): Buffer | null {
      for (const each of [local, remote]) each.writeBigUInt64LE(BigInt(count), 8)
      remote.writeBigUInt64LE(address)
      const length = Number(readMemory(thread, local, 1, remote, 1, 0))
      return length > 0 ? read.subarray(0, length) : null
    },

    /**
     * Waits until one of these can be read, or is closed by whoever had the other end. `timeoutMs`: -1: for ever.
     * Returns those that can.
     */
    readable (fds: readonly number[], timeoutMs: number): number[] {
      const list = Buffer.alloc(8 * fds.length)
      fds.forEach((fd, index) => {
        list.writeInt32LE(fd, 8 * index)
        list.writeInt16LE(POLLIN, 8 * index + 4)
      })
      poll(list, fds.length, timeoutMs)
      return fds.filter((_, index) => list.readInt16LE(8 * index + 6) !== 0)
    },

    /** The kernel ends this process unless it is called again within this time. `seconds`: 0: no more. */
    endAfter: (seconds: number) => alarm(seconds),

    /** @returns a file without a place, which two processes can have */
    memoryFile: (name: string): number => memfdCreate(name, MFD_CLOEXEC),

    /** @returns a socket that nobody has changed */
    freshSocket: ({ domain, type }: { domain: number, type: number }): number => socket(domain, type, 0),

    /** Null: it has no such option */
    optionOf (fd: number, level: number, name: number): Buffer | null {
      const value = Buffer.alloc(MAX_OPTION_BYTES)
      const length = Buffer.alloc(4)
      length.writeUInt32LE(value.length)
      return getsockopt(fd, level, name, value, length) < 0 ? null : value.subarray(0, length.readUInt32LE())
    },

    setOption: (fd: number, level: number, name: number, value: Buffer): boolean =>
      setsockopt(fd, level, name, value, value.length) === 0,

    /**
     * Adds a descriptor to an epoll set of another process as that one knows it: by its number there, which is taken
     * here for a moment. So nobody else may be at work in this process. `set`: a copy of that set. Returns why not;
     * null: it is in there.
     */
    addToSet (set: number, fd: number, number: number, { events, data }: { events: number, data: bigint }):
      | string
      | null
    {
      const event = Buffer.alloc(16)
      // struct epoll_event is packed on x86-64 alone.
      event.writeUInt32LE(events, 0)
      event.writeBigUInt64LE(data, process.arch === 'x64' ? 4 : 8)
      const aside = fcntl(number, F_GETFD) < 0 ? -1 : dup(number)
      if (number !== fd && dup2(fd, number) < 0) return strerror(koffi.errno())
      const isIn = epollCtl(number === set ? aside : set, EPOLL_CTL_ADD, number, event) === 0
      const reason = isIn ? null : strerror(koffi.errno())
      if (aside >= 0) {
        dup2(aside, number)
        close(aside)
      } else {
        close(number)
      }
      return reason
    },

    /**
     * Never waits for a connection that is to send what it has first: SO_LINGER, socket(7).
     * @param fd a copy of what a program has
     */
    closeCopy (fd: number) {
      const length = Buffer.alloc(4)
      length.writeUInt32LE(MAX_ADDRESS_BYTES)
      if (getpeername(fd, Buffer.alloc(MAX_ADDRESS_BYTES), length) === 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, Buffer.alloc(8), 8)
      close(fd)
    },

    errorText: (number: number): string => strerror(number)
  }
})
