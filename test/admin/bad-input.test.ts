import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawRequest, startAdmin, TOKEN, type Admin, type Answer } from '../support/admin.ts'

/** Everything that can be wrong with a call, over every route. Nothing of it changes anything or shows a stack. */
type Case = { method: string, path: string, body?: string, headers?: Record<string, string>, status: number,
  code: string, detail?: RegExp, allow?: string }

const API = '/api/v1'
const JSON_TYPE = { 'Content-Type': 'application/json' }
const STATUS_OF: Record<string, number> = { 'unknown-option': 400, 'invalid-config': 422, 'not-possible': 409 }

/** Every route, with the methods that it knows. */
const ROUTES = [{ path: '/status', allow: 'GET, HEAD' }, { path: '/workers', allow: 'GET, HEAD' }, { path: '/workers/1',
  allow: 'GET, HEAD' }, { path: '/workers/1/restart', allow: 'POST' }, { path: '/workers/1/kill', allow: 'POST' }, {
  path: '/workers/1/diagnostics',
  allow: 'POST'
}, { path: '/diagnostics', allow: 'GET, HEAD' }, { path: '/diagnostics/1', allow: 'GET, HEAD, DELETE' }, {
  path: '/diagnostics/1/file',
  allow: 'GET, HEAD'
}, { path: '/scale', allow: 'GET, HEAD, PUT' }, { path: '/upgrade', allow: 'POST' }, { path: '/stop', allow: 'POST' }, {
  path: '/rollouts',
  allow: 'GET, HEAD, POST'
}, { path: '/rollouts/preview', allow: 'POST' }, { path: '/rollouts/1', allow: 'GET, HEAD' },
  ...['pause', 'resume', 'abort', 'promote', 'retry'].map((action) => ({ path: `/rollouts/1/${action}`,
    allow: 'POST' })
  ), { path: '/config', allow: 'GET, HEAD, PATCH' }, { path: '/releases', allow: 'GET, HEAD, POST' }, {
  path: '/releases/r1',
  allow: 'GET, HEAD'
}, { path: '/crashes', allow: 'GET, HEAD' }, { path: '/crashes/1', allow: 'GET, HEAD' }, {
  path: '/crashes/1/occurrences/1',
  allow: 'GET, HEAD'
}, { path: '/crashes/1/resolve', allow: 'POST' }, { path: '/crashes/1/mute', allow: 'POST' }, {
  path: '/crashes/1/reopen',
  allow: 'POST'
}, { path: '/events', allow: 'GET, HEAD' }, { path: '/events/1', allow: 'GET, HEAD' }, { path: '/events/stream',
  allow: 'GET, HEAD' }, { path: '/vitals', allow: 'GET, HEAD' }, { path: '/logs', allow: 'GET, HEAD' }, {
  path: '/logs/stream',
  allow: 'GET, HEAD'
}, { path: '/sign-in-links', allow: 'POST' }]
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const READS = ROUTES.filter(({ allow }) => allow.includes('GET'))
const WRITES = ROUTES.flatMap(({ path, allow }) =>
  allow.split(', ').filter((method) => /POST|PUT/.test(method)).map((method) => ({ method, path }))
)

const CASES: Case[] = [
  // methods
  ...ROUTES.flatMap(({ path, allow }) =>
    METHODS.filter((method) => !allow.includes(method)).map((method) => ({ method, path, status: 405,
      code: 'method-not-allowed', allow })
    )
  ),

  // paths
  ...['', '/', '/nothing', '/status/more', '/STATUS', '/workers/1/2', '/rollouts/1/stop', '/__proto__', '/constructor',
    '/..%2fstatus'].map((path) => ({ method: 'GET', path, status: 404, code: 'not-found' })),
  { method: 'GET', path: '/workers/99', status: 404, code: 'not-found', detail: /worker 99/ },
  { method: 'POST', path: '/workers/99/restart', status: 404, code: 'not-found', detail: /worker 99/ },
  { method: 'POST', path: '/workers/99/kill', status: 404, code: 'not-found', detail: /worker 99/ },
  { method: 'GET', path: '/diagnostics/99', status: 404, code: 'not-found' },
  { method: 'DELETE', path: '/diagnostics/99', status: 404, code: 'not-found' },
  { method: 'GET', path: '/diagnostics/99/file', status: 404, code: 'not-found' },
  { method: 'GET', path: '/rollouts/99', status: 404, code: 'not-found' },
  { method: 'GET', path: '/events/99999', status: 404, code: 'not-found' },
  { method: 'GET', path: '/crashes/99', status: 404, code: 'not-found', detail: /Crash group 99/ },
  { method: 'GET', path: '/crashes/99/occurrences/1', status: 404, code: 'not-found' },
  { method: 'POST', path: '/crashes/99/resolve', status: 404, code: 'not-found', detail: /Crash group 99/ },
  ...['abc', '0', '-1', '1.5', '1e3', '01', '+1', '%31%00', '1'.repeat(16), 'null', '__proto__', '1\'--'].flatMap((
    id
  ) => [{ method: 'GET', path: `/workers/${id}` }, { method: 'POST', path: `/workers/${id}/restart` }, { method: 'GET',
    path: `/rollouts/${id}` }, { method: 'GET', path: `/events/${id}` }, { method: 'GET', path: `/crashes/${id}` }, {
    method: 'GET',
    path: `/crashes/1/occurrences/${id}`
  }, { method: 'POST', path: `/crashes/${id}/mute` }]).map((call) => ({ ...call, status: 400, code: 'invalid-id',
    detail: /^id: expected a positive integer, received "/ })
  ),
  ...['abc', '1', 'r0', 'r01', 'r-1', 'R1', 'r1.5', `r${'1'.repeat(12)}`, '__proto__', '..%2Fr1', 'r1%00'].map((
    id
  ) => ({ method: 'GET', path: `/releases/${id}`, status: 400, code: 'invalid-id',
    detail: /^release: expected an id such as r12, received "/ })
  ),
  { method: 'GET', path: '/releases/r99', status: 404, code: 'not-found', detail: /Release r99/ },
  { method: 'GET', path: '/workers/%ZZ', status: 400, code: 'bad-request' },

  // representations
  ...READS.filter(({ path }) => !path.includes('stream')).map(({ path }) => ({ method: 'GET', path,
    headers: { Accept: 'image/png' }, status: 406, code: 'not-acceptable', detail: /application\/json/ })
  ),
  { method: 'GET', path: '/events/stream', headers: { Accept: 'application/json' }, status: 406, code: 'not-acceptable',
    detail: /text\/event-stream/ },
  { method: 'GET', path: '/status', headers: { Accept: 'text/csv' }, status: 406, code: 'not-acceptable' },

  // bodies
  ...WRITES.flatMap((
    call
  ) => [{ ...call, body: '{"kind":', headers: JSON_TYPE, status: 400, code: 'invalid-json' }, { ...call,
    body: '{"kind":"restart"}trailing', headers: JSON_TYPE, status: 400, code: 'invalid-json' }, { ...call,
    body: 'kind=restart', headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, status: 415,
    code: 'unsupported-media-type', detail: /expected application\/json/ }, { ...call, body: '{}',
    headers: { 'Content-Type': 'text/plain' }, status: 415, code: 'unsupported-media-type' }, { ...call, body: '{}',
    status: 415, code: 'unsupported-media-type' }, { ...call, body: '{}',
    headers: { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, status: 415, code: 'unsupported-media-type' }, { ...call,
    body: '{}', headers: { 'Content-Type': 'application/json; charset=latin1' }, status: 415,
    code: 'unsupported-media-type' }, { ...call, body: JSON.stringify({ note: 'x'.repeat(65 * 1024) }),
    headers: JSON_TYPE, status: 413, code: 'payload-too-large' },
    ...['[]', 'null', '3', '"text"', 'true'].map((body) => ({ ...call, body, headers: JSON_TYPE, status: 422,
      code: 'invalid-body', detail: /^body: expected a JSON object, received / })
    ), { ...call, body: '{"surprise":1}', headers: JSON_TYPE, status: 422, code: 'invalid-body',
    detail: /surprise: expected / }, { ...call, body: `{"surprise":${'['.repeat(5000)}${']'.repeat(5000)}}`,
    headers: JSON_TYPE, status: 422, code: 'invalid-body', detail: /surprise: expected / }, { ...call,
    body: '{"__proto__":{"x":1}}', headers: JSON_TYPE, status: 422, code: 'invalid-body', detail: /__proto__/ }]
  ),
  ...['{}', '{"workers":0}', '{"workers":257}', '{"workers":-1}', '{"workers":1.5}', '{"workers":"2"}',
    '{"workers":null}', '{"workers":[2]}', '{"workers":1e999}', '{"workers":true}'].map((body) => ({ method: 'PUT',
      path: '/scale', body, headers: JSON_TYPE, status: 422, code: 'invalid-body',
      detail: /^workers: expected an integer from 1 to 256, received / })
    ),
  { method: 'PUT', path: '/scale', status: 422, code: 'invalid-body', detail: /workers: .* received nothing$/ },
  { method: 'PUT', path: '/scale', body: '{"worker":2}', headers: JSON_TYPE, status: 422, code: 'invalid-body',
    detail: /did you mean "workers"\?/ },
  ...['{}', '[]', 'null', '3', '"text"'].map((body) => ({ method: 'PATCH', path: '/config', body,
    headers: { ...JSON_TYPE, 'If-Match': '*' }, status: 422, code: 'invalid-body',
    detail: /^body: expected a JSON object of options by their names, such as/ })
  ),
  { method: 'PATCH', path: '/config', body: '{"drain.deadlineMs":1}', headers: JSON_TYPE, status: 428,
    code: 'precondition-required', detail: /^If-Match: expected the ETag of a GET, received nothing$/ },
  { method: 'PATCH', path: '/config', body: '{"drain.deadlineMs":1}', headers: { ...JSON_TYPE, 'If-Match': '"old"' },
    status: 412, code: 'precondition-failed', detail: /^If-Match: expected "[^"]+", received "\\"old\\""/ },
  { method: 'PUT', path: '/scale', body: '{"workers":3}', headers: { ...JSON_TYPE, 'If-Match': '"7"' }, status: 412,
    code: 'precondition-failed', detail: /^It is set to 2 workers now\. If-Match: expected "2", received/ },
  ...Object.entries({ '{"surprise":1}': ['unknown-option', /^unknown option "surprise"/],
    '{"constructor":1}': ['unknown-option', /constructor/],
    '{"drain":{"deadlineMs":1}}': ['unknown-option', /^drain: expected the name of one option/],
    '{"drain.deadlineMs":-1}': ['invalid-config',
      /^drain\.deadlineMs: expected an integer from 0 to 2147483647, received -1$/],
    '{"drain.deadlineMs":1e999}': ['invalid-config', /^drain\.deadlineMs: expected/],
    '{"rollout.surge":"101%"}': ['invalid-config', /^rollout\.surge: expected/],
    '{"env":{"PASSWORD":"hunter2"}}': ['not-possible', /^env can only be set at a start$/],
    '{"drain.deadlineMs":1,"dispatch":"sticky"}': ['not-possible', /^dispatch can only be set at a start$/] }).map((
      [body, [code, detail]]
    ) => ({ method: 'PATCH', path: '/config', body, headers: { ...JSON_TYPE, 'If-Match': '*' },
      status: STATUS_OF[String(code)], code: String(code), detail: detail as RegExp })
    ),
  ...['{}', '{"kind":"canary"}', '{"kind":"Restart"}', '{"kind":""}', '{"kind":1}', '{"kind":["restart"]}',
    '{"kind":"constructor"}'].map((body) => ({ method: 'POST', path: '/rollouts', body, headers: JSON_TYPE, status: 422,
      code: 'invalid-body', detail: /^kind: expected "restart", "deploy" or "rollback", received / })
    ),
  ...Object.entries({
    '{"kind":"deploy","release":"r1"}': /^release: expected nothing with kind "deploy", received "r1"$/,
    '{"kind":"rollback","path":"/srv"}': /^path: expected nothing with kind "rollback"/,
    '{"kind":"restart","strategy":{}}': /^strategy: expected nothing with kind "restart"/,
    '{"kind":"rollback","release":"../r1"}': /^release: expected a release such as r12/,
    '{"kind":"deploy","strategy":{"surge":0}}':
      /^strategy.surge: expected an integer from 1 to 256 or a share such as "25%", received 0$/,
    '{"kind":"deploy","strategy":{"surge":"101%"}}': /^strategy.surge: expected an integer/,
    '{"kind":"deploy","strategy":{"canary":{"workers":-1}}}':
      /^strategy.canary.workers: expected an integer from 0 to 256, received -1$/,
    '{"kind":"deploy","strategy":{"limits":{"errorRate":2}}}':
      /^strategy.limits.errorRate: expected a number from 0 to 1, received 2$/,
    '{"kind":"deploy","strategy":{"limit":{}}}':
      /^strategy.limit: expected one of .*\(did you mean "limits"\?\), received/,
    '{"kind":"deploy","strategy":{"guardMs":5}}': /^strategy.guardMs: expected one of /,
    '{"kind":"deploy","strategy":[]}': /^strategy: expected an object, received \[\]$/
  }).map(([body, detail]) => ({ method: 'POST', path: '/rollouts', body, headers: JSON_TYPE, status: 422,
    code: 'invalid-body', detail })
  ),
  ...['{}', '{"kind":"restart"}'].map((body) => ({ method: 'POST', path: '/rollouts/preview', body, headers: JSON_TYPE,
    status: 422, code: 'invalid-body', detail: /^kind: expected "deploy" or "rollback"/ })
  ),
  ...['pause', 'resume', 'abort', 'promote', 'retry'].map((action) => ({ method: 'POST', path: `/rollouts/99/${action}`,
    status: 404, code: 'not-found', detail: /Rollout 99/ })
  ),
  ...['{"kind":"deploy","note":3}', '{"kind":"deploy","note":null}',
    JSON.stringify({ kind: 'deploy', note: 'x'.repeat(501) })].map((body) => ({ method: 'POST', path: '/rollouts', body,
      headers: JSON_TYPE, status: 422, code: 'invalid-body',
      detail: /^note: expected a text of at most 500 characters, received / })
    ),
  ...['{}', '{"kind":"core"}', '{"kind":1}'].map((body) => ({ method: 'POST', path: '/workers/1/diagnostics', body,
    headers: JSON_TYPE, status: 422, code: 'invalid-body', detail: /^kind: expected "cpu-profile"/ })
  ),
  ...[0, 99, 60_001, 1.5, '10s', null].map((durationMs) => ({ method: 'POST', path: '/workers/1/diagnostics',
    body: JSON.stringify({ kind: 'cpu-profile', durationMs }), headers: JSON_TYPE, status: 422, code: 'invalid-body',
    detail: /^durationMs: expected an integer from 100 to 60000/ })
  ),
  ...['{"kind":"deploy","path":3}', '{"kind":"deploy","path":""}',
    JSON.stringify({ kind: 'deploy', path: 'x'.repeat(4097) })].map((body) => ({ method: 'POST', path: '/rollouts',
      body, headers: JSON_TYPE, status: 422, code: 'invalid-body',
      detail: /^path: expected a folder below releases.root/ })
    ),

  // queries
  ...[...READS, ...WRITES.map(({ path }) => ({ path }))].map(({ path }) => ({
    method: WRITES.find((write) => write.path === path && !READS.some((read) => read.path === path))?.method ?? 'GET',
    path: `${path}?surprise=1`,
    status: 400,
    code: 'invalid-query',
    detail: /^surprise: expected /
  })),
  ...['limit=0', 'limit=1001', 'limit=-1', 'limit=abc', 'limit=1.5', 'limit=', 'limit=1e2', 'limit=%201',
    'since=garbage', 'since=', 'since=2026-13-01', 'since=2026-01-01T25:00:00Z', 'since=yesterday',
    'since=1767225600000', 'until=5', 'until=5y', 'slot=0', 'slot=x', 'slot=-1', 'worker=abc', 'worker=1;2',
    'rollout=0', 'type=', 'type=Worker', 'type=worker.exited,', 'type=*', 'type=worker.**', 'type=x\'--', 'cause=',
    'cause=Out%20of%20memory', 'release=', 'release=%2Fetc', 'q=', `q=${'x'.repeat(101)}`, 'cursor=', 'cursor=a%20b',
    'cursor=AAAA', 'cursor=123', 'limit=1&limit=2', 'type=a&type=b', 'q=a&q=a', '__proto__=1', 'constructor=1', '%00=1',
    '=1'].map((query) => ({ method: 'GET', path: `/events?${query}`, status: 400, code: 'invalid-query',
      detail: /^[^:]*: expected .*, received / })
    ),
  ...[['type=worker.exitd', 'worker.exited'], ['type=problems,wroker.*', 'worker.*'], ['type=worker', 'worker.*'], [
    'type=worker.exited:kiled',
    'worker.exited:killed'
  ], ['cause=out-of-memroy', 'out-of-memory']].flatMap(([query, meant]) =>
    ['/events', '/events/counts', '/events/histogram'].map((path) => ({ method: 'GET', path: `${path}?${query}`,
      status: 400, code: 'invalid-query',
      detail: new RegExp(
        `^(type|cause): expected .* \\(did you mean "${meant.replace('*', '\\*')}"\\?\\), received "${
          query.split('=')[1].replace('*', '\\*')
        }"$`
      ) })
    )
  ),
  ...['from=', 'from=x', 'from=1o', 'from=1o1-', 'from=0x1'].map((query) => ({ method: 'GET',
    path: `/logs/stream?${query}`, status: 400, code: 'invalid-query',
    detail: /^from: expected the id of an event of this stream, .*, received / })
  ),
  { method: 'GET', path: '/logs/stream?from=1o1&lines=3', status: 400, code: 'invalid-query',
    detail: /^from: expected without lines/ },
  { method: 'GET', path: '/logs/stream', headers: { 'Last-Event-ID': 'x' }, status: 400, code: 'invalid-query',
    detail: /^Last-Event-ID: expected / },
  { method: 'GET', path: '/events?limt=5', status: 400, code: 'invalid-query',
    detail: /^limt: .*did you mean "limit"\?/ },
  { method: 'GET', path: '/events?limit=1001', status: 400, code: 'invalid-query',
    detail: /^limit: expected an integer from 1 to 1000, received "1001"$/ },
  { method: 'GET', path: '/events?limit=0', headers: { Accept: 'text/csv' }, status: 400, code: 'invalid-query' },
  ...['limit=0', 'limit=101', 'cursor=x', 'limit=5&limit=5'].map((query) => ({ method: 'GET',
    path: `/rollouts?${query}`, status: 400, code: 'invalid-query' })
  ),
  ...['wait=', 'wait=30', 'wait=-1s', 'wait=6m', 'wait=300001ms', 'wait=1h', 'wait=30s&wait=30s', 'wait=NaN',
    'wait=1e3s', 'wait=5%20s'].map((query) => ({ method: 'GET', path: `/rollouts/1?${query}`, status: 400,
      code: 'invalid-query', detail: /^wait: expected / })
    ),
  ...['step=', 'step=5s', 'step=1S', 'step=60', 'step=1s&step=10s', 'since=garbage', 'since=-1', 'until=5',
    'since=1m&until=2m', 'since=0s', 'slot=1', 'slots=', 'slots=0', 'columns=', 'columns=rssBytes,', 'columns=rss',
    'columns=__proto__', 'columns=constructor'].map((query) => ({ method: 'GET', path: `/vitals?${query}`, status: 400,
      code: 'invalid-query', detail: /^(step|since|until|slots?|columns): expected .*, received / })
    ),
  ...['slot=-1', 'slot=257', 'slot=x', 'slot=', 'slot=1&slot=2', 'stream=', 'stream=stdin', 'stream=..%2fstdout',
    'stream=__proto__', 'lines=1001', 'lines=-1', 'lines=1.5', 'lines=x', 'line=5'].flatMap((query) =>
      ['/logs', '/logs/stream'].map((path) => ({ method: 'GET', path: `${path}?${query}`, status: 400,
        code: 'invalid-query', detail: /^(slot|stream|lines?): expected / })
      )
    ),
  { method: 'GET', path: '/logs?lines=0', status: 400, code: 'invalid-query',
    detail: /^lines: expected an integer from 1 to 1000, received "0"$/ },
  ...['/logs?slot=9', '/logs/stream?slot=9', '/logs/stream?slot=9&lines=5'].map((path) => ({ method: 'GET', path,
    status: 404, code: 'not-found', detail: /^Slot 9 has no logs$/ })
  ),
  ...['state=closed', 'state=', 'q=', `q=${'x'.repeat(101)}`, 'release=%2Fetc', 'since=garbage', 'limit=0', 'limit=101',
    'cursor=x', 'cursor=AAAA', 'q=a&q=b'].map((query) => ({ method: 'GET', path: `/crashes?${query}`, status: 400,
      code: 'invalid-query', detail: /^[^:]*: expected .*, received / })
    ),
  ...['abc', '-1', '1.5', '1'.repeat(16)].map((id) => ({ method: 'GET', path: '/events/stream',
    headers: { 'Last-Event-ID': id }, status: 400, code: 'invalid-id' })
  )
]

test('answers whatever is wrong with a call by its stable code, and changes nothing', async (t) => {
  const admin = await startAdmin(t)
  const before = JSON.stringify(admin.deck.snapshot())
  for (const one of CASES) {
    const title = `${one.method} ${one.path} ${(one.body ?? '').slice(0, 60)} ${JSON.stringify(one.headers ?? {})}`
    const answer = await call(admin, one)
    assert.equal(answer.status, one.status, `${title}: ${answer.text.slice(0, 300)}`)
    assertProblem(answer, title)
    const problem = answer.json()
    assert.equal(problem.code, one.code, title)
    if (one.detail) assert.match(problem.detail, one.detail, title)
    if (one.allow) assert.equal(answer.headers.allow, one.allow, title)
  }
  assert.deepEqual(admin.deck.dispatched, [])
  assert.equal(JSON.stringify(admin.deck.snapshot()), before)
  assert.deepEqual(admin.logged, [])
})

test('lists every flaw of a body with its path, what was expected and what was received', async (t) => {
  const admin = await startAdmin(t)
  const { body } = await admin.api('post', '/api/v1/rollouts').send({ kind: 'canary', note: 7, notes: 'x' }).expect(422)
  assert.deepEqual(body.errors, [{ path: 'kind', expected: '"restart", "deploy" or "rollback"', received: '"canary"' },
    { path: 'note', expected: 'a text of at most 500 characters', received: '7' }, { path: 'notes',
    expected: 'one of kind, release, path, note, strategy (did you mean "note"?)', received: '"x"' }])
})

test('tells strangers nothing but to sign in, whatever they ask for', async (t) => {
  // There are more cases than a stranger may ask for in a minute.
  const admin = await startAdmin(t, { limits: { strangerRequests: 6000 } })
  for (const { method, path, body, headers = {} } of [...CASES,
    ...ROUTES.flatMap(({ path, allow }) =>
      allow.split(', ').map((method) => ({ method, path, body: undefined, headers: {} }))
    )])
  {
    const answer = await rawRequest(admin, { method, path: API + path, headers: withLength(headers, body), body })
    assert.equal(answer.status, 401, `${method} ${path}`)
    assert.equal(answer.headers['www-authenticate'], 'Bearer realm="clusterdeck"')
    if (method !== 'HEAD') assertProblem(answer, path)
  }
  for (const path of ['/metrics', '/nothing', '/Healthz', '/healthz/../api/v1/status', '/sign-in/x', '/assets',
    '/readyz%2f..', '/actions/restart', '/history'])
  {
    assert.equal((await rawRequest(admin, { path })).status, 401, path)
    assert.equal((await rawRequest(admin, { path, headers: { Accept: 'text/html' } })).status, 303, path)
  }
  assert.deepEqual(admin.deck.dispatched, [])
})

test('does not let what was sent too long get in the way of the next call', async (t) => {
  const admin = await startAdmin(t)
  const tooLong = { method: 'PUT', path: '/scale', body: 'x'.repeat(3 * 1024 * 1024), headers: JSON_TYPE }
  assert.equal((await call(admin, { ...tooLong, status: 413, code: '' })).status, 413)
  assert.equal(
    (await call(admin, { ...tooLong, headers: { ...JSON_TYPE, 'Transfer-Encoding': 'chunked' }, status: 413,
      code: '' })).status,
    413
  )
  await admin.api('put', '/api/v1/scale').send({ workers: 2 }).expect(200)
})

function call (admin: Admin, { method, path, body, headers = {} }: Case) {
  return rawRequest(admin, { method, path: API + path,
    headers: { Authorization: `Bearer ${TOKEN}`, ...withLength(headers, body) }, body })
}

function withLength (headers: Record<string, string>, body: string | undefined) {
  if (body === undefined || headers['Transfer-Encoding']) return headers
  return { ...headers, 'Content-Length': String(Buffer.byteLength(body)) }
}

function assertProblem (answer: Answer, title: string) {
  assert.equal(answer.headers['content-type'], 'application/problem+json; charset=utf-8', title)
  const problem = answer.json()
  assert.equal(problem.type, `urn:clusterdeck:problem:${problem.code}`, title)
  assert.equal(problem.status, answer.status, title)
  assert.ok(problem.title && problem.detail, title)
  assert.doesNotMatch(answer.text, /\bat .*\(|node_modules|file:\/\/|\.js:\d/, title)
}
