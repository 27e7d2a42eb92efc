import assert from 'node:assert/strict'
import { test } from 'node:test'
import { releaseRows } from '../../../server/dashboard/releases.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { fake, type Parts } from '../../support/fake.ts'
import type { ReleaseView, Status } from '../../../server/deck.ts'
import type { RolloutView } from '../../../server/lifecycle/rollout/record.ts'
import type { Seen } from '../../support/event-log.ts'

const views = createViews()
const OPERATOR = { operate: true, administer: false, name: null, role: 'operator' }
const NOW = Date.parse('2026-01-02T00:00:00.000Z')
const at = (hour: number) => new Date(Date.parse('2026-01-01T00:00:00.000Z') + hour * 3_600_000).toISOString()

const aRelease = (id: string, servedHour: number | null, fields?: Partial<ReleaseView>) =>
  fake<ReleaseView>({ id, path: `/srv/${id}`, createdAt: at(Number(id.slice(1))), outcome: 'succeeded',
    deployedAt: servedHour === null ? null : at(servedHour), servedAt: servedHour === null ? null : at(servedHour),
    setback: null, isLastGood: false, inUse: false, changedInPlace: null, ...fields })

const aStatus = (
  { current = 'r2', rollout = null, workers = ['r2', 'r2'] }: { current?: string, rollout?: Parts<RolloutView> | null,
    workers?: string[] } = {}
) =>
  fake<Status>({ release: { id: current }, rollout,
    workers: workers.map((release, index) => ({ id: index, pid: index, release })) })

const show = (releases: ReleaseView[], status: Status, blocked: string | null = null) =>
  views.render('partials/releases', { releases: releaseRows(releases, status), snapshot: status, blocked, now: NOW,
    can: OPERATOR })

const THROWN_OUT: Pick<Seen<ReleaseView>, 'setback'> = {
  setback: { outcome: 'rolled-back', at: at(12), rollout: 5, actor: 'guard', reason: 'it crashes' }
}

test('the first release that a list offers to go back to is the last good one, never one that was rolled back', () => {
  const releases = [aRelease('r3', 11, THROWN_OUT), aRelease('r2', 12), aRelease('r1', 10, { isLastGood: true }),
    aRelease('r4', null, { outcome: 'failed', deployedAt: at(9) })]
  const rows = releaseRows(releases, aStatus())
  assert.deepEqual(rows.map(({ id }) => id), ['r2', 'r3', 'r1', 'r4'], 'deployed last first')
  assert.deepEqual(rows.map(({ marks }) => marks.map(({ label }) => label)), [['current'], ['rolled back by the guard'],
    ['last good'], ['failed']])
  assert.deepEqual(show(releases, aStatus()).match(/roll-back-to-r\d/g), ['roll-back-to-r1'])
  assert.equal(rows[1].canReturn, true, 'on its own page somebody may still mean it')
})

test('a release that has served keeps its way back when a later rollout to it did not succeed, and says so', () => {
  const html = show([aRelease('r2', 12),
    aRelease('r1', 10, {
      setback: { outcome: 'failed', at: at(13), rollout: 7, actor: 'ada', reason: 'aborted by ada' }
    })], aStatus())
  assert.match(html, /A later rollout to this release did not succeed: aborted by ada/)
  assert.match(html, /id="roll-back-to-r1"/)
})

test('while a rollout runs both releases show that they run, and in how many workers', () => {
  const text = (rollout: Parts<RolloutView>) =>
    show([aRelease('r13', null, { outcome: null, inUse: true }), aRelease('r2', 12)],
      aStatus({ rollout, workers: ['r2', 'r2', 'r13'] }), 'a rollout runs').replace(/<[^>]*>/g, ' ').replace(/\s+/g,
        ' ')
  assert.match(text({ to: 'r13', state: 'rolling' }), /r13 rolling out 1 of 3 workers.* r2 current 2 of 3 workers/)
  assert.match(text({ to: 'r13', state: 'held' }), /r13 held 1 of 3/)
  assert.match(text({ to: 'r13', state: 'rolling-back' }), /r13 rolling back 1 of 3/)
})

test('what a commit says of itself is no markup, and hides nothing', () => {
  const hostile = '<x-evil>\u202e"&'
  const html = show([
    aRelease('r1', 10, { note: hostile,
      git: { commit: 'ab'.repeat(20), branch: hostile, author: hostile, subject: hostile, isDirty: false },
      setback: { ...THROWN_OUT.setback, actor: hostile, reason: hostile } })
  ], aStatus())
  assert.doesNotMatch(html, /<x-evil|\u202e/)
  assert.match(html, /&lt;x-evil&gt;&lt;U\+202E&gt;/)
})

test('a release whose code was changed in place is not offered; one of whose folder other files differ is, and says so', () => {
  const message = 'r1 may not be what it was: 1 file of its folder has changed since its deploy: <b>.html'
  const changed = (
    kind: 'code' | 'folder' | 'unknown'
  ) => [aRelease('r2', 12),
    aRelease('r1', 10, { isLastGood: true,
      changedInPlace: { kind, count: 1, files: [], since: null, by: null, message } })]
  const marks = (kind: 'code' | 'folder' | 'unknown') =>
    releaseRows(changed(kind), aStatus())[1].marks.map(({ label }) => label)
  const kinds = ['code', 'folder', 'unknown'] as const
  assert.deepEqual(kinds.map(marks), [['changed in place'], ['last good', 'changed in place'], ['last good']])
  assert.deepEqual(kinds.map((kind) => /id="roll-back-to-r1"/.test(show(changed(kind), aStatus()))), [false, true,
    true])
  assert.match(show(changed('code'), aStatus()), /It cannot come back: r1 may not/)
  for (const kind of kinds.slice(1))
    assert.match(show(changed(kind), aStatus()),
      /<bdi>r1 may not be what it was: 1 file of its folder has changed since its deploy: &lt;b&gt;\.html\.<\/bdi>/)
})
