import assert from 'node:assert/strict'
import { test } from 'node:test'
import { releaseRows } from '../../../server/releases/page-list.ts'
import { deployRows } from '../../../server/rollouts/page-deploys.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { fake, type Parts } from '../../support/fake.ts'
import { testStates } from '../../support/golden.ts'
import { seen } from '../../support/seen.ts'
import { aRollout } from '../../support/snapshots.ts'
import type { KeptRun } from '../../../server/jobs/api.ts'
import type { Status } from '../../../server/deck.ts'
import type { KeptRelease } from '../../../server/api/shapes.ts'
import type { RolloutView } from '../../../server/lifecycle/rollout/record.ts'
import type { Seen } from '../../support/event-log.ts'

const views = createViews()
const OPERATOR = { operate: true, administer: false, name: null, role: 'operator' }
const NOW = Date.parse('2026-01-02T00:00:00.000Z')
const at = (hour: number) => new Date(Date.parse('2026-01-01T00:00:00.000Z') + hour * 3_600_000).toISOString()

const aRelease = (id: string, servedHour: number | null, fields?: Partial<KeptRelease>) =>
  fake<KeptRelease>({ id, path: `/srv/${id}`, createdAt: at(Number(id.slice(1))), outcome: 'succeeded', rollout: null,
    createdBy: 'ada', note: null, git: null, deployedAt: servedHour === null ? null : at(servedHour),
    servedAt: servedHour === null ? null : at(servedHour), setback: null, isLastGood: false, inUse: false,
    changedInPlace: null, ...fields })

const aStatus = (
  { current = 'r2', rollout = null, workers = ['r2', 'r2'] }: { current?: string, rollout?: Parts<RolloutView> | null,
    workers?: string[] } = {}
) =>
  fake<Status>({ release: { id: current }, rollout: rollout && aRollout(rollout),
    workers: workers.map((release, index) => ({ id: index, pid: index, release, state: 'ready' })) })

type State =
  & { releases: KeptRelease[], rollouts?: Parts<RolloutView>[], builds?: KeptRun[], blocked?: string }
  & Parameters<typeof aStatus>[0]

function show ({ releases, rollouts = [], builds, blocked, ...fields }: State) {
  const status = aStatus(fields)
  return views.render('partials/deploys', {
    deploys: deployRows({ rollouts: rollouts.map(aRollout), releases: releaseRows(releases, status), builds,
      isFirstPage: true, snapshot: status }),
    isFirstPage: true,
    isUnreadable: false,
    rollout: status.rollout,
    links: {},
    snapshot: status,
    blocked: blocked ?? null,
    now: NOW,
    can: OPERATOR
  })
}

const THROWN_OUT: Pick<Seen<KeptRelease>, 'setback'> = {
  setback: { outcome: 'rolled-back', at: at(12), rollout: 5, actor: 'guard', reason: 'it crashes' }
}

const changedInPlace = (kind: 'code' | 'folder' | 'unknown') => ({
  releases: [aRelease('r2', 12),
    aRelease('r1', 10, { isLastGood: true,
      changedInPlace: { kind, count: 1, files: [], since: null, by: null,
        message: 'r1 may not be what it was: 1 file of its folder has changed since its deploy: <b>.html' } })]
})
const during = (rollout: Parts<RolloutView>) => ({ rollout, workers: ['r2', 'r2', 'r13'], blocked: 'a rollout runs',
  releases: [aRelease('r13', null, { outcome: null, inUse: true }), aRelease('r2', 12)] })
const aBuild = (id: number, hour: number, fields: Partial<KeptRun> = {}) =>
  fake<KeptRun>({ id, job: null, command: 'deploy --git main', git: 'main', state: 'failed', actor: 'ada',
    startedAt: at(hour), finishedAt: at(hour + 0.01), durationMs: 36_000, rollout: null,
    stage: { name: 'npm run build', startedAt: at(hour + 0.005) }, reason: 'npm run build exited with code 2',
    output: '$ npm run build\nTS2322 <b>\n', ...fields })
const MIXED = [aRelease('r3', 11, THROWN_OUT), aRelease('r2', 12), aRelease('r1', 10, { isLastGood: true }),
  aRelease('r4', null, { outcome: 'failed', deployedAt: at(9) })]

testStates(import.meta, 'releases', {
  'what was rolled out, newest first: a failure that a later deploy has overtaken is no alarm': {
    releases: [...MIXED.map((each) => each.id === 'r3' ? { ...each, rollout: 4 } : each),
      aRelease('r5', null, { outcome: null, createdAt: at(13) })],
    rollouts: [{ id: 5, kind: 'rollback', from: 'r3', to: 'r2', state: 'succeeded', finishedAt: at(12),
      note: 'it crashed' }, { id: 4, from: 'r2', to: 'r3', state: 'succeeded', finishedAt: at(11),
      verdicts: [{ at: at(11), passed: true, isFinal: true, message: 'the canary does as well as r2',
        canary: { workers: 1, requests: 900, errorRate: 0.001, p99Ms: 12 },
        baseline: { workers: 1, requests: 900, errorRate: 0, p99Ms: 11 } }] }, { id: 3, kind: 'restart', from: 'r2',
      to: 'r2', state: 'failed', reason: 'worker 9 was not ready', finishedAt: at(10.5) }, { id: 2, from: 'r1',
      to: 'r7', state: 'succeeded', finishedAt: at(10),
      verdicts: [{ at: at(10), passed: true, isFinal: true, message: 'it does well',
        canary: { workers: 2, requests: 900, errorRate: 0.001, p99Ms: 12 },
        baseline: { workers: 0, requests: 0, errorRate: null, p99Ms: null } }] }, { id: 1, from: 'r1', to: 'r4',
      state: 'failed', reason: 'worker 3 exited with code 1', finishedAt: at(9) }, { id: 0, from: 'r1', to: 'r6',
      state: 'rolled-back', reason: 'memory is 400 MB', finishedAt: at(8),
      verdicts: [{ at: at(8), passed: false, isFinal: false, message: 'memory is 400 MB',
        canary: { workers: 1, requests: 0, errorRate: null, p99Ms: null },
        baseline: { workers: 1, requests: 0, errorRate: null, p99Ms: null },
        decided: { figure: 'memory', unit: 'bytes', canary: 400 * 2 ** 20, baseline: 40 * 2 ** 20, limit: 120 * 2 ** 20,
          option: 'p99Ratio' } }] }]
  },
  'the first that is offered is the last good one, never one that was rolled back': { releases: MIXED },
  'one that has served keeps its way back when a later rollout to it did not succeed': {
    releases: [aRelease('r2', 12),
      aRelease('r1', 10, {
        setback: { outcome: 'failed', at: at(13), rollout: 7, actor: 'ada', reason: 'aborted by ada' }
      })]
  },
  'a commit is built, the build before it has failed, and an older failure is no alarm any more': {
    releases: [aRelease('r2', 12)],
    builds: [
      aBuild(9, 14, { state: 'running', finishedAt: null, durationMs: null, reason: null,
        stage: { name: 'npm ci', startedAt: at(14.001) } }),
      aBuild(8, 13),
      aBuild(6, 11.9, { state: 'succeeded', rollout: 1, reason: null, output: null }),
      aBuild(5, 10, { state: 'interrupted', stage: null, reason: 'deploy --git main was ended by ada', output: '' })
    ],
    rollouts: [{ id: 1, from: 'r1', to: 'r2', state: 'succeeded', startedAt: at(12), finishedAt: at(12) }]
  },
  'while a rollout runs': during({ to: 'r13', state: 'rolling' }),
  'while a rollout is held': during({ id: 13, to: 'r13', state: 'held', startedAt: at(14), pausedAt: at(14.01),
    reason: 'worker 9 was not ready' }),
  'while a rollout goes back': during({ to: 'r13', state: 'rolling-back' }),
  'its code was changed in place, so that it is not offered': changedInPlace('code'),
  'other files of its folder differ': changedInPlace('folder'),
  'whether its files differ is not known': changedInPlace('unknown')
}, (state: State) => seen(show(state)).split('\n').slice(2).join('\n'))

test('each that was deployed can be deployed again, also one that was rolled back or has failed', () => {
  assert.deepEqual(
    releaseRows(MIXED, aStatus()).map(({ id, canReturn, isOffered, returns }) => [id, canReturn, isOffered, returns]),
    [['r2', false, false, 'Roll back to r2'], ['r3', true, false, 'Redeploy r3'], ['r1', true, true, 'Roll back to r1'],
      ['r4', true, false, 'Redeploy r4']]
  )
})

test('of a build that runs the output is open, and of a long output its last lines are shown', () => {
  const builds = [aBuild(9, 14, { state: 'running', output: `first\n${'a line\n'.repeat(2000)}last` }), aBuild(8, 13)]
  const html = show({ releases: [], builds })
  assert.match(html, /<details class="deploys-output" id="build-9-output" open>/)
  assert.match(html, /<details class="deploys-output" id="build-8-output">/)
  assert.match(html, /<pre class="code">a line\n(a line\n)+last<\/pre>/)
  assert.equal(html.match(/name="operation"|endRun/g)?.length, 2, 'that which runs can be ended')
  assert.doesNotMatch(html, /first|<b>/)
})

test('what a commit says of itself is no markup, and hides nothing', () => {
  const hostile = '<x-evil>\u202e"&'
  const html = show({
    releases: [aRelease('r2', 12),
      aRelease('r1', 10, { note: hostile,
        git: { commit: 'ab'.repeat(20), branch: hostile, author: hostile, subject: hostile, isDirty: false },
        setback: { ...THROWN_OUT.setback, actor: hostile, reason: hostile } })]
  })
  assert.doesNotMatch(html, /<x-evil|\u202e/)
  assert.match(html, /&lt;x-evil&gt;&lt;U\+202E&gt;/)
})
