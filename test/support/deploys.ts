import { existsSync } from 'node:fs'
import path from 'node:path'
import { hammer, openFreshConnections } from './load.ts'
import { until } from './until.ts'
import type { Rollout } from '../../server/rollouts/api.ts'
import type { DeckClient } from './deck-client.ts'
import type { TestOwner } from './deck.ts'

/** The language of the tests that deploy under load. */

/** `body`: what it answers a request with */
export function app (body: string, atLoad: string = '') {
  return `import http from 'node:http'
${atLoad}
http.createServer((request, response) => { ${body} }).listen(Number(process.env.PORT ?? 0))
`
}

/** Code of an app that throws once that file is there. `isMeant`: code that says whether this worker does */
export const throwsOnce = (file: string, isMeant = 'true') =>
  `import { existsSync as isThere } from 'node:fs'
setInterval(() => { if (${isMeant} && isThere(${JSON.stringify(file)})) throw new Error('too late') }, 20)`

/** `options`: `connections` that are kept, and fresh ones `perSecond` */
export async function underLoad<T> (t: TestOwner, url: string, work: () => Promise<T>,
  { connections = 32, perSecond = 100 }: { connections?: number, perSecond?: number } = {}
): Promise<{ ended: T, failures: string[], total: number }> {
  const keptAlive = hammer(t, url, { connections })
  const fresh = openFreshConnections(t, url, { perSecond })
  await fresh.untilAnswered(20)
  const ended = await work()
  const [kept, opened] = await Promise.all([keptAlive.stop(), fresh.stop()])
  return { ended, failures: [...kept.failures, ...opened.failures], total: kept.total + opened.total }
}

/** @returns ids of those that are ready */
export async function serving (deck: DeckClient): Promise<number[]> {
  return (await deck.status()).workers.flatMap(({ state, id }) => state === 'ready' ? id ?? [] : [])
}

/** @returns what runs in workers that are ready */
export async function releasesOf (deck: DeckClient): Promise<string[]> {
  const ids = await serving(deck)
  const { workers } = await deck.status()
  return [...new Set(workers.flatMap(({ id, release }) => ids.includes(Number(id)) ? release : []))]
}

export async function steer (deck: DeckClient, { id }: { id: number },
  action: 'pause' | 'resume' | 'abort' | 'promote' | 'retry')
{
  return (await deck.post(`/rollouts/${id}/${action}`)).body
}

/** Waits until the files that a release had at its deploy are recorded. */
export async function untilListed (deck: DeckClient, release: string) {
  await until(() => existsSync(path.join(deck.folder, 'manifests', `${release}.stamps.gz`)),
    `the manifest of ${release}`)
}

export function pick ({ state, reason }: Pick<Rollout, 'state' | 'reason'>) {
  return [state, reason]
}
