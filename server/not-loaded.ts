import { loadFailure } from './errors.ts'
import { KEPT_VARIABLE, tellFailure } from './keeper/link.ts'

/** Tells that our own code could not be loaded. Returns the exit code. */
export function tellNotLoaded (error: unknown): number {
  const told = loadFailure(error)
  if (told === null) throw error
  if (process.env[KEPT_VARIABLE]) tellFailure(told.message)
  process.stderr.write(`clusterdeck: ${told.message}\n`)
  return told.exitCode
}
