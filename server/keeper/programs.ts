import { realpathSync } from 'node:fs'
import { errorCode } from '../errors.ts'
import { whyPlaceDistrusted, whyProgramDistrusted } from '../system/trust.ts'

/**
 * What a master is started with: a node, and the code of clusterdeck by the link that this one was called by, which may
 * lead to a newer version. Both are real paths: what was looked at is what runs, wherever a link leads by then.
 */
export type Programs = { node: string, script: string }

/** Names the programs that the keeper runs itself, which need no check. `script`: as it was called. */
export function ownPrograms (script: string): Programs {
  return { node: process.execPath, script: realpathSync(script) }
}

/** @returns `distrust`: why it is the own one instead of one that was wanted */
export function trustedPrograms (wanted: Programs, own: Programs): { programs: Programs, distrust: string | null } {
  const node = findProgram(wanted.node, own.node, whyProgramDistrusted)
  const script = findProgram(wanted.script, own.script, whyPlaceDistrusted)
  return { programs: { node: node.file, script: script.file }, distrust: node.reason ?? script.reason }
}

function findProgram (wanted: string, own: string,
  whyDistrusted: (file: string) => string | null): { file: string, reason: string | null }
{
  try {
    const file = realpathSync(wanted)
    const reason = file === own ? null : whyDistrusted(file)
    return reason
      ? { file: own, reason: `${file} is not run: ${reason.startsWith('/') ? '' : 'it '}${reason}` }
      : { file, reason: null }
  } catch (error) {
    return { file: own, reason: `${wanted} is gone (${errorCode(error)})` }
  }
}
