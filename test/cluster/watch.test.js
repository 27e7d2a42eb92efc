import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { test } from 'node:test'
import { startDeckHere } from '../support/deck-here.js'
import { createSources } from '../support/sources.js'

test('--watch rolls on a change of any loaded file, and a release that does not start never replaces one that serves', async (t) => {
  const { app, write } = createSources()
  const deck = await startDeckHere(t, app, { flags: ['--watch', '--drain-idle-grace-ms', '50'] })
  await deck.until({ ready: 2 })
  const answer = async () => (await fetch(await deck.appUrl(), { headers: { connection: 'close' } })).json()
  let last = 0
  /** @param {string} outcome of the next rollout */
  const untilRolled = async (outcome) => {
    const event = await deck.untilEvent(({ type, rollout }) => rollout > last && /^rollout\.(succeeded|failed)$/.test(type), `a rollout that has ${outcome}`)
    assert.deepEqual([event.type, event.actor], [`rollout.${outcome}`, 'watch'], event.message)
    last = event.rollout
  }

  write('nested', 2)
  await untilRolled('succeeded')
  assert.deepEqual(await answer(), { nested: 2, required: 1 })

  write('required', 2)
  await untilRolled('succeeded')
  assert.deepEqual(await answer(), { nested: 2, required: 2 })

  const pids = (await deck.status()).workers.map((/** @type {any} */ { pid }) => pid)
  write('nested', '= 3')
  await untilRolled('failed')
  assert.deepEqual((await deck.status()).workers.map((/** @type {any} */ { pid }) => pid), pids)
  assert.deepEqual(await answer(), { nested: 2, required: 2 })
  assert.match(deck.output.stdout, /lib\/nested\.js:1\n {2}export const nested = = 3\n.*\n {2}SyntaxError/)

  const file = write('nested', 3)
  await untilRolled('succeeded')
  rmSync(file)
  await untilRolled('failed')
  write('nested', 4)
  await untilRolled('succeeded')
  assert.deepEqual(await answer(), { nested: 4, required: 2 })
})
