import os from 'node:os'

/** @returns {number} bytes that are free for this process: of its control group, where that has less than the machine */
export function freeMemory () {
  return process.availableMemory?.() ?? os.freemem()
}
