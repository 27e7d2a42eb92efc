import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestOf } from '../../public/command-text.ts'
import { CALLS } from '../../server/dashboard/calls.ts'
import { rawRequest, startAdmin, TOKEN } from '../support/admin.ts'
import { aMember, aRollout, createFakeFleet } from '../support/fake-fleet.ts'
import type { Document } from '../../server/api/openapi.ts'

/** What each form holds. */
const FORMS: Record<string, Record<string, string>> = { restart: {},
  deploy: { note: 'a "note"', surge: '25%', canary: '1', canaryMs: '120000', onFailure: '' },
  'deploy-commit': { git: 'v2', guess: 'true', note: '', surge: '', canary: '1', canaryMs: '', onFailure: 'hold' },
  rollback: { release: 'r1', note: '' }, scale: { workers: '3' }, 'abort-rollout': { rollout: '1' },
  'promote-rollout': { rollout: '1' },
  'fleet-deploy': { note: 'a "note"', batch: '25%', pauseMs: '30000', order: 'zone', canary: 'b-2',
    onFailure: 'rollback' }, 'fleet-restart': { batch: '1', pauseMs: '', order: '', canary: '' },
  'fleet-rollback': { note: '', batch: '2', pauseMs: '', order: '', canary: '', onFailure: 'hold' },
  'fleet-resume': { rollout: '7' }, 'fleet-abort': { rollout: '7' }, 'restart-worker': { worker: '2' },
  'kill-worker': { worker: '2' }, 'end-connections': { worker: '2' }, diagnose: { worker: '2', kind: 'heap-snapshot' },
  message: { worker: '', type: 'reload', data: '{"a":1}' },
  'message-to-worker': { worker: '2', type: 'reload', data: '' },
  configure: { name: 'drain.deadlineMs', value: '7000' }, 'member-restart': { member: 'b-2' },
  'member-scale': { member: 'b-2', workers: '3' }, 'member-restart-worker': { member: 'b-2', worker: '2' },
  'member-kill-worker': { member: 'b-2', worker: '2' } }

/** What is steered has to run. */
const DEPLOY = { type: 'rollout', kind: 'deploy', actor: 'cli' } as const

function fleetFor (action: string) {
  const members = [aMember({ member: 'a-1', isOwn: true }), aMember({ member: 'b-2' })]
  return createFakeFleet({ members,
    rollout: ['fleet-resume', 'fleet-abort'].includes(action)
      ? { ...aRollout(['a-1', 'b-2']), state: 'paused' }
      : null })
}

/** As JSON: what is undefined is not there. */
const withoutActors = (commands: unknown[]) =>
  JSON.parse(JSON.stringify(commands, (key, value) => key === 'actor' || key === 'client' ? undefined : value))

for (const [action, fields] of Object.entries(FORMS)) {
  test(`the command that the dialog shows does what the dialog does: ${action}`, async (t) => {
    const form = await startAdmin(t)
    if (fields.rollout) form.deck.dispatch(DEPLOY)
    const [formFleet, apiFleet] = [fleetFor(action), fleetFor(action)]
    form.deck.fleet = formFleet
    const cookie = await form.signIn()
    const values = { ...fields, tag: form.deck.settings.digest() }
    const posted = await rawRequest(form, { method: 'POST',
      path: `/actions/${action.replace(/-to-worker|-commit$/, '')}`,
      headers: { cookie, origin: form.origin, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(values).toString() })
    assert.equal(posted.status, 204, posted.text)

    const api = await startAdmin(t)
    if (fields.rollout) api.deck.dispatch(DEPLOY)
    api.deck.fleet = apiFleet
    const { method, path, headers, body } = requestOf(CALLS[action], values)
    const asked = await rawRequest(api, { method, path,
      headers: { ...headers, authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }) })
    assert.ok(asked.status < 300, asked.text)
    assert.deepEqual(withoutActors(api.deck.dispatched), withoutActors(form.deck.dispatched))
    assert.deepEqual(withoutActors(apiFleet.asked), withoutActors(formFleet.asked))
    assert.equal(formFleet.asked.length, /^(fleet|member)-/.test(action) ? 1 : 0)
  })
}

test('every command is one that the API names for its operation', async (t) => {
  const admin = await startAdmin(t)
  const { paths } =
    (await rawRequest(admin, { path: '/api/v1/openapi.json', headers: { authorization: `Bearer ${TOKEN}` } })).json<
      Document
    >()
  assert.deepEqual(Object.keys(FORMS), Object.keys(CALLS))
  for (const { operation, method, path, cli } of Object.values(CALLS)) {
    const described =
      paths[path.replace('/fleet/members/{member}/api', '').replace(/\{(worker|rollout)\}/, '{id}')][
        method.toLowerCase()
      ]
    assert.equal(described.operationId, operation)
    const known = [described['x-cli'] ?? []].flatMap((each) =>
      typeof each === 'string' ? [each] : Object.values<string>({ ...each })
    ).map((each) => each.split(' ')[1])
    assert.equal(cli ? known.includes(cli[0]) : known.length === 0, true, `${operation}: ${cli}`)
  }
})
