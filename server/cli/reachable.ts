import { DeckError } from '../errors.ts'
import { formatExactDuration } from '../../public/format.ts'
import { sendRequest } from '../system/http.ts'
import { isAlive } from '../system/process-identity.ts'
import { runningDeckAt } from '../system/running-decks.ts'
import type { Master } from './find-master.ts'

/** A command that does not wait answers, or says why it cannot, within 5 s. */
export const ANSWER_WITHIN_MS = 4000
/**
 * The time to wait is counted in so many parts. While this process does not run, as the machine is busy or sleeps, no
 * more than one of them passes.
 */
const PARTS = 20

/**
 * Checks that a master answers. Without a master the keeper holds the admin port open, and a master that hangs does not
 * close it: in both cases a request would wait.
 * @throws {DeckError} no-master, timed-out
 */
export async function checkAnswers (
  { url, fingerprint, recipient, dataDir }: Pick<Master, 'url' | 'fingerprint' | 'recipient' | 'dataDir'>,
  { env, withinMs = ANSWER_WITHIN_MS }: { env: Record<string, string | undefined>, withinMs?: number }
) {
  const patience = new AbortController()
  const { signal } = patience
  let parts = 0
  const timer = setInterval(() => {
    if (++parts === PARTS) patience.abort()
  }, withinMs / PARTS)
  try {
    // This request carries no secret.
    const response = await sendRequest(`${url}/healthz`, { signal, fingerprint, recipient: null, headers: {} })
    response.resume()
  } catch {
    // The request that counts will tell of any other problem.
    if (signal.aborted) throw noAnswerError({ url, pid: recipient?.processes[0].pid ?? null, dataDir }, env, withinMs)
  } finally {
    clearInterval(timer)
  }
}

function noAnswerError ({ url, pid, dataDir }: { url: string, pid: number | null, dataDir: string },
  env: Record<string, string | undefined>, withinMs: number)
{
  const keeper = keeperOf(dataDir, env)
  const within = formatExactDuration(withinMs)
  if (pid === null) return new DeckError('timed-out', `nobody answers at ${url} within ${within}`)
  if (isAlive({ pid, startTime: null })) {
    const end = keeper === null
      ? `end it with kill -KILL ${pid}`
      : `its keeper (pid ${keeper}) replaces a master that hangs (keeper.hungAfterMs); two SIGTERM to the keeper end everything`
    return new DeckError('timed-out',
      `the master (pid ${pid}) does not answer at ${url} within ${within}: it hangs, is suspended or is starting; ${end}`)
  }
  const next = keeper === null
    ? 'nobody starts the next one'
    : `its keeper (pid ${keeper}) tries to start the next one; its stderr says why that fails`
  return new DeckError('no-master', `the master (pid ${pid}) of ${dataDir} has ended; ${next}`)
}

function keeperOf (dataDir: string, env: Record<string, string | undefined>): number | null {
  const keeper = runningDeckAt(dataDir, env)?.keeper
  return keeper && isAlive(keeper) ? keeper.pid : null
}
