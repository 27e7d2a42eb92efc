import { accessSync, constants, realpathSync } from 'node:fs'
import { DeckError } from '../errors.js'
import { whyProgramDistrusted } from './trust.js'

/**
 * What the next master is to run with.
 * @param {string} program @returns {string} its real path: a link may lead elsewhere by the next start @throws {DeckError} invalid-body
 */
export function checkedProgram (program) {
  const refused = (/** @type {string} */ reason) => new DeckError('invalid-body', `execPath: expected a program of this user that can be executed, received ${JSON.stringify(program)} (${reason})`)
  try {
    const real = realpathSync(program)
    accessSync(real, constants.X_OK)
    const reason = whyProgramDistrusted(real)
    if (reason) throw refused(reason)
    return real
  } catch (/** @type {any} */ error) {
    throw error instanceof DeckError ? error : refused(error.code)
  }
}
