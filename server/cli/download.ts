import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { DeckError, errorCode, errorText } from '../errors.ts'
import type { IncomingMessage } from 'node:http'

/**
 * Writes what a master sends into a new file. `otherwise`: where it can be found if it cannot be written.
 * @throws {DeckError} diagnostics-failed
 */
export async function saveDownload (response: IncomingMessage, file: string, otherwise: string = '') {
  try {
    // The file may hold secrets, so only its owner may read it. An existing file is not overwritten.
    await pipeline(response, createWriteStream(file, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    throw new DeckError('diagnostics-failed',
      `${file} cannot be written (${errorCode(error) ?? errorText(error)})${otherwise}`, { cause: error })
  }
}
