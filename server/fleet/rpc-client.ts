import { z } from 'zod'
import { formatDuration, formatExactDuration } from '../../public/format.ts'
import { DeckError, isErrorCode, toError } from '../errors.ts'
import { noMember, type Host, type Presence } from './presence.ts'
import { MAX_RESPONSE_BYTES, parseResponse, roleFor, encodeResponse, encodeRequest } from './rpc-protocol.ts'
import { parseUntrusted } from './untrusted-json.ts'
import type { Order, Serve } from './rpc-server.ts'
import type { Answer, Question, Role } from './rpc-protocol.ts'
import type { Connection } from './nats-connection.ts'

/** Calls the API of an app of a member. This host answers itself without NATS. */
type Asking =
  & Omit<Order, 'headers'>
  & { headers?: Order['headers'] }
/** who asks */
export type Person = { name: string | null, actor: string, role: Role, client: Question['client'] }

const ANSWER_WITHIN_MS = 10_000
const MAY_BE_DONE = 'It may have done it nevertheless'

const PROBLEM = z.object({ code: z.string(), detail: z.string(), now: z.string().max(100).optional(),
  change: z.string().max(500).optional() })

const MAX_CHARS = 500

export function createRpcClient ({ nats, presence, member: own, serve }: {
  nats: Connection,
  presence: Pick<Presence, 'all' | 'find' | 'list'>,
  /** this one */
  member: string,
  serve: Serve
}) {
  return {
    ask: askMember,

    /**
     * As `ask`, but a refusal is an error. Returns the answer, parsed from JSON.
     * @throws {DeckError} as ask(), what the member refuses with, and not-possible: its answer is no JSON
     */
    async obtain (member: string, { headers = {}, ...order }: Asking, person: Person,
      how?: { withinMs?: number }): Promise<unknown>
    {
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
   * @returns which may be a refusal
   * @throws {DeckError} not-found, fleet-away, no-master, timed-out; bad-request, payload-too-large: it cannot be asked
   */
  async function askMember (member: string, order: Order, person: Person,
    { withinMs = ANSWER_WITHIN_MS }: { withinMs?: number } = {}): Promise<Answer>
  {
    const { app, method, path, headers, body } = order
    const { actor, role, client } = person
    const found = await findMember(member, app)
    const text = encodeRequest({ home: found.home, app, method, path, headers, body, actor, role, client, from: own })
    return found.isOwn ? askOwn(order, person, withinMs) : askOther(found, text, withinMs)
  }

  /** @throws {DeckError} not-found */
  async function findMember (member: string, app: string) {
    const isNamed = (each: { member: string }) => each.member === member
    const found = (member === own ? presence.list().find(isNamed) : presence.find(member)) ??
      (await presence.all()).members.find(isNamed)
    if (!found) throw noMember(member)
    if (!found.apps.some((each) => each.app === app))
      throw new DeckError('not-found', `${member} has no app ${JSON.stringify(app)}`)
    return found
  }

  async function askOwn (order: Order, { name, actor, role, client }: Person, withinMs: number): Promise<Answer> {
    const least = roleFor({ path: order.path, role }, { accept: 'operate', member: own })
    const asker = { name: name ?? actor, actor, role: least, client, from: own,
      bound: 'the fleet gives nobody a higher role' }
    return encodeResponse(
      await serve(order, asker, { maxBytes: MAX_RESPONSE_BYTES, signal: AbortSignal.timeout(withinMs) })
    )
  }

  async function askOther ({ member, isSilent, ageMs }: Host, text: string, withinMs: number): Promise<Answer> {
    const { isConnected, problem } = nats.state
    if (!isConnected) throw new DeckError('fleet-away', `cannot ask ${member}: NATS is out of reach (${problem})`)
    if (isSilent) throw new DeckError('no-master', `${member} has been silent for ${formatDuration(ageMs)}`)
    const asked = await nats.attempt(({ connection, names }) => {
      return connection.request(`${names.subject}.${member}.api`, text, { timeout: withinMs }).catch(toError)
    })
    if (asked.is === 'away')
      throw new DeckError('fleet-away', `${member} did not answer: ${asked.reason}. ${MAY_BE_DONE}`)
    if (asked.value instanceof Error) throw errorOfRequest(asked.value, member, withinMs)
    const answer = parseResponse(asked.value.data)
    if (!answer) throw new DeckError('no-master', `${member} sent an answer that this version cannot read`)
    return answer
  }
}

/** `error`: of the client */
function errorOfRequest (error: Error & { isNoResponders?: () => boolean }, member: string, withinMs: number) {
  if (error.isNoResponders?.()) return new DeckError('no-master', `${member} is offline`)
  if (error.name === 'TimeoutError')
    return new DeckError('timed-out',
      `${member} did not answer within ${formatExactDuration(withinMs)}. ${MAY_BE_DONE}`)
  return new DeckError('fleet-away', `cannot ask ${member}: ${error.message}`, { cause: error })
}

/** `answer`: with a status from 400 on @returns with the member's own code, if this version knows it */
export function refusalOf ({ status, body }: Pick<Answer, 'status' | 'body'>): DeckError {
  const problem = parseUntrusted(PROBLEM, () => JSON.parse(body))
  if (!problem) return new DeckError('not-possible', `status ${status}`)
  const code = isErrorCode(problem.code) ? problem.code : 'not-possible'
  const { detail, now, change } = problem
  return new DeckError(code, detail.slice(0, MAX_CHARS), { details: { ...(now !== undefined && { now, change }) } })
}
