import { z } from 'zod'
import { requestOf } from '../../public/command-text.ts'
import { fleetOf, forgetHost, NAME, WANTED, type FleetDeck as Deck } from '../api/fleet.ts'
import { parseBody } from '../api/input.ts'
import { tagOf } from '../api/preconditions.ts'
import { ID } from '../config/id.ts'
import { DeckError } from '../errors.ts'
import { FINGERPRINT } from '../api/crashes.ts'
import { CALLS, MEMBER_ACTIONS } from './calls.ts'
import { noteSettled } from './fleet-crashes-page.ts'
import { refreshMember } from './fleet-member-cache.ts'
import type { Auth } from '../api/roles.ts'
import type { Kind } from '../fleet/rollout.ts'
import type { Order } from './fleet-rollout.ts'
import type { AppFleet } from '../fleet/app-fleet.ts'

/** The forms of the fleet's pages post to these actions. */
type Action = (deck: Deck, body: Record<string, unknown>, actor: string,
  asker: { auth: Auth, now: number }) => Promise<unknown>

const STEER = z.object({ rollout: z.string().regex(ID).transform(Number).describe('the id of a rollout of the fleet') })
/** Fields of the dialog that starts a rollout. */
const FIELDS = Object.freeze(['note', 'batch', 'pauseMs', 'order', 'canary', 'onFailure'])
const SETTLE = z.object({ fingerprint: z.string().regex(FINGERPRINT).describe('the fingerprint of a group of crashes'),
  action: z.enum(['resolve', 'mute', 'reopen']).describe('resolve, mute or reopen') })
/** What the form sends that forgets a host. */
export const FORGOTTEN = z.object({ member: NAME })
const WHOLE = /^\d{1,9}$/
/** Only the form is checked here; the member checks the values itself. */
const MEMBER_FIELDS = z.object({ member: NAME, worker: z.string().regex(ID).describe('the id of a worker').optional(),
  workers: z.string().regex(WHOLE).describe('a number of workers').optional(),
  seen: z.string().regex(WHOLE).describe('the number of workers that the form has shown').optional() })

/** by the name of the action */
export const FLEET_ACTIONS: Readonly<Record<string, Action>> = Object.freeze({
  ...actionsFor(['deploy', 'restart', 'rollback'], (kind) => [`fleet-${kind}`, (deck, body, actor) =>
    fleetOf(deck).begin(wantedOf(kind, body), actor)]),
  ...actionsFor(['pause', 'resume', 'abort'], (order) => [`fleet-${order}`, (deck, body, actor) =>
    steerRollout(deck, order, body, actor)]),
  'settle-fleet-crash': settleCrash,
  'forget-host': forgetMember,
  ...actionsFor(MEMBER_ACTIONS,
    (action) => [`member-${action}`, (deck, body, _actor, { auth }) => askMember(deck, action, body, auth)])
})

function actionsFor<N extends string> (names: readonly N[], actionOf: (name: N) => [string, Action]) {
  return Object.fromEntries(names.map(actionOf))
}

/** A form sends every field, also an empty one, as text. */
export function wantedOf (kind: Kind, body: Record<string, unknown>) {
  const given = Object.fromEntries(
    FIELDS.filter((name) => body[name] !== undefined && body[name] !== '').map((name) => [name, body[name]])
  )
  for (const name of ['batch', 'pauseMs']) {
    if (WHOLE.test(String(given[name]))) given[name] = Number(given[name])
  }
  return parseBody(WANTED, { ...given, kind })
}

/** Refuses if another rollout has begun since the page was rendered. */
async function steerRollout (deck: Deck, order: Order, body: Record<string, unknown>, actor: string) {
  const { rollout: seen } = parseBody(STEER, body)
  const fleet = fleetOf(deck)
  const current = (await fleet.look()).rollout
  if (current?.id !== seen) {
    const now = current ? `rollout ${current.id} is ${current.state}` : 'no rollout is running'
    throw new DeckError('rollout-ended', `Rollout ${seen} of the fleet is over: ${now}`)
  }
  return fleet.steer(order, actor)
}

/** @returns the page without it */
async function forgetMember (deck: Deck, body: Record<string, unknown>, _actor: string,
  { auth }: { auth: Auth }): Promise<string>
{
  const { member } = parseBody(FORGOTTEN, body)
  await forgetHost(fleetOf(deck), member, auth)
  return '/fleet'
}

/**
 * Resolves, mutes or reopens a group on all members that answer.
 * @throws {DeckError} not-found, not-possible: some members did not answer
 */
async function settleCrash (deck: Deck, body: Record<string, unknown>, _actor: string,
  { auth, now }: { auth: Auth, now: number })
{
  const { fingerprint, action } = parseBody(SETTLE, body)
  const fleet = fleetOf(deck)
  const { silent, refused } = await fleet.settleCrash(fingerprint, action, auth)
  noteSettled(fleet, now)
  const left = [...silent, ...refused.map(({ member }) => member)]
  if (left.length > 0)
    throw new DeckError('not-possible', `Done on the members that answered, but not on ${left.join(', ')}`)
}

/** Asks the member's own API, which checks the request by its own rules. */
async function askMember (deck: Deck, action: typeof MEMBER_ACTIONS[number], fields: Record<string, unknown>,
  person: Auth)
{
  const fleet = fleetOf(deck)
  const { member, seen, ...values } = parseBody(MEMBER_FIELDS, fields)
  const { method, path, body } = requestOf(CALLS[action], values)
  const headers = action === 'scale' && seen !== undefined ? { 'if-match': tagOf(seen) } : {}
  try {
    await fleet.obtain(member, { method, path: path.replace('/api/v1', ''), headers, body: body ?? undefined }, person)
  } catch (error) {
    throw error instanceof DeckError && error.code === 'precondition-failed'
      ? await changedThere(fleet, member, person, error)
      : error
  }
  refreshMember(fleet, member)
}

/** The same refusal with the size of now, which the form sends if its reader confirms. */
async function changedThere (fleet: AppFleet, member: string, person: Auth, refused: DeckError) {
  const { desiredWorkers } = Object(await fleet.obtain(member, { method: 'GET', path: '/scale' }, person))
  // The member goes on with what it has expected of the header, which a form does not show.
  const [why] = refused.message.split('. If-Match:')
  return new DeckError('precondition-failed', why, { details: { now: String(desiredWorkers) }, cause: refused })
}
