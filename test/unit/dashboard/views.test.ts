import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import fc from '../../support/fast-check.ts'
import { describeHealth } from '../../../server/words/health.ts'
import { eventModel } from '../../../server/events/page-event.ts'
import { historyModel } from '../../../server/events/page.ts'
import { overviewModel } from '../../../server/dashboard/overview.ts'
import { createVitals } from '../../../server/vitals/vitals.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { fake } from '../../support/fake.ts'
import { anEvent, aRollout, aStatus, aWorker, NOW } from '../../support/snapshots.ts'
import type { Deck, Status } from '../../../server/deck.ts'
import type { RolloutStep } from '../../../server/api/shapes.ts'
import type { History } from '../../../db/history.ts'

const OPERATOR = { operate: true, administer: false, switchDecks: false, name: null, token: null, role: 'operator' }
const VIEWS = fileURLToPath(new URL('../../../views', import.meta.url))
const views = createViews()

test('no text from outside becomes markup', () => {
  const hostile = '<x-evil onload="1">\'"&</title></textarea>'
  fc.assert(
    fc.property(fc.constantFrom('worker.exited', 'rollout.failed', hostile),
      fc.constantFrom(...['cause', 'release', 'actor', 'signal', 'message', 'type']), (type, field) => {
      const event = anEvent({ type, [field]: hostile,
        detail: { errorName: hostile, stack: hostile, [hostile]: hostile, ...aRollout({ to: hostile }) } })
      const rollout = aRollout({ note: hostile, reason: hostile, actor: hostile, to: hostile, state: 'failed',
        kind: 'deploy', finishedAt: '2026-01-02T03:04:01.000Z',
        steps: [{ slot: 1, state: hostile, oldWorker: hostile, newWorker: hostile }] as object as RolloutStep[] })
      const history = fake<History>({ page: () => ({ items: [event], next: null }), event: () => event,
        rollouts: () => ({ items: [rollout], next: null }) })
      const status = aStatus(
        { app: { entry: hostile, cwd: hostile, addresses: [hostile, `http://${hostile}`] }, dispatch: hostile,
          release: { id: hostile, createdAt: hostile },
          workers: [{ ...aWorker(), state: hostile, release: hostile, startedAt: hostile, retryAt: hostile }],
          standby: { wanted: 1, ready: hostile, problem: hostile,
            workers: [{ id: hostile, pid: hostile, state: hostile, release: hostile, startedAt: hostile,
              rssBytes: null }] } } as object
      )
      const overview = (snapshot: Status) =>
        overviewModel({ params: new URLSearchParams(), history, now: () => NOW, deck: fake<Deck>({ snapshot: () =>
          snapshot, health: describeHealth, vitals: createVitals(), notices: { list: () => [] }, jobs: { building: () =>
            null }, releases: { get: () =>
              assert.fail('nobody asked for a release') } }) })
      const pages = [views.render('pages/overview', { ...overview(status), can: OPERATOR }),
        views.render('pages/overview', overview({ ...status, rollout: { ...rollout, state: 'rolling' } })),
        views.render('pages/history', historyModel({ history, params: new URLSearchParams({ q: hostile }), now: NOW })),
        views.render('pages/history',
          historyModel({ history, params: new URLSearchParams({ slot: hostile }), now: NOW })),
        views.render('pages/event', eventModel({ history, id: '1', now: NOW })),
        views.render('pages/error', { status: 404, title: hostile, message: hostile }),
        views.render('pages/sign-in', { notice: { kind: 'error', text: hostile }, next: hostile })]
      for (const html of pages)
        assert.doesNotMatch(html, /<x-evil|" onload="|<\/title><\/textarea>/)
    })
  )
})

test('a sentence, a note or a name from outside turns no text beside it around', () => {
  for (const name of readdirSync(`${VIEWS}/partials`)) {
    const bare = readFileSync(`${VIEWS}/partials/${name}`, 'utf8').replaceAll(/<bdi[^>]*>“?<%=[^%]*%>|="[^"]*"/g, '')
    assert.doesNotMatch(bare, /<%= (?:[\w.?]+\.(?:sentence|note)|notice\.message|changed\.name)\b/, name)
  }
})

test('the strict CSP has nothing to refuse: no inline script, no inline style, no evaluated attribute', () => {
  for (const name of readdirSync(VIEWS, { recursive: true }).map(String).filter((name) => name.endsWith('.eta'))) {
    const template = readFileSync(`${VIEWS}/${name}`, 'utf8')
    assert.doesNotMatch(template, /\sstyle=|<style|\son[a-z]+=|hx-on|js:|<script>/, name)
  }
})
