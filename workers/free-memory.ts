import os from 'node:os'

/** @returns bytes that are free for this process: of its control group, where that has less than the machine */
export function freeMemory (): number {
  return process.availableMemory?.() ?? os.freemem()
}
