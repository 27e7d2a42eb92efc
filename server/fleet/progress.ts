import type { FleetRollout, Turn } from './document.ts'

/** How far a rollout of the fleet is, as pages, the API, commands and agents count it. */
export type Progress = { total: number, done: number, failed: number }

const WAY_BACK: readonly FleetRollout['state'][] = Object.freeze(['rolling-back', 'rolled-back'])

/** Tells whether it takes back what it has brought. */
export function goesBack ({ state }: Pick<FleetRollout, 'state'>): boolean {
  return WAY_BACK.includes(state)
}

/** On the way back those count that have to go back. */
export function progressOf (rollout: Pick<FleetRollout, 'state' | 'turns'>): Progress {
  const states = Object.values(rollout.turns).map(({ state }) => state)
  const countOf = (...wanted: Turn['state'][]) => states.filter((each) => wanted.includes(each)).length
  const failed = countOf('failed')
  return goesBack(rollout)
    ? { total: countOf('reverted', 'reverting', 'succeeded', 'running'), done: countOf('reverted'), failed }
    : { total: states.length, done: countOf('succeeded'), failed }
}

/** @returns such as "2 of 5 done" */
export function progressText (state: FleetRollout['state'], { total, done }: Progress): string {
  return `${done} of ${total} ${doneWord({ state })}`
}

export function doneWord (rollout: Pick<FleetRollout, 'state'>): string {
  return goesBack(rollout) ? 'rolled back' : 'done'
}
