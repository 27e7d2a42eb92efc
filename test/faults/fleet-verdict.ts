import type { FleetRollout } from '../../server/fleet/api-answers.ts'

/**
 * What must never be, whatever happened in the middle of a rollout over hosts: by what each host has in its own
 * history, which is on the clock of this machine for all of them.
 * a rollout of one host, in the order of their starts
 */
type Own = { name: string, fleet: number, kind: string, state: string, from: number, to: number, startedAt: string,
  finishedAt: string | null, reason: string | null }
export type Happened = {
  own: Own[],
  /** of the fleet, as the document tells of it at the end; null: NATS has forgotten it */
  rollout: FleetRollout | null,
  /** rollouts of the fleet, with their batches */
  begun: FleetRollout[],
  /** who said nothing for a while */
  silenced: string[],
  killed: string[],
  /** when a person gave an order by which who is silent is given up */
  ordersAt: number[]
}

/** Nothing is known of what they did. */
const GIVEN_UP = /silent|its master ended/

export function findBrokenPromises (happened: Happened): string[] {
  return [...findRepeated(happened), ...findBesideEachOther(happened), ...findFalseTurns(happened)]
}

function findRepeated ({ own }: Happened) {
  const ways = own.map(({ name, fleet, kind }) => `twice: ${name} ${kind} in rollout ${fleet}`)
  return ways.filter((way, index) => ways.indexOf(way) !== index)
}

function findBesideEachOther ({ own, begun, silenced, ordersAt }: Happened) {
  const isOneBatch = (one: Own, other: Own) =>
    one.fleet === other.fleet && one.kind === other.kind && one.kind !== 'rollback' &&
    begun.find(({ id }) => id === one.fleet)?.batches.some((batch) =>
      batch.includes(one.name) && batch.includes(other.name)
    )
  const isGivenUp = ({ name, from }: Own, until: number) =>
    silenced.includes(name) && ordersAt.some((at) => at > from && at <= until)
  return own.flatMap((later, index) =>
    own.slice(0, index).filter((earlier) =>
      earlier.to > later.from && earlier.name !== later.name && !isOneBatch(earlier, later) &&
      !isGivenUp(earlier, later.from)
    ).map((earlier) =>
      `${later.name} (${later.kind} in rollout ${later.fleet}, ${later.startedAt}) began beside ${earlier.name} (${earlier.kind} in rollout ${earlier.fleet}, ${earlier.startedAt} to ${earlier.finishedAt})`
    )
  )
}

function findFalseTurns ({ own, rollout }: Happened) {
  return Object.entries(rollout?.turns ?? {}).flatMap(([name, turn]) => {
    const last = own.findLast((each) => each.name === name && each.fleet === rollout?.id)
    const isToldGood = turn.state === 'succeeded'
    const isGood = last !== undefined && last.state === 'succeeded' && last.kind !== 'rollback'
    return isToldGood === isGood || GIVEN_UP.test(String(turn.reason))
      ? []
      : `the document says of ${name} ${turn.state} (${turn.reason}), its own history ${
        last ? `${last.kind} ${last.state}` : 'nothing'
      }`
  })
}

/** Which versions a host may serve after that. */
export function versionsAfter (name: string, { before, next }: { before: string, next: string },
  { own, killed }: Happened): string[]
{
  if (killed.includes(name)) return [before, next]
  const mine = own.filter((each) => each.name === name && each.kind !== 'restart')
  const good = mine.filter(({ state }) => state === 'succeeded')
  const last = good.at(-1)
  if (!last) return [before]
  // Whoever has begun anew goes back to what it had then.
  const isAgain = mine.filter(({ kind }) => kind === 'deploy').length > 1
  if (last.kind === 'deploy') return [next]
  return isAgain ? [before, next] : [before]
}
