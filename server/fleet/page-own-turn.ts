import { STATES, type FleetRollout } from './document.ts'
import { ROLLOUT_STATES } from './page-rollout-parts.ts'
import { progressText, progressOf } from './progress.ts'
import type { AppFleet } from './app-fleet.ts'

/** What the overview of an app says of a rollout over its fleet: how far it is, and where this host is in it. */

const TURNS: Readonly<Record<FleetRollout['turns'][string]['state'], string>> = Object.freeze({
  pending: 'this host waits for its turn',
  running: 'this host is in its turn now',
  succeeded: 'this host is done',
  failed: 'this host has failed',
  reverting: 'this host is rolling back now',
  reverted: 'this host is rolled back',
  skipped: 'this host was not reached'
})

/** Null: there is none, or it is over */
export function ownTurn (fleet: AppFleet | null) {
  const { rollout, member } = fleet?.status() ?? {}
  if (!rollout || !member || (STATES[rollout.state].done && rollout.state !== 'held')) return null
  const { label, tone, icon } = ROLLOUT_STATES[rollout.state]
  const turn = rollout.turns[member]
  return { tone, icon, title: `Rollout ${rollout.id} of the fleet is ${label}`,
    where: turn ? TURNS[turn.state] : 'this host is left out',
    text: `${rollout.kind} by ${rollout.actor}: ${progressText(rollout.state, progressOf(rollout))}`,
    note: rollout.note }
}
