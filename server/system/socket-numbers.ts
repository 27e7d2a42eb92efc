// Numbers of Linux that several files need: sys/socket.h, netinet/in.h, fcntl.h, poll.h.

export const AF_UNIX = 1
export const AF_INET = 2
export const AF_INET6 = 10
export const SOCK_DGRAM = 2
export const SOCK_NONBLOCK = 0o4000
export const SOCK_CLOEXEC = 0o2000000
export const SOL_SOCKET = 1
export const SO_REUSEPORT = 15
export const SO_ACCEPTCONN = 30
export const SCM_RIGHTS = 1
export const MSG_DONTWAIT = 0x40
export const MSG_NOSIGNAL = 0x4000
export const MSG_CMSG_CLOEXEC = 0x40000000
export const IPPROTO_TCP = 6
export const IPPROTO_IPV6 = 41
export const O_NONBLOCK = 0o4000
export const O_CLOEXEC = 0o2000000
export const POLLIN = 1
/** The longest address of any family: struct sockaddr_storage. */
export const MAX_ADDRESS_BYTES = 128
