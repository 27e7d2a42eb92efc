import { accessSync, constants, realpathSync } from 'node:fs'
import { DeckError, errorReason } from '../errors.ts'
import { whyProgramDistrusted } from './trust.ts'

/**
 * What the next master is to run with. Returns its real path: a link may lead elsewhere by the next start.
 * @throws {DeckError} invalid-body
 */
export function checkedProgram (program: string): string {
  const refused = (reason: string) =>
    new DeckError('invalid-body',
      `execPath: expected a program of this user that can be executed, received ${JSON.stringify(program)} (${reason})`)
  try {
    const real = realpathSync(program)
    accessSync(real, constants.X_OK)
    const reason = whyProgramDistrusted(real)
    if (reason) throw refused(reason)
    return real
  } catch (error) {
    throw error instanceof DeckError ? error : refused(errorReason(error))
  }
}
