import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { identifyProcess } from '../../../server/system/process-identity.ts'
import { settingState } from '../../../server/config/api.ts'
import { STEERING } from '../../../server/config/steering.ts'
import { profileOf } from '../../support/cpu-profile.ts'
import { aCrash } from '../../support/crash-record.ts'
import { tempFolder } from '../../support/folder.ts'
import { present } from '../../support/present.ts'
import { badBody, missing, type Row, type Rows } from './row.ts'
import { ACCESS_ROWS, alertRows } from './shared-rows.ts'
import type { Admin } from '../../support/admin.ts'

const DIGEST = 'v1:0123456789abcdef0123456789abcdef'

const aRollout = ({ deck }: Admin) => void deck.dispatch({ type: 'rollout', kind: 'deploy', actor: 'cli' })
const aGroup = ({ history }: Admin) => void history.crashes.record(DIGEST, aCrash(), { culprit: 'sum (src/shop.js)' })
const aRun = async ({ deck }: Admin) => ({ id: (await deck.jobs.runNow('nightly', { actor: 'cron' })).id })
const badQuery = (name: string, value: string, expected: string) => ({ query: { [name]: value },
  code: 'invalid-query' as const, says: `${name}: expected ${expected}` })
const noWorker = missing({ id: 99 }, 'No worker 99 is alive')
const noGroup = missing({ id: 99 }, 'Crash group 99 does not exist')
const noRollout = missing({ id: 99 }, 'Rollout 99 does not exist')
const noJob = missing({ name: 'nihgtly' }, 'There is no job "nihgtly" (did you mean "nightly"?)')
const noDiagnostics = missing({ id: 99 }, 'Diagnostics 99 do')
const noTime = badQuery('since', 'yesterday', 'an ISO 8601 time')
const noCursor = badQuery('cursor', 'a b', 'the "next" of an earlier page')

/** Each operation of an app that concerns this host alone. */
export const APP_ROWS: Rows = {
  getStatus: { role: 'viewer', answer: { state: 'running', desiredWorkers: 2, release: { id: 'r1' } } },
  listWorkers: { role: 'viewer', answer: { items: [{ id: 1, slot: 1 }, { id: 2, slot: 2 }] } },
  getWorker: { role: 'viewer', path: { id: 2 }, answer: { id: 2, pid: 4002 }, bad: noWorker },
  listWorkerRequests: { role: 'viewer', path: { id: 2 }, answer: { items: [], total: 0 }, bad: noWorker },
  restartWorker: { role: 'operator', path: { id: 2 }, does: { type: 'restart-worker', worker: 2 },
    tells: ['rollout.started'], answer: { id: 1, kind: 'restart' }, location: '/api/v1/rollouts/1', bad: noWorker },
  killWorker: { role: 'operator', path: { id: 2 }, does: { type: 'kill-worker', worker: 2 }, answer: { worker: 2 },
    bad: noWorker },
  endWorkerConnections: { role: 'operator', path: { id: 2 }, does: { type: 'end-connections', worker: 2 },
    answer: { id: 2, slot: 2 }, bad: noWorker },
  getScale: { role: 'viewer', answer: { desiredWorkers: 2 } },
  setScale: { role: 'operator', body: { workers: 4 }, does: { type: 'scale', workers: 4 }, tells: ['scale.changed'],
    answer: { desiredWorkers: 4 },
    bad: badBody({ workers: 0 }, 'workers: expected an integer from 1 to 256, received 0'),
    late: { read: '/scale', by: ['put', '/scale', { workers: 6 }],
      seen: ({ deck }) => String(deck.snapshot().desiredWorkers),
      why: 'bob has set it to 6 workers since you opened this' } },
  upgradeMaster: { role: 'admin', isForToken: true, body: { execPath: '/opt/node/bin/node', note: 'security' },
    does: { type: 'upgrade', execPath: '/opt/node/bin/node', note: 'security' }, answer: { note: 'security' },
    bad: badBody({ execPath: 'node' }, 'execPath: expected the absolute path of a node binary, received "node"') },
  moveToHost: { role: 'admin', isForToken: true, body: { path: '/run/host', secret: 'once' },
    does: { type: 'move', path: '/run/host', secret: 'once' }, answer: { name: 'shop' },
    bad: badBody({ path: 'run', secret: 'once' }, 'path: expected the `path` that') },
  stopMaster: { role: 'admin', does: { type: 'stop' }, answer: { state: 'stopping' } },

  listNotices: { role: 'viewer',
    given: ({ deck }) => void deck.events.publish({ type: 'keeper.lost', message: 'gone' }),
    answer: { items: [{ kind: 'keeper-lost' }] } },
  acknowledgeNotice: { role: 'operator',
    given: ({ deck }) => ({ id: deck.events.publish({ type: 'keeper.lost', message: 'gone' }).id }),
    tells: ['notice.acknowledged'], answer: { kind: 'keeper-lost' },
    bad: missing({ id: 99 }, 'Notice 99 does not exist') },
  getConfig: { role: 'viewer', answer: { items: [{ name: 'drain.deadlineMs', takesEffect: 'now' }] } },
  changeConfig: { role: 'admin', body: { 'drain.deadlineMs': 7000 },
    fields: (body) => ({ name: 'drain.deadlineMs', value: String(body['drain.deadlineMs']) }),
    seen: { tag: '*',
      field: ({ deck }) =>
        settingState(present(deck.settings.list().find(({ name }) => name === 'drain.deadlineMs'))) },
    does: { type: 'configure', wanted: { 'drain.deadlineMs': 7000 } }, tells: ['config.changed'],
    answer: { items: [{ name: 'drain.deadlineMs', value: 7000, source: 'operator' }] },
    bad: badBody({ 'drain.deadlineMs': -1 }, 'drain.deadlineMs: expected an integer from 0', 'invalid-config') },
  listChecks: { role: 'viewer', answer: { problems: 2, items: [{ id: 'drain' }] } },

  listRollouts: { role: 'viewer', given: aRollout, answer: { items: [{ id: 1 }], next: null }, bad: noCursor },
  startRollout: [{ role: 'operator', body: { kind: 'restart', note: 'new certificates' },
    does: { type: 'rollout', kind: 'restart', note: 'new certificates' }, tells: ['rollout.started'],
    answer: { id: 1, kind: 'restart' }, location: '/api/v1/rollouts/1',
    bad: badBody({ kind: 'canary' }, 'kind: expected "restart", "deploy" or "rollback", received "canary"') }, {
    role: 'operator',
    body: { kind: 'deploy', note: 'a "note"',
      strategy: { surge: '25%', canary: { workers: 1, durationMs: 120_000 }, onFailure: 'hold' } },
    does: { type: 'rollout', kind: 'deploy', note: 'a "note"',
      strategy: { surge: '25%', canary: { workers: 1, durationMs: 120_000 }, onFailure: 'hold' } },
    tells: ['rollout.started'],
    location: '/api/v1/rollouts/1',
    bad: badBody({ kind: 'deploy', strategy: { surge: '101%' } }, 'strategy.surge: expected an integer from 1 to 256')
  }, { role: 'operator', body: { kind: 'rollback', release: 'r1' },
    does: { type: 'rollout', kind: 'rollback', release: 'r1' }, tells: ['rollout.started'],
    location: '/api/v1/rollouts/1',
    bad: badBody({ kind: 'rollback', release: 'x' }, 'release: expected a release such as r12, received "x"') }],
  previewRollout: { role: 'operator', body: { kind: 'deploy' }, answer: { from: 'r1', release: { id: 'r2' } },
    bad: badBody({ kind: 'restart' }, 'kind: expected "deploy" or "rollback"') },
  ...Object.fromEntries(
    STEERING.map((
      type
    ): [string, Row] => [`${type}Rollout`, { role: 'operator', given: aRollout, path: { id: 1 },
      does: { type, rollout: 1 }, answer: { id: 1 }, bad: noRollout }]
    )
  ),
  getRollout: { role: 'viewer', given: aRollout, path: { id: 1 }, answer: { id: 1, timeline: null, usual: null },
    bad: noRollout },
  listReleases: { role: 'viewer', answer: { items: [{ id: 'r1' }] }, bad: noCursor },
  deployCommit: { role: 'operator', body: { git: 'main', note: 'why' },
    does: { type: 'deploy-commit', git: 'main', note: 'why' }, answer: { state: 'running' },
    location: '/api/v1/jobs/runs/{id}', bad: badBody({ git: '-x' }, 'git: expected a branch, a tag or a commit') },
  listRefs: { role: 'operator', answer: { items: [{ name: 'main', kind: 'branch' }] } },
  compareReleases: { role: 'viewer', path: { release: 'r1' }, query: { from: 'r1' },
    answer: { from: { id: 'r1' }, to: { id: 'r1' } }, bad: missing({ release: 'r99' }, 'Release r99 does not exist') },
  getRelease: { role: 'viewer', path: { release: 'r1' }, answer: { id: 'r1' },
    bad: missing({ release: 'r99' }, 'Release r99 does not exist') },

  followEvents: { role: 'viewer', isStream: true },
  countEvents: { role: 'viewer', answer: { items: [], next: null }, bad: noTime },
  getEventHistogram: { role: 'viewer', given: aRollout, query: { since: '2026-01-01', until: '2026-01-01T00:01:00Z' },
    answer: { countedSince: null }, bad: badQuery('steps', '0', 'an integer') },
  listEvents: { role: 'viewer', given: aRollout, query: { type: 'rollout.*' },
    answer: { items: [{ type: 'rollout.started', actor: 'cli' }], next: null }, bad: noTime },
  getEvent: { role: 'viewer', given: aRollout, path: { id: 1 }, answer: { id: 1, type: 'rollout.started' },
    bad: missing({ id: 999 }, 'Event 999 does not exist') },
  listCrashes: { role: 'viewer', given: aGroup, answer: { items: [{ id: 1, state: 'open' }] },
    bad: badQuery('sort', 'name', '"last"') },
  getCrash: { role: 'viewer', given: aGroup, path: { id: 1 }, answer: { id: 1, latest: { id: 1 } }, bad: noGroup },
  getCrashOccurrence: { role: 'viewer', given: aGroup, path: { id: 1, n: 1 }, answer: { id: 1, pid: 4711 },
    bad: missing({ id: 1, n: 99 }, 'Crash group 1 has no occurrence 99') },
  resolveCrash: { role: 'operator', given: aGroup, path: { id: 1 }, tells: ['crash.group-resolved'],
    answer: { state: 'resolved', stateChangedBy: 'ada' }, bad: noGroup },
  muteCrash: { role: 'operator', given: aGroup, path: { id: 1 }, tells: ['crash.group-muted'],
    answer: { state: 'muted', stateChangedBy: 'ada' }, bad: noGroup },
  reopenCrash: { role: 'operator', given (admin) {
    aGroup(admin)
    admin.deck.crashes.act(1, 'mute', 'bob')
  }, path: { id: 1 }, tells: ['crash.group-reopened'], answer: { state: 'open', stateChangedBy: 'ada' }, bad: noGroup },
  sendMessage: [{ role: 'operator', body: { type: 'reload', data: { caches: ['prices'] } },
    does: { type: 'message', order: { type: 'reload', data: { caches: ['prices'] } } }, answer: { workers: [1, 2] },
    bad: badBody({ type: 'shutdown' }, 'type: expected 1 to 100 characters') }, { role: 'operator',
    body: { worker: 2, type: 'prüfe <b>' }, does: { type: 'message', order: { worker: 2, type: 'prüfe <b>' } },
    answer: { workers: [2] }, bad: badBody({ worker: 9, type: 'reload' }, 'No worker 9 is alive', 'not-found') }],
  getVitals: { role: 'viewer', answer: { step: '1s', next: null }, bad: badQuery('slots', '0', 'all, none') },
  listRoutes: { role: 'viewer', answer: { items: [], release: null }, bad: noTime },
  listLogLines: { role: 'viewer', answer: { items: [], next: null }, bad: badQuery('slot', 'x', 'an integer') },
  followLogLines: { role: 'viewer', isStream: true },

  listJobs: { role: 'viewer', answer: { items: [{ name: 'nightly' }, { name: 'reindex' }] } },
  listRuns: { role: 'viewer', given: aRun, answer: { items: [{ job: 'nightly' }], next: null }, bad: noCursor },
  runCommand: { role: 'admin', body: { command: ['npm', 'run', 'migrate'] }, answer: { state: 'running', actor: 'ada' },
    location: '/api/v1/jobs/runs/{id}',
    bad: badBody({ command: [] }, 'command: expected a list of a program and its arguments') },
  openRunPlace: { role: 'admin', given ({ deck }) {
    deck.jobs.place = async () => ({ release: 'r1', cwd: '/srv/app', variables: '/run/variables' })
  }, answer: { release: 'r1', variables: '/run/variables' } },
  tellRunEnded: { role: 'admin',
    given: ({ deck }) => ({
      id: deck.jobs.runCommand({ command: ['node'], actor: 'bob', process: identifyProcess(process.pid) }).id
    }), body: { code: 0, signal: null }, answer: { id: 1 },
    bad: badBody({ code: 'none', signal: null }, 'code: expected') },
  getRun: { role: 'viewer', given: aRun, answer: { job: 'nightly', state: 'running' },
    bad: missing({ id: 99 }, 'Run 99') },
  followRun: { role: 'viewer', given: aRun, isStream: true },
  endRun: { role: 'operator', given: aRun, answer: { job: 'nightly' },
    after: ({ deck }) => assert.equal(deck.jobs.commands[0].toldTo.length, 1), bad: missing({ id: 99 }, 'Run 99') },
  listRunsOfJob: { role: 'viewer', path: { name: 'nightly' }, answer: { items: [], next: null }, bad: noJob },
  runJob: { role: 'operator', path: { name: 'nightly' }, tells: ['job.started'],
    answer: { job: 'nightly', actor: 'ada' }, location: '/api/v1/jobs/runs/{id}', bad: noJob },
  acknowledgeJob: { role: 'operator', async given (admin) {
    await aRun(admin)
    await admin.deck.jobs.commands[0].finish({ code: 3 })
  }, path: { name: 'nightly' }, answer: { name: 'nightly', isFailing: false, last: { acknowledgedBy: 'ada' } },
    bad: noJob },
  pauseJob: { role: 'operator', path: { name: 'nightly' }, tells: ['job.paused'], answer: { paused: { actor: 'ada' } },
    bad: noJob },
  resumeJob: { role: 'operator', given: ({ deck }) => void deck.jobs.pause('nightly', 'bob'), path: { name: 'nightly' },
    tells: ['job.resumed'], answer: { paused: null }, bad: noJob },

  startDiagnostics: { role: 'operator', path: { id: 2 }, body: { kind: 'cpu-profile', durationMs: 5000 },
    does: { type: 'diagnose', worker: 2, kind: 'cpu-profile', durationMs: 5000 }, answer: { id: 2, state: 'running' },
    location: '/api/v1/diagnostics/2',
    bad: badBody({ kind: 'cpu-profile', durationMs: 61_000 }, 'durationMs: expected an integer from 100 to 60000') },
  listDiagnostics: { role: 'viewer', answer: { items: [{ id: 1, kind: 'heap-statistics' }] } },
  getDiagnostics: { role: 'viewer', path: { id: 1 }, answer: { id: 1, state: 'done' }, bad: noDiagnostics },
  deleteDiagnostics: { role: 'admin', path: { id: 1 }, answer: {},
    after: ({ deck }) => assert.ok(!deck.diagnostics.items.some(({ id }) => id === 1)), bad: noDiagnostics },
  getHotFunctions: { role: 'operator', given ({ deck: { diagnostics: { items } } }) {
    const file = path.join(tempFolder(), 'profile')
    writeFileSync(file, JSON.stringify(profileOf([[1, '(root)', [2]], [2, 'sum']], [[2, 70]])))
    items[0] = { ...items[0], kind: 'cpu-profile', file }
  }, path: { id: 1 }, answer: { busyMs: 70, functions: [{ function: 'sum' }] }, bad: noDiagnostics },
  getDiagnosticsFile: { role: 'admin', path: { id: 1 }, answer: 'A deck without processes', bad: noDiagnostics },
  getProfileFunctions: { role: 'operator', answer: { isOn: false, slices: 0 }, bad: noTime },
  getProfileChanges: { role: 'operator', query: { beforeRelease: 'r1' }, answer: { functions: [] }, bad: noTime },
  getProfileFile: { role: 'operator', answer: '"nodes"', bad: noTime },

  ...alertRows({ of: '', at: '', alertsOf: ({ deck }) => deck.alerts, fail ({ deck }) {
    deck.alerts.status = 410
  } }),
  ...ACCESS_ROWS,
  getOpenapi: { role: 'viewer', answer: { openapi: '3.1.1' } },
  isAlive: { role: null, answer: 'ok\n' },
  isReady: { role: null, answer: 'ready\n' },
  getMetrics: { role: 'viewer', answer: 'clusterdeck_workers_ready 2' },
  sendMcpMessage: { role: 'viewer', isForToken: true, body: { jsonrpc: '2.0', id: 1, method: 'ping' },
    answer: { id: 1, result: {} }, bad: badBody({ id: 1 }, 'jsonrpc: expected') }
}
