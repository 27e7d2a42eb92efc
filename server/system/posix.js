import { constants, endianness } from 'node:os'
import { bindOnce } from './native.js'

/** @typedef {ReturnType<typeof bindLibc>} Posix */
/** @typedef {{ address: string, port: number, isV6Only?: boolean, prepare?: (fd: number) => void }} Place  `prepare`: sets what has to be set before bind(2) */
/** @typedef {[code: number, jt: number, jf: number, k: number]} Instruction  a struct sock_filter, linux/filter.h */

// linux/prctl.h, sys/wait.h, sys/socket.h, netinet/in.h
const PR_SET_PDEATHSIG = 1
const PR_SET_CHILD_SUBREAPER = 36
const WNOHANG = 1
const AF_UNIX = 1
const AF_INET = 2
const AF_INET6 = 10
/** The room for a path in a struct sockaddr_un. */
const PATH_BYTES = 108
const SOCK_STREAM = 1
const SOCK_DGRAM = 2
const SOCK_NONBLOCK = 0o4000
const SOCK_CLOEXEC = 0o2000000
const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const SO_REUSEPORT = 15
const SO_ATTACH_FILTER = 26
const SO_DETACH_FILTER = 27
const SO_ACCEPTCONN = 30
const SO_MEMINFO = 55
const MEMINFO_BYTES = 36
const MEMINFO_DROPS = 32
const SO_ATTACH_REUSEPORT_CBPF = 51
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26
const IPPROTO_TCP = 6
const TCP_INFO = 11
const TCP_INFO_BYTES = 104
const TCPI_UNACKED = 24
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000
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
const POLLIN = 1
const POLLRDHUP = 0x2000
const FILTER_HEAD_BYTES = 16

/** The few calls of the system that Node has no function for; null where they cannot be had. */
export const loadPosix = bindOnce(bindLibc)

/** @param {any} koffi */
function bindLibc (koffi) {
  const libc = koffi.load(null)
  const prctl = libc.func('int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)')
  const waitpid = libc.func('int waitpid(int pid, _Out_ int *status, int options)')
  const socket = libc.func('int socket(int domain, int type, int protocol)')
  const sendto = libc.func('long sendto(int fd, const void *data, size_t size, int flags, const void *address, unsigned int length)')
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
  const toIndex = libc.func('unsigned int if_nametoindex(const char *name)')

  return {
    /** @param {string} file @param {string} name  with its namespace @returns {string | null} its extended attribute: xattr(7) */
    attributeOf (file, name) {
      const value = Buffer.alloc(256)
      const length = Number(getxattr(file, name, value, value.length))
      return length < 0 ? null : value.toString('utf8', 0, length)
    },

    /** @returns {boolean} whether processes whose parent dies become children of this one: prctl(2), Linux 3.4 */
    adoptOrphans: () => prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) === 0,

    /** This process is told to end when its parent has: prctl(2). */
    endWithParent () { prctl(PR_SET_PDEATHSIG, constants.signals.SIGTERM, 0, 0, 0) },

    /**
     * Never waits: waitpid(2) with WNOHANG.
     * @param {number} pid @returns {{ code: number | null, signal: string | null } | null} null while it lives
     */
    wait (pid) {
      const status = [0]
      if (waitpid(pid, status, WNOHANG) !== pid) return null
      const signal = status[0] & SIGNAL_MASK
      return signal === 0 ? { code: (status[0] >> 8) & 0xff, signal: null } : { code: null, signal: signalName(signal) }
    },

    /**
     * Gives a part of a file back to the file system; the rest stays at its offsets.
     * @param {number} fd @param {number} from @param {number} to @returns {boolean} false: this file system cannot
     */
    punchHole: (fd, from, to) => fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from) === 0,

    /**
     * Takes the beginning of a file away; whoever appends to it never notices.
     * @param {number} fd @param {number} bytes  whole blocks @returns {boolean} false: this file system cannot
     */
    cutOff: (fd, bytes) => fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, bytes) === 0,

    /** Until it is closed. @param {number} fd @returns {boolean} false: somebody else has it */
    lock: (fd) => flock(fd, LOCK_EX | LOCK_NB) === 0,

    /** @param {number} fd @returns {number} where its first block that is no hole begins; 0 where that cannot be told */
    firstData: (fd) => Math.max(0, Number(lseek(fd, 0, SEEK_DATA))),

    /**
     * Sends one datagram to a Unix socket, or not at all; it never waits for a receiver whose queue is full.
     * @param {string} path one that begins with @ is in the abstract namespace
     * @param {string | Buffer} content @returns {boolean} whether it was taken
     */
    sendDatagram (path, content) {
      const fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
      if (fd < 0) return false
      try {
        const data = typeof content === 'string' ? Buffer.from(content) : content
        const address = unixAddress(path)
        return sendto(fd, data, data.length, MSG_DONTWAIT | MSG_NOSIGNAL, address, address.length) === data.length
      } finally {
        close(fd)
      }
    },

    /** @returns {number} a Unix socket that is bound to nothing; below 0: an error number */
    unixSocket () {
      const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
      return fd < 0 ? -koffi.errno() : fd
    },

    /** Another descriptor leads to the same from now on. @param {number} fd @param {number} other @returns {boolean} */
    duplicate: (fd, other) => dup2(fd, other) === other,

    /**
     * A TCP socket that is bound, and does not listen. Where `isShared` is false the address has to be free.
     * @param {Place & { isShared: boolean }} place  `isShared`: with others that were bound so
     */
    bindTcp: ({ isShared, ...place }) => bindSocket(SOCK_STREAM, place, (fd) => {
      setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1)
      if (isShared) setOption(fd, SOL_SOCKET, SO_REUSEPORT, 1)
    }),

    /** A UDP socket that is bound, and so receives. @param {Place} place */
    bindUdp: (place) => bindSocket(SOCK_DGRAM, place),

    /** @param {number} fd @param {string} file @returns {number} 0, or below it an error number */
    bindUnix (fd, file) {
      const name = Buffer.concat([Buffer.from(Uint16Array.of(AF_UNIX).buffer), Buffer.from(file)])
      if (name.length > PATH_BYTES + 2) return -constants.errno.ENAMETOOLONG
      return bindTo(fd, name, name.length) === 0 ? 0 : -koffi.errno()
    },

    /** @param {string} folder @returns {number} 0, or below it an error number */
    changeRoot: (folder) => chroot(folder) === 0 ? 0 : -koffi.errno(),

    /**
     * @param {number} fd of a Unix socket @param {number} [timeoutMs]  how long it waits for somebody; below 0: as long as it takes
     * @returns {{ isWaitedFor: boolean, isShut: boolean }} `isWaitedFor`: somebody has connected, and is not accepted yet, or has sent something; `isShut`: nobody can
     *   connect any more, as a process has called shutdown(2)
     */
    lookAtUnix (fd, timeoutMs = 0) {
      const asked = Buffer.from(Int32Array.of(fd, POLLIN | POLLRDHUP).buffer)
      poll(asked, 1, timeoutMs)
      const found = asked.readUInt16LE(6)
      return { isWaitedFor: (found & POLLIN) !== 0, isShut: (found & POLLRDHUP) !== 0 }
    },

    /**
     * Another program takes the place of this one, in the same process: execve(2). It returns only where that is not possible.
     * @param {string} file @param {string[]} args @param {string[]} env @param {number} descriptors how many of them it gets, from 0 on; Node closes all others for it
     * @returns {string} why not
     */
    execute (file, args, env, descriptors) {
      // Node ignores it, and what is ignored stays so.
      signal(constants.signals.SIGPIPE, null)
      for (let fd = 0; fd < descriptors; fd++) fcntl(fd, F_SETFD, 'int', 0)
      execve(file, [...args, null], [...env, null])
      return strerror(koffi.errno())
    },

    /**
     * Sets the soft limit of a process (setrlimit(2)), at most to its hard one.
     * @param {number} pid 0: this one @param {number} resource @param {number} soft
     */
    limitSoftly (pid, resource, soft) {
      const limits = new BigUint64Array(2)
      if (prlimit(pid, resource, null, limits) !== 0) return
      limits[0] = soft < limits[1] ? BigInt(soft) : limits[1]
      prlimit(pid, resource, limits, null)
    },

    /** Others may be bound to its address from now on: SO_REUSEPORT, socket(7). @param {number} fd @returns {boolean} */
    sharePort: (fd) => setOption(fd, SOL_SOCKET, SO_REUSEPORT, 1),

    /** @param {number} fd of a socket @returns {boolean} whether it accepts connections */
    isListening: (fd) => readOption(fd, SOL_SOCKET, SO_ACCEPTCONN, 4)?.some(Boolean) ?? false,

    /** @param {number} fd @returns {boolean} whether it is of IPv6, and takes no connection of IPv4 */
    isV6Only: (fd) => readOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 4)?.some(Boolean) ?? false,

    /** @param {number} fd of a socket @returns {number} how many packets it has not taken: sock_diag(7), SK_MEMINFO_DROPS */
    dropped: (fd) => numberAt(readOption(fd, SOL_SOCKET, SO_MEMINFO, MEMINFO_BYTES), MEMINFO_DROPS),

    /** Never waits: connect(2). @param {number} fd of a TCP socket @param {string} address @param {number} port */
    connect (fd, address, port) {
      const name = addressOf(address, port)
      if (name !== null) connect(fd, name, name.length)
    },

    /** @param {number} fd @param {number} backlog @returns {number} 0, or below it an error number */
    listen: (fd, backlog) => listen(fd, backlog) === 0 ? 0 : -koffi.errno(),

    /** @param {number} fd of a TCP socket that listens @returns {number} how many connections nobody has accepted yet: tcpi_unacked, tcp(7) */
    queueLength: (fd) => numberAt(readOption(fd, IPPROTO_TCP, TCP_INFO, TCP_INFO_BYTES), TCPI_UNACKED),

    /**
     * For the whole group of sockets that share the port of this one.
     * @param {number} fd @param {Instruction[]} program returns the index of one of them
     * @returns {boolean} false: the kernel does not take it
     */
    pickBy: (fd, program) => setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, toFilter(koffi, program), FILTER_HEAD_BYTES) === 0,

    /** @param {number} fd @param {Instruction[] | null} program returns how many bytes of each packet it takes, 0: none; null: it takes all packets */
    takeBy (fd, program) {
      if (program) setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, toFilter(koffi, program), FILTER_HEAD_BYTES)
      else setOption(fd, SOL_SOCKET, SO_DETACH_FILTER, 0)
    }
  }

  /**
   * @param {number} type @param {Place} place @param {(fd: number) => void} [setUp]  before it is bound
   * @returns {{ fd: number, errno?: undefined } | { fd?: undefined, errno: number }} `errno`: below 0, as libuv has it
   */
  function bindSocket (type, { address, port, isV6Only = false, prepare = () => {} }, setUp = () => {}) {
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

  /** @param {number} fd @param {number} level @param {number} name @param {number} value */
  function setOption (fd, level, name, value) {
    const { buffer } = Int32Array.of(value)
    return setsockopt(fd, level, name, Buffer.from(buffer), 4) === 0
  }

  /** @param {number} fd @param {number} level @param {number} name @param {number} size @returns {Buffer | null} null: it has no such option */
  function readOption (fd, level, name, size) {
    const value = Buffer.alloc(size)
    return getsockopt(fd, level, name, value, Buffer.from(Uint32Array.of(size).buffer)) === 0 ? value : null
  }

  /** @param {string} address @param {number} port @returns {Buffer | null} null: that is no address */
  function addressOf (address, port) {
    return address.includes(':') ? addressV6(address, port) : addressV4(address, port)
  }

  /** @param {string} address @param {number} port @returns {Buffer | null} a sockaddr_in, ip(7); null: that is no address */
  function addressV4 (address, port) {
    const name = Buffer.alloc(16)
    new Uint16Array(name.buffer, name.byteOffset, 1)[0] = AF_INET
    name.writeUInt16BE(port, 2)
    return toBytes(AF_INET, address, name.subarray(4)) === 1 ? name : null
  }

  /** @param {string} address @param {number} port @returns {Buffer | null} a sockaddr_in6, ipv6(7) */
  function addressV6 (address, port) {
    const [host, scope] = address.split('%')
    const name = Buffer.alloc(28)
    new Uint16Array(name.buffer, name.byteOffset, 1)[0] = AF_INET6
    name.writeUInt16BE(port, 2)
    const isKnown = toBytes(AF_INET6, host, name.subarray(8)) === 1
    if (scope !== undefined) new Uint32Array(name.buffer, name.byteOffset + 24, 1)[0] = toIndex(scope) || Number(scope)
    return isKnown ? name : null
  }
}

/**
 * @param {any} koffi @param {Instruction[]} program
 * @returns {Buffer} a struct sock_fprog, linux/filter.h, and in the same memory what it points to
 */
export function toFilter (koffi, program) {
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

/** @param {Buffer | null} value @param {number} at @returns {number} of 32 bits; 0 where there is no value */
function numberAt (value, at) {
  return value ? new DataView(value.buffer, value.byteOffset).getUint32(at, IS_LITTLE) : 0
}

/** @param {string} path @returns {Buffer} a sockaddr_un, unix(7) */
export function unixAddress (path) {
  const family = Buffer.alloc(2)
  new Uint16Array(family.buffer, family.byteOffset, 1)[0] = AF_UNIX
  return Buffer.concat([family, path.startsWith('@') ? Buffer.from(`\0${path.slice(1)}`) : Buffer.from(`${path}\0`)])
}

/** @param {number} number */
function signalName (number) {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`
}
