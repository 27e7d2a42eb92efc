import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { errorCode } from '../errors.js'

export const MAX_BYTES = 1024 * 1024

/**
 * Reads a file of at most MAX_BYTES.
 * @param {string} file @param {(why: string, cause?: unknown) => Error} refuse  `why`: goes on with a sentence that ends with the name of the file
 * @returns {Promise<Buffer>}
 */
export async function readSmallFile (file, refuse) {
  // Without O_NONBLOCK, opening a pipe would wait for ever.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => { throw refuse(`which cannot be read (${errorCode(error)})`, error) })
  try {
    const found = await handle.stat()
    if (!found.isFile()) throw refuse('which is none')
    if (found.size > MAX_BYTES) throw refuse(`which is larger than ${MAX_BYTES} bytes`)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}
