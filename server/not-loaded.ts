import { errorText, loadFailure } from './errors.ts'
import { KEPT_VARIABLE, tellFailure } from './keeper/link.ts'

/**
 * Tells that our own code could not be loaded. Returns the exit code.
 * @throws what the code itself has thrown
 */
export function tellNotLoaded (error: unknown): number {
  const told = loadFailure(error)
  if (process.env[KEPT_VARIABLE]) tellFailure(told?.message ?? errorText(error))
  if (told === null) throw error
  process.stderr.write(`clusterdeck: ${told.message}\n`)
  return told.exitCode
}
