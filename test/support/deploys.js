import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { hammer, openFreshConnections } from './load.js'
import { until } from './until.js'

/** The language of the tests that deploy under load. @typedef {import('./deck-client.js').DeckClient} DeckClient */

/** @param {string} body what it answers a request with @param {string} [atLoad] */
export function app (body, atLoad = '') {
  return `import http from 'node:http'
${atLoad}
http.createServer((request, response) => { ${body} }).listen(Number(process.env.PORT ?? 0))
`
}

/**
 * @template T @param {import('./deck.js').TestOwner} t @param {string} url @param {() => Promise<T>} work
 * @param {{ connections?: number, perSecond?: number }} [options] `connections` that are kept, and fresh ones `perSecond`
 * @returns {Promise<{ ended: T, failures: string[], total: number }>}
 */
export async function underLoad (t, url, work, { connections = 32, perSecond = 100 } = {}) {
  const keptAlive = hammer(t, url, { connections })
  const fresh = openFreshConnections(t, url, { perSecond })
  await fresh.untilAnswered(20)
  const ended = await work()
  const [kept, opened] = await Promise.all([keptAlive.stop(), fresh.stop()])
  return { ended, failures: [...kept.failures, ...opened.failures], total: kept.total + opened.total }
}

/** @param {DeckClient} deck @returns {Promise<number[]>} ids of those that are ready */
export async function serving (deck) {
  return (await deck.status()).workers.filter((/** @type {any} */ { state }) => state === 'ready').map((/** @type {any} */ { id }) => id)
}

/** @param {DeckClient} deck @returns {Promise<string[]>} what runs in workers that are ready */
export async function releasesOf (deck) {
  const ids = await serving(deck)
  return [...new Set((await deck.status()).workers.filter((/** @type {any} */ { id }) => ids.includes(id)).map((/** @type {any} */ { release }) => release))]
}

/** @param {DeckClient} deck @param {any} [strategy] */
export function deploy (deck, strategy) {
  return roll(deck, { kind: 'deploy', ...(strategy && { strategy }) })
}

/** @param {DeckClient} deck @param {any} body */
export async function roll (deck, body) {
  return end(deck, await start(deck, body))
}

/** @param {DeckClient} deck @param {any} body */
export async function start (deck, body) {
  const { status, body: started } = await deck.api('/rollouts', { method: 'POST', body: JSON.stringify({ kind: 'deploy', ...body }) })
  assert.equal(status, 202, JSON.stringify(started))
  return started
}

/** @param {DeckClient} deck @param {{ id: number }} rollout */
export async function end (deck, rollout) {
  return await deck.rolloutEnd(rollout)
}

/** @param {DeckClient} deck @param {{ id: number }} rollout @param {string} action */
export async function steer (deck, { id }, action) {
  return (await deck.api(`/rollouts/${id}/${action}`, { method: 'POST' })).body
}

/** Waits until the files that a release had at its deploy are recorded. @param {DeckClient} deck @param {string} release */
export async function untilListed (deck, release) {
  await until(() => existsSync(path.join(deck.folder, 'manifests', `${release}.stamps.gz`)), `the manifest of ${release}`)
}

/** @param {any} rollout */
export function pick ({ state, reason }) {
  return [state, reason]
}
