import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import express from 'express'
import supertest from 'supertest'
import { z } from 'zod'
import { operation, routeOperations } from '../../../server/api/endpoint.ts'
import { describeApi } from '../../../server/api/openapi.ts'

test('an operation may read a body of its own kind as it comes, and says so in the document', async () => {
  const take = operation({ name: 'take', summary: 'Take', role: null, takes: 'application/gzip',
    answer: z.strictObject({ bytes: z.int() }),
    handle: async ({ req }) => ({ body: { bytes: (await buffer(req)).length } }) })
  const groups = { Old: { about: 'What takes much.', resources: { '/take': { POST: take } } } }
  const app = express().use(routeOperations(groups, { idempotency: { once: (_, __, work) => work() } }))
  const answer: express.ErrorRequestHandler = (error, _req, res, _next) => {
    res.status(error.status).end(error.message)
  }
  app.use(answer)
  const large = Buffer.alloc(5 * 1024 ** 2)
  assert.deepEqual((await supertest(app).post('/take').type('application/gzip').send(large).expect(200)).body, {
    bytes: large.length
  })
  const { text } = await supertest(app).post('/take').send({ a: 1 }).expect(415)
  assert.equal(text, 'Content-Type: expected application/gzip, received "application/json"')
  assert.deepEqual(describeApi([{ base: '/', groups }], { version: '1' }).paths['/take'].post.requestBody, {
    required: true,
    content: { 'application/gzip': {} }
  })
})
