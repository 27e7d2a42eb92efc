import type { Koffi } from '../system/native.ts'
/** Offsets in a struct msghdr and behind it: how many bytes of control messages there are, and where they begin. */
export const OF_CONTROL_LENGTH = 40
const OF_PART = 56
export const OF_CONTROL = 72

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
