import { withoutPreloads } from '../launch/preloads.ts'

/** This variable keeps NODE_OPTIONS as the user has set it, for the workers. */
const KEPT_AS = 'CLUSTERDECK_NODE_OPTIONS'

/**
 * Preloads in NODE_OPTIONS are meant for the app; here they could take the port of its metrics, for example. They are
 * loaded already when this is called, so this process executes itself again, with the same pid and without them.
 */
export function leavePreloads (env: NodeJS.ProcessEnv, { again, say = (line) => {
  process.stderr.write(`clusterdeck: ${line}\n`)
} }: {
  /** executes the program again; returns only where that is not possible */
  again: () => boolean,
  say?: (line: string) => void
}) {
  const { NODE_OPTIONS: whole = '' } = env
  const rest = withoutPreloads(whole)
  if (rest === whole) return
  env[KEPT_AS] = whole
  env.NODE_OPTIONS = rest
  if (!again())
    say(
      'NODE_OPTIONS: its preloads run here too, not only in workers; to avoid that, use Node 22.15 or the package koffi, without an IPC channel'
    )
}

/** Gives the workers back what the user has set. */
export function restoreNodeOptions (env: NodeJS.ProcessEnv) {
  const { [KEPT_AS]: whole } = env
  if (whole === undefined) return
  delete env[KEPT_AS]
  env.NODE_OPTIONS = whole
}
