import { createRequire } from 'node:module'
import { constants } from 'node:os'

/** @typedef {ReturnType<typeof bind>} Posix */

// linux/prctl.h, sys/wait.h, sys/socket.h
const PR_SET_CHILD_SUBREAPER = 36
const WNOHANG = 1
const AF_UNIX = 1
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000
const SIGNAL_MASK = 0x7f
// linux/falloc.h, unistd.h
const FALLOC_FL_KEEP_SIZE = 1
const FALLOC_FL_PUNCH_HOLE = 2
const SEEK_DATA = 3

/** @type {Posix | null | undefined} */
let loaded

/**
 * The few calls of the system that Node has no function for.
 * @returns {Posix | null} null where they cannot be had: not Linux, or the optional package is absent
 */
export function loadPosix () {
  if (loaded !== undefined) return loaded
  try {
    loaded = process.platform === 'linux' ? bind(createRequire(import.meta.url)('koffi')) : null
  } catch {
    // No binary for this machine.
    loaded = null
  }
  return loaded
}

/** @param {any} koffi */
function bind (koffi) {
  const libc = koffi.load(null)
  const prctl = libc.func('int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)')
  const waitpid = libc.func('int waitpid(int pid, _Out_ int *status, int options)')
  const socket = libc.func('int socket(int domain, int type, int protocol)')
  const sendto = libc.func('long sendto(int fd, const void *data, size_t size, int flags, const void *address, unsigned int length)')
  const close = libc.func('int close(int fd)')
  const fallocate = libc.func('int fallocate(int fd, int mode, int64_t offset, int64_t length)')
  const lseek = libc.func('int64_t lseek(int fd, int64_t offset, int whence)')

  return {
    /** @returns {boolean} whether processes whose parent dies become children of this one: prctl(2), Linux 3.4 */
    adoptOrphans: () => prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) === 0,

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

    /** @param {number} fd @returns {number} where its first block that is no hole begins; 0 where that cannot be told */
    firstData: (fd) => Math.max(0, Number(lseek(fd, 0, SEEK_DATA))),

    /**
     * Sends one datagram to a Unix socket, or not at all; it never waits for a receiver whose queue is full.
     * @param {string} path one that begins with @ is in the abstract namespace
     * @param {string} text @returns {boolean} whether it was taken
     */
    sendDatagram (path, text) {
      const fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
      if (fd < 0) return false
      try {
        const data = Buffer.from(text)
        const address = unixAddress(path)
        return sendto(fd, data, data.length, MSG_DONTWAIT | MSG_NOSIGNAL, address, address.length) === data.length
      } finally {
        close(fd)
      }
    }
  }
}

/** @param {string} path @returns {Buffer} a sockaddr_un, unix(7) */
function unixAddress (path) {
  const family = Buffer.alloc(2)
  new Uint16Array(family.buffer, family.byteOffset, 1)[0] = AF_UNIX
  return Buffer.concat([family, path.startsWith('@') ? Buffer.from(`\0${path.slice(1)}`) : Buffer.from(`${path}\0`)])
}

/** @param {number} number */
function signalName (number) {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`
}
