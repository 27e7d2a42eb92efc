import { toDeckError, toProblem } from '../problem.js'
import { DeckError } from '../errors.js'
import { MAX_RESPONSE_BYTES, parseRequest, roleFor, encodeResponse } from './rpc-protocol.js'

/**
 * Answers what other members ask of this one, by its own API under its own checks.
 * @typedef {import('./rpc-protocol.js').Question} Question
 * @typedef {import('./rpc-protocol.js').Answer} Answer
 * @typedef {{ name: string, actor: string, role: import('./rpc-protocol.js').Role, client: Question['client'], from: string, bound: string }} Asker `bound`: why their role is no more
 * @typedef {Pick<Question, 'method' | 'path' | 'headers' | 'body'>} Order
 * @typedef {(order: Order, asker: Asker, limits: { maxBytes: number, signal: AbortSignal }) => Promise<{ status: number, headers: Record<string, unknown>, body: string }>} Serve throws payload-too-large, and what `signal` is aborted with
 */

/** As long as a call of the API may wait for the end of a rollout, and some more. */
const ANSWER_WITHIN_MS = 75_000
const MAX_AT_ONCE = 64
/** More are not even read: a flood leaves the master time for its workers. As many as the API allows those who are signed in. */
const MAX_PER_SECOND = 100
/** Anywhere else an answer would be something else: a member is not made to write for another. */
const INBOX = /^_(?:INBOX|R_)\.[\w.-]{1,200}$/
/** Left to what a message has beside its data. */
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
    /** @param {boolean} isOwn  whether its name is its own: questions to that of another deck are for that one */
    named (isOwn) {
      if (isOwn === isNamed) return
      isNamed = isOwn
      updateSubscription()
    },

    close () {
      for (const each of running) each.abort(new DeckError('stopping', 'the master is stopping'))
    }
  }

  /** For as long as the name is its own. */
  function updateSubscription () {
    unsubscribe()
    unsubscribe = () => {}
    if (!open || !isNamed) return
    const { connection, names } = open
    const maxBytes = Math.min(MAX_RESPONSE_BYTES, Number(connection.info?.max_payload ?? Infinity) - HEADROOM_BYTES)
    const subscription = connection.subscribe(`${names.subject}.${member}.api`, {
      // Of two masters of one deck, as there are for a moment at an upgrade, one is asked.
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
      // The connection is gone, and who has asked hears that too.
    }
  }

  /** @param {Uint8Array} data @param {number} maxBytes @returns {Promise<string | null>} null: another one with this name is meant */
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
  async function serveRequest ({ method, path, headers, body, actor, role, client, from }, maxBytes) {
    const least = roleFor({ path, role }, { accept, member })
    if (running.size >= MAX_AT_ONCE) throw new DeckError('rate-limited', `${member} answers ${MAX_AT_ONCE} questions of the fleet already`)
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(new DeckError('timed-out', `${member} has not answered within ${ANSWER_WITHIN_MS} ms`)), ANSWER_WITHIN_MS).unref()
    running.add(ending)
    try {
      const name = `${actor}@${from}`
      const asker = { name, actor: name, role: least, client, from, bound: `fleet.accept of ${member} is "${accept}"` }
      return encodeWithinLimit(await serve({ method, path, headers, body }, asker, { maxBytes, signal: ending.signal }), maxBytes)
    } finally {
      clearTimeout(timer)
      running.delete(ending)
    }
  }
}

/** @param {unknown} served @param {number} maxBytes @returns {string} @throws {DeckError} payload-too-large, not-acceptable */
function encodeWithinLimit (served, maxBytes) {
  const text = JSON.stringify(encodeResponse(served))
  if (Buffer.byteLength(text) > maxBytes) throw new DeckError('payload-too-large', `the answer is larger than the ${maxBytes} bytes that can come from a member: ask for less, by a limit or a filter`)
  return text
}

/** @param {unknown} error @returns {string} */
function encodeRefusal (error) {
  const known = toDeckError(error)
  return JSON.stringify({ status: known.status, headers: { 'content-type': 'application/problem+json' }, body: JSON.stringify(toProblem(known)) })
}
