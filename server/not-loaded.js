import { loadFailure } from './errors.js'
import { KEPT_VARIABLE, tellFailure } from './keeper/link.js'

/** Tells that our own code could not be loaded. @param {unknown} error @returns {number} the exit code */
export function tellNotLoaded (error) {
  const told = loadFailure(error)
  if (told === null) throw error
  if (process.env[KEPT_VARIABLE]) tellFailure(told.message)
  process.stderr.write(`clusterdeck: ${told.message}\n`)
  return told.exitCode
}
