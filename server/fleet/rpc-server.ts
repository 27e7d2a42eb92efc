import { nameAt } from '../config/actor-names.ts'
import { toDeckError, toProblem } from '../problem.ts'
import { formatExactDuration } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { MAX_RESPONSE_BYTES, parseRequest, roleFor, encodeResponse } from './rpc-protocol.ts'
import type { Msg } from '@nats-io/transport-node'
import type { Accept, Question, Role } from './rpc-protocol.ts'
import type { Connection, Open } from './nats-connection.ts'

/** Answers calls of other members by the API of the app that they mean, which checks them as any other call. */
/** `bound`: why their role is not higher */
type Asker = { name: string, actor: string, role: Role, client: Question['client'], from: string, bound: string }
export type Order = Pick<Question, 'app' | 'method' | 'path' | 'headers' | 'body'>
type Served = { status: number, headers: Record<string, unknown>, body: string }
/** throws payload-too-large, and what `signal` is aborted with */
export type Serve = (order: Order, asker: Asker, limits: { maxBytes: number, signal: AbortSignal }) => Promise<Served>

/** A call of the API may wait this long for the end of a rollout, with some time to spare. */
const ANSWER_WITHIN_MS = 75_000
const MAX_AT_ONCE = 64
/**
 * More are not even read, so that a flood leaves the master time for its workers. The API allows signed-in clients the
 * same.
 */
const MAX_PER_SECOND = 100
/** Answers go to inboxes alone: else one member could make another one write anywhere in NATS. */
const INBOX = /^_(?:INBOX|R_)\.[\w.-]{1,200}$/
/** A message has headers beside its data. */
const HEADROOM_BYTES = 4096

export function createRpcServer ({ nats, member, home, accept, serve, now = () => performance.now() }: {
  nats: Connection,
  member: string,
  home: string,
  accept: Accept,
  serve: Serve,
  /** monotonic, ms */
  now?: () => number
}) {
  const running: Set<AbortController> = new Set()
  let second = { began: -Infinity, heard: 0 }
  let isNamed = true
  let open: Open | null = null
  let unsubscribe = () => {}
  nats.use(async (opened) => {
    open = opened
    updateSubscription()
    return () => {
      open = null
    }
  })

  return {
    /** `isOwn`: false: another member has its name, and the questions to that name are for that one */
    named (isOwn: boolean) {
      if (isOwn === isNamed) return
      isNamed = isOwn
      updateSubscription()
    },

    close () {
      for (const each of running) each.abort(new DeckError('stopping', 'the master is stopping'))
    }
  }

  function updateSubscription () {
    unsubscribe()
    unsubscribe = () => {}
    if (!open || !isNamed) return
    const { connection, names } = open
    const maxBytes = Math.min(MAX_RESPONSE_BYTES, Number(connection.info?.max_payload ?? Infinity) - HEADROOM_BYTES)
    const subscription = connection.subscribe(`${names.subject}.${member}.api`, {
      // During an upgrade a host has two masters: only one of them gets each question.
      queue: home,
      callback (error, message) {
        if (!error && isHeard() && INBOX.test(String(message.reply))) answerMessage(message, maxBytes)
      }
    })
    unsubscribe = () => subscription.unsubscribe()
  }

  function isHeard () {
    if (now() - second.began >= 1000) second = { began: now(), heard: 0 }
    return ++second.heard <= MAX_PER_SECOND
  }

  async function answerMessage (message: Msg, maxBytes: number) {
    const answer = await answerTo(message.data, maxBytes)
    try {
      if (answer) message.respond(answer)
    } catch {
      // The connection is gone, so nobody waits for the answer.
    }
  }

  /** Null: the question is for another member with this name */
  async function answerTo (data: Uint8Array, maxBytes: number): Promise<string | null> {
    try {
      const question = parseRequest(data)
      if (question.home !== home) return null
      return await serveRequest(question, maxBytes)
    } catch (error) {
      return encodeRefusal(error)
    }
  }

  /** @throws {DeckError} */
  async function serveRequest ({ app, method, path, headers, body, actor, role, client, from }: Question,
    maxBytes: number): Promise<string>
  {
    const least = roleFor({ path, role }, { accept, member })
    if (running.size >= MAX_AT_ONCE)
      throw new DeckError('rate-limited', `${member} already answers ${MAX_AT_ONCE} other questions of the fleet`)
    const ending = new AbortController()
    const tooLate = new DeckError('timed-out',
      `${member} did not answer within ${formatExactDuration(ANSWER_WITHIN_MS)}`)
    const timer = setTimeout(() => ending.abort(tooLate), ANSWER_WITHIN_MS).unref()
    running.add(ending)
    try {
      const name = nameAt(actor, from)
      const asker = { name, actor: name, role: least, client, from, bound: `fleet.accept of ${member} is "${accept}"` }
      return encodeWithinLimit(
        await serve({ app, method, path, headers, body }, asker, { maxBytes, signal: ending.signal }),
        maxBytes
      )
    } finally {
      clearTimeout(timer)
      running.delete(ending)
    }
  }
}

/** @throws {DeckError} payload-too-large, not-acceptable */
function encodeWithinLimit (served: unknown, maxBytes: number): string {
  const text = JSON.stringify(encodeResponse(served))
  const bytes = Buffer.byteLength(text)
  if (bytes <= maxBytes) return text
  throw new DeckError('payload-too-large',
    `the answer of a member: expected at most ${maxBytes} bytes, received ${bytes}. Ask for less by a limit or a filter`)
}

function encodeRefusal (error: unknown): string {
  const known = toDeckError(error)
  return JSON.stringify({ status: known.status, headers: { 'content-type': 'application/problem+json' },
    body: JSON.stringify(toProblem(known)) })
}
