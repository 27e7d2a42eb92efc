import { setTimeout as wait } from 'node:timers/promises'
import type { Release } from '../lifecycle/state.ts'
import type { Releases } from '../releases/registry.ts'
import type { EventStream } from '../events/stream.ts'
import type { Closers } from '../system/closers.ts'

const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 30_000

/**
 * Tries again and again to read the secrets that could not be read at the start. Only a master whose app is served by
 * workers of the one before starts without them.
 * @returns resolves once they are known, with the release that can run then; null: none are missing
 */
export function untilSecrets (
  { releases, events, closers, sleep = wait }: { releases: Pick<Releases, 'secretsProblem' | 'readMissing'>,
    events: Pick<EventStream, 'publish'>, closers: Closers,
    sleep?: (ms: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown> }
): Promise<Release> | null {
  const problem = releases.secretsProblem()
  if (problem === null) return null
  const closed = closers.add(new AbortController(), (controller) => controller.abort())
  events.publish({ type: 'secrets.failed', actor: 'system',
    message: `${problem}. The workers serve on, and none is started; it is tried again` })
  return readAgain()

  async function readAgain (): Promise<Release> {
    for (let delayMs = FIRST_DELAY_MS;; delayMs = Math.min(MAX_DELAY_MS, delayMs * 2)) {
      await sleep(delayMs, undefined, { signal: closed.signal }).catch(() => {})
      // The app is closed: nobody is to go on as if the secrets were known.
      if (closed.signal.aborted) return await new Promise(() => {})
      const release = await releases.readMissing()
      if (!release) continue
      events.publish({ type: 'secrets.read', release: release.id, actor: 'system',
        message: 'Workers are started again' })
      return release
    }
  }
}
