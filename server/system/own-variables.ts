/**
 * What configures us and our commands. All of it is denied by its prefix, so that a secret that is added later is too.
 */
const OURS = /^CLUSTERDECK_/
/**
 * Says what the shell of an app has set for its processes, beside its variables: see shell-limits.ts. It is with those,
 * and no process of the app sees it.
 */
export const SHELL_VARIABLE = 'CLUSTERDECK_SHELL'
/** What the service manager has told the master alone. */
const OF_SERVICE_MANAGER = new Set(['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'LISTEN_FDS', 'LISTEN_PID',
  'LISTEN_FDNAMES', 'FDSTORE'])

/**
 * The environment for a process that runs code of somebody else: workers, hooks, and the programs that commands call.
 * Returns the same names; those that are our own business are undefined, which is not passed on.
 */
export function withoutOwnVariables (env: Record<string, string | undefined>): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(env).map((
      [name, value]
    ) => [name, OURS.test(name) || OF_SERVICE_MANAGER.has(name) ? undefined : value])
  )
}
