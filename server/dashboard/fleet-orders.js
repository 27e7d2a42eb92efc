import { z } from 'zod'
import { fleetOf, WANTED } from '../api/fleet.js'
import { parseBody } from '../api/input.js'
import { ID } from '../config/id.js'
import { DeckError } from '../errors.js'

/**
 * What the forms of the fleet's pages ask for.
 * @typedef {import('../api/fleet.js').FleetDeck} Deck
 */

const KINDS = Object.freeze(/** @type {const} */ (['deploy', 'restart', 'rollback']))
const ORDERS = Object.freeze(/** @type {const} */ (['pause', 'resume', 'abort']))
const STEER = z.object({ rollout: z.string().regex(ID).transform(Number).describe('the id of a rollout of the fleet') })
/** Of a dialog. */
const FIELDS = Object.freeze(['note', 'batch', 'pauseMs', 'order', 'canary', 'onFailure'])
const WHOLE = /^\d{1,9}$/

/** @type {Readonly<Record<string, (deck: Deck, body: Record<string, unknown>, actor: string) => Promise<unknown>>>} by the name of the action */
export const FLEET_ACTIONS = Object.freeze({
  ...Object.fromEntries(KINDS.map((kind) => [`fleet-${kind}`, (/** @type {Deck} */ deck, /** @type {Record<string, unknown>} */ body, /** @type {string} */ actor) => fleetOf(deck).begin(wantedOf(kind, body), actor)])),
  ...Object.fromEntries(ORDERS.map((order) => [`fleet-${order}`, (/** @type {Deck} */ deck, /** @type {Record<string, unknown>} */ body, /** @type {string} */ actor) => steer(deck, order, body, actor)]))
})

/** Forms send their empty fields along, and all of them as text. @param {typeof KINDS[number]} kind @param {Record<string, unknown>} body */
function wantedOf (kind, body) {
  const given = Object.fromEntries(FIELDS.filter((name) => body[name] !== undefined && body[name] !== '').map((name) => [name, body[name]]))
  for (const name of ['batch', 'pauseMs']) {
    if (WHOLE.test(String(given[name]))) given[name] = Number(given[name])
  }
  return /** @type {import('../fleet/fleet.js').Wanted} */ (parseBody(WANTED, { ...given, kind }))
}

/** Whoever has looked at one rollout does not steer another one. @param {Deck} deck @param {typeof ORDERS[number]} order @param {Record<string, unknown>} body @param {string} actor */
async function steer (deck, order, body, actor) {
  const { rollout: seen } = parseBody(STEER, body)
  const fleet = fleetOf(deck)
  const current = (await fleet.look()).rollout
  if (current?.id !== seen) throw new DeckError('rollout-ended', `Rollout ${seen} of the fleet is over: ${current ? `rollout ${current.id} is ${current.state}` : 'there is none now'}`)
  return fleet.steer(order, actor)
}
