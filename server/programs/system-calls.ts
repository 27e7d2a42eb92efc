import { constants, release } from 'node:os'
import { bindOnce, type Koffi } from '../system/native.ts'
import { loadPosix, toFilter, type Instruction } from '../system/posix.ts'
import { messageToSend, OF_CONTROL, OF_CONTROL_LENGTH, ONE_DESCRIPTOR_BYTES,
  socketMessage } from '../system/socket-message.ts'
import { AF_UNIX, SOCK_CLOEXEC, SOL_SOCKET, SO_REUSEPORT, SO_ACCEPTCONN, SCM_RIGHTS, MSG_DONTWAIT, MSG_NOSIGNAL,
  MSG_CMSG_CLOEXEC, O_NONBLOCK, O_CLOEXEC, MAX_ADDRESS_BYTES } from '../system/socket-numbers.ts'

export type SystemCalls = NonNullable<ReturnType<typeof loadSystemCalls>>
/** of a call that waits for its answer */
export type Notice = { id: bigint, thread: number, call: Call, args: bigint[] }
type Call = 'bind' | 'listen' | 'unlink' | 'unlinkat'

/** Numbers of system calls by architecture: the kernel's tables. `audit`: linux/audit.h. */
export const NUMBERS = Object.freeze({
  x64: { audit: 0xc000003e, bind: 49, listen: 50, getsockopt: 55, unlink: 87, unlinkat: 263, seccomp: 317,
    pidfdSendSignal: 424, pidfdOpen: 434, pidfdGetfd: 438 },
  arm64: { audit: 0xc00000b7, bind: 200, listen: 201, getsockopt: 209, unlink: null, unlinkat: 35, seccomp: 277,
    pidfdSendSignal: 424, pidfdOpen: 434, pidfdGetfd: 438 }
})
const HELD: readonly Call[] = Object.freeze(['bind', 'listen', 'unlink', 'unlinkat'])

// linux/prctl.h, linux/seccomp.h
const PR_SET_NO_NEW_PRIVS = 38
const SECCOMP_SET_MODE_FILTER = 1
const SECCOMP_GET_ACTION_AVAIL = 2
const NEW_LISTENER = 1 << 3
/** Once a call is being answered, only a signal that kills interrupts it: Linux 5.19. */
const WAIT_KILLABLE_RECV = 1 << 5
const RETURN_NOTICE = 0x7fc00000
const RETURN_ALLOW = 0x7fff0000
const RETURN_ERROR = 0x00050000
const RECEIVE = 0xc0502100
const SEND = 0xc0182101
const ADD_DESCRIPTOR = 0x40182103
const SET_FLAGS = 0x40082104
/** Whoever waits for a notice runs at once on the processor of whoever calls: Linux 6.6. */
const SYNC_WAKE_UP = 1n
const PUT_IN_PLACE = 1
const CONTINUE = 1
const NOTICE_BYTES = 80
// linux/bpf_common.h
const LOAD = 0x20
const IF_EQUAL = 0x15
const IF_ANY_BIT = 0x45
const RETURN = 0x06
/** Offsets in struct seccomp_data. */
const OF_NUMBER = 0
const OF_ARCHITECTURE = 4
const OF_ADDRESS_LENGTH = 32
const OF_LEVEL = 24
const OF_OPTION = 32
const OF_REMOVAL_FLAGS = 32
/** Of struct sockaddr_nl: each look-up of a name binds such a socket, which is none that others could reach. */
const NETLINK_ADDRESS_BYTES = 12
// fcntl.h, sys/socket.h, netinet/in.h
const AT_REMOVEDIR = 0x200
const F_DUPFD = 0
const F_GETFL = 3
const F_SETFL = 4
const SOCK_SEQPACKET = 5
/** The longest message between the master and the call helper. */
const MAX_MESSAGE_BYTES = 65_536
const { EACCES, EINTR, EINVAL, ENOENT, ENOPROTOOPT, EPERM } = constants.errno

/**
 * The system calls by which a program gets its sockets from somebody else: seccomp(2), seccomp_unotify(2),
 * pidfd_getfd(2). Null where they cannot be had, as on a machine that is neither x86-64 nor arm64.
 */
export const loadSystemCalls = bindOnce((koffi) => {
  const numbers = NUMBERS[process.arch as keyof typeof NUMBERS]
  return numbers === undefined ? null : bindCalls(koffi, numbers)
})

function bindCalls (koffi: Koffi, numbers: (typeof NUMBERS)['x64'] | (typeof NUMBERS)['arm64']) {
  const libc = koffi.load(null)
  const prctl = libc.func('int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)')
  const syscall = libc.func('long syscall(long number, ...)')
  const ioctl = libc.func('int ioctl(int fd, unsigned long request, void *argument)')
  const fcntl = libc.func('int fcntl(int fd, int command, ...)')
  const getsockopt = libc.func('int getsockopt(int fd, int level, int name, void *value, void *length)')
  const getsockname = libc.func('int getsockname(int fd, void *address, void *length)')
  const socketpair = libc.func('int socketpair(int domain, int type, int protocol, _Out_ int *pair)')
  const sendmsg = libc.func('long sendmsg(int fd, void *message, int flags)')
  const recvmsg = libc.func('long recvmsg(int fd, void *message, int flags)')
  const close = libc.func('int close(int fd)')
  const strerror = libc.func('const char *strerror(int number)')

  const setFilter = (flags: number, program: Buffer) =>
    Number(syscall(numbers.seccomp, 'unsigned int', SECCOMP_SET_MODE_FILTER, 'unsigned int', flags, 'void *', program))

  return {
    /** @returns why no program can be heard here; null: as far as can be told without one, it can */
    whyUnheard (): string | null {
      const [major, minor] = release().split('.').map(Number)
      if (major < 5 || (major === 5 && minor < 9)) return `it takes Linux 5.9, and this is ${release()}`
      const action = Buffer.alloc(4)
      action.writeUInt32LE(RETURN_NOTICE)
      return Number(
          syscall(numbers.seccomp, 'unsigned int', SECCOMP_GET_ACTION_AVAIL, 'unsigned int', 0, 'void *', action)
        ) === 0
        ? null
        : `seccomp: ${strerror(koffi.errno())}`
    },

    /**
     * From now on this thread, and all that it executes or forks, asks before it binds or listens. `above`: the lowest
     * number of the descriptor. Returns `listener`: answers for it; what is executed has it too.
     */
    askBeforeBind (above: number): { listener: number, reason?: undefined } | { listener?: undefined, reason: string } {
      const program = toFilter(koffi, filterFor(numbers))
      let flags = NEW_LISTENER | WAIT_KILLABLE_RECV
      let fd = setFilter(flags, program)
      if (fd < 0 && koffi.errno() === EINVAL) fd = setFilter(flags = NEW_LISTENER, program)
      // Who has the rights of root needs no promise that nobody gets more of them.
      if (fd < 0 && koffi.errno() === EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) === 0)
        fd = setFilter(flags, program)
      if (fd < 0 && koffi.errno() === EINVAL) fd = setFilter(NEW_LISTENER, program)
      if (fd < 0) return { reason: strerror(koffi.errno()) }
      const listener = fcntl(fd, F_DUPFD, 'int', above)
      close(fd)
      return listener < 0 ? { reason: strerror(koffi.errno()) } : { listener }
    },

    /**
     * A copy of another process's descriptor. `pid`: of a process, no other thread of it; `isMeant`: whether that
     * process is one of which a copy may be taken: asked before and after, while no other one can have its number.
     * @returns below 0: an error number
     */
    descriptorOf (pid: number, fd: number, isMeant: (() => boolean) | null = null): number {
      const process = Number(syscall(numbers.pidfdOpen, 'int', pid, 'unsigned int', 0))
      if (process < 0) return -koffi.errno()
      const mayTake = () =>
        isMeant === null ||
        (isMeant() &&
          Number(syscall(numbers.pidfdSendSignal, 'int', process, 'int', 0, 'void *', null, 'unsigned int', 0)) === 0)
      try {
        if (!mayTake()) return -EPERM
        const copy = Number(syscall(numbers.pidfdGetfd, 'int', process, 'int', fd, 'unsigned int', 0))
        if (copy < 0) return -koffi.errno()
        if (mayTake()) return copy
        close(copy)
        return -EPERM
      } finally {
        close(process)
      }
    },

    close (fd: number) {
      close(fd)
    },

    /**
     * What waits for an answer. Only for a listener that can be read, or it waits itself.
     * @returns `over`: nobody is left that could ask
     */
    receive (listener: number): Notice | 'none' | 'over' {
      const notice = Buffer.alloc(NOTICE_BYTES)
      if (ioctl(listener, RECEIVE, notice) < 0) return [ENOENT, EINTR].includes(koffi.errno()) ? 'none' : 'over'
      const number = notice.readInt32LE(16)
      return { id: notice.readBigUInt64LE(0), thread: notice.readUInt32LE(8),
        call: HELD.find((call) => numbers[call] === number) ?? 'listen',
        args: [0, 1, 2].map((index) => notice.readBigUInt64LE(32 + 8 * index)) }
    },

    /** Answers come sooner where the kernel knows how. */
    hurry (listener: number) {
      const flags = Buffer.alloc(8)
      flags.writeBigUInt64LE(SYNC_WAKE_UP)
      ioctl(listener, SET_FLAGS, flags)
    },

    /** The call goes on as if nobody had asked. */
    goOn (listener: number, id: bigint) {
      answer(listener, id, { flags: CONTINUE })
    },

    /** `errno`: 0, or below it an error number, which the program gets */
    answer (listener: number, id: bigint, errno: number) {
      answer(listener, id, { errno })
    },

    /** Puts a socket of this process in the place of the asking program's. Returns false: it has gone meanwhile. */
    put (listener: number, id: bigint,
      { own, theirs, isClosedOnExec }: { own: number, theirs: number, isClosedOnExec: boolean }): boolean
    {
      const order = Buffer.alloc(24)
      order.writeBigUInt64LE(id, 0)
      order.writeUInt32LE(PUT_IN_PLACE, 8)
      order.writeUInt32LE(own, 12)
      order.writeUInt32LE(theirs, 16)
      order.writeUInt32LE(isClosedOnExec ? O_CLOEXEC : 0, 20)
      return ioctl(listener, ADD_DESCRIPTOR, order) >= 0
    },

    /**
     * `file`: a link in /proc/PID/fd. Returns the protocol of a socket, such as `TCPv6`; empty where it is none: sockfs
     * has it as an attribute.
     */
    protocolOf: (file: string): string =>
      loadPosix()?.attributeOf(file, 'system.sockprotoname')?.replace(/\0.*$/s, '') ?? '',

    /** `fd`: of a socket. Returns the sockaddr that it is bound to; empty: none. */
    nameOf (fd: number): Buffer {
      const name = Buffer.alloc(MAX_ADDRESS_BYTES)
      const length = Buffer.alloc(4)
      length.writeUInt32LE(name.length)
      return getsockname(fd, name, length) < 0 ? Buffer.alloc(0) : name.subarray(0, length.readUInt32LE())
    },

    /** `fd`: of a socket. Returns whether others may be bound to its address: SO_REUSEPORT, socket(7). */
    sharesPort: (fd: number): boolean => option(fd, SOL_SOCKET, SO_REUSEPORT) === 1,

    /** Whether calls on it wait is a property of the socket, whoever has it. */
    letCallsWait (fd: number, waits: boolean) {
      const flags = fcntl(fd, F_GETFL)
      fcntl(fd, F_SETFL, 'int', waits ? flags & ~O_NONBLOCK : flags | O_NONBLOCK)
    },

    /** @returns two Unix sockets that are connected, and keep messages apart; null: no descriptor is left */
    socketPair (): [number, number] | null {
      const pair = [0, 0]
      return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) === 0 ? [pair[0], pair[1]] : null
    },

    /**
     * Never waits. `fd`: a Unix socket; `descriptor`: goes along: SCM_RIGHTS, unix(7). Returns whether it was taken.
     */
    send (fd: number, text: string, descriptor?: number): boolean {
      const data = Buffer.from(text)
      return Number(sendmsg(fd, messageToSend(koffi, data, descriptor), MSG_DONTWAIT | MSG_NOSIGNAL)) === data.length
    },

    /** Never waits. `fd`: a Unix socket. Returns null: the other one has closed it. */
    take (fd: number): { text: string, descriptor: number | null } | null {
      const data = Buffer.alloc(MAX_MESSAGE_BYTES)
      const message = socketMessage(koffi, data, ONE_DESCRIPTOR_BYTES)
      const length = Number(recvmsg(fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC))
      if (length <= 0) return null
      const hasDescriptor = message.readBigUInt64LE(OF_CONTROL_LENGTH) > 0n &&
        message.readInt32LE(OF_CONTROL + 12) === SCM_RIGHTS
      return { text: data.toString('utf8', 0, length),
        descriptor: hasDescriptor ? message.readInt32LE(OF_CONTROL + 16) : null }
    }
  }

  function answer (listener: number, id: bigint, { errno = 0, flags = 0 }: { errno?: number, flags?: number }) {
    const response = Buffer.alloc(24)
    response.writeBigUInt64LE(id, 0)
    response.writeInt32LE(errno, 16)
    response.writeUInt32LE(flags, 20)
    ioctl(listener, SEND, response)
  }

  function option (fd: number, level: number, name: number) {
    const value = Buffer.alloc(4)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(4)
    return getsockopt(fd, level, name, value, length) < 0 ? -1 : value.readInt32LE()
  }
}

/**
 * Bind and listen wait for an answer, and so does the removal of a file, which could be the path of a socket that
 * others serve. Nobody is told whether a socket listens already (SO_ACCEPTCONN): the master's do, and gunicorn would
 * not listen then.
 */
function filterFor (
  { audit, bind, listen, getsockopt, unlink, unlinkat }: (typeof NUMBERS)['x64'] | (typeof NUMBERS)['arm64']
): Instruction[] {
  const notice: Instruction = [RETURN, 0, 0, RETURN_NOTICE]
  const allow: Instruction = [RETURN, 0, 0, RETURN_ALLOW]
  return [[LOAD, 0, 0, OF_ARCHITECTURE], [IF_EQUAL, 1, 0, audit], allow, [LOAD, 0, 0, OF_NUMBER],
    ...[listen, ...(unlink === null ? [] : [unlink])].flatMap((number) => onlyFor(number, [notice])),
    ...onlyFor(unlinkat, [[LOAD, 0, 0, OF_REMOVAL_FLAGS], [IF_ANY_BIT, 0, 1, AT_REMOVEDIR], allow, notice]),
    ...onlyFor(bind, [[LOAD, 0, 0, OF_ADDRESS_LENGTH], [IF_EQUAL, 0, 1, NETLINK_ADDRESS_BYTES], allow, notice]),
    ...onlyFor(getsockopt, [[LOAD, 0, 0, OF_LEVEL], [IF_EQUAL, 0, 3, SOL_SOCKET], [LOAD, 0, 0, OF_OPTION], [IF_EQUAL, 0,
      1, SO_ACCEPTCONN], [RETURN, 0, 0, RETURN_ERROR | ENOPROTOOPT]]), allow]
}

/** `number`: of a call */
function onlyFor (number: number, instructions: Instruction[]): Instruction[] {
  return [[IF_EQUAL, 0, instructions.length, number], ...instructions]
}
