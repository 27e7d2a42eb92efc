import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDeckHere } from '../support/deck-here.ts'

test('of 20 requests in flight when one throws, 19 are answered, that one gets a 500, and none is reset', async (t) => {
  const deck = await startDeckHere(t, 'dies-on-request.cjs', { workers: 1, flags: ['--crash-grace-ms', '10000'] })
  const [{ id, pid }] = (await deck.until({ ready: 1 })).workers
  const url = await deck.appUrl()
  const slow = Array.from({ length: 19 }, (_, n) => statusOf(`${url}/slow?ms=${2000 + n * 10}`))
  // All of them are with the worker once a later one is answered: connections are accepted in order.
  assert.equal(await statusOf(url), 200)
  const [blamed, ...others] = await Promise.all([statusOf(`${url}/throw-in-request`), ...slow])
  assert.deepEqual(others, Array(19).fill(200))
  assert.equal(blamed, 500)
  const exit = await deck.untilEvent('worker.exited', { worker: id })
  assert.deepEqual([exit.code, exit.cause, exit.pid], [1, 'crash', pid])
  const { body: record } = await deck.api(
    `/crashes/${Number(exit.detail?.crashGroup)}/occurrences/${Number(exit.detail?.crash)}`
  )
  assert.equal(record.requests.length, 20)
  assert.deepEqual([record.requests.at(-1)?.method, record.requests.at(-1)?.path], ['GET', '/throw-in-request'])
  const events = (await deck.history('limit=50')).map(({ type, worker }) => `${type} ${worker}`)
  assert.ok(events.indexOf(`worker.forked ${id + 1}`) > events.indexOf(`worker.exited ${id}`),
    'the replacement is started before the end')
})

/** @returns status or what went wrong */
async function statusOf (url: string): Promise<number | string> {
  try {
    const response = await fetch(url)
    await response.text()
    return response.status
  } catch (error) {
    return String((error as Error).cause ?? error)
  }
}
