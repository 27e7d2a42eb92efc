import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { PROBLEMS } from '../../server/errors.ts'
import { EVENT_TYPES } from '../../server/events/kinds.ts'
import { createContract } from '../support/api-contract.ts'
import { startReady } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { present } from '../support/present.ts'
import { startReceiver } from '../support/receiver.ts'
import { createRepository } from '../support/repository.ts'
import { identifyProcess } from '../../server/system/process-identity.ts'
import { until } from '../support/until.ts'
import type { AnswerTo } from '../support/answers.ts'

test('every operation answers as the document says, when all goes well and when it does not', async (t) => {
  const { url, statuses } = await startReceiver(t)
  const config = path.join(tempFolder(), 'clusterdeck.config.json')
  const repository = createRepository()
  repository.commit({ 'other.js': '' })
  await writeFile(config,
    JSON.stringify({ releases: { git: repository.folder },
      alerts: [{ kind: 'webhook', url, secret: 'only between the two of us', events: ['master.waiting'] }],
      jobs: { nightly: { cron: '0 3 * * *', command: 'echo done' },
        broken: { cron: '0 4 * * *', command: 'exit 3' } } }))
  const deck = await startReady(t, 'dies-in-many-ways.cjs', { workers: 2,
    flags: ['--config', config, '--drain-idle-grace-ms', '500', '--drain-spread-ms', '0'] })
  const { body: document } = await deck.api('/openapi.json')
  const contract = createContract(document)

  await fetch(`${await deck.appUrl()}/?kind=1`).catch(() => {})
  await deck.untilEvent('crash.group-new')
  const { workers: [{ id: worker }] } = await deck.until({ ready: 2 })

  for (const path of ['/healthz', '/readyz', '/metrics']) await ask('GET', path, undefined, '')
  await ask('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, '')
  for (const path of ['/openapi.json', '/status', '/notices', '/checks', '/config', '/scale', '/workers',
    `/workers/${worker}`, `/workers/${worker}/requests`, '/rollouts', '/releases', '/releases/r1',
    '/releases/r1/compare?from=r1', '/events', '/events/1', '/events/counts', '/events/histogram', '/vitals', '/routes',
    '/logs', '/diagnostics', '/crashes', '/crashes/1']) await ask('GET', path)
  const latest = present((await ask('GET', '/crashes/1')).latest)
  assert.match(String(latest.frames.find(({ source }) => source)?.source?.map(({ text }) => text)), /throw/,
    'the lines of a frame of the app')
  await ask('GET', `/crashes/1/occurrences/${latest.id}`)
  for (const action of ['resolve', 'mute', 'reopen']) await ask('POST', `/crashes/1/${action}`)
  for (const type of ['text/csv', 'application/x-ndjson'])
    await ask('GET', '/events', undefined, undefined, { accept: type })
  await ask('GET', '/logs', undefined, undefined, { accept: 'application/x-ndjson' })
  for (const query of ['q=listening&since=1h', 'around=1m&slot=1']) await ask('GET', `/logs?${query}`)
  for (const path of ['/events/stream', '/logs/stream'])
    await ask('GET', path, undefined, undefined, { accept: 'text/event-stream' })
  await ask('POST', '/sign-in-links', { name: 'grace', role: 'viewer' })
  const { id: token } = await ask('POST', '/tokens', { name: 'ada', role: 'operator', ttl: '1d' })
  await ask('GET', '/tokens')
  await ask('DELETE', `/tokens/${token}`)
  await ask('DELETE', `/tokens/${token}`, undefined, 404)
  await ask('POST', '/messages', { type: 'reload', data: { caches: ['prices'] } })
  await ask('POST', '/messages', { worker, type: 'reload' })

  const diagnostics = await ask('POST', `/workers/${worker}/diagnostics`, { kind: 'heap-statistics' })
  await deck.untilEvent('diagnostics.finished')
  await ask('GET', `/diagnostics/${diagnostics.id}`)
  await ask('GET', `/diagnostics/${diagnostics.id}/file`)
  await ask('DELETE', `/diagnostics/${diagnostics.id}`)
  const profile = await ask('POST', `/workers/${worker}/diagnostics`, { kind: 'cpu-profile', durationMs: 1000 })
  await ask('GET', `/diagnostics/${profile.id}/functions`, undefined, 409)
  await deck.untilEvent('diagnostics.finished', { message: /cpu-profile/ })
  await ask('GET', `/diagnostics/${profile.id}/functions`)

  await ask('GET', '/profiles/functions?since=10m')
  await ask('GET', '/profiles/changes?beforeRelease=r1')
  await ask('GET', '/profiles/changes', undefined, 400)
  await ask('GET', '/profiles/file?worker=1')

  await ask('POST', '/jobs/nightly/pause')
  await ask('GET', '/jobs')
  await ask('POST', '/jobs/nightly/resume')
  await ask('POST', '/jobs/nightly/runs')
  await deck.untilEvent('job.succeeded')
  await ask('GET', '/jobs')
  await ask('GET', '/jobs/nightly/runs')
  await ask('GET', '/jobs/runs')
  const { id: run } = await ask('POST', '/jobs/runs', { command: ['sleep', '60'] })
  await ask('GET', `/jobs/runs/${run}`)
  await ask('GET', `/jobs/runs/${run}/stream`, undefined, undefined, { accept: 'text/event-stream' })
  await ask('POST', `/jobs/runs/${run}/end`, { isForced: true })
  await deck.untilEvent('job.interrupted')
  await ask('GET', `/jobs/runs/${run}`)
  await ask('POST', `/jobs/runs/${run}/end`, undefined, 409)
  await ask('POST', '/jobs/hourly/runs', undefined, 404)
  await ask('POST', '/jobs/broken/runs')
  await deck.untilEvent('job.failed')
  await ask('POST', '/jobs/broken/acknowledge')
  await ask('POST', '/jobs/broken/acknowledge', undefined, 404)
  await ask('POST', '/jobs/place')
  const attached = await ask('POST', '/jobs/runs', { command: ['node'], process: identifyProcess(process.pid) })
  await ask('POST', `/jobs/runs/${attached.id}/ended`, { code: 0, signal: null })
  await ask('POST', `/jobs/runs/${attached.id}/ended`, { code: 1, signal: null }, 409)
  await ask('POST', '/jobs/runs', { command: [] }, 422)
  await ask('GET', '/refs')
  const built = await ask('POST', '/releases', { git: 'main' }, 202)
  await deck.untilEvent('job.command-failed', { detail: { run: built.id } })
  await ask('GET', `/jobs/runs/${built.id}`)
  await ask('POST', '/releases', { git: 'other' }, 404)

  statuses.push(404)
  const tested = await ask('POST', '/alerts/file-1/test')
  await untilDelivery('failed')
  await ask('POST', `/alerts/file-1/deliveries/${tested.id}/retry`)
  await untilDelivery('delivered')
  await ask('POST', `/alerts/file-1/deliveries/${tested.id}/retry`, undefined, 409)

  const added = await ask('POST', '/alerts', { kind: 'slack', url: 'http://127.0.0.1:9/services/x',
    events: ['master.waiting'] }, 201)
  await ask('GET', `/alerts/${added.id}`)
  await ask('PATCH', `/alerts/${added.id}`, { name: 'ops', isPaused: true })
  await ask('POST', '/alerts', { kind: 'mail' }, 422)
  await ask('PATCH', '/alerts/file-1', { isPaused: true }, 409)
  await ask('DELETE', `/alerts/${added.id}`)
  await ask('DELETE', `/alerts/${added.id}`, undefined, 404)

  const stream = await fetch(`${await deck.appUrl()}/?events`)
  await ask('POST', '/rollouts/preview', { kind: 'deploy', strategy: { canary: { workers: 1 } } })
  const deploy = await ask('POST', '/rollouts', { kind: 'deploy', note: 'on trial',
    strategy: { canary: { workers: 1, durationMs: 60_000 }, limits: { minRequests: 1 } } })
  await deck.untilEvent('rollout.step', { detail: { state: 'canary' } })
  await ask('POST', '/rollouts', { kind: 'restart' }, 409)
  await ask('POST', `/rollouts/${deploy.id}/retry`, undefined, 409)
  for (const action of ['pause', 'resume', 'promote']) await ask('POST', `/rollouts/${deploy.id}/${action}`)
  await ask('GET', `/rollouts/${deploy.id}?wait=2m`)
  const { workers: rows } = await ask('GET', '/status')
  const kept = rows.find(({ holds }) => holds?.eventStreams === 1)?.id
  await ask('POST', `/workers/${kept}/end-connections`)
  assert.equal(await stream.text(), 'data: none\n\n')
  await ask('POST', '/rollouts/preview', { kind: 'rollback' })
  await ask('POST', '/rollouts/preview', { kind: 'deploy', git: 'main', guess: true })
  const rollback = await ask('POST', '/rollouts', { kind: 'rollback', strategy: { minReadyMs: 60_000 } })
  await ask('POST', `/rollouts/${rollback.id}/abort`)
  await ask('GET', `/rollouts/${rollback.id}?wait=2m`)
  const held = await ask('POST', '/rollouts', { kind: 'deploy',
    strategy: { onFailure: 'hold', limits: { readyTimeoutMs: 1 } } })
  await deck.untilEvent('rollout.held', { rollout: held.id })
  await ask('POST', `/rollouts/${held.id}/retry`)
  await ask('POST', `/rollouts/${held.id}/abort`)
  await ask('GET', `/rollouts/${held.id}?wait=2m`)
  await ask('POST', '/rollouts', { kind: 'deploy', strategy: { limits: { readyTimeoutMs: 1 } } })
  await deck.untilEvent('rollout.failed')
  const { items: [notice] } = await ask('GET', '/notices')
  await ask('POST', `/notices/${notice.id}/acknowledge`)
  await ask('POST', `/notices/${notice.id}/acknowledge`, undefined, 404)
  await ask('PUT', '/scale', { workers: 3 })
  const { workers } = await deck.until({ ready: 3 })
  const restart = await ask('POST', `/workers/${workers[0].id}/restart`)
  await ask('GET', `/rollouts/${restart.id}?wait=2m`)
  await ask('POST', `/workers/${workers[1].id}/kill`)
  await deck.until({ ready: 3 })

  await ask('PATCH', '/config', { 'drain.deadlineMs': 20_000 }, undefined, { 'if-match': '*' })
  await ask('PATCH', '/config', { 'drain.deadlineMs': 1 }, 428)
  await ask('PATCH', '/config', { 'drain.deadlineMs': 1 }, 412, { 'if-match': '"old"' })
  await ask('PATCH', '/config', { 'drain.deadlineMs': 'soon' }, 422, { 'if-match': '*' })
  await ask('PATCH', '/config', { dispatch: 'shared' }, 409, { 'if-match': '*' })
  await ask('PATCH', '/config', { surprise: 1 }, 400, { 'if-match': '*' })
  await ask('PUT', '/scale', { workers: 2 }, 412, { 'if-match': '"old"' })

  for (const path of ['/workers/999', '/workers/999/requests', '/rollouts/999', '/releases/r999', '/events/999999',
    '/crashes/999', '/diagnostics/999', '/diagnostics/999/file', '/logs?slot=9']) await ask('GET', path, undefined, 404)
  for (const path of ['/workers/x', '/releases/12', '/events/0', '/events?limit=0', '/events/counts?since=30d&step=1s',
    '/events/histogram?steps=0', '/status?x=1', '/vitals?since=tomorrow']) await ask('GET', path, undefined, 400)
  await ask('POST', `/workers/${workers[2].id}/end-connections`, undefined, 409)
  for (const path of ['/workers/999/restart', '/workers/999/kill', '/workers/999/end-connections', '/crashes/999/mute',
    '/alerts/9/test', '/alerts/file-1/deliveries/9/retry']) await ask('POST', path, undefined, 404)
  await ask('POST', '/alerts/file-1/deliveries/x/retry', undefined, 400)
  await ask('POST', '/messages', { worker: 999, type: 'reload' }, 404)
  await ask('POST', '/messages', { type: 'shutdown' }, 422)
  await ask('POST', '/rollouts', { kind: 'explode' }, 422)
  await ask('PUT', '/scale', { workers: 'many' }, 422)
  await ask('GET', '/status', undefined, 401, { authorization: 'Bearer wrong' })
  await ask('GET', '/status', undefined, 406, { accept: 'image/png' })
  await ask('POST', '/rollouts', { kind: 'restart' }, 415, { 'content-type': 'text/plain' })

  await ask('POST', '/move', { path: path.join(tempFolder(), 'nobody'), secret: 'once' }, 409)
  await ask('POST', '/upgrade', {})
  await deck.meetNext()
  await deck.untilStatus(({ readyWorkers, upgrade }) => readyWorkers === 3 && upgrade === null, 'the next master')
  await ask('POST', '/stop')
  // A deck that moves is in adopt.test.ts. Those of the fleet, in which this deck is not, are called in
  // fleet-api.test.ts.
  const ofFleet = Object.entries<Record<string, { operationId: string }>>(document.paths).filter(([path]) =>
    path.startsWith('/api/v1/fleet')
  ).flatMap(([, operations]) => Object.values(operations).map(({ operationId }) => operationId))
  assert.deepEqual(
    contract.names.filter((name) => !contract.seen.has(name) && name !== 'moveToHost' && !ofFleet.includes(name)),
    []
  )

  /** `state`: of the one delivery that there is */
  async function untilDelivery (state: 'delivered' | 'failed') {
    await until(async () => (await ask('GET', '/alerts')).items[0].deliveries[0].state === state,
      `a delivery that is ${state}`)
  }

  /** `path`: with a query, perhaps; `expected`: a status; '': a path of the port, not of the API */
  async function ask<M extends string, P extends string> (method: M, path: P, body?: object, expected?: number | '',
    headers: Record<string, string> = {}): Promise<AnswerTo<M, P>>
  {
    const url = `${deck.adminUrl}${expected === '' ? '' : '/api/v1'}${path}`
    const abort = new AbortController()
    const response = await fetch(url, { method,
      headers: { authorization: `Bearer ${deck.token}`, connection: 'close',
        ...(body && { 'content-type': 'application/json' }), ...headers }, body: body && JSON.stringify(body),
      signal: abort.signal })
    const isStream = headers.accept === 'text/event-stream'
    const text = isStream ? '' : await response.text()
    if (isStream) abort.abort()
    const type = String(response.headers.get('content-type'))
    const answer = /json/.test(type) && !/ndjson/.test(type) ? JSON.parse(text) : text
    if (expected) assert.equal(response.status, expected, `${method} ${path}: ${text}`)
    else assert.ok(response.ok, `${method} ${path}: ${text}`)
    contract.check({ method, path: new URL(url).pathname, status: response.status,
      headers: Object.fromEntries(response.headers), body: answer })
    return answer
  }
})

test('every problem code and every type of event is in the document, and its examples are what it describes', async (t) => {
  const deck = await startDeckHere(t, 'answers-with-pid.js', { workers: 1 })
  const { body: document } = await deck.api('/openapi.json')
  const { components } = document
  assert.deepEqual(components.schemas.Problem.properties?.code.enum, Object.keys(PROBLEMS))
  assert.deepEqual(components.schemas.Event.properties?.type.enum, EVENT_TYPES)
  const contract = createContract(document)
  for (const [name, { examples }] of Object.entries(components.schemas))
    contract.checkShape(name, present(examples)[0])
})
