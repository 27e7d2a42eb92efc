import { nameAt } from '../config/actor-names.js'
import { toDeckError, toProblem } from '../problem.js'
import { formatExactDuration } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { MAX_RESPONSE_BYTES, parseRequest, roleFor, encodeResponse } from './rpc-protocol.js'

/**
 * Answers calls of other members by the API of the app that they mean, which checks them as any other call.
 * @typedef {import('./rpc-protocol.js').Question} Question
 * @typedef {import('./rpc-protocol.js').Answer} Answer
 * @typedef {import('./rpc-protocol.js').Role} Role
 * @typedef {{ name: string, actor: string, role: Role, client: Question['client'], from: string, bound: string }} Asker `bound`: why their role is not higher
 * @typedef {Pick<Question, 'app' | 'method' | 'path' | 'headers' | 'body'>} Order
 * @typedef {{ status: number, headers: Record<string, unknown>, body: string }} Served
 * @typedef {(order: Order, asker: Asker, limits: { maxBytes: number, signal: AbortSignal }) => Promise<Served>} Serve
 *   throws payload-too-large, and what `signal` is aborted with
 */

/** A call of the API may wait this long for the end of a rollout, with some time to spare. */
const ANSWER_WITHIN_MS = 75_000
const MAX_AT_ONCE = 64
/** More are not even read, so that a flood leaves the master time for its workers. The API allows signed-in clients the same. */
const MAX_PER_SECOND = 100
/** Answers go to inboxes alone: else one member could make another one write anywhere in NATS. */
const INBOX = /^_(?:INBOX|R_)\.[\w.-]{1,200}$/
/** A message has headers beside its data. */
const HEADROOM_BYTES = 4096

/**
 * @param {object} parts
 * @param {import('./nats-connection.js').Connection} parts.nats
 * @param {string} parts.member
 * @param {string} parts.home
 * @param {import('./rpc-protocol.js').Accept} parts.accept
 * @param {Serve} parts.serve
 * @param {() => number} [parts.now]  monotonic, ms
 */
export function createRpcServer ({ nats, member, home, accept, serve, now = () => performance.now() }) {
  /** @type {Set<AbortController>} */
  const running = new Set()
  let second = { began: -Infinity, heard: 0 }
  let isNamed = true
  /** @type {import('./nats-connection.js').Open | null} */
  let open = null
  let unsubscribe = () => {}
  nats.use(async (opened) => {
    open = opened
    updateSubscription()
    return () => { open = null }
  })

  return {
    /** @param {boolean} isOwn  false: another member has its name, and the questions to that name are for that one */
    named (isOwn) {
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

  /** @param {import('@nats-io/transport-node').Msg} message @param {number} maxBytes */
  async function answerMessage (message, maxBytes) {
    const answer = await answerTo(message.data, maxBytes)
    try {
      if (answer) message.respond(answer)
    } catch {
      // The connection is gone, so nobody waits for the answer.
    }
  }

  /** @param {Uint8Array} data @param {number} maxBytes @returns {Promise<string | null>} null: the question is for another member with this name */
  async function answerTo (data, maxBytes) {
    try {
      const question = parseRequest(data)
      if (question.home !== home) return null
      return await serveRequest(question, maxBytes)
    } catch (error) {
      return encodeRefusal(error)
    }
  }

  /** @param {Question} question @param {number} maxBytes @returns {Promise<string>} @throws {DeckError} */
  async function serveRequest ({ app, method, path, headers, body, actor, role, client, from }, maxBytes) {
    const least = roleFor({ path, role }, { accept, member })
    if (running.size >= MAX_AT_ONCE) throw new DeckError('rate-limited', `${member} already answers ${MAX_AT_ONCE} other questions of the fleet`)
    const ending = new AbortController()
    const tooLate = new DeckError('timed-out', `${member} did not answer within ${formatExactDuration(ANSWER_WITHIN_MS)}`)
    const timer = setTimeout(() => ending.abort(tooLate), ANSWER_WITHIN_MS).unref()
    running.add(ending)
    try {
      const name = nameAt(actor, from)
      const asker = { name, actor: name, role: least, client, from, bound: `fleet.accept of ${member} is "${accept}"` }
      return encodeWithinLimit(await serve({ app, method, path, headers, body }, asker, { maxBytes, signal: ending.signal }), maxBytes)
    } finally {
      clearTimeout(timer)
      running.delete(ending)
    }
  }
}

/** @param {unknown} served @param {number} maxBytes @returns {string} @throws {DeckError} payload-too-large, not-acceptable */
function encodeWithinLimit (served, maxBytes) {
  const text = JSON.stringify(encodeResponse(served))
  const bytes = Buffer.byteLength(text)
  if (bytes <= maxBytes) return text
  throw new DeckError('payload-too-large', `the answer of a member: expected at most ${maxBytes} bytes, received ${bytes}. Ask for less by a limit or a filter`)
}

/** @param {unknown} error @returns {string} */
function encodeRefusal (error) {
  const known = toDeckError(error)
  return JSON.stringify({ status: known.status, headers: { 'content-type': 'application/problem+json' }, body: JSON.stringify(toProblem(known)) })
}
