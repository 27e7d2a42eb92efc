/** The commands for a rollout that runs, alike in the lifecycle, in the paths of the API and on the command line. */
export type Steering = 'pause' | 'resume' | 'abort' | 'promote' | 'retry'

export const STEERING: readonly Steering[] = Object.freeze(['pause', 'resume', 'abort', 'promote', 'retry'])
