import assert from 'node:assert/strict'
import { test } from 'node:test'
import express from 'express'
import supertest from 'supertest'
import { z } from 'zod'
import { operation, routeOperations } from '../../../server/api/endpoint.js'
import { describeApi } from '../../../server/api/openapi.js'

test('an operation that will go away says so in its answers and in the document', async () => {
  const old = operation({
    name: 'getOld', summary: 'Old', role: null, answer: z.strictObject({}), deprecated: { since: '2026-01-01', until: '2027-01-01', instead: '/api/v1/new' }, handle: () => ({ body: {} })
  })
  const groups = { Old: { about: 'What goes away.', resources: { '/old': { GET: old } } } }
  const app = express().use(routeOperations(groups, { idempotency: /** @type {any} */ (null) }))
  const { headers } = await supertest(app).get('/old').expect(200)
  assert.equal(headers.deprecation, '@1767225600')
  assert.equal(headers.sunset, 'Fri, 01 Jan 2027 00:00:00 GMT')
  assert.equal(headers.link, '</api/v1/new>; rel="successor-version"')
  assert.equal(describeApi([{ base: '/', groups }], { version: '1' }).paths['/old'].get.deprecated, true)
})
