import { readFile, stat } from 'node:fs/promises'
import { writeJson } from '../system/json-file.js'
import { withOriginalPlaces } from './original-places.js'

/** A larger one would block the loop of the master for long. */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Puts the places of sources into the file of a CPU profile that has just been taken. One that is too large, or not whole,
 * stays as the worker has written it.
 * @param {string} file @param {string} root  the folder of its release @param {import('./original-places.js').Places} places
 */
export async function putOriginalPlaces (file, root, places) {
  try {
    if ((await stat(file)).size > MAX_BYTES) return
    const profile = JSON.parse(await readFile(file, 'utf8'))
    const original = withOriginalPlaces(profile, root, places)
    if (original !== profile) writeJson(file, original)
  } catch {
    // Nothing in it is believed; ENOSPC: there is no room for both.
  }
}
