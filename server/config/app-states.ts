export type AppState = typeof APP_STATES[number]

/** The states of an app of a host. `waiting`: for the apps that it depends on; `failed`: the host cannot run it. */
export const APP_STATES = Object.freeze(['waiting', 'starting', 'running', 'stopping', 'stopped', 'failed'] as const)

/** What is shown of an app that tells nothing of its workers. */
export const WITHOUT_WORKERS: Readonly<Record<AppState, { tone: 'info' | 'drain' | 'idle' | 'bad', text: string }>> =
  Object.freeze({ waiting: { tone: 'info', text: 'Waiting' }, starting: { tone: 'info', text: 'Starting' },
    running: { tone: 'info', text: 'Running' }, stopping: { tone: 'drain', text: 'Stopping' },
    stopped: { tone: 'idle', text: 'Stopped' }, failed: { tone: 'bad', text: 'Cannot run' } })
