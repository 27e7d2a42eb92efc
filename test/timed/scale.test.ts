import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { APP_PARTS } from '../bench/scale/apps.ts'
import { EVENT_PARTS } from '../bench/scale/events.ts'
import { HOST_PARTS } from '../bench/scale/hosts.ts'
import { growthOf, measure, type Part } from '../bench/scale/measure.ts'
import { WORKER_PARTS } from '../bench/scale/workers.ts'
import { rareTest } from '../support/rare.ts'

const ROUNDS = 2
/** Where each costs the same it is 1, and where each costs as much as there are others it is 4. */
const MAX_GROWTH = 1.3
/** Whoever is disturbed may try again. */
const TRIES = 3

describe('four times as many cost at most four times as much', () => {
  test('workers', () =>
    checkGrowth(32, WORKER_PARTS.rollout, WORKER_PARTS.deaths, WORKER_PARTS.vitals, WORKER_PARTS.checkpoint,
      WORKER_PARTS.status))
  test('hosts', () => checkGrowth(100, HOST_PARTS.turn))
  test('events', () => checkGrowth(1000, EVENT_PARTS.record, EVENT_PARTS.filtered))
  rareTest('decisions about many workers', () => checkGrowth(64, WORKER_PARTS.rollout, WORKER_PARTS.deaths))
  rareTest('pages of many workers', () => checkGrowth(16, WORKER_PARTS.page, WORKER_PARTS.metrics))
  rareTest('pages of many apps', () => checkGrowth(15, ...Object.values(APP_PARTS)))
  rareTest('pages of many hosts', () => checkGrowth(100, HOST_PARTS.page, HOST_PARTS.rolling, HOST_PARTS.api))
  rareTest('a large history', () => checkGrowth(5000, EVENT_PARTS.newest, EVENT_PARTS.words, EVENT_PARTS.open))
})

async function checkGrowth (few: number, ...parts: Part[]) {
  for (const part of parts) {
    let growth = await growthFrom(few, part)
    for (let tries = 1; tries < TRIES && growth > MAX_GROWTH; tries++)
      growth = Math.min(growth, await growthFrom(few, part))
    assert.ok(growth <= MAX_GROWTH,
      `${part.title}: with ${4 * few} ${part.unit}s instead of ${few} each takes ${growth.toFixed(2)} times as much`)
  }
}

async function growthFrom (few: number, part: Part) {
  const [less, more] = [await measure(part, few, { rounds: ROUNDS }), await measure(part, 4 * few, { rounds: ROUNDS })]
  if (less.bytes !== null) assert.ok(growthOf(less, more, 'bytes') < 1.1, `${part.title}: bytes`)
  return growthOf(less, more, 'cpuMs')
}
