import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PROBLEMS, type ErrorCode } from '../../server/errors.ts'
import { rawRequest, startAdmin, TOKEN, type Admin, type Answer } from '../support/admin.ts'
import { OPERATIONS } from '../support/operations.ts'

/** Everything that can be wrong with a call, over every route. Nothing of it changes anything or shows a stack. */
type Case = { method: string, path: string, body?: string, headers?: Record<string, string>, code: ErrorCode,
  detail?: RegExp, allow?: string }

const API = '/api/v1'
const JSON_TYPE = { 'Content-Type': 'application/json' }
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const EXAMPLES: Record<string, string> = { release: 'r1', name: 'nightly', alert: 'file-1' }

/** Every route, with the methods that it knows; another member of the fleet checks by itself. */
const OWN = [...OPERATIONS.values()].filter(({ path }) => path.startsWith(API) && !path.includes('*'))
const ROUTES = Object.entries(Object.groupBy(OWN, ({ path }) => path)).map(([path, all = []]) => ({ all,
  path: path.slice(API.length).replace(/:(\w+)/g, (_, name) => EXAMPLES[name] ?? '1'),
  methods: all.flatMap(({ method }) => method === 'GET' ? ['GET', 'HEAD'] : [method]) })
)
const READS = ROUTES.filter(({ methods }) => methods.includes('GET')).map(({ path }) => path)
const WRITES = ROUTES.flatMap(({ path, all }) =>
  all.filter(({ method, operation }) => /POST|PUT/.test(method) && !operation.takes).map(({ method }) => ({ method,
    path })
  )
)

/** `bodies`: JSON, as a text where it would be none */
function bodies (call: string, code: ErrorCode, detail: RegExp, bodies: unknown[],
  headers: Record<string, string> = {}): Case[]
{
  const [method, path] = call.split(' ')
  return bodies.map((body) => ({ method, path, headers: { ...JSON_TYPE, ...headers }, code, detail,
    body: typeof body === 'string' ? body : JSON.stringify(body) })
  )
}

function reads (code: ErrorCode, detail: RegExp | undefined, paths: string[],
  headers?: Record<string, string>): Case[]
{
  return paths.map((path) => ({ method: 'GET', path, code, detail, headers }))
}

function queries (path: string, detail: RegExp, texts: string[]) {
  return reads('invalid-query', detail, texts.map((query) => `${path}?${query}`))
}

const escaped = (text: string) => text.replace('*', '\\*')
const NO_ID = /^id: expected a positive integer, received "/
const ANYTHING = /^[^:]*: expected .*, received /
const ANY_MATCH = { 'If-Match': '*' }

const CASES: Case[] = [
  // methods
  ...ROUTES.flatMap(({ path, methods }) =>
    METHODS.filter((method) => !methods.includes(method)).map((method): Case => ({ method, path,
      code: 'method-not-allowed', allow: methods.join(', ') })
    )
  ),

  // paths
  ...reads('not-found', undefined, ['', '/', '/nothing', '/status/more', '/STATUS', '/workers/1/2', '/rollouts/1/stop',
    '/__proto__', '/constructor', '/..%2fstatus', '/events/99999']),
  ...['abc', '0', '-1', '1.5', '1e3', '01', '+1', '%31%00', '1'.repeat(16), 'null', '__proto__', '1\'--'].flatMap((
    id
  ): Case[] => [
    ...reads('invalid-id', NO_ID,
      ['/workers', '/rollouts', '/events', '/crashes', '/crashes/1/occurrences'].map((path) => `${path}/${id}`)),
    ...bodies(`POST /workers/${id}/restart`, 'invalid-id', NO_ID, [{}]),
    ...bodies(`POST /crashes/${id}/mute`, 'invalid-id', NO_ID, [{}])
  ]),
  ...reads('invalid-id', /^release: expected an id such as r12, received "/,
    ['abc', '1', 'r0', 'r01', 'r-1', 'R1', 'r1.5', `r${'1'.repeat(12)}`, '__proto__', '..%2Fr1', 'r1%00'].map((id) =>
      `/releases/${id}`
    )),
  ...reads('bad-request', undefined, ['/workers/%ZZ']),

  // representations
  ...reads('not-acceptable', /application\/json/, READS.filter((path) => !/\/(stream|changes)$/.test(path)), {
    Accept: 'image/png'
  }),
  ...reads('not-acceptable', /text\/event-stream/, ['/events/stream'], { Accept: 'application/json' }),
  ...reads('not-acceptable', undefined, ['/status'], { Accept: 'text/csv' }),
  ...reads('not-acceptable', /of several hosts are JSON alone$/, ['/events?member=*', '/logs?member=*'], {
    Accept: 'application/x-ndjson'
  }),

  // bodies
  ...WRITES.flatMap((
    { method, path }
  ) => [
    ...([['invalid-json', '{"kind":', {}], ['invalid-json', '{"kind":"restart"}trailing', {}], [
      'unsupported-media-type',
      'kind=restart',
      { 'Content-Type': 'application/x-www-form-urlencoded' }
    ], ['unsupported-media-type', '{}', { 'Content-Type': 'text/plain' }], ['unsupported-media-type', '{}', {
      'Content-Type': ''
    }], ['unsupported-media-type', '{}', { 'Content-Encoding': 'gzip' }], ['unsupported-media-type', '{}', {
      'Content-Type': 'application/json; charset=latin1'
    }], ['payload-too-large', JSON.stringify({ note: 'x'.repeat(65 * 1024) }), {}]] as [ErrorCode, string,
      Record<string, string>][]).map(([code, body, headers]): Case => ({ method, path, body, code,
        headers: { ...JSON_TYPE, ...headers } })
      ),
    ...bodies(`${method} ${path}`, 'invalid-body', /^body: expected a JSON object, received /, [[], null, 3, '"text"',
      true]),
    ...bodies(`${method} ${path}`, 'invalid-body', /surprise: expected /, [{ surprise: 1 },
      `{"surprise":${'['.repeat(5000)}${']'.repeat(5000)}}`]),
    ...bodies(`${method} ${path}`, 'invalid-body', /__proto__/, ['{"__proto__":{"x":1}}'])
  ]),
  ...bodies('PUT /scale', 'invalid-body', /^workers: expected an integer from 1 to 256, received /, ['', '{}',
    '{"workers":1e999}', ...[0, 257, -1, 1.5, '2', null, [2], true].map((workers) => ({ workers }))]),
  ...bodies('PUT /scale', 'invalid-body', /did you mean "workers"\?/, [{ worker: 2 }]),
  ...bodies('PATCH /config', 'invalid-body', /^body: expected a JSON object of options by their names, such as/, ['{}',
    [], null, 3, '"text"'], ANY_MATCH),
  ...bodies('PATCH /config', 'precondition-required', /^If-Match: expected the ETag of a GET, received nothing$/, [{
    'drain.deadlineMs': 1
  }]),
  ...bodies('PATCH /config', 'precondition-failed', /^If-Match: expected "[^"]+", received "\\"old\\""/, [{
    'drain.deadlineMs': 1
  }], { 'If-Match': '"old"' }),
  ...['W/"old"', 'nonsense', '""'].flatMap((tag) =>
    bodies('PATCH /config', 'precondition-failed', /^If-Match: expected "[^"]+", received /, [{
      'drain.deadlineMs': 1
    }], { 'If-Match': tag })
  ),
  ...bodies('PUT /scale', 'precondition-failed', /^It is set to 2 workers now\. If-Match: expected "2", received/, [{
    workers: 3
  }], { 'If-Match': '"7"' }),
  ...bodies('PATCH /config', 'unknown-option', /^unknown option "(surprise|constructor)"/, [{ surprise: 1 }, {
    constructor: 1
  }], ANY_MATCH),
  ...bodies('PATCH /config', 'unknown-option', /^drain: expected the name of one option/, [{
    drain: { deadlineMs: 1 }
  }], ANY_MATCH),
  ...bodies('PATCH /config', 'invalid-config',
    /^(drain\.deadlineMs: expected an integer from 0 to 2147483647|rollout\.surge: expected)/, [{
    'drain.deadlineMs': -1
  }, '{"drain.deadlineMs":1e999}', { 'rollout.surge': '101%' }], ANY_MATCH),
  ...bodies('PATCH /config', 'not-possible', /^(env|dispatch) can only be set at a start$/, [{
    env: { PASSWORD: 'hunter2' }
  }, { 'drain.deadlineMs': 1, dispatch: 'sticky' }], ANY_MATCH),
  ...bodies('POST /rollouts', 'invalid-body', /^kind: expected "restart", "deploy" or "rollback", received /, ['{}',
    ...['canary', 'Restart', '', 1, ['restart'], 'constructor'].map((kind) => ({ kind }))]),
  ...([[/^release: expected nothing with kind "deploy", received "r1"$/, { release: 'r1' }], [
    /^strategy.surge: expected an integer from 1 to 256 or a share such as "25%", received (0|"101%")$/,
    { strategy: { surge: 0 } },
    { strategy: { surge: '101%' } }
  ], [/^strategy.canary.workers: expected an integer from 0 to 256, received -1$/, {
    strategy: { canary: { workers: -1 } }
  }], [/^strategy.limits.errorRate: expected a number from 0 to 1, received 2$/, {
    strategy: { limits: { errorRate: 2 } }
  }], [/^strategy.limit: expected one of .*\(did you mean "limits"\?\), received/, { strategy: { limit: {} } }], [
    /^strategy.guardMs: expected one of /,
    { strategy: { guardMs: 5 } }
  ], [/^strategy: expected an object, received \[\]$/, { strategy: [] }], [
    /^note: expected a text of at most 500 characters, received /,
    { note: 3 },
    { note: null },
    { note: 'x'.repeat(501) }
  ], [/^path: expected a folder below releases.root/, { path: 3 }, { path: '' }, { path: 'x'.repeat(4097) }]] as [
    RegExp,
    ...object[]
  ][]).flatMap(([detail, ...all]) =>
    bodies('POST /rollouts', 'invalid-body', detail, all.map((more) => ({ kind: 'deploy', ...more })))
  ),
  ...bodies('POST /rollouts', 'invalid-body',
    /^(path|strategy|release): expected (nothing with kind "|a release such as r12)/, [{ kind: 'rollback',
    path: '/srv' }, { kind: 'restart', strategy: {} }, { kind: 'rollback', release: '../r1' }]),
  ...bodies('POST /rollouts/preview', 'invalid-body', /^kind: expected "deploy" or "rollback"/, ['{}', {
    kind: 'restart'
  }]),
  ...bodies('POST /workers/1/diagnostics', 'invalid-body', /^kind: expected "cpu-profile"/, ['{}', { kind: 'core' }, {
    kind: 1
  }]),
  ...bodies('POST /workers/1/diagnostics', 'invalid-body', /^durationMs: expected an integer from 100 to 60000/,
    [0, 99, 60_001, 1.5, '10s', null].map((durationMs) => ({ kind: 'cpu-profile', durationMs }))),
  ...bodies('POST /messages', 'invalid-body', /^type: expected 1 to 100 characters .* shutdown, NODE_…, received /, [
    '{}',
    ...[7, '', 'x'.repeat(101), 'a\nb', 'a\u007f', 'a\u2028b', 'shutdown', 'NODE_CLUSTER'].map((type) => ({ type }))
  ]),
  ...bodies('POST /messages', 'invalid-body', /^from: expected one of type, data/, [{ type: 'a', from: 'master' }]),
  ...bodies('POST /jobs/runs', 'invalid-body', /^(command|command\.0|cwd): expected (a list|a text without NUL|one of)/,
    ['{}', { command: 'id' }, { command: [] }, { command: [''] }, { command: ['a\0b'] }, { command: ['id'],
      cwd: '/' }]),
  ...bodies('POST /tokens', 'invalid-body', /^(name|role|ttl): expected/, ['{}', { name: 'system', role: 'viewer' }, {
    name: 'a b',
    role: 'viewer'
  }, { name: 'ada', role: 'root' }, { name: 'ada', role: 'viewer', ttl: '0d' }, { name: 'ada' }]),
  ...bodies('POST /sign-in-links', 'invalid-body', /^(ttl|from): expected/, [{ ttl: '0s' }, { ttl: '31d' }, {
    ttl: 'soon'
  }, { from: '' }, { from: 'a\nb' }, { from: 'x'.repeat(201) }]),
  ...bodies('POST /alerts/file-1/test', 'invalid-body', /^url: expected/, [{ url: 'http://127.0.0.1:1' }]),

  // queries
  ...[...READS.map((path) => ({ method: 'GET', path })), ...WRITES].map(({ method, path }): Case => ({ method,
    path: `${path}?surprise=1`, code: 'invalid-query', detail: /surprise: expected / })
  ),
  ...queries('/events', ANYTHING, ['limit=0', 'limit=1001', 'limit=-1', 'limit=abc', 'limit=1.5', 'limit=', 'limit=1e2',
    'limit=%201', 'since=garbage', 'since=', 'since=2026-13-01', 'since=2026-01-01T25:00:00Z', 'since=yesterday',
    'since=1767225600000', 'until=5', 'until=5y', 'slot=0', 'slot=x', 'slot=-1', 'worker=abc', 'worker=1;2',
    'rollout=0', 'type=', 'type=Worker', 'type=worker.exited,', 'type=*', 'type=worker.**', 'type=x\'--', 'cause=',
    'cause=Out%20of%20memory', 'release=', 'release=%2Fetc', 'q=', `q=${'x'.repeat(101)}`, 'cursor=', 'cursor=a%20b',
    'cursor=AAAA', 'cursor=123', 'limit=1&limit=2', 'type=a&type=b', 'q=a&q=a', '__proto__=1', 'constructor=1', '%00=1',
    '=1']),
  ...[['type=worker.exitd', 'worker.exited'], ['type=problems,wroker.*', 'worker.*'], ['type=worker', 'worker.*'], [
    'type=worker.exited:kiled',
    'worker.exited:killed'
  ], ['cause=out-of-memroy', 'out-of-memory']].flatMap(([query, meant]) =>
    ['/events', '/events/counts', '/events/histogram'].flatMap((path) =>
      queries(path,
        new RegExp(
          `^(type|cause): expected .* \\(did you mean "${escaped(meant)}"\\?\\), received "${
            escaped(query.split('=')[1])
          }"$`
        ), [query])
    )
  ),
  ...queries('/logs/stream', /^from: expected the id of an event of this stream, .*, received /, ['from=', 'from=x',
    'from=1o', 'from=1o1-', 'from=0x1']),
  ...queries('/logs/stream', /^from: expected without lines/, ['from=1o1&lines=3']),
  ...reads('invalid-query', /^Last-Event-ID: expected /, ['/logs/stream'], { 'Last-Event-ID': 'x' }),
  ...queries('/events', /^limt: .*did you mean "limit"\?/, ['limt=5']),
  ...queries('/events', /^limit: expected an integer from 1 to 1000, received "1001"$/, ['limit=1001']),
  ...reads('invalid-query', undefined, ['/events?limit=0'], { Accept: 'text/csv' }),
  ...queries('/rollouts', ANYTHING, ['limit=0', 'limit=101', 'cursor=x', 'limit=5&limit=5']),
  ...queries('/rollouts/1', /^wait: expected /, ['wait=', 'wait=30', 'wait=-1s', 'wait=6m', 'wait=300001ms', 'wait=1h',
    'wait=30s&wait=30s', 'wait=NaN', 'wait=1e3s', 'wait=5%20s']),
  ...queries('/vitals', /^(step|since|until|slots?|columns): expected .*, received /, ['step=', 'step=5s', 'step=1S',
    'step=60', 'step=1s&step=10s', 'since=garbage', 'since=-1', 'until=5', 'since=1m&until=2m', 'since=0s', 'slot=1',
    'slots=', 'slots=0', 'columns=', 'columns=rssBytes,', 'columns=rss', 'columns=__proto__', 'columns=constructor']),
  ...['/logs', '/logs/stream'].flatMap((path) =>
    queries(path, /^(slot|stream|lines?): expected /, ['slot=-1', 'slot=257', 'slot=x', 'slot=', 'slot=1&slot=2',
      'stream=', 'stream=stdin', 'stream=..%2fstdout', 'stream=__proto__', 'lines=1001', 'lines=-1', 'lines=1.5',
      'lines=x', 'line=5'])
  ),
  ...queries('/logs', /^lines: expected an integer from 1 to 1000, received "0"$/, ['lines=0']),
  ...reads('not-found', /^Slot 9 has no logs$/, ['/logs?slot=9', '/logs/stream?slot=9', '/logs/stream?slot=9&lines=5']),
  ...queries('/crashes', ANYTHING, ['state=closed', 'state=', 'q=', `q=${'x'.repeat(101)}`, 'release=%2Fetc',
    'since=garbage', 'limit=0', 'limit=101', 'cursor=x', 'cursor=AAAA', 'q=a&q=b', 'sort=name']),
  ...['abc', '-1', '1.5', '1'.repeat(16)].flatMap((id) =>
    reads('invalid-id', undefined, ['/events/stream'], { 'Last-Event-ID': id })
  )
]

test('answers whatever is wrong with a call by its stable code, and changes nothing', async (t) => {
  const admin = await startAdmin(t, { limits: { requests: 1e6 } })
  const before = JSON.stringify(admin.deck.snapshot())
  for (const one of CASES) {
    const title = `${one.method} ${one.path} ${(one.body ?? '').slice(0, 60)} ${JSON.stringify(one.headers ?? {})}`
    const answer = await call(admin, one)
    assert.equal(answer.status, PROBLEMS[one.code].status, `${title}: ${answer.text.slice(0, 300)}`)
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
  const admin = await startAdmin(t, { limits: { strangerRequests: 1e6 } })
  for (const { method, path, body, headers = {} } of [...CASES,
    ...ROUTES.flatMap(({ path, methods }) =>
      methods.map((method) => ({ method, path, body: undefined, headers: {} }))
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
  for (const headers of [JSON_TYPE, { ...JSON_TYPE, 'Transfer-Encoding': 'chunked' }]) {
    const { status } = await call(admin, { method: 'PUT', path: '/scale', body: 'x'.repeat(3 * 1024 * 1024), headers })
    assert.equal(status, 413)
  }
  await admin.api('put', '/api/v1/scale').send({ workers: 2 }).expect(200)
})

function call (admin: Admin, { method, path, body, headers = {} }: Omit<Case, 'code'>) {
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
