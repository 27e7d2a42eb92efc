import { setTimeout as wait } from 'node:timers/promises'

const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 30_000

/** @typedef {import('../lifecycle/state.js').Release} Release */

/**
 * Tries again and again to read the secrets that could not be read at the start. Only a master whose app is served by workers of the one
 * before starts without them.
 * @param {object} parts
 * @param {Pick<import('../releases/registry.js').Releases, 'secretsProblem' | 'readMissing'>} parts.releases
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {import('../system/closers.js').Closers} parts.closers
 * @param {(ms: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown>} [parts.sleep]
 * @returns {Promise<Release> | null} resolves once they are known, with the release that can run then; null: none are missing
 */
export function untilSecrets ({ releases, events, closers, sleep = wait }) {
  const problem = releases.secretsProblem()
  if (problem === null) return null
  const closed = closers.add(new AbortController(), (controller) => controller.abort())
  events.publish({ type: 'secrets.failed', actor: 'system', message: `${problem}. The workers serve on, and none is started; it is tried again` })
  return readAgain()

  /** @returns {Promise<Release>} */
  async function readAgain () {
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(MAX_DELAY_MS, delayMs * 2)) {
      await sleep(delayMs, undefined, { signal: closed.signal }).catch(() => {})
      // The app is closed: nobody is to go on as if the secrets were known.
      if (closed.signal.aborted) return await new Promise(() => {})
      const release = await releases.readMissing()
      if (!release) continue
      events.publish({ type: 'secrets.read', release: release.id, actor: 'system', message: 'Workers are started again' })
      return release
    }
  }
}
