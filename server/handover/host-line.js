import net from 'node:net'
import { once } from 'node:events'
import { DeckError, errorReason, isErrorCode, toError } from '../errors.js'
import { createJsonLines } from './json-lines.js'
import { sendSockets } from './socket-passing.js'

/** @typedef {import('./json-lines.js').JsonLines} JsonLines */
/** @typedef {{ key: string, data?: unknown, socket: import('./socket-passing.js').Passable, kind: import('./socket-passing.js').Kind }} PassedSocket */

/** How long a host may take for an answer: it reads the configuration. While it starts the workers, it says every few seconds that it is there. */
export const ANSWERS_WITHIN_MS = 30_000

/**
 * The line to a host that waits for an app: see host/adoptions.js.
 * @param {string} path @returns {Promise<JsonLines>} @throws {DeckError} not-possible
 */
export async function openLine (path) {
  return createJsonLines(await connect(path))
}

/**
 * Gives the host the sockets of the app, and waits until it has them.
 * @param {JsonLines} line @param {string} path of that line @param {readonly PassedSocket[]} sockets  stay open here
 * @throws {DeckError} what the host has against it
 */
export async function passSockets (line, path, sockets) {
  line.send({ type: 'sockets', sockets: sockets.map(({ key, data, kind }) => ({ key, data: data ?? null, kind })) })
  if (sockets.length > 0) await sendSockets(await connect(`${path}-sockets`, { isPaused: true }), sockets)
  await answerOf(line, 'received')
}

/**
 * Waits until the host serves the app. The host has the data folder of the app: if it hangs, nobody else can go on with the app until
 * that host has ended. The old workers serve meanwhile.
 * @param {Pick<JsonLines, 'next'>} line
 * @param {{ onSilent: () => void, silentMs?: number, timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> }} how  `onSilent`: called each time that the host has
 *   not said for so long that it is still there
 * @throws {DeckError} what the host has against it
 */
export async function untilServing (line, { onSilent, silentMs = ANSWERS_WITHIN_MS, timers = globalThis }) {
  for (;;) {
    const timer = timers.setTimeout(onSilent, silentMs)
    const answer = await line.next()
    timers.clearTimeout(timer)
    if (answer?.type !== 'starting') return checkAnswer(answer, 'serving')
  }
}

/**
 * @param {JsonLines} line @param {string} type  of the message that is expected
 * @returns {Promise<import('./json-lines.js').Message>}
 * @throws {DeckError} what the host has against it
 */
export async function answerOf (line, type) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const late = new Promise((resolve) => { timer = setTimeout(resolve, ANSWERS_WITHIN_MS, { type: 'late' }) })
  const answer = /** @type {import('./json-lines.js').Message | null} */ (await Promise.race([line.next(), late]))
  clearTimeout(timer)
  return checkAnswer(answer, type)
}

/** @param {import('./json-lines.js').Message | null} answer @param {string} type that is expected @throws {DeckError} */
function checkAnswer (answer, type) {
  if (answer?.type === type) return answer
  if (answer?.type === 'refused') throw new DeckError(isErrorCode(answer.code) ? answer.code : 'not-possible', String(answer.message))
  throw new DeckError('not-possible', answer === null ? 'the host has gone, or has closed the connection' : 'the host does not answer as expected')
}

/**
 * @param {string} path @param {{ isPaused?: boolean }} [how]  `isPaused`: nothing may be read here
 * @returns {Promise<net.Socket>} @throws {DeckError} not-possible
 */
async function connect (path, { isPaused = false } = {}) {
  const connection = net.connect({ path })
  if (isPaused) connection.pause()
  try {
    await once(connection, 'connect')
    return connection
  } catch (error) {
    throw new DeckError('not-possible', `path: expected the socket of a host that waits for this deck, received ${path} (${errorReason(toError(error))})`)
  }
}
