import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { errorCode } from '../errors.ts'

export const MAX_BYTES = 1024 * 1024

/** Reads a file of at most MAX_BYTES. `why`: goes on with a sentence that ends with the name of the file. */
export async function readSmallFile (file: string, refuse: (why: string, cause?: unknown) => Error): Promise<Buffer> {
  // Without O_NONBLOCK, opening a pipe would wait for ever.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    throw refuse(`which cannot be read (${errorCode(error)})`, error)
  })
  try {
    const found = await handle.stat()
    if (!found.isFile()) throw refuse('which is none')
    if (found.size > MAX_BYTES) throw refuse(`which is larger than ${MAX_BYTES} bytes`)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}
