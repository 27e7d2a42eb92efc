import { realpathSync } from 'node:fs'
import { errorCode } from '../errors.js'
import { whyPlaceDistrusted, whyProgramDistrusted } from '../system/trust.js'

/**
 * What a master is started with: a node, and the code of clusterdeck by the link that this one was called by, which may
 * lead to a newer version. Both are real paths: what was looked at is what runs, wherever a link leads by then.
 * @typedef {{ node: string, script: string }} Programs
 */

/** Names the programs that the keeper runs itself, which need no check. @param {string} script as it was called @returns {Programs} */
export function ownPrograms (script) {
  return { node: process.execPath, script: realpathSync(script) }
}

/**
 * @param {Programs} wanted @param {Programs} own
 * @returns {{ programs: Programs, distrust: string | null }} `distrust`: why it is the own one instead of one that was wanted
 */
export function trustedPrograms (wanted, own) {
  const node = findProgram(wanted.node, own.node, whyProgramDistrusted)
  const script = findProgram(wanted.script, own.script, whyPlaceDistrusted)
  return { programs: { node: node.file, script: script.file }, distrust: node.reason ?? script.reason }
}

/**
 * @param {string} wanted @param {string} own @param {(file: string) => string | null} whyDistrusted
 * @returns {{ file: string, reason: string | null }}
 */
function findProgram (wanted, own, whyDistrusted) {
  try {
    const file = realpathSync(wanted)
    const reason = file === own ? null : whyDistrusted(file)
    return reason ? { file: own, reason: `${file} is not run: ${reason.startsWith('/') ? '' : 'it '}${reason}` } : { file, reason: null }
  } catch (error) {
    return { file: own, reason: `${wanted} is gone (${errorCode(error)})` }
  }
}
