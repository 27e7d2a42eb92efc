import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import express from 'express'
import supertest from 'supertest'
import { z } from 'zod'
import { operation, routeOperations } from '../../../server/api/endpoint.js'
import { describeApi } from '../../../server/api/openapi.js'

test('an operation may read a body of its own kind as it comes, and says so in the document', async () => {
  const take = operation({
    name: 'take', summary: 'Take', role: null, takes: 'application/gzip', answer: z.strictObject({ bytes: z.int() }), handle: async ({ req }) => ({ body: { bytes: (await buffer(req)).length } })
  })
  const groups = { Old: { about: 'What takes much.', resources: { '/take': { POST: take } } } }
  const app = express().use(routeOperations(groups, { idempotency: /** @type {any} */ ({ once: (/** @type {any} */ _, /** @type {any} */ __, /** @type {() => any} */ work) => work() }) }))
  app.use((/** @type {any} */ error, /** @type {any} */ _req, /** @type {any} */ res, /** @type {any} */ _next) => { res.status(error.status).end(error.message) })
  const large = Buffer.alloc(5 * 1024 ** 2)
  assert.deepEqual((await supertest(app).post('/take').type('application/gzip').send(large).expect(200)).body, { bytes: large.length })
  const { text } = await supertest(app).post('/take').send({ a: 1 }).expect(415)
  assert.equal(text, 'Content-Type: expected application/gzip, received "application/json"')
  assert.deepEqual(describeApi([{ base: '/', groups }], { version: '1' }).paths['/take'].post.requestBody, { required: true, content: { 'application/gzip': {} } })
})

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
