/** Crashes: ends that nobody has asked for. */
export const CRASH_CAUSES = frozen('crash', 'boot-failure', 'hung', 'out-of-memory', 'killed')

/** Crashes that count against a release: a kill from outside tells nothing of its code. */
export const BLAMED_CAUSES = Object.freeze(CRASH_CAUSES.filter((cause) => cause !== 'killed'))

/** Ends that are shown as faults: crashes, and a worker's replacement as it uses too much memory. */
export const FAULTS = frozen(...CRASH_CAUSES, 'memory-limit')

/** Ends that somebody or an option has asked for. */
export const PLANNED_CAUSES = frozen('max-age', 'max-requests', 'app-request', 'finished', 'deploy', 'rollback',
  'restart', 'scale-down', 'shutdown', 'upgrade')

/** Why a worker, a slot or a master has ended: every `cause` that an event may have. */
export const CAUSES = frozen(...FAULTS, ...PLANNED_CAUSES, 'operator', 'master-lost')

/** What Node writes to stderr when the master examines a stuck worker. */
const OF_DEBUGGER =
  /^(Debugger (listening on ws:\/\/|ending on ws:\/\/|attached\.$)|For help, see: https:\/\/nodejs\.org\/|Waiting for the debugger to disconnect)/

/** Keeps the type of each word. */
function frozen<const T extends string, const All extends readonly T[]> (...words: All): Readonly<All> {
  return Object.freeze(words)
}

export function isOneOf (causes: readonly string[], cause: string | null | undefined) {
  return cause != null && causes.includes(cause)
}

/** Tells whether Node has written the line because the master examined a stuck worker. */
export function isOfDebugger (line: string): boolean {
  return OF_DEBUGGER.test(line)
}
