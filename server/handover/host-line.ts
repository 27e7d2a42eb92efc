import net from 'node:net'
import { once } from 'node:events'
import { DeckError, errorReason, isErrorCode, toError } from '../errors.ts'
import { createJsonLines, type JsonLines, type Message } from './json-lines.ts'
import { sendSockets, type Kind, type Passable } from './socket-passing.ts'

type PassedSocket = { key: string, data?: unknown, socket: Passable, kind: Kind }

/**
 * How long a host may take for an answer: it reads the configuration. While it starts the workers, it says every few
 * seconds that it is there.
 */
export const ANSWERS_WITHIN_MS = 30_000

/**
 * The line to a host that waits for an app: see host/adoptions.js.
 * @throws {DeckError} not-possible
 */
export async function openLine (path: string): Promise<JsonLines> {
  return createJsonLines(await connect(path))
}

/**
 * Gives the host the sockets of the app, and waits until it has them. `path`: of that line; `sockets`: stay open here.
 * @throws {DeckError} what the host has against it
 */
export async function passSockets (line: JsonLines, path: string, sockets: readonly PassedSocket[]) {
  line.send({ type: 'sockets', sockets: sockets.map(({ key, data, kind }) => ({ key, data: data ?? null, kind })) })
  if (sockets.length > 0) await sendSockets(await connect(`${path}-sockets`, { isPaused: true }), sockets)
  await answerOf(line, 'received')
}

/**
 * Waits until the host serves the app. The host has the data folder of the app: if it hangs, nobody else can go on with
 * the app until that host has ended. The old workers serve meanwhile. `onSilent`: called each time that the host
 * has not said for so long that it is still there.
 * @throws {DeckError} what the host has against it
 */
export async function untilServing (line: Pick<JsonLines, 'next'>,
  { onSilent, silentMs = ANSWERS_WITHIN_MS, timers = globalThis }: { onSilent: () => void, silentMs?: number,
    timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> })
{
  for (;;) {
    const timer = timers.setTimeout(onSilent, silentMs)
    const answer = await line.next()
    timers.clearTimeout(timer)
    if (answer?.type !== 'starting') return checkAnswer(answer, 'serving')
  }
}

/** `type`: of the message that is expected @throws {DeckError} what the host has against it */
export async function answerOf (line: JsonLines, type: string): Promise<Message> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ANSWERS_WITHIN_MS, { type: 'late' })
  })
  const answer = await Promise.race([line.next(), late]) as Message | null
  clearTimeout(timer)
  return checkAnswer(answer, type)
}

/** `type`: that is expected @throws {DeckError} */
function checkAnswer (answer: Message | null, type: string) {
  if (answer?.type === type) return answer
  if (answer?.type === 'refused')
    throw new DeckError(isErrorCode(answer.code) ? answer.code : 'not-possible', String(answer.message))
  throw new DeckError('not-possible',
    answer === null ? 'the host has gone, or has closed the connection' : 'the host does not answer as expected')
}

/** `isPaused`: nothing may be read here @throws {DeckError} not-possible */
async function connect (path: string, { isPaused = false }: { isPaused?: boolean } = {}): Promise<net.Socket> {
  const connection = net.connect({ path })
  if (isPaused) connection.pause()
  try {
    await once(connection, 'connect')
    return connection
  } catch (error) {
    throw new DeckError('not-possible',
      `path: expected the socket of a host that waits for this deck, received ${path} (${errorReason(toError(error))})`)
  }
}
