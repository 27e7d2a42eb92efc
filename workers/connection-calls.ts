import { createRequire } from 'node:module'
import { constants } from 'node:os'

// sys/socket.h, linux/tcp.h, fcntl.h
const AF_UNIX = 1
const SOCK_STREAM = 1
const SOCK_NONBLOCK = 0o4000
const SOCK_CLOEXEC = 0o2000000
const SOL_SOCKET = 1
const SO_PEERCRED = 17
const SCM_RIGHTS = 1
const MSG_PEEK = 2
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000
const SHUT_RD = 0
const IPPROTO_TCP = 6
const TCP_DEFER_ACCEPT = 9
const TCP_INFO = 11
/** Of struct tcp_info, up to the age of what was received last. */
const TCP_INFO_NUMBERS = 14
const F_DUPFD_CLOEXEC = 1030
/** struct msghdr, struct iovec, and struct cmsghdr with one descriptor, of 64 bits. */
const [MESSAGE, VECTOR, CONTROL, CONTROL_LENGTH] = [56, 16, 24, 20n]
/** The headers that Node reads at most. */
const HEAD = 16_384
const CREDENTIALS = 12
const { EAGAIN, ENOBUFS, ENOMEM, EINTR } = constants.errno
/** More descriptors are on their way than may be; Node does not name it. */
const ETOOMANYREFS = 109
/** What may succeed a little later. */
const FULL = [EAGAIN, ENOBUFS, ENOMEM, EINTR, ETOOMANYREFS]

export type ConnectionCalls = ReturnType<typeof bindCalls>

/** Null: not Linux with 64 bits, the optional package is absent, or the app may load no such */
export function loadConnectionCalls (): ConnectionCalls | null {
  if (process.platform !== 'linux' || ['arm', 'ia32', 'mips', 'mipsel', 'ppc', 's390'].includes(process.arch))
    return null
  try {
    return bindCalls(createRequire(import.meta.url)('koffi'))
  } catch {
    return null
  }
}

/** The calls of the system by which a connection is looked at, and goes from one worker to another. */
function bindCalls (koffi: typeof import('koffi')) {
  const libc = koffi.load(null)
  const recv = libc.func('long recv(int fd, void *bytes, size_t size, int flags)')
  const sendmsg = libc.func('long sendmsg(int fd, const void *message, int flags)')
  const send = libc.func('long send(int fd, const void *bytes, size_t size, int flags)')
  const socket = libc.func('int socket(int domain, int type, int protocol)')
  const connect = libc.func('int connect(int fd, const void *address, unsigned int length)')
  const close = libc.func('int close(int fd)')
  const shutdown = libc.func('int shutdown(int fd, int how)')
  const fcntl = libc.func('int fcntl(int fd, int command, ...)')
  const setsockopt = libc.func('int setsockopt(int fd, int level, int name, const void *value, unsigned int length)')
  const getsockopt = libc.func('int getsockopt(int fd, int level, int name, void *value, void *length)')
  const head = Buffer.alloc(HEAD)
  const message = new BigUint64Array(MESSAGE / 8)
  const vector = new BigUint64Array(VECTOR / 8)
  const control = new BigUint64Array(CONTROL / 8)
  const controlNumbers = new Int32Array(control.buffer)
  message[2] = koffi.address(vector)
  message[3] = 1n
  message[4] = koffi.address(control)
  message[5] = BigInt(CONTROL)
  control[0] = CONTROL_LENGTH
  controlNumbers.set([SOL_SOCKET, SCM_RIGHTS], 2)

  return {
    /** `fd`: of a connection. Returns its first bytes, which stay to be read; empty: none have come yet. */
    peek (fd: number): string {
      const length = Number(recv(fd, head, HEAD, MSG_PEEK | MSG_DONTWAIT))
      return length > 0 ? head.toString('latin1', 0, length) : ''
    },

    /** Connections are accepted once their first bytes are there, or after a second without: tcp(7). `fd`: listens. */
    waitForBytes (fd: number) {
      setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, Buffer.from(Int32Array.of(1).buffer), 4)
    },

    /** `fd`: of a connection. Returns how long ago its last bytes went and came; null: it is not of TCP. */
    agesOf (fd: number): { sentMs: number, heardMs: number } | null {
      const info = new Uint32Array(TCP_INFO_NUMBERS)
      if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, Uint32Array.of(info.byteLength)) !== 0) return null
      return { sentMs: info[11], heardMs: info[13] }
    },

    /** `path`: of a Unix socket. Returns null: nobody listens there. */
    connect (path: string): number | null {
      const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
      if (fd < 0) return null
      const address = addressOf(path)
      if (connect(fd, address, address.length) === 0) return fd
      close(fd)
      return null
    },

    /**
     * `to`: a connection of a Unix socket; `fd`: goes along. Returns how many bytes it took; 0: none at the moment; -1:
     * it is closed.
     */
    sendAlong (to: number, bytes: Buffer, fd: number): number {
      vector[0] = koffi.address(bytes)
      vector[1] = BigInt(bytes.length)
      controlNumbers[4] = fd
      return countSent(sendmsg(to, message, MSG_DONTWAIT | MSG_NOSIGNAL))
    },

    /** @returns as of sendAlong */
    send: (to: number, bytes: Buffer): number => countSent(send(to, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL)),

    close (fd: number) {
      close(fd)
    },

    /** Whoever sends to it learns from now on that it is closed; what was sent before can be read. */
    takeNoMore (fd: number) {
      shutdown(fd, SHUT_RD)
    },

    duplicate: (fd: number): number => fcntl(fd, F_DUPFD_CLOEXEC, 'int', 0),

    /** `fd`: of a Unix socket. Returns the user whose process has made the other end. */
    userOf (fd: number): number | null {
      const credentials = new Uint32Array(CREDENTIALS / 4)
      return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, Uint32Array.of(CREDENTIALS)) === 0
        ? credentials[1]
        : null
    }
  }

  function countSent (sent: number | bigint) {
    return Number(sent) >= 0 ? Number(sent) : FULL.includes(koffi.errno()) ? 0 : -1
  }
}

/** @returns a sockaddr_un, unix(7) */
function addressOf (path: string): Buffer {
  return Buffer.concat([Buffer.from(Uint16Array.of(AF_UNIX).buffer), Buffer.from(`${path}\0`)])
}
