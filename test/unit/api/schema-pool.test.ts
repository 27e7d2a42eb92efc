import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operationsOf } from '../../../server/admin/deck-site.ts'
import { createSchemaPool } from '../../../server/api/schema-pool.ts'
import { fake } from '../../support/fake.ts'
import type { Mount } from '../../../server/api/openapi.ts'
import type { Operation, Resource } from '../../../server/api/endpoint.ts'

/** @returns those of one more site */
const make = (): Mount[] => operationsOf(fake({ deck: {}, access: { sessions: {} }, now: Date.now }), () => ({}))

test('sites that are alike have one set of schemas, and each its own work', () => {
  const pool = createSchemaPool()
  const [first, second] = [make(), make()]
  assert.notEqual(first[0].groups.History.resources['/events'].GET?.query,
    second[0].groups.History.resources['/events'].GET?.query)
  pool.share(first)
  pool.share(second)
  let count = 0
  for (const [index, { groups }] of first.entries()) {
    for (const [name, { resources }] of Object.entries(groups)) {
      for (const [path, resource] of Object.entries(resources)) {
        for (const [method, operation] of Object.entries(resource)) {
          const other = second[index].groups[name].resources[path][method as keyof Resource] as Operation
          for (const key of ['query', 'body', 'answer', 'path', 'headers'] as const)
            assert.equal(other[key], operation[key], `${operation.name} ${key}`)
          if (name !== 'Probes') assert.notEqual(other.handle, operation.handle, operation.name)
          count++
        }
      }
    }
  }
  assert.ok(count > 70)
})
