import { bindOnce } from '../system/native.ts'
import { unixAddress } from '../system/posix.ts'
import { OF_CONTROL, OF_CONTROL_LENGTH, socketMessage } from '../system/socket-message.ts'
import { AF_UNIX, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_CLOEXEC, SOL_SOCKET, SCM_RIGHTS,
  MSG_CMSG_CLOEXEC } from '../system/socket-numbers.ts'

/** `pid`: of its sender, as the kernel knows it; 0: it is none of this machine */
export type Datagram = { text: string, pid: number }
/** of a descriptor that a program has sent along */
export type Close = (fd: number) => void

// sys/socket.h
const SO_PASSCRED = 16
const SCM_CREDENTIALS = 2
/** The longest that systemd takes. */
const MAX_TEXT_BYTES = 4096
/** For the sender's credentials and some descriptors; the kernel closes what has no room. */
const CONTROL_BYTES = 256
/** The size of a struct cmsghdr, without the data behind it. */
const HEAD_BYTES = 16

/** The calls for a socket that programs send to what they say of themselves; null where they cannot be had. */
export const loadNotifyCalls = bindOnce((koffi) => {
  const libc = koffi.load(null)
  const socket = libc.func('int socket(int domain, int type, int protocol)')
  const bind = libc.func('int bind(int fd, const void *address, unsigned int length)')
  const setsockopt = libc.func('int setsockopt(int fd, int level, int name, const void *value, unsigned int length)')
  const recvmsg = libc.func('long recvmsg(int fd, void *message, int flags)')
  const close = libc.func('int close(int fd)')
  const strerror = libc.func('const char *strerror(int number)')

  return {
    /** @returns a socket that datagrams can be sent to */
    open (path: string): { fd: number, reason?: undefined } | { fd?: undefined, reason: string } {
      const fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
      const address = unixAddress(path)
      const yes = Buffer.alloc(4)
      yes.writeInt32LE(1)
      if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, yes, yes.length) === 0 &&
        bind(fd, address, address.length) === 0) return { fd }
      const reason = strerror(koffi.errno())
      if (fd >= 0) close(fd)
      return { reason }
    },

    /** Never waits for a datagram. Returns null: there is none. */
    take (fd: number, closeSent: Close): Datagram | null {
      const data = Buffer.alloc(MAX_TEXT_BYTES)
      const message = socketMessage(koffi, data, CONTROL_BYTES)
      const length = Number(recvmsg(fd, message, MSG_CMSG_CLOEXEC))
      if (length < 0) return null
      const pid = readControl(
        message.subarray(OF_CONTROL, OF_CONTROL + Number(message.readBigUInt64LE(OF_CONTROL_LENGTH))),
        closeSent
      )
      return { text: data.toString('utf8', 0, length), pid }
    },

    close (fd: number) {
      close(fd)
    }
  }

  /**
   * Closes the descriptors that came along: whoever sends BARRIER=1 waits for that, and nothing else that is said with
   * one is of use here. Returns the pid of the sender.
   */
  function readControl (control: Buffer, closeSent: Close): number {
    let pid = 0
    for (let at = 0; at + HEAD_BYTES <= control.length;) {
      const length = Number(control.readBigUInt64LE(at))
      if (length < HEAD_BYTES) break
      const [level, type] = [control.readInt32LE(at + 8), control.readInt32LE(at + 12)]
      if (level === SOL_SOCKET && type === SCM_CREDENTIALS) pid = control.readInt32LE(at + HEAD_BYTES)
      if (level === SOL_SOCKET && type === SCM_RIGHTS) {
        for (let fd = at + HEAD_BYTES; fd + 4 <= at + length; fd += 4) closeSent(control.readInt32LE(fd))
      }
      at += Math.ceil(length / 8) * 8
    }
    return pid
  }
})
