import { endianness } from 'node:os'
import { bindOnce, type Koffi } from './native.ts'
import { AF_INET, AF_INET6, SOCK_CLOEXEC, MSG_DONTWAIT, IPPROTO_TCP } from './socket-numbers.ts'

export type SocketDiagnostics = NonNullable<ReturnType<typeof loadSocketDiagnostics>>
/** `port`: only those with this local port */
type TcpQuery = { family: 4 | 6, port?: number }

// sys/socket.h, linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, net/tcp_states.h
const AF_NETLINK = 16
const SOCK_RAW = 3
const NETLINK_SOCK_DIAG = 4
const SOCK_DIAG_BY_FAMILY = 20
const NLM_F_REQUEST = 1
const NLM_F_DUMP = 0x300
const NLMSG_ERROR = 2
const NLMSG_DONE = 3
const HEADER_BYTES = 16
const REQUEST_BYTES = HEADER_BYTES + 56
const CONNECTED = 1 << 1 | 1 << 8
const LISTENING = 1 << 10
/** Offsets in struct inet_diag_msg, behind the header. */
const OF_PORT = HEADER_BYTES + 4
const OF_INODE = HEADER_BYTES + 68
/** The kernel fills no more at once. */
const ANSWER_BYTES = 32 * 1024

/** What the kernel knows of the TCP sockets of this network namespace: sock_diag(7); null where it does not tell. */
export const loadSocketDiagnostics = bindOnce((koffi) => endianness() === 'LE' ? bindCalls(koffi) : null)

function bindCalls (koffi: Koffi) {
  const libc = koffi.load(null)
  const socket = libc.func('int socket(int domain, int type, int protocol)')
  const send = libc.func('long send(int fd, const void *data, size_t size, int flags)')
  const recv = libc.func('long recv(int fd, void *data, size_t size, int flags)')
  const close = libc.func('int close(int fd)')
  const answer = Buffer.alloc(ANSWER_BYTES)

  return {
    /** `take`: for each that listens; for none where the kernel does not tell */
    listening: (query: TcpQuery, take: (inode: number, port: number) => void) =>
      dump(requestFor(LISTENING, query), take),

    /** `take`: for each that is connected, and has been accepted */
    connected: (query: TcpQuery, take: (inode: number, port: number) => void) =>
      dump(requestFor(CONNECTED, query), take)
  }

  function dump (request: Buffer, take: (inode: number, port: number) => void) {
    const fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
    if (fd < 0) return
    try {
      if (Number(send(fd, request, request.length, MSG_DONTWAIT)) !== request.length) return
      for (let isLast = false; !isLast;) {
        // The answer is there at once: the kernel makes the next part of it while this one is read.
        const size = Number(recv(fd, answer, answer.length, MSG_DONTWAIT))
        isLast = size <= 0 || readMessages(answer.subarray(0, size), take)
      }
    } finally {
      close(fd)
    }
  }
}

/** Tells whether the last message of all is in it */
function readMessages (part: Buffer, take: (inode: number, port: number) => void): boolean {
  for (let at = 0; at + HEADER_BYTES <= part.length;) {
    const length = part.readUInt32LE(at)
    const type = part.readUInt16LE(at + 4)
    if (type === NLMSG_DONE || type === NLMSG_ERROR) return true
    const inode = part.readUInt32LE(at + OF_INODE)
    // Nobody has accepted it yet.
    if (inode !== 0) take(inode, part.readUInt16BE(at + OF_PORT))
    at += Math.max(HEADER_BYTES, length + 3 & ~3)
  }
  return false
}

/** @returns a struct inet_diag_req_v2 behind its header */
function requestFor (states: number, { family, port = 0 }: TcpQuery): Buffer {
  const request = Buffer.alloc(REQUEST_BYTES)
  request.writeUInt32LE(REQUEST_BYTES, 0)
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, 4)
  request.writeUInt16LE(NLM_F_REQUEST | NLM_F_DUMP, 6)
  request[16] = family === 6 ? AF_INET6 : AF_INET
  request[17] = IPPROTO_TCP
  request.writeUInt32LE(states, 20)
  request.writeUInt16BE(port, 24)
  return request
}
