import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { startDeckHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'

test('a worker tells what it has in flight until it is answered, and then how long it took', async (t) => {
  const gate = path.join(tempFolder(), 'gate')
  const deck = await startDeckHere(t, 'answers-when-told.js', { workers: 1, env: { GATE: gate } })
  const { workers: [{ id }] } = await deck.until({ ready: 1 })
  const list = async () => (await deck.api(`/workers/${id}/requests`)).body
  assert.deepEqual(await list(), { items: [], total: 0 })
  const slow = fetch(`${await deck.appUrl()}/slow`)
  await until(async () => (await list()).total === 1, 'the slow request')
  const { items: [{ method, path: asked, ageMs }] } = await list()
  assert.deepEqual([method, asked], ['GET', '/slow'])
  assert.ok(ageMs >= 0 && Number.isInteger(ageMs))
  writeFileSync(gate, '')
  await (await slow).text()
  await until(async () => (await list()).total === 0, 'the answer')
  const slowest = async () => (await deck.api('/routes')).body.items.flatMap((route) => route.slowest)
  await until(async () => (await slowest()).some(({ path, worker }) => path === '/slow' && worker === id), 'its report')
  assert.equal((await deck.api('/workers/999/requests')).status, 404)
})
