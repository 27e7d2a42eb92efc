import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import express from 'express'
import fastify from 'fastify'
import { foldedHash, foldPath } from '../../../workers/folded-path.ts'
import { MAX_ROUTES, MAX_TARGET_CHARS } from '../../../workers/protocol.ts'
import { watchRequests } from '../../../workers/requests.ts'
import { createRoutes } from '../../../workers/routes.ts'
import { tempFolder, writeFiles } from '../../support/folder.ts'
import { listening } from '../../support/listening.ts'
import { rows } from '../../support/rows.ts'
import { until } from '../../support/until.ts'
import type { AddressInfo } from 'node:net'

/** Asks an app, and returns what was counted of its routes. */
async function startCounting (t: TestContext, makeApp: () => http.Server | Promise<http.Server>) {
  const routes = createRoutes()
  const requests = watchRequests({ routes })
  const server = await makeApp()
  if (!server.listening) await once(server.listen(0), 'listening')
  routes.begin()
  t.after(() => {
    requests.stop()
    routes.stop()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo

  return async (...paths: string[]) => {
    for (const each of paths) await ask(port, each)
    await until(() => requests.count() === 0, 'all is answered')
    return Object.fromEntries(
      (requests.take().routes ?? []).map(({ route, errors, latency }) => [route, [latency.filter((_, index) =>
        index % 2 === 1
      ).reduce((a, b) => a + b, 0), errors]])
    )
  }
}

async function ask (port: number, path: string): Promise<void> {
  const [response] = await once(http.get({ port, path, agent: false }), 'response')
  await once(response.resume(), 'end')
}

function expressApp () {
  const app = express()
  const api = express.Router()
  const shop = express.Router()
  api.get('/users/:id', (request, response) => {
    response.send('x')
  })
  api.get('/fails/:id', () => {
    throw new Error('a fault of the app')
  })
  shop.get('/orders/:order', (request, response) => {
    response.send('x')
  })
  app.use('/api', api.use('/shops/:shop', shop))
  app.use((error: Error, _request: unknown, response: express.Response, _next: () => void) => {
    response.status(500).send(error.message)
  })
  return http.createServer(app)
}

async function fastifyApp () {
  const app = fastify()
  app.register(async (api) => {
    api.get('/users/:id', async () => 'x')
    api.get('/fails/:id', async () => {
      throw new Error('a fault of the app')
    })
    api.get('/shops/:shop/orders/:order', async () => 'x')
  }, { prefix: '/api' })
  await app.listen({ port: 0 })
  return app.server
}

describe('counts answers by the route that the framework has matched, also where it fails, and without the query', () => {
  for (const [name, makeApp, orders] of [
    // A router of Express shows the path that it was mounted on, not its template.
    ['Express', expressApp, 'GET /api/shops/:id/orders/:order'],
    ['Fastify', fastifyApp, 'GET /api/shops/:shop/orders/:order']
  ] as const) {
    test(name, async (t) => {
      const count = await startCounting(t, makeApp)
      const counted = await count('/api/users/ada?token=secret', '/api/users/bob', '/api/fails/1',
        '/api/shops/42/orders/new', '/api/fails/2', '/wp-admin.php')
      assert.deepEqual(counted, { 'GET /api/users/:id': [2, 0], 'GET /api/fails/:id': [2, 2], [orders]: [1, 0],
        'GET (not found)': [1, 0] })
      assert.deepEqual(await count('/api/users/eve'), { 'GET /api/users/:id': [1, 0] })
    })
  }
})

test('counts answers of Koa by what its router has matched', async (t) => {
  const file = path.join(tempFolder(), 'koa', 'lib', 'application.js')
  writeFiles('/', { [file]: 'module.exports = class { createContext (req, res) { return { req, res } } }' })
  const Application = createRequire(import.meta.url)(file)
  const app = new Application()
  const count = await startCounting(t, () =>
    http.createServer((request, response) => {
      app.createContext(request, response)._matchedRoute = '/users/:id'
      response.end()
    }))
  assert.deepEqual(await count('/users/ada', '/users/bob'), { 'GET /users/:id': [2, 0] })
})

test('counts at most 200 routes by themselves, and all others as one', async (t) => {
  const count = await startCounting(t, () =>
    http.createServer((request, response) => {
      response.end()
    }))
  const word = (n: number) => `/${String.fromCharCode(97 + n % 26)}/${String.fromCharCode(97 + Math.floor(n / 26))}`
  const counted = await count(...Array.from({ length: MAX_ROUTES + 3 }, (_, n) => word(n)), word(0))
  assert.equal(Object.keys(counted).length, MAX_ROUTES + 1)
  assert.deepEqual([counted['(other)'], counted['GET /a/a']], [[3, 0], [2, 0]])
})

test('keeps the slowest answer of each route until it reports, with its path and without the query', async (t) => {
  const clock = { ms: 0 }
  const routes = createRoutes({ now: () => 1_000_000 + clock.ms })
  const requests = watchRequests({ routes, now: () => clock.ms })
  const server = http.createServer((request, response) => {
    const ms = Number(/\d+/.exec(String(request.url)))
    clock.ms += ms
    response.writeHead(ms === 90 ? 503 : 200)
    // What an app puts in place of these must not spoil the report.
    if (ms === 7) {
      request.method = 'X'.repeat(999)
      response.statusCode = -1.5
    }
    response.end()
  })
  const port = await listening(t, server)
  t.after(requests.stop)
  t.after(routes.stop)
  const slowest = async (...paths: string[]) => {
    for (const path of paths) await ask(port, path)
    await until(() => requests.count() === 0, 'all is answered')
    return requests.take().routes?.map(({ slowest }) => slowest)
  }
  const found = { method: 'GET', path: '/orders/90', status: 503, ms: 90, at: 1_000_095 }
  assert.deepEqual(await slowest('/orders/5', '/orders/90?token=secret', '/orders/6'), [found])
  assert.deepEqual(await slowest('/orders/4'), [{ method: 'GET', path: '/orders/4', status: 200, ms: 4,
    at: 1_000_105 }])
  assert.deepEqual(await slowest(`/7${'x'.repeat(999)}`), [{ method: 'X'.repeat(MAX_TARGET_CHARS),
    path: `/7${'x'.repeat(MAX_TARGET_CHARS - 2)}`, status: 0, ms: 7, at: 1_000_112 }])
})

test('folds the segments of a path that look like ids', () => {
  for (const [path, folded] of rows(`
/                                               | /
/users?page=2                                   | /users
/v1/users/42/posts/7?x                          | /v1/users/:id/posts/:id
/files/8f14e45f-ceea-467f-a6d5-1c2d3e4f5a6b     | /files/:id
/verify/ada@example.org                         | /verify/:id
/verify/ada%40example.org                       | /verify/:id
/reset/ZmFrZVJlc2V0VG9rZW4x                     | /reset/:id
/oauth2/callback                                | /oauth2/callback
/a/b/c/d/e/f/g/h/i/j                            | /a/b/c/d/e/f/g/h/*
*                                               | *
http://elsewhere/x                              | *
/${'x'.repeat(33)}                              | /:id
/some-words-of-a-title                          | /some-words-of-a-title`)) assert.equal(foldPath(path), folded, path)
})

test('finds paths by a number that is the same for those that fold alike, and another for others', () => {
  const alike = [['/users/42', '/users/7?page=2', '/users/ada@example.org',
    '/users/8f14e45f-ceea-467f-a6d5-1c2d3e4f5a6b'], ['/users'], ['/users/'], ['/'], ['*', 'http://elsewhere/x'], [
    '/users/new'
  ], ['/1/users', '/234/users'], ['/a/b/c/d/e/f/g/h/i', '/a/b/c/d/e/f/g/h/j/k'], ['/a/b/c/d/e/f/g/h']]
  const hashes = alike.map((urls) => new Set(urls.map(foldedHash)))
  assert.deepEqual(hashes.map(({ size }) => size), alike.map(() => 1))
  assert.equal(new Set(hashes.flatMap((each) => [...each])).size, alike.length)
})
