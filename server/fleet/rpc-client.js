import { formatDuration, formatExactDuration } from '../../public/format.js'
import { DeckError, toError } from '../errors.js'
import { noMember } from './presence.js'
import { MAX_RESPONSE_BYTES, parseResponse, roleFor, encodeResponse, encodeRequest } from './rpc-protocol.js'
import { refusalOf } from './refusal.js'

/**
 * Calls the API of an app of a member. This host answers itself without NATS.
 * @typedef {import('./rpc-server.js').Order} Order
 * @typedef {Omit<Order, 'headers'> & { headers?: Order['headers'] }} Asking
 * @typedef {import('./rpc-protocol.js').Answer} Answer
 * @typedef {import('./rpc-protocol.js').Role} Role
 * @typedef {{ name: string | null, actor: string, role: Role, client: import('./rpc-protocol.js').Question['client'] }} Person  who asks
 */

const ANSWER_WITHIN_MS = 10_000
const MAY_BE_DONE = 'It may have done it nevertheless'

/**
 * @param {object} parts
 * @param {import('./nats-connection.js').Connection} parts.nats
 * @param {Pick<import('./presence.js').Presence, 'all' | 'find' | 'list'>} parts.presence
 * @param {string} parts.member  this one
 * @param {import('./rpc-server.js').Serve} parts.serve
 */
export function createRpcClient ({ nats, presence, member: own, serve }) {
  return {
    ask: askMember,

    /**
     * As `ask`, but a refusal is an error.
     * @param {string} member @param {Asking} order @param {Person} person @param {{ withinMs?: number }} [how]
     * @returns {Promise<unknown>} the answer, parsed from JSON
     * @throws {DeckError} as ask(), what the member refuses with, and not-possible: its answer is no JSON
     */
    async obtain (member, { headers = {}, ...order }, person, how) {
      const { status, body } = await askMember(member, { ...order, headers }, person, how)
      if (status >= 400) throw refusalOf({ status, body })
      try {
        return JSON.parse(body)
      } catch (cause) {
        throw new DeckError('not-possible', `${member} answers, but not in JSON`, { cause })
      }
    }
  }

  /**
   * @param {string} member @param {Order} order @param {Person} person @param {{ withinMs?: number }} [how]
   * @returns {Promise<Answer>} which may be a refusal
   * @throws {DeckError} not-found, fleet-away, no-master, timed-out; bad-request, payload-too-large: it cannot be asked
   */
  async function askMember (member, order, person, { withinMs = ANSWER_WITHIN_MS } = {}) {
    const { app, method, path, headers, body } = order
    const { actor, role, client } = person
    const found = await findMember(member, app)
    const text = encodeRequest({ home: found.home, app, method, path, headers, body, actor, role, client, from: own })
    return found.isOwn ? askOwn(order, person, withinMs) : askOther(found, text, withinMs)
  }

  /** @param {string} member @param {string} app @throws {DeckError} not-found */
  async function findMember (member, app) {
    const isNamed = (/** @type {{ member: string }} */ each) => each.member === member
    const found = (member === own ? presence.list().find(isNamed) : presence.find(member)) ?? (await presence.all()).members.find(isNamed)
    if (!found) throw noMember(member)
    if (!found.apps.some((each) => each.app === app)) throw new DeckError('not-found', `${member} has no app ${JSON.stringify(app)}`)
    return found
  }

  /** @param {Order} order @param {Person} person @param {number} withinMs @returns {Promise<Answer>} */
  async function askOwn (order, { name, actor, role, client }, withinMs) {
    const least = roleFor({ path: order.path, role }, { accept: 'operate', member: own })
    const asker = { name: name ?? actor, actor, role: least, client, from: own, bound: 'the fleet gives nobody a higher role' }
    return encodeResponse(await serve(order, asker, { maxBytes: MAX_RESPONSE_BYTES, signal: AbortSignal.timeout(withinMs) }))
  }

  /** @param {import('./presence.js').Host} found @param {string} text @param {number} withinMs @returns {Promise<Answer>} */
  async function askOther ({ member, isSilent, ageMs }, text, withinMs) {
    const { isConnected, problem } = nats.state
    if (!isConnected) throw new DeckError('fleet-away', `cannot ask ${member}: NATS is out of reach (${problem})`)
    if (isSilent) throw new DeckError('no-master', `${member} has been silent for ${formatDuration(ageMs)}`)
    const asked = await nats.attempt(({ connection, names }) => {
      return connection.request(`${names.subject}.${member}.api`, text, { timeout: withinMs }).catch(toError)
    })
    if (asked.is === 'away') throw new DeckError('fleet-away', `${member} did not answer: ${asked.reason}. ${MAY_BE_DONE}`)
    if (asked.value instanceof Error) throw errorOfRequest(asked.value, member, withinMs)
    const answer = parseResponse(asked.value.data)
    if (!answer) throw new DeckError('no-master', `${member} sent an answer that this version cannot read`)
    return answer
  }
}

/** @param {Error & { isNoResponders?: () => boolean }} error  of the client @param {string} member @param {number} withinMs */
function errorOfRequest (error, member, withinMs) {
  if (error.isNoResponders?.()) return new DeckError('no-master', `${member} is offline`)
  if (error.name === 'TimeoutError') return new DeckError('timed-out', `${member} did not answer within ${formatExactDuration(withinMs)}. ${MAY_BE_DONE}`)
  return new DeckError('fleet-away', `cannot ask ${member}: ${error.message}`, { cause: error })
}
