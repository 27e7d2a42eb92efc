import assert from 'node:assert/strict'
import { test } from 'node:test'
import client from 'prom-client'
import { findClients, readAll, readGrowing, registriesOf } from '../../../workers/prom-client.ts'

const REGISTRY = client.register as object as ReturnType<typeof findClients>[number]['registry']

test('gauges that throw or never answer leave the others as they are', async (t) => {
  t.after(() => client.register.clear())
  new client.Counter({ name: 'counted_total', help: 'h' }).inc(3)
  const gauge = new client.Gauge({ name: 'known', help: 'h' })
  gauge.set(5)
  const collect = [() => {
    throw new Error('as told')
  }, async () => {
    throw new Error('later')
  }, () => new Promise(() => {})]
  collect.forEach((each, index) =>
    new client.Gauge({ name: `unknown_${index}`, help: 'h', collect: each as () => void })
  )

  // The app's own server keeps a worker running, and nothing of ours.
  const server = setInterval(() => {}, 60_000)
  t.after(() => clearInterval(server))

  const [found] = findClients()
  assert.equal(found.registry, REGISTRY)
  assert.deepEqual(registriesOf(found), [REGISTRY])
  const { metrics, leftOut } = await readAll([REGISTRY])
  assert.deepEqual([metrics.map(({ name, rows }) => [name, rows]), leftOut], [[['counted_total', [[{}, 3]]], ['known', [
    [{}, 5]
  ]], ['unknown_0', []], ['unknown_1', []], ['unknown_2', []]], 0])
  assert.deepEqual(readGrowing([REGISTRY]).metrics.map(({ name }) => name), ['counted_total'],
    'what only grows is read at once, and asks no code of the app')
})

test('a metric with more series than there may be is counted, and not told', (t) => {
  t.after(() => client.register.clear())
  const many = new client.Counter({ name: 'many_total', help: 'h', labelNames: ['id'] })
  for (let id = 0; id <= 10_000; id++) many.inc({ id })
  new client.Counter({ name: 'few_total', help: 'h' }).inc()
  const { metrics, leftOut } = readGrowing([REGISTRY])
  assert.deepEqual([metrics.map(({ name }) => name), leftOut], [['few_total'], 10_001])
})
