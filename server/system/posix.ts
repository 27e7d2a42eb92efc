import { constants, endianness } from 'node:os'
import { attempt } from '../errors.ts'
import { bindOnce, type Koffi } from './native.ts'
import { messageToSend } from './socket-message.ts'
import { AF_UNIX, AF_INET, AF_INET6, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_CLOEXEC, SOL_SOCKET, SO_REUSEPORT, SO_ACCEPTCONN,
  MSG_DONTWAIT, MSG_NOSIGNAL, IPPROTO_TCP, IPPROTO_IPV6, POLLIN } from './socket-numbers.ts'

export type Posix = ReturnType<typeof bindLibc>
/** `prepare`: sets what has to be set before bind(2) */
type Place = { address: string, port: number, isV6Only?: boolean, prepare?: (fd: number) => void }
/** a struct sock_filter, linux/filter.h */
export type Instruction = [code: number, jt: number, jf: number, k: number]

// linux/prctl.h, sys/wait.h, sys/socket.h, netinet/in.h
const PR_SET_PDEATHSIG = 1
const PR_SET_CHILD_SUBREAPER = 36
const WNOHANG = 1
/** The room for a path in a struct sockaddr_un. */
const PATH_BYTES = 108
const SOCK_STREAM = 1
const SO_REUSEADDR = 2
const SO_ATTACH_FILTER = 26
const SO_DETACH_FILTER = 27
const SO_MEMINFO = 55
const MEMINFO_BYTES = 36
const MEMINFO_DROPS = 32
const SO_ATTACH_REUSEPORT_CBPF = 51
const IPV6_V6ONLY = 26
const TCP_INFO = 11
const TCP_INFO_BYTES = 104
const TCPI_UNACKED = 24
const SIGNAL_MASK = 0x7f
const IS_LITTLE = endianness() === 'LE'
// linux/falloc.h, unistd.h
const FALLOC_FL_KEEP_SIZE = 1
const FALLOC_FL_PUNCH_HOLE = 2
const FALLOC_FL_COLLAPSE_RANGE = 8
const SEEK_DATA = 3
// sys/file.h
const LOCK_EX = 2
const LOCK_NB = 4
// fcntl.h, poll.h
const F_SETFD = 2
const POLLRDHUP = 0x2000
const FILTER_HEAD_BYTES = 16

/** The few calls of the system that Node has no function for; null where they cannot be had. */
export const loadPosix = bindOnce(bindLibc)

function bindLibc (koffi: Koffi) {
  const libc = koffi.load(null)
  const prctl = libc.func('int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)')
  const waitpid = libc.func('int waitpid(int pid, _Out_ int *status, int options)')
  const socket = libc.func('int socket(int domain, int type, int protocol)')
  const sendmsg = libc.func('long sendmsg(int fd, void *message, int flags)')
  const close = libc.func('int close(int fd)')
  const dup2 = libc.func('int dup2(int fd, int other)')
  const fallocate = libc.func('int fallocate(int fd, int mode, int64_t offset, int64_t length)')
  const flock = libc.func('int flock(int fd, int operation)')
  const lseek = libc.func('int64_t lseek(int fd, int64_t offset, int whence)')
  const setsockopt = libc.func('int setsockopt(int fd, int level, int name, const void *value, unsigned int length)')
  const getsockopt = libc.func('int getsockopt(int fd, int level, int name, void *value, void *length)')
  const bindTo = libc.func('int bind(int fd, const void *address, unsigned int length)')
  const connect = libc.func('int connect(int fd, const void *address, unsigned int length)')
  const listen = libc.func('int listen(int fd, int backlog)')
  const toBytes = libc.func('int inet_pton(int family, const char *text, void *bytes)')
  const fcntl = libc.func('int fcntl(int fd, int command, ...)')
  const signal = libc.func('void *signal(int number, void *handler)')
  const strerror = libc.func('const char *strerror(int number)')
  const getxattr = libc.func('long getxattr(const char *path, const char *name, void *value, size_t size)')
  const execve = libc.func('int execve(const char *file, const char **args, const char **env)')
  const chroot = libc.func('int chroot(const char *path)')
  const prlimit = libc.func('int prlimit(int pid, int resource, const void *limit, void *old)')
  const poll = libc.func('int poll(void *descriptors, unsigned long count, int timeoutMs)')
  // musl has no such function.
  const trim = attempt(() => libc.func('int malloc_trim(size_t kept)'))
  const toIndex = libc.func('unsigned int if_nametoindex(const char *name)')

  return {
    /** `name`: with its namespace. Returns its extended attribute: xattr(7). */
    attributeOf (file: string, name: string): string | null {
      const value = Buffer.alloc(256)
      const length = Number(getxattr(file, name, value, value.length))
      return length < 0 ? null : value.toString('utf8', 0, length)
    },

    /** Tells whether processes whose parent dies become children of this one: prctl(2), Linux 3.4 */
    adoptOrphans: (): boolean => prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) === 0,

    /** Gives the free memory between what is in use back to the kernel: malloc_trim(3). */
    trimMemory () {
      trim?.(0)
    },

    /** This process is told to end when its parent has: prctl(2). */
    endWithParent () {
      prctl(PR_SET_PDEATHSIG, constants.signals.SIGTERM, 0, 0, 0)
    },

    /** Never waits: waitpid(2) with WNOHANG. Returns null while it lives. */
    wait (pid: number): { code: number | null, signal: string | null } | null {
      const status = [0]
      if (waitpid(pid, status, WNOHANG) !== pid) return null
      const signal = status[0] & SIGNAL_MASK
      return signal === 0 ? { code: (status[0] >> 8) & 0xff, signal: null } : { code: null, signal: signalName(signal) }
    },

    /**
     * Gives a part of a file back to the file system; the rest stays at its offsets.
     * @returns false: this file system cannot
     */
    punchHole: (fd: number, from: number, to: number): boolean =>
      fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from) === 0,

    /**
     * Takes the beginning of a file away; whoever appends to it never notices. `bytes`: whole blocks. Returns false:
     * this file system cannot.
     */
    cutOff: (fd: number, bytes: number): boolean => fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, bytes) === 0,

    /** Until it is closed. Returns false: somebody else has it. */
    lock: (fd: number): boolean => flock(fd, LOCK_EX | LOCK_NB) === 0,

    /** @returns where its first block that is no hole begins; 0 where that cannot be told */
    firstData: (fd: number): number => Math.max(0, Number(lseek(fd, 0, SEEK_DATA))),

    /**
     * Sends one datagram to a Unix socket, or not at all; it never waits for a receiver whose queue is full. `path`:
     * one that begins with @ is in the abstract namespace; `descriptor`: goes along. Returns whether it was taken.
     */
    sendDatagram (path: string, content: string | Buffer, descriptor?: number): boolean {
      const fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
      if (fd < 0) return false
      try {
        const data = typeof content === 'string' ? Buffer.from(content) : content
        const address = unixAddress(path)
        const message = messageToSend(koffi, data, descriptor)
        message.writeBigUInt64LE(BigInt(koffi.address(address)), 0)
        message.writeUInt32LE(address.length, 8)
        return Number(sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL)) === data.length
      } finally {
        close(fd)
      }
    },

    /** @returns a Unix socket that is bound to nothing; below 0: an error number */
    unixSocket (): number {
      const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
      return fd < 0 ? -koffi.errno() : fd
    },

    /** Another descriptor leads to the same from now on. */
    duplicate: (fd: number, other: number): boolean => dup2(fd, other) === other,

    /**
     * A TCP socket that is bound, and does not listen. Where `isShared` is false the address has to be free.
     * `isShared`: with others that were bound so.
     */
    bindTcp: ({ isShared, ...place }: Place & { isShared: boolean }) =>
      bindSocket(SOCK_STREAM, place, (fd) => {
        setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1)
        if (isShared) setOption(fd, SOL_SOCKET, SO_REUSEPORT, 1)
      }),

    /** A UDP socket that is bound, and so receives. */
    bindUdp: (place: Place) => bindSocket(SOCK_DGRAM, place),

    /** @returns 0, or below it an error number */
    bindUnix (fd: number, file: string): number {
      const name = Buffer.concat([Buffer.from(Uint16Array.of(AF_UNIX).buffer), Buffer.from(file)])
      if (name.length > PATH_BYTES + 2) return -constants.errno.ENAMETOOLONG
      return bindTo(fd, name, name.length) === 0 ? 0 : -koffi.errno()
    },

    /** @returns 0, or below it an error number */
    changeRoot: (folder: string): number => chroot(folder) === 0 ? 0 : -koffi.errno(),

    /**
     * `fd`: of a Unix socket; `timeoutMs`: how long it waits for somebody; below 0: as long as it takes. Returns
     * `isWaitedFor`: somebody has connected, and is not accepted yet, or has sent something; `isShut`: nobody can
     * connect any more, as a process has called shutdown(2).
     */
    lookAtUnix (fd: number, timeoutMs: number = 0): { isWaitedFor: boolean, isShut: boolean } {
      const asked = Buffer.from(Int32Array.of(fd, POLLIN | POLLRDHUP).buffer)
      poll(asked, 1, timeoutMs)
      const found = asked.readUInt16LE(6)
      return { isWaitedFor: (found & POLLIN) !== 0, isShut: (found & POLLRDHUP) !== 0 }
    },

    /**
     * Another program takes the place of this one, in the same process: execve(2). It returns only where that is not
     * possible. `descriptors`: how many of them it gets, from 0 on; Node closes all others for it. Returns why not.
     */
    execute (file: string, args: string[], env: string[], descriptors: number): string {
      // Node ignores it, and what is ignored stays so.
      signal(constants.signals.SIGPIPE, null)
      for (let fd = 0; fd < descriptors; fd++) fcntl(fd, F_SETFD, 'int', 0)
      execve(file, [...args, null], [...env, null])
      return strerror(koffi.errno())
    },

    /** Sets the soft limit of a process (setrlimit(2)), at most to its hard one. `pid`: 0: this one. */
    limitSoftly (pid: number, resource: number, soft: number) {
      const limits = new BigUint64Array(2)
      if (prlimit(pid, resource, null, limits) !== 0) return
      limits[0] = soft < limits[1] ? BigInt(soft) : limits[1]
      prlimit(pid, resource, limits, null)
    },

    /** Others may be bound to its address from now on: SO_REUSEPORT, socket(7). */
    sharePort: (fd: number): boolean => setOption(fd, SOL_SOCKET, SO_REUSEPORT, 1),

    /** `fd`: of a socket. Returns whether it accepts connections. */
    isListening: (fd: number): boolean => readOption(fd, SOL_SOCKET, SO_ACCEPTCONN, 4)?.some(Boolean) ?? false,

    /** Tells whether it is of IPv6, and takes no connection of IPv4 */
    isV6Only: (fd: number): boolean => readOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 4)?.some(Boolean) ?? false,

    /** `fd`: of a socket. Returns how many packets it has not taken: sock_diag(7), SK_MEMINFO_DROPS. */
    dropped: (fd: number): number => numberAt(readOption(fd, SOL_SOCKET, SO_MEMINFO, MEMINFO_BYTES), MEMINFO_DROPS),

    /** Never waits: connect(2). `fd`: of a TCP socket. */
    connect (fd: number, address: string, port: number) {
      const name = addressOf(address, port)
      if (name !== null) connect(fd, name, name.length)
    },

    /** @returns 0, or below it an error number */
    listen: (fd: number, backlog: number): number => listen(fd, backlog) === 0 ? 0 : -koffi.errno(),

    /**
     * `fd`: of a TCP socket that listens. Returns how many connections nobody has accepted yet: tcpi_unacked, tcp(7).
     */
    queueLength: (fd: number): number => numberAt(readOption(fd, IPPROTO_TCP, TCP_INFO, TCP_INFO_BYTES), TCPI_UNACKED),

    /**
     * For the whole group of sockets that share the port of this one. `program`: returns the index of one of them.
     * Returns false: the kernel does not take it.
     */
    pickBy: (fd: number, program: Instruction[]): boolean =>
      setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, toFilter(koffi, program), FILTER_HEAD_BYTES) === 0,

    /** `program`: returns how many bytes of each packet it takes, 0: none; null: it takes all packets */
    takeBy (fd: number, program: Instruction[] | null) {
      if (program) setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, toFilter(koffi, program), FILTER_HEAD_BYTES)
      else setOption(fd, SOL_SOCKET, SO_DETACH_FILTER, 0)
    }
  }

  /** `setUp`: before it is bound. Returns `errno`: below 0, as libuv has it. */
  function bindSocket (type: number, { address, port, isV6Only = false, prepare = () => {} }: Place,
    setUp: (fd: number) => void = () => {}): { fd: number, errno?: undefined } | { fd?: undefined, errno: number }
  {
    const isV6 = address.includes(':')
    const fd = socket(isV6 ? AF_INET6 : AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if (fd < 0) return { errno: -koffi.errno() }
    setUp(fd)
    if (isV6) setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, Number(isV6Only))
    prepare(fd)
    const name = addressOf(address, port)
    const errno = name === null ? constants.errno.EINVAL : bindTo(fd, name, name.length) === 0 ? 0 : koffi.errno()
    if (errno === 0) return { fd }
    close(fd)
    return { errno: -errno }
  }

  function setOption (fd: number, level: number, name: number, value: number) {
    const { buffer } = Int32Array.of(value)
    return setsockopt(fd, level, name, Buffer.from(buffer), 4) === 0
  }

  /** Null: it has no such option */
  function readOption (fd: number, level: number, name: number, size: number): Buffer | null {
    const value = Buffer.alloc(size)
    return getsockopt(fd, level, name, value, Buffer.from(Uint32Array.of(size).buffer)) === 0 ? value : null
  }

  /** Null: that is no address */
  function addressOf (address: string, port: number): Buffer | null {
    return address.includes(':') ? addressV6(address, port) : addressV4(address, port)
  }

  /** @returns a sockaddr_in, ip(7); null: that is no address */
  function addressV4 (address: string, port: number): Buffer | null {
    const name = Buffer.alloc(16)
    new Uint16Array(name.buffer, name.byteOffset, 1)[0] = AF_INET
    name.writeUInt16BE(port, 2)
    return toBytes(AF_INET, address, name.subarray(4)) === 1 ? name : null
  }

  /** @returns a sockaddr_in6, ipv6(7) */
  function addressV6 (address: string, port: number): Buffer | null {
    const [host, scope] = address.split('%')
    const name = Buffer.alloc(28)
    new Uint16Array(name.buffer, name.byteOffset, 1)[0] = AF_INET6
    name.writeUInt16BE(port, 2)
    const isKnown = toBytes(AF_INET6, host, name.subarray(8)) === 1
    if (scope !== undefined) new Uint32Array(name.buffer, name.byteOffset + 24, 1)[0] = toIndex(scope) || Number(scope)
    return isKnown ? name : null
  }
}

/** @returns a struct sock_fprog, linux/filter.h, and in the same memory what it points to */
export function toFilter (koffi: Koffi, program: Instruction[]): Buffer {
  const whole = Buffer.alloc(FILTER_HEAD_BYTES + 8 * program.length)
  const view = new DataView(whole.buffer, whole.byteOffset)
  view.setUint16(0, program.length, IS_LITTLE)
  view.setBigUint64(8, BigInt(koffi.address(whole)) + BigInt(FILTER_HEAD_BYTES), IS_LITTLE)
  for (const [index, [operation, ifTrue, ifFalse, k]] of program.entries()) {
    const at = FILTER_HEAD_BYTES + 8 * index
    view.setUint16(at, operation, IS_LITTLE)
    view.setUint8(at + 2, ifTrue)
    view.setUint8(at + 3, ifFalse)
    view.setUint32(at + 4, k, IS_LITTLE)
  }
  return whole
}

/** @returns of 32 bits; 0 where there is no value */
function numberAt (value: Buffer | null, at: number): number {
  return value ? new DataView(value.buffer, value.byteOffset).getUint32(at, IS_LITTLE) : 0
}

/** @returns a sockaddr_un, unix(7) */
export function unixAddress (path: string): Buffer {
  const family = Buffer.alloc(2)
  new Uint16Array(family.buffer, family.byteOffset, 1)[0] = AF_UNIX
  return Buffer.concat([family, path.startsWith('@') ? Buffer.from(`\0${path.slice(1)}`) : Buffer.from(`${path}\0`)])
}

function signalName (number: number) {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`
}
