import { SOL_SOCKET, SCM_RIGHTS } from './socket-numbers.ts'
import type { Koffi } from './native.ts'

/** Offsets in a struct msghdr and behind it: how many bytes of control messages there are, and where they begin. */
export const OF_CONTROL_LENGTH = 40
const OF_PART = 56
export const OF_CONTROL = 72
/** The size of a struct cmsghdr with one descriptor. */
export const ONE_DESCRIPTOR_BYTES = 24

/**
 * What sendmsg(2) and recvmsg(2) take: a struct msghdr, and in the same memory what it points to but for the data: a
 * struct iovec, and room for control messages.
 */
export function socketMessage (koffi: Koffi, data: Buffer, controlBytes: number): Buffer {
  const whole = Buffer.alloc(OF_CONTROL + controlBytes)
  const address = BigInt(koffi.address(whole))
  whole.writeBigUInt64LE(address + BigInt(OF_PART), 16)
  whole.writeBigUInt64LE(1n, 24)
  whole.writeBigUInt64LE(address + BigInt(OF_CONTROL), 32)
  whole.writeBigUInt64LE(BigInt(controlBytes), OF_CONTROL_LENGTH)
  whole.writeBigUInt64LE(BigInt(koffi.address(data)), OF_PART)
  whole.writeBigUInt64LE(BigInt(data.length), OF_PART + 8)
  return whole
}

/** What sendmsg(2) takes. `descriptor`: goes along, in a struct cmsghdr: SCM_RIGHTS, unix(7). */
export function messageToSend (koffi: Koffi, data: Buffer, descriptor?: number): Buffer {
  const whole = socketMessage(koffi, data, descriptor === undefined ? 0 : ONE_DESCRIPTOR_BYTES)
  if (descriptor === undefined) return whole
  whole.writeBigUInt64LE(BigInt(ONE_DESCRIPTOR_BYTES - 4), OF_CONTROL)
  whole.writeInt32LE(SOL_SOCKET, OF_CONTROL + 8)
  whole.writeInt32LE(SCM_RIGHTS, OF_CONTROL + 12)
  whole.writeInt32LE(descriptor, OF_CONTROL + 16)
  return whole
}
