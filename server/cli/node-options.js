import { withoutPreloads } from '../launch/preloads.js'

/** Keeps NODE_OPTIONS as the user has set it, for the workers. */
const KEPT_AS = 'CLUSTERDECK_NODE_OPTIONS'

/**
 * What NODE_OPTIONS loads before a program is meant for the app. Here it would take the port of its metrics, say. It has
 * been loaded when this is called, so this process begins anew, with the same pid and without it.
 * @param {NodeJS.ProcessEnv} env
 * @param {object} parts
 * @param {() => boolean} parts.again  begins anew; returns where that is not possible
 * @param {(line: string) => void} [parts.say]
 */
export function leavePreloads (env, { again, say = (line) => { process.stderr.write(`clusterdeck: ${line}\n`) } }) {
  const { NODE_OPTIONS: whole = '' } = env
  const rest = withoutPreloads(whole)
  if (rest === whole) return
  env[KEPT_AS] = whole
  env.NODE_OPTIONS = rest
  if (!again()) say('NODE_OPTIONS: what it loads before a program is loaded here too, not in workers alone: to avoid that takes Node 22.15 or the optional package koffi, and no IPC channel')
}

/** For a process whose children are the user's. @param {NodeJS.ProcessEnv} env */
export function restoreNodeOptions (env) {
  const { [KEPT_AS]: whole } = env
  if (whole === undefined) return
  delete env[KEPT_AS]
  env.NODE_OPTIONS = whole
}
